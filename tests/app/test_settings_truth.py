"""What settings, usage and the admin's page say is what really happens: model, archive, costs, queues."""

import re
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.autosave import AutoSave
from discoclaw.core.budgets import limits_of
from tests.app.conftest import GUILD_ID, Start
from tests.app.test_settings_card import ruled, text
from tests.app.test_usage import at, usage
from tests.app.test_usage_shown import card, said
from tests.app.visiting import visited
from tests.servers import messages_api as api
from tests.servers.messages_api import MessagesServer

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
OFFLINE: dict[str, Any] = {"model_provider": "offline", "model_servers": {"ollama": "http://127.0.0.1:9"}}
"""With the address of a server, the world leaves it to the settings which model answers."""


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discoclaw.models.offline.PIECE_PAUSE_S", 0.0)  # the simulated clock stands still


class TestTheModel:
    async def test_that_answers_offline_is_named_as_what_it_is(self, start: Start) -> None:
        async with ruled(start, **OFFLINE) as rule:
            rule.world._model = None
            await rule.world.restart()
            here = rule.world.general
            told = (await rule.cleo.slash(here, "model")).response.content
            assert told.startswith(f"the offline model answers in <#{here.id}>.")
            assert "name its provider too" in told and "sonnet" not in told
            assert "**Model**: the offline model\n" in text(await rule.opens())
            set_ = (await rule.cleo.slash(here, "model", name="opus")).response.content
            assert set_ == f"the offline model now answers in <#{here.id}>."
            await rule.world.ann.send(here, "hello")
            await rule.world.settle()
            assert "**offline**: free" in said(await card(rule.world, by="model"))
            told = said(await card(rule.world))
            assert "-# Nobody charged for this: the offline model answered, or one on this machine" in told

    async def test_has_its_whole_name_beside_its_alias(self, start: Start, server: MessagesServer) -> None:
        async with ruled(start, base_url=server.base_url) as rule:
            rule.world._model = None
            await rule.world.restart()
            assert "**Model**: sonnet (claude-sonnet-5-5)\n" in text(await rule.opens())

    async def test_is_the_smaller_one_and_then_none_as_a_budget_is_spent(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        server.default = lambda _: api.text("ok", usage=usage(400_000, 0))
        async with ruled(start, **at(server, tmp_path, budget=limits_of("100/day"))) as rule:
            rule.world._model = None
            await rule.world.restart()
            for _ in range(2):
                await rule.world.ann.send(rule.world.general, "hello")
            now, why = "haiku (claude-haiku-5-5)", "my budget for today is nearly spent"
            shown = text(await rule.opens())
            assert f"**Model**: {now} (instead of sonnet (claude-sonnet-5-5): {why})\n" in shown
            server.default = lambda _: api.text("ok", usage=usage(40_000_000, 0))
            await rule.world.ann.send(rule.world.general, "hello")
            told = (await rule.cleo.slash(rule.world.general, "model")).response.content
            assert told.startswith("the offline model (instead of sonnet")
            assert "my budget for today is spent) answers in" in told


class TestTheArchive:
    @pytest.mark.parametrize(
        ("saved", "state"),
        [
            (AutoSave(), "off"),
            (AutoSave(everywhere=True), "on"),
            (
                AutoSave(guilds=frozenset({str(GUILD_ID)}), dms=True),
                f"on for direct messages, server {GUILD_ID}",
            ),
        ],
    )
    async def test_is_named_for_everywhere(self, start: Start, saved: AutoSave, state: str) -> None:
        async with ruled(start, auto_save=saved) as rule:
            card = (await rule.world.ann.user.slash("settings")).response
            assert f"**Archive**: {state}\n" in text(card)

    async def test_is_off_where_nothing_is_stored_whatever_is_set(self, start: Start) -> None:
        async with ruled(start, auto_save=AutoSave(everywhere=True), store="none") as rule:
            assert "**Archive**: off, because nothing is stored here" in text(await rule.opens())

    async def test_and_the_model_are_the_same_on_the_admins_page(self, start: Start) -> None:
        async with visited(start, auto_save=AutoSave(dms=True), **OFFLINE) as (_, me):
            await me.enter()
            shown = await me.get("/settings")
            assert "Model the offline model" in shown or "Model sonnet" in shown
            assert "Archive on for direct messages" in shown


class TestUsage:
    async def test_that_is_not_written_down_says_why(self, start: Start) -> None:
        async with start(store="none", **QUIET) as world:
            await world.ann.send(world.general, "hello")
            assert "I don't write down what models are used for: nothing is stored here" in said(
                await card(world)
            )


class TestTheQueues:
    async def test_of_an_idle_bot_are_empty_by_the_tile_the_list_and_the_health(self, start: Start) -> None:
        """The archive looks once an hour for what is too old: that only waits for its time."""
        async with visited(start, auto_save=AutoSave(everywhere=True), **QUIET) as (world, me):
            await world.ann.send(world.general, "hello")
            await world.settle()
            await me.enter()
            shown = await me.get("/")
            tile = re.search(r"([\d,]+) waiting in queues", shown)
            health = re.search(r"none of them hangs; (\d+) jobs? waiting", shown)
            assert tile is not None and health is not None
            assert tile[1] == health[1] == "0"

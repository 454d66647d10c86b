"""What models were used for and what it cost: `/usage`, budgets, and what happens when one is spent."""

import csv
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from discoclaw.cli.main import cli
from tests.contract.brain import is_talk
from tests.contract.cards import every_page, parts, said
from tests.contract.commands import card, told, typed
from tests.contract.world import Start, World
from tests.servers import messages_api as api
from tests.servers.messages_api import Behaviour, Received

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
SONNET, HAIKU = "claude-sonnet-5-5", "claude-haiku-5-5"
ALONE = "-# Answered from memory alone: my budget for today is spent. Back to normal <t:"
PRICES = f"""
["{SONNET}"]
input = 100
output = 1
["{HAIKU}"]
input = 1
output = 1
"""


@asynccontextmanager
async def priced(start: Start, **changes: Any) -> AsyncIterator[World]:
    """A world in which a million tokens of the usual model cost 100 dollars."""
    async with start(**{**QUIET, **changes}) as world:
        path = world.folder / "prices.toml"
        path.write_text(PRICES)
        await world.restart(prices=path)
        yield world


def costs(tokens: int, words: str = "ok") -> Behaviour:
    """An answer that reads so many tokens."""
    return api.text(words, usage={"input_tokens": tokens, "output_tokens": 1})


async def spend(world: World, tokens: int, person: Any = None) -> None:
    """Somebody has an answer that costs so many tokens, in #dev."""
    world.brain.says(costs(tokens), about="something dear")
    await world.says(person or world.ann, world.dev, "something dear")


def models(world: World) -> list[str]:
    return [one.body["model"] for one in world.turns()]


async def choose(person: Any, message: Any, view: str) -> Any:
    """Somebody chooses a view in the menu of a card."""
    (menu,) = (one for one in parts(message) if one["type"] == 3)
    offered = {one["label"]: one["value"] for one in menu["options"]}
    return await person.select(message, [offered[view]], custom_id=menu["custom_id"])


class TestWhatWasUsed:
    async def test_adds_up_to_the_token_to_what_the_server_counted(self, start: Start) -> None:
        served: list[dict[str, int]] = []

        def serving(received: Received) -> Behaviour:
            used = {"input_tokens": 11 + len(served), "output_tokens": 3 + 2 * len(served)}
            served.append(used)
            if is_talk(received):
                return api.text("Fine.", usage=used)
            return api.json_answer({"upserts": [], "deprecations": [], "summary": "They talked."}, usage=used)

        def line() -> str:
            read, wrote = (sum(one[name] for one in served) for name in ("input_tokens", "output_tokens"))
            return f" calls · {read} tokens in, {wrote} out"

        async with start() as world:
            world.server.default = serving
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await world.says(world.ann, world.general, "I keep bees")
            assert line() in said(await card(world, "usage"))
            await world.says(world.ann, world.dev, "How are they?")
            await world.says(world.bob, world.bob_dm, "And my cat?")
            whole = await card(world, "usage", everybody=True)
            assert said(whole).count(line()) == 3  # today, this month, the last thirty days
            mine = said(await card(world, "usage", by="purpose"))
            assert "**answers**: free\n-# 2 calls" in mine and "**learning**: free" in mine
            await choose(world.ann, whole, "Everybody's by person")
            assert f"**<@{world.bob.id}>**: free" in said(whole)
            await choose(world.ann, whole, "Everybody's by channel")
            assert f"**<#{world.general.id}>**" in said(whole)
            await choose(world.ann, whole, "Everybody's by server")
            assert "**Home**" in said(whole)
            await world.restart()
            assert line() in said(await card(world, "usage", everybody=True))
            await world.restart(owners=frozenset())
            pressed = await choose(world.ann, whole, "Everybody's by purpose")
            assert "Only my owners" in pressed.followups[-1].content
            for options in ({"everybody": True}, {"everybody": True, "by": "person"}):
                refused = said(await card(world, "usage", **options))
                assert refused.startswith("Only my owners can see everybody's usage")
            assert str(world.bob.id) not in said(await card(world, "usage", by="person"))

    async def test_is_a_card_with_views_a_text_in_a_dm_and_a_file(self, start: Start) -> None:
        async with priced(start) as world:
            await spend(world, 3_400)
            await world.env.advance_time(7 * 86_400)
            world.brain.says(costs(1_000), about="once more")
            await world.says(world.ann, world.general, "once more")
            await spend(world, 20_000, world.bob)
            shown = await card(world, "usage")
            assert shown.flags.ephemeral
            assert "### Your usage\n**Today**: $0.10\n-# 1 call · 1.0k tokens in, 1 out" in said(shown)
            assert "**The last 30 days**: $0.44\n-# 2 calls · 4.4k tokens in, 2 out" in said(shown)
            (picture,) = shown.attachments
            assert Image.open(io.BytesIO(await picture.read())).size[0] == 960
            await choose(world.ann, shown, "Mine by channel")
            assert f"**<#{world.dev.id}>**: $0.34" in said(shown)
            await choose(world.ann, shown, "Mine by day")
            days = [one for one in said(shown).splitlines() if one.startswith("**")]
            assert days == sorted(days, reverse=True) and len(days) == 2
            await choose(world.ann, shown, "Mine")
            assert "**This month**" in said(shown) and len(shown.attachments) == 1
            assert await typed(world, "usage") == "I sent it to you in a DM."
            dm = world.ann_dm.last_message
            assert dm.content.startswith(f"-# You asked for this in <#{world.general.id}>.\n**Your usage**")
            assert len(dm.attachments) == 1
            by_model = await typed(world, "usage model", privately=True)
            assert by_model.startswith("**Your usage by model**") and f"**{SONNET}**: $0.44" in by_model
            assert await typed(world, "export usage") == "I sent it to you in a DM (2 calls)."
            (file,) = world.ann_dm.last_message.attachments
            rows = list(csv.DictReader((await file.read()).decode().splitlines()))
            assert file.filename == "usage.csv" and [one["input_tokens"] for one in rows] == ["3400", "1000"]
            path = f"/channels/{world.ann_dm.id}/messages"
            world.env.inject_error("POST", path, status=403, code=50007, times=None)
            assert (await typed(world, "usage")).startswith("I can't send you DMs")
            await world.env.advance_time(40 * 86_400)
            assert "No calls in the last 30 days" in said(await card(world, "usage", by="model"))
            await card(world, "memory data optout")
            assert "You have opted out, so I don't write down" in said(await card(world, "usage"))
            await world.restart(store="none")
            why = "I don't write down what models are used for: nothing is stored here"
            assert why in said(await card(world, "usage", world.bob))


class TestABudget:
    async def test_is_shown_with_what_is_left_to_each_and_begins_anew(self, start: Start) -> None:
        budget = "4/day, channel 40/month, person 1/day, person 20/month"
        async with priced(start, budget=budget) as world:
            world.brain.usual = costs(1_000)
            for person in (world.ann, world.bob):
                await world.says(person, world.general, "hello")
            shown = said(await card(world, "usage"))
            tomorrow = int(world.env.now().timestamp()) // 86_400 * 86_400 + 86_400
            assert "**Your budget for today**: $0.90 of $1.00 left\n-# 10 % spent" in shown
            assert f"begins anew <t:{tomorrow}:R>" in shown
            assert "**Your budget for this month**: $19.90 of $20.00 left" in shown
            assert "**Everybody's budget for today**: 95 % left" in shown
            assert "**Budget of this channel for this month**: 100 % left" in shown
            assert "$0.20" not in shown  # what others spent is theirs
            await world.restart(owners=frozenset({str(world.bob.id)}))
            theirs = await every_page(world.bob, await card(world, "usage", world.bob, everybody=True))
            assert "**Everybody's budget for today**: $3.80 of $4.00 left" in theirs
            assert f"**Budget of <@{world.ann.id}> for today**: $0.90 of $1.00 left" in theirs
            await spend(world, 9_000)
            spent = said(await card(world, "usage"))
            assert "**Your budget for today**: spent\n-# 100 % spent · begins anew <t:" in spent
            assert "your budget for today is spent" in await world.says(world.ann, world.general, "hello")
            assert (await world.says(world.bob, world.general, "hello")) == "ok"

    async def test_that_is_nearly_spent_has_a_smaller_model_answer_which_says_so(self, start: Start) -> None:
        async with priced(start, budget="100/day", response_cache=True) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await spend(world, 900_000)
            answer = await world.says(world.ann, world.general, "two")
            assert models(world) == [SONNET, HAIKU]
            note = "-# A smaller model answered: my budget for today is nearly spent. Back to normal <t:"
            assert answer.startswith(f"ok\n\n{note}") and answer.endswith(":R>.")
            owners = (
                "-# The budget of $100.00 a day is nearly spent ($90.00 so far). Answers come from a smaller"
            )
            assert [one.startswith(owners) for one in world.shown(world.ann_dm)] == [True]
            await card(world, "ask", text="Tabs?")
            await world.restart(budget="")
            await card(world, "ask", text="Tabs?")
            assert models(world)[-2:] == [HAIKU, SONNET]  # its answer isn't kept for the usual one
            assert len(world.shown(world.ann_dm)) == 1

    async def test_that_is_spent_leaves_memory_alone_until_the_next_day(self, start: Start) -> None:
        async with priced(start, budget="100/day", extraction_enabled=True) as world:
            world.brain.learns("User likes cocoa.", about="I like cocoa")
            await card(world, "memory remember", text="I like green tea")
            await spend(world, 1_000_000)
            await world.restart(owners=frozenset({str(world.ann.id)}))
            before = len(world.server.requests)
            answer = await world.says(world.ann, world.general, "Which tea do I like?")
            assert "green tea" in answer and f"\n\n{ALONE}" in answer
            await world.says(world.ann, world.general, "Remember that my cat is called Tom")
            assert any("Tom" in text for text in world.memories(world.ann))
            asked = await world.ann.slash(world.general, "ask", text="Which tea do I like?")
            await world.settle()
            assert "green tea" in told(asked) and ALONE in told(asked)
            await world.says(world.ann, world.general, "I like cocoa")  # learned later
            no = "I can't do that now: my budget for today doesn't allow it."
            assert no in await typed(world, "tidy")
            await world.ann.user.slash("hatch start")
            await world.says(world.ann, world.ann_dm, "hello")
            assert no in "\n".join(world.shown(world.ann_dm))
            model = (await world.ann.user.slash("model")).response.content
            assert model.startswith("the offline model (instead of sonnet")
            assert len(world.server.requests) == before
            await typed(world, "hatch cancel")
            await world.ann.send_dm("!hatch cancel")
            await world.env.advance_time(86_400)
            assert (await world.says(world.ann, world.general, "hello again")) == "ok"
            assert "User likes cocoa." in world.memories(world.ann)

    async def test_that_ends_in_the_middle_of_an_answer_finishes_it_from_memory(self, start: Start) -> None:
        async with priced(start, budget="100/day") as world:
            dear = {"input_tokens": 800_000, "output_tokens": 1}
            search = api.tool_use(("t", "memory_search", {"query": "tea"}), thought="hm", usage=dear)
            world.brain.says(search, "So.", about="what I like")
            assert await world.says(world.ann, world.general, "remember what I like?") == "So."
            assert models(world) == [SONNET, SONNET]  # the model that began goes on
            all_of_it = {"input_tokens": 20_000_000, "output_tokens": 1}
            store = api.tool_use(("t", "memory_store", {"text": "Likes coffee"}), usage=all_of_it)
            world.brain.says(store, about="I like coffee")
            answer = await world.says(world.ann, world.general, "remember that I like coffee")
            assert answer.startswith("Done. Remembered: Likes coffee.\n")
            assert answer.count("Answered from memory alone") == 1
            assert world.memories(world.ann) == ["Likes coffee"] and models(world)[2:] == [HAIKU]

    async def test_holds_where_nothing_is_stored_and_a_wrong_one_stops_the_start(
        self, start: Start, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with priced(start, budget="100/day", store="none") as world:
            await spend(world, 1_000_000)
            assert ALONE in await world.says(world.ann, world.general, "hello")
            assert len(world.turns()) == 1 and not list(world.data.rglob("usage*"))
        monkeypatch.chdir(tmp_path)
        output = CliRunner().invoke(cli, ["run"], env={"DISCOCLAW_BUDGET": "5/week"}).output
        wrong = "DISCOCLAW_BUDGET=5/week: “5/week” isn't a budget; write for example 5/day, 60/month, person"
        assert wrong in output

"""Usage and budgets as people, owners and admins meet them: the whole bot against a loopback model server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from discoclaw.app import build
from discoclaw.app.usage import Usage, is_own
from discoclaw.core import titles
from discoclaw.core.budgets import limits_of
from discoclaw.core.errors import SettingsError
from discoclaw.core.model import Usage as Used
from discoclaw.core.usage import DOLLAR, NOBODY, Call, Payer
from discoclaw.models.offline.model import OfflineModel
from discoclaw.models.offline.talk import NOT_IN_MEMORY
from discoclaw.settings import load
from discoclaw.usage.accounts import Accounts
from tests.app.conftest import GUILD_ID, Start, World
from tests.app.models import Scripted
from tests.app.test_menus import said
from tests.app.test_voice import speak
from tests.app.visiting import visited
from tests.servers import messages_api as api
from tests.servers.embeddings_api import EmbeddingsServer
from tests.servers.messages_api import Behaviour, Json, MessagesServer, Received
from tests.servers.transcription_api import TranscriptionServer

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
SONNET, HAIKU = "claude-sonnet-5-5", "claude-haiku-5-5"
PRICES = f"""
["{SONNET}"]
input = 100
output = 1000
["{HAIKU}"]
input = 1
output = 10
"""


def usage(fresh: int, output: int, read: int = 0, written: int = 0) -> Json:
    return {
        "input_tokens": fresh,
        "output_tokens": output,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }


def accounts(world: World) -> Accounts:
    return world.app.feature(Usage).accounts


async def calls(world: World) -> list[Call]:
    await world.settle()
    return await accounts(world).calls(0)


def at(server: MessagesServer, folder: Path, **more: Any) -> dict[str, Any]:
    """Settings of a bot whose models are at this server, which has the prices of this module."""
    path = folder / "prices.toml"
    path.write_text(PRICES)
    return {"base_url": server.base_url, "api_key": SecretStr("sk"), "prices": path, **more}


def spend(world: World, dollars: float, payer: Payer = NOBODY) -> None:
    """Let something be spent elsewhere."""
    nano, now = int(dollars * DOLLAR), accounts(world).now()
    accounts(world).end(Call("elsewhere", now, "answer", SONNET, Used(1, 1), nano, payer))


def models(server: MessagesServer) -> list[str]:
    return [one.body["model"] for one in server.requests]


class TestWhatIsCounted:
    async def test_adds_up_to_what_the_server_says_it_served(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        """Tools, both loops, a correction, a refusal, an answer without a word, and failures."""
        counted = [usage(100 + one, 10 + one, 1_000 + one, one) for one in range(30)]

        def loops(received: Received) -> Behaviour:
            takes = counted[len(server.served) % 30]
            if titles.PREVIOUS_SUMMARY in received.prompt:
                return api.json_answer({"summary": "They talk.", "themes": [], "decisions": []}, usage=takes)
            if "tools" in received.body:
                return api.text("Yes.", usage=takes)
            if len(server.served) % 2:
                return api.text("no JSON at all", usage=takes)
            return api.json_answer({"upserts": [], "deprecations": []}, usage=takes)

        server.default = loops
        async with start(**at(server, tmp_path, summary_every=1)) as world:
            server.script(
                api.tool_use(("t1", "memory_search", {"query": "tea"}), usage=counted[0]),
                api.text("Nothing about tea.", usage=counted[1]),
            )
            await world.ann.send(world.general, "Do I like tea?")
            await world.settle()
            server.script(api.failure(500), api.refusal("no"))
            await world.ann.send(world.general, "Something bad")
            await world.settle()
            server.script(api.text("", stop_reason="max_tokens", usage=counted[5]))
            await world.ann.send_dm("Think long")
            found = await calls(world)
        total = sum((one.usage for one in found), Used())
        assert len(server.served) > 8
        assert total == Used(
            *(sum(one.get(name, 0) for one in server.served) for name in usage(0, 0)),
        )
        assert sum(one.requests for one in found) == len(server.served)
        assert {one.purpose for one in found} == {"answer", "summary", "extraction"}
        ann = str(world.ann.id)
        assert {one.payer for one in found} == {
            Payer(ann, str(world.general.id), str(GUILD_ID)),
            Payer(ann),
        }
        assert all(one.counted and one.priced for one in found)
        assert {one.purpose: one.model for one in found} == {
            "answer": SONNET,
            "summary": HAIKU,
            "extraction": HAIKU,
        }

    @pytest.mark.parametrize("how", ["cut", "ended"])
    async def test_has_what_a_broken_stream_had_begun_to_say(
        self, start: Start, server: MessagesServer, tmp_path: Path, how: str
    ) -> None:
        words = "x" * 400
        server.script(api.text(words, ending=how, usage=usage(1234, 1)))
        async with start(**at(server, tmp_path, **QUIET)) as world:
            await world.ann.send(world.general, "hello")
            (found,) = await calls(world)
        assert (found.usage, found.counted) == (Used(1234, 100), False), "a token has about four characters"

    async def test_has_an_answer_that_somebody_stopped(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        server.script(api.text("One sheep. Two sheep.", "never", hold=asyncio.Event(), usage=usage(55, 1)))
        async with start(**at(server, tmp_path, **QUIET)) as world:
            sending = asyncio.create_task(world.ann.send(world.general, "Count"))
            async with asyncio.timeout(10):  # what was served need not have arrived
                while "sheep" not in (world.shown(world.general) or [""])[-1]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            asked = world.general.history()[0]
            world.app.talk.stop(str(asked.id), str(world.ann.id))
            await sending
            (found,) = await calls(world)
        assert (found.usage.input_tokens, found.counted) == (55, False)

    async def test_is_nothing_for_an_answer_from_the_cache(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        async with start(**at(server, tmp_path, response_cache=True, **QUIET)) as world:
            await world.ann.slash(world.general, "ask", text="Tabs or spaces?")
            await world.restart()
            await world.ann.slash(world.general, "ask", text="Tabs or spaces?")
            assert len(await calls(world)) == len(server.served) == 1

    async def test_is_estimated_and_free_where_the_model_is_ones_own(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.ann.send(world.general, "I like tea")
            (found,) = await calls(world)
            assert (found.nano, found.counted, found.priced) == (0, False, True)
            assert found.usage.input_tokens and found.usage.output_tokens

    async def test_is_for_nobody_where_somebody_unknown_tries_a_model_on_the_page(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        changes = at(server, tmp_path, budget=limits_of("100/day, person 10/day"), **QUIET)
        async with visited(start, **changes) as (world, me):
            await me.enter()
            await me.get("/settings")
            await me.sends("/settings", scope="global", field="model", value="haiku")
            assert models(server) == [HAIKU]
            assert [one.limit.scope for one in accounts(world).all_spent()] == ["all"]

    async def test_has_embeddings_as_the_server_counts_them(self, start: Start) -> None:
        async with EmbeddingsServer(same={}) as embeddings, start() as world:
            vectors = {"embedding_provider": "openai", "embedding_url": embeddings.openai_url}
            await world.restart(**vectors, embedding_key=SecretStr("sk"))
            await world.ann.send(world.general, "I prefer tea")
            await world.settle()
            found = [one for one in await calls(world) if one.purpose == "embedding"]
            assert found and {one.model for one in found} == {"text-embedding-3-small"}
            assert all(one.nano == 0 and one.usage == Used(one.requests) for one in found)


class TestAnAnswer:
    async def test_comes_from_the_smaller_model_near_a_limit_and_says_so(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            await world.ann.send(world.general, "one")
            assert world.answer(world.general) == "ok"
            spend(world, 85)
            await world.ann.send(world.general, "two")
            await world.settle()
            assert models(server) == [SONNET, HAIKU]
            shown = world.answer(world.general)
            assert shown.startswith(
                "ok\n\n-# A smaller model answered: my budget for today is nearly spent. Back to normal <t:"
            )
            assert shown.endswith(":R>.")

    async def test_goes_on_with_the_model_that_began_it(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        dear = usage(800_000, 5)  # 80 dollars of a hundred
        server.script(
            api.tool_use(("t", "memory_search", {"query": "tea"}), thought="hm", usage=dear), api.text("So.")
        )
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            await world.ann.send(world.general, "remember what I like?")
            await world.settle()
            assert (models(server), world.answer(world.general)) == ([SONNET, SONNET], "So.")
            server.script(
                api.tool_use(("t", "memory_search", {"query": "tea"}), thought="hm"), api.text("Again.")
            )
            await world.ann.send(world.general, "and what else do you remember?")
            await world.settle()
            assert models(server)[2:] == [HAIKU, HAIKU]
            assert world.answer(world.general).count("A smaller model answered") == 1
            thoughts = json.dumps(server.requests[-1].body["messages"])
            assert "hm" in thoughts, "its own thoughts go back to it"

    async def test_is_finished_from_memory_alone_if_the_budget_is_spent_in_the_middle(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        all_of_it = usage(1_000_000, 5)
        server.script(api.tool_use(("t", "memory_store", {"text": "Likes tea"}), usage=all_of_it))
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            await world.ann.send(world.general, "remember that I like tea")
            await world.settle()
            shown = world.answer(world.general)
            assert shown.startswith("Done. ") and shown.count("Answered from memory alone") == 1
            assert models(server) == [SONNET]
            assert "Likes tea" in world.durable(world.ann).read_text()

    @pytest.mark.parametrize(
        ("tool", "asked", "said"),
        [
            ("memory_store", {"text": "Likes coffee"}, "Done. Remembered: Likes coffee.\n"),
            (
                "memory_search",
                {"query": "tea"},
                "I can only look it up in my memory for now. It says: You like green tea. "
                "I remember: “My tea pot is old”\n",
            ),
            ("memory_forget", {"item": "i1"}, "Done. Forgotten.\n"),
            ("memory_link", {"action": "link", "from": "i1", "to": "i2"}, "Done. The memories are linked.\n"),
        ],
    )
    async def test_from_memory_alone_names_no_memory_as_models_do(
        self, start: Start, server: MessagesServer, tmp_path: Path, tool: str, asked: Any, said: str
    ) -> None:
        server.script(api.tool_use(("t", tool, asked), usage=usage(1_000_000, 5)))
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            await world.ann.slash(world.general, "memory remember", text="I like green tea")
            await world.ann.slash(world.general, "memory remember", text="My tea pot is old")
            await world.ann.send(world.general, "remember, forget or link what I said about tea")
            await world.settle()
            assert world.answer(world.general).startswith(said)

    async def test_comes_from_memory_alone_at_a_limit_and_says_so(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            await world.ann.slash(world.general, "memory remember", text="I like green tea")
            spend(world, 100)
            await world.ann.send(world.general, "Which tea do I like?")
            await world.settle()
            shown = world.answer(world.general)
            assert "green tea" in shown and server.requests == []
            note = "-# Answered from memory alone: my budget for today is spent. Back to normal <t:"
            assert f"\n\n{note}" in shown
            long = [("build.log", b"a line of the log\n" * 9000)]
            await world.ann.send(world.general, "Write a sonnet about it", attachments=long)
            await world.settle()
            assert "I read only" not in world.answer(world.general)
            assert world.answer(world.general).startswith(NOT_IN_MEMORY)
            await world.ann.send(world.general, "Remember that my cat is called Tom")
            await world.settle()
            assert "Tom" in world.durable(world.ann).read_text()
            result = await world.ann.slash(world.general, "ask", text="Which tea do I like?")
            await world.settle()
            assert "green tea" in said(result) and note in said(result)
            assert server.requests == []

    async def test_of_one_person_is_bounded_by_their_own_budget(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        async with start(**at(server, tmp_path, budget=limits_of("person 10/day"), **QUIET)) as world:
            spend(world, 10, Payer(str(world.ann.id)))
            await world.ann.send(world.general, "hello")
            await world.settle()
            assert "your budget for today is spent" in world.answer(world.general)
            await world.bob.send(world.general, "hello")
            await world.settle()
            assert world.answer(world.general) == "ok"

    async def test_of_a_channel_s_summary_is_paid_by_whoever_wrote_most_and_has_a_budget_left(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        limits = limits_of("person 10/day")
        changes = at(server, tmp_path, budget=limits, summary_every=2, extraction_enabled=False)
        server.default = lambda asked: (
            api.json_answer({"summary": "Tea."}, usage=usage(100_000, 9))
            if titles.PREVIOUS_SUMMARY in asked.prompt
            else api.text("ok")
        )

        async def paid(world: World) -> list[str | None]:
            await world.ann.send(world.general, "I like tea")
            await world.bob.send(world.general, "I like tea as well, with milk, and sugar, and all that")
            return [one.payer.user for one in await calls(world) if one.purpose == "summary"]

        async with start(**changes) as world:
            ann, bob = str(world.ann.id), str(world.bob.id)
            assert await paid(world) == [bob]
            (sum_,) = (one for one in accounts(world).all_spent() if one.whose == bob)
            assert sum_.nano > DOLLAR // 10
            spend(world, 10, Payer(bob))
            assert await paid(world) == [bob, ann]
            spend(world, 10, Payer(ann))
            assert await paid(world) == [bob, ann]

    async def test_is_as_usual_again_the_next_day_and_not_after_a_restart(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            spend(world, 100)
            await world.restart()
            await world.ann.send(world.general, "hello")
            await world.settle()
            assert "memory alone" in world.answer(world.general)
            await world.env.advance_time(86_400)
            await world.ann.send(world.general, "hello")
            await world.settle()
            assert world.answer(world.general) == "ok"

    async def test_is_never_kept_in_the_cache_for_the_usual_one(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        changes = at(server, tmp_path, budget=limits_of("100/day"), response_cache=True, **QUIET)
        async with start(**changes) as world:
            spend(world, 90)
            await world.ann.slash(world.general, "ask", text="Tabs?")
            await world.restart(budget=())
            await world.ann.slash(world.general, "ask", text="Tabs?")
            await world.settle()
            assert models(server) == [HAIKU, SONNET]


class TestWhatMustWait:
    async def test_is_an_interview_whose_owner_is_told(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            spend(world, 100)
            await world.ann.user.slash("hatch start")
            await world.settle()
            await world.ann.send_dm("hello")
            await world.settle()
            shown = "\n".join([*world.shown(world.ann_dm), *world.shown(world.general)])
            assert "I can't do that now: my budget for today doesn't allow it. Please try again <t:" in shown
            assert server.requests == []

    async def test_is_learning_which_loses_nothing(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        learned = {
            "id": None, "kind": "preference", "text": "User likes tea.", "tags": [],
            "source": "m1", "quote": "I like tea",
        }  # fmt: skip

        def learning(received: Received) -> Behaviour:
            if "tools" in received.body:
                return api.text("ok")
            return api.json_answer({"upserts": [learned], "deprecations": []})

        server.default = learning
        changes = at(server, tmp_path, budget=limits_of("100/day"), summary_enabled=False)
        async with start(**changes) as world:
            spend(world, 100)
            await world.ann.send(world.general, "I like tea")
            await world.settle()
            assert server.requests == [] and not world.durable(world.ann).exists()
            await world.env.advance_time(86_400)
            await world.ann.send(world.general, "hello again")
            await world.settle()
            assert "User likes tea." in world.durable(world.ann).read_text()

    async def test_is_tidying_on_request(self, start: Start, server: MessagesServer, tmp_path: Path) -> None:
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            for tea in ("green tea", "black tea"):
                await world.ann.slash(world.general, "memory remember", text=f"I like {tea}")
            spend(world, 100)
            await world.ann.send(world.general, "!memory tidy")
            await world.settle()
            assert "I can't do that now: my budget for today doesn't allow it." in world.answer(world.general)
            assert server.requests == []

    async def test_is_a_voice_message_whose_author_is_told(self, start: Start, tmp_path: Path) -> None:
        async with TranscriptionServer() as ears:
            ears.says[b"porto"] = "I moved to Porto."
            path = tmp_path / "prices.toml"
            path.write_text('["whisper-1"]\nminute = 60\n')  # a dollar a second
            changes = {"prices": path, "budget": limits_of("person 3/day"), "transcribe_url": ears.url}
            async with start(Scripted(), **changes, **QUIET) as world:
                await speak(world, world.ann, world.general)
                await speak(world, world.ann, world.general, b"porto" + bytes(8_000))
                (heard,) = [one for one in await calls(world) if one.purpose == "transcription"]
                assert (heard.usage, heard.nano) == (Used(seconds=1), DOLLAR)
                assert heard.payer == Payer(str(world.ann.id), str(world.general.id), str(GUILD_ID))
                spend(world, 2, heard.payer)
                await speak(world, world.ann, world.general)
                assert len(ears.requests) == 2
                assert (
                    "I can't listen to voice messages now: your budget for today doesn't allow it. "
                    "Please write it, or try again <t:"
                ) in world.answer(world.general)


class TestWithoutAStore:
    async def test_budgets_hold_in_ram_and_nothing_is_written(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        changes = at(server, tmp_path, budget=limits_of("100/day"), store=SecretStr("none"), **QUIET)
        async with start(**changes) as world:
            spend(world, 100)
            await world.ann.send(world.general, "hello")
            await world.settle()
            assert "my budget for today is spent" in world.answer(world.general)
            assert server.requests == [] and await calls(world) == []
            assert not list((world.folder / "data").rglob("usage*"))


class TestASetting:
    def test_that_is_wrong_stops_the_start_with_one_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DISCOCLAW_BUDGET", "5/week")
        with pytest.raises(SettingsError) as refused:
            load()
        assert str(refused.value) == (
            "DISCOCLAW_BUDGET=5/week: “5/week” is no budget; "
            "write for example 5/day, 60/month, person 0.50/day"
        )
        monkeypatch.delenv("DISCOCLAW_BUDGET")
        monkeypatch.setenv("DISCOCLAW_PRICES", str(tmp_path / "missing.toml"))
        with pytest.raises(SettingsError, match=r"DISCOCLAW_PRICES=.*missing\.toml: can't be read"):
            build(load(), model=OfflineModel())


class TestOwners:
    async def test_are_told_once_for_each_stage_also_after_a_restart(
        self, start: Start, server: MessagesServer, tmp_path: Path
    ) -> None:
        async with start(**at(server, tmp_path, budget=limits_of("100/day"), **QUIET)) as world:
            await world.restart(owners=frozenset({str(world.ann.id)}))
            for dollars in (82, 1, 1):
                spend(world, dollars)
            await world.settle()
            (told,) = world.shown(world.ann_dm)
            assert told.startswith(
                "-# The budget of $100.00 a day is nearly spent ($82.00 so far). Answers come from a smaller"
            )
            await world.restart()
            await world.settle()
            assert len(world.shown(world.ann_dm)) == 1
            spend(world, 20)
            await world.settle()
            assert (
                "is spent ($104.00 so far). Answers come from memory alone" in world.shown(world.ann_dm)[-1]
            )
            assert len(world.shown(world.ann_dm)) == 2


class TestAnAddress:
    @pytest.mark.parametrize(
        ("address", "own"),
        [
            (None, False),
            ("https://api.anthropic.com", False),
            ("http://127.0.0.1:8080", True),
            ("http://[::1]:8080/v1", True),
            ("http://192.168.1.7", True),
            ("http://ollama:11434", True),
            ("http://box.local", True),
            ("https://openrouter.ai/api", False),
            ("http://8.8.8.8", False),
        ],
    )
    def test_on_ones_own_network_costs_nothing(self, address: str | None, own: bool) -> None:
        assert is_own(address) is own

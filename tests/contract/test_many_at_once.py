"""Many messages at once, and what fails or hangs beside them: nobody waits longer than they have to."""

import asyncio
import json
import resource
from pathlib import Path
from typing import Any

import pytest

from tests.contract.meanwhile import until, writes
from tests.contract.prompts import ROLLING
from tests.contract.world import Start, World
from tests.servers.messages_api import text

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
BUSY = "still working on earlier messages here"
NOTHING_CHANGED = "nothing has changed"


def answered(world: World, place: Any) -> list[str]:
    """The bot's messages in a place, oldest first."""
    me = world.env.bot.user.id
    return [str(one.content) for one in place.history() if one.author.id == me]


class TestAConversation:
    async def test_has_its_answers_in_order_beside_others_and_refuses_a_flood_once(
        self, start: Start
    ) -> None:
        goes_on = asyncio.Event()
        async with start(**QUIET, waiting_messages=2, answer_buttons=False) as world:
            world.brain.says(text("The first", " one.", hold=goes_on), about="question 0")
            world.brain.says("The second.", about="question 1")
            writes(world, world.ann, world.general, "question 0")
            await until(lambda: world.turns("question 0"))
            for number, person in ((1, world.ann), (2, world.bob), (3, world.ann), (4, world.bob)):
                writes(world, person, world.general, f"question {number}")
            writes(world, world.bob, world.dev, "hello")
            await until(lambda: answered(world, world.dev) == ["ok"])  # elsewhere nobody waits
            await until(lambda: any(BUSY in one for one in answered(world, world.general)))
            assert not world.turns("question 1")
            goes_on.set()
            await world.settle()
            said = [one for one in answered(world, world.general) if BUSY not in one]
            assert said == ["The first one.", "The second.", "ok"]
            refusals = [one for one in answered(world, world.general) if BUSY in one]
            assert 1 <= len(refusals) <= 2
            assert await world.says(world.ann, world.general, "question 5") == "ok"

    @pytest.mark.design(281, 321)
    async def test_waits_for_no_background_work_and_is_told_if_there_is_no_time_to_finish(
        self, start: Start
    ) -> None:
        goes_on, answers = asyncio.Event(), asyncio.Event()
        async with start(summary_every=1, answer_buttons=False) as world:
            world.brain.writes("upserts", text("{", "}", hold=goes_on))
            world.brain.writes("summary", text("{", "}", hold=goes_on))
            for number in range(3):
                writes(world, world.ann, world.general, f"a question {number}")
                await until(lambda number=number: len(answered(world, world.general)) == number + 1)
            world.brain.says(text("Well", ".", hold=answers), about="one more")
            writes(world, world.ann, world.general, "one more")
            await until(lambda: world.turns("one more"))
            writes(world, world.ann, world.general, "!memory remember tea")
            writes(world, world.bob, world.dev, "hello")
            await until(lambda: answered(world, world.dev) == ["ok"])
            assert world.memories(world.ann) == []
            answers.set()
            await until(lambda: answered(world, world.general)[-1] == "Remembered: tea")
            assert answered(world, world.general)[-2] == "Well."
            goes_on.set()
            await world.settle()
        async with start(**QUIET, shutdown_grace_s=0.0, answer_buttons=False) as world:
            world.brain.says(text("Never", " said.", hold=asyncio.Event()), about="first")
            writes(world, world.ann, world.general, "the first")
            await until(lambda: world.turns("first"))
            writes(world, world.bob, world.general, "the second")
            await world.stop()
            told = answered(world, world.general)
            assert any(one.startswith("I was stopped before I could finish this.") for one in told)
            assert "said." not in "".join(told)
            await world.restart()

    async def test_hears_what_becomes_of_a_command_that_runs_aside_when_the_bot_stops(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(summary_enabled=False, answer_buttons=False) as world:
            await world.remember(world.ann, "I like tea", "I like drinking tea")
            world.brain.writes("duplicates", text("{", "}", hold=asyncio.Event()))
            writes(world, world.ann, world.general, "!memory tidy")
            await until(lambda: world.background("duplicates"))
            await world.stop()
            assert answered(world, world.general)[-1].startswith("I'm shutting down.")
            assert "Traceback" not in caplog.text
            await world.restart()


class TestAMemoryThatFails:
    """Whatever is wrong with it, people are answered, and nothing is lost."""

    @pytest.mark.design(252, 253, 321)
    async def test_costs_no_answer_and_commands_say_that_nothing_changed(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await world.remember(world.ann, "I like tea")
            path = world.durable(world.ann)
            await world.restart(meanwhile=lambda: path.write_text('{"version": 1, "items": ['))
            await world.says(world.ann, world.general, "Do I like tea?")
            assert "I like tea" in world.prompt and world.answer(world.general) == "ok"
            assert json.loads(path.read_text())["items"][0]["text"] == "I like tea"
            assert list(path.parent.glob("*.corrupt-*"))
            limit, before = resource.getrlimit(resource.RLIMIT_FSIZE), path.read_bytes()
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))  # a disk that is full
            try:
                told = await world.says(world.ann, world.general, "!memory remember I like cake")
                assert NOTHING_CHANGED in told
                assert await world.says(world.ann, world.general, "hello") == "ok"
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            assert path.read_bytes() == before
            told = await world.says(world.ann, world.general, "!memory remember I like cake")
            assert told == "Remembered: I like cake"
            (world.data / "memory" / "ledger" / f"user-{world.bob.id}.jsonl").mkdir()
            assert await world.says(world.bob, world.general, "hello") == "ok"
            told = await world.says(world.bob, world.general, "!memory remember tea")
            assert NOTHING_CHANGED in told

    async def test_is_a_file_with_rubbish_and_one_that_a_kill_left_half_written(self, start: Start) -> None:
        async with start(extraction_enabled=False, summary_every=1000) as world:
            await world.remember(world.ann, "I like tea")
            (ledger,) = (world.data / "memory" / "ledger").glob("user-*.jsonl")
            rubbish = b"\xff\xfe nonsense\n" + ledger.read_bytes()
            await world.restart(meanwhile=lambda: ledger.write_bytes(rubbish) and None)
            assert await world.says(world.ann, world.general, "hello") == "ok"
            summary = world.data / "memory" / "rolling" / f"discord:channel:{world.general.id}.json"
            summary.parent.mkdir(exist_ok=True)

            def lies_there(content: bytes) -> None:
                summary.write_bytes(content)

            half = rb'{"summary": "half \ud83d", "updatedAt": 1}'
            for content in (b"[]", half):
                await world.restart(meanwhile=lambda content=content: lies_there(content))
                assert await world.says(world.ann, world.general, "hello") == "ok"
                assert (ROLLING in world.prompt) is (content == half), content
        async with start(**QUIET) as world:
            await world.remember(world.ann, "I like tea")
            durable, before = world.durable(world.ann), world.durable(world.ann).read_bytes()
            summary = world.data / "memory" / "rolling" / "discord:channel:1.json"
            cached = world.data / "cache" / "responses" / "user-1.json"

            def killed() -> list[Path]:
                left = []
                for path in (durable, summary, cached):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    left.append(path.with_name(f".{path.name}.0123abcd.tmp"))
                    left[-1].write_text("zebra")
                return left

            await world.stop()
            left = killed()
            await world.restart()
            assert not any(path.exists() for path in left)
            assert durable.read_bytes() == before and not summary.exists()

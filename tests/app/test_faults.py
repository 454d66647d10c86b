"""Whatever fails, the person hears something true, and nothing is lost."""

import asyncio
import json
import resource

import pytest

from discoclaw.core import errors
from discoclaw.core.errors import ModelBadOutput, ModelError
from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.memory.kit import kill_while_writing
from tests.session.scene import until


def model_errors() -> list[type[ModelError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ModelError)]


class TestTheModelFails:
    @pytest.mark.parametrize("kind", model_errors(), ids=lambda kind: kind.__name__)
    async def test_and_the_person_is_told_why(self, start: Start, kind: type[ModelError]) -> None:
        async with start(Scripted(kind("inner details"), then="now it works")) as world:
            await world.ann.send(world.general, "hello")
            assert world.answer(world.general) == kind.user_message
            assert "inner details" not in world.answer(world.general)
            await world.ann.send(world.general, "again")
            assert world.answer(world.general) == "now it works"

    async def test_an_empty_answer_is_not_silence(self, start: Start) -> None:
        async with start(Scripted("   ")) as world:
            await world.ann.send(world.general, "hello")
            assert world.answer(world.general) == "I have no answer to that. Please put it another way."

    @pytest.mark.design(143, 220, 255)
    @pytest.mark.parametrize(
        "nonsense",
        [
            "Sure! Here is what I found.",
            '```json\n{"upserts": []}\n```',
            '{"upserts": "none"}',
            '{"upserts": [{"kind": "secret", "text": "x"}]}',
            '{"upserts": [], "more": 1}',
            "[" * 100_000,
            "x" * 1_000_000,
        ],
        ids=[
            "prose",
            "fences",
            "wrong type",
            "unknown kind",
            "unknown field",
            "deep",
            "a million characters",
        ],
    )
    @pytest.mark.design(281, 321)
    async def test_a_loop_that_returns_nonsense_changes_nothing(self, start: Start, nonsense: str) -> None:
        model = Scripted()
        async with start(model) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            before = world.durable(world.ann).read_bytes()
            model.facts = [nonsense]
            await world.ann.send(world.general, "I prefer coffee")
            await world.settle()
            assert world.durable(world.ann).read_bytes() == before
            model.facts = ['{"upserts": [{"kind": "preference", "text": "User prefers coffee."}]}']
            await world.ann.send(world.general, "well?")
            await world.settle()
            assert "I prefer coffee" in model.structured_prompts[-1] or "I prefer coffee" in "".join(
                model.structured_prompts[-2:]
            )
            assert "User prefers coffee." in world.durable(world.ann).read_text()


class TestMemoryFails:
    @pytest.mark.design(252, 321)
    async def test_corrupt_files_are_kept_aside_and_the_answer_comes(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.restart()
            path = world.durable(world.ann)
            path.write_text('{"version": 1, "items": [')
            await world.ann.send(world.general, "Do I like tea?")
            assert "tea" in world.answer(world.general)
            assert json.loads(path.read_text())["items"][0]["text"] == "I like tea"
            assert list(path.parent.glob("*.corrupt-*"))

    @pytest.mark.design(252, 321)
    async def test_a_ledger_that_can_not_be_read_costs_no_answer(self, start: Start) -> None:
        model = Scripted("still here")
        async with start(model) as world:
            ledger = world.folder / "data" / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
            ledger.mkdir(parents=True)
            await world.ann.send(world.general, "hello")
            assert world.answer(world.general) == "still here"
            await world.ann.send(world.general, "!memory remember tea")
            assert "nothing has changed" in world.answer(world.general)

    @pytest.mark.design(253, 321)
    async def test_a_full_disk_costs_no_answer_and_the_command_says_so(self, start: Start) -> None:
        async with start(Scripted("an answer")) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)
            before = world.durable(world.ann).read_bytes()
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
            try:
                await world.ann.send(world.general, "!memory remember I like cake")
                assert "nothing has changed" in world.answer(world.general)
                await world.ann.send(world.general, "hello")
                assert world.answer(world.general) == "an answer"
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            assert world.durable(world.ann).read_bytes() == before
            await world.ann.send(world.general, "!memory remember I like cake")
            assert world.answer(world.general) == "Remembered: I like cake"


class TestDiscordFails:
    @pytest.mark.parametrize("status", [500, 502, 503])
    async def test_a_passing_fault_of_discord_is_waited_out(self, start: Start, status: int) -> None:
        async with start(Scripted("an answer")) as world:
            world.env.inject_error("POST", "/channels/*/messages", status=status, times=1)
            await world.ann.send(world.general, "hello")
            assert world.answer(world.general) == "an answer"

    async def test_where_we_may_not_write_the_person_is_told_in_private(self, start: Start) -> None:
        async with start(Scripted("an answer")) as world:
            world.env.inject_error("POST", f"/channels/{world.general.id}/messages", status=403, times=None)
            await world.ann.send(world.general, "hello")
            assert world.shown(world.general) == ["hello"]
            assert "not allowed to write in" in world.answer(world.ann_dm)

    async def test_nobody_is_ever_pinged(self, start: Start) -> None:
        words = "@everyone <@1> <@&2> look"
        async with start(Scripted(words)) as world:
            await world.ann.send(world.general, "ping them")
            (sent,) = [
                request.json
                for request in world.env.http_requests
                if request.method == "POST" and request.path == f"/channels/{world.general.id}/messages"
            ]
            assert sent["allowed_mentions"] == {"parse": []}
            assert world.answer(world.general) == words


class TestBusy:
    async def test_a_flood_is_refused_with_a_word(self, start: Start) -> None:
        model = Scripted(then="an answer")
        async with start(model, waiting_messages=2) as world:
            model.hold = asyncio.Event()
            world.env.settle_timeout = 0.1
            for number in range(4):
                with pytest.raises(Exception, match="did not settle"):
                    await world.ann.send(world.general, f"question {number}")
            await until(lambda: "still working on earlier messages" in world.answer(world.general))
            model.hold.set()
            world.env.settle_timeout = 20
            await world.settle()
            shown = world.shown(world.general)
            assert shown.count("an answer") == 3
            assert sum("still working on earlier messages" in text for text in shown) == 1


class TestTheLoopsNeverDelayAnAnswer:
    @pytest.mark.design(281, 321)
    async def test_a_hanging_extraction_does_not_hold_up_the_next_turn(self, start: Start) -> None:
        class Hanging(Scripted):
            release = asyncio.Event()

            async def structured(self, **options: object) -> object:  # type: ignore[override]
                await self.release.wait()
                raise ModelBadOutput("too late")

        model = Hanging("one", "two")
        async with start(model) as world:
            world.env.settle_timeout = 0.2
            for answer in ("one", "two"):
                with pytest.raises(Exception, match="did not settle"):
                    await world.ann.send(world.general, "a question")
                await until(lambda expected=answer: world.answer(world.general) == expected)
            model.release.set()
            world.env.settle_timeout = 20
            await world.settle()


class TestAProcessWasKilledInTheMiddleOfAWrite:
    async def test_the_next_start_removes_the_half_written_files(self, start: Start) -> None:
        async with start() as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            data, durable = world.folder / "data", world.durable(world.ann)
            before = durable.read_bytes()
            summary = data / "memory" / "rolling" / "discord:channel:1.json"
            files = (durable, summary, data / "cache" / "responses" / "user-1.json")
            kill_while_writing(*files)
            # Not any temporary file: the bot is running, and may be writing another one just now.
            left = [path for file in files for path in file.parent.glob(f".{file.name}.*.tmp")]
            assert len(left) == 3
            await world.restart()
            assert not any(path.exists() for path in left)
            assert durable.read_bytes() == before
            assert not summary.exists()

"""An answer that was given is given again where just the same is asked, by the same person, soon."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core import titles
from discoclaw.core.errors import ModelOverloaded
from discoclaw.core.fnv import response_key
from discoclaw.core.message import Inbound
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    StreamEvent,
    SystemBlock,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolTurn,
    Usage,
    UserTurn,
)
from discoclaw.core.patch import Patch
from discoclaw.memory.conversations.responses import Response, Responses
from discoclaw.prompt.assemble import Budget, Materials, Now, assemble
from discoclaw.session.caching import MOST_WAITING, Asked, CachingModel, asked
from discoclaw.session.tools import ALL
from tests.memory.kit import erased_at
from tests.session.scene import (
    ANN,
    BOB,
    DEV,
    HOUR,
    ME,
    MINUTE,
    NOW,
    Clock,
    ScriptedModel,
    calls,
    inbound,
    said,
    says,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "knowledge.json").read_text(encoding="utf-8"))
TOP = NOW // HOUR * HOUR
"""The beginning of an hour."""


def request(
    text: str = "Hello", *, at: int = TOP, subject: str | None = "user-1", **given: Any
) -> ModelRequest:
    """What a turn asks the model about a message."""
    message: Inbound = given.pop("message", None) or inbound(1000, text, given.pop("author", ANN))
    prompt = assemble(
        Materials(message=message, me=ME, now=Now(at, given.pop("zone", UTC)), **given), Budget()
    )
    return ModelRequest(prompt.system, (UserTurn(prompt.user),), ALL.specs, subject=subject)


def key_of(asking: ModelRequest, name: str = "haiku") -> Asked:
    found = asked(name, asking)
    assert found is not None
    return found


@dataclass
class Cache:
    """A model behind its cache, on a real folder."""

    folder: Path
    clock: Clock
    model: ScriptedModel
    cached: CachingModel

    async def ask(self, asking: ModelRequest) -> tuple[str, Finished]:
        """The text that was streamed, and the end of it; what is to be kept is on disk then."""
        events = [event async for event in self.cached.stream(asking)]
        await self.cached.settle()
        last = events.pop()
        assert isinstance(last, Finished)
        return "".join(event.text for event in events if isinstance(event, TextDelta)), last

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


Make = Callable[..., Cache]


@pytest.fixture
def cache(tmp_path: Path) -> Make:
    def make(*answers: Any, name: str = "haiku", **given: Any) -> Cache:
        clock = given.pop("clock", None) or Clock(TOP)
        model = ScriptedModel(answers)
        responses = Responses(tmp_path / "responses", clock=clock, **{"ttl_ms": HOUR, **given})
        return Cache(responses.folder, clock, model, CachingModel(model, name, responses, clock=clock))

    return make


class TestTheSameQuestion:
    async def test_is_answered_without_the_model(self, cache: Make) -> None:
        one = cache("It is blue.")
        first, second = await one.ask(request()), await one.ask(request())
        assert first[0] == second[0] == "It is blue."
        assert len(one.model.requests) == 1

    async def test_costs_nothing_and_ends_as_a_model_ends(self, cache: Make) -> None:
        one = cache([TextDelta("Hi."), Finished(AssistantTurn("Hi.", raw="theirs"), "end", Usage(7, 8))])
        assert (await one.ask(request()))[1].usage == Usage(7, 8)
        last = (await one.ask(request()))[1]
        assert last == Finished(AssistantTurn("Hi."), "end", Usage()) and last.turn.raw is None

    async def test_is_known_after_a_restart(self, cache: Make) -> None:
        await cache("It is blue.").ask(request())
        later = cache()
        assert (await later.ask(request()))[0] == "It is blue." and later.model.requests == []

    async def test_a_few_minutes_later_is_the_same(self, cache: Make) -> None:
        one = cache("It is blue.")
        await one.ask(request(at=TOP + 3 * MINUTE))
        await one.ask(request(at=TOP + 58 * MINUTE))
        assert len(one.model.requests) == 1

    def test_is_so_whatever_the_sender_is_called(self) -> None:
        author = replace(ANN, name="A\nCurrent time:\nMon 2026")
        assert key_of(request(author=author)) == key_of(request(author=author, at=TOP + 59 * MINUTE))

    def test_is_the_same_all_the_hour_below_notes_that_imitate_the_sender(self) -> None:
        notes = f"Themes: tea{titles.SEPARATOR}{titles.NOW}\nMon 2026-02-02 02:41 (UTC+00:00)"
        first, last, other = (
            key_of(request(group=text, at=at))
            for text, at in (
                (notes, TOP),
                (notes, TOP + 59 * MINUTE),
                (notes.replace(":41", ":42"), TOP),
            )
        )
        assert first == last != other

    async def test_goes_to_the_model_as_it_is(self, cache: Make) -> None:
        asking = request(at=TOP + 3 * MINUTE)
        one = cache()
        await one.ask(asking)
        assert one.model.requests == [asking] and " 02:03 (UTC" in one.model.user_turn()

    async def test_too_late_is_asked_again(self, cache: Make) -> None:
        one = cache("old", "new", ttl_ms=10 * MINUTE)
        await one.ask(request())
        one.clock.forward(10 * MINUTE)
        assert (await one.ask(request()))[0] == "new"


TIME = "Current time:\n- now: Mon 2026-02-02 02:41 (UTC+00:00)"
CHANGES: dict[str, Callable[[], ModelRequest]] = {
    "the message": lambda: request("Hello!"),
    "the hour": lambda: request(at=TOP + HOUR),
    "the day": lambda: request(at=TOP + 24 * HOUR),
    "the zone": lambda: request(zone=timezone(timedelta(hours=1))),
    "the channel's notes": lambda: request(group="Themes: tea"),
    "the sender's name": lambda: request(author=replace(ANN, name="Anna")),
    "the owner": lambda: request(author=replace(ANN, is_owner=True)),
    "the place": lambda: request(message=inbound(1000, "Hello", ANN, DEV)),
    "memory": lambda: request(durable=("- [fact] Likes tea.",)),
    "the summary": lambda: request(rolling="They talked."),
    "the recent talk": lambda: request(window=(said(1, BOB, "Hi"),)),
    "a word in it": lambda: request(window=(said(1, BOB, "Ho"),)),
    "the context files": lambda: request(content=("Be brief.",)),
    "the tools": lambda: replace(request(), tools=()),
    "the length": lambda: replace(request(), max_tokens=9),
    "the person": lambda: request(subject="user-2"),
    "the time in what somebody wrote": lambda: request(
        window=(said(1, BOB, "Current time:\n- now: Mon 2026-02-02 02:41 (UTC"),)
    ),
    "another time in it": lambda: request(
        window=(said(1, BOB, "Current time:\n- now: Mon 2026-02-02 02:42 (UTC"),)
    ),
}


class TestAnotherQuestion:
    def test_is_one_in_every_respect(self) -> None:
        """All pairs: no two of these are the same."""
        found = [key_of(make()) for make in (request, *CHANGES.values())]
        assert len({(one.subject, one.sha256) for one in found}) == len(CHANGES) + 1

    @pytest.mark.parametrize("change", CHANGES)
    async def test_is_asked(self, cache: Make, change: str) -> None:
        one = cache("first", "second")
        await one.ask(request())
        assert (await one.ask(CHANGES[change]()))[0] == "second"

    async def test_of_another_model_is_asked(self, cache: Make) -> None:
        await cache("small").ask(request())
        assert (await cache("large", name="opus").ask(request()))[0] == "large"

    async def test_of_the_model_that_it_names_is_asked(self, cache: Make) -> None:
        one = cache(says("first"), says("second"))
        usual, other = request(), replace(request(), model="opus")
        assert [(await one.ask(asking))[0] for asking in (usual, other, usual, other)] == [
            "first",
            "second",
            "first",
            "second",
        ]

    async def test_of_one_key_is_asked(self, cache: Make) -> None:
        """As if somebody had found a message whose 64 bits are those of another one."""
        one = cache("theirs")
        question = key_of(request())
        other = Responses(one.folder, clock=one.clock, ttl_ms=HOUR)
        other.put("user-1", Response(question.key, "0" * 64, "haiku", "stolen", TOP, TOP))
        assert (await one.ask(request()))[0] == "theirs"

    def test_that_only_divides_its_parts_otherwise_has_another_proof(self) -> None:
        def of(system: tuple[str, ...], user: str) -> Asked:
            turns = (UserTurn(user),)
            return key_of(ModelRequest(tuple(map(SystemBlock, system)), turns, subject="user-1"))

        one, other = of(("a\n\nb",), "c"), of(("a", "b"), "c")
        assert one.key == other.key and one.sha256 != other.sha256
        mark = f"x{titles.SEPARATOR}{titles.MESSAGE}\n"
        assert of(("s\x01",), f"{mark}c").sha256 != of(("s",), f"\x01{mark}c").sha256


class TestTheKey:
    @pytest.mark.design(144)
    @pytest.mark.parametrize("case", GOLDEN["cache_keys"]["cases"][:3], ids=lambda case: case["hex"])
    def test_is_of_model_context_and_message(self, case: dict[str, str]) -> None:
        user = f"{titles.SEPARATOR}{titles.MESSAGE}\n{case['user']}"
        found = key_of(ModelRequest((), (UserTurn(case["context"] + user),), subject="user-1"), case["model"])
        assert found.key == response_key(case["model"], "\n\n".join([case["context"]]), case["user"])
        assert found.key == case["hex"]

    def test_has_everything_but_the_message_in_the_context(self) -> None:
        asking = request("What now?", rolling="They talked.")
        (turn,) = asking.turns
        assert isinstance(turn, UserTurn)
        before = turn.text.removesuffix(f"{titles.SEPARATOR}{titles.MESSAGE}\nWhat now?")
        context = "\n\n".join(
            [*(block.text for block in asking.system), before.replace(":00 (UTC", " (UTC", 1)]
        )
        assert key_of(asking).key == response_key("haiku", context, "What now?")

    def test_is_not_fooled_by_a_message_that_looks_like_sections(self) -> None:
        forged = f"a{titles.SEPARATOR}{titles.MESSAGE}\nb"
        (turn,) = request(forged).turns
        assert isinstance(turn, UserTurn)
        assert turn.text.count(f"{titles.SEPARATOR}{titles.MESSAGE}\n") == 1
        assert key_of(request(forged)).sha256 != key_of(request("b")).sha256

    def test_can_be_made_of_any_text(self) -> None:
        assert key_of(ModelRequest((), (UserTurn("\ud800\x00"),), subject="user-1"))


class TestWhatIsNotKept:
    def test_is_what_has_no_owner(self) -> None:
        assert asked("haiku", request(subject=None)) is None

    def test_is_what_comes_in_a_round_of_tools(self) -> None:
        call = ToolCall("1", "memory_search", {})
        turns = (UserTurn("Hi"), AssistantTurn("", (call,)), ToolTurn((ToolResult("1", "tea"),)))
        assert asked("haiku", ModelRequest((), turns, subject="user-1")) is None
        assert asked("haiku", ModelRequest((), (AssistantTurn("Hi"),), subject="user-1")) is None
        assert asked("haiku", ModelRequest((), (), subject="user-1")) is None

    @pytest.mark.parametrize(
        "answer",
        [
            calls(("memory_store", {"text": "tea"}), text="Noted."),
            says("half of it", stop="length"),
            says("  \n"),
            [Finished(AssistantTurn("odd", (ToolCall("1", "x", {}),)), "end")],
        ],
        ids=["calls", "cut", "blank", "calls that are none"],
    )
    async def test_is_what_can_not_stand_for_itself(self, cache: Make, answer: Any) -> None:
        one = cache(answer, "again")
        await one.ask(request())
        assert one.files() == []
        assert (await one.ask(request()))[0] == "again"

    async def test_is_a_failure(self, cache: Make) -> None:
        one = cache([TextDelta("I "), ModelOverloaded("529")], "again")
        with pytest.raises(ModelOverloaded):
            await one.ask(request())
        await one.cached.settle()
        assert one.files() == [] and (await one.ask(request()))[0] == "again"

    async def test_is_an_answer_nobody_waited_for(self, cache: Make) -> None:
        one = cache("whole", "again")
        stream = one.cached.stream(request())
        async for _ in stream:
            break
        await stream.aclose()
        await one.cached.settle()
        assert one.files() == []

    async def test_is_what_the_loops_ask(self, cache: Make) -> None:
        one = cache()
        for _ in range(2):
            await one.cached.structured(purpose="extraction", system="s", prompt="p", shape=Patch)
        assert len(one.model.asked) == 2 and one.files() == []


class TestEachPerson:
    async def test_has_a_file_of_their_own(self, cache: Make) -> None:
        one = cache("for Ann", "for Bob")
        for subject, answer in (("user-1", "for Ann"), ("user-2", "for Bob")) * 2:
            assert (await one.ask(request(subject=subject)))[0] == answer
        assert one.files() == ["user-1.json", "user-2.json"]
        assert "Bob" not in (one.folder / "user-1.json").read_text()

    async def test_who_is_erased_meanwhile_leaves_nothing(self, cache: Make) -> None:
        """The answer was made from what is gone, and comes after."""
        erased: dict[str, int] = {}
        one = cache("canary", consent=erased_at(erased))
        one.model.gate = asyncio.Event()
        asking = asyncio.create_task(one.ask(request()))
        while not one.model.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        erased["user-1"] = one.clock()
        one.model.gate.set()
        assert (await asking)[0] == "canary"
        assert one.files() == []


class TestTheDisk:
    async def test_that_hangs_costs_a_moment_and_no_answer(
        self, cache: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        one = cache()
        one.folder.mkdir()
        fifo = one.folder / "user-1.json"
        os.mkfifo(fifo)  # reading it waits for somebody to write
        many = [one.cached.stream(request(f"question {n}")) for n in range(MOST_WAITING + 8)]
        assert await asyncio.gather(*map(_text, many)) == ["All right."] * len(many)
        # Those that came when too many were waiting did not wait at all.
        assert caplog.text.count("the disk does not answer") == MOST_WAITING
        opened = threading.Thread(target=fifo.write_bytes, args=(b"[]",))
        opened.start()
        await one.cached.settle()
        opened.join()

    async def test_has_the_answer_before_all_is_closed(self, cache: Make) -> None:
        one = cache("kept")
        async for _ in one.cached.stream(request()):
            pass
        await one.cached.close()
        assert one.files() == ["user-1.json"]


async def _text(stream: AsyncGenerator[StreamEvent, None]) -> str:
    return "".join([event.text async for event in stream if isinstance(event, TextDelta)])

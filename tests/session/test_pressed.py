"""Answers that are stopped, given again and continued, whatever people press for that."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from discoclaw.core.event import Commit
from discoclaw.core.model import AssistantTurn, Finished, ModelRequest, StreamEvent, TextDelta
from discoclaw.core.subject import user_subject
from discoclaw.memory.changes import Listener
from discoclaw.memory.people import tool_calls
from discoclaw.session.talk import BUSY
from discoclaw.session.turn import SAID_NOTHING
from tests.session.scene import (
    ANN,
    BOB,
    GENERAL,
    House,
    Past,
    Recorder,
    ScriptedModel,
    calls,
    house,
    inbound,
    said,
    until,
)

SUBJECT = user_subject(ANN.id)
KEY = GENERAL.session_key(ANN.id)


class Endless(ScriptedModel):
    """Says `first` to the first request, and goes on only when `more` is set."""

    def __init__(self, first: str, *answers: object) -> None:
        super().__init__(answers)
        self.first = first
        self.more = asyncio.Event()
        self.waits = asyncio.Event()
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        if self.waits.is_set():
            async for event in super().stream(request):
                yield event
            return
        self.requests.append(request)
        try:
            if self.first:
                yield TextDelta(self.first)
            self.waits.set()
            await self.more.wait()
            yield Finished(AssistantTurn(self.first), "end")
        finally:
            self.closed = True


def ask(home: House, number: int, text: str, author=ANN) -> Recorder:
    message, reply = inbound(number, text, author), Recorder(id=str(1000 + number))
    home.hear(message)
    home.answer(message, reply)
    return reply


class TestStopping:
    async def test_ends_the_stream_and_lets_the_next_be_answered(self, tmp_path: Path) -> None:
        model = Endless("One sheep", "Hello Bob.")
        home = house(tmp_path, model)
        one, two = ask(home, 1, "Count sheep"), ask(home, 2, "Hello", BOB)
        await model.waits.wait()
        assert home.talk.stop("1", ANN.id) == "now"
        await home.desk.settle()
        assert model.closed and not model.more.is_set()
        assert (one.text, one.ending, one.failed) == ("One sheep", "cut", [])
        assert (two.text, two.ending) == ("Hello Bob.", "whole")
        lines = [one.text for one in home.windows.use(KEY).recent()]
        assert lines == ["Count sheep", "Hello", "One sheep", "Hello Bob."]
        assert home.talk.inboxes.reach(KEY, GENERAL).open == {}

    async def test_is_for_its_own_person_and_only_while_there_is_something_to_stop(
        self, tmp_path: Path
    ) -> None:
        model = Endless("One sheep")
        home = house(tmp_path, model)
        assert home.talk.stop("1", ANN.id) == "unknown"
        ask(home, 1, "Count sheep")
        await model.waits.wait()
        assert home.talk.stop("1", BOB.id) == "unknown"
        assert [home.talk.stop("1", ANN.id) for _ in range(2)] == ["now", "ending"]
        await asyncio.sleep(0)  # the stream is being closed
        assert home.talk.stop("1", ANN.id) == "ending"
        await home.desk.settle()
        assert home.talk.stop("1", ANN.id) == "unknown"

    async def test_does_nothing_once_the_answer_is_whole(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(["All of it."]))
        told: list[str] = []

        class Last(Recorder):
            async def finish(self, ending="other"):
                told.append(home.talk.stop("1", ANN.id))
                return await super().finish(ending)

        message, reply = inbound(1, "Hello"), Last()
        home.answer(message, reply)
        await home.desk.settle()
        assert (told, reply.text, reply.ending) == (["ending"], "All of it.", "whole")

    async def test_before_the_first_word_is_said_and_not_recorded(self, tmp_path: Path) -> None:
        model = Endless("")
        home = house(tmp_path, model)
        reply = ask(home, 1, "Count sheep")
        await model.waits.wait()
        home.talk.stop("1", ANN.id)
        await home.desk.settle()
        assert (reply.text, reply.ending, reply.failed) == (SAID_NOTHING, "missing", [])
        assert [one.text for one in home.windows.use(KEY).recent()] == ["Count sheep"]

    async def test_lets_a_change_of_the_memory_that_has_begun_end(self, tmp_path: Path) -> None:
        tea = ("memory_store", {"text": "User likes tea.", "kind": "preference"})
        home = house(tmp_path, ScriptedModel([calls(tea, text="I note it."), "Never said."]))

        class Presses(Listener):
            def committed(self, subject: str, commit: Commit) -> None:
                home.talk.stop("1", ANN.id)

        home.memory.join(Presses())
        reply = ask(home, 1, "I like tea")
        await home.desk.settle()
        assert (reply.text.strip(), reply.ending) == ("I note it.", "cut")
        assert len(home.model.requests) == 1
        assert await home.texts(ANN) == ["User likes tea."]

        def noted() -> list[str]:
            return [one.tool for one in tool_calls.read(tool_calls.log_of(home.memory.disk, SUBJECT))]

        await until(lambda: noted() == ["memory_store"])
        await home.tool_log.close()

    async def test_a_shutdown_is_no_stop(self, tmp_path: Path) -> None:
        model = Endless("One sheep")
        home = house(tmp_path, model)
        reply = ask(home, 1, "Count sheep")
        await model.waits.wait()
        await home.desk.close(0)
        assert reply.failed and not reply.finished


class TestAskingAgain:
    async def test_begins_after_the_old_answer_has_left(self, tmp_path: Path) -> None:
        home = house(tmp_path, ScriptedModel(["Heads.", "Tails."]))
        ask(home, 1, "Toss a coin")
        await home.desk.settle()
        reply = Recorder(id="1002")
        again = home.talk.again(
            inbound(1, "Toss a coin"),
            lambda shown: reply,
            "1001",
            lambda: home.talk.listener.forget(["1001"], KEY),
        )
        assert await again
        await home.desk.settle()
        assert "Heads." not in home.model.user_turn()
        assert [one.text for one in home.windows.use(KEY).recent()] == ["Toss a coin", "Tails."]

    async def test_leaves_it_to_the_next_message_to_read_what_was_missed(self, tmp_path: Path) -> None:
        home = house(tmp_path, history=Past([said(2, BOB, "Said while the line was down")]))
        ask(home, 1, "Toss a coin")
        await home.desk.settle()
        home.talk.listener.reopen()
        reply = Recorder(id="1002")
        assert await home.talk.again(inbound(1, "Toss a coin"), lambda shown: reply, "1001", lambda: None)
        await home.desk.settle()
        ask(home, 2000, "And now?")
        await home.desk.settle()
        assert "Said while the line was down" in home.model.user_turn()

    async def test_takes_nothing_away_if_there_is_no_room_for_another_answer(self, tmp_path: Path) -> None:
        model = Endless("One sheep")
        home = house(tmp_path, model, waiting_limit=1)
        ask(home, 1, "Count sheep")
        await model.waits.wait()
        ask(home, 2, "Hello", BOB)
        gone: list[str] = []
        reply = Recorder()
        assert not await home.talk.again(
            inbound(1, "Count sheep"), lambda shown: reply, "9", lambda: gone.append("9")
        )
        await until(lambda: bool(reply.failed))
        assert (gone, reply.failed) == ([], [BUSY])
        home.talk.stop("1", ANN.id)
        await home.desk.settle()


class TestGoingOn:
    async def test_is_no_message_that_somebody_wrote(self, tmp_path: Path) -> None:
        model = Endless("Three sheep")
        home = house(tmp_path, model)
        inbox, reply = home.talk.inboxes.reach(KEY, GENERAL), Recorder(id="2001")
        assert await home.talk.go_on(inbound(2000, "go on"), lambda shown: reply)
        await model.waits.wait()
        assert inbox.open == {}
        home.talk.stop("2000", ANN.id)
        await home.desk.settle()
        assert [one.text for one in home.windows.use(KEY).recent()] == ["Three sheep"]

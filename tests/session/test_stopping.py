"""An answer that is stopped: what was said of it stays, and whoever comes next is answered at once."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from discoclaw.core.event import Commit
from discoclaw.core.model import AssistantTurn, Finished, ModelRequest, StreamEvent, TextDelta
from discoclaw.core.subject import user_subject
from discoclaw.memory.changes import Listener
from discoclaw.memory.people import tool_log
from discoclaw.session.turn import SAID_NOTHING
from tests.session.scene import (
    ANN,
    BOB,
    GENERAL,
    House,
    Recorder,
    ScriptedModel,
    calls,
    house,
    inbound,
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
        lines = [said.text for said in home.windows.use(KEY).recent()]
        assert lines == ["Count sheep", "Hello", "One sheep", "Hello Bob."]
        assert home.talk.inboxes.reach(KEY, GENERAL.channel_id).open == {}

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
        assert [said.text for said in home.windows.use(KEY).recent()] == ["Count sheep"]

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
            return [one.tool for one in tool_log.read(tool_log.log_of(home.memory.disk, SUBJECT))]

        await until(lambda: noted() == ["memory_store"])
        await home.tool_log.close()

    async def test_a_shutdown_is_no_stop(self, tmp_path: Path) -> None:
        model = Endless("One sheep")
        home = house(tmp_path, model)
        reply = ask(home, 1, "Count sheep")
        await model.waits.wait()
        await home.desk.close(0)
        assert reply.failed and not reply.finished

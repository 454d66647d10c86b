"""People, places and messages, a scripted model, and a clock, for tests of several rooms."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from discoclaw.core.message import Author, Inbound, Me, Place, Said
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolTurn,
    UserTurn,
)
from discoclaw.core.patch import Patch, Summary
from discoclaw.core.ports import Shape
from tests.citing import cited_patch

NOW = 1_770_000_000_000  # 2026-02-02T02:40
HOUR = 3_600_000

ME = Me("900", "DiscoClaw")
ANN = Author("1", "Ann")
BOB = Author("2", "Bob")
OWNER = Author("3", "Olga", is_owner=True)
GUEST = Author("4", "Gus", allowed=False)

GENERAL = Place("channel", "10", "10", "general", private=False, group_name="general")
DEV = Place("channel", "11", "11", "dev", private=False, group_name="dev")
HIDDEN = Place("channel", "12", "12", "staff", private=True, group_name="staff")
THREAD = Place("thread", "13", "10", "release", private=False, group_name="general")
DM = Place("dm", "14", None, "direct message", private=True)


class Clock:
    """The present, moved by hand; each look is a millisecond later than the one before."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def forward(self, ms: int) -> None:
        self.now += ms


@dataclass
class Asked:
    """One structured question, as the model got it."""

    system: str
    prompt: str
    shape: type[BaseModel]


Scripted = Any
"""A text, a list of stream events, an exception to raise, or a function that makes one of these."""


class ScriptedModel:
    """The port `Model`: replies come from queues, and what was asked is kept.

    With `gate` set, every call waits until somebody opens it. An empty queue gives harmless answers.
    """

    def __init__(
        self,
        answers: Iterable[Scripted] = (),
        *,
        patches: Iterable[Scripted] = (),
        summaries: Iterable[Scripted] = (),
    ) -> None:
        self.answers = deque(answers)
        self.patches = deque(patches)
        self.summaries = deque(summaries)
        self.always: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.requests: list[ModelRequest] = []
        self.asked: list[Asked] = []
        self.at_once = 0
        self.most_at_once = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        await self._wait()
        reply = self.answers.popleft() if self.answers else "All right."
        if callable(reply):
            reply = reply(request)
        if isinstance(reply, BaseException):
            raise reply
        events = says(reply) if isinstance(reply, str) else reply
        for event in events:
            if isinstance(event, BaseException):
                raise event
            yield event

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self.asked.append(Asked(system, prompt, shape))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self._wait()
        finally:
            self.at_once -= 1
        queue = self.patches if shape is Patch else self.summaries
        reply = queue.popleft() if queue else Patch() if shape is Patch else Summary(summary="Talk so far.")
        if callable(reply):
            reply = reply(prompt)
        if isinstance(reply, BaseException):
            raise reply
        assert isinstance(reply, shape)
        return cited_patch(reply, prompt) if isinstance(reply, Patch) else reply

    async def close(self) -> None:
        pass

    async def _wait(self) -> None:
        if self.always is not None:
            raise self.always
        if self.gate is not None:
            await self.gate.wait()

    @property
    def extractions(self) -> list[str]:
        """The prompts of all extractions."""
        return [asked.prompt for asked in self.asked if asked.shape is Patch]

    @property
    def summarised(self) -> list[str]:
        """The prompts of all summaries."""
        return [asked.prompt for asked in self.asked if asked.shape is Summary]

    def user_turn(self, number: int = -1) -> str:
        """The user message of a request."""
        turn = self.requests[number].turns[0]
        assert isinstance(turn, UserTurn)
        return turn.text

    def results(self, number: int = -1) -> list[tuple[bool, str]]:
        """The tool results a request carries last: whether each failed, and its text."""
        turn = self.requests[number].turns[-1]
        assert isinstance(turn, ToolTurn)
        return [(result.failed, result.text) for result in turn.results]


def says(text: str, *, stop: Any = "end") -> list[StreamEvent]:
    """A stream that says `text` in two pieces."""
    half = len(text) // 2
    pieces = [TextDelta(piece) for piece in (text[:half], text[half:]) if piece]
    return [*pieces, Finished(AssistantTurn(text), stop)]


def calls(*wanted: tuple[str, dict[str, object]], text: str = "") -> list[StreamEvent]:
    """A stream that asks for tools, after saying `text`."""
    made = tuple(ToolCall(f"call_{number}", name, given) for number, (name, given) in enumerate(wanted))
    said = [TextDelta(text)] if text else []
    return [*said, Finished(AssistantTurn(text, made), "tools")]


def said(number: int, author: Author | Me = ANN, text: str = "", **given: Any) -> Said:
    """A line of a window; by default its text is its number. We are the author when `author` is `ME`."""
    return Said(
        id=str(number),
        author_id=author.id,
        name=author.name,
        text=text or f"line {number}",
        sent_at=NOW + number,
        by_us=isinstance(author, Me),
        is_owner=getattr(author, "is_owner", False),
        guest=not getattr(author, "allowed", True),
        **given,
    )


def inbound(number: int, text: str, author: Author = ANN, place: Place = GENERAL, **given: Any) -> Inbound:
    """A message as the chat's door hands it in."""
    return Inbound(
        id=str(number),
        author=author,
        place=place,
        session_key=place.session_key(author.id),
        text=text,
        sent_at=given.pop("sent_at", NOW + number),
        **{"mentions_us": True, **given},
    )


def replying_to(author: str, text: str, *, by_us: bool = False) -> Said:
    return Said("1", ME.id if by_us else "4711", author, text, NOW, by_us=by_us)


async def until(holds: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for knows nothing of us
            await asyncio.sleep(0.001)

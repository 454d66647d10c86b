"""What models were asked during a checkup, and how fast they answered. Asks nothing itself."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from discoclaw.core.errors import ModelEmpty, ModelError
from discoclaw.core.model import (
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    Unseen,
    Usage,
    UserTurn,
    joined,
)
from discoclaw.core.ports import Model, Shape
from discoclaw.core.usage import CHARS_A_TOKEN, Tally, counted_in, used


@dataclass(slots=True)
class Asked:
    """How often models were asked by everything in one checkup, and what servers counted for each model."""

    requests: int = 0
    used: dict[str, Usage] = field(default_factory=dict)

    def note(self, model: str, usage: Usage) -> None:
        """Note one answer."""
        self.requests += 1
        self.used[model] = self.used.get(model, Usage()) + usage

    @property
    def usage(self) -> Usage:
        """The use of all calls together."""
        return sum(self.used.values(), Usage())

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.usage.prompt_tokens + self.usage.output_tokens


@dataclass(slots=True)
class Exchange:
    """One request that was streamed to a model, with the seconds to its first piece and to its end."""

    model: str
    request: ModelRequest
    said: str = ""
    first_s: float = 0.0
    whole_s: float = 0.0
    pieces: int = 0
    usage: Usage = field(default_factory=Usage)
    unseen: tuple[Unseen, ...] = ()
    calls: tuple[str, ...] = ()
    error: ModelError | None = None

    @property
    def prompt_tokens(self) -> int:
        """The tokens of the prompt, estimated where the server counts none."""
        return self.usage.prompt_tokens or size_of(self.request) // CHARS_A_TOKEN


@dataclass(slots=True)
class Listening:
    """The port `Model` around another one, of a `provider`; `exchanges` are what was streamed, in order."""

    model: Model
    asked: Asked
    provider: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name by which the other model is counted; "" if it has none."""
        name = str(getattr(self.model, "name", ""))
        return joined(self.provider, name) if name else ""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The other model's stream, timed. Raises ModelError."""
        one, began = Exchange(self.name, request), time.monotonic()
        self.exchanges.append(one)
        try:
            async with aclosing(self.model.stream(request)) as events:
                async for event in events:
                    one.first_s = one.first_s or time.monotonic() - began
                    if isinstance(event, TextDelta):
                        one.said = event.text if event.instead else one.said + event.text
                        one.pieces += 1
                    else:
                        _ended(one, event)
                        self.asked.note(self.name, event.usage)
                    yield event
        except ModelError as error:
            one.error = error
            raise
        finally:
            one.whole_s = time.monotonic() - began

    async def exchange(self, request: ModelRequest) -> Exchange:
        """One request. Its failure is in the exchange; so is an answer without a word."""
        with suppress(ModelError):
            async for _ in self.stream(request):
                pass
        done = self.exchanges[-1]
        if done.error is None and not done.said.strip():
            done.error = ModelEmpty("it answered without a word")
        return done

    async def structured(self, *, shape: type[Shape], **asked: Any) -> Shape:
        """The other model's answer, counted here and by whoever counts around it. Raises ModelError."""
        tally = Tally()
        try:
            with counted_in(tally):
                return await self.model.structured(shape=shape, **asked)
        finally:
            for model, usage in tally.used:
                self.asked.note(joined(self.provider, model), usage)
                used(model, usage, whole=tally.whole)

    async def close(self) -> None:
        """Does nothing: whoever opened the other model closes it."""


def _ended(one: Exchange, event: Finished) -> None:
    one.usage, one.unseen = event.usage, event.unseen
    one.calls = tuple(call.name for call in event.turn.calls)


def size_of(request: ModelRequest) -> int:
    """The characters of a request: system, tools and what people said."""
    system = sum(len(block.text) for block in request.system)
    tools = sum(len(tool.name) + len(tool.description) + len(str(tool.schema)) for tool in request.tools)
    return system + tools + sum(len(turn.text) for turn in request.turns if isinstance(turn, UserTurn))

"""Models for tests: the port with scripted words. Nothing is patched; the bot is given another model."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from discoclaw.core.errors import ModelBadOutput, ModelError
from discoclaw.core.model import (
    AssistantTurn,
    Finished,
    ModelRequest,
    Purpose,
    StreamEvent,
    TextDelta,
    UserTurn,
)
from discoclaw.core.ports import Shape
from tests.citing import cited_json

Words = str | ModelError | Callable[[ModelRequest], str]


class Scripted:
    """Says each of `words` in turn, then `then`; an error is raised. `requests` are what it was asked.

    `facts` and `summaries` are what the loops get as JSON, in turn; without any, "nothing new".
    """

    def __init__(self, *words: Words, then: Words = "ok", chunk: int = 0) -> None:
        self.words = list(words)
        self.then = then
        self.chunk = chunk
        self.requests: list[ModelRequest] = []
        self.structured_prompts: list[str] = []
        self.facts: list[str | ModelError] = []
        self.hold: asyncio.Event | None = None
        self.asked = asyncio.Event()

    @property
    def prompt(self) -> str:
        """The user turn of the last request."""
        return self.user_turn(-1)

    def user_turn(self, index: int) -> str:
        first = self.requests[index].turns[0]
        assert isinstance(first, UserTurn)
        return first.text

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        self.asked.set()
        said = self.words.pop(0) if self.words else self.then
        if isinstance(said, ModelError):
            raise said
        text = said(request) if callable(said) else said
        size = self.chunk or max(1, len(text))
        for begin in range(0, len(text), size):
            yield TextDelta(text[begin : begin + size])
            await asyncio.sleep(0)
            if self.hold is not None:
                await self.hold.wait()
        yield Finished(AssistantTurn(text), "end")

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        self.structured_prompts.append(prompt)
        if "summary" in shape.model_fields:
            return shape.model_validate({"summary": "They talked."})
        said = self.facts.pop(0) if self.facts else "{}"
        if isinstance(said, ModelError):
            raise said
        try:
            return shape.model_validate_json(cited_json(said, prompt))
        except ValueError as error:
            raise ModelBadOutput(str(error)) from error

    async def close(self) -> None:
        pass

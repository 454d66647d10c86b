"""A model whose calls are noted: when it last answered, or why it didn't, by what it was asked for.

An answer that is of no use shows that the server is there. Knows no provider.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelError,
    ModelRefused,
    ModelTooLong,
)
from discoclaw.core.model import ModelRequest, Purpose, StreamEvent
from discoclaw.core.ports import Model, Shape
from discoclaw.core.seen import Seen
from discoclaw.jobs import step

ANSWERED: Final = (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelRefused,
    ModelTooLong,
)
"""Failures of one question, and not of the server."""


class SeenModel:
    """A `Model` around another one, each call of which takes `timeout_s` at most."""

    def __init__(self, model: Model, seen: Seen, timeout_s: float) -> None:
        self._model = model
        self._seen = seen
        self._timeout_s = timeout_s

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield what the other model says."""
        step(self._timeout_s)
        self._seen.watch(request)
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            self._failed(request.purpose, error)
            raise
        self._answered(request.purpose)

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """Return the other model's answer."""
        step(self._timeout_s)
        try:
            answer = await self._model.structured(
                purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
            )
        except ModelError as error:
            self._failed(purpose, error)
            raise
        self._answered(purpose)
        return answer

    async def close(self) -> None:
        """Release the other model's connections."""
        await self._model.close()

    def _failed(self, purpose: Purpose, error: ModelError) -> None:
        if answered := isinstance(error, ANSWERED):
            step()
        self._seen.failed(purpose, error, answered=answered)

    def _answered(self, purpose: Purpose) -> None:
        self._seen.answered(purpose)
        step()

"""What a model was asked in one case, whether its answers had the right form, and how many tokens they took.

Tokens are the provider's count (`used`). A server that reports none is estimated, which the report says.
"""

from collections.abc import AsyncGenerator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from discoclaw.core.errors import (
    ModelBadRequest,
    ModelError,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelUnreachable,
)
from discoclaw.core.model import ModelRequest, StreamEvent, Usage
from discoclaw.core.ports import Model, Shape

CHARS_PER_TOKEN = 4
"""The usual estimate for English; other scripts take more tokens."""
UNANSWERED = (
    ModelBadRequest,
    ModelKeyRejected,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelUnreachable,
)
"""Failures after which nobody knows what the model would have answered."""


@dataclass(slots=True)
class Call:
    """One structured call. `reported` is what the provider said of each answer."""

    reported: list[Usage] = field(default_factory=list)
    asked_chars: int = 0
    answer_chars: int = 0
    error: ModelError | None = None

    @property
    def answered(self) -> bool:
        """Whether the model answered at all."""
        return not isinstance(self.error, UNANSWERED)

    @property
    def valid(self) -> bool:
        """Whether the first answer had the form that was asked for. A refusal has none."""
        return self.error is None and len(self.reported) <= 1

    @property
    def requests(self) -> int:
        """How often the model was asked."""
        return max(1, len(self.reported))

    @property
    def estimated(self) -> bool:
        """Whether the provider did not count the tokens."""
        return not self.tokens_reported

    @property
    def tokens_reported(self) -> bool:
        return any(one.output_tokens for one in self.reported)

    @property
    def tokens_in(self) -> int:
        if not self.tokens_reported:
            return self.asked_chars // CHARS_PER_TOKEN
        return sum(one.input_tokens + one.cache_read_tokens + one.cache_write_tokens for one in self.reported)

    @property
    def tokens_out(self) -> int:
        if not self.tokens_reported:
            return self.answer_chars // CHARS_PER_TOKEN
        return sum(one.output_tokens for one in self.reported)


_CALL: ContextVar[Call | None] = ContextVar("call", default=None)


def used(usage: Usage) -> None:
    """Note what a provider reports of one answer; it belongs to the call that is waiting for it."""
    if (call := _CALL.get()) is not None:
        call.reported.append(usage)


class Metered:
    """The port `Model` around another one; `calls` has what it was asked."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.calls: list[Call] = []

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The other model's stream; no eval uses it."""
        return self._model.stream(request)

    async def structured(self, *, shape: type[Shape], **asked: Any) -> Shape:
        """The other model's answer, counted. Raises ModelError."""
        call = Call(asked_chars=sum(len(one) for one in asked.values() if isinstance(one, str)))
        self.calls.append(call)
        before = _CALL.set(call)
        try:
            answer = await self._model.structured(shape=shape, **asked)
        except ModelError as error:
            call.error = error
            raise
        finally:
            _CALL.reset(before)
        call.answer_chars = len(answer.model_dump_json(exclude_defaults=True))
        return answer

    async def close(self) -> None:
        """Does nothing: the other model is shared by all cases."""

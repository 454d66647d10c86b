"""Counts a model's calls in one case: whether its answers had the right form, and how many tokens they took.

Tokens are the provider's count (`core/usage`). For a server that reports none they are estimated, and the
report says so.
"""

from collections.abc import AsyncGenerator
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
from discoclaw.core.usage import CHARS_A_TOKEN, Tally, counted_in

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
    """One structured call. `tally` has what the provider counted for each answer."""

    tally: Tally = field(default_factory=Tally)
    asked_chars: int = 0
    answer_chars: int = 0
    error: ModelError | None = None

    @property
    def reported(self) -> list[Usage]:
        """The provider's counts for each answer."""
        return [usage for _, usage in self.tally.used]

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
            return self.asked_chars // CHARS_A_TOKEN
        return self.tally.total.prompt_tokens

    @property
    def tokens_out(self) -> int:
        if not self.tokens_reported:
            return self.answer_chars // CHARS_A_TOKEN
        return self.tally.total.output_tokens


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
        try:
            with counted_in(call.tally):
                answer = await self._model.structured(shape=shape, **asked)
        except ModelError as error:
            call.error = error
            raise
        call.answer_chars = len(answer.model_dump_json(exclude_defaults=True))
        return answer

    async def close(self) -> None:
        """Does nothing: the other model is shared by all cases."""

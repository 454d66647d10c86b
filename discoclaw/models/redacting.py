"""A small model whose answers hold no secrets: what the loops are told goes to disk.

The loops read nothing but what was cleaned as it came in. But who takes a key apart into two messages could
have it put together by a summary.
"""

from collections.abc import AsyncGenerator

from pydantic import ValidationError

from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.model import ModelRequest, StreamEvent
from discoclaw.core.ports import Model, Shape
from discoclaw.core.redact import Redactor


class RedactingModel:
    """A `Model` around another one."""

    def __init__(self, model: Model, redactor: Redactor) -> None:
        self._model = model
        self._redactor = redactor

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """What the model says as it says it; only `structured` is cleaned."""
        return self._model.stream(request)

    async def structured(
        self, *, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """The model's answer, its texts without secrets."""
        answer = await self._model.structured(
            system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )
        said = answer.model_dump(mode="json")
        clean = self._redactor.value(said)
        if clean == said:
            return answer
        try:
            return shape.model_validate(clean)
        except ValidationError as error:
            raise ModelBadOutput("the answer holds a secret where it can not be taken out") from error

    async def close(self) -> None:
        """Give connections back."""
        await self._model.close()

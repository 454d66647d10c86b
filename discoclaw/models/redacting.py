"""A model whose structured answers hold no secrets: the loops write them to disk.

The loops only ever read redacted text. But somebody can send a key in two halves, each harmless alone, and a
summary could put them together again.
"""

from collections.abc import AsyncGenerator

from pydantic import ValidationError

from discoclaw.core.errors import ModelBadOutput
from discoclaw.core.model import ModelRequest, Purpose, StreamEvent
from discoclaw.core.ports import Model, Shape
from discoclaw.core.redact import Redactor


class RedactingModel:
    """A `Model` around another one."""

    def __init__(self, model: Model, redactor: Redactor) -> None:
        self._model = model
        self._redactor = redactor

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The other model's stream, unchanged: the loops call only `structured`."""
        return self._model.stream(request)

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """The model's answer with secrets removed from its texts.

        Raises ModelBadOutput when a secret stands where its replacement isn't allowed, such as in an id.
        """
        answer = await self._model.structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )
        found = answer.model_dump(mode="json")
        clean = self._redactor.value(found)
        if clean == found:
            return answer
        try:
            return shape.model_validate(clean)
        except ValidationError as error:
            raise ModelBadOutput("the answer holds a secret where it cannot be removed") from error

    async def close(self) -> None:
        """Release the other model's connections."""
        await self._model.close()

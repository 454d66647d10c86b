"""A wrapper that gives each request to the model it names. Knows no provider."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from discoclaw.core.errors import ModelNotFound
from discoclaw.core.model import ModelRequest, Purpose, StreamEvent
from discoclaw.core.ports import Model, Shape

MOST_OPEN = 50
NOT_THERE = (
    "The server doesn't have the model `{name}`, which was chosen for here. "
    "An admin can choose another one with `/model`."
)


class ByName:
    """The port `Model`: requests that name `name` or no model go to `usual`, others to what `named` makes."""

    def __init__(self, usual: Model, name: str, named: Callable[[str], Model]) -> None:
        self._usual = usual
        self._name = name
        self._named = named
        self._open: dict[str, Model] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield what the model says that the request names. Raises ModelError."""
        try:
            async with aclosing(self._of(request.model).stream(request)) as events:
                async for event in events:
                    yield event
        except ModelNotFound as error:
            if request.model in ("", self._name):
                raise
            raise ModelNotFound(str(error), user_message=NOT_THERE.format(name=request.model)) from None

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: type[Shape], max_tokens: int = 2048
    ) -> Shape:
        """Pass the request on to the usual model."""
        return await self._usual.structured(
            purpose=purpose, system=system, prompt=prompt, shape=shape, max_tokens=max_tokens
        )

    async def close(self) -> None:
        """Close the usual model, and with it the connections that all of them share."""
        await self._usual.close()

    def _of(self, name: str) -> Model:
        if name in ("", self._name):
            return self._usual
        if name not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._open.clear()  # they hold no connections of their own
            self._open[name] = self._named(name)
        return self._open[name]

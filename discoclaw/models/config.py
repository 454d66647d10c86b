"""A model provider's configuration, the models it opens, what the loops may read of their answers, and who is
told how their calls end.

Knows no provider.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from pydantic import ValidationError

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelError,
    ModelRefused,
    ModelTooLong,
)
from discoclaw.core.health import Check, Seen
from discoclaw.core.model import ModelRequest, Purpose, StreamEvent, split
from discoclaw.core.ports import Model, Shape, WrappedModel
from discoclaw.core.redact import Redactor
from discoclaw.work import step

# ----------------------------------------------------------------------
# A model whose structured answers hold no secrets: the loops write them to disk.
#
# The loops only ever read redacted text. But somebody can send a key in two halves, each harmless alone,
# and a summary could put them together again.


class RedactingModel(WrappedModel):
    """A model whose streams are unchanged: the loops call only `structured`."""

    def __init__(self, model: Model, redactor: Redactor) -> None:
        super().__init__(model)
        self._redactor = redactor

    async def structured(self, *, shape: type[Shape], **asked: Any) -> Shape:
        """The model's answer with secrets removed from its texts.

        Raises ModelBadOutput when a secret stands where its replacement isn't allowed, such as in an id.
        """
        answer = await self._model.structured(shape=shape, **asked)
        found = answer.model_dump(mode="json")
        clean = self._redactor.value(found)
        if clean == found:
            return answer
        try:
            return shape.model_validate(clean)
        except ValidationError as error:
            raise ModelBadOutput("the answer holds a secret where it cannot be removed") from error


# ----------------------------------------------------------------------
# Configuration.


@dataclass(frozen=True, slots=True)
class Access:
    """How a provider is reached. `base_url` None means its usual address, which needs a key."""

    key: str | None = field(default=None, repr=False)
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which provider answers, with which models, key and server. Times are in seconds.

    `chat`, `summary` and `facts` are model names: an alias of the provider or any name its server knows.
    Before that may stand another provider, which is reached as `others` says. `base_url` None means the
    provider's usual address. A provider ignores what it doesn't need.
    """

    provider: str
    chat: str = ""
    summary: str = ""
    facts: str = ""
    key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    connect_timeout_s: float = 10.0
    chat_timeout_s: float = 180.0
    loop_timeout_s: float = 60.0
    others: Mapping[str, Access] = field(default_factory=dict, repr=False)

    def of(self, provider: str) -> Self:
        """The configuration of one provider, "" for the usual one, with names as its server knows them."""
        own = Access(self.key, self.base_url)
        if provider not in ("", self.provider):
            own = self.others.get(provider, Access())
        chat, summary, facts = (split(name)[1] for name in (self.chat, self.summary, self.facts))
        return replace(
            self,
            provider=provider or self.provider,
            chat=chat,
            summary=summary,
            facts=facts,
            key=own.key,
            base_url=own.base_url,
        )


async def nobody_says(name: str) -> int | None:
    """How much a model reads at once, where there is no server to ask."""
    return None


@dataclass(frozen=True, slots=True)
class Models:
    """The model that answers people, and the two small ones of the loops. They may share connections.

    `named` makes another model that answers people, by its name; it raises ModelError if it can't. `aliases`
    are names that the provider knows. `id_of` returns the id of a model's name, `room_of` how many tokens are
    asked for where an answer may take so many. `left_out` says what the servers refuse of requests, and
    `context_of` how many tokens a model reads at once, None if its server doesn't say. `others` are models
    that were opened beside these, and are closed with them.
    """

    chat: Model
    summary: Model
    facts: Model
    named: Callable[[str], Model]
    aliases: tuple[str, ...] = ()
    id_of: Callable[[str], str] = lambda name: name
    room_of: Callable[[str, Purpose, int], int] = lambda model, purpose, own: own
    left_out: Check = tuple
    others: Callable[[], Iterable["Models"]] = tuple
    context_of: Callable[[str], Awaitable[int | None]] = nobody_says

    def redacting(self, redactor: Redactor) -> Self:
        """These models, with secrets removed from what the loops get: that is written to disk.

        `chat` stays as it is: the turn that asks it redacts what it keeps of the answer.
        """
        return replace(
            self,
            summary=RedactingModel(self.summary, redactor),
            facts=RedactingModel(self.facts, redactor),
        )

    def seen(self, seen: Seen, chat_timeout_s: float, loop_timeout_s: float) -> Self:
        """These models; `seen` is told how their calls end, which take so long (s) at most."""
        return replace(
            self,
            chat=SeenModel(self.chat, seen, chat_timeout_s),
            summary=SeenModel(self.summary, seen, loop_timeout_s),
            facts=SeenModel(self.facts, seen, loop_timeout_s),
            named=lambda name: SeenModel(self.named(name), seen, chat_timeout_s),
        )

    async def close(self) -> None:
        """Release all connections. May be called again."""
        for model in (self.chat, self.summary, self.facts):
            await model.close()
        for models in self.others():
            await models.close()


# ---------------------------------------------------------------------- calls that are noted

ANSWERED: Final = (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelRefused,
    ModelTooLong,
)
"""Failures of one question, and not of the server."""


class SeenModel(WrappedModel):
    """A model of which each call takes `timeout_s` at most."""

    def __init__(self, model: Model, seen: Seen, timeout_s: float) -> None:
        super().__init__(model)
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

    async def structured(self, *, shape: type[Shape], purpose: Purpose, **asked: Any) -> Shape:
        """Return the other model's answer."""
        step(self._timeout_s)
        try:
            answer = await self._model.structured(shape=shape, purpose=purpose, **asked)
        except ModelError as error:
            self._failed(purpose, error)
            raise
        self._answered(purpose)
        return answer

    def _failed(self, purpose: Purpose, error: ModelError) -> None:
        if answered := isinstance(error, ANSWERED):
            step()
        self._seen.failed(purpose, error, answered=answered)

    def _answered(self, purpose: Purpose) -> None:
        self._seen.answered(purpose)
        step()

"""A model provider's configuration, and the models it opens: plain values. Knows no provider."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from discoclaw.core.health import Check
from discoclaw.core.model import Purpose
from discoclaw.core.model_names import split
from discoclaw.core.ports import Model
from discoclaw.core.redact import Redactor
from discoclaw.core.seen import Seen
from discoclaw.models.redacting import RedactingModel
from discoclaw.models.seen import SeenModel


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
        """The same for one provider only, "" for the usual one, with names as its server knows them."""
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
        """The same models, with secrets removed from what the loops get: that is written to disk.

        `chat` stays as it is: the turn that asks it redacts what it keeps of the answer.
        """
        return replace(
            self,
            summary=RedactingModel(self.summary, redactor),
            facts=RedactingModel(self.facts, redactor),
        )

    def seen(self, seen: Seen, chat_timeout_s: float, loop_timeout_s: float) -> Self:
        """The same models; `seen` is told how their calls end, which take so long at most."""
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

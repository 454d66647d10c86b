"""The language models: one for the chat, and small ones for the loops."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Final

from pydantic import SecretStr

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part
from discoclaw.app.usage import Usage, is_own
from discoclaw.core.health import Finding
from discoclaw.core.model import Reads
from discoclaw.core.model_names import OFFLINE, VENDOR
from discoclaw.core.ports import Model
from discoclaw.core.prices import Prices
from discoclaw.core.seen import Seen
from discoclaw.models.by_name import ByName
from discoclaw.models.config import Access, ModelConfig
from discoclaw.models.config import Models as Opened
from discoclaw.models.context import Contexts
from discoclaw.models.offline import OfflineModel
from discoclaw.models.providers import PROVIDERS, open_models
from discoclaw.session.caching import CachingModel
from discoclaw.settings import Settings
from discoclaw.usage.metered import Metered, Rates, StandIns
from discoclaw.usage.price_table import prices

WAY_OUT: Final = "look at the provider's status page, the model's name, its address and the key"


class Models(Feature):
    """`chat` answers people, `summary` and `facts` work for the loops. Raises SettingsError without a model.

    Every call is counted. The loops' answers go to disk, so secrets are taken out of them. The chat's answers
    may come from a cache, and from another model if a budget is nearly spent; those of `named` come from the
    model that was asked for, or there is none. `names` are models to offer; `answers` says which one answers
    where a name is set. `reads` says how many tokens each reads at once.
    """

    settings: ClassVar = (
        "model_provider",
        "api_key",
        "base_url",
        "openai_url",
        "openrouter_key",
        "gemini_key",
        "model_servers",
        "model",
        "max_tokens",
        "model_timeout_s",
        "connect_timeout_s",
        "loop_timeout_s",
        "summary_model",
        "durable_model",
        "context_tokens",
        "response_cache",
        "cache_ttl_s",
        "cache_max_entries",
    )

    def __init__(
        self, basics: Basics, disk: OnDisk, usage: Usage, model: Model | None, small_model: Model | None
    ) -> None:
        settings, accounts = basics.settings, usage.accounts
        self.seen = Seen(basics.clock)
        opened = _open(settings, model, small_model)
        models = opened.seen(self.seen, settings.model_timeout_s, settings.loop_timeout_s)
        rates = Rates(prices_of(settings, free=model is not None), models.id_of, models.room_of)
        by_name = ByName(models.chat, settings.model, models.named)
        stand_ins = StandIns(settings.summary_model, OfflineModel(stands_in=True))
        chat = Metered(by_name, accounts, rates, name=settings.model, stand_ins=stand_ins)
        self.named: Model = Metered(by_name, accounts, rates, name=settings.model)
        metered = replace(
            models,
            summary=Metered(models.summary, accounts, rates, name=settings.summary_model),
            facts=Metered(models.facts, accounts, rates, name=settings.durable_model),
        )
        redacting = metered.redacting(basics.redactor)
        offered = dict.fromkeys([settings.model, settings.summary_model, *models.aliases])
        self.names = tuple(one for one in offered if models.id_of(one) != OFFLINE)
        self.answers = chat.answers
        self.summary, self.facts = redacting.summary, redacting.facts
        self.chat: Model = chat
        self.health = (self._health, opened.left_out)
        asked = (settings.model, settings.summary_model, settings.durable_model)
        contexts = Contexts(models.context_of, asked, fixed=settings.context_tokens)
        self.reads: Reads = contexts.of
        self.services = (Part(closing=models.close), contexts)
        if settings.response_cache and disk.storage.remembers:
            responses = disk.storage.conversations.responses
            cached = CachingModel(chat, settings.model, responses, clock=basics.clock)
            self.chat = cached
            self.services = (Part(settling=cached.settle, closing=models.close), contexts)

    def _health(self) -> Iterator[Finding]:
        """How the last calls of the models ended. Nobody asks one only to find out."""
        yield self.seen.finding("the model", "answer", WAY_OUT)
        for purpose, last in sorted(self.seen.last.items()):
            if purpose != "answer" and (last.fails or last.stopped):
                yield self.seen.finding(f"the model for {purpose}", purpose, WAY_OUT, worst="warning")


def _open(settings: Settings, model: Model | None, small: Model | None) -> Opened:
    """The models of the configured provider, replaced by those that are passed in. Raises SettingsError."""
    if model is not None:
        return Opened(model, small or model, small or model, named=lambda name: model)
    models = open_models(config_of(settings))
    return replace(models, summary=small, facts=small) if small is not None else models


def config_of(settings: Settings) -> ModelConfig:
    """What the settings say about models."""
    reached = {
        VENDOR: _access(settings.api_key, settings.base_url),
        "openai": _access(settings.openai_key, settings.openai_url),
        "openrouter": _access(settings.openrouter_key, settings.model_servers.get("openrouter")),
        "gemini": _access(settings.gemini_key, settings.model_servers.get("gemini")),
    }
    reached = {name: Access(base_url=url) for name, url in settings.model_servers.items()} | reached
    own = reached.get(settings.model_provider, Access())
    return ModelConfig(
        provider=settings.model_provider,
        chat=settings.model,
        summary=settings.summary_model,
        facts=settings.durable_model,
        key=own.key,
        base_url=own.base_url,
        connect_timeout_s=settings.connect_timeout_s,
        chat_timeout_s=settings.model_timeout_s,
        loop_timeout_s=settings.loop_timeout_s,
        others=reached,
    )


def _access(key: SecretStr | None, base_url: str | None) -> Access:
    return Access(key.get_secret_value() if key is not None else None, base_url)


def prices_of(settings: Settings, *, free: bool = False) -> Prices:
    """What the models cost; `free`: nothing. Raises SettingsError for a file of prices that can't be used."""
    config = config_of(settings)
    at = {name: config.of(name).base_url or one.address for name, one in PROVIDERS.items()}
    here = [name for name, address in at.items() if is_own(address)]
    free = free or settings.model_provider == OFFLINE or VENDOR in here
    return prices(settings.prices, free=free, free_at=here)

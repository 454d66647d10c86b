"""The language models: one for the chat, and small ones for the loops."""

from functools import partial
from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part
from discoclaw.core.errors import SettingsError
from discoclaw.core.ports import Model
from discoclaw.models.anthropic.provider import AnthropicProvider
from discoclaw.models.redacting import RedactingModel
from discoclaw.session.caching import CachingModel
from discoclaw.settings import Settings


class Models(Feature):
    """`chat` answers people, `summary` and `facts` work for the loops. Raises SettingsError without a model.

    What the loops are told goes to disk, so secrets are taken out of their answers. The chat's answers may
    come from a cache.
    """

    settings: ClassVar = (
        "api_key",
        "base_url",
        "model",
        "max_tokens",
        "model_timeout_s",
        "connect_timeout_s",
        "loop_timeout_s",
        "summary_model",
        "durable_model",
        "response_cache",
        "cache_ttl_s",
        "cache_max_entries",
    )

    def __init__(self, basics: Basics, disk: OnDisk, model: Model | None, small_model: Model | None) -> None:
        settings = basics.settings
        if model is None:
            provider = _provider(settings)
            chat: Model = provider.model(settings.model, total_timeout_s=settings.model_timeout_s)
            small = partial(provider.model, total_timeout_s=settings.loop_timeout_s)
            summary: Model = small_model or small(settings.summary_model)
            facts: Model = small_model or small(settings.durable_model)
        else:
            chat, summary, facts = model, small_model or model, small_model or model
        self.summary = RedactingModel(summary, basics.redactor)
        self.facts = RedactingModel(facts, basics.redactor)
        self.chat: Model = chat
        self.services = (Part(closing=chat.close), Part(closing=summary.close), Part(closing=facts.close))
        if settings.response_cache and disk.storage.remembers:
            responses = disk.storage.conversations.responses
            cached = CachingModel(chat, settings.model, responses, clock=basics.clock)
            self.chat = cached
            self.services = (Part(settling=cached.settle, closing=cached.close), *self.services[1:])


def _provider(settings: Settings) -> AnthropicProvider:
    """The server that answers. Raises SettingsError when there is neither a key nor an address of one."""
    if settings.api_key is None and settings.base_url is None:
        raise SettingsError(
            "ANTHROPIC_API_KEY is not set; set it, or ANTHROPIC_BASE_URL for a local model, "
            "or try `discoclaw demo`, which needs neither"
        )
    return AnthropicProvider(
        api_key=settings.api_key.get_secret_value() if settings.api_key is not None else None,
        base_url=settings.base_url,
        connect_timeout_s=settings.connect_timeout_s,
    )

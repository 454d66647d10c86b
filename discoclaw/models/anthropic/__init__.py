"""Anthropic's Messages API over the official SDK, and every other server that speaks it (Ollama, llama.cpp).

Imports only core and the values of `models`. Nothing of the vendor leaves this package: values are core's,
failures are `ModelError`s.
"""

from functools import partial

from discoclaw.core.errors import ModelNotFound, SettingsError
from discoclaw.models.anthropic.known import ALIASES, resolve
from discoclaw.models.anthropic.provider import AnthropicProvider
from discoclaw.models.config import ModelConfig, Models

__all__ = ["AnthropicProvider", "open_models"]


def open_models(config: ModelConfig) -> Models:
    """All three models over one connection pool. Raises SettingsError without a key and an address."""
    if config.key is None and config.base_url is None:
        raise SettingsError(
            "ANTHROPIC_API_KEY is not set; set it, or ANTHROPIC_BASE_URL for a local model, "
            "or try `discoclaw demo`, which needs neither"
        )
    try:
        provider = AnthropicProvider(
            api_key=config.key,
            base_url=config.base_url,
            connect_timeout_s=config.connect_timeout_s,
        )
    except ModelNotFound as error:
        raise SettingsError(f"ANTHROPIC_BASE_URL=…: not an address ({error})") from None
    return Models(
        chat=provider.model(config.chat, total_timeout_s=config.chat_timeout_s),
        summary=provider.model(config.summary, total_timeout_s=config.loop_timeout_s),
        facts=provider.model(config.facts, total_timeout_s=config.loop_timeout_s),
        named=partial(provider.model, total_timeout_s=config.chat_timeout_s),
        aliases=tuple(ALIASES) if provider.is_anthropic else (),
        id_of=resolve,
        room_of=provider.room_of,
        left_out=provider.left_out,
    )

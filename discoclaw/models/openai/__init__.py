"""OpenAI's chat completions over the official SDK, and every other server that speaks them.

Ollama, LM Studio, llama.cpp, vLLM, OpenRouter and Gemini's compatible address do. Imports only core and what
the adapters in `models` share. Nothing of the vendor leaves this package: values are core's, failures are
`ModelError`s.
"""

from functools import partial

from discoclaw.core.errors import ModelNotFound, SettingsError
from discoclaw.models.config import ModelConfig, Models
from discoclaw.models.openai.provider import OpenAIProvider

__all__ = ["OpenAIProvider", "open_models"]


def open_models(config: ModelConfig) -> Models:
    """All three models over one connection pool. Raises SettingsError without a key and an address."""
    if config.key is None and config.base_url is None:
        raise SettingsError(
            "OPENAI_API_KEY is not set; set it, or OPENAI_BASE_URL for a local model, "
            "or try `discoclaw demo`, which needs neither"
        )
    try:
        provider = OpenAIProvider(
            api_key=config.key, base_url=config.base_url, connect_timeout_s=config.connect_timeout_s
        )
    except ModelNotFound as error:
        raise SettingsError(f"OPENAI_BASE_URL=…: not an address ({error})") from None
    return Models(
        chat=provider.model(config.chat, total_timeout_s=config.chat_timeout_s),
        summary=provider.model(config.summary, total_timeout_s=config.loop_timeout_s),
        facts=provider.model(config.facts, total_timeout_s=config.loop_timeout_s),
        named=partial(provider.model, total_timeout_s=config.chat_timeout_s),
        room_of=provider.room_of,
        left_out=provider.left_out,
    )

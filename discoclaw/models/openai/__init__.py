"""OpenAI's chat completions over the official SDK, and every other server that speaks them.

Ollama, LM Studio, llama.cpp, vLLM, OpenRouter and Gemini's compatible address do. Imports only core and what
the adapters in `models` share. Nothing of the vendor leaves this package: values are core's, failures are
`ModelError`s.
"""

from discoclaw.models.asking import opened
from discoclaw.models.config import ModelConfig, Models
from discoclaw.models.openai.provider import OpenAIProvider

__all__ = ["OpenAIProvider", "open_models"]


def open_models(config: ModelConfig) -> Models:
    """All three models over one connection pool. Raises SettingsError without a key and an address."""
    return opened(OpenAIProvider, "OPENAI", config)

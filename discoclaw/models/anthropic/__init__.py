"""Anthropic's Messages API over the official SDK, and every other server that speaks it (Ollama, llama.cpp).

Imports only core and the values of `models`. Nothing of the vendor leaves this package: values are core's,
failures are `ModelError`s.
"""

from discoclaw.models.anthropic.provider import ALIASES, AnthropicProvider, resolve
from discoclaw.models.asking import opened
from discoclaw.models.config import ModelConfig, Models

__all__ = ["AnthropicProvider", "open_models"]


def open_models(config: ModelConfig) -> Models:
    """All three models over one connection pool. Raises SettingsError without a key and an address."""
    return opened(AnthropicProvider, "ANTHROPIC", config, tuple(ALIASES), resolve)

"""Which provider the settings ask for, and its models. Nothing is connected yet."""

from collections.abc import Callable, Mapping

from discoclaw.core.errors import SettingsError
from discoclaw.models import anthropic, offline
from discoclaw.models.config import ModelConfig, Models

PROVIDERS: Mapping[str, Callable[[ModelConfig], Models]] = {
    "anthropic": anthropic.open_models,
    "offline": offline.open_models,
}
"""Each provider's name in the settings, and what makes its models."""


def open_models(config: ModelConfig) -> Models:
    """The models of the configured provider. Raises SettingsError, which says what to change."""
    provider = PROVIDERS.get(config.provider)
    if provider is None:
        raise SettingsError(
            f"DISCOCLAW_MODEL_PROVIDER={config.provider}: unknown provider; use {' or '.join(PROVIDERS)}"
        )
    return provider(config)

"""Which provider the settings ask for, and its models. Nothing is connected yet."""

from collections.abc import Callable, Mapping

from discoclaw.core.errors import SettingsError
from discoclaw.models import offline
from discoclaw.models.config import ModelConfig, Models


def _anthropic(config: ModelConfig) -> Models:
    # The SDK is 3,000 modules, half of the time in which the whole bot is imported.
    from discoclaw.models import anthropic

    return anthropic.open_models(config)


PROVIDERS: Mapping[str, Callable[[ModelConfig], Models]] = {
    "anthropic": _anthropic,
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

"""Names of models, which may begin with their provider: `ollama:qwen3:8b`. Pure; knows no address and no key.

Only a known provider before the first colon counts, because models have colons in their names too.
"""

from typing import Final

VENDOR: Final = "anthropic"
"""The provider whose models go by their bare names, as they did when there was no other."""
OFFLINE: Final = "offline"
OFFLINE_MODEL: Final = "the offline model"
PROVIDERS: Final = (
    VENDOR,
    "openai",
    "ollama",
    "lmstudio",
    "llamacpp",
    "vllm",
    "openrouter",
    "gemini",
    OFFLINE,
)


def split(name: str) -> tuple[str, str]:
    """The provider that a name begins with, and the rest; ("", name) for a name without one."""
    before, colon, rest = name.strip().partition(":")
    provider = before.strip().lower()
    return (provider, rest.strip()) if colon and rest.strip() and provider in PROVIDERS else ("", name)


def joined(provider: str, plain: str) -> str:
    """The name by which a provider's model is counted, priced and shown."""
    return plain if provider in ("", VENDOR, OFFLINE) else f"{provider}:{plain}"


def shown(name: str, id: str) -> str:
    """A model for people: its name, with the `id` of an alias. The offline model has no other name."""
    if id == OFFLINE:
        return OFFLINE_MODEL
    return name if split(id)[1] == split(name)[1] else f"{name} ({id})"

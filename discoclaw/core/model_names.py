"""Names of models, which may begin with their provider: `ollama:qwen3:8b`. Pure; knows no address and no key.

Only a known provider before the first colon counts, because models have colons in their names too.
"""

from typing import Final

VENDOR: Final = "anthropic"
"""The provider whose models go by their bare names, as they did when there was no other."""
PROVIDERS: Final = (
    VENDOR,
    "openai",
    "ollama",
    "lmstudio",
    "llamacpp",
    "vllm",
    "openrouter",
    "gemini",
    "offline",
)


def split(name: str) -> tuple[str, str]:
    """The provider that a name begins with, and the rest; ("", name) for a name without one."""
    before, colon, rest = name.strip().partition(":")
    provider = before.strip().lower()
    return (provider, rest.strip()) if colon and rest.strip() and provider in PROVIDERS else ("", name)


def joined(provider: str, plain: str) -> str:
    """The name by which a provider's model is counted, priced and shown."""
    return plain if provider in ("", VENDOR, "offline") else f"{provider}:{plain}"

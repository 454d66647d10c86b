"""Short names of models. Knows nothing about which models an account may use."""

ALIASES = {
    "fast": "claude-haiku-5-5",
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}


def resolve(name: str) -> str:
    """The model id of an alias.

    Any other name is returned as it is: local servers have names of their own.
    """
    return ALIASES.get(name.strip().lower(), name)

"""Short names of models. Knows nothing about which models an account may use.

A name that is no alias goes to the server as it is, so a local model keeps the name its server gave it.
"""

ALIASES = {
    "fast": "claude-haiku-5-5",
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}


def resolve(name: str) -> str:
    """The model id behind an alias; any other name untouched."""
    return ALIASES.get(name.strip().lower(), name)

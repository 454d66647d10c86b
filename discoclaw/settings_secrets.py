"""Takes every secret of the settings out of texts: servers repeat what they were sent, and logs repeat that.

Knows nothing about where texts come from or go.
"""

from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from discoclaw.settings import Settings

HIDDEN = "[secret]"
SHORTEST = 4
"""A shorter one would be found in ordinary words."""


def hiding(settings: Settings, *more: str) -> Callable[[str], str]:
    """A function that replaces in a text every secret of the settings, and `more` of them."""
    found = {one for one in (*_secrets(settings), *more) if len(one) >= SHORTEST}
    secrets = sorted(found, key=len, reverse=True)

    def hide(text: str) -> str:
        for one in secrets:
            text = text.replace(one, HIDDEN)
        return text

    return hide


def _secrets(settings: Settings) -> Iterator[str]:
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if name == "store":
            yield from _password(value.get_secret_value())
        elif isinstance(value, SecretStr):
            yield value.get_secret_value().strip()
        elif isinstance(value, str):
            yield from _password(value)
        elif isinstance(value, tuple | Mapping):
            several = value.values() if isinstance(value, Mapping) else value
            yield from (found for one in several if isinstance(one, str) for found in _password(one))


def _password(address: str) -> Iterator[str]:
    """The password in an address, as it is written and as it is meant."""
    try:
        password = urlsplit(address).password
    except ValueError:
        return
    if password:
        yield from (password, unquote(password))

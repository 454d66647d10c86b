"""The secrets among the settings, which no text for people may have. Knows nothing about those texts."""

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from discoclaw.settings import Settings


def secrets_of(settings: Settings) -> Iterator[str]:
    """Every secret, also the passwords in addresses. A short one may be a part of ordinary words."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if name == "store":
            yield from _password(value.get_secret_value())
        elif isinstance(value, SecretStr):
            yield value.get_secret_value().strip()
        elif isinstance(value, str):
            yield from _password(value)
        elif isinstance(value, tuple):
            yield from (found for one in value if isinstance(one, str) for found in _password(one))


def _password(address: str) -> Iterator[str]:
    """The password in an address, as it is written and as it is meant."""
    try:
        password = urlsplit(address).password
    except ValueError:
        return
    if password:
        yield from (password, unquote(password))

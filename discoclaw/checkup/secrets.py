"""Takes every secret of the settings out of a text, whoever wrote it: servers repeat what they were sent."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from discoclaw.core.health import Finding
from discoclaw.core.redact import redact
from discoclaw.settings import Settings

HIDDEN = "[secret]"
SHORTEST = 6
"""A shorter one would be found in ordinary words."""


def without_secrets(settings: Settings) -> Callable[[Finding], Finding]:
    """What to put a finding through before anybody sees it."""
    secrets = sorted({one for one in _secrets(settings) if len(one) >= SHORTEST}, key=len, reverse=True)

    def clean(text: str) -> str:
        for one in secrets:
            text = text.replace(one, HIDDEN)
        return redact(text).text

    return lambda found: replace(found, text=clean(found.text), way_out=clean(found.way_out))


def _secrets(settings: Settings) -> Iterator[str]:
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

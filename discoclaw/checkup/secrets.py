"""Takes every secret of the settings out of a text, whoever wrote it: servers repeat what they were sent."""

from collections.abc import Callable
from dataclasses import replace

from discoclaw.core.health import Finding
from discoclaw.core.redact import redact
from discoclaw.settings import Settings
from discoclaw.settings_secrets import secrets_of

HIDDEN = "[secret]"
SHORTEST = 6
"""A shorter one would be found in ordinary words."""


def without_secrets(settings: Settings) -> Callable[[Finding], Finding]:
    """What to put a finding through before anybody sees it."""
    secrets = sorted({one for one in secrets_of(settings) if len(one) >= SHORTEST}, key=len, reverse=True)

    def clean(text: str) -> str:
        for one in secrets:
            text = text.replace(one, HIDDEN)
        return redact(text).text

    return lambda found: replace(found, text=clean(found.text), way_out=clean(found.way_out))

"""What every feature needs: the settings, the clock, the redactor, and who the bot is."""

from collections.abc import Callable
from dataclasses import dataclass

from discoclaw.core.message import Me
from discoclaw.core.ports import Clock
from discoclaw.core.redact import Redactor
from discoclaw.settings import Settings


@dataclass(frozen=True, slots=True)
class Basics:
    """`me` is known after login. `redactor` knows the bot's keys, and cleans text before it is stored."""

    settings: Settings
    clock: Clock
    redactor: Redactor
    me: Callable[[], Me]

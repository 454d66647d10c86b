"""What every feature needs: the settings, the present, the redactor, and who the bot is."""

from collections.abc import Callable
from dataclasses import dataclass

from discoclaw.core.message import Me
from discoclaw.core.ports import Clock
from discoclaw.core.redact import Redactor
from discoclaw.settings import Settings


@dataclass(frozen=True, slots=True)
class Basics:
    """`me` is known once the bot is logged in. `redactor` knows its keys, and cleans what is to be stored."""

    settings: Settings
    clock: Clock
    redactor: Redactor
    me: Callable[[], Me]

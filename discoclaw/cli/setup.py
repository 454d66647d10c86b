"""`discoclaw init` before it asks: its flags, the settings so far, and whether somebody is there.

Knows nothing about the questions.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from discoclaw import settings as settings_module
from discoclaw.cli.asking import Terminal
from discoclaw.cli.common import note, say
from discoclaw.core.errors import Refused, SettingsError
from discoclaw.core.model import VENDOR, split

FILE = Path(".env")


@dataclass(slots=True)
class Setup:
    """`flags` by the name of their setting; one that is wrong is asked for instead, if there is a terminal.

    `written` are the settings so far, of the environment and of `.env`. `takes_offered`: whoever the
    application belongs to may talk to the bot if nobody is named. `checks`: Discord and the model are asked.
    """

    flags: dict[str, str]
    written: Mapping[str, str]
    terminal: Terminal | None
    checks: bool = True
    takes_offered: bool = False
    _taken: set[str] = field(default_factory=set)

    def flag(self, name: str) -> str:
        """A flag's value, "" if it was not given or was taken before: then it was wrong."""
        if name in self._taken:
            return ""
        self._taken.add(name)
        return self.flags.get(name, "")

    def tell(self, text: str) -> None:
        """Print a line for somebody at the terminal. A script gets what was found only."""
        if self.terminal is not None:
            say(text)

    @property
    def api(self) -> str | None:
        """The address of Discord's REST API, if it is not Discord's own."""
        return self.written.get("DISCORD_API_BASE", "").rstrip("/") or None

    def check_complete(self) -> None:
        """Without a terminal, raise Refused with the flags that are missing."""
        if self.terminal is not None:
            return
        there = {*self.flags, *self.written}
        missing = []
        if "DISCORD_TOKEN" not in there:
            missing.append("--token-file (or DISCORD_TOKEN in the environment)")
        offers = self.takes_offered and self.checks
        if not offers and not there & {"DISCORD_ALLOW_USER_IDS", "DISCORD_ALLOW_ROLE_IDS"}:
            missing.append("--allow-users (or --yes for the application's owner)")
        model = self.flags.get("DISCOCLAW_MODEL") or self.written.get("DISCOCLAW_MODEL", "")
        provider = split(model)[0] or self.written.get("DISCOCLAW_MODEL_PROVIDER", VENDOR)
        if provider == VENDOR and not there & {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}:
            missing.append("--api-key-file (or ANTHROPIC_API_KEY), or --base-url with --model")
        if missing:
            raise Refused(f"there is no terminal to ask in; what is missing: {'; '.join(missing)}")


def secret_in(path: str | None, flag: str) -> str | None:
    """The secret in a file, on stdin for "-", or None without a file. Raises Refused with the reason."""
    if path is None:
        return None
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise Refused(f"{flag} {path}: {reason}") from None
    if not text.strip():
        raise Refused(f"{flag} {path}: it is empty")
    return text


def note_others(values: dict[str, str]) -> None:
    """Note what keeps the settings from being used: the environment, and others that are wrong."""
    for name, value in settings_module.given(in_file=False).items():
        if name in values and values[name] != value:
            note(f"{name} is set in the environment too, which wins over .env; unset it there")
    try:
        settings_module.load()
    except SettingsError as error:
        for text in str(error).splitlines():
            note(text)

"""Asks for settings: questions at a terminal, and answers that are asked for until they are right.

`Setup` is what is there before anything is asked: flags, the settings so far, and whether somebody is there.
Somebody who presses Ctrl-C or Ctrl-D ends all of it (`typer.Abort`). Knows nothing about the questions.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import typer

from discoclaw import settings as settings_module
from discoclaw.cli.common import note, say
from discoclaw.core.errors import (
    ChatError,
    ChatUnavailable,
    ModelError,
    ModelOverloaded,
    ModelRateLimited,
    ModelTimeout,
    ModelUnreachable,
    Refused,
    SettingsError,
)
from discoclaw.core.model import VENDOR, split
from discoclaw.core.redact import redact
from discoclaw.show.words import line

Answer = TypeVar("Answer")
Found = TypeVar("Found")

FILE = Path(".env")
WRONG = (SettingsError, Refused, ChatError, ModelError)
"""Errors by which a check rejects an answer."""
UNSURE = (ChatUnavailable, ModelUnreachable, ModelTimeout, ModelOverloaded, ModelRateLimited)
"""Errors after which the answer may be right all the same."""
USE_ANYWAY = "   This can't be checked now. Use it all the same?"
LONGEST = 2_000
"""The longest line that is shown, in UTF-16 units."""


class Terminal:
    """Somebody to ask."""

    def secret(self, question: str) -> str:
        """Ask for a text that is not shown while it is typed; "" for nothing."""
        return str(typer.prompt(question, default="", show_default=False, hide_input=True)).strip()

    def sure(self, question: str, *, offered: bool) -> bool:
        """Yes or no."""
        return typer.confirm(question, default=offered)

    def words(self, question: str, *, offered: str = "") -> str:
        """Ask for a text, without blanks around it; `offered` for nothing. Asks again while it is empty."""
        while not (typed := str(typer.prompt(question, default=offered or None)).strip()):
            pass  # blanks alone
        return typed

    def one_of(self, question: str, named: Sequence[str], *, offered: int, most: int = 20) -> int:
        """The index of one of several. The first ones are shown with numbers; each can be named."""
        for number, name in enumerate(named[:most], 1):
            say(f"   {number}  {clean(name)}")
        while True:
            typed = self.words(question, offered=str(offered + 1))
            if typed in named:
                return named.index(typed)
            if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(named):
                return int(typed) - 1
            wrong(f"type a number from 1 to {len(named)}, or a name")


def clean(text: str) -> str:
    """A text from elsewhere, without keys and tokens, and without what could move the cursor."""
    return line(redact(text).text, LONGEST)


def wrong(text: str) -> None:
    """Say what is wrong with an answer."""
    say(f"   ! {clean(text)}")


def right(
    terminal: Terminal | None,
    ask: Callable[[Terminal | None], Answer],
    check: Callable[[Answer], Found],
) -> tuple[Answer, Found | None]:
    """An answer that is right, and what its check found; None if it is taken though the check failed.

    Whoever is asked is asked again until then, and may take what could not be checked. Without a terminal,
    what is wrong is raised.
    """
    while True:
        answer = ask(terminal)
        try:
            return answer, check(answer)
        except WRONG as error:
            if terminal is None and isinstance(error, UNSURE):
                raise Refused(f"{error}; --no-check writes it without asking") from None
            if terminal is None:
                raise
            wrong(str(error))
            if isinstance(error, UNSURE) and terminal.sure(USE_ANYWAY, offered=False):
                return answer, None


# ---------------------------------------------------------------------- before anything is asked


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

"""Questions at a terminal, and answers that are asked for until they are right.

Somebody who presses Ctrl-C or Ctrl-D ends all of it (`typer.Abort`). Knows nothing about what is asked.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from discoclaw.cli.common import say
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
from discoclaw.core.redact import redact
from discoclaw.show.words import line

Answer = TypeVar("Answer")
Found = TypeVar("Found")

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

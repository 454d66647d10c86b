"""Why a file is not read: sentences for the person who sent it, each with the way out.

The process that opens a file needs `Refusal` alone, so what else is imported waits for its use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discoclaw.core.message import Unreadable

_MOST_NAME = 60


class Refusal(Exception):
    """A file cannot be read. The text goes on behind the file's name: "is empty. Please …"."""


def refused(name: str, why: str) -> "Unreadable":
    """The refusal of a file by its name; `why` goes on behind the name."""
    from discoclaw.core.message import Unreadable

    return Unreadable(name, f"“{short(name)}” {why}")


def short(name: str) -> str:
    """A file's name for a sentence: one line, and not long."""
    from discoclaw.core.text import collapse

    line = collapse(name) or "the file"
    return line if len(line) <= _MOST_NAME else f"{line[: _MOST_NAME - 1]}…"


def megabytes(size: int) -> str:
    """A size as people read it: "12 MB", "0.4 MB"."""
    value = size / 1_000_000
    return f"{value:.0f} MB" if value >= 10 else f"{value:.1f} MB".replace(".0 ", " ")

"""The trouble that the log spoke of lately: warnings and errors, in RAM, each once with how often it came.

It has no more of people's words than the log has, and less of secrets: what is shown is cleaned. When
somebody is erased, what names them goes.
"""

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from discoclaw.core.purge import Derived, Purge
from discoclaw.core.text import clip

MOST: Final = 200
MOST_CHARS: Final = 600
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A line of the log, how often it came, and when (ms) it first and last did.

    Lines that differ in short numbers alone are the same; `text` is the newest.
    """

    level: str
    source: str
    text: str
    count: int
    first: int
    last: int

    @property
    def bad(self) -> bool:
        """Whether it is an error, and not only a warning."""
        return self.level != "WARNING"


class RecentErrors(Derived):
    """The newest `MOST` of them. It is a `core.service.Service`: it listens from its start on."""

    name = "recent errors"

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._handler = _Handler(self._noted)
        self._lock = threading.RLock()  # what is collected as garbage inside may log, too
        self._known: OrderedDict[tuple[str, str, str], Trouble] = OrderedDict()

    async def start(self) -> None:
        """Begin to listen to the log."""
        logging.getLogger().addHandler(self._handler)

    async def settle(self) -> None:
        """Do nothing: every error is noted at once."""

    async def close(self) -> None:
        """Stop listening. May be called again."""
        logging.getLogger().removeHandler(self._handler)

    def newest(self) -> list[Trouble]:
        """All of them, newest first."""
        with self._lock:
            return list(reversed(self._known.values()))

    def purge_ram(self, purge: Purge) -> None:
        if purge.erases and (user_id := purge.user_id):
            with self._lock:
                for key in [key for key, one in self._known.items() if user_id in one.text]:
                    del self._known[key]

    def _noted(self, record: logging.LogRecord) -> None:
        """Count a record. It comes from any thread."""
        text = clip(self._clean(clip(_text(record), 4 * MOST_CHARS)), MOST_CHARS)
        key = (record.levelname, record.name, _NUMBER.sub(_short, text))
        at = int(record.created * 1000)
        with self._lock:
            known = self._known.pop(key, None) or Trouble(record.levelname, record.name, text, 0, at, at)
            self._known[key] = replace(known, text=text, count=known.count + 1, last=at)
            if len(self._known) > MOST:
                self._known.popitem(last=False)


class _Handler(logging.Handler):
    """Passes on each record from WARNING upwards, one at a time."""

    def __init__(self, noted: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(logging.WARNING)
        self._noted = noted

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._noted(record)
        except Exception:  # noqa: BLE001 - as every handler: what is logged may have any fault in its format
            self.handleError(record)


def _text(record: logging.LogRecord) -> str:
    """A record's text, and what exception it is about if there is one."""
    text, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
    if error is None:
        return text
    return f"{text} ({type(error).__name__}{f': {error}' if str(error) else ''})"


def _short(match: re.Match[str]) -> str:
    """A pause or a count becomes one sign; an id stays, because it says which thing it is about."""
    return "#" if len(match[0]) < 6 else match[0]

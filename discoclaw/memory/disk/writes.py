"""Whether the store can be written: how the last write ended, of all that this process writes.

The stores note each write here, where its bytes reach a disk or a database. Threads write, so this is for any
number of them. Knows nothing about what is written, and names no file.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from discoclaw.jobs import reason_of

_SQLITE = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file can't be written",
    sqlite3.SQLITE_CANTOPEN: "the file can't be opened",
    sqlite3.SQLITE_IOERR: "the disk fails",
}


@dataclass(frozen=True, slots=True)
class Written:
    """How writing goes: `done` and `failed` since the start, and for how long (s) none has worked.

    `reason` is why the last one failed; both are empty once one has worked again.
    """

    done: int = 0
    failed: int = 0
    failing_s: float | None = None
    reason: str = ""


class Writes:
    """The outcomes of writes."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._done = self._failed = 0
        self._since: float | None = None
        self._reason = ""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note how the write in this block ends."""
        try:
            yield
        except OSError as error:
            with self._lock:
                self._failed += 1
                self._since = self._now() if self._since is None else self._since
                self._reason = _reason(error)
            raise
        with self._lock:
            self._done += 1
            self._since, self._reason = None, ""

    def state(self) -> Written:
        """How writing goes now."""
        with self._lock:
            since = None if self._since is None else self._now() - self._since
            return Written(self._done, self._failed, since, self._reason)


def _reason(error: OSError) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
            return _SQLITE.get(code & 0xFF, "SQLite refuses it")
        cause = cause.__cause__
    return reason_of(error) if error.errno else "the store refuses it"


WRITES = Writes()
"""The writes of this process, whichever store it has."""

"""The outbox's SQLite file: opened, locked, and set aside when it is damaged. Blocking.

WAL, synced with each commit: what was committed survives a killed process and a power cut. Deleted rows are
overwritten. One connection, one lock. Every fault is a MemoryFault. Knows nothing about the tables' content.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discoclaw.core.errors import MemoryFault
from discoclaw.core.ports import Clock
from discoclaw.memory.disk.database import (
    FAULTS,
    Database,
    check_ours,
    checkpoint,
    connect,
    explained,
    is_damage,
    look,
    make_tables,
    set_aside,
    transaction,
)
from discoclaw.memory.disk.files import stamp_of
from discoclaw.nostr.outgoing.outbox_rows import SCHEMA, VERSION

log = logging.getLogger(__name__)

CACHE_KIB = 8_000
"""Memory for cached pages."""
_DAMAGED = "it is damaged; the next start sets it aside and begins a new one"


class OutboxFile:
    """The file at `path`. One thread uses it at a time; the others wait."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._database = Database(self._opened, discard=self._set_aside)

    def open(self) -> None:
        """Open or create the file. A damaged one is set aside, and a new one begun. Raises MemoryFault."""
        with self._faults():
            self._database.run(lambda db: None)

    def open_to_read(self) -> None:
        """Open the file without ever changing it, even while another program uses it. Raises MemoryFault."""
        with self._faults():
            if not self.path.exists():
                raise FileNotFoundError("it doesn't exist: nothing was ever mirrored")
            self._database = Database(self._looked_at)
            self._database.open()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, exclusively for this thread. Raises MemoryFault."""
        with self._database.lock, self._faults():
            if not self._database.is_open:
                raise OSError("it is not open")
            yield self._database.open()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The same, in a transaction: afterwards either everything in it is durable, or nothing."""
        with self.reading() as db, transaction(db):
            yield db

    def destroy(self) -> None:
        """Destroy every byte of what was deleted. Raises MemoryFault when some may be left.

        SQLite overwrites deleted rows in place, but leaves copies where it once moved them, so the file is
        rewritten. That needs disk space for a second copy. Damaged files that were set aside are deleted,
        because nobody can tell what they contain.
        """
        with self.reading() as db:
            db.execute("VACUUM")
            if not checkpoint(db):
                raise OSError("another program is reading it, so its log cannot be emptied; try again")
            for copy in sorted(self.path.parent.glob(f"{self.path.name}.corrupt-*")):
                copy.unlink(missing_ok=True)

    # ------------------------------------------------------------------ inside

    def _opened(self) -> sqlite3.Connection:
        return connect(self.path, check=self._check, prepare=_prepare, durable=True, cache_kib=CACHE_KIB)

    def _looked_at(self) -> sqlite3.Connection:
        return look(self.path, check=self._check)

    def _check(self, db: sqlite3.Connection) -> None:
        check_ours(db, VERSION, "the outbox")

    def _set_aside(self, error: Exception) -> None:
        """Rename a damaged file, so that it can be inspected. Raises OSError."""
        aside = set_aside(self.path, stamp_of(self._clock()))
        log.error(
            "%s is damaged (%s); it is now %s, and a new one is begun. Run `discoclaw nostr recover` to "
            "find out what relays have, then `discoclaw nostr push` to send them the rest",
            self.path,
            error,
            aside.name,
        )

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (*FAULTS, OSError) as error:
            why = f"{_DAMAGED} ({error})" if is_damage(error) else explained(error)
            raise MemoryFault(f"cannot use the outbox {self.path}: {why}") from error


def _prepare(db: sqlite3.Connection) -> None:
    """Make the tables of a new file; raise for a damaged one."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        error = sqlite3.DatabaseError(found)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    make_tables(db, SCHEMA, VERSION)

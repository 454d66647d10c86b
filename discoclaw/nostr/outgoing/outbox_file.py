"""The outbox's file: opened, locked, kept aside when it is damaged. Blocking; every fault is a `MemoryFault`.

WAL, and synced with each commit: what was promised outlives a killed process and a power cut. What is deleted
is overwritten. One connection, one lock. Knows nothing about what is in the tables.
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
"""RAM for pages of the file."""
_DAMAGED = "it is damaged; the next start keeps it aside and begins a new one"


class OutboxFile:
    """The file at `path`. Used by one thread at a time; the others wait."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._database = Database(self._opened, discard=self._set_aside)

    def open(self) -> None:
        """Take the file, or make it. A damaged one is kept aside, and a new one begun. Raises MemoryFault."""
        with self._faults():
            self._database.run(lambda db: None)

    def open_to_read(self) -> None:
        """Look at the file and never change it; another program may be using it. Raises MemoryFault."""
        with self._faults():
            if not self.path.exists():
                raise FileNotFoundError("it is not there: nothing was ever queued")
            self._database = Database(self._looked_at)
            self._database.open()

    def close(self) -> None:
        """Release the file."""
        self._database.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone. Raises MemoryFault."""
        with self._database.lock, self._faults():
            if not self._database.is_open:
                raise OSError("it is not open")
            yield self._database.open()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The same in a transaction: all that is done in it is durable afterwards, or nothing is."""
        with self.reading() as db, transaction(db):
            yield db

    def destroy(self) -> None:
        """Leave no byte of what was deleted. Raises MemoryFault when some may be left.

        Rows are overwritten where they lay, but SQLite leaves copies behind where it once moved them. Of a
        damaged file that was kept nobody can tell what is in it. Takes room for a second copy of the file.
        """
        with self.reading() as db:
            db.execute("VACUUM")
            if not checkpoint(db):
                raise OSError("another program is reading it, so its log can not be emptied; try again")
            for copy in sorted(self.path.parent.glob(f"{self.path.name}.corrupt-*")):
                copy.unlink(missing_ok=True)

    # ------------------------------------------------------------------ inside

    def _opened(self) -> sqlite3.Connection:
        return connect(
            self.path, check=self._check, prepare=_prepare, durable=True, private=True, cache_kib=CACHE_KIB
        )

    def _looked_at(self) -> sqlite3.Connection:
        return look(self.path, check=self._check)

    def _check(self, db: sqlite3.Connection) -> None:
        check_ours(db, VERSION, "the outbox")

    def _set_aside(self, error: Exception) -> None:
        """Keep a damaged file under another name. Raises OSError."""
        aside = set_aside(self.path, stamp_of(self._clock()))
        log.error(
            "%s is damaged (%s); it is kept as %s, and a new one is begun. Let `discoclaw nostr recover` "
            "find what relays have, and `discoclaw nostr push` give them the rest",
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
            raise MemoryFault(f"the outbox {self.path} can't be used: {why}") from error


def _prepare(db: sqlite3.Connection) -> None:
    """Make the tables of a new file; raise for a damaged one."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        error = sqlite3.DatabaseError(found)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    make_tables(db, SCHEMA, VERSION)

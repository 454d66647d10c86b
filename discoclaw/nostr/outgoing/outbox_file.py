"""The outbox's file: opened, locked, kept aside when it is damaged. Blocking; every fault is a `MemoryFault`.

WAL, and synced with each commit: what was promised outlives a killed process and a power cut. What is deleted
is overwritten. One connection, one lock. Knows nothing about what is in the tables.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from discoclaw.core.errors import MemoryFault
from discoclaw.core.ports import Clock
from discoclaw.memory.disk.database import FAULTS, connect
from discoclaw.memory.disk.files import stamp_of
from discoclaw.nostr.outgoing.outbox_rows import check_version, prepare
from discoclaw.search.archive_rows import checkpoint, transaction

log = logging.getLogger(__name__)

CACHE_KIB = 8_000
"""RAM for pages of the file."""
_BESIDE = ("-wal", "-shm")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WAYS_OUT = {
    sqlite3.SQLITE_BUSY: "another program has locked it; let that one finish",
    sqlite3.SQLITE_READONLY: "it can not be written; look at the rights of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it can not be opened; look at the rights of the file and its folder",
    sqlite3.SQLITE_FULL: "the disk is full; make room, and it goes on by itself",
    sqlite3.SQLITE_IOERR: "the disk fails, or is full",
    sqlite3.SQLITE_CORRUPT: "it is damaged; the next start keeps it aside and begins a new one",
    sqlite3.SQLITE_NOTADB: "it is damaged; the next start keeps it aside and begins a new one",
}


class OutboxFile:
    """The file at `path`. Used by one thread at a time; the others wait."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None

    def open(self) -> None:
        """Take the file, or make it. A damaged one is kept aside, and a new one begun. Raises MemoryFault."""
        with self._lock, self._faults():
            if self._db is not None:
                return
            try:
                self._db = self._connected()
            except FAULTS as error:
                if _code(error) not in _DAMAGED:
                    raise
                self._set_aside(error)
                self._db = self._connected()

    def open_to_read(self) -> None:
        """Look at the file and never change it; another program may be using it. Raises MemoryFault."""
        with self._lock, self._faults():
            if not self.path.exists():
                raise FileNotFoundError("it is not there: nothing was ever queued")
            address = f"file:{quote(str(self.path.absolute()))}?mode=ro"
            db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            try:
                check_version(db)
            except BaseException:
                db.close()
                raise
            self._db = db

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._db is not None:
                with suppress(sqlite3.Error):
                    self._db.close()
                self._db = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone. Raises MemoryFault."""
        with self._lock, self._faults():
            if self._db is None:
                raise OSError("it is not open")
            yield self._db

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

    def _connected(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # for us alone; what SQLite puts beside it gets the same rights
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        db = connect(self.path)
        try:
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            check_version(db)
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                error = sqlite3.DatabaseError(found)
                error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                raise error
            prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _set_aside(self, error: Exception) -> None:
        """Keep a damaged file under another name. Raises OSError."""
        stamp, number = stamp_of(self._clock()), 1
        aside = self.path.with_name(f"{self.path.name}.corrupt-{stamp}")
        while aside.exists():
            number += 1
            aside = self.path.with_name(f"{self.path.name}.corrupt-{stamp}-{number}")
        for suffix in _BESIDE:
            with suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
        self.path.rename(aside)
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
            why = _WAYS_OUT.get(_code(error))
            text = f"{why} ({error})" if why is not None else str(error)
            raise MemoryFault(f"the outbox {self.path} can not be used: {text}") from error


def _code(error: Exception) -> int:
    """SQLite's primary code for what went wrong; 0 where it has none."""
    if isinstance(error, UnicodeDecodeError):  # it quotes a damaged file
        return sqlite3.SQLITE_CORRUPT
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF if isinstance(code, int) else 0

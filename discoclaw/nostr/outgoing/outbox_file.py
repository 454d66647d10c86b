"""The outbox's SQLite file: opened, locked, and set aside when it is damaged. Blocking.

WAL, synced with each commit: what was committed survives a killed process and a power cut. Deleted rows are
overwritten. One connection, one lock. Every fault is a MemoryFault. Knows nothing about the tables' content.
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
"""Memory for cached pages."""
_BESIDE = ("-wal", "-shm")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WAYS_OUT = {
    sqlite3.SQLITE_BUSY: "another program has locked it; wait until that one has finished",
    sqlite3.SQLITE_READONLY: "it cannot be written; check the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check the permissions of the file and its folder",
    sqlite3.SQLITE_FULL: "the disk is full; free some space, and mirroring continues by itself",
    sqlite3.SQLITE_IOERR: "the disk fails or is full; check it",
    sqlite3.SQLITE_CORRUPT: "it is damaged; the next start sets it aside and begins a new one",
    sqlite3.SQLITE_NOTADB: "it is damaged; the next start sets it aside and begins a new one",
}


class OutboxFile:
    """The file at `path`. One thread uses it at a time; the others wait."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None

    def open(self) -> None:
        """Open or create the file. A damaged one is set aside, and a new one begun. Raises MemoryFault."""
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
        """Open the file without ever changing it, even while another program uses it. Raises MemoryFault."""
        with self._lock, self._faults():
            if not self.path.exists():
                raise FileNotFoundError("it doesn't exist: nothing was ever mirrored")
            address = f"file:{quote(str(self.path.absolute()))}?mode=ro"
            db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            try:
                check_version(db)
            except BaseException:
                db.close()
                raise
            self._db = db

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                with suppress(sqlite3.Error):
                    self._db.close()
                self._db = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, exclusively for this thread. Raises MemoryFault."""
        with self._lock, self._faults():
            if self._db is None:
                raise OSError("it is not open")
            yield self._db

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

    def _connected(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # readable only by us; SQLite gives its other files the same mode
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
        """Rename a damaged file, so that it can be inspected. Raises OSError."""
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
            why = _WAYS_OUT.get(_code(error))
            text = f"{why} ({error})" if why is not None else str(error)
            raise MemoryFault(f"cannot use the outbox {self.path}: {text}") from error


def _code(error: Exception) -> int:
    """SQLite's primary error code; 0 if there is none."""
    if isinstance(error, UnicodeDecodeError):  # sqlite3 raises it when damaged bytes are in its message
        return sqlite3.SQLITE_CORRUPT
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF if isinstance(code, int) else 0

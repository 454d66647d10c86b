"""Opening, changing and closing SQLite files, and handling damaged ones. Blocking.

`connect` and `transaction` are enough for a file that is opened for one operation; `Database` keeps its
connection open. Callers close what they open. Independent of what is in the tables.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from discoclaw.core.errors import NewerSchema
from discoclaw.store.files import claim, make_folder, name_for, opener, unused_name

T = TypeVar("T")

BUSY_S = 5.0
"""How long another program may lock a file before that is an error."""
FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a statement; a UnicodeDecodeError replaces SQLite's if its message quotes a damaged file."""
BESIDE = ("-wal", "-shm", "-journal")
"""The suffixes of the files that SQLite puts beside a database."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NO_SPACE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_REASONS = {
    sqlite3.SQLITE_BUSY: "another program has locked it; let that one finish, and try again",
    sqlite3.SQLITE_READONLY: "it can't be written; look at the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it can't be opened; look at the permissions of the file and its folder",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk fails, or is full",
}


# ---------------------------------------------------------------------- connections


def rows_of(path: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a database that only reads; none if there is no file. Raises OSError."""
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()
    except sqlite3.Error as error:
        raise OSError(f"{path} cannot be read: {error}") from error


def connect(
    path: Path | None,
    *,
    check: Callable[[sqlite3.Connection], None] = lambda db: None,
    prepare: Callable[[sqlite3.Connection], None] = lambda db: None,
    durable: bool = False,
    as_bytes: bool = False,
    alone: bool = False,
    cache_kib: int | None = None,
) -> sqlite3.Connection:
    """Return a connection in autocommit mode, for one thread at a time; None opens a database in RAM.

    `check` runs before anything is written, and raises for a file that must not be touched; `prepare` creates
    the tables. A commit survives a killed process, with `durable` also a power cut. Only the bot's user
    reads a new file. `alone` keeps everybody else out; SQLite then reads without the files beside a database,
    which a full disk has no space for. Deleted content is overwritten in the file, since it may be somebody's
    words. Raises sqlite3.Error, OSError and whatever `check` and `prepare` raise.
    """
    if path is not None:
        make_folder(path.parent)
        with suppress(FileExistsError):  # SQLite gives the files beside it the same permissions
            os.close(opener(os.fspath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR))
    settings = [
        "secure_delete = ON",
        "temp_store = MEMORY",
        "journal_mode = WAL",
        f"synchronous = {'FULL' if durable else 'NORMAL'}",
        *([f"cache_size = -{cache_kib}"] if cache_kib is not None else []),
    ]

    def begin(db: sqlite3.Connection) -> None:
        check(db)
        for setting in settings:
            db.execute(f"PRAGMA {setting}")
        prepare(db)

    return _opened(path if path is not None else ":memory:", begin, as_bytes=as_bytes, alone=alone)


def look(
    path: Path,
    *,
    check: Callable[[sqlite3.Connection], None] = lambda db: None,
    as_bytes: bool = False,
    alone: bool = False,
    tidy: bool = False,
) -> sqlite3.Connection:
    """Return a connection that changes nothing: closing it does not even move the WAL into the file.

    `check` may raise to prevent it. `alone` is as for `connect`. With it, and with `tidy`, closing does move
    the WAL. Where no WAL lies beside the database, nobody uses it; the files that this connection makes there
    are removed as it closes, which SQLite does only for one that may write.
    """
    unused = not path.with_name(f"{path.name}-wal").exists()
    address = f"file:{quote(str(path.absolute()))}?mode={'rw' if alone or tidy or unused else 'ro'}"
    return _opened(address, check, as_bytes=as_bytes, alone=alone, uri=True)


def _opened(
    where: Path | str,
    begin: Callable[[sqlite3.Connection], None],
    *,
    as_bytes: bool,
    alone: bool,
    uri: bool = False,
) -> sqlite3.Connection:
    """A connection to a path or an address (`uri`), after `begin` of it; closed if that raises."""
    db = sqlite3.connect(where, timeout=BUSY_S, isolation_level=None, check_same_thread=False, uri=uri)
    try:
        if as_bytes:
            db.text_factory = bytes
        if alone:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        begin(db)
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction: either everything in it takes effect, or nothing does."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # after some failures SQLite has rolled back already
            db.execute("ROLLBACK")
        raise


def version_of(db: sqlite3.Connection) -> int:
    """The version of this bot's tables; 0 if there are none."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def check_ours(db: sqlite3.Connection, newest: int, name: object) -> None:
    """Raise NewerSchema for tables of a later version than `newest`, OSError for another program's file."""
    version = version_of(db)
    if version > newest:
        raise NewerSchema(f"{name} has version {version}, which this program does not know; update it")
    if version == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
        raise OSError(f"{name} is a database of another program; move it away")


def make_tables(db: sqlite3.Connection, schema: Iterable[str], version: int) -> None:
    """Create the tables of a new file, unless another process was faster."""
    if version_of(db) == 0:
        with transaction(db):
            if version_of(db) == 0:
                for statement in schema:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {version}")


def checkpoint(db: sqlite3.Connection, *, wait: bool = True) -> bool:
    """Move everything into the file and empty its WAL. Returns False if a reader prevents that.

    By default a reader gets `BUSY_S` to finish.
    """
    (patience_ms,) = db.execute("PRAGMA busy_timeout").fetchone()
    if not wait:
        db.execute("PRAGMA busy_timeout = 0")
    try:
        busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        db.execute(f"PRAGMA busy_timeout = {patience_ms}")
    return not busy


@contextmanager
def copied(path: Path, beside: Path) -> Iterator[Path]:
    """A copy of a database as it was at one moment, in the folder `beside`; afterwards it is removed.

    Others may read and write meanwhile: all pages are copied in one read transaction. Raises sqlite3.Error,
    OSError.
    """
    make_folder(beside)
    copy = beside / name_for(path.name)
    handle = opener(os.fspath(copy), os.O_CREAT | os.O_EXCL | os.O_RDWR)
    try:
        claim(handle)
        with closing(look(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target, progress=_give_up(path))
        yield copy
    finally:
        os.close(handle)
        remove(copy)


def _give_up(path: Path) -> Callable[[int, int, int], None]:
    """For a copy, which Python would try for ever: raises OSError where another program prevents it."""
    until = time.monotonic() + BUSY_S

    def look(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > until:
            raise OSError(f"{path} can't be copied: {_REASONS[sqlite3.SQLITE_BUSY]}")

    return look


# ---------------------------------------------------------------------- errors


def code_of(error: BaseException) -> int:
    """SQLite's primary error code; 0 if the error has none."""
    if isinstance(error, UnicodeDecodeError):  # the message quotes a damaged file
        return sqlite3.SQLITE_CORRUPT
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF if isinstance(code, int) else 0


def is_damage(error: BaseException) -> bool:
    """Whether an error means that the file is damaged, or not a database."""
    return code_of(error) in _DAMAGED


def is_full(error: BaseException) -> bool:
    """Whether an error may mean that there is no space left: SQLite has several codes for that."""
    return code_of(error) in _NO_SPACE


def explained(error: BaseException) -> str:
    """An error's text, preceded by the reason and the way out if its code is known."""
    reason = _REASONS.get(code_of(error))
    return f"{reason} ({error})" if reason is not None else str(error)


# ---------------------------------------------------------------------- damaged files


def set_aside(path: Path, stamp: str) -> Path:
    """Rename a damaged file, and those beside it, to `<name>.corrupt-<stamp>`. Raises OSError."""
    aside = unused_name(path, "corrupt", stamp)
    for end in (*BESIDE, ""):
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").rename(f"{aside}{end}")
    return aside


def remove(path: Path) -> None:
    """Remove a file and those that SQLite put beside it. Raises OSError."""
    for end in ("", *BESIDE):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


class Database:
    """One file with one connection, for one thread at a time. Opened at its first use.

    `opened` makes the connection, with its tables. If `run` fails with an error that `damaged` recognises,
    `discard` moves the file out of the way, and a new one is started. Without `discard` the file stays, and
    the error is raised.
    """

    def __init__(
        self,
        opened: Callable[[], sqlite3.Connection],
        *,
        discard: Callable[[Exception], None] | None = None,
        damaged: Callable[[Exception], bool] = is_damage,
    ) -> None:
        self.lock = threading.RLock()
        """Held by the thread that is using the connection."""
        self._opened = opened
        self._discard = discard
        self._damaged = damaged
        self._db: sqlite3.Connection | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._db is not None

    def open(self) -> sqlite3.Connection:
        """Return the connection. Raises sqlite3.Error, OSError; a damaged file stays where it is."""
        with self.lock:
            if self._db is None:
                self._db = self._opened()
            return self._db

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` returns; if the file turns out to be damaged, repeat it once on a new one.

        After any failure the next use opens a new connection. Raises sqlite3.Error, OSError.
        """
        with self.lock:
            try:
                return self._tried(work)
            except FAULTS as error:
                if self._discard is None or not self._damaged(error):
                    raise
                self._discard(error)
                return self._tried(work)

    def close(self, wait_s: float = -1) -> bool:
        """Release the file until its next use. Returns False if it is still in use after `wait_s`."""
        if not self.lock.acquire(timeout=wait_s):
            return False
        try:
            if self._db is not None:
                with suppress(sqlite3.Error):
                    self._db.close()
                self._db = None
        finally:
            self.lock.release()
        return True

    def _tried(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self.open())
        except BaseException:
            self.close()
            raise

"""SQLite files: how one is opened, changed and closed, and what happens when it is damaged. Blocking.

`connect` and `transaction` are enough for a file that is opened for one operation; `Database` keeps its
connection. Whoever opens either closes it. Knows nothing about what is in the tables.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from discoclaw.core.errors import NewerSchema
from discoclaw.memory.disk.files import unused_name

T = TypeVar("T")

BUSY_S = 5.0
"""How long another program may keep a file locked before that is an error."""
FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What a statement raises: the latter in place of the former, where the message quotes a damaged file."""
BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite puts beside a file, by the end of its name."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_REASONS = {
    sqlite3.SQLITE_BUSY: "another program has locked it; let that one finish, and try again",
    sqlite3.SQLITE_READONLY: "it can't be written; look at the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it can't be opened; look at the permissions of the file and its folder",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk fails, or is full",
}


# ---------------------------------------------------------------------- connections


def connect(
    path: Path | None,
    *,
    check: Callable[[sqlite3.Connection], None] = lambda db: None,
    prepare: Callable[[sqlite3.Connection], None] = lambda db: None,
    durable: bool = False,
    private: bool = False,
    as_bytes: bool = False,
    cache_kib: int | None = None,
) -> sqlite3.Connection:
    """A connection in autocommit mode, for use by one thread at a time; for None, to a database in RAM.

    `check` sees the file before anything is written into it, and raises for one that is to be left alone;
    `prepare` makes the tables. A commit survives a killed process, with `durable` also a power cut.
    `private`: a new file is readable by us alone. What is deleted is overwritten in the file, since it may
    be somebody's words. Raises sqlite3.Error, OSError and what these two raise.
    """
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if private:  # what SQLite puts beside a file gets the same permissions
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    where = path if path is not None else ":memory:"
    db = sqlite3.connect(where, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    settings = [
        "secure_delete = ON",
        "temp_store = MEMORY",
        "journal_mode = WAL",
        f"synchronous = {'FULL' if durable else 'NORMAL'}",
        *([f"cache_size = -{cache_kib}"] if cache_kib is not None else []),
    ]
    try:
        if as_bytes:
            db.text_factory = bytes
        check(db)
        for setting in settings:
            db.execute(f"PRAGMA {setting}")
        prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def look(
    path: Path, *, check: Callable[[sqlite3.Connection], None] = lambda db: None, as_bytes: bool = False
) -> sqlite3.Connection:
    """A connection that changes nothing: it does not even bring the WAL into the file when it is closed.

    `check` may raise to have none.
    """
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        if as_bytes:
            db.text_factory = bytes
        check(db)
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Everything that is done inside takes effect, or nothing does."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # some failures have rolled back already
            db.execute("ROLLBACK")
        raise


def version_of(db: sqlite3.Connection) -> int:
    """The version of our tables; 0 where there are none."""
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
    """Make the tables of a new file, unless another process was quicker."""
    if version_of(db) == 0:
        with transaction(db):
            if version_of(db) == 0:
                for statement in schema:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {version}")


def checkpoint(db: sqlite3.Connection, *, wait: bool = True) -> bool:
    """Bring everything into the file and empty its WAL. False when a reader prevents that.

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


# ---------------------------------------------------------------------- errors


def code_of(error: BaseException) -> int:
    """SQLite's primary code of an error; 0 where it has none."""
    if isinstance(error, UnicodeDecodeError):  # the message quotes a damaged file
        return sqlite3.SQLITE_CORRUPT
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF if isinstance(code, int) else 0


def is_damage(error: BaseException) -> bool:
    """Whether an error means that the file is damaged, or no database."""
    return code_of(error) in _DAMAGED


def explained(error: BaseException) -> str:
    """An error's text, behind the reason and the way out where its code tells them."""
    reason = _REASONS.get(code_of(error))
    return f"{reason} ({error})" if reason is not None else str(error)


# ---------------------------------------------------------------------- damaged files


def set_aside(path: Path, stamp: str) -> Path:
    """Rename a damaged file, and what lies beside it, to `<name>.corrupt-<stamp>`. Raises OSError."""
    aside = unused_name(path, "corrupt", stamp)
    for end in (*BESIDE, ""):
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").rename(f"{aside}{end}")
    return aside


def remove(path: Path) -> None:
    """Remove a file and what lies beside it. Raises OSError."""
    for end in ("", *BESIDE):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


class Database:
    """One file with one connection, which one thread uses at a time. It is opened when it is first used.

    `opened` makes the connection, with its tables. When `run` fails with an error that means, to `damaged`,
    that the file is damaged, `discard` takes it out of the way, and a new one is begun. Without `discard`
    it stays where it is, and the error is raised.
    """

    def __init__(
        self,
        opened: Callable[[], sqlite3.Connection],
        *,
        discard: Callable[[Exception], None] | None = None,
        damaged: Callable[[Exception], bool] = is_damage,
    ) -> None:
        self.lock = threading.RLock()
        """Whoever uses the connection has it."""
        self._opened = opened
        self._discard = discard
        self._damaged = damaged
        self._db: sqlite3.Connection | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._db is not None

    def open(self) -> sqlite3.Connection:
        """The connection. Raises sqlite3.Error, OSError; a damaged file stays where it is."""
        with self.lock:
            if self._db is None:
                self._db = self._opened()
            return self._db

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` returns; if the file turns out to be damaged, it runs once more on a new one.

        After any failure the connection is opened anew at the next use. Raises sqlite3.Error, OSError.
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
        """Release the file; it is opened again when it is used again. False if it is used for `wait_s`."""
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

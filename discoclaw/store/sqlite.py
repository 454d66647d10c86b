"""The store as one SQLite file, `memory.sqlite`: the same names and the same bytes as the plain files.

    documents  one row a text, by the name its file would have below `data/memory`
    logs       the ledgers and the tombstones, by the same names
    lines      one row a line of a log: the line itself, and the byte at which it begins

A ledger is read by putting its lines together, so ids, hashes and `verify` know no difference. There is no
durable file to edit by hand, and snapshots stay beside (`data/cache`), since they can be lost.

A change is one transaction. The file is in WAL mode with synchronous FULL: the log is synced with each
commit, so what was acknowledged outlives a killed process and a power cut, as with files (NORMAL would lose
the last commits in a power cut). A file that is damaged is never written: the start is refused, because the
file says also who opted out and who was erased, and `verify --repair` saves what can be read (`rescue`).

Removed rows are overwritten (secure_delete); `wipe` writes the whole file anew and empties the WAL, because
SQLite leaves copies of rows behind where it once moved them. That takes as much RAM as the file is long.
One connection, one lock; blocking. Texts come out of it as bytes (`text_factory`), since a line need not be
UTF-8. Knows nothing about what the bytes mean.
"""

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from discoclaw.store import database
from discoclaw.store.database import FAULTS, explained, is_damage, is_full
from discoclaw.store.files import name_for, opener, sync_folder, unused_name
from discoclaw.store.port import (
    LEDGERS,
    NO_LOG,
    Disk,
    Documents,
    Head,
    Ledgers,
    Log,
    inside,
    is_log,
    overtaken,
    subject_of,
)
from discoclaw.store.threads import WRITES

log = logging.getLogger(__name__)

T = TypeVar("T")

FILE = "memory.sqlite"
VERSION = 1

_WAY_OUT = (
    "nothing in it is touched; put a backup in its place, or let `discoclaw memory verify --repair` "
    "keep it aside and save what can be read"
)

_SCHEMA = (
    "CREATE TABLE documents (name TEXT PRIMARY KEY NOT NULL, content TEXT NOT NULL)",
    "CREATE TABLE logs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE lines (
        id INTEGER PRIMARY KEY,
        log INTEGER NOT NULL REFERENCES logs (id),
        position INTEGER NOT NULL,
        line TEXT NOT NULL,
        UNIQUE (log, position)
    )""",
)
# A line is stored without the newline after its last byte. What is not UTF-8 is stored as a blob.
_END = "position + length(CAST(line AS BLOB)) + 1"
_SIZE = f"SELECT {_END} FROM lines WHERE log = (SELECT id FROM logs WHERE name = ?) ORDER BY position DESC"
_READ = "SELECT line FROM lines WHERE log = (SELECT id FROM logs WHERE name = ?) ORDER BY position"
_BY_AGE = f"""
    SELECT logs.name, {_END} FROM logs LEFT JOIN lines ON lines.id =
        (SELECT id FROM lines WHERE log = logs.id ORDER BY position DESC LIMIT 1)
    WHERE logs.name >= :first AND logs.name < :end ORDER BY lines.id, logs.name
"""
_NAMES = """
    SELECT name FROM documents WHERE name >= :first AND name < :end
    UNION SELECT name FROM logs WHERE name >= :first AND name < :end
"""


class SqliteDisk(Disk):
    """The file below `root` (`data/memory`). The first write creates it, or `open` does."""

    name = "sqlite"

    def __init__(self, root: Path, file: str = FILE) -> None:
        self.file = root / file
        self.ledgers = _Ledgers(self)
        self._database = database.Database(self._connected)
        self._known: tuple[int, int] | None = None  # identifies the file that the connection is to
        self._alone = False  # whether the connection keeps others out, because the disk is full

    def documents(self, folder: str) -> Documents:
        return _Documents(self, f"{folder}/" if folder else "")

    def log(self, name: str) -> Log:
        return _Log(self, name)

    def open(self) -> None:
        with self._database.lock, as_ours(self.file):
            self._there()
            try:
                database.checkpoint(self._database.open(), wait=False)  # a killed process may have left a WAL
            except sqlite3.Error as error:
                if not is_full(error):
                    raise
                log.warning("%s can't be written: %s", self.file, explained(error))

    def check(self) -> str | None:
        """SQLite's own check of the whole file; takes about a millisecond for each MB."""
        if _beheaded(self.file):
            return f"{self.file} is damaged (it is gone, and its log is not); {_WAY_OUT}"
        if not self.file.exists():
            return None
        try:
            with as_ours(self.file):
                found, _ = _tried_alone(self._found)
        except Damaged as error:
            return str(error)
        if found == b"ok":
            return None
        damage = [line for line in found.decode(errors="replace").splitlines() if not line.startswith("***")]
        return f"{self.file} is damaged ({'; '.join(damage)}); {_WAY_OUT}"

    def _found(self, *, alone: bool = False) -> bytes:
        """The result of SQLite's check of the whole file. Raises sqlite3.Error."""
        with closing(database.look(self.file, as_bytes=True, alone=alone)) as db:
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        return bytes(found)

    def rescue(self, stamp: str) -> list[str]:
        if (why := self.check()) is None:
            return []
        self.close()
        saved = _Readable(self.file)
        new = SqliteDisk(self.file.parent, name_for(self.file.name))
        new.fill((*saved.documents.items(), *saved.logs.items()))
        new.close()  # leaves no WAL behind
        aside = _keep_aside(self.file, stamp)
        _put_in_place(new.file, self.file)
        log.error("%s; it is kept as %s", why, aside.name)
        found = f"{len(saved.logs)} logs and {len(saved.documents)} other texts were saved"
        return [
            f"{self.file.name} was damaged and is written anew; what was there is kept as {aside}",
            f"{found}, but not everything could be read" if saved.missing else found,
        ]

    def close(self) -> None:
        self._database.close()

    def wipe(self) -> None:
        """Destroy remains of removed rows, and copies of a damaged file, which may have anybody's words."""
        with self.reading() as db:
            if db is not None:
                db.execute("VACUUM")
                if not database.checkpoint(db):
                    raise OSError(f"{self.file}-wal could not be emptied: another program is reading it")
        for copies in (f"{self.file.name}.corrupt-*", f".{self.file.name}.*"):
            for copy in self.file.parent.glob(copies):
                copy.unlink(missing_ok=True)

    @contextmanager
    def frozen(self, beside: Path) -> Iterator[Disk]:
        if not self.file.exists():
            yield self
            return
        if self._alone:
            raise OSError(f"{self.file} can't be copied: the disk is full; free some space")
        with (
            as_ours(self.file),
            database.copied(self.file, beside) as copy,
            closing(SqliteDisk(copy.parent, copy.name)) as frozen,
        ):
            yield frozen

    def fill(self, texts: Iterable[tuple[str, bytes]]) -> None:
        """Write logs and other texts by their names in the store, all of them or none. Raises OSError."""
        with self.writing() as db:
            for name, content in texts:
                if is_log(name):
                    _put(db, name, content, at=0)
                else:
                    _put_document(db, name, content)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """The connection, for this thread alone; None if there is no file. Raises OSError."""
        with self._database.lock, as_ours(self.file):
            yield self._database.open() if self._there() else None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection in its own transaction: afterwards either all of it is durable, or nothing is."""
        with WRITES.noted(), self._database.lock, as_ours(self.file):
            self._there()
            db = self._database.open()
            with database.transaction(db):
                yield db
            if self._alone:  # there is space again, so let others read the file too
                self._database.close()

    def _there(self) -> bool:
        """Whether the file exists with tables in it. If not, it is closed, since writes would be lost."""
        there = _inode(self.file)
        if there != self._known:
            self._database.close()
        return there is not None

    def _connected(self) -> sqlite3.Connection:
        def check(db: sqlite3.Connection) -> None:
            database.check_ours(db, VERSION, self.file)

        def prepare(db: sqlite3.Connection) -> None:
            database.make_tables(db, _SCHEMA, VERSION)

        def connected(*, alone: bool = False) -> sqlite3.Connection:
            return database.connect(
                self.file, check=check, prepare=prepare, durable=True, as_bytes=True, alone=alone
            )

        db, full = _tried_alone(connected)
        if full is not None:
            why = "%s: %s; until there is space, it is only read, and by no other program"
            log.warning(why, self.file, explained(full))
        self._alone = full is not None
        self._known = _inode(self.file)
        return db


def _tried_alone(work: Callable[..., T]) -> tuple[T, sqlite3.Error | None]:
    """What `work` returns; where the disk is full, it keeps others out, since it has no space to share.

    Returns the error of a full disk, too.
    """
    try:
        return work(), None
    except sqlite3.Error as error:
        if not is_full(error):
            raise
        return work(alone=True), error


class _Log(Log):
    def __init__(self, disk: SqliteDisk, name: str) -> None:
        self._disk = disk
        self._name = name

    @property
    def path(self) -> Path:
        return self._disk.file / self._name

    @property
    def beside(self) -> Documents:
        return self._disk.documents(self._name.rpartition("/")[0])

    def head(self) -> Head:
        with self._disk.reading() as db:
            return Head(_size(db, self._name)) if db is not None else NO_LOG

    def read(self) -> bytes:
        with self._disk.reading() as db:
            found = db.execute(_READ, (self._name,)).fetchall() if db is not None else []
        return b"".join(line + b"\n" for (line,) in found)

    def append(self, content: bytes, *, after: Head) -> Head:
        with self._disk.writing() as db:
            self._compare(db, after)
            _put(db, self._name, content, at=after.size)
        return Head(after.size + len(content))

    def cut(self, size: int) -> None:
        with self._disk.writing() as db:
            db.execute(
                "DELETE FROM lines WHERE log = (SELECT id FROM logs WHERE name = ?) AND position >= ?",
                (self._name, size),
            )

    def replace(self, content: bytes, *, after: Head | None = None) -> None:
        with self._disk.writing() as db:
            if after is not None:
                self._compare(db, after)
            _remove_log(db, self._name)
            _put(db, self._name, content, at=0)

    def _compare(self, db: sqlite3.Connection, after: Head) -> None:
        if (head := Head(_size(db, self._name))) != after:
            raise overtaken(self.path, head, after)


class _Ledgers(Ledgers):
    _disk: SqliteDisk

    def by_age(self) -> list[tuple[str, int]]:
        with self._disk.reading() as db:
            found = db.execute(_BY_AGE, inside(f"{LEDGERS}/")).fetchall() if db is not None else []
        sizes = ((subject_of(name.decode()), size or 0) for name, size in found)
        return [(subject, size) for subject, size in sizes if subject is not None]


class _Documents(Documents):
    def __init__(self, disk: SqliteDisk, prefix: str) -> None:
        self._disk = disk
        self._prefix = prefix

    @property
    def folder(self) -> Path:
        return self._disk.file / self._prefix

    def names(self) -> list[str]:
        with self._disk.reading() as db:
            found = db.execute(_NAMES, inside(self._prefix)).fetchall() if db is not None else []
        return sorted({name.decode().removeprefix(self._prefix).partition("/")[0] for (name,) in found})

    def read(self, name: str) -> bytes:
        with self._disk.reading() as db:
            query = "SELECT content FROM documents WHERE name = ?"
            row = db.execute(query, (self._prefix + name,)).fetchone() if db is not None else None
        if row is None:
            raise FileNotFoundError(f"{self.folder / name} is not there")
        return bytes(row[0])

    def write(self, name: str, content: bytes) -> None:
        with self._disk.writing() as db:
            _put_document(db, self._prefix + name, content)

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        wanted = [self._prefix + name for name in names]
        if not wanted or not self._disk.file.exists():
            return 0, []
        try:
            with self._disk.writing() as db:
                query = "DELETE FROM documents WHERE name = ?"
                return sum(db.execute(query, (one,)).rowcount + _remove_log(db, one) for one in wanted), []
        except OSError as error:
            return 0, [f"{self._disk.file / name}: {error}" for name in wanted]


# ---------------------------------------------------------------------- steps of a transaction


def _size(db: sqlite3.Connection, name: str) -> int:
    """The length of a log in bytes."""
    row = db.execute(_SIZE, (name,)).fetchone()
    return int(row[0]) if row is not None else 0


def _put(db: sqlite3.Connection, name: str, content: bytes, *, at: int) -> None:
    """Add lines to a log, the first of them at byte `at`."""
    db.execute("INSERT OR IGNORE INTO logs (name) VALUES (?)", (name,))
    (log,) = db.execute("SELECT id FROM logs WHERE name = ?", (name,)).fetchone()
    for line in content.removesuffix(b"\n").split(b"\n") if content else ():
        db.execute("INSERT INTO lines (log, position, line) VALUES (?, ?, ?)", (log, at, _text(line)))
        at += len(line) + 1


def _put_document(db: sqlite3.Connection, name: str, content: bytes) -> None:
    """Store a text under a name, replacing what is there."""
    db.execute(
        "INSERT INTO documents (name, content) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET content = excluded.content",
        (name, _text(content)),
    )


def _remove_log(db: sqlite3.Connection, name: str) -> int:
    """Remove a log with its lines. Returns whether it existed."""
    db.execute("DELETE FROM lines WHERE log = (SELECT id FROM logs WHERE name = ?)", (name,))
    return db.execute("DELETE FROM logs WHERE name = ?", (name,)).rowcount


def _text(content: bytes) -> str | bytes:
    """Text if it is valid UTF-8, so that people can read the file with any tool; otherwise the bytes."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content


# ---------------------------------------------------------------------- errors


class Damaged(OSError):
    """The file is damaged, or another program's."""


@contextmanager
def as_ours(file: Path) -> Iterator[None]:
    """Convert SQLite's errors to OSErrors that say what to do."""
    try:
        yield
    except FAULTS as error:
        if is_damage(error):
            raise Damaged(f"{file} is damaged ({error}); {_WAY_OUT}") from error
        raise OSError(f"{file}: {explained(error)}") from error


def _inode(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return (status.st_dev, status.st_ino) if status.st_size else None  # a full disk may leave an empty one


# ---------------------------------------------------------------------- rescue


def _beheaded(file: Path) -> bool:
    """Whether a file is gone or empty but its WAL is not: SQLite would silently drop the WAL."""
    return not _bytes_of(file) and _bytes_of(file.with_name(f"{file.name}-wal")) > 0


def _bytes_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


class _Readable:
    """What can be read of a file, however damaged it is: logs and documents by name. Writes nothing.

    `missing` says that some places could not be read.
    """

    def __init__(self, file: Path) -> None:
        self.logs: dict[str, bytes] = {}
        self.documents: dict[str, bytes] = {}
        self.missing = _beheaded(file)
        if not self.missing:
            try:
                with closing(database.look(file, as_bytes=True)) as db:
                    self._read(db, most=file.stat().st_size // 20)  # a row takes at least so many bytes
            except FAULTS:
                self.missing = True

    def _read(self, db: sqlite3.Connection, most: int) -> None:
        for _, name, content in self._rows(db, "documents", "name, content", most):
            self.documents[name.decode()] = content
        logs = dict(self._rows(db, "logs", "name", most))
        with suppress(*FAULTS):  # the index is a second copy of a vital page
            logs |= db.execute("SELECT id, name FROM logs INDEXED BY sqlite_autoindex_logs_1").fetchall()
        lines: dict[int, list[bytes]] = {log: [] for log in logs}
        for log, _, line in sorted(row[1:] for row in self._rows(db, "lines", "log, position, line", most)):
            if log in lines:
                lines[log].append(line + b"\n")
            else:
                self.missing = True
        self.logs = {name.decode(): b"".join(lines[log]) for log, name in logs.items()}

    def _rows(self, db: sqlite3.Connection, table: str, columns: str, most: int) -> Iterator[tuple[Any, ...]]:
        """The rows of a table with their numbers; after an unreadable place, they are read one by one."""
        last, query = 0, f"SELECT rowid, {columns} FROM {table}"
        try:
            for row in db.execute(f"{query} NOT INDEXED ORDER BY rowid"):
                last = row[0]
                yield row
            return
        except FAULTS:
            self.missing = True
        top = last + most
        with suppress(*FAULTS):
            top = min(top, db.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0)
        for number in range(last + 1, top + 1):
            with suppress(*FAULTS):
                yield from db.execute(f"{query} WHERE rowid = ?", (number,)).fetchall()


def _keep_aside(file: Path, stamp: str) -> Path:
    """Copy a damaged file and its WAL beside it, durably. Returns where the copy is. Raises OSError."""
    aside = unused_name(file, "corrupt", stamp)
    for end in ("-wal", ""):
        source = file.with_name(file.name + end)
        if _bytes_of(source):
            with (
                source.open("rb") as old,
                open(aside.with_name(aside.name + end), "xb", opener=opener) as new,
            ):
                shutil.copyfileobj(old, new)
                new.flush()
                os.fsync(new.fileno())
    sync_folder(file.parent)
    return aside


def _put_in_place(new: Path, file: Path) -> None:
    """Replace a damaged file with a new one. Raises OSError."""
    for end in ("-wal", "-shm"):  # first, because SQLite would take an old WAL for the new file's
        file.with_name(file.name + end).unlink(missing_ok=True)
    os.replace(new, file)
    sync_folder(file.parent)

"""The rows of `memory.sqlite`: its tables, the steps of a transaction, and the conversion of its errors.

Texts come out of a connection as bytes (`text_factory`), since a line need not be UTF-8.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discoclaw.store.database import FAULTS, explained, is_damage

VERSION = 1

WAY_OUT = (
    "nothing in it is touched; put a backup in its place, or let `discoclaw memory verify --repair` "
    "keep it aside and save what can be read"
)

SCHEMA = (
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
READ = "SELECT line FROM lines WHERE log = (SELECT id FROM logs WHERE name = ?) ORDER BY position"
BY_AGE = f"""
    SELECT logs.name, {_END} FROM logs LEFT JOIN lines ON lines.id =
        (SELECT id FROM lines WHERE log = logs.id ORDER BY position DESC LIMIT 1)
    WHERE logs.name >= ? AND logs.name < ? ORDER BY lines.id, logs.name
"""


def between(prefix: str) -> tuple[str, str]:
    """For a query: the first name with this prefix, and the first one after all that have it."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\U0010ffff"


def names(db: sqlite3.Connection, table: str, prefix: str) -> list[str]:
    """The names in a table with this prefix, without it."""
    rows = db.execute(f"SELECT name FROM {table} WHERE name >= ? AND name < ?", between(prefix)).fetchall()
    return [name.decode().removeprefix(prefix) for (name,) in rows]


def size(db: sqlite3.Connection, name: str) -> int:
    """The length of a log in bytes."""
    row = db.execute(_SIZE, (name,)).fetchone()
    return int(row[0]) if row is not None else 0


def put(db: sqlite3.Connection, name: str, content: bytes, *, at: int) -> None:
    """Add lines to a log, the first of them at byte `at`."""
    db.execute("INSERT OR IGNORE INTO logs (name) VALUES (?)", (name,))
    (log,) = db.execute("SELECT id FROM logs WHERE name = ?", (name,)).fetchone()
    for line in content.removesuffix(b"\n").split(b"\n") if content else ():
        db.execute("INSERT INTO lines (log, position, line) VALUES (?, ?, ?)", (log, at, _text(line)))
        at += len(line) + 1


def put_document(db: sqlite3.Connection, name: str, content: bytes) -> None:
    """Store a text under a name, replacing what is there."""
    db.execute(
        "INSERT INTO documents (name, content) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET content = excluded.content",
        (name, _text(content)),
    )


def put_aside(db: sqlite3.Connection, name: str, content: bytes, label: str, stamp: str) -> str:
    """Store a content under an unused name. Returns the name."""
    aside, count = f"{name}.{label}-{stamp}", 1
    while db.execute("SELECT 1 FROM documents WHERE name = ?", (aside,)).fetchone() is not None:
        count += 1
        aside = f"{name}.{label}-{stamp}-{count}"
    put_document(db, aside, content)
    return aside


def remove(db: sqlite3.Connection, name: str) -> int:
    """Remove the document of this name. Returns how many there were."""
    return db.execute("DELETE FROM documents WHERE name = ?", (name,)).rowcount + remove_log(db, name)


def remove_log(db: sqlite3.Connection, name: str) -> int:
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
            raise Damaged(f"{file} is damaged ({error}); {WAY_OUT}") from error
        raise OSError(f"{file}: {explained(error)}") from error

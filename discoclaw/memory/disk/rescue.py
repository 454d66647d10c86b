"""Saves what it can of a damaged `memory.sqlite`: every row that is still readable, in a new file.

The damaged file is kept beside it, with its WAL, as `memory.sqlite.corrupt-<stamp>`. The next erasing of
anybody removes these copies, since nobody knows whose words are in them. `verify` finds what a ledger has
lost, just like lines lost from a file. Blocking. Independent of what the rows mean.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discoclaw.memory.disk.database import FAULTS, look
from discoclaw.memory.disk.files import sync_folder, unused_name
from discoclaw.memory.disk.private import opener

_LEAST_ROW = 20
"""The fewest bytes that a row takes in a file."""


@dataclass(slots=True)
class Saved:
    """The part that could be read: logs and documents by name. `missing`: some places could not be read."""

    logs: dict[str, bytes] = field(default_factory=dict)
    documents: dict[str, bytes] = field(default_factory=dict)
    missing: bool = False


def beheaded(file: Path) -> bool:
    """Whether a file is gone or empty but its WAL is not: SQLite would silently drop the WAL."""
    return not _size(file) and _size(file.with_name(f"{file.name}-wal")) > 0


def save(file: Path) -> Saved:
    """Return everything readable in a file, however damaged it is. Writes nothing."""
    saved = Saved(missing=beheaded(file))
    if saved.missing:
        return saved
    try:
        with closing(look(file, as_bytes=True)) as db:
            most = file.stat().st_size // _LEAST_ROW
            for _, name, content in _rows(db, "documents", "name, content", most, saved):
                saved.documents[name.decode()] = content
            rows = [*_rows(db, "logs", "name", most, saved), *_names_of_index(db)]
            names = {key: name.decode() for key, name in rows}
            lines = list(_rows(db, "lines", "log, position, line", most, saved))
    except FAULTS:
        saved.missing = True
        return saved
    saved.logs = _put_together(names, sorted(row[1:] for row in lines))
    saved.missing |= any(log not in names for _, log, *_ in lines)
    return saved


def keep_aside(file: Path, stamp: str) -> Path:
    """Copy a damaged file and its WAL beside it, durably. Returns where the copy is. Raises OSError."""
    aside = unused_name(file, "corrupt", stamp)
    for end in ("-wal", ""):
        source = file.with_name(file.name + end)
        if source.exists() and source.stat().st_size:
            _copy(source, aside.with_name(aside.name + end))
    sync_folder(file.parent)
    return aside


def put_in_place(new: Path, file: Path) -> None:
    """Replace a damaged file with a new one. Raises OSError."""
    for end in ("-wal", "-shm"):  # first, because SQLite would take an old WAL for the new file's
        file.with_name(file.name + end).unlink(missing_ok=True)
    os.replace(new, file)
    sync_folder(file.parent)


def _rows(
    db: sqlite3.Connection, table: str, columns: str, most: int, saved: Saved
) -> Iterator[tuple[Any, ...]]:
    """The rows of a table with their numbers; after an unreadable place, they are read one by one."""
    last = 0
    try:
        for row in db.execute(f"SELECT rowid, {columns} FROM {table} NOT INDEXED ORDER BY rowid"):
            last = row[0]
            yield row
        return
    except FAULTS:
        saved.missing = True
    for number in range(last + 1, _top(db, table, last + most) + 1):
        try:
            row = db.execute(f"SELECT rowid, {columns} FROM {table} WHERE rowid = ?", (number,)).fetchone()
        except FAULTS:
            continue
        if row is not None:
            yield row


def _names_of_index(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The numbers and names of the logs, from the index: a second copy of a vital page."""
    try:
        return db.execute("SELECT id, name FROM logs INDEXED BY sqlite_autoindex_logs_1").fetchall()
    except FAULTS:
        return []


def _top(db: sqlite3.Connection, table: str, most: int) -> int:
    """The number of the last row, as far as that is known."""
    try:
        (top,) = db.execute(f"SELECT max(rowid) FROM {table}").fetchone()
    except FAULTS:
        return most
    return min(int(top or 0), most)


def _put_together(names: Mapping[int, str], lines: list[tuple[Any, ...]]) -> dict[str, bytes]:
    """The logs by name, from lines that are sorted by log and position."""
    found: dict[int, list[bytes]] = {log: [] for log in names}
    for log, _, line in lines:
        if log in found:
            found[log].append(line + b"\n")
    return {names[log]: b"".join(content) for log, content in found.items()}


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as old, open(target, "xb", opener=opener) as new:
        shutil.copyfileobj(old, new)
        new.flush()
        os.fsync(new.fileno())

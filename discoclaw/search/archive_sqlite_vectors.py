"""The vectors of an archive in SQLite, in tables of its own file; their signatures lie in RAM. Blocking.

    vectors     one row for each message that has one: its place, and its vector with a byte for each number
    unembedded  the messages that still need one, and their places
    vectors_of  one row: the model that made them, their length, how many were removed, how many texts were
                sent on which day

Triggers keep them in step with `entries`: a message that is deleted, edited, or taken back loses its vector
in the same transaction as its words. An older version of the program, which knows nothing of these tables,
keeps them right too, so they are no new version of the file. They are made when vectors are first used. What
leaves the file leaves RAM at the end of the same change.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from discoclaw.core.entry import Entry
from discoclaw.search.archive_rows import COLUMNS, entry_of, place_of
from discoclaw.search.archive_vectors import FEWEST_TERMS, VectorWriter
from discoclaw.search.signatures import Row, Signatures
from discoclaw.store.database import FAULTS, placeholders, transaction

T = TypeVar("T")

_AT_ONCE = 10_000

_PENDING = f"""INSERT OR IGNORE INTO unembedded SELECT id, place FROM entries WHERE own >= {FEWEST_TERMS}"""
_SCHEMA = (
    "CREATE TABLE vectors (id INTEGER PRIMARY KEY, place TEXT NOT NULL, vector BLOB NOT NULL)",
    "CREATE TABLE unembedded (id INTEGER PRIMARY KEY, place TEXT NOT NULL)",
    "CREATE INDEX unembedded_by_place ON unembedded (place, id)",
    """CREATE TABLE vectors_of (model TEXT NOT NULL, dims INTEGER NOT NULL, removed INTEGER NOT NULL,
        day INTEGER NOT NULL, sent INTEGER NOT NULL)""",
    "INSERT INTO vectors_of VALUES ('', 0, 0, 0, 0)",
    f"""CREATE TRIGGER vector_wanted AFTER INSERT ON entries WHEN new.own >= {FEWEST_TERMS} BEGIN
        {_PENDING} AND id = new.id;
    END""",
    """CREATE TRIGGER vector_unwanted AFTER DELETE ON entries BEGIN
        DELETE FROM vectors WHERE id = old.id;
        DELETE FROM unembedded WHERE id = old.id;
    END""",
    f"""CREATE TRIGGER vector_outdated AFTER UPDATE OF text ON entries WHEN old.text <> new.text BEGIN
        DELETE FROM vectors WHERE id = new.id;
        DELETE FROM unembedded WHERE id = new.id;
        {_PENDING} AND id = new.id;
    END""",
    """CREATE TRIGGER vector_removed AFTER DELETE ON vectors BEGIN
        UPDATE vectors_of SET removed = removed + 1;
    END""",
    _PENDING,
)


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether there are tables of vectors."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors_of'").fetchone()
    return found is not None


class SqliteVectorWriter:
    """A `VectorWriter` of a connection; `kept` are the rows that it stored."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.kept: list[Row] = []

    def begin(self, model: str) -> None:
        """Make the tables if there are none. Vectors of another model go, and are made again."""
        if not has_tables(self._connection):
            for statement in _SCHEMA:
                self._connection.execute(statement)
        elif self.state()[0] != model:
            self.start_over(0)
        self._connection.execute("UPDATE vectors_of SET model = ?", (model,))

    def state(self) -> tuple[str, int]:
        model, dims = self._connection.execute("SELECT model, dims FROM vectors_of").fetchone()
        return model, dims

    def starts(self) -> int:
        return 0  # there is no other process

    def start_over(self, dims: int) -> None:
        self._connection.execute("DELETE FROM vectors")
        self._connection.execute(_PENDING)
        self.set_dims(dims)

    def set_dims(self, dims: int) -> None:
        self._connection.execute("UPDATE vectors_of SET dims = ?", (dims,))

    def sent(self, day: int) -> int:
        known, sent = self._connection.execute("SELECT day, sent FROM vectors_of").fetchone()
        return int(sent) if known == day else 0

    def spend(self, texts: int, day: int) -> None:
        sql = "UPDATE vectors_of SET sent = iif(day = :day, sent, 0) + :texts, day = :day"
        self._connection.execute(sql, {"day": day, "texts": texts})

    def waiting(self, place: str | None, without: Collection[int], most: int) -> list[int]:
        where = "" if place is None else "place = ? AND"
        sql = (
            f"SELECT id FROM unembedded WHERE {where} id NOT IN (SELECT value FROM json_each(?))"
            " ORDER BY id DESC LIMIT ?"
        )
        given = (*([place] if place is not None else []), json.dumps(list(without)), most)
        return [row[0] for row in self._connection.execute(sql, given)]

    def entries(self, numbers: Collection[int]) -> tuple[Entry, ...]:
        sql = f"SELECT {COLUMNS} FROM entries WHERE id IN ({placeholders(numbers)}) ORDER BY id DESC"
        return tuple(entry_of(row) for row in self._connection.execute(sql, tuple(numbers)))

    def leave_out(self, ids: Iterable[str]) -> None:
        self._connection.executemany("DELETE FROM unembedded WHERE id = ?", ((int(one),) for one in ids))

    def put(self, made: Mapping[Entry, bytes]) -> None:
        sql = """INSERT INTO vectors SELECT id, place, ? FROM entries WHERE id = ? AND text = ?
            ON CONFLICT (id) DO UPDATE SET vector = excluded.vector"""
        self.kept += [
            (int(entry.id), place_of(entry), vector)
            for entry, vector in made.items()
            if self._connection.execute(sql, (vector, int(entry.id), entry.text)).rowcount > 0
        ]
        self.leave_out(str(row[0]) for row in self.kept)


class Changing(Protocol):
    """The archive whose file they are in."""

    def change(self, work: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Return what work on the writing connection returns; `nothing` if there is no archive."""
        ...


class SqliteVectors:
    """The vectors of an archive in SQLite, and their signatures."""

    def __init__(self, archive: Changing) -> None:
        self._archive = archive
        self._removed = 0
        self._ready = False
        self.signatures = Signatures()

    @property
    def size(self) -> int:
        return self.signatures.size

    @property
    def dims(self) -> int:
        return self.signatures.dims if self._ready else 0

    def compares(self, length: int) -> bool:
        return self._ready and length == self.signatures.dims

    def known(self) -> Signatures | None:
        """The signatures of what is in the file; None if that was not read yet."""
        return self.signatures if self._ready else None

    def change(self, work: Callable[[VectorWriter], T], nothing: T, *, model: str | None = None) -> T:
        def changed(connection: sqlite3.Connection) -> T:
            if model is not None:
                self._begin(connection, model)
            elif not has_tables(connection):
                return nothing
            writer = SqliteVectorWriter(connection)
            with transaction(connection):
                outcome = work(writer)
            self.watch(connection)  # before, since vectors of another length may be gone
            self.signatures.add(writer.kept)
            return outcome

        return self._archive.change(changed, nothing)

    def watch(self, connection: sqlite3.Connection) -> None:
        """Remove from RAM what is not in the file any more; all of it if that cannot be known.

        Called after every change of the file.
        """
        if not self._ready:
            return
        try:
            if not has_tables(connection):
                self._ready = False
                self.signatures.clear()
            elif (removed := _removed(connection)) != self._removed:
                self.signatures.keep_only([row[0] for row in connection.execute("SELECT id FROM vectors")])
                self._removed = removed
        except FAULTS:
            self._ready = False
            self.signatures.clear()

    def _begin(self, connection: sqlite3.Connection, model: str) -> None:
        if not has_tables(connection):
            self._ready = False  # a new file: what is in RAM was of another one
        with transaction(connection):
            SqliteVectorWriter(connection).begin(model)
        if not self._ready:
            self._load(connection)
            self._removed = _removed(connection)
            self._ready = True

    def _load(self, connection: sqlite3.Connection) -> None:
        """Read all vectors into RAM as signatures, instead of what is there."""
        self.signatures.clear()
        (dims,) = connection.execute("SELECT dims FROM vectors_of").fetchone()
        rows = connection.execute("SELECT id, place, vector FROM vectors WHERE length(vector) = ?", (dims,))
        while some := rows.fetchmany(_AT_ONCE):
            self.signatures.add(some)


def _removed(connection: sqlite3.Connection) -> int:
    """How many vectors were ever removed from the file: a number that tells whether some were."""
    return int(connection.execute("SELECT removed FROM vectors_of").fetchone()[0])

"""The vectors of archived messages, in tables of the archive's own file. Blocking; raises sqlite3.Error.

    vectors     one row for each message that has one: its place, and its vector with a byte for each number
    unembedded  the messages that still need one, and their places
    vectors_of  one row: the model that made them, their length, how many were removed, how many texts were
                sent on which day

Triggers keep them in step with `entries`: a message that is deleted, edited, or taken back loses its vector
in the same transaction as its words. An older version of the program, which knows nothing of these tables,
keeps them right too, so they are no new version of the file. They are made when vectors are first used.
"""

import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.entry import Entry
from discoclaw.memory.disk.database import placeholders, transaction
from discoclaw.search.archive_rows import COLUMNS, entry_of, place_of
from discoclaw.search.signatures import Signatures, cosines

FEWEST_TERMS = 2
"""A message of fewer terms gets no vector: "haha" and "me too" are near to everything that is as short."""
NEAREST = 150
"""How many of the nearest signatures are compared by their vectors."""
NEAR = 30
"""How many of these are candidates."""
USUAL = 64
"""From how many messages the usual cosine of a question is taken."""
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


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's vector, and the signatures of what it is compared with."""

    vector: Sequence[float]
    signatures: Signatures


@dataclass(frozen=True, slots=True)
class Provider:
    """Who makes the vectors: `model`, and `most` texts a day, None for any number.

    `here`: it runs on this machine, so that it may see private talk.
    """

    model: str
    here: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages to embed, the newest first. `spent`: more are waiting, but not for today.

    `token` tells whether the model was replaced since.
    """

    entries: tuple[Entry, ...] = ()
    spent: bool = False
    token: int = 0


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether there are tables of vectors."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors_of'").fetchone()
    return found is not None


# ---------------------------------------------------------------------- making


def begin(connection: sqlite3.Connection, model: str) -> None:
    """Make the tables if there are none. Vectors of another model go, and are made again."""
    if not has_tables(connection):
        with transaction(connection):
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("UPDATE vectors_of SET model = ?", (model,))
    elif connection.execute("SELECT model FROM vectors_of").fetchone() != (model,):
        with transaction(connection):
            connection.execute("UPDATE vectors_of SET model = ?", (model,))
            start_over(connection, 0)


def start_over(connection: sqlite3.Connection, dims: int) -> None:
    """Remove all vectors, to make new ones of another length; 0 if that is not known yet."""
    connection.execute("DELETE FROM vectors")
    connection.execute(_PENDING)
    connection.execute("UPDATE vectors_of SET dims = ?", (dims,))


def take(
    connection: sqlite3.Connection,
    provider: Provider,
    *,
    most: int,
    day: int,
    without: Collection[int],
    open_places: Collection[str],
) -> Batch:
    """Up to `most` messages to embed on a day (a number), but for those with the ids in `without`.

    A provider elsewhere gets only those of the open places.
    """
    left, gone = most, json.dumps(list(without))
    if provider.most is not None:
        known, sent = connection.execute("SELECT day, sent FROM vectors_of").fetchone()
        left = min(most, provider.most - (sent if known == day else 0))
    found = []
    for place in (None,) if provider.here else open_places:
        where = "" if place is None else "place = ? AND"
        sql = (
            f"SELECT id FROM unembedded WHERE {where} id NOT IN (SELECT value FROM json_each(?))"
            " ORDER BY id DESC LIMIT ?"
        )
        given = (*([place] if place is not None else []), gone, max(1, left))
        found += [row[0] for row in connection.execute(sql, given)]
    newest = sorted(found, reverse=True)[: max(0, left)]
    sql = f"SELECT {COLUMNS} FROM entries WHERE id IN ({placeholders(newest)}) ORDER BY id DESC"
    entries = tuple(entry_of(row) for row in connection.execute(sql, newest))
    return Batch(entries, spent=left <= 0 and bool(found))


def spend(connection: sqlite3.Connection, texts: int, day: int) -> None:
    """Count texts as sent on a day, before they are: a provider may charge for what fails, too."""
    sql = "UPDATE vectors_of SET sent = iif(day = :day, sent, 0) + :texts, day = :day"
    connection.execute(sql, {"day": day, "texts": texts})


def leave_out(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Remove messages from those that need a vector."""
    connection.executemany("DELETE FROM unembedded WHERE id = ?", ((int(one),) for one in ids))


def keep(
    connection: sqlite3.Connection, provider: Provider, made: Mapping[Entry, bytes]
) -> list[tuple[int, str, bytes]]:
    """Store vectors of one length; runs in the caller's transaction. Returns the rows.

    What became of a message meanwhile decides: of one that is gone, or has another text by now, nothing is
    stored. Vectors of another length are removed, to be made again.
    """
    model, dims = connection.execute("SELECT model, dims FROM vectors_of").fetchone()
    if not made or model != provider.model:
        return []
    length = len(next(iter(made.values())))
    if dims not in (0, length):
        start_over(connection, length)
    connection.execute("UPDATE vectors_of SET dims = ?", (length,))
    sql = """INSERT INTO vectors SELECT id, place, ? FROM entries WHERE id = ? AND text = ?
        ON CONFLICT (id) DO UPDATE SET vector = excluded.vector"""
    rows = [
        (int(entry.id), place_of(entry), vector)
        for entry, vector in made.items()
        if connection.execute(sql, (vector, int(entry.id), entry.text)).rowcount > 0
    ]
    leave_out(connection, (str(row[0]) for row in rows))
    return rows


# ---------------------------------------------------------------------- in RAM


def removed(connection: sqlite3.Connection) -> int:
    """How many vectors were ever removed from the file: a number that tells whether some were."""
    return int(connection.execute("SELECT removed FROM vectors_of").fetchone()[0])


def ids(connection: sqlite3.Connection) -> list[int]:
    """The messages that have vectors."""
    return [row[0] for row in connection.execute("SELECT id FROM vectors")]


def load(connection: sqlite3.Connection, signatures: Signatures) -> None:
    """Read all vectors into RAM as signatures, instead of what is there."""
    signatures.clear()
    if not has_tables(connection):
        return
    (dims,) = connection.execute("SELECT dims FROM vectors_of").fetchone()
    rows = connection.execute("SELECT id, place, vector FROM vectors WHERE length(vector) = ?", (dims,))
    while some := rows.fetchmany(_AT_ONCE):
        signatures.add(some)


# ---------------------------------------------------------------------- asking


def near(connection: sqlite3.Connection, asked: Asked, places: Sequence[str]) -> dict[int, float]:
    """The ids of the messages at these places that are nearest to a question, best first, and the cosines."""
    nearest = asked.signatures.nearest(asked.vector, places, NEAREST)
    found = cosines_of(connection, asked, nearest)
    return dict(sorted(found.items(), key=lambda one: (-one[1], -one[0]))[:NEAR])


def usual(
    connection: sqlite3.Connection, asked: Asked, places: Sequence[str], *, without: Collection[int]
) -> float:
    """The mean cosine of a question with what was said at these places, but for the nearest messages."""
    some = set(asked.signatures.some(places, USUAL)).difference(without)
    found = cosines_of(connection, asked, sorted(some))
    return math.fsum(found.values()) / len(found) if found else 0.0


def cosines_of(connection: sqlite3.Connection, asked: Asked, ids: Collection[int]) -> dict[int, float]:
    """The cosines of a question with those of the messages that have a vector of its length."""
    if not ids or len(asked.vector) != asked.signatures.dims:
        return {}
    sql = f"SELECT id, vector FROM vectors WHERE id IN ({placeholders(ids)}) AND length(vector) = ?"
    rows = connection.execute(sql, (*ids, len(asked.vector))).fetchall()
    return dict(zip((row[0] for row in rows), cosines(asked.vector, [row[1] for row in rows]), strict=True))

"""The archive's tables, and the statements that change their rows. Blocking; raises sqlite3.Error.

    entries     one row a message; `place` says who may find it, `terms` are its words as we compare them
    words       an FTS5 index of place and terms over these rows, kept by triggers
    vocabulary  of that index: how many entries have a term
    totals      how many entries there are and how many terms they have together, kept by triggers too

The place of an entry is the channel that owns it ("@g55"), or the person whose direct message it is ("@d7").
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from discoclaw.core.consent import Consent
from discoclaw.core.entry import Entry
from discoclaw.core.text import scrub
from discoclaw.memory.disk.database import checkpoint, placeholders
from discoclaw.search.fulltext import TOKENIZER, as_column

COLUMNS = "id, session_key, channel_id, group_id, guild_id, author_id, name, text, sent_at, by_us, to_id"
"""The columns of an `Entry`, in the order of its fields."""
_DM = "discord:dm:"
_LARGEST = 2**63 - 1

VERSION = 1

SCHEMA = (
    """CREATE TABLE entries (
        rowid INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, session_key TEXT NOT NULL,
        channel_id TEXT NOT NULL, group_id TEXT, guild_id TEXT, author_id TEXT NOT NULL, name TEXT NOT NULL,
        text TEXT NOT NULL, sent_at INTEGER NOT NULL, by_us INTEGER NOT NULL, to_id TEXT NOT NULL,
        place TEXT NOT NULL, terms TEXT NOT NULL, length INTEGER NOT NULL, own INTEGER NOT NULL,
        marks INTEGER NOT NULL)""",
    "CREATE INDEX entries_in_order ON entries (session_key, id)",
    "CREATE INDEX entries_by_place ON entries (place, id)",
    "CREATE INDEX entries_by_time ON entries (sent_at)",
    f"""CREATE VIRTUAL TABLE words USING fts5 (
        place, terms, content = 'entries', content_rowid = 'rowid', tokenize = '{TOKENIZER}')""",
    "CREATE VIRTUAL TABLE vocabulary USING fts5vocab ('words', 'col')",
    "CREATE TABLE totals (entries INTEGER NOT NULL, terms INTEGER NOT NULL)",
    "INSERT INTO totals VALUES (0, 0)",
    """CREATE TRIGGER entry_added AFTER INSERT ON entries BEGIN
        INSERT INTO words (rowid, place, terms) VALUES (new.rowid, new.place, new.terms);
        UPDATE totals SET entries = entries + 1, terms = terms + new.length;
    END""",
    """CREATE TRIGGER entry_removed AFTER DELETE ON entries BEGIN
        INSERT INTO words (words, rowid, place, terms) VALUES ('delete', old.rowid, old.place, old.terms);
        UPDATE totals SET entries = entries - 1, terms = terms - old.length;
    END""",
    """CREATE TRIGGER entry_changed AFTER UPDATE OF place, terms, length ON entries BEGIN
        INSERT INTO words (words, rowid, place, terms) VALUES ('delete', old.rowid, old.place, old.terms);
        INSERT INTO words (rowid, place, terms) VALUES (new.rowid, new.place, new.terms);
        UPDATE totals SET terms = terms - old.length + new.length;
    END""",
)
# Where a message is and who wrote it never change. Rows are updated in place, because replacing one would
# bypass the triggers and leave its words in the index.
_INSERT = f"""INSERT INTO entries ({COLUMNS}, place, terms, length, own, marks)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_PUT = f"""{_INSERT} ON CONFLICT (id) DO UPDATE SET name = excluded.name, text = excluded.text,
        terms = excluded.terms, length = excluded.length, own = excluded.own, marks = excluded.marks
    WHERE author_id = excluded.author_id AND (text <> excluded.text OR name <> excluded.name)"""
_PUT_NEW = f"{_INSERT} ON CONFLICT (id) DO NOTHING"
FORGET_WORDS = "INSERT INTO words (words) VALUES ('optimize')"
"""Merges the index into one part, in which nothing of deleted rows is left."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """An entry's index data: its terms, and its length for scoring.

    The first `own` terms are from its text, with repetitions; the next `marks` name it; the rest are dates.
    """

    terms: Sequence[str]
    length: int
    own: int
    marks: int


Words = Callable[[Entry], Indexed]
"""Returns the index data of an entry."""


@dataclass(frozen=True, slots=True)
class Put:
    """Insert or update an entry; `fresh`: only if there is none with its id."""

    entry: Entry
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Amend:
    """Replace the text of a person's message."""

    id: str
    author_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete a message."""

    id: str


@dataclass(frozen=True, slots=True)
class Only:
    """Delete a conversation's other messages by people between the first and the last of these."""

    session_key: str
    ids: tuple[str, ...]


Change = Put | Amend | Drop | Only


def is_id(text: str) -> bool:
    """Whether a text can be a Discord id."""
    return text.isascii() and text.isdigit() and len(text) <= 20


def place_of(entry: Entry) -> str:
    """The place that decides who may find an entry: a channel, or one person's direct messages."""
    if entry.group_id is None:
        return f"@d{entry.session_key.removeprefix(_DM)}"
    return f"@g{entry.group_id}"


def number_of(message_id: str) -> int | None:
    """A Discord id as a number that fits the database; None if it does not."""
    number = int(message_id) if is_id(message_id) else _LARGEST + 1
    return number if number <= _LARGEST else None


def entry_of(row: Sequence[object]) -> Entry:
    """A row of `COLUMNS`."""
    return Entry(str(row[0]), *row[1:9], by_us=bool(row[9]), to_id=row[10])  # type: ignore[arg-type, misc]


def make(connection: sqlite3.Connection, change: Change, words: Words, consent: Consent) -> None:
    """Make one change. An entry whose id does not fit the database is left out."""
    if isinstance(change, Drop):
        connection.execute("DELETE FROM entries WHERE id = ?", (number_of(change.id),))
        return
    if isinstance(change, Only):
        _keep_only(connection, change)
        return
    if isinstance(change, Put):
        put, entry = (_PUT_NEW if change.fresh else _PUT), change.entry
    else:
        sql = f"SELECT {COLUMNS} FROM entries WHERE id = ? AND author_id = ?"
        row = connection.execute(sql, (number_of(change.id), change.author_id)).fetchone()
        if row is None:
            return
        put, entry = _PUT, entry_of((*row[:7], scrub(change.text), *row[8:]))
    if number_of(entry.id) is not None and entry.allowed(consent):
        connection.execute(put, _row(entry, words))


def _keep_only(connection: sqlite3.Connection, change: Only) -> None:
    """Remove what was deleted in the chat unnoticed. The bot's own answers stay: the chat may lack some."""
    ids = [number for number in map(number_of, change.ids) if number is not None]
    if ids:
        sql = f"""DELETE FROM entries WHERE session_key = ? AND id BETWEEN ? AND ? AND NOT by_us
            AND id NOT IN ({placeholders(ids)})"""
        connection.execute(sql, (change.session_key, min(ids), max(ids), *ids))


def _row(entry: Entry, words: Words) -> tuple[object, ...]:
    indexed = words(entry)
    return (
        number_of(entry.id),
        entry.session_key,
        entry.channel_id,
        entry.group_id,
        entry.guild_id,
        entry.author_id,
        scrub(entry.name),
        scrub(entry.text),
        entry.sent_at,
        entry.by_us,
        entry.to_id,
        place_of(entry),
        scrub(as_column(indexed.terms)),
        indexed.length,
        indexed.own,
        indexed.marks,
    )


def remove(connection: sqlite3.Connection, person: str, until_ms: int | None = None) -> int:
    """Delete a person's messages, the answers to them, and everything in their direct messages."""
    sql = "DELETE FROM entries WHERE (author_id = :person OR to_id = :person OR place = '@d' || :person)"
    if until_ms is not None:
        sql += " AND sent_at <= :until_ms"
    return connection.execute(sql, {"person": person, "until_ms": until_ms}).rowcount


def forget_words(connection: sqlite3.Connection) -> None:
    """Remove deleted words from the index, and from the WAL too if nobody is reading."""
    connection.execute(FORGET_WORDS)
    checkpoint(connection)

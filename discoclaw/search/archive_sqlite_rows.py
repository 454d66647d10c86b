"""The archive's tables in SQLite, and the statements that change their rows. Blocking; raises sqlite3.Error.

entries     one row a message; `place` says who may find it, `terms` are its words as we compare them
words       an FTS5 index of place and terms over these rows, kept by triggers
vocabulary  of that index: how many entries have a term
totals      how many entries there are and how many terms they have together, kept by triggers too
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from discoclaw.core.entry import Entry
from discoclaw.memory.disk.database import placeholders
from discoclaw.search.archive_rows import COLUMNS, Words, entry_of, indexed_values, place_of, values_of
from discoclaw.search.archive_withdrawing import Theirs
from discoclaw.search.fulltext import TOKENIZER, any_of

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
# Rows are updated in place, because replacing one would bypass the triggers and leave its words in the index.
_INSERT = f"""INSERT INTO entries ({COLUMNS}, place, terms, length, own, marks)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_PUT = f"""{_INSERT} ON CONFLICT (id) DO UPDATE SET name = excluded.name, text = excluded.text,
        terms = excluded.terms, length = excluded.length, own = excluded.own, marks = excluded.marks
    WHERE author_id = excluded.author_id AND (text <> excluded.text OR name <> excluded.name)"""
_PUT_NEW = f"{_INSERT} ON CONFLICT (id) DO NOTHING"
FORGET_WORDS = "INSERT INTO words (words) VALUES ('optimize')"
"""Merges the index into one part, in which nothing of deleted rows is left."""

_THEIRS = "((author_id = :person AND NOT :alone) OR to_id = :person) AND sent_at <= :until"
_PEOPLE = "SELECT author_id FROM entries UNION SELECT to_id FROM entries"
_OPEN = "place NOT LIKE '@d%' AND NOT (session_key LIKE 'discord:thread:%' AND group_id = channel_id)"


class SqliteWriter:
    """The rows of an archive in SQLite: a `Writer`, and what withdrawing asks.

    `gone` are the bytes by which to recognise, in the file, each row that was deleted or replaced.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.gone: list[bytes] = []

    def put(self, entry: Entry, words: Words, *, fresh: bool) -> None:
        row = (*values_of(entry), place_of(entry), *indexed_values(words(entry)))
        if not fresh:
            where = "id = ? AND author_id = ? AND (name <> ? OR text <> ?)"
            self._leave(where, (row[0], *row[5:8]))
        self._connection.execute(_PUT_NEW if fresh else _PUT, row)

    def entry(self, number: int, author_id: str) -> Entry | None:
        sql = f"SELECT {COLUMNS} FROM entries WHERE id = ? AND author_id = ?"
        row = self._connection.execute(sql, (number, author_id)).fetchone()
        return entry_of(row) if row is not None else None

    def drop(self, number: int) -> None:
        self.remove("id = ?", (number,))

    def keep_only(self, session_key: str, numbers: Sequence[int]) -> None:
        where = f"""session_key = ? AND id BETWEEN ? AND ? AND NOT by_us
            AND id NOT IN ({placeholders(numbers)})"""
        self.remove(where, (session_key, min(numbers), max(numbers), *numbers))

    def remove(self, where: str, given: Sequence[object]) -> None:
        """Delete rows."""
        self._leave(where, given)
        self._connection.execute(f"DELETE FROM entries WHERE {where}", given)

    def people(self) -> list[str]:
        """The authors and addressees of all messages."""
        return [*_first(self._connection.execute(_PEOPLE))]

    def remove_person(self, person: str, until_ms: int) -> None:
        """Delete a person's messages, the answers to them, and everything in their direct messages."""
        where = "(author_id = ? OR to_id = ? OR place = ?) AND sent_at <= ?"
        self.remove(where, (person, person, f"@d{person}", until_ms))

    def _leave(self, where: str, given: Sequence[object]) -> None:
        """Note what rows look like in the file: these columns stand there in this order."""
        sql = f"SELECT author_id || name || text, sent_at FROM entries WHERE {where}"
        rows = self._connection.execute(sql, given)
        self.gone += [text.encode() + (sent_at % 2**48).to_bytes(6) for text, sent_at in rows]

    # ------------------------------------------------------------------ withdrawing

    def texts(self, rows: Iterable[int], *, open_only: bool) -> dict[int, str]:
        sql = f"SELECT text FROM entries WHERE rowid = ?{f' AND {_OPEN}' if open_only else ''}"
        found = {row: self._connection.execute(sql, (row,)).fetchone() for row in rows}
        return {row: text[0] for row, text in found.items() if text is not None}

    def of_ids(self, numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            yield from _first(self._connection.execute("SELECT rowid FROM entries WHERE id = ?", (number,)))

    def with_term(self, theirs: Theirs, term: str) -> list[int]:
        return self._matching(theirs, any_of([term]))

    def beginning(self, theirs: Theirs, stumps: Sequence[str]) -> list[int]:
        return self._matching(theirs, " OR ".join(f"{any_of([stump])} *" for stump in stumps))

    def all_of(self, theirs: Theirs) -> Iterator[tuple[int, str]]:
        sql = f"SELECT rowid, text FROM entries WHERE {_THEIRS}"
        yield from self._connection.execute(sql, _given(theirs))

    def delete(self, rows: Iterable[int]) -> None:
        for row in rows:
            self.remove("rowid = ?", (row,))

    def _matching(self, theirs: Theirs, pattern: str) -> list[int]:
        sql = f"""SELECT entries.rowid FROM words JOIN entries ON entries.rowid = words.rowid
            WHERE words MATCH :pattern AND {_THEIRS}"""
        given = {**_given(theirs), "pattern": f"terms : ({pattern})"}
        return list(_first(self._connection.execute(sql, given)))


def _given(theirs: Theirs) -> dict[str, object]:
    return {"person": theirs.person, "until": theirs.until, "alone": theirs.alone}


def _first(rows: Iterable[tuple[Any]]) -> Iterator[Any]:
    return (row for (row,) in rows)

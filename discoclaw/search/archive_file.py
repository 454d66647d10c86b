"""The archive's engine for one SQLite file. Everything here blocks.

One connection writes and one reads, each used by one thread at a time, so neither waits for the other. FTS5
indexes our terms (there is only one tokeniser, `core/words`), and triggers keep it, the totals and the tables
of vectors in step with the entries, also when an older version of the program writes. A damaged file is kept
aside and a new one started, since it holds little that Discord does not have.

What is deleted leaves the bytes of the file and of its log, too. Rows are overwritten in place, but the index
has words of them until it is merged, and a rearranged page may have a second copy of a row. So each deletion
merges the index in its transaction; the file is written anew only if it still has such bytes.

The vectors' signs lie in RAM (`signatures`), from the first time on that vectors are made. Disk failures
become `MemoryFault`.
"""

import logging
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, TypeVar

from discoclaw.core.errors import MemoryFault, faulting
from discoclaw.core.ports import Clock
from discoclaw.search.signatures import FEWEST_TERMS, Signatures
from discoclaw.store.database import (
    FAULTS,
    Database,
    check_ours,
    checkpoint,
    connect,
    is_damage,
    make_tables,
    rows_of,
    set_aside,
    transaction,
    version_of,
)
from discoclaw.store.files import stamp_of
from discoclaw.store.port import Sql

log = logging.getLogger(__name__)
T = TypeVar("T")

CACHE_KIB = 16_000
"""The cache size for the reading connection."""
CLOSE_S = 5.0
"""How long closing waits for whoever is using the file."""
MOST_TRACES = 100
"""Of more traces than this, writing the file anew is faster than looking for them."""
_AT_ONCE = 10_000

VERSION = 1
_TOKENIZER = "unicode61 remove_diacritics 0 categories ''L* M* N* P* S* Co''"
"""Every character but a space is part of a token."""
_SCHEMA = (
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
        place, terms, content = 'entries', content_rowid = 'rowid', tokenize = '{_TOKENIZER}')""",
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
_PENDING = f"INSERT OR IGNORE INTO unembedded SELECT id, place FROM entries WHERE own >= {FEWEST_TERMS}"
_ADDED = (
    "CREATE INDEX IF NOT EXISTS entries_by_author ON entries (author_id)",
    "CREATE INDEX IF NOT EXISTS entries_by_addressee ON entries (to_id) WHERE to_id <> ''",
    """CREATE TABLE IF NOT EXISTS vectors (
        id INTEGER PRIMARY KEY, place TEXT NOT NULL, vector BLOB NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS unembedded (id INTEGER PRIMARY KEY, place TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS unembedded_by_place ON unembedded (place, id)",
    """CREATE TABLE IF NOT EXISTS vectors_of (model TEXT NOT NULL, dims INTEGER NOT NULL,
        removed INTEGER NOT NULL, day INTEGER NOT NULL, sent INTEGER NOT NULL)""",
    "INSERT INTO vectors_of SELECT '', 0, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM vectors_of)",
    f"""CREATE TRIGGER IF NOT EXISTS vector_wanted AFTER INSERT ON entries
    WHEN new.own >= {FEWEST_TERMS} AND EXISTS (SELECT 1 FROM vectors_of WHERE model <> '') BEGIN
        {_PENDING} AND id = new.id;
    END""",
    """CREATE TRIGGER IF NOT EXISTS vector_unwanted AFTER DELETE ON entries BEGIN
        DELETE FROM vectors WHERE id = old.id;
        DELETE FROM unembedded WHERE id = old.id;
    END""",
    f"""CREATE TRIGGER IF NOT EXISTS vector_outdated AFTER UPDATE OF text ON entries
    WHEN old.text <> new.text BEGIN
        DELETE FROM vectors WHERE id = new.id;
        DELETE FROM unembedded WHERE id = new.id;
        {_PENDING} AND id = new.id AND EXISTS (SELECT 1 FROM vectors_of WHERE model <> '');
    END""",
    """CREATE TRIGGER IF NOT EXISTS vector_removed AFTER DELETE ON vectors BEGIN
        UPDATE vectors_of SET removed = removed + 1;
    END""",
)
"""What older files may lack. Older versions of the program keep it right, so it isn't a new version."""
_LAST_ADDED = "SELECT 1 FROM sqlite_master WHERE name = 'entries_by_addressee'"
_MERGE = "INSERT INTO words (words) VALUES ('optimize')"
"""Merges the index into one part, in which nothing of deleted rows is left."""


class ArchiveFile:
    """The engine for the file at `path`. Opened at its first use; there is no file before the first entry.

    Methods with an `Sql` run within a transaction, or within one read; they raise what the driver raises.
    """

    about = "vectors_of"
    """The table with one row about vectors: their model and dims, and how many texts were sent on a day."""
    most = sys.maxsize
    """The most entries that one transaction removes."""
    few = 4
    """Of so many places the index finds the newest entries; of more, it is faster to go back through all."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self.where = str(path)
        self.signatures = Signatures()
        self._clock = clock
        # Code that needs both locks takes the writer's first.
        self._writer = Database(self._open_to_write, discard=self._set_aside)
        self._reader = Database(self._open_to_read)
        self._files = 0
        """Counts the files so far, so that a reader who finds damage reports it only for the file it read."""
        self._traces: list[bytes] = []
        """The bytes by which to recognise what the transaction under way deletes or replaces."""
        self._gone = False
        self._stored: list[tuple[int, str, bytes]] = []
        """The vectors that the transaction under way stores."""
        self._embeds = False
        self._removed = 0

    # ------------------------------------------------------------------ transactions

    def read(self, work: Callable[[Sql], T], nothing: T) -> T:
        """Return what queries find, or `nothing` if there is no archive. Raises MemoryFault."""
        seen = self._files
        try:
            return self._reader.run(lambda connection: work(_sql(connection)))
        except _NoArchive:
            return nothing
        except (*FAULTS, OSError) as error:
            if is_damage(error):
                with self._writer.lock:
                    if seen == self._files:
                        self._set_aside(error)
            raise MemoryFault(f"{self.path.name} cannot be read: {error}") from error

    def change(
        self,
        work: Callable[[Sql], T],
        nothing: T,
        *,
        create: bool = False,
        sure: bool = False,
        anew: bool = False,
    ) -> T:
        """Return what work in one transaction returns; one at a time changes the archive.

        `nothing` if there is no archive, unless it shall `create` one. Bytes of what was removed may be left
        for the next call if a disk fails; where that must not be, `sure` raises. `anew` removes also those
        that an older version left. Raises MemoryFault.
        """

        def changed(connection: sqlite3.Connection) -> T:
            # By this mark, the bytes that a run left which was killed are removed by a later one.
            (left,) = connection.execute("PRAGMA application_id").fetchone()
            self._traces, self._gone, self._stored = [], False, []
            with transaction(connection):  # with the index, so that a kill leaves no word in it
                outcome = work(_sql(connection))
                if self._gone:
                    connection.execute(_MERGE)
                    connection.execute("PRAGMA application_id = 1")
            if self._embeds:  # have in RAM the signs of what is in the file
                removed = _removed(connection)
                if removed != self._removed:  # before adding: vectors of another length may be gone
                    rows = connection.execute("SELECT id FROM vectors")
                    self.signatures.keep_only([number for (number,) in rows])
                    self._removed = removed
                self.signatures.add(self._stored)
            if self._gone or (sure and (left or anew)):
                self._wipe(connection, whole=bool(left or anew), sure=sure)
            return outcome

        if not create and not self.path.exists():
            return nothing
        try:
            return self._writer.run(changed)
        except (*FAULTS, OSError) as error:
            raise MemoryFault(f"{self.path.name} cannot be used: {error}") from error

    def close(self) -> None:
        """Release what is open until its next use."""
        if not self._writer.close(CLOSE_S):
            log.warning("%s is still being written; it is left open", self.path.name)
            return
        self._reader.close(CLOSE_S)

    # ------------------------------------------------------------------ the file

    def _open_to_write(self) -> sqlite3.Connection:
        def prepare(connection: sqlite3.Connection) -> None:
            make_tables(connection, _SCHEMA, VERSION)
            if connection.execute(_LAST_ADDED).fetchone() is None:
                with transaction(connection):
                    for statement in _ADDED:
                        connection.execute(statement)
            if self._embeds:
                self._load(connection)

        return connect(self.path, check=self._check, prepare=prepare)

    def _open_to_read(self) -> sqlite3.Connection:
        if not self.path.exists():
            raise _NoArchive

        def prepare(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA query_only = ON")
            if not version_of(connection):  # it is just being made
                raise _NoArchive

        return connect(self.path, check=self._check, prepare=prepare, cache_kib=CACHE_KIB)

    def _check(self, connection: sqlite3.Connection) -> None:
        check_ours(connection, VERSION, self.path.name)

    def _set_aside(self, error: Exception) -> None:
        """Rename a damaged file. The caller has the writer's lock. Raises OSError."""
        self.close()
        self.signatures.clear()
        aside = set_aside(self.path, stamp_of(self._clock()))
        self._files += 1
        log.error(
            "%s is damaged (%s); it is kept as %s, and a new one is begun", self.path, error, aside.name
        )

    def _wipe(self, connection: sqlite3.Connection, *, whole: bool, sure: bool) -> None:
        """Destroy every byte of what was deleted; `whole`: by writing the file anew in any case."""

        def traces() -> bool:
            if len(self._traces) > MOST_TRACES:
                return True
            with self.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
                return any(content.find(one) >= 0 for one in self._traces)

        try:
            # The file mostly has no traces, and `VACUUM` costs far more than to look for them.
            if whole or not checkpoint(connection) or traces():
                connection.execute(_MERGE)
                connection.execute("VACUUM")
                if not checkpoint(connection):
                    raise sqlite3.OperationalError("somebody reads the archive, so its log cannot be emptied")
            connection.execute("PRAGMA application_id = 0")
        except sqlite3.Error as error:
            if sure:
                raise
            log.warning("%s may still have words of edited or deleted messages: %s", self.path, error)

    def remove_copies(self, before_ms: int | None = None) -> None:
        """Remove damaged archives that were kept; with a time (ms), older ones. Raises MemoryFault."""
        with faulting("a damaged archive that was kept cannot be removed"):
            for path in sorted(self.path.parent.glob(f"{self.path.name}.corrupt-*")):
                if before_ms is None or path.stat().st_mtime_ns < before_ms * 1_000_000:
                    path.unlink(missing_ok=True)

    # ------------------------------------------------------------------ the audit

    def listed(self, columns: str) -> Iterator[tuple[Any, ...]]:
        """These columns of all entries. Changes nothing. Raises OSError."""
        yield from rows_of(self.path, f"SELECT {columns} FROM entries")

    def orphans(self) -> Iterator[str]:
        """The terms in the index that no entry has. Raises OSError."""
        # FTS5 keeps a deleted row's terms until it merges the index, and its vocabulary doesn't show them.
        pages = rows_of(self.path, "SELECT block FROM words_data WHERE id > 10")
        rows = rows_of(self.path, "SELECT place || ' ' || terms FROM entries")
        held = frozenset[str]().union(*(terms.split(" ") for (terms,) in rows))
        for (page,) in pages:
            yield from (term for term in _terms_in(page) if term not in held)

    # ------------------------------------------------------------------ the index

    def places(self, places: Iterable[str]) -> list[Any]:
        """Places as they stand in the column `place`; without those that can't."""
        return list(places)

    def leave(
        self, sql: Sql, ids: Sequence[int], *, edited: Sequence[int] = (), traces: Sequence[bytes] = ()
    ) -> None:
        """Take entries out of the index, before they are deleted or changed; `edited` get another text.

        `traces` are bytes of them that must not be left either.
        """
        # What rows look like in the file: these columns stand there in this order.
        query = "SELECT author_id || name || text, sent_at FROM entries WHERE id IN :ids"
        rows = sql.rows(query, ids=ids)
        self._traces += [text.encode() + (sent_at % 2**48).to_bytes(6) for text, sent_at in rows]
        self._traces += traces
        self._gone = True

    def enter(self, sql: Sql, ids: Sequence[int]) -> None:
        """Index entries that are new, or were changed. Here the triggers have done it."""

    def beginning(self, stumps: Sequence[str]) -> tuple[str, dict[str, object]]:
        """The query for entries with a term that begins with any of these, and its parameters."""
        pattern = " OR ".join(f"{_any_of([stump])} *" for stump in stumps)
        # A cross join, by which the index of words comes before that of authors.
        query = """SELECT entries.* FROM words CROSS JOIN entries ON entries.rowid = words.rowid
            WHERE words MATCH :pattern"""
        return query, {"pattern": f"terms : ({pattern})"}

    def totals(self, sql: Sql) -> tuple[int, int]:
        """How many entries there are, and their lengths together."""
        ((entries, length),) = sql.rows("SELECT entries, terms FROM totals")
        return entries, length

    def frequencies(self, sql: Sql, terms: Iterable[str]) -> dict[str, int]:
        """How many entries have each of the terms, in their order; without those that none has."""
        query = "SELECT doc FROM vocabulary WHERE term = :term AND col = 'terms'"
        found = {term: sql.one(query, term=term) for term in terms}
        return {term: row[0] for term, row in found.items() if row is not None and row[0]}

    def best(self, sql: Sql, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        """The ids of the entries at these places with any of the terms, best first by BM25; ties by age."""
        # The place is asked of the rows, which costs less than in the pattern.
        query = """SELECT entries.id FROM words JOIN entries ON entries.rowid = words.rowid
            WHERE words MATCH :pattern AND +entries.place IN :places
            ORDER BY bm25(words), words.rowid DESC LIMIT :most"""
        pattern = f"terms : ({_any_of(terms)})"
        return [number for (number,) in sql.rows(query, pattern=pattern, places=places, most=most)]

    def newest(self, sql: Sql, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        """The ids of the entries at these places with any of the terms, those first that were stored last."""
        query = """SELECT entries.id FROM words JOIN entries ON entries.rowid = words.rowid
            WHERE words MATCH :pattern AND +entries.place IN :places ORDER BY words.rowid DESC LIMIT :most"""
        pattern = f"terms : ({_any_of(terms)})"
        counted = "SELECT doc FROM vocabulary WHERE term = :term AND col = 'place'"
        seen = sum(row[0] for place in places if (row := sql.one(counted, term=place)) is not None)
        (total,) = sql.one("SELECT entries FROM totals") or (0,)
        if seen * 5 < total:  # else the newest are soon found without asking the index for the place
            pattern = f"place : ({_any_of(places)}) AND {pattern}"
        return [number for (number,) in sql.rows(query, pattern=pattern, places=places, most=most)]

    # ------------------------------------------------------------------ vectors

    @property
    def dims(self) -> int | None:
        """The length of the vectors, 0 if there are none, None if that is not known. Never blocks."""
        return self.signatures.dims

    def begin(self, sql: Sql, *, anew: bool) -> bool:
        """Get ready to make vectors; `anew`: of another model. Returns whether to call it once more."""
        if anew:
            self.start_over(sql)
        if not self._embeds:
            self._load(sql.db)
            self._embeds = True
        return False

    def start_over(self, sql: Sql) -> None:
        """Remove all vectors, to make new ones."""
        sql.run("DELETE FROM vectors")
        sql.run(_PENDING)

    def starts(self, sql: Sql) -> int:
        """How often other processes started over, a number that only grows. Here there are none."""
        return 0

    def store(self, sql: Sql, vectors: Sequence[tuple[int, Any, bytes]]) -> None:
        """Store vectors: the id, the column `place`, and the vector as signed bytes."""
        statement = """INSERT INTO vectors VALUES (:id, :place, :vector)
            ON CONFLICT (id) DO UPDATE SET vector = excluded.vector"""
        sql.many(statement, [{"id": one[0], "place": one[1], "vector": one[2]} for one in vectors])
        self._stored += vectors

    def nearest(self, sql: Sql, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        """The ids of the vectors at these places whose signs differ least from a question's; ties by id."""
        return self.signatures.nearest(question, places, most)

    def some(self, sql: Sql, places: Sequence[str], most: int) -> list[int]:
        """At most so many ids of vectors at these places, spread over all; the same ones for the same ids."""
        return self.signatures.some(places, most)

    def _load(self, connection: sqlite3.Connection) -> None:
        """Read the signs of all vectors into RAM, instead of what is there."""
        self.signatures.clear()
        self._removed = _removed(connection)
        rows = connection.execute("""SELECT id, place, vector FROM vectors
            WHERE length(vector) = (SELECT dims FROM vectors_of)""")
        while some := rows.fetchmany(_AT_ONCE):
            self.signatures.add(some)


class _NoArchive(Exception):
    """There is no archive, because nothing was ever written."""


def _sql(connection: sqlite3.Connection) -> Sql:
    return Sql(connection, prefix="archive_")


def _removed(connection: sqlite3.Connection) -> int:
    """How many vectors were ever removed from the file: a number that tells whether some were."""
    return int(connection.execute("SELECT removed FROM vectors_of").fetchone()[0])


def _any_of(terms: Sequence[str]) -> str:
    """The MATCH expression for any of the terms. What people write is quoted: it is never a query."""
    return " OR ".join(f'"{quoted}"' for quoted in (term.replace('"', '""') for term in terms))


def _number_at(page: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as FTS5 stores it, and where it ends."""
    value = page[at] & 0x7F
    while page[at] & 0x80:
        at += 1
        value = value << 7 | page[at] & 0x7F
    return value, at + 1


def _terms_in(page: bytes) -> Iterator[str]:
    """The terms of a leaf, whose end says where each begins, and each how much it shares with the last."""
    place, term, end = 0, b"", int.from_bytes(page[2:4]) or len(page)  # inner pages have no such end
    while end < len(page):
        step, end = _number_at(page, end)
        place += step
        shared, begin = _number_at(page, place) if term else (0, place)
        length, begin = _number_at(page, begin)
        term = term[:shared] + page[begin : begin + length]
        yield term[1:].decode("utf-8", "replace")  # the first byte names the index

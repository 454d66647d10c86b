"""The archive as one SQLite file. Everything here blocks.

What is deleted leaves the bytes of the file and of its log, too. One connection writes and one reads, each
used by one thread at a time, so neither waits for the other. A damaged file is kept aside and a new one
started, since it holds little that Discord does not have. Disk failures become `MemoryFault`; only
`SqliteWriter` and `SqliteReader`, which work on one connection, raise sqlite3.Error.
"""

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, TypeVar

from discoclaw.core.audit import Readable
from discoclaw.core.consent import ALWAYS, NEVER, Consent
from discoclaw.core.entry import Entry
from discoclaw.core.errors import MemoryFault
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Withdrawal
from discoclaw.search.archive import Archive
from discoclaw.search.archive_queries import LATELY, MOST_SEARCHED, Reader
from discoclaw.search.archive_rows import (
    COLUMNS,
    Change,
    Indexed,
    Put,
    Words,
    entry_of,
    indexed_of,
    indexed_values,
    is_id,
    make,
    place_of,
    values_of,
)
from discoclaw.search.archive_sqlite_vectors import SqliteVectors, has_tables
from discoclaw.search.archive_withdrawing import Theirs, remains_of, withdraw
from discoclaw.search.fulltext import PAGES, TOKENIZER, any_of, orphans
from discoclaw.search.signatures import Signatures
from discoclaw.store.database import (
    FAULTS,
    Database,
    check_ours,
    checkpoint,
    connect,
    is_damage,
    make_tables,
    placeholders,
    rows_of,
    set_aside,
    transaction,
    version_of,
)
from discoclaw.store.files import stamp_of

log = logging.getLogger(__name__)
T = TypeVar("T")

CACHE_KIB = 16_000
"""The cache size for the reading connection."""
READABLE = "SELECT id, session_key, author_id, text, sent_at, by_us, to_id FROM entries"
INDEXED = "SELECT place || ' ' || terms FROM entries"
CLOSE_S = 5.0
"""How long closing waits for whoever is using the file."""


# ---------------------------------------------------------------------- rows

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


# ---------------------------------------------------------------------- the archive


class SqliteArchive(Archive):
    """The archive at `path`. Opened at its first use; there is no file before the first entry."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        # Code that needs both locks takes the writer's first.
        self._writer = Database(self._open_to_write, discard=self._set_aside)
        self._reader = Database(self._open_to_read)
        self._files = 0
        """Counts the files so far, so that a reader who finds damage reports it only for the file it read."""
        self.vectors: SqliteVectors = SqliteVectors(self)

    def readable(self) -> Iterator[Readable]:
        for row in rows_of(self.path, READABLE):
            message, session, author, text, sent_at, by_us, to = row
            author, to = ("-", to) if by_us else (author, "")
            yield Readable(str(self.path), text, session, "", author, to, str(message), sent_at)
        pages = rows_of(self.path, PAGES.format(index="words"))
        yield from (Readable(str(self.path), one) for one in orphans(rows_of(self.path, INDEXED), pages))

    # ------------------------------------------------------------------ writing

    def write(self, changes: Sequence[Change], *, words: Words, consent: Consent) -> None:
        def work(writer: SqliteWriter) -> None:
            for change in changes:
                make(writer, change, words, consent)

        # Without a file there is nothing to change or to delete.
        if any(isinstance(change, Put) for change in changes) or self._there():
            self._alone(partial(self._written, work, surely=False))

    def purge(self, before_ms: int) -> int:
        self._remove_copies(before_ms)
        return self._removed(lambda writer: writer.remove("sent_at < ?", (before_ms,)))

    def drop_channel(self, channel_id: str) -> int:
        where = "channel_id = ? OR group_id = ?"
        return self._removed(lambda writer: writer.remove(where, (channel_id, channel_id)))

    def sweep(self, consent: Consent) -> int:
        def work(writer: SqliteWriter) -> None:
            for person in writer.people():
                if person and (until := consent.cutoff(person)) > NEVER:
                    writer.remove_person(person, until)

        return self._removed(work)

    def erase_person(self, user_id: str) -> int:
        gone = self._removed(lambda writer: writer.remove_person(user_id, ALWAYS), anew=True)
        self._remove_copies()  # nobody can tell whose words a damaged file contains
        return gone

    def take_out(self, withdrawal: Withdrawal) -> int:
        def work(writer: SqliteWriter) -> list[bytes] | None:
            if not withdrawal.everything:
                return remains_of(withdraw(writer, withdrawal), withdrawal)
            writer.remove_person(withdrawal.user_id, withdrawal.at)
            return None

        gone = self._removed(work)
        if not withdrawal.open_only:
            self._remove_copies()  # nobody can tell whose words a damaged file contains
        return gone

    def _removed(self, work: Callable[[SqliteWriter], list[bytes] | None], *, anew: bool = False) -> int:
        """Destroy every byte of the rows that `work` deletes or replaces. Returns how many there were.

        It returns further bytes that must not be left. `anew`: the file is written anew in any case. Raises
        MemoryFault if bytes may be left, which the next call or start destroys.
        """
        return self.change(partial(self._written, work, anew=anew), 0)

    def _written(
        self,
        work: Callable[[SqliteWriter], list[bytes] | None],
        connection: sqlite3.Connection,
        *,
        anew: bool = False,
        surely: bool = True,
    ) -> int:
        """Do it as `_removed` says; unless `surely`, bytes may be left for the next call."""
        (left,) = connection.execute("PRAGMA application_id").fetchone()  # by a run that was killed
        writer = SqliteWriter(connection)
        with transaction(connection):  # with the index, so that a kill leaves no word in it
            remains = work(writer) or []
            if writer.gone:
                connection.execute(FORGET_WORDS)
                connection.execute("PRAGMA application_id = 1")
        if writer.gone or (surely and (left or anew)):
            try:
                if left or anew or not checkpoint(connection) or self._has([*remains, *writer.gone]):
                    _destroy(connection)
                connection.execute("PRAGMA application_id = 0")
            except sqlite3.Error as error:
                if surely:
                    raise
                log.warning("%s may still have words of edited or deleted messages: %s", self.path, error)
        return len(writer.gone)

    # ------------------------------------------------------------------ reading

    def ask(self, work: Callable[[Reader], T], nothing: T) -> T:
        return self.read(lambda connection: work(SqliteReader(connection, self.vectors.known)), nothing)

    def read(self, look: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Return what a query finds, or `nothing` if there is no archive. Raises MemoryFault."""
        seen = self._files
        try:
            return self._reader.run(look)
        except _NoArchive:
            return nothing
        except (*FAULTS, OSError) as error:
            if is_damage(error):
                with self._writer.lock:
                    if seen == self._files:
                        self._set_aside(error)
            raise MemoryFault(f"{self.path.name} cannot be read: {error}") from error

    def close(self) -> None:
        if not self._writer.close(CLOSE_S):
            log.warning("%s is still being written; it is left open", self.path.name)
            return
        self._reader.close(CLOSE_S)

    def change(self, work: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Return what work on the writing connection returns; `nothing` if there is no archive.

        Raises MemoryFault.
        """
        return self._alone(work) if self._there() else nothing

    # ------------------------------------------------------------------ the file

    def _there(self) -> bool:
        return self.path.exists()

    def _alone(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work on the writing connection; if the file is damaged, repeat it once on a new one."""

        def watched(connection: sqlite3.Connection) -> T:
            try:
                return work(connection)
            finally:
                self.vectors.watch(connection)

        try:
            return self._writer.run(watched)
        except (*FAULTS, OSError) as error:
            raise MemoryFault(f"{self.path.name} cannot be used: {error}") from error

    def _check(self, connection: sqlite3.Connection) -> None:
        check_ours(connection, VERSION, self.path.name)

    def _open_to_write(self) -> sqlite3.Connection:
        def prepare(connection: sqlite3.Connection) -> None:
            make_tables(connection, SCHEMA, VERSION)

        return connect(self.path, check=self._check, prepare=prepare)

    def _open_to_read(self) -> sqlite3.Connection:
        if not self._there():
            raise _NoArchive

        def prepare(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA query_only = ON")
            if not version_of(connection):  # it is just being made
                raise _NoArchive

        return connect(self.path, check=self._check, prepare=prepare, cache_kib=CACHE_KIB)

    def _set_aside(self, error: Exception) -> None:
        """Rename a damaged file. The caller has the writer's lock. Raises OSError."""
        self.close()
        aside = set_aside(self.path, stamp_of(self._clock()))
        self._files += 1
        log.error(
            "%s is damaged (%s); it is kept as %s, and a new one is begun", self.path, error, aside.name
        )

    def _has(self, remains: Sequence[bytes]) -> bool:
        """Whether the file may have any of these bytes. It mostly has not, and `VACUUM` costs far more."""
        if len(remains) > 100:  # then that is faster
            return True
        with self.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return any(content.find(one) >= 0 for one in remains)

    def _remove_copies(self, before_ms: int | None = None) -> None:
        """Remove damaged files that were kept; with a time (ms), only those from before it."""
        try:
            for path in sorted(self.path.parent.glob(f"{self.path.name}.corrupt-*")):
                if before_ms is None or path.stat().st_mtime_ns < before_ms * 1_000_000:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise MemoryFault(f"a damaged archive that was kept cannot be removed: {error}") from error


def _destroy(connection: sqlite3.Connection) -> None:
    """Destroy all remains of deleted rows. Raises sqlite3.Error if some may be left.

    Rows are overwritten in place, but the index has words of them until its parts are merged, and a
    rearranged page may contain a second copy of a row.
    """
    connection.execute(FORGET_WORDS)
    connection.execute("VACUUM")
    if not checkpoint(connection):
        raise sqlite3.OperationalError("somebody reads the archive, so its log cannot be emptied")


class _NoArchive(Exception):
    """There is no archive, because nothing was ever written."""


# ---------------------------------------------------------------------- queries

FEW_PLACES = 4
_JOINED = "SELECT entries.id FROM words JOIN entries ON entries.rowid = words.rowid WHERE words MATCH ?"


class SqliteReader:
    """A `Reader` of a connection. `signatures` are those of the vectors, None if they are not known."""

    def __init__(self, connection: sqlite3.Connection, signatures: Callable[[], Signatures | None]) -> None:
        self._connection = connection
        self._signatures = signatures

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        sql = "SELECT doc FROM vocabulary WHERE term = ? AND col = 'terms'"
        found = {term: self._connection.execute(sql, (term,)).fetchone() for term in terms}
        return {term: row[0] for term, row in found.items() if row is not None and row[0]}

    def best(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        # The place is asked of the rows: as a part of the pattern it would be scored, for all that is there.
        sql = f"""{_JOINED} AND +entries.place IN ({placeholders(places)})
            ORDER BY bm25(words, 0.0, 1.0), words.rowid DESC LIMIT ?"""
        return self._ids(sql, f"terms : ({any_of(terms)})", *places, most)

    def newest(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        sql = f"""{_JOINED} AND +entries.place IN ({placeholders(places)})
            ORDER BY words.rowid DESC LIMIT ?"""
        pattern = f"terms : ({any_of(terms)})"
        if not self._is_most(places):  # else the newest are soon found without asking the index for it
            pattern = f"place : ({any_of(places)}) AND {pattern}"
        return self._ids(sql, pattern, *places, most)

    def beside(self, numbers: Collection[int]) -> list[tuple[int, int]]:
        other = "SELECT id FROM entries WHERE session_key = here.session_key AND id"
        sql = f"""SELECT id, ({other} < here.id ORDER BY id DESC LIMIT 1),
                ({other} > here.id ORDER BY id LIMIT 1)
            FROM entries AS here WHERE id IN ({placeholders(numbers)})"""
        rows = self._connection.execute(sql, tuple(numbers)).fetchall()
        return [(row[0], other) for row in rows for other in row[1:] if other is not None]

    def rows(self, numbers: Collection[int], places: Sequence[str]) -> dict[int, tuple[Entry, Indexed]]:
        sql = f"""SELECT {COLUMNS}, terms, length, own, marks FROM entries
            WHERE id IN ({placeholders(numbers)}) AND +place IN ({placeholders(places)})"""
        rows = self._connection.execute(sql, (*numbers, *places))
        return {row[0]: (entry_of(row), indexed_of(row[11:])) for row in rows}

    def totals(self) -> tuple[int, int]:
        count, length = self._connection.execute("SELECT entries, terms FROM totals").fetchone()
        return int(count), int(length)

    def holding(self, text: str, places: Sequence[str], limit: int) -> list[Entry]:
        like = "".join(f"\\{char}" if char in "\\%_" else char for char in text)
        sql = f"""SELECT {COLUMNS} FROM (
                SELECT * FROM entries WHERE {_where(places)} ORDER BY id DESC LIMIT {MOST_SEARCHED})
            WHERE text LIKE ? ESCAPE '\\' ORDER BY id DESC LIMIT ?"""
        return [entry_of(row) for row in self._connection.execute(sql, (*places, f"%{like}%", limit))]

    def speakers(self, places: Sequence[str]) -> set[str]:
        sql = f"SELECT name FROM entries WHERE {_where(places)} ORDER BY id DESC LIMIT {LATELY}"
        return {row[0] for row in self._connection.execute(sql, places)}

    def present(self, channel_ids: Iterable[str]) -> frozenset[str]:
        sql = "SELECT 1 FROM entries WHERE place = ? LIMIT 1"
        ids = [one for one in channel_ids if is_id(one)]
        return frozenset(one for one in ids if self._connection.execute(sql, (f"@g{one}",)).fetchone())

    # ------------------------------------------------------------------ vectors

    def nearest(self, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        known = self._known(question)
        return known.nearest(question, places, most) if known is not None else []

    def some(self, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        known = self._known(question)
        return known.some(places, most) if known is not None else []

    def vectors(self, numbers: Collection[int], length: int) -> list[tuple[int, bytes]]:
        if not has_tables(self._connection):
            return []
        sql = f"""SELECT id, vector FROM vectors WHERE id IN ({placeholders(numbers)})
            AND length(vector) = ? ORDER BY id"""
        return self._connection.execute(sql, (*numbers, length)).fetchall()

    # ------------------------------------------------------------------ inside

    def _known(self, question: Sequence[float]) -> Signatures | None:
        """The signatures, if they can be compared with a question."""
        known = self._signatures()
        return known if known is not None and known.dims == len(question) else None

    def _is_most(self, places: Sequence[str]) -> bool:
        """Whether a large part of all entries is at these places."""
        sql = "SELECT doc FROM vocabulary WHERE term = ? AND col = 'place'"
        seen = sum(row[0] for place in places for row in self._connection.execute(sql, (place,)))
        return bool(seen * 5 >= self.totals()[0])

    def _ids(self, sql: str, *given: object) -> list[int]:
        return [row[0] for row in self._connection.execute(sql, given)]


def _where(places: Sequence[str]) -> str:
    """The condition for the newest entries of places, of which there is at least one.

    Of few places the index knows the newest; among many, going back through all is faster than sorting.
    """
    return f"{'place' if len(places) <= FEW_PLACES else '+place'} IN ({placeholders(places)})"

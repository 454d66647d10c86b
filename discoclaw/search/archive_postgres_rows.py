"""The statements that change the rows of an archive in PostgreSQL. Blocking; raises psycopg.Error.

One transaction at a time changes the archive: each begins by locking the one row of `archive_state`. So the
statistics stay exact, what is stored later has the higher `seq`, and whether something may be kept is
decided after everything that an erasing elsewhere did before.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from discoclaw.core.entry import Entry
from discoclaw.search.archive_rows import (
    COLUMNS,
    Words,
    entry_of,
    indexed_values,
    number_of,
    place_of,
    values_of,
)
from discoclaw.search.archive_vectors import FEWEST_TERMS
from discoclaw.search.archive_withdrawing import Theirs

if TYPE_CHECKING:
    from discoclaw.store.postgres.connection import Connection

LOCK = "SELECT model <> '' FROM archive_state FOR UPDATE"
AT_ONCE = 500
"""The most entries that one statement stores."""
LONGEST_TERM = 400
"""The most bytes of a term in the index, which cannot take longer ones; of these their hash is there."""
_TYPES = (
    *("bigint", "text", "text", "text", "text", "text", "text", "text", "bigint", "boolean", "text"),
    *("bigint", "text", "integer", "integer", "integer"),
)
_INDEXED = f"{COLUMNS}, place, terms, length, own, marks"
_GIVEN = f"unnest({', '.join(f'%s::{one}[]' for one in _TYPES)})"

_INSERT = f"""INSERT INTO archive_entries ({_INDEXED}) SELECT {_INDEXED}
    FROM {_GIVEN} WITH ORDINALITY AS given ({_INDEXED}, nth) ORDER BY nth
    RETURNING seq, place, terms, length"""
_UPDATE = f"""UPDATE archive_entries e
    SET name = given.name, text = given.text, terms = given.terms, length = given.length, own = given.own,
        marks = given.marks
    FROM {_GIVEN} AS given ({_INDEXED}) WHERE e.id = given.id RETURNING e.seq, e.place, e.terms, e.length"""
_COUNT_TERMS = """UPDATE archive_terms t SET entries = t.entries + given.entries
    FROM unnest(%s::text[], %s::bigint[]) AS given (term, entries) WHERE t.term = given.term
    RETURNING t.term, t.id, t.entries"""
_NEW_TERMS = """INSERT INTO archive_terms (term, entries) SELECT * FROM unnest(%s::text[], %s::bigint[])
    RETURNING term, id"""
_INSERT_WORDS = """INSERT INTO archive_words (seq, place, term, times, tokens)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::integer[], %s::integer[])"""
_DELETE_WORDS = """DELETE FROM archive_words w
    USING unnest(%s::bigint[], %s::bigint[], %s::integer[]) AS given (seq, place, term)
    WHERE w.term = given.term AND w.place = given.place AND w.seq = given.seq"""
_COUNT = """UPDATE archive_state
    SET entries = entries + %s, length = length + %s, tokens = tokens + %s"""
WANTED = f"""INSERT INTO archive_unembedded SELECT id, place FROM archive_entries e
    WHERE seq = ANY(%(seqs)s) AND own >= {FEWEST_TERMS}
        AND NOT EXISTS (SELECT FROM archive_vectors v WHERE v.id = e.id)
    ON CONFLICT DO NOTHING"""

_THEIRS = """((author_id = %(person)s AND NOT %(alone)s) OR (to_id = %(person)s AND to_id <> ''))
    AND sent_at <= %(until)s"""
_OPEN = "place >= 0 AND NOT (session_key LIKE 'discord:thread:%%' AND group_id = channel_id)"


class Row(NamedTuple):
    """The columns of an entry in the index."""

    seq: int
    place: int
    terms: str
    length: int

    @property
    def words(self) -> list[str]:
        """The terms in order, with repetitions."""
        return self.terms.split(" ") if self.terms else []


def place_number(place: str) -> int:
    """A place as a number; 0 if it is none, and then nobody may find what was said there."""
    number = number_of(place[2:]) or 0
    return -number if place.startswith("@d") else number


def places_of(places: Iterable[str]) -> list[int]:
    """Places as numbers, without those that are none."""
    return [number for number in map(place_number, places) if number]


def key_of(term: str) -> str:
    """The key of a term in the index."""
    if len(term.encode()) <= LONGEST_TERM:
        return term
    return hashlib.sha256(term.encode()).hexdigest()


class PostgresWriter:
    """The rows of an archive in PostgreSQL, in one transaction: a `Writer` and a `Holder`.

    What is put waits for `flush`, which the other methods call too: many rows cost as many statements as one.
    """

    def __init__(self, db: "Connection") -> None:
        self._db = db
        self._waiting: dict[int, tuple[tuple[Any, ...], bool]] = {}
        self._theirs: tuple[Theirs, dict[int, frozenset[str]]] | None = None
        self._embeds = bool(_one(db.execute(LOCK).fetchone()))

    def put(self, entry: Entry, words: Words, *, fresh: bool) -> None:
        number = int(entry.id)
        if number in self._waiting or len(self._waiting) >= AT_ONCE:
            self.flush()
        place = place_number(place_of(entry))
        self._waiting[number] = ((*values_of(entry), place, *indexed_values(words(entry))), fresh)

    def entry(self, number: int, author_id: str) -> Entry | None:
        self.flush()
        sql = f"SELECT {COLUMNS} FROM archive_entries WHERE id = %s AND author_id = %s"
        row = self._db.execute(sql, (number, author_id)).fetchone()
        return entry_of(row) if row is not None else None

    def drop(self, number: int) -> None:
        self.remove("id = %(id)s", {"id": number})

    def keep_only(self, session_key: str, numbers: Sequence[int]) -> None:
        where = """session_key = %(key)s AND id BETWEEN %(first)s AND %(last)s AND NOT by_us
            AND id <> ALL(%(kept)s)"""
        given = {"key": session_key, "first": min(numbers), "last": max(numbers), "kept": list(numbers)}
        self.remove(where, given)

    def remove(self, where: str, given: Mapping[str, Any], most: int | None = None) -> int:
        """Delete entries with everything that was made of them, at most so many. Returns how many."""
        self.flush()
        sql = f"SELECT seq FROM archive_entries WHERE {where} LIMIT %(most)s"
        seqs = [row[0] for row in self._db.execute(sql, {**given, "most": most})]
        self.delete(seqs)
        return len(seqs)

    def flush(self) -> None:
        """Store what waits."""
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        sql = "SELECT id, author_id, name, text FROM archive_entries WHERE id = ANY(%s)"
        known = {row[0]: row[1:] for row in self._db.execute(sql, (list(waiting),))}
        new, edited = [], []
        for number, (row, fresh) in waiting.items():
            author, name, text = row[5:8]
            if number not in known:
                new.append(row)
            elif not fresh and known[number][0] == author and known[number][1:] != (name, text):
                edited.append((row, known[number][2] != text))
        if edited:
            self._forget("id = ANY(%s)", [row[0] for row, _ in edited])
            self._unembed([row[0] for row, other in edited if other])
            self._store(_UPDATE, [row for row, _ in edited])
        if new:
            self._store(_INSERT, new)

    # ------------------------------------------------------------------ withdrawing

    def texts(self, rows: Iterable[int], *, open_only: bool) -> dict[int, str]:
        sql = f"""SELECT seq, text FROM archive_entries WHERE seq = ANY(%(seqs)s)
            {f"AND {_OPEN}" if open_only else ""} ORDER BY seq"""
        return dict(self._db.execute(sql, {"seqs": list(rows)}).fetchall())

    def of_ids(self, numbers: Iterable[int]) -> list[int]:
        sql = "SELECT seq FROM archive_entries WHERE id = ANY(%s)"
        return [row[0] for row in self._db.execute(sql, (list(numbers),))]

    def with_term(self, theirs: Theirs, term: str) -> list[int]:
        return [seq for seq, terms in self._terms_of(theirs).items() if term in terms]

    def beginning(self, theirs: Theirs, stumps: Sequence[str]) -> list[int]:
        begins = tuple(stumps)
        found = self._terms_of(theirs).items()
        return [seq for seq, terms in found if any(term.startswith(begins) for term in terms)]

    def all_of(self, theirs: Theirs) -> list[tuple[int, str]]:
        sql = f"SELECT seq, text FROM archive_entries WHERE {_THEIRS}"
        return self._db.execute(sql, _given(theirs)).fetchall()

    def delete(self, rows: Iterable[int]) -> None:
        seqs = list(rows)
        if seqs:
            self._forget("seq = ANY(%s)", seqs)
            self._db.execute("DELETE FROM archive_entries WHERE seq = ANY(%s)", (seqs,))

    # ------------------------------------------------------------------ inside

    def _terms_of(self, theirs: Theirs) -> dict[int, frozenset[str]]:
        """The terms of a person's rows. The index would name everybody's."""
        if self._theirs is None or self._theirs[0] != theirs:
            sql = f"SELECT seq, terms FROM archive_entries WHERE {_THEIRS}"
            rows = self._db.execute(sql, _given(theirs))
            self._theirs = theirs, {seq: frozenset(terms.split(" ")) for seq, terms in rows}
        return self._theirs[1]

    def _store(self, sql: str, given: Sequence[tuple[Any, ...]]) -> None:
        """Insert or update entries, and index them."""
        columns = [list(column) for column in zip(*given, strict=True)]
        rows = [Row(*one) for one in self._db.execute(sql, columns)]
        ids = self._count(rows, 1)
        words = [
            (row.seq, row.place, ids[key_of(term)], times, len(row.words))
            for row in rows
            for term, times in Counter(row.words).items()
        ]
        if words:
            self._db.execute(_INSERT_WORDS, [list(column) for column in zip(*words, strict=True)])
        if self._embeds:
            self._db.execute(WANTED, {"seqs": [row.seq for row in rows]})

    def _forget(self, where: str, numbers: Sequence[int]) -> None:
        """Remove entries from the index and from the statistics."""
        sql = f"SELECT seq, place, terms, length FROM archive_entries WHERE {where}"
        rows = [Row(*one) for one in self._db.execute(sql, (list(numbers),))]
        ids = self._count(rows, -1)
        words = [(row.seq, row.place, ids[key_of(term)]) for row in rows for term in set(row.words)]
        if words:
            self._db.execute(_DELETE_WORDS, [list(column) for column in zip(*words, strict=True)])
        unused = "DELETE FROM archive_terms WHERE entries = 0 AND id = ANY(%s)"
        self._db.execute(unused, (list(ids.values()),))

    def _count(self, rows: Sequence[Row], sign: int) -> dict[str, int]:
        """Add entries to the statistics, or take them out. Returns the ids of their terms."""
        tokens = len(rows) + sum(len(row.words) for row in rows)
        length = sum(row.length for row in rows)
        self._db.execute(_COUNT, (sign * len(rows), sign * length, sign * tokens))
        counted = Counter(key_of(term) for row in rows for term in set(row.words))
        given = list(counted), [sign * count for count in counted.values()]
        ids = {term: number for term, number, _ in self._db.execute(_COUNT_TERMS, given)}
        new = {term: count for term, count in counted.items() if term not in ids}
        if new:
            ids |= dict(self._db.execute(_NEW_TERMS, (list(new), list(new.values()))).fetchall())
        return ids

    def _unembed(self, ids: Sequence[int]) -> None:
        for table in ("archive_vectors", "archive_unembedded"):
            self._db.execute(f"DELETE FROM {table} WHERE id = ANY(%s)", (list(ids),))


def _given(theirs: Theirs) -> dict[str, object]:
    return {"person": theirs.person, "until": theirs.until, "alone": theirs.alone}


def _one(row: Sequence[Any] | None) -> Any:
    return row[0] if row is not None else None

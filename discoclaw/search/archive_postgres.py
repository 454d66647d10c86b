"""The archive in PostgreSQL, which several processes may share. Everything here blocks.

Every process may write and search. One transaction at a time changes the archive, and each is short: what
may be much is removed in parts. Failures become `MemoryFault`. After one, the caller offers again what it
wanted to write; that changes nothing if it was written after all. The tables are in
`store/postgres/archive`. `PostgresReader`, which works on one connection, raises psycopg.Error.
"""

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from discoclaw.core.audit import Readable
from discoclaw.core.consent import NEVER, Consent
from discoclaw.core.entry import Entry
from discoclaw.core.errors import MemoryFault
from discoclaw.core.purge import Withdrawal
from discoclaw.search.archive import Archive
from discoclaw.search.archive_postgres_rows import PostgresWriter, key_of, place_number, places_of
from discoclaw.search.archive_postgres_vectors import PostgresVectors, bits_of
from discoclaw.search.archive_queries import LATELY, MOST_SEARCHED, Reader
from discoclaw.search.archive_rows import (
    COLUMNS,
    Change,
    Indexed,
    Put,
    Words,
    entry_of,
    indexed_of,
    is_id,
    make,
    number_of,
)
from discoclaw.search.archive_withdrawing import withdraw

if TYPE_CHECKING:
    from discoclaw.store.postgres.connection import Connection
    from discoclaw.store.postgres.tables import Tables


T = TypeVar("T")

AT_ONCE = 500
"""The most entries that one transaction removes or reads."""
_THEIRS = """(author_id = %(person)s OR (to_id = %(person)s AND to_id <> '') OR place = %(place)s)
    AND sent_at <= %(until)s"""
_FOR_EVER = 2**63 - 1
# Each person once, without reading all entries: from one to the next along the index.
_PEOPLE = """WITH RECURSIVE people AS (
        (SELECT {column} AS person FROM archive_entries WHERE {column} > %(after)s ORDER BY 1 LIMIT 1)
        UNION ALL
        SELECT (SELECT {column} FROM archive_entries WHERE {column} > person ORDER BY 1 LIMIT 1)
        FROM people WHERE person IS NOT NULL)
    SELECT person FROM people WHERE person IS NOT NULL LIMIT %(most)s"""
_READABLE = """SELECT seq, id, session_key, author_id, text, sent_at, by_us, to_id FROM archive_entries
    WHERE seq > %s ORDER BY seq LIMIT %s"""


class PostgresArchive(Archive):
    """The archive in the database of a store."""

    def __init__(self, tables: "Tables") -> None:
        self._tables = tables
        self.vectors: PostgresVectors = PostgresVectors(self._change)

    def readable(self) -> Iterator[Readable]:
        after = 0
        while rows := self._rows(_READABLE, (after, AT_ONCE)):
            for _, message, session, author, text, sent_at, by_us, to in rows:
                who, whom = ("-", to) if by_us else (author, "")
                where = str(self._tables.path / "archive_entries")
                yield Readable(where, text, session, "", who, whom, str(message), sent_at)
            after = rows[-1][0]

    # ------------------------------------------------------------------ writing

    def write(self, changes: Sequence[Change], *, words: Words, consent: Consent) -> None:
        # A transaction that waits for us blocks all others, so the words are made before it.
        made = {one.entry: words(one.entry) for one in changes if isinstance(one, Put)}

        def known(entry: Entry) -> Indexed:
            return made[entry] if entry in made else words(entry)

        def work(db: "Connection") -> None:
            writer = PostgresWriter(db)
            for change in changes:
                make(writer, change, known, consent)
            writer.flush()

        self._change(work)

    def purge(self, before_ms: int) -> int:
        return self._remove("sent_at < %(before)s", {"before": before_ms})

    def drop_channel(self, channel_id: str) -> int:
        where = "(channel_id = %(channel)s OR (place = %(place)s AND place > 0))"
        return self._remove(where, {"channel": channel_id, "place": number_of(channel_id) or 0})

    def sweep(self, consent: Consent) -> int:
        gone = 0
        for person in self._people():
            if (until := consent.cutoff(person)) > NEVER:
                gone += self._remove_person(person, until)
        return gone

    def erase_person(self, user_id: str) -> int:
        return self._remove_person(user_id)

    def take_out(self, withdrawal: Withdrawal) -> int:
        if withdrawal.everything:
            return self._remove_person(withdrawal.user_id, withdrawal.at)
        return self._change(lambda db: len(withdraw(PostgresWriter(db), withdrawal)))

    # ------------------------------------------------------------------ reading

    def ask(self, work: Callable[[Reader], T], nothing: T) -> T:
        def asked(db: "Connection") -> T:
            reader = PostgresReader(db)
            outcome = work(reader)
            self.vectors.dims = reader.dims if reader.dims is not None else self.vectors.dims
            return outcome

        try:
            return self._tables.read(asked)
        except OSError as error:
            raise MemoryFault(f"the archive cannot be read: {error}") from error

    def close(self) -> None:
        """The connections belong to the store, which closes them."""

    # ------------------------------------------------------------------ inside

    def _change(self, work: Callable[["Connection"], T]) -> T:
        try:
            return self._tables.write(work)
        except OSError as error:
            raise MemoryFault(f"the archive cannot be changed: {error}") from error

    def _rows(self, sql: str, given: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self._tables.read(lambda db: db.execute(sql, given).fetchall())

    def _remove(self, where: str, given: Mapping[str, Any]) -> int:
        """Delete entries in parts, each with everything that was made of it. Returns how many."""
        gone = 0
        while part := self._change(lambda db: PostgresWriter(db).remove(where, given, AT_ONCE)):
            gone += part
        return gone

    def _remove_person(self, person: str, until_ms: int = _FOR_EVER) -> int:
        """Delete a person's messages, the answers to them, and everything in their direct messages."""
        if not person:
            return 0
        place = -(number_of(person) or 0) or None
        return self._remove(_THEIRS, {"person": person, "place": place, "until": until_ms})

    def _people(self) -> Iterator[str]:
        """Authors and addressees. Raises MemoryFault."""
        for column in ("author_id", "to_id"):
            sql, after = _PEOPLE.format(column=column), ""
            while people := self._read(sql, {"after": after, "most": AT_ONCE}):
                yield from (person for (person,) in people)
                after = people[-1][0]

    def _read(self, sql: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return self._rows(sql, given)
        except OSError as error:
            raise MemoryFault(f"the archive cannot be read: {error}") from error


# ---------------------------------------------------------------------- queries

FEW_PLACES = 32
"""Up to so many places are each asked for their newest entries; of more, all that match are sorted."""
_K1, _B = 1.2, 0.75
_LEAST = 1e-6
"""The weight of a term that most entries have."""

_BESIDE = """SELECT id,
        (SELECT id FROM archive_entries WHERE session_key = here.session_key AND id < here.id
            ORDER BY id DESC LIMIT 1),
        (SELECT id FROM archive_entries WHERE session_key = here.session_key AND id > here.id
            ORDER BY id LIMIT 1)
    FROM archive_entries AS here WHERE id = ANY(%s)"""
_NEWEST = """SELECT e.id FROM (
        SELECT DISTINCT seq FROM {words} ORDER BY seq DESC LIMIT %(most)s) AS found
    JOIN archive_entries e USING (seq) ORDER BY seq DESC"""
_OF_FEW = """unnest(%(terms)s::integer[]) AS t, unnest(%(places)s::bigint[]) AS p, LATERAL (
    SELECT seq FROM archive_words WHERE term = t AND place = p ORDER BY seq DESC LIMIT %(most)s) AS w"""
_OF_MANY = "archive_words WHERE term = ANY(%(terms)s) AND place = ANY(%(places)s)"


class PostgresReader:
    """A `Reader` of a connection."""

    def __init__(self, db: "Connection") -> None:
        self._db = db
        self._ids: dict[str, tuple[int, int]] = {}
        self._known: tuple[int, int, int, int] | None = None

    @property
    def state(self) -> tuple[int, int, int, int]:
        """How many entries, their lengths and their tokens together, and the length of their vectors."""
        if self._known is None:
            (found,) = self._db.execute("SELECT entries, length, tokens, dims FROM archive_state").fetchall()
            self._known = (int(found[0]), int(found[1]), int(found[2]), int(found[3]))
        return self._known

    @property
    def dims(self) -> int | None:
        """The length of the vectors, if it was read."""
        return self._known[3] if self._known is not None else None

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        keys = {term: key_of(term) for term in terms}
        if keys:
            sql = "SELECT term, id, entries FROM archive_terms WHERE term = ANY(%s)"
            found = {
                key: (number, int(count))
                for key, number, count in self._db.execute(sql, (list(keys.values()),))
            }
            self._ids |= {term: found[key] for term, key in keys.items() if key in found}
        return {term: self._ids[term][1] for term in keys if term in self._ids}

    def best(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        entries, _, tokens, _ = self.state
        weights = {number: _weight(entries, count) for number, count in (self._ids[one] for one in terms)}
        sql = """SELECT seq, term, times, tokens FROM archive_words
            WHERE term = ANY(%s) AND place = ANY(%s)"""
        found: dict[int, dict[int, int]] = {}
        lengths: dict[int, int] = {}
        for seq, term, times, length in self._db.execute(sql, (list(weights), places_of(places))):
            found.setdefault(seq, {})[term] = times
            lengths[seq] = length + 1
        average = tokens / entries if entries else 1.0
        scores = {
            seq: _score(times, weights, _K1 * (1 - _B + _B * lengths[seq] / average))
            for seq, times in found.items()
        }
        best = heapq.nlargest(most, scores, key=lambda seq: (scores[seq], seq))
        sql = "SELECT seq, id FROM archive_entries WHERE seq = ANY(%s)"
        ids: dict[int, int] = dict(self._db.execute(sql, (best,)).fetchall())
        return [ids[seq] for seq in best if seq in ids]

    def newest(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        given = {
            "terms": [self._ids[term][0] for term in terms],
            "places": places_of(places),
            "most": most,
        }
        words = _OF_FEW if len(places) <= FEW_PLACES else _OF_MANY
        return [row[0] for row in self._db.execute(_NEWEST.format(words=words), given)]

    def beside(self, numbers: Collection[int]) -> list[tuple[int, int]]:
        rows = self._db.execute(_BESIDE, (list(numbers),)).fetchall() if numbers else []
        return [(row[0], other) for row in rows for other in row[1:] if other is not None]

    def rows(self, numbers: Collection[int], places: Sequence[str]) -> dict[int, tuple[Entry, Indexed]]:
        sql = f"""SELECT {COLUMNS}, terms, length, own, marks FROM archive_entries
            WHERE id = ANY(%s) AND place = ANY(%s)"""
        rows = self._db.execute(sql, (list(numbers), places_of(places)))
        return {row[0]: (entry_of(row), indexed_of(row[11:])) for row in rows}

    def totals(self) -> tuple[int, int]:
        entries, length, *_ = self.state
        return entries, length

    def holding(self, text: str, places: Sequence[str], limit: int) -> list[Entry]:
        like = "".join(f"\\{char}" if char in "\\%_" else char for char in text)
        # In the collation "C" only ASCII letters have two cases.
        sql = f"""SELECT {COLUMNS} FROM ({self._newest_of(places, COLUMNS)}) AS newest
            WHERE lower(text COLLATE "C") LIKE lower(%(like)s::text COLLATE "C")
            ORDER BY id DESC LIMIT %(limit)s"""
        given = {"places": places_of(places), "most": MOST_SEARCHED, "like": f"%{like}%", "limit": limit}
        return [entry_of(row) for row in self._db.execute(sql, given)]

    def speakers(self, places: Sequence[str]) -> set[str]:
        given = {"places": places_of(places), "most": LATELY}
        return {row[0] for row in self._db.execute(self._newest_of(places, "name, id"), given)}

    def present(self, channel_ids: Iterable[str]) -> frozenset[str]:
        known = {place_number(f"@g{one}"): one for one in channel_ids if is_id(one)}
        sql = """SELECT p FROM unnest(%s::bigint[]) AS p
            WHERE p <> 0 AND EXISTS (SELECT FROM archive_entries WHERE place = p)"""
        return frozenset(known[row[0]] for row in self._db.execute(sql, (list(known),)))

    # ------------------------------------------------------------------ vectors

    def nearest(self, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        if self.state[3] != len(question):
            return []
        signs = bits_of(question)
        # Only signs of one length are compared: others raise an error.
        sql = """SELECT id FROM archive_signs WHERE place = ANY(%(places)s) AND length(signs) = %(length)s
            ORDER BY CASE WHEN length(signs) = %(length)s THEN bit_count(signs # %(signs)s::bit varying) END,
                id DESC LIMIT %(most)s"""
        given = {"places": places_of(places), "length": len(signs), "signs": signs, "most": most}
        return [row[0] for row in self._db.execute(sql, given)]

    def some(self, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        if self.state[3] != len(question):
            return []
        sql = """SELECT s.id FROM unnest(%(places)s::bigint[]) AS p, LATERAL (
                SELECT id, mixed FROM archive_signs WHERE place = p ORDER BY mixed LIMIT %(most)s) AS s
            ORDER BY s.mixed LIMIT %(most)s"""
        given = {"places": places_of(places), "most": most}
        return sorted(row[0] for row in self._db.execute(sql, given))

    def vectors(self, numbers: Collection[int], length: int) -> list[tuple[int, bytes]]:
        sql = """SELECT id, vector FROM archive_vectors WHERE id = ANY(%s) AND octet_length(vector) = %s
            ORDER BY id"""
        rows: list[tuple[Any, ...]] = self._db.execute(sql, (list(numbers), length), binary=True).fetchall()
        return [(row[0], bytes(row[1])) for row in rows]

    # ------------------------------------------------------------------ inside

    @staticmethod
    def _newest_of(places: Sequence[str], columns: str) -> str:
        """The query for the newest entries of places."""
        if len(places) > FEW_PLACES:
            return f"""SELECT {columns} FROM archive_entries WHERE place = ANY(%(places)s)
                ORDER BY id DESC LIMIT %(most)s"""
        return f"""SELECT e.* FROM unnest(%(places)s::bigint[]) AS p, LATERAL (
                SELECT {columns} FROM archive_entries WHERE place = p ORDER BY id DESC LIMIT %(most)s) AS e
            ORDER BY e.id DESC LIMIT %(most)s"""


def _weight(entries: int, count: int) -> float:
    """The weight of a term that so many of all entries have."""
    count = min(count, entries)  # another process may have removed some in between
    weight = math.log((entries - count + 0.5) / (count + 0.5))
    return weight if weight > 0 else _LEAST


def _score(times: dict[int, int], weights: dict[int, float], damping: float) -> float:
    """The sum over the terms in the order of the query, as FTS5 adds them."""
    score = 0.0
    for term, weight in weights.items():
        count = times.get(term)
        if count is not None:
            score += weight * ((count * (_K1 + 1.0)) / (count + damping))
    return score

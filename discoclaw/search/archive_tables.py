"""The archive's engine for tables in PostgreSQL, which several processes share. Everything here blocks.

Every process may write and search. One transaction at a time changes the archive, and each is short: it
begins by locking the one row of `archive_state`. So the statistics stay exact, what is stored later has the
higher `seq`, and whether something may be kept is decided after everything that an erasing elsewhere did
before. After a failure, the caller offers again what it wanted to write; that changes nothing if it was
written after all.

Nothing lies in RAM: an erasing in one process would have to reach the RAM of all others. So signs of vectors
are compared in the database, which costs 24 ms for 100,000 messages that may be seen, and 1 ms for those of
one channel. A vector leaves with its message by the foreign keys. Failures become `MemoryFault`. The tables
are in `store/postgres/schema`.
"""

import hashlib
import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from discoclaw.core.errors import faulting
from discoclaw.search.signatures import FEWEST_TERMS, MIXING, bits_of
from discoclaw.store.port import Sql

if TYPE_CHECKING:
    from discoclaw.store.postgres.connection import Connection
    from discoclaw.store.postgres.tables import Tables

T = TypeVar("T")

AT_ONCE = 500
"""The most entries that one transaction removes, or that are read at once."""
LISTED_AT_ONCE = 5_000
"""How many entries are listed as without a vector in one transaction."""
FEW_PLACES = 32
"""Up to so many places are each asked for their newest entries; of more, all that match are sorted."""
LONGEST_TERM = 400
"""The most bytes of a term in the index, which cannot take longer ones; of these their hash is there."""
_K1, _B = 1.2, 0.75
_LEAST = 1e-6
"""The weight of a term that most entries have."""

_LOCK = "SELECT dims FROM archive_state FOR UPDATE"
_KEY = f"""CASE WHEN octet_length(word) <= {LONGEST_TERM} THEN word
    ELSE encode(sha256(convert_to(word, 'UTF8')), 'hex') END"""
_INDEX = f"""WITH entered AS (
        SELECT seq, place, length, string_to_array(terms, ' ') AS words FROM archive_entries
        WHERE id IN :ids),
    spoken AS (
        SELECT seq, place, {_KEY} AS key, count(*)::integer AS times, cardinality(words) AS tokens
        FROM entered, unnest(words) AS word GROUP BY seq, place, key, tokens),
    counted AS (SELECT key, count(*) AS entries FROM spoken GROUP BY key),
    summed AS (
        SELECT count(*) AS entries, coalesce(sum(length), 0)::bigint AS length,
            coalesce(sum(1 + cardinality(words)), 0)::bigint AS tokens FROM entered)"""
_ENTER = f"""{_INDEX},
    known AS (
        UPDATE archive_terms AS t SET entries = t.entries + counted.entries
        FROM counted WHERE t.term = key RETURNING t.id, t.term),
    new AS (
        INSERT INTO archive_terms (term, entries)
        SELECT key, entries FROM counted WHERE NOT EXISTS (SELECT FROM archive_terms WHERE term = key)
        RETURNING id, term),
    summed_up AS (
        UPDATE archive_state AS s SET entries = s.entries + summed.entries,
            length = s.length + summed.length, tokens = s.tokens + summed.tokens FROM summed)
    INSERT INTO archive_words (seq, place, term, times, tokens)
    SELECT seq, place, id, times, tokens FROM spoken
        JOIN (SELECT * FROM known UNION ALL SELECT * FROM new) AS t ON t.term = key"""
_LEAVE = f"""{_INDEX},
    gone AS (
        DELETE FROM archive_words AS w USING spoken AS s JOIN archive_terms AS t ON t.term = s.key
        WHERE w.term = t.id AND w.place = s.place AND w.seq = s.seq),
    fewer AS (
        UPDATE archive_terms AS t SET entries = t.entries - counted.entries
        FROM counted WHERE t.term = key AND t.entries > counted.entries),
    none AS (
        DELETE FROM archive_terms AS t USING counted WHERE t.term = key AND t.entries <= counted.entries)
    UPDATE archive_state AS s SET entries = s.entries - summed.entries,
        length = s.length - summed.length, tokens = s.tokens - summed.tokens FROM summed"""
_WANTED = f"""INSERT INTO archive_unembedded SELECT id, place FROM archive_entries AS e
    WHERE id IN :ids AND own >= {FEWEST_TERMS} AND EXISTS (SELECT FROM archive_state WHERE model <> '')
        AND NOT EXISTS (SELECT FROM archive_vectors AS v WHERE v.id = e.id)
    ON CONFLICT DO NOTHING"""
_TERMS = "ARRAY(SELECT id FROM archive_terms WHERE term IN :keys)"
_OF_FEW = f"""unnest({_TERMS}) AS t, unnest(:places::bigint[]) AS p, LATERAL (
    SELECT seq FROM archive_words WHERE term = t AND place = p ORDER BY seq DESC LIMIT :most) AS w"""
_OF_MANY = f"archive_words WHERE term = ANY({_TERMS}) AND place IN :places"
_NEWEST = """SELECT e.id FROM (SELECT DISTINCT seq FROM {0} ORDER BY seq DESC LIMIT :most) AS found
    JOIN archive_entries AS e USING (seq) ORDER BY seq DESC"""


class ArchiveTables:
    """The engine for the tables of a store's database, with the methods of `ArchiveFile`."""

    about, most, few = "archive_state", AT_ONCE, FEW_PLACES

    def __init__(self, tables: "Tables") -> None:
        self.tables = tables
        self.where = str(tables.path / "archive_entries")
        self.dims: int | None = None
        """The length of the vectors when last read: another process may have changed it since."""

    # ------------------------------------------------------------------ transactions

    def read(self, work: Callable[[Sql], T], nothing: T) -> T:
        with faulting("the archive cannot be read"):
            return self.tables.read(lambda db: work(Sql(db)))

    def change(
        self,
        work: Callable[[Sql], T],
        nothing: T,
        *,
        create: bool = False,
        sure: bool = False,
        anew: bool = False,
    ) -> T:
        def changed(db: "Connection") -> T:
            sql = Sql(db)
            self.dims = (sql.one(_LOCK) or (0,))[0] or None
            return work(sql)

        with faulting("the archive cannot be changed"):
            return self.tables.write(changed)

    def close(self) -> None:
        """The connections belong to the store, which closes them."""

    def remove_copies(self, before_ms: int | None = None) -> None:
        """A damaged database is kept by nobody."""

    # ------------------------------------------------------------------ the audit

    def listed(self, columns: str) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {columns}, seq FROM archive_entries WHERE seq > :after ORDER BY seq LIMIT :most"
        rows: list[tuple[Any, ...]] = [(0,)]

        def some(db: "Connection") -> list[tuple[Any, ...]]:
            return Sql(db).rows(query, after=rows[-1][-1], most=AT_ONCE)

        while rows := self.tables.read(some):
            yield from (row[:-1] for row in rows)

    def orphans(self) -> Iterator[str]:
        return iter(())  # a term leaves its table with the last entry that has it

    # ------------------------------------------------------------------ the index

    def places(self, places: Iterable[str]) -> list[Any]:
        """Places as numbers, those of direct messages negative."""
        numbers = ((place, place[2:]) for place in places)
        found = [(place, int(one)) for place, one in numbers if one.isascii() and one.isdigit()]
        return [-one if place.startswith("@d") else one for place, one in found if 0 < one < 2**63]

    def leave(
        self, sql: Sql, ids: Sequence[int], *, edited: Sequence[int] = (), traces: Sequence[bytes] = ()
    ) -> None:
        sql.run(_LEAVE, ids=ids)
        if edited:
            sql.run("DELETE FROM archive_vectors WHERE id IN :ids", ids=edited)
            sql.run("DELETE FROM archive_unembedded WHERE id IN :ids", ids=edited)

    def enter(self, sql: Sql, ids: Sequence[int]) -> None:
        sql.run(_ENTER, ids=ids)
        sql.run(_WANTED, ids=ids)

    def beginning(self, stumps: Sequence[str]) -> tuple[str, dict[str, object]]:
        query = """SELECT * FROM archive_entries
            WHERE EXISTS (SELECT FROM EACH :stumps::text[] WHERE strpos(' ' || terms, ' ' || value) > 0)"""
        return query, {"stumps": stumps}

    def totals(self, sql: Sql) -> tuple[int, int]:
        ((entries, length, dims),) = sql.rows("SELECT entries, length, dims FROM archive_state")
        self.dims = dims or None
        return entries, length

    def frequencies(self, sql: Sql, terms: Iterable[str]) -> dict[str, int]:
        keys = {term: key_of(term) for term in terms}
        query = "SELECT term, entries FROM archive_terms WHERE term IN :keys"
        found = dict(sql.rows(query, keys=list(keys.values()))) if keys else {}
        return {term: found[key] for term, key in keys.items() if key in found}

    def best(self, sql: Sql, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        # Scores are those of FTS5, which counts the place as a token.
        query = """SELECT term, id, t.entries, s.entries, s.tokens FROM archive_terms AS t, archive_state AS s
            WHERE term IN :keys"""
        there = {key: row for key, *row in sql.rows(query, keys=list(map(key_of, terms)))}
        weights, average = dict[int, float](), 1.0
        for number, count, entries, tokens in (there[key] for key in map(key_of, terms) if key in there):
            weights[number] = max(_LEAST, math.log((entries - count + 0.5) / (count + 0.5)))
            average = tokens / entries
        query = "SELECT seq, term, times, tokens FROM archive_words WHERE term IN :terms AND place IN :places"
        found: dict[int, tuple[int, dict[int, int]]] = {}
        for seq, number, times, tokens in sql.rows(query, terms=list(weights), places=self.places(places)):
            found.setdefault(seq, (tokens, {}))[1][number] = times
        scores = list[tuple[float, int]]()
        for seq, (tokens, counts) in found.items():
            damping = _K1 * (1 - _B + _B * (tokens + 1) / average)
            score = 0.0
            # In the order of the query, as FTS5 adds them.
            for number in counts if len(counts) == 1 else filter(counts.__contains__, weights):
                score += weights[number] * ((counts[number] * (_K1 + 1.0)) / (counts[number] + damping))
            scores.append((score, seq))
        best = [seq for _, seq in heapq.nlargest(most, scores)]
        ids = dict(sql.rows("SELECT seq, id FROM archive_entries WHERE seq IN :seqs", seqs=best))
        return [ids[seq] for seq in best if seq in ids]

    def newest(self, sql: Sql, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        query = _NEWEST.format(_OF_FEW if len(places) <= FEW_PLACES else _OF_MANY)
        keys = list(map(key_of, terms))
        rows = sql.rows(query, keys=keys, places=self.places(places), most=most)
        return [number for (number,) in rows]

    # ------------------------------------------------------------------ vectors

    def begin(self, sql: Sql, *, anew: bool) -> bool:
        if anew:
            self.start_over(sql)
        # Entries get on the list from the newest to the oldest, and few at once: others wait for this.
        query = """SELECT e.seq, e.id FROM archive_state, LATERAL (
            SELECT seq, id FROM archive_entries WHERE seq < unlisted ORDER BY seq DESC LIMIT :most) AS e"""
        rows = sql.rows(query, most=LISTED_AT_ONCE)
        if rows:
            sql.run(_WANTED, ids=[number for _, number in rows])
            sql.run("UPDATE archive_state SET unlisted = :seq", seq=min(rows)[0])
        return len(rows) == LISTED_AT_ONCE

    def start_over(self, sql: Sql) -> None:
        sql.run("TRUNCATE archive_vectors, archive_signs, archive_unembedded")
        sql.run("""UPDATE archive_state SET starts = starts + 1,
            unlisted = 1 + coalesce((SELECT max(seq) FROM archive_entries), 0)""")

    def starts(self, sql: Sql) -> int:
        return int((sql.one("SELECT starts FROM archive_state") or (0,))[0])

    def store(self, sql: Sql, vectors: Sequence[tuple[int, Any, bytes]]) -> None:
        rows = [
            {
                "id": number,
                "place": place,
                "vector": vector,
                "mixed": (number * MIXING) % 2**64 - 2**63,  # the same order as in `signatures`
                "signs": bits_of(vector),
            }
            for number, place, vector in vectors
        ]
        statement = """INSERT INTO archive_vectors (id, vector) VALUES (:id, :vector)
            ON CONFLICT (id) DO UPDATE SET vector = excluded.vector"""
        sql.many(statement, rows)
        statement = """INSERT INTO archive_signs (id, place, mixed, signs)
            VALUES (:id, :place, :mixed, :signs::bit varying)
            ON CONFLICT (id) DO UPDATE SET signs = excluded.signs"""
        sql.many(statement, rows)

    def nearest(self, sql: Sql, question: Sequence[float], places: Sequence[str], most: int) -> list[int]:
        signs = bits_of(question)
        # Only signs of one length are compared: others raise an error.
        query = """SELECT id FROM archive_signs WHERE place IN :places AND length(signs) = :length
            ORDER BY CASE WHEN length(signs) = :length THEN bit_count(signs # :signs::bit varying) END,
                id DESC LIMIT :most"""
        given = {"places": self.places(places), "length": len(signs), "signs": signs, "most": most}
        return [number for (number,) in sql.rows(query, **given)]

    def some(self, sql: Sql, places: Sequence[str], most: int) -> list[int]:
        query = """SELECT s.id FROM unnest(:places::bigint[]) AS p, LATERAL (
                SELECT id, mixed FROM archive_signs WHERE place = p ORDER BY mixed LIMIT :most) AS s
            ORDER BY s.mixed LIMIT :most"""
        rows = sql.rows(query, places=self.places(places), most=most)
        return sorted(number for (number,) in rows)


def key_of(term: str) -> str:
    """The key of a term in the index."""
    return term if len(term.encode()) <= LONGEST_TERM else hashlib.sha256(term.encode()).hexdigest()

"""The queries of an archive in SQLite, on one connection. Blocking; raises sqlite3.Error."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence

from discoclaw.core.entry import Entry
from discoclaw.memory.disk.database import placeholders
from discoclaw.search.archive_queries import LATELY, MOST_SEARCHED
from discoclaw.search.archive_rows import COLUMNS, Indexed, entry_of, indexed_of, is_id
from discoclaw.search.archive_sqlite_vectors import has_tables
from discoclaw.search.fulltext import any_of
from discoclaw.search.signatures import Signatures

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

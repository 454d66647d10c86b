"""Queries of the archive, as SQL on one connection. Blocking.

The caller says which places may be seen, and every statement filters by that, so that nothing else leaves the
database. The cost is bounded however large the archive is: the rare terms choose by BM25 among at most
`MOST_SCORED` entries, and common terms bring only their newest entries. Raises sqlite3.Error.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discoclaw.core.entry import Entry
from discoclaw.core.words import others_for
from discoclaw.memory.disk.database import placeholders
from discoclaw.search.archive_rows import COLUMNS, Indexed, entry_of, is_id
from discoclaw.search.archive_vectors import Asked, cosines_of, has_tables, near, usual
from discoclaw.search.fulltext import any_of

CANDIDATES = 100
WITH_NEIGHBOURS = 30
"""For how many candidates, best first, the two messages before and after are fetched too."""
NEAREST_WITH_NEIGHBOURS = 10
"""The same for those that are nearest by meaning."""
FEW_PLACES = 4
LATELY = 500
"""The messages from which the names of speakers are taken, the newest."""
MOST_SCORED = 3_000
"""The most entries scored for one query."""
MOST_SEARCHED = 20_000
"""The most entries, newest first, that a literal search goes through."""


@dataclass(frozen=True, slots=True)
class Visible:
    """What may be seen: channels with their open threads, single private threads, one person's DM.

    All are Discord ids; invalid ones are ignored.
    """

    channel_ids: frozenset[str] = frozenset()
    dm_of: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The places of entries that may be seen."""
        channels = [f"@g{one}" for one in sorted(self.channel_ids) if is_id(one)]
        return (*channels, *([f"@d{self.dm_of}"] if self.dm_of is not None and is_id(self.dm_of) else []))


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found: entries with their neighbours, as they are searched too, and which stand next to which.

    `total` is the number of all entries, `average` their mean length; `frequencies` say how many have a term.
    `cosines` are those of a question's vector with the entries that have one, `usual` is the mean one with
    what may be seen.
    """

    entries: tuple[Entry, ...] = ()
    indexed: Mapping[str, Indexed] = field(default_factory=dict)
    neighbours: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    total: int = 0
    average: float = 1.0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    usual: float = 0.0


def look(
    connection: sqlite3.Connection, terms: Sequence[str], visible: Visible, asked: Asked | None = None
) -> Looked:
    """Return the entries that match a query's terms, with the messages around the best of them.

    With the query's vector also the nearest by meaning, and the messages around the best of these.
    """
    places = visible.places
    if not terms or not places:
        return Looked()
    known = frequencies(connection, terms)
    others = [other for term in terms if term not in known for other in others_for(term)]
    known |= frequencies(connection, others)
    found = _candidates(connection, list(known), known, places)
    best = found[:WITH_NEIGHBOURS]
    nearest: list[int] = []
    if asked is not None and has_tables(connection):
        nearest = list(near(connection, asked, places))
        found = list(dict.fromkeys([*found, *nearest]))
        best = list(dict.fromkeys([*best, *nearest[:NEAREST_WITH_NEIGHBOURS]]))
    else:
        asked = None
    beside = _neighbours(connection, best)
    beside += _neighbours(connection, {other for _, other in beside}.difference(best))
    missing = {other for pair in beside for other in pair}.difference(found)
    rows = [row for ids in (found, missing) for row in _rows(connection, ids, places)]
    count, length = connection.execute("SELECT entries, terms FROM totals").fetchone()
    cosines = cosines_of(connection, asked, [row[0] for row in rows]) if asked is not None else {}
    return Looked(
        tuple(map(entry_of, rows)),
        {str(row[0]): Indexed(row[11].split(" "), *row[12:]) for row in rows},
        _both_ways(beside, {row[0] for row in rows}),
        count,
        max(1.0, length / count) if count else 1.0,
        known,
        {str(key): value for key, value in cosines.items()},
        usual(connection, asked, places, without=nearest[:NEAREST_WITH_NEIGHBOURS])
        if asked is not None
        else 0.0,
    )


def frequencies(connection: sqlite3.Connection, terms: Iterable[str]) -> dict[str, int]:
    """How many entries have each of the terms."""
    sql = "SELECT doc FROM vocabulary WHERE term = ? AND col = 'terms'"
    found = {term: connection.execute(sql, (term,)).fetchone() for term in terms}
    return {term: row[0] for term, row in found.items() if row is not None}


def present(connection: sqlite3.Connection, channel_ids: Iterable[str]) -> frozenset[str]:
    """Those of the channels that have any entries."""
    sql = "SELECT 1 FROM entries WHERE place = ? LIMIT 1"
    ids = [one for one in channel_ids if is_id(one)]
    return frozenset(one for one in ids if connection.execute(sql, (f"@g{one}",)).fetchone())


def holding(connection: sqlite3.Connection, text: str, visible: Visible, *, limit: int) -> list[Entry]:
    """The newest entries that contain a literal text, among the newest that may be seen."""
    places = visible.places
    if not text or not places:
        return []
    like = "".join(f"\\{char}" if char in "\\%_" else char for char in text)
    sql = f"""SELECT {COLUMNS} FROM (
            SELECT * FROM entries WHERE {_where(places)} ORDER BY id DESC LIMIT {MOST_SEARCHED})
        WHERE text LIKE ? ESCAPE '\\' ORDER BY id DESC LIMIT ?"""
    return [entry_of(row) for row in connection.execute(sql, (*places, f"%{like}%", limit))]


def speakers(connection: sqlite3.Connection, visible: Visible) -> set[str]:
    """The names of those who spoke lately, where that may be seen."""
    places = visible.places
    sql = f"SELECT name FROM entries WHERE {_where(places)} ORDER BY id DESC LIMIT {LATELY}"
    return {row[0] for row in connection.execute(sql, places)}


def _where(places: Sequence[str]) -> str:
    """The condition for the newest entries of places, of which there is at least one.

    Of few places the index knows the newest; among many, going back through all is faster than sorting.
    """
    return f"{'place' if len(places) <= FEW_PLACES else '+place'} IN ({placeholders(places)})"


def _candidates(
    connection: sqlite3.Connection, terms: Sequence[str], known: Mapping[str, int], places: Sequence[str]
) -> list[int]:
    """Ids, best first: matches of rare terms by BM25, then the newest of common ones."""
    rare: list[str] = []
    common: list[str] = []
    left = MOST_SCORED
    for term in sorted((term for term in terms if known.get(term)), key=lambda term: known[term]):
        left -= known[term]
        (rare if left >= 0 else common).append(term)
    found: dict[int, None] = {}
    where = f"words MATCH ? AND +entries.place IN ({placeholders(places)})"
    joined = "SELECT entries.id FROM words JOIN entries ON entries.rowid = words.rowid WHERE"
    if rare:
        # The place is asked of the rows: as a part of the pattern it would be scored, for all that is there.
        sql = f"{joined} {where} ORDER BY bm25(words, 0.0, 1.0) LIMIT {CANDIDATES}"
        pattern = f"terms : ({any_of(rare)})"
        found = dict.fromkeys(row[0] for row in connection.execute(sql, (pattern, *places)))
    if common and len(found) < CANDIDATES:
        sql = f"{joined} {where} ORDER BY words.rowid DESC LIMIT {CANDIDATES}"
        pattern = f"terms : ({any_of(common)})"
        if not _is_most(connection, places):  # else the newest are soon found without asking the index for it
            pattern = f"place : ({any_of(places)}) AND {pattern}"
        found |= dict.fromkeys(row[0] for row in connection.execute(sql, (pattern, *places)))
    return list(found)[:CANDIDATES]


def _is_most(connection: sqlite3.Connection, places: Sequence[str]) -> bool:
    """Whether a large part of all entries is at these places."""
    sql = "SELECT doc FROM vocabulary WHERE term = ? AND col = 'place'"
    seen = sum(row[0] for place in places for row in connection.execute(sql, (place,)))
    return bool(seen * 5 >= connection.execute("SELECT entries FROM totals").fetchone()[0])


def _neighbours(connection: sqlite3.Connection, found: Collection[int]) -> list[tuple[int, int]]:
    """Pairs of ids: these entries and the ones directly before and after them in their conversation."""
    other = "SELECT id FROM entries WHERE session_key = here.session_key AND id"
    sql = f"""SELECT id, ({other} < here.id ORDER BY id DESC LIMIT 1), ({other} > here.id ORDER BY id LIMIT 1)
        FROM entries AS here WHERE id IN ({placeholders(found)})"""
    rows = connection.execute(sql, tuple(found)).fetchall()
    return [(row[0], other) for row in rows for other in row[1:] if other is not None]


def _both_ways(pairs: Iterable[tuple[int, int]], seen: Collection[int]) -> dict[str, tuple[str, ...]]:
    """For each id that may be seen, its neighbours."""
    beside: dict[str, dict[str, None]] = {}
    for one, other in pairs:
        if one in seen and other in seen:
            beside.setdefault(str(one), {})[str(other)] = None
            beside.setdefault(str(other), {})[str(one)] = None
    return {key: tuple(others) for key, others in beside.items()}


def _rows(connection: sqlite3.Connection, ids: Collection[int], places: Sequence[str]) -> list[Any]:
    """The rows of these ids that may be seen, in the order of the ids."""
    sql = f"""SELECT {COLUMNS}, terms, length, own, marks FROM entries
        WHERE id IN ({placeholders(ids)}) AND +place IN ({placeholders(places)})"""
    rows = {row[0]: row for row in connection.execute(sql, (*ids, *places))}
    return [rows[one] for one in ids if one in rows]

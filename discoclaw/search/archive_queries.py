"""Queries of the archive, whatever it is stored in. Blocking.

The caller says which places may be seen, and every query filters by that, so that nothing else leaves the
database. The cost is bounded however large the archive is: the rare terms choose by BM25 among at most
`MOST_SCORED` entries, and common terms bring only their newest entries. An implementation is a `Reader`.
Raises what that raises.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from discoclaw.core.entry import Entry
from discoclaw.core.words import others_for
from discoclaw.search.archive_rows import Indexed, is_id
from discoclaw.search.archive_vectors import VectorReader, cosines_of, near, usual

CANDIDATES = 100
WITH_NEIGHBOURS = 30
"""For how many candidates, best first, the two messages before and after are fetched too."""
NEAREST_WITH_NEIGHBOURS = 10
"""For how many of the nearest by meaning the two messages before and after are fetched too."""
LATELY = 500
"""The messages from which the names of speakers are taken, the newest."""
MOST_SCORED = 3_000
"""The most entries scored for one query."""
MOST_SEARCHED = 20_000
"""The most entries, newest first, that a literal search goes through."""


@dataclass(frozen=True, slots=True)
class Visible:
    """The places somebody may see: channels with their open threads, single private threads, one person's DM.

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
    """Entries that were found, with their neighbours, as they are searched too, and which are next to which.

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


class Reader(VectorReader, Protocol):
    """The queries of one archive. Those that take places return only what was said there."""

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """How many entries have each of the terms, in their order; without those that none has."""
        ...

    def best(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        """The ids of the entries with any of the terms, best first by BM25 over all; ties by what is newer.

        The statistics are those of all entries. At least one term, at most `MOST_SCORED` entries have any.
        """
        ...

    def newest(self, terms: Sequence[str], places: Sequence[str], most: int) -> list[int]:
        """The ids of the entries with any of the terms, those first that were stored last."""
        ...

    def beside(self, numbers: Collection[int]) -> list[tuple[int, int]]:
        """Pairs of ids: these entries and the ones directly before and after them in their conversation."""
        ...

    def rows(self, numbers: Collection[int], places: Sequence[str]) -> dict[int, tuple[Entry, Indexed]]:
        """The entries of these ids, as they are searched too."""
        ...

    def totals(self) -> tuple[int, int]:
        """How many entries there are, and their lengths together."""
        ...

    def holding(self, text: str, places: Sequence[str], limit: int) -> list[Entry]:
        """The newest entries that contain a text, among the newest `MOST_SEARCHED`.

        ASCII letters are the same in both cases.
        """
        ...

    def speakers(self, places: Sequence[str]) -> set[str]:
        """The names of those who wrote the newest `LATELY` messages."""
        ...

    def present(self, channel_ids: Iterable[str]) -> frozenset[str]:
        """The channels, of these, that have any entries."""
        ...


def look(
    reader: Reader, terms: Sequence[str], visible: Visible, asked: Sequence[float] | None = None
) -> Looked:
    """Return the entries that match a query's terms, with the messages around the best of them.

    With the query's vector also the nearest by meaning, and the messages around the best of these.
    """
    places = visible.places
    if not terms or not places:
        return Looked()
    known = reader.frequencies(terms)
    others = [other for term in terms if term not in known for other in others_for(term)]
    known |= reader.frequencies(others)
    found = _candidates(reader, known, places)
    best = found[:WITH_NEIGHBOURS]
    nearest: list[int] = []
    if asked is not None:
        nearest = list(near(reader, asked, places))
        found = list(dict.fromkeys([*found, *nearest]))
        best = list(dict.fromkeys([*best, *nearest[:NEAREST_WITH_NEIGHBOURS]]))
    beside = sorted(reader.beside(best))
    beside += sorted(reader.beside({other for _, other in beside}.difference(best)))
    wanted = list(dict.fromkeys([*found, *(other for pair in beside for other in pair)]))
    there = reader.rows(wanted, places)
    rows = {number: there[number] for number in wanted if number in there}
    count, length = reader.totals()
    cosines = cosines_of(reader, asked, list(rows)) if asked is not None else {}
    without = nearest[:NEAREST_WITH_NEIGHBOURS]
    return Looked(
        tuple(entry for entry, _ in rows.values()),
        {entry.id: indexed for entry, indexed in rows.values()},
        _both_ways(beside, rows),
        count,
        max(1.0, length / count) if count else 1.0,
        known,
        {str(key): value for key, value in cosines.items()},
        usual(reader, asked, places, without=without) if asked is not None else 0.0,
    )


def _candidates(reader: Reader, known: Mapping[str, int], places: Sequence[str]) -> list[int]:
    """Ids, best first: matches of rare terms by BM25, then the newest of common ones."""
    rare: list[str] = []
    common: list[str] = []
    left = MOST_SCORED
    for term in sorted(known, key=lambda term: known[term]):
        left -= known[term]
        (rare if left >= 0 else common).append(term)
    found = reader.best(rare, places, CANDIDATES) if rare else []
    if common and len(found) < CANDIDATES:
        found = list(dict.fromkeys([*found, *reader.newest(common, places, CANDIDATES)]))
    return found[:CANDIDATES]


def _both_ways(pairs: Iterable[tuple[int, int]], seen: Collection[int]) -> dict[str, tuple[str, ...]]:
    """For each id that may be seen, its neighbours."""
    beside: dict[str, dict[str, None]] = {}
    for one, other in pairs:
        if one in seen and other in seen:
            beside.setdefault(str(one), {})[str(other)] = None
            beside.setdefault(str(other), {})[str(one)] = None
    return {key: tuple(others) for key, others in beside.items()}

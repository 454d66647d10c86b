"""The pure part of the item index: rows, stamps, links, and which terms of a query are the most telling.

Independent of files.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from math import log

from discoclaw.core.item import Item
from discoclaw.core.text import scrub
from discoclaw.core.words import fold, is_common
from discoclaw.search.fulltext import as_column

SHARE = 0.8
"""The least share of a query's total term weight that the looked-up terms must have."""
ENOUGH = 2_000
"""Terms are left out once so many items (with repetitions) have one of the others."""


Instead = Callable[[str, Sequence[str]], Sequence[str]]
"""Returns replacements for a term that no item has, given it and the indexed terms that begin alike."""


def nothing_instead(term: str, alike: Sequence[str]) -> Sequence[str]:
    """Return no replacements."""
    return ()


@dataclass(frozen=True, slots=True)
class Row:
    """An item as it is indexed. `terms` with repetitions, `length` in terms."""

    item: Item
    terms: Sequence[str]
    length: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """The ids of items that a query may be about, best first, then those linked with the best.

    `total` items are in the index, of `average` length in terms; `frequencies` says in how many of them each
    wanted term is, and each that was looked for instead.
    """

    ids: tuple[str, ...] = ()
    total: int = 0
    average: float = 1.0
    frequencies: Mapping[str, int] = field(default_factory=dict)


def stamp_of(item: Item) -> int:
    """A 64-bit hash of everything that is indexed of an item."""
    facets = item.facets
    parts = (item.kind, item.text, *item.tags, facets.key or "", facets.category, str(item.updated_at))
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def links_of(items: Mapping[str, Item]) -> set[tuple[str, str]]:
    """The links between items, in both directions, whichever item has them."""
    pairs = {
        (item.id, other)
        for item in items.values()
        if item.facets.links
        for other in item.facets.links
        if other in items
    }
    return pairs | {(other, one) for one, other in pairs}


def terms_of(row: Row) -> str:
    """The row's terms as text for the index."""
    return scrub(as_column(row.terms))


def values_of(row: Row) -> tuple[str | int | None, ...]:
    """The row's columns: id, key, content, category, timestamp, terms, length, stamp.

    `content` is folded, since it is only used for substring searches and never shown.
    """
    item, facets = row.item, row.item.facets
    content = scrub(fold(" ".join((item.text, *item.tags, facets.key or ""))))
    return (
        scrub(item.id),
        scrub(facets.key) if facets.key is not None else None,
        content,
        scrub(facets.category),
        item.updated_at,
        terms_of(row),
        row.length,
        stamp_of(item),
    )


def telling(frequencies: Mapping[str, int], total: int) -> list[str]:
    """The terms to look up, rarest first: those with most of the total weight.

    Nearly every item has one of the most frequent words of a long message. Without these words far fewer
    items are read, and an item with only such words could not have ranked high. A word that is common in any
    talk has no weight here, however rare: it must not replace the one word that a short message is about.
    """
    weights = {term: log(1 + total / count) for term, count in frequencies.items() if count}
    rarest = sorted(weights, key=lambda term: (-weights[term], term))
    said = [0.0 if is_common(term) else weights[term] for term in rarest]
    weighed = accumulate(said, initial=0.0)  # before each term
    counted = accumulate(frequencies[term] for term in rarest)  # with it
    most = SHARE * sum(said)
    return [
        term
        for term, weight, count in zip(rarest, weighed, counted, strict=False)
        if weight < most or count <= ENOUGH
    ]


def first(found: Iterable[tuple[str]], limit: int, among: Container[str] | None) -> list[str]:
    """The first `limit` ids that are `among` these."""
    ids: list[str] = []
    for (one,) in found:
        if among is None or one in among:
            ids.append(one)
            if len(ids) >= limit:
                break
    return ids


def escaped(term: str) -> str:
    """A term as a part of a LIKE pattern in which all its characters stand for themselves."""
    return term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

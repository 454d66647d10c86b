"""Documents in RAM, found by their terms: what a memory of up to some thousand items is ranked with.

What a document has counts as in BM25 with k1 = 0.9 and b = 0.4: at the usual values (1.2, 0.75) length counts
too much for one-sentence documents. A word counts once, however often a text has it. The indices of items
that were ranked lately are cached. Pure.
"""

import heapq
import sys
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from discoclaw.core.item import Item
from discoclaw.core.visible import VisibleItems
from discoclaw.recall.document import Document
from discoclaw.recall.evidence import Matches
from discoclaw.recall.terms import DATE_WEIGHT, MARK, Asked, Vocabulary

K1 = 0.9
B = 0.4
IN_TEXT, IN_MARKS, IN_DATES = 1, 0, -1
"""Where a document has a term."""
INSTEAD = {IN_MARKS: MARK, IN_DATES: DATE_WEIGHT}
Posting = tuple[int, int]
"""A document's position, and where it has a term: IN_TEXT, IN_MARKS or IN_DATES."""
Named = Mapping[str, Mapping[frozenset[str], Sequence[int]]]
"""The positions of the documents that have a name, by the longest term of the name."""


class Index:
    """Documents by their positions, and itself the corpus of all of them. Never changes.

    Where a document was taken out, its position stays empty.
    """

    def __init__(
        self,
        documents: Sequence[Document | None],
        postings: Mapping[str, Sequence[Posting]],
        vocabulary: Vocabulary,
        named: Named,
        average: float | None = None,
    ) -> None:
        """`average` is the mean length of all documents, where these are only some of them."""
        self.documents = documents
        self.vocabulary = vocabulary
        self._postings = postings
        self._named = named
        lengths = [one.length for one in documents if one is not None]
        self.total = len(lengths)
        self.average = sum(lengths) / max(1, self.total) if average is None else average
        once = {length: (K1 + 1) / (1 + K1 * (1 - B + B * length / self.average)) for length in set(lengths)}
        self._once = [once[one.length] if one is not None else 0.0 for one in documents]
        """The part of a score, by position, of a term that a text has, however often."""

    @classmethod
    def of(cls, documents: Iterable[Document], average: float | None = None) -> "Index":
        """The index of some documents, in their order; see `Index`."""
        making = cls.making(documents, average)
        try:
            while True:
                next(making)
        except StopIteration as made:
            index: Index = made.value
            return index

    @classmethod
    def making(
        cls, documents: Iterable[Document], average: float | None = None
    ) -> Generator[None, None, "Index"]:
        """Make the index of some documents, in their order, with a rest after each."""
        every: list[Document] = []
        postings: dict[str, list[Posting]] = {}
        named: dict[str, dict[frozenset[str], list[int]]] = {}
        for position, document in enumerate(documents):
            every.append(document)
            for term, posting in _postings(position, document):
                postings.setdefault(term, []).append(posting)
            for name in (*document.given, *document.written):
                named.setdefault(_longest(name), {}).setdefault(name, []).append(position)
            yield
        return cls(every, postings, Vocabulary(postings), named, average)

    def with_changes(self, changes: Mapping[int, Document | None]) -> "Index":
        """The index with some documents replaced, taken out (None), or added at the next positions."""
        documents, postings, named = list(self.documents), dict(self._postings), dict(self._named)
        terms: set[str] = set()
        for position, document in sorted(changes.items()):
            if position < len(documents):
                before, documents[position] = documents[position], document
            else:
                before = None
                documents.append(document)
            for term, posting in _postings(position, before) if before is not None else ():
                terms.add(term)
                postings[term] = [one for one in postings[term] if one is not posting and one != posting]
            for term, posting in _postings(position, document) if document is not None else ():
                terms.add(term)
                kept = list(postings.get(term, ()))
                kept.insert(bisect_left(kept, posting), posting)
                postings[term] = kept
            if before is not None:
                _change_names(named, before, position, there=False)
            if document is not None:
                _change_names(named, document, position, there=True)
        for term in terms:
            if not postings[term]:
                del postings[term]
        vocabulary = self.vocabulary.with_changes(postings, terms)
        return Index(documents, postings, vocabulary, named)

    def frequency(self, terms: Iterable[str]) -> Mapping[str, int]:
        """How many documents have each of the terms."""
        return {term: len(self._postings.get(term, ())) for term in terms}

    def mentioning(self, name: frozenset[str], most: int) -> Sequence[int]:
        """The positions of the documents whose texts have all terms of a name; none if they are more."""
        rarest = min((self._postings.get(term, ()) for term in name), key=len)
        found = [
            position
            for position, kind in rarest
            if kind == IN_TEXT and (one := self.documents[position]) is not None and name <= one.terms
        ]
        return found if len(found) <= most else ()

    def search(self, asked: Asked, limit: int = sys.maxsize) -> Matches:
        """The documents that have any of what is asked; of many those with most of it, and the rarest.

        What is named completely is always among them.
        """
        once, parts = self._once, list[dict[int, float]]()
        for concept in asked.concepts:
            part: dict[int, float] = {}
            for term, counts in concept.spellings:
                for position, kind in self._postings.get(term, ()):
                    value = counts * (once[position] if kind == IN_TEXT else INSTEAD[kind])
                    if value > part.get(position, 0.0):
                        part[position] = value
            parts.append(part)
        names = {
            name: positions
            for term in asked.terms
            for name, positions in self._named.get(term, {}).items()
            if name <= asked.terms
        }
        among: Collection[int] | None = None
        if sum(map(len, parts)) > limit and len(set().union(*parts)) > limit:
            scores: dict[int, float] = {}
            for concept in asked.concepts:
                for term, counts in concept.spellings:
                    weight = concept.weight * counts
                    for position, _ in self._postings.get(term, ()):
                        scores[position] = scores.get(position, 0.0) + weight

            def best(position: int) -> tuple[float, int, str]:
                """Sort key of the highest score, of equals that of the newest document."""
                document = self.documents[position]
                assert document is not None  # it has a term
                return scores[position], document.when, document.id

            named = dict.fromkeys(chain.from_iterable([one for one in names.values() if len(one) <= limit]))
            both = [*heapq.nlargest(limit, scores, best), *heapq.nlargest(limit, named, best)]
            among = dict.fromkeys(both)
        return Matches(asked, parts, among, self.documents, names)

    def shares(self, asked: Asked, *, partly: bool) -> list[float]:
        """The share of what is asked that each document has; `partly`: a spelling is worth what it counts."""
        shares, total = [0.0] * len(self.documents), sum(one.share for one in asked.concepts) or 1.0
        for concept in asked.concepts:
            best: dict[int, float] = {}
            for term, counts in concept.spellings:
                for position, _ in self._postings.get(term, ()):
                    best[position] = max(best.get(position, 0.0), counts if partly else 1.0)
            for position, counts in best.items():
                shares[position] += concept.share * counts / total
        return shares


def _postings(position: int, document: Document) -> Iterator[tuple[str, Posting]]:
    """The terms of a document with their postings."""
    said = document.terms
    for kind, terms in (
        (IN_TEXT, said),
        (IN_MARKS, document.marks - said),
        (IN_DATES, document.dates - document.marks - said),
    ):
        posting = (position, kind)
        for term in terms:
            yield term, posting


def _change_names(
    named: dict[str, Mapping[frozenset[str], Sequence[int]]],
    document: Document,
    position: int,
    *,
    there: bool,
) -> None:
    """Add or remove the names of a document, without changing what is shared with another index."""
    for name in (*document.given, *document.written):
        longest = _longest(name)
        names = dict(named.get(longest, {}))
        others = [one for one in names.pop(name, ()) if one != position]
        if others or there:
            names[name] = [*others, position] if there else others
        named[longest] = names


def _longest(name: Collection[str]) -> str:
    return max(name, key=lambda term: (len(term), term))


# ---------------------------------------------------------------------- the cache

MOST_INDEXED = 40_000
"""The most items in cached indices, in total: a memory of 10,000 in a DM and elsewhere, and all others."""
MOST_VERSIONS = 4
"""The most indices of one memory: of two branches, each in a DM and elsewhere."""
MOST_CHANGED = 1 / 8
"""If a larger share of the items changed, or more positions are empty, all are indexed again."""


@dataclass(frozen=True, slots=True, eq=False)
class Indexed:
    """Some items with their index; `places` has the item, if any, at each position of the index.

    `versions` are the indices of the same memory, this one included, the one unused for longest first.
    """

    items: VisibleItems
    places: Sequence[Item | None]
    index: Index
    versions: list["Indexed"]


class Indices:
    """Indices by the identity of their items; `document` gives an item's document."""

    def __init__(self, document: Callable[[Item], Document]) -> None:
        self._document = document
        self._kept: OrderedDict[tuple[int, ...], Indexed] = OrderedDict()
        self._with: dict[int, list[Indexed]] = {}  # the indices of a memory, by the identity of each item
        self._count = 0

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self._with.clear()
        self._count = 0

    def of(self, items: VisibleItems) -> Indexed:
        """The index of exactly these items."""
        for _ in self.making(items):
            pass
        kept = self._kept[items.identities]
        self._kept.move_to_end(items.identities)
        if kept.versions[-1] is not kept:
            kept.versions.remove(kept)
            kept.versions.append(kept)
        return kept

    def making(self, items: VisibleItems) -> Iterator[None]:
        """Make the index that `of` returns, with a rest after each item."""
        if items.identities in self._kept:
            return
        versions = next((self._with[one] for one in items.identities if one in self._with), [])
        before = versions[-1] if versions else None
        changes = _changes(before.places, items.by_id.values()) if before is not None else None
        if before is not None and changes is not None:
            places = list(before.places)
            for position, item in sorted(changes.items()):
                places[position : position + 1] = [item]
            new = {at: self._document(item) if item is not None else None for at, item in changes.items()}
            index = before.index.with_changes(new)
        else:
            places = list(items.by_id.values())
            index = yield from Index.making(map(self._document, items.by_id.values()))
        if items.identities in self._kept:
            return  # somebody else made it meanwhile
        kept = self._kept[items.identities] = Indexed(items, places, index, versions)
        self._with.update(dict.fromkeys(items.identities, versions))
        self._count += len(items)
        versions.append(kept)
        while len(versions) > MOST_VERSIONS:
            self._drop(versions[0])
        while len(self._kept) > 1 and self._count > MOST_INDEXED:
            self._drop(next(iter(self._kept.values())))

    def _drop(self, one: Indexed) -> None:
        del self._kept[one.items.identities]
        one.versions.remove(one)
        self._count -= len(one.items)
        left = set(one.items.identities).difference(*(other.items.identities for other in one.versions))
        for identity in left:
            if self._with.get(identity) is one.versions:
                del self._with[identity]


def _changes(places: Sequence[Item | None], items: Collection[Item]) -> dict[int, Item | None] | None:
    """The item for each position to change, so that `places` have the items in order; None if too many."""
    most = int(len(items) * MOST_CHANGED)
    changes: dict[int, Item | None] = {}
    position = 0
    for item in items:
        while position < len(places):
            held = places[position]
            if held is item or (held is not None and held.id == item.id):
                break
            if held is not None:
                changes[position] = None
            position += 1
        if position >= len(places) or places[position] is not item:
            changes[position] = item
        if len(changes) > most:
            return None
        position += 1
    changes.update({rest: None for rest in range(position, len(places)) if places[rest] is not None})
    size = max(len(places), position)
    return changes if len(changes) <= most and size - len(items) <= most else None

"""Which items of a memory are about the same, by their words: the pairs that a review has to look at.

Two items are near if they share much of the shorter one, each term weighted by its rarity; the nearest are
those with the highest cosine of all their terms.
Terms that many items have tell nothing, and following them would take quadratic time. Pure.
"""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence

from discoclaw.core.item import Item, by_newest
from discoclaw.core.words import terms
from discoclaw.recall.document import of_item
from discoclaw.recall.score import rarity

MOST = 5
"""The most neighbours of an item."""
LEAST = 0.25
"""The smallest share of the shorter one. "Lives in Linz", "lives in Graz" have 0.3 to 0.4 among thousands."""
FREQUENT = 1 / 10
"""A term of a larger share of the items tells nothing, unless the items that have it are `FEW`."""
FEW = 20
MOST_WITH = 200
"""A term that more items have tells nothing, however many there are."""


class Neighbours:
    """The neighbours of the items of one memory. `pause` is called after each item that is read."""

    def __init__(self, items: Sequence[Item], pause: Callable[[], None] = lambda: None) -> None:
        self._newer = {item.id: place for place, item in enumerate(sorted(items, key=by_newest))}
        self._terms: dict[str, frozenset[str]] = {}
        for item in items:
            document = of_item(item)
            marks = document.marks.difference(terms(item.kind))  # two projects have nothing in common yet
            self._terms[item.id] = marks.union(document.bag)
            pause()
        counts = Counter(term for known in self._terms.values() for term in known)
        most = min(MOST_WITH, max(FEW, int(len(items) * FREQUENT)))
        self._weights = {
            term: rarity(count, len(items)) ** 2 for term, count in counts.items() if count <= most
        }
        self._with: dict[str, list[str]] = {}
        self._lengths: dict[str, float] = {}
        for one, known in self._terms.items():
            telling = [term for term in known if term in self._weights]
            self._lengths[one] = math.sqrt(math.fsum(self._weights[term] for term in telling))
            for term in telling:
                self._with.setdefault(term, []).append(one)

    def of(self, item_id: str) -> list[str]:
        """The ids of the nearest items, nearest first; ties are newer first."""
        shared: dict[str, list[float]] = {}
        for term in self._terms[item_id] & self._weights.keys():
            for other in self._with[term]:
                shared.setdefault(other, []).append(self._weights[term])
        shared.pop(item_id, None)
        length, near = self._lengths[item_id], dict[str, float]()
        for other, both in shared.items():
            weight, others = math.fsum(both), self._lengths[other]
            if weight >= LEAST * min(length, others) ** 2:
                near[other] = weight / (length * others)
        return heapq.nsmallest(MOST, near, key=lambda other: (-round(near[other], 9), self._newer[other]))

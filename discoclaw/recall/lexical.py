"""Lexical ranking of one person's items: BM25 for short texts, with an evidence gate.

Every item of the person is a candidate, never only a "hot set". Recency breaks ties and no more. An item
without real evidence is not returned: it must share a term that is not in nearly every item. Tags are the
aliases by which people name a thing, so they count like words of the text; the kind is a term too, so
"which tools do I use" finds tools. Pure and deterministic; ties are newer first, then by id.

k1 and b are those of BM25 for short texts; at their usual values (1.2, 0.75) length counts too much
for one-sentence documents.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from discoclaw.core.item import Item, by_newest
from discoclaw.core.words import terms

MOST_KNOWN = 50_000
K1 = 0.9
B = 0.4
PROJECT_WORDS = frozenset(terms("repo repository build deploy deployment release ship branch project"))
PROJECT_BOOST = 1.15
"""A project is likelier meant when the talk is of building things; DNAM's "+2", as a proportion."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item with its score (> 0, comparable within one query) and the terms that found it."""

    item: Item
    score: float
    why: str


class Lexical:
    """The port `Recall`. Keeps the terms of the items it has seen."""

    def __init__(self) -> None:
        self._terms: dict[str, tuple[Item, Counter[str], int]] = {}

    def rank(self, query: str, items: Sequence[Item], *, now_ms: int) -> list[Ranked]:
        """All items with real evidence for `query`, best first."""
        wanted = dict.fromkeys(terms(query))
        if not wanted or not items:
            return []
        matching: list[tuple[Item, Counter[str], int, list[str]]] = []
        frequency = dict.fromkeys(wanted, 0)
        words = 0
        for item in items:
            bag, length = self._document(item)
            words += length
            if matched := [term for term in wanted if term in bag]:
                matching.append((item, bag, length, matched))
                for term in matched:
                    frequency[term] += 1
        total, average = len(items), words / len(items)
        idf = {term: _idf(count, total) for term, count in frequency.items()}
        about_projects = not PROJECT_WORDS.isdisjoint(wanted)
        ranked = []
        for item, bag, length, matched in matching:
            if not _evidence(matched, frequency, total):
                continue
            norm = K1 * (1 - B + B * length / average)
            score = 0.0
            for term in matched:
                score += idf[term] * bag[term] * (K1 + 1) / (bag[term] + norm)
            if about_projects and item.kind == "project":
                score *= PROJECT_BOOST
            ranked.append(Ranked(item, score, ", ".join(matched)))
        return sorted(ranked, key=lambda hit: (-round(hit.score, 9), *by_newest(hit.item)))

    def _document(self, item: Item) -> tuple[Counter[str], int]:
        """Terms of an item with counts, and its length; computed once for each item, which never changes."""
        known = self._terms.get(item.id)
        if known is None or known[0] is not item:
            bag = Counter(terms(item.text))
            length = max(1, bag.total())
            # An alias is a name for the whole item, so it does not make the item longer.
            bag.update({term: 1 for tag in item.tags for term in terms(tag) if term not in bag})
            if item.kind != "fact":  # "in fact" is no question about all facts
                bag.update({term: 1 for term in terms(item.kind) if term not in bag})
            known = (item, bag, length)
            if len(self._terms) > MOST_KNOWN:
                self._terms.clear()
            self._terms[item.id] = known
        return known[1], known[2]


def _idf(containing: int, total: int) -> float:
    """Inverse document frequency, never negative (Lucene's form)."""
    return math.log(1 + (total - containing + 0.5) / (containing + 0.5))


def _evidence(matched: list[str], frequency: dict[str, int], total: int) -> bool:
    """Whether the terms an item shares with the query say something about just this item.

    A term that most of a person's items contain ("project" for a builder) tells nothing alone; two of
    them together do. With few items every term is rare enough.
    """
    if len(matched) >= 2 or total < 8:
        return bool(matched)
    return any(frequency[term] * 2 <= total for term in matched)

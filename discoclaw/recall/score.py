"""How well documents answer a query by their words: BM25 for short texts, with evidence. Pure.

The score is BM25 (Robertson, Zaragoza: "The Probabilistic Relevance Framework", 2009) with k1 = 0.9 and
b = 0.4: at the usual values (1.2, 0.75) length counts too much for one-sentence documents. A term of the
query that no document has is looked for in another spelling, and counts less. A document without real
evidence is not returned: one has to share a term that says something about just this document, or most of
what was asked.
"""

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from discoclaw.core.ports import Corpus
from discoclaw.core.query import Query
from discoclaw.core.words import is_common, others_for
from discoclaw.recall.corpus import Counted
from discoclaw.recall.document import Document
from discoclaw.recall.spelling import Vocabulary

K1 = 0.9
B = 0.4
SAME = 0.7
"""What another word for the same counts."""
FEW = 8
"""Among fewer documents than this no term is too frequent to tell something."""
COMMON_WEIGHT = 0.3
"""What a common word counts of what was asked, beside a specific one."""
MOST_OF_IT = 0.5
"""The share of what was asked that is evidence although no term of it is specific."""
MARK = 1.0
"""What a name of the whole counts, where a word of a text of mean length counts 1."""
DATE_WEIGHT = 0.5
"""When something was said tells which of several is meant, but only the very day tells that any is."""
A_DAY = len("d:2026-01-31")
IN_MARKS, IN_DATES = 0, -1
"""Instead of a count: the text of a document doesn't contain a term, but its marks or its dates do."""


@dataclass(frozen=True, slots=True)
class Concept:
    """One thing asked for: a term, or other spellings of it, with what each counts; `weight` is its rarity.

    `share` is its part of what was asked; `specific`: a document that has it was likely meant.
    """

    name: str
    spellings: tuple[tuple[str, float], ...]
    weight: float
    share: float
    specific: bool


@dataclass(slots=True)
class Scored:
    """`score` > 0, comparable within one query; `matched` what was found, `coverage` its share of the query.

    `evident`: it shares something that says something about just this document, or most of the query.
    """

    document: Document
    score: float = 0.0
    matched: list[str] = field(default_factory=list)
    coverage: float = 0.0
    evident: bool = False

    def add(self, concept: Concept, best: float) -> None:
        """Count a concept that the document has; `best` is what its best spelling counts there."""
        self.score += concept.weight * best
        self.matched.append(concept.name)
        if best > DATE_WEIGHT or len(concept.name) == A_DAY:
            self.coverage += concept.share
            self.evident = self.evident or concept.specific

    def finish(self, asked: float) -> None:
        """All that was `asked` has been looked for."""
        self.coverage /= asked
        self.evident = self.evident or self.coverage >= MOST_OF_IT


def concepts(query: Query, corpus: Corpus, vocabulary: Vocabulary | Counted | None = None) -> list[Concept]:
    """What a query asks for, with its rarity among the documents."""
    known = corpus.frequency(query.wanted)
    found = []
    for term in query.terms:
        spellings, count = [(term, 1.0)], known[term]
        if not count and (plain := query.in_english.get(term)):
            spellings, count = [(plain, 1.0)], known[plain]
        if not count:  # nobody put it so: other words for it, and other spellings
            spellings = [(other, SAME) for other in others_for(term)]
            spellings += vocabulary.near(term) if vocabulary is not None else ()
            count = sum(corpus.frequency(name for name, _ in spellings).values())
        found.append(_concept(term, tuple(spellings), count, corpus.total, common=is_common(term)))
    dates = sorted(query.dates, key=len, reverse=True)
    found += [
        _concept(date, ((date, 1.0),), known[date], corpus.total, common=len(date) < 9) for date in dates
    ]
    return found


def score(wanted: Sequence[Concept], documents: Iterable[Document], corpus: Corpus) -> list[Scored]:
    """The documents that have anything of what is wanted, with their scores; not sorted."""
    asked, average, found = _asked(wanted), corpus.average, []
    for document in documents:
        norm, one = _norm(document, average), None
        bag, marks, dates = document.bag, document.marks, document.dates
        for concept in wanted:
            best = 0.0
            for term, counts in concept.spellings:
                if term in bag:
                    count = bag[term]
                elif term in marks:
                    count = IN_MARKS
                elif term in dates:
                    count = IN_DATES
                else:
                    continue
                best = max(best, counts * _part(count, norm))
            if best:
                one = one or Scored(document)
                one.add(concept, best)
        if one is not None:
            one.finish(asked)
            found.append(one)
    return found


def _asked(wanted: Sequence[Concept]) -> float:
    """All that was asked, of which a document covers a share."""
    return sum(concept.share for concept in wanted) or 1.0


def _norm(document: Document, average: float) -> float:
    return K1 * (1 - B + B * document.length / average)


def _part(count: int, norm: float) -> float:
    """What a term counts in a document, whose text has it `count` times, before its weight."""
    if count > 0:
        return count * (K1 + 1) / (count + norm)
    return MARK if count == IN_MARKS else DATE_WEIGHT


def _counted(document: Document) -> Iterator[tuple[str, int]]:
    """All terms of a document, with how often its text has them, or where else they are."""
    yield from document.bag.items()
    for term in document.marks - document.bag.keys():
        yield term, IN_MARKS
    for term in document.dates - document.marks - document.bag.keys():
        yield term, IN_DATES


def rarity(containing: int, total: int) -> float:
    """Inverse document frequency, never negative (Lucene's form)."""
    return math.log(1 + (total - containing + 0.5) / (containing + 0.5))


def _concept(
    name: str, spellings: tuple[tuple[str, float], ...], count: int, total: int, *, common: bool
) -> Concept:
    count = min(count, total)
    weight = rarity(count, total)
    everywhere = count * 2 > total >= FEW
    share = 0.0 if everywhere else weight * (COMMON_WEIGHT if common else 1.0)
    return Concept(name, spellings, weight, share, specific=not (common or everywhere))


class Index:
    """Documents in RAM, found by their terms: itself the corpus. Built once; documents do not change."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self.total = len(documents)
        self.average = sum(one.length for one in documents) / max(1, self.total)
        self._norms = [_norm(one, self.average) for one in documents]
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for position, document in enumerate(documents):
            shared: dict[int, tuple[int, int]] = {}  # nearly every term of a sentence is there once
            for term, count in _counted(document):
                posting = shared.setdefault(count, (position, count))
                self._postings.setdefault(term, []).append(posting)
        self.vocabulary = Vocabulary(self._postings)

    def frequency(self, terms: Iterable[str]) -> Mapping[str, int]:
        return {term: len(self._postings.get(term, ())) for term in terms}

    def search(self, wanted: Sequence[Concept], limit: int) -> list[Scored]:
        """The documents that have any of what is wanted, scored as `score` does; not sorted.

        Of many, those that have most of it and the rarest. Only terms that a document has are looked at.
        """
        parts = [self._parts(concept) for concept in wanted]
        positions: Collection[int] = dict.fromkeys(chain.from_iterable(parts))
        if len(positions) > limit:
            positions = self._best(wanted, limit)
        found = {position: Scored(self.documents[position]) for position in positions}
        for concept, part in zip(wanted, parts, strict=True):
            for position, best in part.items():
                if position in found:
                    found[position].add(concept, best)
        asked = _asked(wanted)
        for one in found.values():
            one.finish(asked)
        return list(found.values())

    def _parts(self, concept: Concept) -> dict[int, float]:
        """What a concept counts in each document that has it, before its weight."""
        parts: dict[int, float] = {}
        for term, counts in concept.spellings:
            for position, count in self._postings.get(term, ()):
                part = counts * _part(count, self._norms[position])
                if part > parts.get(position, 0.0):
                    parts[position] = part
        return parts

    def _best(self, wanted: Sequence[Concept], limit: int) -> list[int]:
        """The positions of those documents that have most of what is wanted, and the rarest of it."""
        scores: dict[int, float] = {}
        for concept in wanted:
            for term, counts in concept.spellings:
                weight = concept.weight * counts
                for position, _ in self._postings.get(term, ()):
                    scores[position] = scores.get(position, 0.0) + weight
        return heapq.nlargest(limit, scores, key=scores.__getitem__)

"""How well documents answer a query by their words: BM25 for short texts, with evidence. Pure.

The score is BM25 (Robertson, Zaragoza: "The Probabilistic Relevance Framework", 2009) with k1 = 0.9 and
b = 0.4: at the usual values (1.2, 0.75) length counts too much for one-sentence documents. A term of the
query that no document has is looked for in another spelling, and counts less. A document without real
evidence is not returned: one has to share a term that says something about just this document, or most of
what was asked.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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


class Matches:
    """What documents have of a query, by their positions: `scores` (> 0) and which are `evident`.

    A document is evident if it shares something that says something about just this document, or most of what
    was asked. What matched in one of them is worked out when it is asked for: few of many are ever looked at.
    """

    def __init__(
        self, wanted: Sequence[Concept], parts: Sequence[Mapping[int, float]], among: Iterable[int]
    ) -> None:
        """`parts` has, for each concept, what its best spelling counts in each document that has it."""
        self.scores = dict.fromkeys(among, 0.0)
        self.evident: set[int] = set()
        self._wanted = wanted
        self._parts = parts
        self._asked = sum(concept.share for concept in wanted) or 1.0
        scores, evident = self.scores, self.evident
        for concept, part in zip(wanted, parts, strict=True):
            weight, least = concept.weight, _least(concept)
            for position, best in part.items():
                if position in scores:
                    scores[position] += weight * best
                    if concept.specific and best > least:
                        evident.add(position)
        for position in scores:
            if position not in evident and self.coverage(position) >= MOST_OF_IT:
                evident.add(position)

    def coverage(self, position: int) -> float:
        """The share of what was asked that a document has."""
        covered = 0.0
        for concept, part in zip(self._wanted, self._parts, strict=True):
            if part.get(position, 0.0) > _least(concept):
                covered += concept.share
        return covered / self._asked

    def matched(self, position: int) -> list[str]:
        """The names of what a document has."""
        return [
            concept.name for concept, part in zip(self._wanted, self._parts, strict=True) if position in part
        ]


def _least(concept: Concept) -> float:
    """What a document has to have more of for a concept to cover something: a date only covers its day."""
    return 0.0 if len(concept.name) == A_DAY else DATE_WEIGHT


def concepts(
    query: Query,
    corpus: Corpus,
    vocabulary: Vocabulary | Counted | None = None,
    *,
    skip_unknown: bool = True,
) -> list[Concept]:
    """What a query asks for, with its rarity among the documents.

    A term of most documents is evidence only where nothing rarer is asked for; with `skip_unknown`, a term
    that no document has doesn't count as rarer.
    """
    known = corpus.frequency(query.wanted)
    asked = []
    for term in query.terms:
        spellings, count = [(term, 1.0)], known[term]
        if not count and (plain := query.in_english.get(term)):
            spellings, count = [(plain, 1.0)], known[plain]
        if not count:  # nobody put it so: other words for it, and other spellings
            spellings = [(other, SAME) for other in others_for(term)]
            spellings += vocabulary.near(term) if vocabulary is not None else ()
            count = sum(corpus.frequency(name for name, _ in spellings).values())
        asked.append(_Asked(term, tuple(spellings), min(count, corpus.total), common=is_common(term)))
    for date in sorted(query.dates, key=len, reverse=True):
        asked.append(_Asked(date, ((date, 1.0),), min(known[date], corpus.total), common=len(date) < 9))
    return _weighed(asked, corpus.total, skip_unknown=skip_unknown)


def score(wanted: Sequence[Concept], documents: Sequence[Document], corpus: Corpus) -> Matches:
    """What documents have of what is wanted; positions are theirs in `documents`."""
    average = corpus.average
    parts: list[dict[int, float]] = [{} for _ in wanted]
    for position, document in enumerate(documents):
        norm = norm_of(document.length, average)
        bag, marks, dates = document.bag, document.marks, document.dates
        for concept, part in zip(wanted, parts, strict=True):
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
                best = max(best, counts * part_of(count, norm))
            if best:
                part[position] = best
    return Matches(wanted, parts, sorted(set().union(*parts)))


def norm_of(length: int, average: float) -> float:
    """How much the length of a document weakens what it has."""
    return K1 * (1 - B + B * length / average)


def part_of(count: int, norm: float) -> float:
    """What a term counts in a document, whose text has it `count` times, before its weight."""
    if count > 0:
        return count * (K1 + 1) / (count + norm)
    return MARK if count == IN_MARKS else DATE_WEIGHT


def rarity(containing: int, total: int) -> float:
    """Inverse document frequency, never negative (Lucene's form)."""
    return math.log(1 + (total - containing + 0.5) / (containing + 0.5))


@dataclass(frozen=True, slots=True)
class _Asked:
    """One thing asked for, the number of documents that have it, and whether it is common in any talk."""

    name: str
    spellings: tuple[tuple[str, float], ...]
    count: int
    common: bool

    def everywhere(self, total: int) -> bool:
        """Whether so many documents have it that it tells them apart no longer."""
        return self.count * 2 > total >= FEW


def _weighed(asked: Sequence[_Asked], total: int, *, skip_unknown: bool) -> list[Concept]:
    """The concepts for what is asked.

    What more than half of the documents have is evidence only if nothing rarer is asked for: who asks for
    nothing else means it. Common words then count no more than it does, so that they put documents in order
    but don't push the others out.
    """
    telling = [one for one in asked if not one.common and (one.count or not skip_unknown)]
    nothing_rarer = bool(telling) and all(one.everywhere(total) for one in telling)
    most = max((rarity(one.count, total) for one in telling), default=0.0)
    found = []
    for one in asked:
        weight, specific = rarity(one.count, total), not one.common
        if nothing_rarer and one.common:
            weight = min(weight, most)
        share = weight * (COMMON_WEIGHT if one.common else 1.0)
        if one.everywhere(total) and (one.common or not nothing_rarer):
            share, specific = 0.0, False
        found.append(Concept(one.name, one.spellings, weight, share, specific))
    return found

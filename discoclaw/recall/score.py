"""How well documents answer a query by their words: BM25 for short texts, with evidence. Pure.

The score is BM25 (Robertson, Zaragoza: "The Probabilistic Relevance Framework", 2009) with k1 = 0.9 and
b = 0.4: at the usual values (1.2, 0.75) length counts too much for one-sentence documents. A term of the
query that no document has is looked for in another spelling, and counts less. A document without real
evidence is not returned: one has to share a term that says something about just this document, or most of
what was asked.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Scored:
    """`score` > 0, comparable within one query; `matched` what was found, `parts` what each counted."""

    document: Document
    score: float
    matched: tuple[str, ...]
    coverage: float
    evident: bool


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


def score(wanted: Sequence[Concept], documents: Iterable[Document], corpus: Corpus) -> Iterator[Scored]:
    """The documents that have anything of what is wanted, with their scores; not sorted."""
    asked = sum(concept.share for concept in wanted) or 1.0
    for document in documents:
        total = covered = 0.0
        matched, evident = [], False
        norm = K1 * (1 - B + B * document.length / corpus.average)
        bag, marks, dates = document.bag, document.marks, document.dates
        for concept in wanted:
            best = 0.0
            for term, counts in concept.spellings:
                if count := bag.get(term):
                    part = count * (K1 + 1) / (count + norm)
                elif term in marks:
                    part = MARK
                elif term in dates:
                    part = DATE_WEIGHT
                else:
                    continue
                best = max(best, counts * part)
            if best:
                total += concept.weight * best
                matched.append(concept.name)
                if best > DATE_WEIGHT or len(concept.name) == A_DAY:
                    covered += concept.share
                    evident = evident or concept.specific
        if matched:
            coverage = covered / asked
            yield Scored(document, total, tuple(matched), coverage, evident or coverage >= MOST_OF_IT)


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
        self._postings: dict[str, list[int]] = {}
        for position, document in enumerate(documents):
            for term in document.bag.keys() | document.marks | document.dates:
                self._postings.setdefault(term, []).append(position)
        self.vocabulary = Vocabulary(self._postings)

    def frequency(self, terms: Iterable[str]) -> Mapping[str, int]:
        return {term: len(self._postings.get(term, ())) for term in terms}

    def best(self, wanted: Sequence[Concept], limit: int) -> list[Document]:
        """The documents that have any of what is wanted; of many, those that have most and the rarest."""
        scores: dict[int, float] = {}
        for concept in wanted:
            for term, counts in concept.spellings:
                weight = concept.weight * counts
                for position in self._postings.get(term, ()):
                    scores[position] = scores.get(position, 0.0) + weight
        best = scores if len(scores) <= limit else heapq.nlargest(limit, scores, key=scores.__getitem__)
        return [self.documents[position] for position in best]

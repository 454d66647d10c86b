"""Documents in RAM, found by their terms: what a memory of up to some thousand items is ranked with. Pure."""

import heapq
from bisect import bisect_left
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from discoclaw.recall import score
from discoclaw.recall.document import Document
from discoclaw.recall.evidence import Asked, Concept, Matches
from discoclaw.recall.score import IN_DATES, IN_MARKS, IN_PARTS
from discoclaw.recall.spelling import Vocabulary

Posting = tuple[int, int]
"""A document's position, and how often its text has a term; or one of IN_MARKS, IN_DATES and IN_PARTS."""
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
    ) -> None:
        self.documents = documents
        self.vocabulary = vocabulary
        self._postings = postings
        self._named = named
        lengths = [one.length for one in documents if one is not None]
        self.total = len(lengths)
        self.average = sum(lengths) / max(1, self.total)
        norms = {length: score.norm_of(length, self.average) for length in set(lengths)}
        once = {length: score.part_of(1, norm) for length, norm in norms.items()}
        self._norms = [norms[one.length] if one is not None else 0.0 for one in documents]
        self._once = [once[one.length] if one is not None else 0.0 for one in documents]
        """What a term counts that a document has once, as nearly all are."""

    @classmethod
    def making(cls, documents: Iterable[Document]) -> Generator[None, None, "Index"]:
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
        return cls(every, postings, Vocabulary(postings), named)

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

    def search(self, asked: Asked, limit: int) -> Matches:
        """The documents that have any of what is asked; of many those with most of it, and the rarest.

        What is named completely is always among them.
        """
        parts = [self._parts(concept) for concept in asked.concepts]
        names = {
            name: positions
            for term in asked.terms
            for name, positions in self._named.get(term, {}).items()
            if name <= asked.terms
        }
        among: Collection[int] | None = None
        if sum(map(len, parts)) > limit and len(set().union(*parts)) > limit:
            scores = self._scores(asked.concepts)
            named = dict.fromkeys(chain.from_iterable([one for one in names.values() if len(one) <= limit]))
            among = dict.fromkeys([*self._best(scores, scores, limit), *self._best(named, scores, limit)])
        return Matches(asked, parts, among, self.documents, names)

    def _parts(self, concept: Concept) -> dict[int, float]:
        """What a concept counts in each document that has it, before its weight."""
        norms, once, part_of = self._norms, self._once, score.part_of
        if len(concept.spellings) == 1 and concept.spellings[0][1] == 1.0:
            return {
                position: once[position] if count == 1 else part_of(count, norms[position])
                for position, count in self._postings.get(concept.spellings[0][0], ())
            }
        parts: dict[int, float] = {}
        for term, counts in concept.spellings:
            for position, count in self._postings.get(term, ()):
                part = counts * (once[position] if count == 1 else part_of(count, norms[position]))
                if part > parts.get(position, 0.0):
                    parts[position] = part
        return parts

    def _scores(self, wanted: Sequence[Concept]) -> dict[int, float]:
        """How much of what is wanted documents have, and how rare it is, by position."""
        scores: dict[int, float] = {}
        for concept in wanted:
            for term, counts in concept.spellings:
                weight = concept.weight * counts
                for position, _ in self._postings.get(term, ()):
                    scores[position] = scores.get(position, 0.0) + weight
        return scores

    def _best(self, among: Iterable[int], scores: Mapping[int, float], limit: int) -> list[int]:
        """The positions with the highest scores, of equals those of the newest documents."""
        documents = self.documents

        def key(position: int) -> tuple[float, int, str]:
            document = documents[position]
            assert document is not None  # it has a term
            return scores[position], document.when, document.id

        return heapq.nlargest(limit, among, key=key)


def _postings(position: int, document: Document) -> Iterator[tuple[str, Posting]]:
    """The terms of a document with their postings; equal ones are one object: most terms are there once."""
    shared: dict[int, Posting] = {}
    for term, count in document.bag.items():
        yield term, shared.setdefault(count, (position, count))
    said = document.bag.keys()
    for kind, terms in (
        (IN_MARKS, document.marks - said),
        (IN_PARTS, document.parts - document.marks - said),
        (IN_DATES, document.dates - document.marks - document.parts - said),
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

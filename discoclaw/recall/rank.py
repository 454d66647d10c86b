"""Ranking of one person's items: one pipeline for prompts, for the model's search and for people's.

    tokenise   core/words, recall/query, recall/document
    words      recall/score: BM25 for short texts; aliases, keys, names, dates in words
    vectors    recall/vectors, if there are any: fused linearly
    links      one hop from what was found
    time       recency and idle fade, both off unless an admin wants them; ties are newer first
    evidence   nothing is returned without; standing items are not retrieved: `select` has them always

Near-duplicates and the budget are `select`'s. Every item of the person is a candidate, never only a "hot
set"; of a big memory the caller may bring candidates alone, with the statistics of the whole. Pure and
deterministic.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from discoclaw.core.decay import idle_days, idle_fade, may_fade, recency
from discoclaw.core.item import Item, by_newest
from discoclaw.core.ports import LINKED_WITH, NO_SIGNALS, Corpus, Signals
from discoclaw.core.query import Query
from discoclaw.core.words import terms
from discoclaw.recall.corpus import Counted
from discoclaw.recall.document import Document, of_item
from discoclaw.recall.names import names_in
from discoclaw.recall.score import MOST_OF_IT, Concept, Index, concepts, score
from discoclaw.recall.vectors import fuse, outstanding

MOST_KNOWN = 100_000
"""Documents kept for later queries, of all people together."""
MOST_INDEXED = 10_000
"""Items whose indices are kept, all together; with every change of a memory the index before is of no use."""
MOST_FOUND = 200
"""Candidates of one query."""
PROJECT_WORDS = frozenset(terms("repo repository build deploy deployment release ship branch project"))
PROJECT_BOOST = 1.15
"""A project is likelier meant when the talk is of building things; DNAM's "+2", as a proportion."""
WEAK = 0.2
"""Of the best score; what has less is there by accident."""
LINKED = 0.5
"""What an item has of the score of one it is linked with."""
NO_EVIDENCE = "no real evidence"


@dataclass(frozen=True, slots=True)
class Fade:
    """How time counts: recency's half-life in s, and the days after which idle knowledge is out. 0: off."""

    half_life_s: float = 0
    idle_days: float = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item with its score (> 0, comparable within one query) and what found it, in a few words.

    `parts` is what each step gave; `dropped` why it is not returned, "" when it is.
    """

    item: Item
    score: float
    why: str
    parts: Mapping[str, float] = field(default_factory=dict)
    dropped: str = ""


class Ranker:
    """The port `Recall`. Keeps what it learned of items it has seen."""

    def __init__(
        self,
        fade: Fade = Fade(),
        *,
        text_weight: float = 0.4,
        vector_weight: float = 0.6,
        depth: int = 1,
    ) -> None:
        self._fade = fade
        self._weights = text_weight, vector_weight
        self._depth = depth
        self._documents: OrderedDict[str, tuple[Item, Document]] = OrderedDict()
        self._indices: OrderedDict[tuple[int, ...], tuple[Mapping[str, Item], Index]] = OrderedDict()

    def forget(self) -> None:
        """Keep nothing in RAM of what was ranked: somebody's words have to go."""
        self._documents.clear()
        self._indices.clear()

    def rank(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> list[Ranked]:
        """All items with real evidence for `query`, best first."""
        return [one for one in self.consider(query, items, now_ms=now_ms, signals=signals) if not one.dropped]

    def consider(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> list[Ranked]:
        """All candidates, best first, also those that are dropped, with what each step gave."""
        if not items or not (query.wanted or signals.cosines):
            return []
        known, index = self._known(items, signals.corpus)
        found = self._by_words(query, known, index, signals)
        _by_vectors(found, known, signals.cosines, *self._weights)
        _without_weak(found)
        for _ in range(self._depth):
            _along_links(found, known)
        for one in found.values():
            one.score *= self._freshness(one, signals.accessed, now_ms)
        return sorted(
            (one.ranked() for one in found.values()),
            key=lambda hit: (bool(hit.dropped), -round(hit.score, 9), *by_newest(hit.item)),
        )

    def _by_words(
        self, asked: Query, known: Mapping[str, Item], index: Index | None, signals: Signals
    ) -> "dict[str, _Candidate]":
        corpus = signals.corpus
        if index is not None:
            wanted = concepts(asked, index, index.vocabulary)
            scored = score(wanted, index.best(wanted, MOST_FOUND), index)
        else:
            assert corpus is not None
            near = corpus if isinstance(corpus, Counted) else None
            wanted = concepts(asked, corpus, near)
            scored = score(wanted, map(self._document, known.values()), corpus)
        strangers = _strangers(asked, wanted, signals.own_name)
        about_projects = not PROJECT_WORDS.isdisjoint(asked.terms)
        found = {}
        for one in scored:
            item = known[one.document.id]
            boost = PROJECT_BOOST if about_projects and item.kind == "project" else 1.0
            parts = {"words": one.score, "coverage": one.coverage}
            if boost != 1:
                parts["project"] = boost
            dropped = "" if one.evident else NO_EVIDENCE
            if strangers and one.coverage < MOST_OF_IT and _of_others(item, asked):
                dropped = f"about others than {', '.join(sorted(strangers))}"
            found[item.id] = _Candidate(item, one.score * boost, list(one.matched), parts, dropped)
        return found

    def _freshness(self, one: "_Candidate", accessed: Mapping[str, int], now_ms: int) -> float:
        item, fade = one.item, self._fade
        factor = 1.0
        if fade.half_life_s:
            factor = recency(max(0, now_ms - item.updated_at) / 1000, fade.half_life_s)
            one.parts["recency"] = factor
        if fade.idle_days and may_fade(item):  # what never leaves is found as long as it is there
            one.parts["idle"] = idle_fade(idle_days(item, accessed, now_ms), fade.idle_days)
            factor *= one.parts["idle"]
        if not factor and not one.dropped:
            one.dropped = "idle for too long"
        return factor

    def _document(self, item: Item) -> Document:
        """An item's document; computed once for each item, which never changes."""
        held = self._documents.get(item.id)
        if held is None or held[0] is not item:
            if len(self._documents) >= MOST_KNOWN:
                self._documents.popitem(last=False)
            held = self._documents[item.id] = (item, of_item(item))
        return held[1]

    def _known(self, items: Sequence[Item], corpus: Corpus | None) -> tuple[Mapping[str, Item], Index | None]:
        """The items by id, and their index, unless they are candidates of a corpus somebody else knows.

        An index is kept for just these items, and made anew when one of them is another.
        """
        if corpus is not None:
            return {item.id: item for item in items}, None
        key = tuple(map(id, items))  # of living objects: what is held here stays alive
        held = self._indices.get(key)
        if held is None:
            by_id = {item.id: item for item in items}
            held = self._indices[key] = by_id, Index([self._document(item) for item in by_id.values()])
            while len(self._indices) > 1 and sum(map(len, self._indices)) > MOST_INDEXED:
                self._indices.popitem(last=False)
        self._indices.move_to_end(key)
        return held


@dataclass(slots=True)
class _Candidate:
    """An item on its way through the steps."""

    item: Item
    score: float
    why: list[str]
    parts: dict[str, float]
    dropped: str = ""

    def ranked(self) -> Ranked:
        return Ranked(self.item, self.score, ", ".join(self.why), self.parts, self.dropped)


def _strangers(asked: Query, wanted: Sequence[Concept], own_name: str | None) -> set[str]:
    """The names in a question that are in nothing remembered, nor the person's own."""
    if own_name is None:
        return set()
    unknown = {concept.name for concept in wanted if not concept.spellings}
    return unknown.intersection(asked.names).difference(terms(own_name))


def _of_others(item: Item, asked: Query) -> bool:
    """Whether an item names somebody or something, and nobody of whom was asked."""
    named = names_in(item.text)
    return bool(named) and named.isdisjoint(asked.terms)


def _by_vectors(
    found: dict[str, _Candidate],
    known: Mapping[str, Item],
    cosines: Mapping[str, float],
    text_weight: float,
    vector_weight: float,
) -> None:
    """Fuse the words' scores with the vectors'; a vector far nearer than all others is evidence by itself."""
    cosines = {key: value for key, value in cosines.items() if key in known}
    if not cosines:
        return
    for key in outstanding(cosines):
        held = found.setdefault(key, _Candidate(known[key], 0.0, [], {}))
        held.dropped = ""
        held.why.append("meaning")
    texts = {key: one.score for key, one in found.items()}
    for key, value in fuse(texts, cosines, text_weight, vector_weight).items():
        found[key].score = value
        if key in cosines:
            found[key].parts["cosine"] = cosines[key]


def _without_weak(found: Mapping[str, _Candidate]) -> None:
    """Drop what has so little of the best score that it is there by accident."""
    best = max((one.score for one in found.values() if not one.dropped), default=0.0)
    for one in found.values():
        if not one.dropped and one.score < WEAK * best:
            one.dropped = "far weaker than the best"


def _along_links(found: dict[str, _Candidate], known: Mapping[str, Item]) -> None:
    """What is linked with something found is found as well, and counts half of it."""
    for one in [one for one in found.values() if not one.dropped]:
        for other in sorted(one.item.facets.links & known.keys()):
            held = found.setdefault(other, _Candidate(known[other], 0.0, [], {}, NO_EVIDENCE))
            if held.score < LINKED * one.score:
                held.score = held.parts["link"] = LINKED * one.score
                held.why.append(f"{LINKED_WITH}{one.item.id}")
                held.dropped = ""

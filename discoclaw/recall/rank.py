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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from discoclaw.core.decay import idle_days, idle_fade, may_fade, recency
from discoclaw.core.item import Item
from discoclaw.core.ports import LINKED_WITH, NO_SIGNALS, Corpus, Signals
from discoclaw.core.query import Query
from discoclaw.core.visible import VisibleItems
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


@dataclass(slots=True)
class Ranked:
    """An item with its score (> 0, comparable within one query), and what found it.

    `parts` is what each step gave; `dropped` why it is not returned, "" when it is.
    """

    item: Item
    score: float
    found_by: list[str] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)
    dropped: str = ""

    @property
    def why(self) -> str:
        """What found it, in a few words."""
        return ", ".join(self.found_by)


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
        self._indices: OrderedDict[tuple[int, ...], tuple[VisibleItems, Index]] = OrderedDict()
        self._indexed = 0

    def forget(self) -> None:
        """Keep nothing in RAM of what was ranked: somebody's words have to go."""
        self._documents.clear()
        self._indices.clear()
        self._indexed = 0

    def rank(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> list[Ranked]:
        """All items with real evidence for `query`, best first."""
        found = self._candidates(query, items, now_ms, signals)
        return _in_order(one for one in found if not one.dropped)

    def consider(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> list[Ranked]:
        """All candidates, best first, also those that are dropped, with what each step gave."""
        found = self._candidates(query, items, now_ms, signals)
        kept = _in_order(one for one in found if not one.dropped)
        return kept + _in_order(one for one in found if one.dropped)

    def _candidates(
        self, query: Query, items: Sequence[Item], now_ms: int, signals: Signals
    ) -> Collection[Ranked]:
        if not items or not (query.wanted or signals.cosines):
            return []
        known, index = self._known(items, signals.corpus)
        found = self._by_words(query, known, index, signals)
        _by_vectors(found, known.by_id, signals.cosines, *self._weights)
        _without_weak(found)
        for _ in range(self._depth):
            _along_links(found, known.by_id)
        if self._fade.half_life_s or self._fade.idle_days:
            for one in found.values():
                one.score *= self._freshness(one, signals.accessed, now_ms)
        return found.values()

    def _by_words(
        self, query: Query, known: VisibleItems, index: Index | None, signals: Signals
    ) -> dict[str, Ranked]:
        by_id, corpus = known.by_id, signals.corpus
        if index is not None:
            wanted = concepts(query, index, index.vocabulary)
            scored = index.search(wanted, MOST_FOUND)
        else:
            assert corpus is not None
            near = corpus if isinstance(corpus, Counted) else None
            wanted = concepts(query, corpus, near)
            scored = score(wanted, map(self._document, by_id.values()), corpus)
        strangers = _strangers(query, wanted, signals.own_name)
        about_projects = not PROJECT_WORDS.isdisjoint(query.terms)
        found = {}
        for one in scored:
            item = by_id[one.document.id]
            parts = {"words": one.score, "coverage": one.coverage}
            ranked = Ranked(item, one.score, one.matched, parts, "" if one.evident else NO_EVIDENCE)
            if about_projects and item.kind == "project":
                ranked.score *= PROJECT_BOOST
                parts["project"] = PROJECT_BOOST
            if strangers and one.coverage < MOST_OF_IT and _of_others(item, query):
                ranked.dropped = f"about others than {', '.join(sorted(strangers))}"
            found[item.id] = ranked
        return found

    def _freshness(self, one: Ranked, accessed: Mapping[str, int], now_ms: int) -> float:
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

    def _known(self, items: Sequence[Item], corpus: Corpus | None) -> tuple[VisibleItems, Index | None]:
        """The items, and their index, unless they are candidates of a corpus somebody else knows.

        An index is kept for just these items, and made anew when one of them is another.
        """
        known = VisibleItems.of(items)
        if corpus is not None:
            return known, None
        kept = self._indices.get(known.identities)
        if kept is None:
            index = Index([self._document(item) for item in known.by_id.values()])
            kept = self._indices[known.identities] = known, index
            self._indexed += len(known)
            while len(self._indices) > 1 and self._indexed > MOST_INDEXED:
                _, (oldest, _) = self._indices.popitem(last=False)
                self._indexed -= len(oldest)
        self._indices.move_to_end(known.identities)
        return kept


def _in_order(found: Iterable[Ranked]) -> list[Ranked]:
    """Best first; ties are newer first, then by id."""
    return sorted(found, key=lambda one: (-round(one.score, 9), -one.item.updated_at, one.item.id))


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
    found: dict[str, Ranked],
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
        held = found.setdefault(key, Ranked(known[key], 0.0))
        held.dropped = ""
        held.found_by.append("meaning")
    texts = {key: one.score for key, one in found.items()}
    for key, value in fuse(texts, cosines, text_weight, vector_weight).items():
        found[key].score = value
        if key in cosines:
            found[key].parts["cosine"] = cosines[key]


def _without_weak(found: Mapping[str, Ranked]) -> None:
    """Drop what has so little of the best score that it is there by accident."""
    best = max((one.score for one in found.values() if not one.dropped), default=0.0)
    for one in found.values():
        if not one.dropped and one.score < WEAK * best:
            one.dropped = "far weaker than the best"


def _along_links(found: dict[str, Ranked], known: Mapping[str, Item]) -> None:
    """What is linked with something found is found as well, and counts half of it."""
    for one in [one for one in found.values() if not one.dropped]:
        links = one.item.facets.links
        for other in sorted(links & known.keys()) if links else ():
            held = found.setdefault(other, Ranked(known[other], 0.0, dropped=NO_EVIDENCE))
            if held.score < LINKED * one.score:
                held.score = held.parts["link"] = LINKED * one.score
                held.found_by.append(f"{LINKED_WITH}{one.item.id}")
                held.dropped = ""

"""Ranking of one person's items: one pipeline for prompts, for the model's search and for people's.

    tokenise   core/words, recall/query, recall/document
    words      recall/score: BM25 for short texts; aliases, keys, names, dates in words
    evidence   recall/evidence: nothing is returned without, and nothing that others clearly outdo
    steps      recall/steps: vectors, if there are any; what was learned together; links; the latest word
    time       recency and idle fade, both off unless an admin wants them; ties are newer first

Near-duplicates and the budget are `select`'s. Every item of the person is a candidate, never only a "hot
set"; of a big memory the caller may bring candidates alone, with the statistics of the whole. Pure and
deterministic.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import KeyedRef

from discoclaw.core.decay import idle_days, idle_fade, may_fade, recency
from discoclaw.core.item import Item
from discoclaw.core.ports import IDLE, NO_SIGNALS, Signals
from discoclaw.core.query import Query
from discoclaw.core.visible import Line, VisibleItems, line_of
from discoclaw.core.words import terms
from discoclaw.recall import steps
from discoclaw.recall.corpus import Counted
from discoclaw.recall.document import of_item
from discoclaw.recall.indices import Indexed, Indices
from discoclaw.recall.ranked import Ranked
from discoclaw.recall.score import asked_of, score

T = TypeVar("T")

MOST_KNOWN = 100_000
"""The most documents cached for later queries, for all people together."""
MOST_LINES = 10_000
"""Lines kept, of all people together: a prompt has some twenty, and the next one mostly others."""
MOST_FOUND = 200
"""The most candidates of one query."""
PROJECT_WORDS = frozenset(terms("repo repository build deploy deployment release ship branch project"))
PROJECT_BOOST = 1.15
"""A project is likelier meant when the talk is of building things; DNAM's "+2", as a proportion."""


@dataclass(frozen=True, slots=True)
class Fade:
    """How time counts: recency's half-life in s, and the days after which idle knowledge is out. 0: off."""

    half_life_s: float = 0
    idle_days: float = 0


class Ranker:
    """The `Recall` port. Caches what it computed about items."""

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
        self._documents = _OfItems(of_item, MOST_KNOWN)
        self._lines = _OfItems(line_of, MOST_LINES)
        self._indices = Indices(self._documents.of)
        self._forgotten = 0

    def prepare(self, items: Sequence[Item], *, candidates: bool) -> Iterator[None]:
        """See `Recall.prepare`. It ends after `forget`: the words that have to go may be these."""
        known, forgotten = VisibleItems.of(items), self._forgotten
        fresh = (self._documents.of(item) for item in known if item not in self._documents)
        for _ in fresh if candidates else self._indices.making(known):
            yield
            if self._forgotten != forgotten:
                return

    def forget(self) -> None:
        """Drop everything in RAM about ranked items, because somebody's words have to go."""
        self._forgotten += 1
        self._documents.clear()
        self._lines.clear()
        self._indices.clear()

    def rank(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> list[Ranked]:
        """All items with real evidence for `query`, best first."""
        found = self._candidates(query, VisibleItems.of(items), now_ms, signals)
        return _in_order(one for one in found if not one.dropped)

    def consider(
        self, query: Query, items: Sequence[Item], *, now_ms: int, signals: Signals = NO_SIGNALS
    ) -> list[Ranked]:
        """All candidates, best first, also those that are dropped, with what each step gave."""
        found = self._candidates(query, VisibleItems.of(items), now_ms, signals)
        kept = _in_order(one for one in found if not one.dropped)
        return kept + _in_order(one for one in found if one.dropped)

    def _candidates(
        self, query: Query, known: VisibleItems, now_ms: int, signals: Signals
    ) -> Collection[Ranked]:
        if not known or not (query.wanted or signals.cosines):
            return []
        indexed = self._indices.of(known) if signals.corpus is None else None
        known = indexed.items if indexed is not None else known  # the same, with what is derived from them
        found = self._by_words(query, known, indexed, signals)
        steps.by_meaning(found, known.by_id, signals.cosines, signals.floor, self._weights)
        steps.learned_together(found)
        steps.without_weak(found)
        for _ in range(self._depth):
            steps.along_links(found, known.by_id)
        if self._fade.half_life_s or self._fade.idle_days:
            for one in found.values():
                one.score *= self._freshness(one, signals.accessed, now_ms)
        steps.latest_first(found)
        return found.values()

    def _by_words(
        self, query: Query, known: VisibleItems, indexed: Indexed | None, signals: Signals
    ) -> dict[str, Ranked]:
        places: Sequence[Item | None]
        own_name = signals.own_name
        if indexed is not None:
            places, index = indexed.places, indexed.index
            asked = asked_of(query, index, index.vocabulary, own_name=own_name)
            matches = index.search(asked, MOST_FOUND)
        else:  # of a big memory these are only candidates
            places, corpus = list(known.by_id.values()), signals.corpus
            assert corpus is not None
            vocabulary = corpus if isinstance(corpus, Counted) else None
            asked = asked_of(query, corpus, vocabulary, own_name=own_name)
            matches = score(asked, [self._documents.of(item) for item in known.by_id.values()], corpus)
        about_projects = not PROJECT_WORDS.isdisjoint(query.terms)
        found = {}
        for position, words in matches.scores.items():
            item = places[position]
            assert item is not None
            boosted = about_projects and item.kind == "project"
            one = found[item.id] = Ranked(
                item,
                words * PROJECT_BOOST if boosted else words,
                "" if position in matches.meant else matches.verdict(position),
                matches,
                position,
            )
            if boosted:
                one.given["project"] = PROJECT_BOOST
        return found

    def _freshness(self, one: Ranked, accessed: Mapping[str, int], now_ms: int) -> float:
        item, fade = one.item, self._fade
        factor = 1.0
        if fade.half_life_s:
            factor = recency(max(0, now_ms - item.updated_at) / 1000, fade.half_life_s)
            one.given["recency"] = factor
        if fade.idle_days and may_fade(item):
            idle = one.given["idle"] = self._idle(item, accessed, now_ms)
            factor *= idle
        if not factor and not one.dropped:
            one.dropped = IDLE
        return factor

    def _idle(self, item: Item, accessed: Mapping[str, int], now_ms: int) -> float:
        """The factor for idleness. What never leaves is found as long as it is there."""
        days = self._fade.idle_days
        return idle_fade(idle_days(item, accessed, now_ms), days) if days and may_fade(item) else 1.0

    def faded(self, item: Item, *, now_ms: int, signals: Signals = NO_SIGNALS) -> bool:
        """Whether an item is not found any more, whatever the query, because it was idle for too long."""
        return not self._idle(item, signals.accessed, now_ms)

    def line(self, item: Item) -> Line:
        """An item's line in a prompt; made once for each item, which never changes."""
        return self._lines.of(item)


class _OfItems(Generic[T]):
    """What was made of items, each as long as its item is alive: a memory that changes makes new items.

    Of more than `most`, those made first are let go.
    """

    def __init__(self, make: Callable[[Item], T], most: int) -> None:
        self._make = make
        self._most = most
        self._made: dict[int, tuple[KeyedRef[int, Item], T]] = {}  # by the identity of the item

    def __contains__(self, item: Item) -> bool:
        return id(item) in self._made

    def of(self, item: Item) -> T:
        known = self._made.get(id(item))  # this is asked far more often than anything else
        if known is None:
            if len(self._made) >= self._most:
                self._made.pop(next(iter(self._made)), None)
            known = self._made[id(item)] = KeyedRef(item, self._died, id(item)), self._make(item)
        return known[1]

    def clear(self) -> None:
        self._made.clear()

    def _died(self, item: KeyedRef[int, Item]) -> None:
        self._made.pop(item.key, None)


def _in_order(found: Iterable[Ranked]) -> list[Ranked]:
    """Best first; ties are newer first, then by id."""
    keyed = [(-round(one.score * 1e9), -one.item.updated_at, one.item.id, one) for one in found]
    return [one for *_, one in sorted(keyed)]

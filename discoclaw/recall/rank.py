"""Ranking of one person's items: one pipeline for prompts, for the model's search and for people's.

    tokenise   core/words, recall/query, recall/document
    words      recall/score: BM25 for short texts; aliases, keys, names, dates in words
    evidence   recall/evidence: nothing is returned without, and nothing that others clearly outdo
    steps      recall/steps: vectors, if there are any; what was learned together; links; the latest word
    time       recency and idle fade, both off unless an admin wants them; ties are newer first

Near-duplicates and the budget are `select`'s. Every item of the person is a candidate, never only a "hot
set". Pure and deterministic.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.decay import idle_days, idle_fade, may_fade, recency
from discoclaw.core.item import Item
from discoclaw.core.ports import IDLE, NO_SIGNALS, Signals
from discoclaw.core.query import Query
from discoclaw.core.visible import Line, VisibleItems, line_of
from discoclaw.core.words import terms
from discoclaw.recall import steps
from discoclaw.recall.document import Documents, Kept
from discoclaw.recall.index import Index, Indices
from discoclaw.recall.score import asked_of
from discoclaw.recall.steps import Ranked

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
    """The `Recall` port. Caches what it computed about items; others may use its `documents` too."""

    def __init__(
        self,
        fade: Fade = Fade(),
        documents: Documents | None = None,
        *,
        text_weight: float = 0.4,
        vector_weight: float = 0.6,
        depth: int = 1,
    ) -> None:
        self._fade = fade
        self._weights = text_weight, vector_weight
        self._depth = depth
        self._documents = documents or Documents()
        self._lines = Kept[Line](MOST_LINES)
        self._indices = Indices(self._documents.of)
        self._forgotten = 0

    def prepare(self, items: Sequence[Item]) -> Iterator[None]:
        """See `Recall.prepare`. It ends after `forget`: the words that have to go may be these."""
        forgotten = self._forgotten
        for _ in self._indices.making(VisibleItems.of(items)):
            yield
            if self._forgotten != forgotten:
                return

    def forget(self) -> None:
        """Drop everything in RAM about ranked items, because somebody's words have to go."""
        self._forgotten += 1
        self._documents.forget()
        self._lines.forget()
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
        indexed = self._indices.of(known)
        known = indexed.items  # the same, with what is derived from them
        found = self._by_words(query, indexed.places, indexed.index, signals.own_name)
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
        self, query: Query, places: Sequence[Item | None], index: Index, own_name: str | None
    ) -> dict[str, Ranked]:
        asked = asked_of(query, index, index.vocabulary, own_name=own_name)
        matches = index.search(asked, MOST_FOUND)
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
        return self._lines.known(item) or self._lines.add(item, line_of(item))


def _in_order(found: Iterable[Ranked]) -> list[Ranked]:
    """Best first; ties are newer first, then by id."""
    keyed = [(-round(one.score * 1e9), -one.item.updated_at, one.item.id, one) for one in found]
    return [one for *_, one in sorted(keyed)]

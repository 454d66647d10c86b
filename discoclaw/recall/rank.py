"""Ranking of one person's items: one pipeline for prompts, for the model's search and for people's.

    tokenise   core/words, recall/document
    words      recall/score: BM25 for short texts; aliases, keys, names, dates in words
    evidence   recall/evidence: nothing is returned without, and nothing that others clearly outdo
    steps      below: vectors, if there are any; what was learned together; links; the latest word
    time       recency and idle fade, both off unless an admin wants them; ties are newer first

Near-duplicates and the budget are `select`'s. Every item of the person is a candidate, never only a "hot
set". Pure and deterministic.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from discoclaw.core.decay import idle_days, idle_fade, may_fade, recency
from discoclaw.core.item import Item
from discoclaw.core.ports import IDLE, LINKED_WITH, NO_SIGNALS, Signals
from discoclaw.core.query import Cosines, Query
from discoclaw.core.visible import Line, VisibleItems, line_of
from discoclaw.core.words import terms
from discoclaw.recall.document import Documents, Kept
from discoclaw.recall.evidence import NO_EVIDENCE, OUTDONE, Matches
from discoclaw.recall.index import Index, Indices
from discoclaw.recall.score import asked_of

# ----------------------------------------------------------------------
# The steps of a ranking that follow the words: meaning, what was learned together, links, the latest word.

# ----------------------------------------------------------------------
# An item with its score: what ranking returns, and what each of its steps adds to. Pure.


class Ranked:
    """An item with its score (> 0, comparable within one query), and what found it.

    `words` is the score by words alone, with which it begins. `dropped` is why it is not returned, or "".
    What found it is computed on demand.
    """

    __slots__ = ("_given", "_matches", "_position", "_reasons", "dropped", "item", "score", "words")

    def __init__(
        self, item: Item, score: float, dropped: str, matches: Matches | None = None, position: int = 0
    ) -> None:
        self.item = item
        self.score = self.words = score
        self.dropped = dropped
        self._matches = matches
        self._position = position
        self._given: dict[str, float] | None = None
        self._reasons: list[str] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranked):
            return NotImplemented
        mine = self.item, self.score, self.dropped, self.why, self.parts
        return mine == (other.item, other.score, other.dropped, other.why, other.parts)

    __hash__ = None  # type: ignore[assignment]

    @property
    def outdone(self) -> bool:
        """Whether others have more of what the words asked, so that this one was not meant."""
        return self.dropped == OUTDONE

    @property
    def named(self) -> bool:
        """Whether its key or one of its aliases is named completely."""
        return self._matches is not None and self._matches.given(self._position)

    @property
    def why(self) -> str:
        """Why it was found, in a few words."""
        matched = self._matches.matched(self._position) if self._matches is not None else ()
        return ", ".join([*matched, *(self._reasons or ())])

    @property
    def parts(self) -> Mapping[str, float]:
        """The contribution of each step."""
        if self._matches is None:
            return self.given
        words, coverage = self._matches.scores[self._position], self._matches.coverage(self._position)
        return {"words": words, "coverage": coverage, **(self._given or {})}

    @property
    def given(self) -> dict[str, float]:
        """The contributions of the steps after the words."""
        if self._given is None:
            self._given = {}
        return self._given

    @property
    def reasons(self) -> list[str]:
        """Why it was found, besides its words."""
        if self._reasons is None:
            self._reasons = []
        return self._reasons


WEAK = 0.2
"""The share of the best score below which a hit counts as accidental."""
LINKED = 0.5
"""The share of an item's score that the items linked with it get."""
TOGETHER = 0.3
"""The share of the best score among what was learned together that each of the others gets; the best gets it
of the second."""
MOST_TOGETHER = 8
"""More items of one minute are an import, and have nothing else in common."""
MINUTE_MS = 60_000
ROUNDING = 2e-9
"""Scores that differ by more are not equal."""
NEAR_TIE, AS_NEAR = 0.9, 0.1
"""A tie has this share of the best's score by words, and a cosine by no more than this below its own."""

Found = dict[str, Ranked]
"""The hits so far, by the item's id."""


def by_meaning(
    found: Found,
    known: Mapping[str, Item],
    cosines: Mapping[str, float],
    floor: float,
    weights: tuple[float, float],
) -> None:
    """Fuse the words' scores with the vectors'; one far nearer than all others is evidence by itself.

    What others outdo by their words stays out: it is near in meaning because it is nearly the same.
    `floor` is the cosine of texts that have nothing in common, `weights` those of words and vectors.
    """
    if not cosines:
        return
    cosines = Cosines.of(cosines)
    for key in outstanding(cosines, floor):
        if key not in known:  # of a big memory these are only candidates
            continue
        one = found.setdefault(key, Ranked(known[key], 0.0, NO_EVIDENCE))
        if not one.outdone:
            one.dropped = ""
            one.reasons.append("meaning")
    texts = {key: one.score for key, one in found.items()}
    for key, value in fuse(texts, cosines, *weights).items():
        found[key].score = value
        if key in cosines:
            found[key].given["cosine"] = cosines[key]


def without_weak(found: Found) -> None:
    """Drop hits whose share of the best score is so small that they are accidental; no name is."""
    best = _best(found.values())
    for one in found.values():
        if not one.dropped and one.score < WEAK * best and not one.named:
            one.dropped = "far weaker than the best"


def learned_together(found: Found) -> None:
    """Give each item that was found a share of the best score of those learned from its message or minute.

    What was said at once is about one thing, but that alone isn't evidence.
    """
    groups: dict[object, list[Ranked]] = {}
    for one in found.values():
        item = one.item
        occasion = item.source.message_id or item.created_at // MINUTE_MS
        groups.setdefault(occasion, []).append(one)
    for group in groups.values():
        kept = [one for one in group if not one.dropped] if 2 <= len(group) <= MOST_TOGETHER else []
        if len(kept) < 2:
            continue
        first, second = nlargest(2, (one.score for one in kept))
        for one in kept:
            share = TOGETHER * (second if one.score == first else first)
            if share:
                one.given["together"] = share
                one.score += share


def along_links(found: Found, known: Mapping[str, Item]) -> None:
    """Add the items linked with something found, at half its score."""
    for one in [one for one in found.values() if not one.dropped]:
        links = one.item.facets.links
        for other in sorted(links & known.keys()) if links else ():
            far = found.setdefault(other, Ranked(known[other], 0.0, NO_EVIDENCE))
            if far.score < LINKED * one.score:
                far.score = far.given["link"] = LINKED * one.score
                far.reasons.append(f"{LINKED_WITH}{one.item.id}")
                far.dropped = ""


def latest_first(found: Found) -> None:
    """Make what neither words nor meaning tell from the best its equal: of equals the newest comes first.

    So the latest word wins where several say the same of the same thing.
    """
    kept = [one for one in found.values() if not one.dropped]
    if not kept:
        return
    most = max([one.score for one in kept]) - ROUNDING
    equals = [one for one in kept if one.score >= most]
    top = max(equals, key=lambda one: (round(one.score, 9), one.item.updated_at, one.item.id))
    best, words, near = top.score, top.words * NEAR_TIE, top.given.get("cosine", 0.0) - AS_NEAR
    for one in kept:
        if one.score < best and one.words >= words and one.given.get("cosine", 0.0) >= near:
            one.given["near tie"] = best - one.score
            one.score = best


def _best(found: Iterable[Ranked]) -> float:
    return max([one.score for one in found if not one.dropped], default=0.0)


# ---------------------------------------------------------------------- cosines

OUTSTANDING = 2.5
"""Standard deviations above the mean that a cosine has to be to tell something by itself."""
MOST_OUTSTANDING = 12
FEW = 10
"""Among fewer cosines none can stand out like that: the floor decides, where it is known (above 0)."""
SPREAD = 1e-6
"""A smaller spread is rounding: then no cosine says anything."""


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors, -1 to 1; 0 when they are empty, zero or of different lengths."""
    if not one or len(one) != len(other):
        return 0.0
    length, other_length = math.hypot(*one), math.hypot(*other)  # squares would over- and underflow
    if not length or not other_length:
        return 0.0
    product = sum((x / length) * (y / other_length) for x, y in zip(one, other, strict=True))
    return min(1.0, max(-1.0, product))


def shifted(cos: float) -> float:
    """A cosine as a share of 1: (cos + 1) / 2."""
    return (cos + 1) / 2


def hybrid(
    text: float | None, cos: float | None, text_weight: float = 0.4, vector_weight: float = 0.6
) -> float:
    """One score of a text score (0 to 1) and a cosine. What is missing leaves the other as it is."""
    if cos is None:
        return text or 0.0
    if text is None:
        return shifted(cos)
    return text_weight * text + vector_weight * shifted(cos)


def fuse(
    texts: Mapping[str, float], cosines: Mapping[str, float], text_weight: float, vector_weight: float
) -> dict[str, float]:
    """One score for each of `texts`: its share of the best, and its cosine between the least and the best.

    Linear, since reciprocal ranks lower what either is sure of; min-max, since cosines of one model lie close
    together. What has no vector keeps its text score.
    """
    best = max(texts.values(), default=0.0) or 1.0
    of_all = Cosines.of(cosines)
    low, high = of_all.low, of_all.high
    fused = {}
    for key, text in texts.items():
        share = text / best
        if key in cosines:
            near = (cosines[key] - low) / (high - low) if high > low else 1.0
            share = text_weight * share + vector_weight * near
        fused[key] = share
    return fused


def outstanding(cosines: Mapping[str, float], floor: float = 0.0) -> list[str]:
    """The few whose cosine is at least `floor` and stands out from all others', best first.

    The best of many unrelated texts stand out from the others too, and only the floor tells that they say
    nothing; among many texts about one thing all are above it, and only standing out tells which is meant.
    """
    of_all = Cosines.of(cosines)
    if len(cosines) >= FEW:
        if of_all.spread < SPREAD:
            return []
        least = max(floor, of_all.mean + OUTSTANDING * of_all.spread)
    else:
        least = floor if floor > 0 else math.inf
    return [key for key in of_all.nearest[:MOST_OUTSTANDING] if cosines[key] >= least]


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
        by_meaning(found, known.by_id, signals.cosines, signals.floor, self._weights)
        learned_together(found)
        without_weak(found)
        for _ in range(self._depth):
            along_links(found, known.by_id)
        if self._fade.half_life_s or self._fade.idle_days:
            for one in found.values():
                one.score *= self._freshness(one, signals.accessed, now_ms)
        latest_first(found)
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

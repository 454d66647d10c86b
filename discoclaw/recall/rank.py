"""Ranking of one person's items: one pipeline for prompts, for the model's search and for people's.

    tokenise   core/words, recall/document
    words      recall/terms, recall/index: BM25 for short texts; aliases, keys, names, dates in words
    evidence   recall/evidence: nothing is returned without, and nothing that others clearly outdo
    steps      below: vectors, if there are any; what was learned together; links; the latest word
    time       recency and idle fade, both off unless an admin wants them; ties are newer first

Near-duplicates and the budget are `select`'s. Every item of the person is a candidate, never only a "hot
set". Pure and deterministic.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from types import MappingProxyType

from discoclaw.core.decay import idle_days, idle_fade, may_fade, recency
from discoclaw.core.item import Item
from discoclaw.core.ports import IDLE, LINKED_WITH, NO_SIGNALS, POSSIBLE, Signals
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.query import Cosines, Query
from discoclaw.core.visible import Line, VisibleItems, line_of
from discoclaw.core.words import terms
from discoclaw.recall.document import Documents, Kept
from discoclaw.recall.evidence import NO_EVIDENCE, OUTDONE, Matches
from discoclaw.recall.index import Index, Indexed, Indices
from discoclaw.recall.terms import Asked, asked_of


class Ranked:
    """An item with its score (> 0, comparable within one query), and what found it.

    `words` is the score by words alone, with which it begins, `given` what the steps after the words gave,
    `reasons` why it was found besides its words. `dropped` is why it is not returned, or "". `possible`: it
    has no evidence, and is returned after all that have, as possibly related; `follows`: something says that
    it is about the same as one of the best. What found it by its words is computed on demand.
    """

    possible = follows = False
    given: Mapping[str, float] = MappingProxyType({})
    reasons: Sequence[str] = ()

    def __init__(
        self, item: Item, score: float, dropped: str, matches: Matches | None = None, position: int = -1
    ) -> None:
        self.item = item
        self.score = self.words = score
        self.dropped = dropped
        self._matches = matches or NO_MATCHES
        self._position = position

    def give(self, step: str, value: float, reason: str = "") -> None:
        """Note what a step gave, and why it was found, if that is a reason of its own."""
        self.given = {**self.given, step: value}
        if reason:
            self.reasons = [*self.reasons, reason]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranked):
            return NotImplemented
        mine = self.item, self.score, self.dropped, self.why, self.parts
        return mine == (other.item, other.score, other.dropped, other.why, other.parts)

    __hash__ = None  # type: ignore[assignment]

    @property
    def named(self) -> bool:
        """Whether its key or one of its aliases is named completely."""
        return self._matches.given(self._position)

    @property
    def account(self) -> bool:
        """Whether an account is asked for of what it is about."""
        return self._position in self._matches.accounts

    @property
    def names(self) -> Sequence[frozenset[str]]:
        """Its names, where nothing else is asked of it than what it is."""
        return self._matches.names(self._position)

    @property
    def telling(self) -> bool:
        """Whether it has a term that says more than common words do."""
        return self._matches.telling(self._position)

    @property
    def matched(self) -> list[str]:
        """The names of the terms it has."""
        return self._matches.matched(self._position)

    @property
    def why(self) -> str:
        """Why it was found, in a few words."""
        return ", ".join([*([POSSIBLE] if self.possible else []), *self.matched, *self.reasons])

    @property
    def parts(self) -> Mapping[str, float]:
        """The contribution of each step."""
        if self._position < 0:
            return self.given
        words, coverage = self._matches.scores[self._position], self._matches.coverage(self._position)
        return {"words": words, "coverage": coverage, **self.given}


NO_MATCHES = Matches(Asked((), (), bare=False, total=0), (), (), [None], {})
"""Those of an item that has none of the words."""


# ----------------------------------------------------------------------
# The steps of a ranking that follow the words: meaning, what was learned together, links, the latest word.

WEAK = 0.2
"""The share of the best score below which a hit counts as accidental."""
LINKED = 0.5
"""The share of an item's score that the items linked with it get."""
TOGETHER = 0.3
"""The share of the best score among what was learned together that each of the others gets; the best gets it
of the second."""
MOST_TOGETHER = 8
"""More items of one minute are an import, and have nothing else in common."""
WEAKER = "far weaker than the best"
LEFT_OUT = (NO_EVIDENCE, OUTDONE, WEAKER)
"""Why something is not returned that may be possibly related."""
MOST_FOLLOWED = 3
MOST_MENTIONS = 5
"""A name that more memories mention is a part of much that the person does, and tells none of it."""
MOST_RETURNED = 12
"""Where nothing is named, what is possibly related comes behind the rest, up to so many items together."""
POSSIBLY = 0.4
"""The share of the best score that it needs."""
POSSIBLY_MEANT = 0.35
"""The cosine that it needs where there are vectors."""
ROUNDING = 2e-9
"""Scores that differ by more are not equal."""
NEAR_TIE, AS_NEAR, AS_MANY = 0.9, 0.1, 0.6
"""A tie has this share of the best's score by words, a cosine by no more than this below its own, and this
share of the terms that the best has."""

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
        if one.dropped != OUTDONE:
            one.dropped = ""
            one.reasons = [*one.reasons, "meaning"]
    texts = {key: one.score for key, one in found.items()}
    for key, value in fuse(texts, cosines, *weights).items():
        found[key].score = value
        if key in cosines:
            found[key].give("cosine", cosines[key])


def without_weak(found: Found) -> None:
    """Drop hits whose share of the best score is so small that they are accidental; no name is."""
    best = max([one.score for one in found.values() if not one.dropped], default=0.0)
    for one in found.values():
        if not one.dropped and one.score < WEAK * best and not one.named:
            one.dropped = WEAKER


def learned_together(found: Found, known: VisibleItems) -> None:
    """Give each candidate a share of the best score of those learned from its message, minute or day.

    What was said at once is about one thing, but that alone isn't evidence.
    """
    shares: dict[str, float] = {}
    for occasions in (known.moments, known.days):
        counted = Counter(map(occasions.__getitem__, found))
        groups = {one: list[Ranked]() for one, count in counted.items() if 2 <= count <= MOST_TOGETHER}
        for key, one in found.items() if groups else ():
            if (group := groups.get(occasions[key])) is not None:
                group.append(one)
        for group in groups.values():
            if not (kept := [one.score for one in group if not one.dropped]):
                continue
            first, second = (*nlargest(2, kept), 0.0)[:2]
            for one in group:
                best = second if one.score == first and not one.dropped else first
                shares[one.item.id] = max(shares.get(one.item.id, 0.0), TOGETHER * best)
    for key, share in shares.items():
        if share:
            found[key].give("together", share)
            found[key].score += share


def along_links(found: Found, known: Mapping[str, Item]) -> None:
    """Add the items linked with something found, at half its score."""
    for one in [one for one in found.values() if not one.dropped]:
        links = one.item.facets.links
        for other in sorted(links & known.keys()) if links else ():
            far = found.setdefault(other, Ranked(known[other], 0.0, NO_EVIDENCE))
            if far.score < LINKED * one.score:
                far.score = LINKED * one.score
                far.give("link", far.score, f"{LINKED_WITH}{one.item.id}")
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
    asked = set(top.matched)
    for one in kept:
        if one.score >= best or one.words < words or one.given.get("cosine", 0.0) < near:
            continue
        # Another relation may weigh as much: who works in Oslo doesn't live there.
        if len(asked.intersection(one.matched)) >= AS_MANY * len(asked):
            one.give("near tie", best - one.score)
            one.score = best


def with_related(found: Found, indexed: Indexed) -> None:
    """Consider what is related to the best, without evidence of its own.

    That is what mentions them by name, if nothing else is asked of them: who asks for the dog may mean what
    is said of Biscuit. Where an account is asked for, it is also what was learned beside them.
    """
    kept = [one for one in found.values() if not one.dropped]
    least = min(nlargest(MOST_FOLLOWED, [one.score for one in kept]), default=0.0) - ROUNDING
    for one in _in_order(one for one in kept if one.score >= least)[:MOST_FOLLOWED]:
        places = [at for name in one.names for at in indexed.index.mentioning(name, MOST_MENTIONS)]
        related = {item.id: (item, LINKED) for at in places if (item := indexed.places[at]) is not None}
        if one.account:
            beside = _learned_beside(one.item, indexed.items)
            related = {item.id: (item, TOGETHER) for item in beside} | related
        for item, share in related.values():
            other = found.setdefault(item.id, Ranked(item, 0.0, NO_EVIDENCE))
            if other.dropped in LEFT_OUT:
                other.follows = True
                other.score = max(other.score, share * one.score)


def _learned_beside(one: Item, items: VisibleItems) -> list[Item]:
    """The items learned from the same message or in the same minute, and of a day with few all others."""
    groups = items.by_moment[items.moments[one.id]], items.by_day[items.days[one.id]]
    return [item for group in groups if len(group) <= MOST_TOGETHER for item in group]


def with_possible(found: Found, cosines: Mapping[str, float], *, naming: bool) -> None:
    """Fill up with what comes next, where there is evidence for something and nothing is named.

    Who asks in their own words uses others than those in which it was remembered.
    """
    kept = [one for one in found.values() if not one.dropped]
    if not 0 < len(kept) < MOST_RETURNED:
        return
    least = POSSIBLY * max(one.score for one in kept)

    def may_be_meant(one: Ranked) -> bool:
        """Whether it comes near enough by meaning, where that is known, else by words."""
        if cosines:
            return cosines.get(one.item.id, 0.0) >= POSSIBLY_MEANT
        return one.score >= least and one.telling

    rest = [
        one
        for one in found.values()
        if one.dropped in LEFT_OUT and (one.follows or (not naming and may_be_meant(one)))
    ]
    for one in _in_order(rest)[: MOST_RETURNED - len(kept)]:
        one.possible, one.dropped = True, ""


# ---------------------------------------------------------------------- cosines

OUTSTANDING = 2.5
"""Standard deviations above the mean that a cosine has to be to tell something by itself."""
MOST_OUTSTANDING = 12
FEW = 10
"""Among fewer cosines none can stand out like that: the floor decides, where it is known (above 0)."""
SPREAD = 1e-6
"""A smaller spread is rounding: then no cosine says anything."""


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


class Ranker(Derived):
    """The `Recall` port. Caches what it computed about items; others may use its `documents` too."""

    name = "ranking"

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

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Drop everything in RAM about ranked items, because somebody's words have to go."""
        if phase != "ram":
            return
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
        found, naming = self._by_words(query, indexed.places, indexed.index, signals.own_name)
        by_meaning(found, known.by_id, signals.cosines, signals.floor, self._weights)
        learned_together(found, known)
        without_weak(found)
        for _ in range(self._depth):
            along_links(found, known.by_id)
        if self._fade.half_life_s or self._fade.idle_days:
            for one in found.values():
                one.score *= self._freshness(one, signals.accessed, now_ms)
        latest_first(found)
        with_related(found, indexed)
        with_possible(found, signals.cosines, naming=naming)
        return found.values()

    def _by_words(
        self, query: Query, places: Sequence[Item | None], index: Index, own_name: str | None
    ) -> tuple[dict[str, Ranked], bool]:
        """The items that have any of the words, by their ids, and whether the query names something."""
        asked = asked_of(query, index, index.vocabulary, own_name=own_name)
        matches = index.search(asked, MOST_FOUND)
        about_projects = not PROJECT_WORDS.isdisjoint(query.terms)
        found = {}
        for position, words in matches.scores.items():
            item = places[position]
            assert item is not None
            dropped = "" if position in matches.meant else matches.verdict(position)
            one = found[item.id] = Ranked(item, words, dropped, matches, position)
            if about_projects and item.kind == "project":
                one.score = one.words = words * PROJECT_BOOST
                one.give("project", PROJECT_BOOST)
        return found, matches.naming or bool(asked.strangers)

    def _freshness(self, one: Ranked, accessed: Mapping[str, int], now_ms: int) -> float:
        item, fade = one.item, self._fade
        factor = 1.0
        if fade.half_life_s:
            factor = recency(max(0, now_ms - item.updated_at) / 1000, fade.half_life_s)
            one.give("recency", factor)
        if fade.idle_days and may_fade(item):
            idle = self._idle(item, accessed, now_ms)
            one.give("idle", idle)
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
        made = self._lines.made.get(id(item))
        return made[1] if made is not None else self._lines.add(item, line_of(item))


def _in_order(found: Iterable[Ranked]) -> list[Ranked]:
    """Best first; ties are newer first, then by id."""
    keyed = [(one.possible, -round(one.score * 1e9), -one.item.updated_at, one.item.id, one) for one in found]
    return [one for *_, one in sorted(keyed)]

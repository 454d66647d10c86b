"""The steps of a ranking that follow the words: meaning, what was learned together, links, the latest word.

Each changes scores in place, or says why an item is dropped after all. Pure; independent of queries.
"""

from collections.abc import Iterable, Mapping
from heapq import nlargest

from discoclaw.core.cosines import Cosines
from discoclaw.core.item import Item
from discoclaw.core.ports import LINKED_WITH
from discoclaw.recall.evidence import NO_EVIDENCE
from discoclaw.recall.ranked import Ranked
from discoclaw.recall.vectors import fuse, outstanding

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
"""With this share of the best's score by words, and a cosine by no more than this below its own, a tie."""

Found = dict[str, Ranked]
"""What was found so far, by the item's id."""


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

    What was said at once is about one thing, but that alone is no evidence.
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

"""Cosines of vectors, and how they are combined with the words into one score. Pure."""

import math
from collections.abc import Mapping, Sequence

from discoclaw.core.cosines import Cosines

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

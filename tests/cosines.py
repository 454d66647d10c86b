"""The cosine of two vectors as it is defined, to compare with what is computed faster."""

import math
from collections.abc import Sequence


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine, -1 to 1; squares of large numbers don't overflow."""
    length, other_length = math.hypot(*one), math.hypot(*other)
    return sum((x / length) * (y / other_length) for x, y in zip(one, other, strict=True))

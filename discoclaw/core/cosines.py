"""The cosines of one question and many items, with what ranking needs to know about all of them. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

NEAREST = 50
"""The most ids in `Cosines.nearest`."""


@dataclass(frozen=True, slots=True, eq=False)
class Cosines(Mapping[str, float]):
    """Cosines by item id. `nearest` are the ids of the highest ones, best first.

    A number is looked up when it is asked for. `low`, `high`, `mean` and `spread` (the standard deviation)
    are computed once: going through ten thousand numbers costs more than comparing their vectors does.
    """

    places: Mapping[str, int]
    numbers: Sequence[float]
    nearest: Sequence[str]
    low: float
    high: float
    mean: float
    spread: float

    @classmethod
    def of(cls, cosines: Mapping[str, float]) -> "Cosines":
        """The cosines themselves, if they are of this class already."""
        if isinstance(cosines, cls):
            return cosines
        places = {key: place for place, key in enumerate(cosines)}
        numbers = list(cosines.values())
        if not numbers:
            return cls({}, (), (), 0.0, 0.0, 0.0, 0.0)
        nearest = sorted(cosines, key=lambda key: (-cosines[key], key))[:NEAREST]
        mean = fmean(numbers)
        spread = math.sqrt(fmean((number - mean) ** 2 for number in numbers))
        return cls(places, numbers, nearest, min(numbers), max(numbers), mean, spread)

    def __getitem__(self, key: str) -> float:
        return self.numbers[self.places[key]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


NO_COSINES = Cosines.of({})

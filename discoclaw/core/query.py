"""A question as memory looks it up, and what is known of items for it beside their words. Values.

`recall/document` parses a question, once; every step that needs it is handed it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from discoclaw.core.values import dataclass, field


class Topic(NamedTuple):
    """The terms and dates of one topic of a message; words of different ones don't ask for one thing.

    `asks`: it is asked about, and not just mentioned. `account`: an account is asked for ("how was Greece?"),
    which takes several memories, where a question for a name or a number takes one.
    """

    terms: frozenset[str]
    asks: bool = False
    account: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed message, or any text that memory is searched for.

    `terms` are those of the text, each once, in order; `dates` the date terms it names. `forms` has the forms
    of a term in other languages, which are tried if no item contains it: a short question doesn't tell its
    language for sure. `wanted` are all of these. `names` are what is written as names, each as its terms.
    `everything`: the person asks for all that is remembered about them. `bare`: there are no function
    words. `compounds`: its language writes compounds as one word.
    """

    terms: tuple[str, ...] = ()
    dates: frozenset[str] = frozenset()
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()
    names: tuple[frozenset[str], ...] = ()
    everything: bool = False
    topics: tuple[Topic, ...] = ()
    bare: bool = False
    compounds: bool = False


# ----------------------------------------------------------------------
# The cosines of one question and many items, with what ranking needs to know about all of them.


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

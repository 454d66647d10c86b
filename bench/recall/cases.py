"""Cases from frames, about names, weak clues, replaced facts, messages that ask for nothing, and standing
preferences; and cases of people, written by hand.

`cases("names", "develop")` are for developing a ranker. The part "final" is run once, at the end. The parts
have no frame, and hardly any vocabulary, in common.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from bench.recall import cases_people
from bench.recall.cases_asked import clues, names, replaced
from bench.recall.cases_unasked import nothing, preferences
from bench.recall.cases_values import PARTS, Case, Part, numbered

MAKERS: Mapping[str, Callable[[Part], Iterator[Case]]] = MappingProxyType(
    {
        "names": names,
        "clues": clues,
        "replaced": replaced,
        "nothing": nothing,
        "preferences": preferences,
        **cases_people.MAKERS,
    }
)
KINDS = tuple(MAKERS)
OF_PEOPLE = cases_people.KINDS
FRAMED = tuple(kind for kind in KINDS if kind not in OF_PEOPLE)
"""The kinds that are made from frames."""


@cache
def cases(kind: str, part: Part) -> Sequence[Case]:
    """The cases of a kind that belong to a part. Raises KeyError for an unknown kind or part."""
    if part not in PARTS:
        raise KeyError(part)
    return numbered(kind, part, MAKERS[kind](part))

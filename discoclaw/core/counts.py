"""Counts made while the bot works: messages, answers and how long they took. Pure: times are given.

Counting is adding to a number in RAM; whoever wants to know reads it. Every label comes from a list that is
written down in the program, so none names anybody.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from discoclaw.core import errors

Ended: TypeAlias = Literal["whole", "cut", "stopped", "interview"]
"""How an answer ended: the model's end, at its length limit, by its person, or as a step of an interview."""
Why: TypeAlias = Literal["busy", "late", "empty", "closing", "bug"]
"""Why there was none, if it wasn't our error: the queue was full, the question too old when it was read,
the model said nothing, the bot was stopped, or something unforeseen failed."""

SECONDS: Final = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""The upper bounds of what answers are sorted into: people notice a second, and give up after a minute."""


class Histogram:
    """Values sorted into ranges. `bounds` are the upper ends, the last range has none."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self._counts)

    def up_to(self) -> Iterator[tuple[float, int]]:
        """Each bound, the last one infinite, with the number of values up to it."""
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), self._counts, strict=True):
            total += count
            yield bound, total


@dataclass(slots=True)
class Counts:
    """The counts of one process since it started.

    `heard` are people's messages in channels that the bot listens to, `asked` those of them that are to be
    answered. `shown` is the time (s) from a message to the first that is shown of its answer, `told` to the
    answer's end. `unanswered` is by the name of one of our errors, or `Why`.
    """

    heard: int = 0
    asked: int = 0
    commits: int = 0
    answers: Counter[Ended] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)
    shown: Histogram = field(default_factory=Histogram)
    told: Histogram = field(default_factory=Histogram)


class Asked:
    """One message that waits for its answer, since a time (s)."""

    def __init__(self, counts: Counts, now_s: float) -> None:
        counts.asked += 1
        self._counts = counts
        self._since = now_s
        self._shown: float | None = None

    def shown(self, now_s: float) -> None:
        """Something of the answer is shown."""
        if self._shown is None:
            self._shown = now_s

    def answered(self, how: Ended, now_s: float) -> None:
        """The answer has ended."""
        self._counts.answers[how] += 1
        self._counts.told.add(now_s - self._since)
        if self._shown is not None:
            self._counts.shown.add(self._shown - self._since)

    def unanswered(self, why: BaseException | Why) -> None:
        """There is no answer."""
        self._counts.unanswered[why if isinstance(why, str) else kind_of(why)] += 1


def kind_of(error: BaseException) -> str:
    """The name of our error that an exception is one of: there are as many as `core/errors` has."""
    ours = (one for one in type(error).__mro__ if one.__module__ == errors.__name__)
    return next((one.__name__ for one in ours), "bug")

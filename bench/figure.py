"""One measured figure, and how times become one. Knows nothing about what is measured.

A time alone says more about the machine than about the program. So each figure stands beside a baseline that
was measured in the same run, in turns with it where the two can take turns, and what counts is their ratio.
"""

import gc
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`ours` beside `baseline`, both in `unit`.

    `paired` is the median of the ratios of pairs that were measured one right after the other; without it the
    ratio is that of the two numbers. `target` is in words, and `met` whether it holds in this run; both are
    empty when nothing is aimed at.
    """

    name: str
    ours: float
    baseline: float
    unit: str
    beside: str
    target: str = ""
    met: bool | None = None
    paired: float | None = None

    @property
    def ratio(self) -> float:
        if self.paired is not None:
            return self.paired
        return self.ours / self.baseline if self.baseline else float("inf")

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "ours": self.ours,
            "baseline": self.baseline,
            "unit": self.unit,
            "beside": self.beside,
            "ratio": self.ratio,
            "target": self.target,
            "met": self.met,
        }


def median(times: Sequence[float]) -> float:
    return statistics.median(times)


def p95(times: Sequence[float]) -> float:
    """The time that one in twenty is above."""
    return sorted(times)[int(len(times) * 0.95)]


def p99(times: Sequence[float]) -> float:
    """The time that one in a hundred is above."""
    return sorted(times)[int(len(times) * 0.99)]


@contextmanager
def without_garbage() -> Iterator[None]:
    """What setting up left behind is collected now, and not in somebody's measured time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()

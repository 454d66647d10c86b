"""How well a ranking does on cases: shares in 0…1, None where no case says anything about a figure. Pure.

Which figures matter depends on the kind: names and preferences need `recall` and `precision`, clues also
`leading`, replaced facts `newest_first` and `recall`, and messages that ask for nothing `empty`. Questions
that nothing answers have `lines` and `in_vain`, which are counts.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.recall.cases_values import Case

MOST = 12
"""How many of the found items count for recall."""


@dataclass(frozen=True, slots=True)
class Found:
    """A case, and the ids that a ranking returned for it, best first."""

    case: Case
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Many cases in figures. `count` is the number of cases."""

    count: int
    recall: float | None
    precision: float | None
    leading: float | None
    newest_first: float | None
    empty: float | None
    lines: float | None
    in_vain: float | None


def recall(found: Found, most: int = MOST) -> float | None:
    """The share of the items to find that are among the best `most`; None if there are none to find."""
    must = found.case.must
    return len(must.intersection(found.ids[:most])) / len(must) if must else None


def precision(found: Found) -> float | None:
    """The share of what came back that belongs there; tolerated items count neither way.

    None if there is nothing to find, 0 if nothing that counts came back.
    """
    if not found.case.must:
        return None
    right = len(found.case.must.intersection(found.ids))
    counted = right + len(found.case.must_not.intersection(found.ids))
    return right / counted if counted else 0.0


def leading(found: Found) -> float | None:
    """1 if an item to find comes before every item that doesn't belong there, else 0; None without any."""
    case = found.case
    if not case.must:
        return None
    counted = (one for one in found.ids if one in case.must or one in case.must_not)
    return float(next(counted, None) in case.must)


def newest_first(found: Found) -> float | None:
    """1 if the item that has to come first does, else 0; None if the case has no such item."""
    if found.case.first is None:
        return None
    return float(found.ids[:1] == (found.case.first,))


def empty(found: Found) -> float | None:
    """1 if nothing came back, else 0; None for a case that has something to find."""
    return None if found.case.must else float(not found.ids)


def lines(found: Found) -> float | None:
    """How many items came back; None for a case that has something to find."""
    return None if found.case.must else float(len(found.ids))


def in_vain(found: Found) -> float | None:
    """How many of those don't belong there; None for a case that has something to find."""
    return None if found.case.must else float(len(found.case.must_not.intersection(found.ids)))


def figures(answers: Sequence[Found]) -> Figures:
    """The means over all cases that say something about a figure."""
    return Figures(
        count=len(answers),
        recall=_mean(recall(one) for one in answers),
        precision=_mean(precision(one) for one in answers),
        leading=_mean(leading(one) for one in answers),
        newest_first=_mean(newest_first(one) for one in answers),
        empty=_mean(empty(one) for one in answers),
        lines=_mean(lines(one) for one in answers),
        in_vain=_mean(in_vain(one) for one in answers),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    some = [value for value in values if value is not None]
    return statistics.fmean(some) if some else None

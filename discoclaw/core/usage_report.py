"""Sums of calls of models: by person, channel, server, purpose, model and day. Pure.

    report = Report.of(calls, zone)
    report.total                          everything
    report.by("purpose")                  groups, dearest first; together they are the total exactly
    report.by("day", days)                each of these days, also those without a call
    report.within(days)                   a part of it, which is a report as well

Knows nothing about where calls are written down, and about names of people and channels.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cached_property
from typing import Final, Literal, TypeAlias

from discoclaw.core.model import Usage
from discoclaw.core.usage import Call, dollars
from discoclaw.core.zones import local

By: TypeAlias = Literal["person", "channel", "server", "purpose", "model", "day"]
DAYS_SHOWN: Final = 30
PURPOSES: Final[Mapping[str, str]] = {
    "answer": "answers",
    "extraction": "learning",
    "summary": "summaries",
    "tidying": "tidying",
    "suggestion": "suggestions",
    "title": "thread names",
    "transcription": "voice messages",
    "embedding": "embeddings",
}
"""People's word for each purpose, in the order in which a picture stacks them."""


@dataclass(frozen=True, slots=True)
class Total:
    """A sum of calls: how many, what they used, and what they cost in nanodollars.

    `estimated`: calls whose tokens no server counted. `guessed`: calls of models whose price isn't known.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    nano: int = 0
    estimated: int = 0
    guessed: int = 0

    @classmethod
    def of(cls, call: Call) -> "Total":
        """One call. One that was allowed and never made counts for nothing."""
        made = call.requests > 0
        return cls(
            int(made), call.usage, call.nano, int(made and not call.counted), int(made and not call.priced)
        )

    def __add__(self, other: "Total") -> "Total":
        return Total(
            self.calls + other.calls,
            self.usage + other.usage,
            self.nano + other.nano,
            self.estimated + other.estimated,
            self.guessed + other.guessed,
        )

    def __bool__(self) -> bool:
        return self != NOTHING

    @property
    def tokens(self) -> int:
        """All tokens: those that models read, from a cache or not, and those that they wrote."""
        return self.usage.prompt_tokens + self.usage.output_tokens


NOTHING: Final = Total()


@dataclass(frozen=True, slots=True)
class Days:
    """The days from the first to the last, both included."""

    first: date
    last: date

    def begin(self, zone: tzinfo = UTC) -> int:
        """When (ms since 1970) the first day begins in a time zone."""
        return int(datetime.combine(self.first, time(), zone).timestamp() * 1000)

    def __iter__(self) -> Iterator[str]:
        """Yield each day: `2026-11-25`."""
        for number in range((self.last - self.first).days + 1):
            yield (self.first + timedelta(days=number)).isoformat()

    def __contains__(self, day: str) -> bool:
        return self.first.isoformat() <= day <= self.last.isoformat()


def last_days(now_ms: int, zone: tzinfo = UTC, number: int = DAYS_SHOWN) -> Days:
    """Today and the days before it, `number` in all."""
    today = local(now_ms, zone).date()
    return Days(today - timedelta(days=number - 1), today)


def this_month(now_ms: int, zone: tzinfo = UTC) -> Days:
    """The days of the month up to today."""
    today = local(now_ms, zone).date()
    return Days(today.replace(day=1), today)


@dataclass(frozen=True, slots=True)
class Cell:
    """The calls that have all of this in common. An id is None where a call has none; `day` is ISO's."""

    person: str | None
    channel: str | None
    server: str | None
    purpose: str
    model: str
    day: str
    total: Total


@dataclass(frozen=True, slots=True)
class Group:
    """The calls with one key: an id of Discord (None where a call has none), a purpose, a model or a day."""

    key: str | None
    total: Total


@dataclass(frozen=True)
class Report:
    """Sums of calls. There are far fewer cells than calls, so a report is quick to divide."""

    cells: tuple[Cell, ...] = ()

    @classmethod
    def of(cls, calls: Iterable[Call], zone: tzinfo = UTC) -> "Report":
        """A report of calls; each belongs to the day in `zone` on which it began."""
        sums: dict[tuple[str | None, str | None, str | None, str, str, str], Total] = {}
        for call in calls:
            if not (total := Total.of(call)):
                continue
            payer, day = call.payer, local(call.at, zone).date().isoformat()
            key = (payer.user, payer.channel, payer.server, call.purpose, call.model, day)
            sums[key] = sums[key] + total if key in sums else total
        return cls(tuple(Cell(*key, total) for key, total in sums.items()))

    @cached_property
    def total(self) -> Total:
        """Everything together."""
        return sum((cell.total for cell in self.cells), NOTHING)

    def by(self, what: By, days: Days | None = None) -> tuple[Group, ...]:
        """The groups, dearest first, those that cost the same by tokens; days in their order.

        With `days`, each of these is there, also if nothing was called on it.
        """
        sums: dict[str | None, Total] = dict.fromkeys(days, NOTHING) if what == "day" and days else {}
        for cell in self.cells:
            key: str | None = getattr(cell, what)
            sums[key] = sums.get(key, NOTHING) + cell.total
        groups = (Group(key, total) for key, total in sums.items())
        if what == "day":
            return tuple(sorted(groups, key=lambda one: one.key or ""))
        return tuple(sorted(groups, key=lambda one: (*_dearest(one.total), one.key or "")))

    def daily(self, days: Days) -> Mapping[str, Mapping[str, Total]]:
        """The sums of each of these days, by purpose."""
        sums: dict[str, dict[str, Total]] = {day: {} for day in days}
        for cell in self.cells:
            if (one := sums.get(cell.day)) is not None:
                one[cell.purpose] = one.get(cell.purpose, NOTHING) + cell.total
        return sums

    def within(self, days: Days) -> "Report":
        """The calls of these days."""
        return Report(tuple(cell for cell in self.cells if cell.day in days))


def _dearest(total: Total) -> tuple[int, int, int]:
    return -total.nano, -total.tokens, -total.calls


# ---------------------------------------------------------------------- as text


def money(nano: int) -> str:
    """A cost as text: `$3.40`, or `free`."""
    return dollars(nano) if nano else "free"


def amount(number: int) -> str:
    """A number of tokens as text: `950`, `12.4k`, `310M`."""
    if number < 1000:
        return str(number)
    part, letter = number / 1e3, "k"
    for larger in "MB":
        if part >= 999.5:  # which would be rounded up to 1000
            part, letter = part / 1e3, larger
    return f"{part:,.1f}{letter}" if part < 99.95 else f"{part:,.0f}{letter}"

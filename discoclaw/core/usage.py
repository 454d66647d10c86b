"""The use of models: whom a call is for, what it took and cost, the records of it, and their sums.

    Payer     the person, channel and server that a call is for
    Call      one call that has ended: purpose, model, tokens, cost. A line of the usage log
    Hold      what a call may cost at most, put aside before it begins. Its `Call` has the same id

Who asks a model says for whom (`paid_by`), and an adapter says what the server counted (`used`). Both travel
with the task, like a database's transaction, because every step in between would otherwise carry both and
use neither. Money is in nanodollars: a token costs a whole number of them, so sums are exact.
Knows nothing about limits, where prices come from, where records are kept, and names of people.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args

from discoclaw.core.message import Inbound
from discoclaw.core.model import Purpose, Usage, split
from discoclaw.core.times import valid_ms
from discoclaw.core.values import dataclass, field, replace
from discoclaw.core.zones import local

For: TypeAlias = Purpose | Literal["transcription", "embedding"]
"""The purpose of a call."""
DOLLAR: Final = 1_000_000_000
"""Nanodollars of one dollar."""
MOST_COST: Final = 1_000_000 * DOLLAR
"""The most that a line may say. A larger number is damage, and would block every budget."""

CHARS_A_TOKEN: Final = 4
"""The usual estimate for English, where a server doesn't count; other scripts take more tokens."""

_WHO: Final = ("user", "channel", "server")
_SNOWFLAKE = re.compile(r"[0-9]{1,25}")
_PURPOSES: Final = frozenset(one for part in get_args(For) for one in (get_args(part) or (part,)))


def dollars(nano: int) -> str:
    """Nanodollars as text: `$3.40`, `$0.0012`. Below ten cents it has two digits that count."""
    amount = Decimal(nano) / DOLLAR
    if 0 < amount < Decimal("0.00001"):
        return "under $0.00001"
    # The exponent of the first digit that isn't 0: -3 in 0.0012, which needs four places.
    places = max(2, 1 - amount.adjusted())
    whole, _, part = f"{amount:,.{places}f}".partition(".")
    return f"${whole}.{part.rstrip('0'):0<2}"


@dataclass(frozen=True, slots=True)
class Payer:
    """Whom a call is for: ids of Discord, None where there is no such thing or it may not be kept.

    `channel` is the channel whose rules apply, so a thread counts as its channel; None in direct messages.
    `said_at`: when (ms) they said what the call is about, by which to find out whether that was erased since;
    None for a call that is about nothing they said.
    """

    user: str | None = None
    channel: str | None = None
    server: str | None = None
    said_at: int | None = field(default=None, compare=False)

    @classmethod
    def of(cls, message: Inbound) -> "Payer":
        """The payer of the answer to a message."""
        place = message.place
        return cls(message.author.id, place.group_id, place.guild_id, message.sent_at)

    def without(self, user_id: str) -> "Payer":
        """This payer, without the person if it is this one."""
        return replace(self, user=None) if self.user == user_id else self

    def as_of(self, at: int) -> int:
        """When (ms) that was said which a call at `at` is about."""
        return at if self.said_at is None else self.said_at


NOBODY: Final = Payer()
"""The bot itself."""


@dataclass(frozen=True, slots=True)
class Hold:
    """At most this much (`nano`) will be spent by the call `id`, which begins at `at` (ms)."""

    id: str
    at: int
    nano: int
    payer: Payer = NOBODY

    def to_json(self) -> dict[str, Any]:
        """The hold as a line of the log."""
        return {"id": self.id, "at": self.at, "hold": self.nano, **_payer_json(self.payer)}


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has ended. It counts for the time `at` (ms) when it began, and cost `nano`.

    `requests`: how often the server was asked. `counted`: the server counted the tokens; else they are
    estimated. `priced`: the model's price is known; else `nano` was reckoned with a guess.
    """

    id: str
    at: int
    purpose: str
    model: str
    usage: Usage
    nano: int = 0
    payer: Payer = NOBODY
    requests: int = 1
    counted: bool = True
    priced: bool = True

    def to_json(self) -> dict[str, Any]:
        """The call as a line of the log. What is 0 or as usual is left out."""
        used = {name: count for name in Usage.__slots__ if (count := getattr(self.usage, name))}
        more = {"requests": self.requests} if self.requests != 1 else {}
        flags = {name: False for name in ("counted", "priced") if not getattr(self, name)}
        return {
            "id": self.id,
            "at": self.at,
            "for": self.purpose,
            "model": self.model,
            **used,
            "nano": self.nano,
            **more,
            **flags,
            **_payer_json(self.payer),
        }


Record: TypeAlias = Call | Hold


def record_of(value: object) -> Record | None:
    """The record in a decoded line of the log, or None if it is invalid. Unknown fields are ignored."""
    if not isinstance(value, Mapping):
        return None
    given: Mapping[str, Any] = value
    id, at = given.get("id"), given.get("at")
    if not (isinstance(id, str) and 0 < len(id) <= 40 and valid_ms(at)):
        return None
    payer = Payer(_id(given.get("user")), _id(given.get("channel")), _id(given.get("server")))
    if "hold" in given:
        return Hold(id, at, given["hold"], payer) if _count(given["hold"]) else None
    counts = {name: given.get(name, 0) for name in Usage.__slots__}
    model, purpose, requests = given.get("model"), given.get("for"), given.get("requests", 1)
    if not (isinstance(model, str) and len(model) <= 200 and purpose in _PURPOSES):
        return None
    if not all(map(_count, (*counts.values(), given.get("nano"), requests))):
        return None
    counted, priced = given.get("counted") is not False, given.get("priced") is not False
    return Call(id, at, str(purpose), model, Usage(**counts), given["nano"], payer, requests, counted, priced)


def _payer_json(payer: Payer) -> dict[str, str]:
    return {name: one for name in _WHO if (one := getattr(payer, name)) is not None}


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and _SNOWFLAKE.fullmatch(value) else None


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COST


# ---------------------------------------------------------------------- what travels with a task


@dataclass(slots=True)
class Tally:
    """Counts of servers while one call was made: for each of their answers the model and its usage.

    `whole`: all of them counted to the end. Whoever stops an answer, or loses it, doesn't learn how many
    tokens the server had written; the adapter has estimated them then.
    """

    used: list[tuple[str, Usage]] = field(default_factory=list)
    whole: bool = True

    @property
    def total(self) -> Usage:
        """The sum of all counts."""
        return sum((usage for _, usage in self.used), Usage())


_PAYER: ContextVar[Payer] = ContextVar("payer", default=NOBODY)
_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def paid_by(payer: Payer) -> Iterator[None]:
    """Let calls of models inside this block be paid by `payer`."""
    token = _PAYER.set(payer)
    try:
        yield
    finally:
        _PAYER.reset(token)


def payer() -> Payer:
    """Whom a call that is made now is for."""
    return _PAYER.get()


@contextmanager
def counted_in(tally: Tally) -> Iterator[None]:
    """Add to `tally` all that servers count inside this block."""
    token = _TALLY.set(tally)
    try:
        yield
    finally:
        _TALLY.reset(token)


def used(model: str, usage: Usage, *, whole: bool = True) -> None:
    """Say what a server counted for an answer. Called by adapters, for each answer once.

    Not `whole`: the answer broke off, and the tokens of what came of it are an estimate.
    """
    if (tally := _TALLY.get()) is not None:
        tally.used.append((model, usage))
        tally.whole = tally.whole and whole


# ----------------------------------------------------------------------
# Prices of calls of models.
#
# A table has a price for each model, by the beginning of its name, so that a dated snapshot costs what its
# model costs. A row may name the provider too (`openai:gpt-5`), or go for every provider's model of that
# name.


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in nanodollars: of a token of each kind, of a search, of a second of sound.

    Prompts of more than `long_from` tokens cost `long_times` as much, input and output alike.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    search: int = 0
    second: int = 0
    long_from: int = 0
    long_times: int = 1

    def cost(self, usage: Usage) -> int:
        """The cost of a request, in nanodollars."""
        tokens = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
        )
        times = self.long_times if self.long_from and usage.prompt_tokens > self.long_from else 1
        return tokens * times + usage.searches * self.search + usage.seconds * self.second

    def most(self, prompt: int, output: int) -> int:
        """The most that a request of so many tokens costs: all of its prompt may be written to a cache."""
        dear = self.cache_write > self.input
        return self.cost(Usage(0 if dear else prompt, output, cache_write_tokens=prompt if dear else 0))


FREE: Final = Price()


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of models. `free`: whoever runs the models runs them here, so they cost nothing.

    `free_at` are the providers of whose models that holds, for names that begin with one. `own` are the names
    in `table` whose prices an admin gave. They win over that, as some local servers pass calls on to a
    provider that costs money, and over the other names.
    """

    table: Mapping[str, Price]
    own: frozenset[str] = frozenset()
    free: bool = False
    free_at: frozenset[str] = frozenset()

    def costs_nothing(self, model: str) -> bool:
        """Whether a model runs here, and no admin gave a price for it."""
        return self.of(model) == (FREE, True)

    def of(self, model: str) -> tuple[Price, bool]:
        """A model's price, and whether it is known. An unknown one is taken to cost the most of all."""
        provider, plain = split(model)
        free = provider in self.free_at if provider else self.free
        for names in (self.own, () if free else self.table):  # an admin's row wins, however short
            fitting = [name for name in names if model.startswith(name) or plain.startswith(name)]
            if fitting:
                return self.table[max(fitting, key=len)], True
        return (FREE, True) if free else (self.dearest, False)

    @property
    def dearest(self) -> Price:
        """The price of a model that has none here: too much is safer for a budget than nothing."""
        return max(self.table.values(), key=lambda one: (one.output, one.input), default=FREE)


# ----------------------------------------------------------------------
# Sums of calls of models: by person, channel, server, purpose, model and day: `Report`.


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

        def dearest(one: Group) -> tuple[int, int, int, str]:
            return -one.total.nano, -one.total.tokens, -one.total.calls, one.key or ""

        return tuple(sorted(groups, key=dearest))

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


@dataclass(frozen=True, slots=True)
class Lately:
    """The use of models: today, in this month, and in the last thirty `days`, of which is the `report`."""

    days: Days
    today: Total
    month: Total
    report: Report

    @classmethod
    def of(cls, calls: Iterable[Call], now_ms: int, zone: tzinfo) -> "Lately":
        """Add calls up, which have to be all since `begin`."""
        days, report = last_days(now_ms, zone), Report.of(calls, zone)
        today, month = Days(days.last, days.last), this_month(now_ms, zone)
        return cls(days, report.within(today).total, report.within(month).total, report.within(days))

    @staticmethod
    def begin(now_ms: int, zone: tzinfo) -> int:
        """When (ms since 1970) the first of these days begins."""
        return min(last_days(now_ms, zone).begin(zone), this_month(now_ms, zone).begin(zone))


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

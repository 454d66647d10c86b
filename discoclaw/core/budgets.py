"""How much may be spent, and what happens on the way there. Pure: no clock, no disk.

A `Limit` is an amount for a period: of everything, or of each server, channel or person. On the way to it:

    60 %    background work slows down: it goes on only while spending is not ahead of the period's time
    80 %    the small model answers
    100 %   memory alone answers (the offline model), without a language model

What a call may cost is put aside before it begins and counts as spent until the call has ended. A call begins
only below the limit. So however many run side by side, they go over it by what was put aside for one of them
at most, and a call that was killed has spent what was put aside for it. A limit that is set below what is
spent already holds from then on.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Final, Literal, Protocol, TypeAlias, get_args

Scope: TypeAlias = Literal["all", "server", "channel", "person"]
Period: TypeAlias = Literal["day", "month"]
Level: TypeAlias = Literal["usual", "small", "offline"]

SLOW_FROM, SMALL_FROM = 60, 80
"""Percent of a limit from which background work slows down, and from which the small model answers."""
BACK_MS: Final = 2 * 86_400_000
"""A clock that was set back by less than this opens no period again. Further back, it was wrong before."""

_NANO: Final = 1_000_000_000
_LIMIT = re.compile(r"(?:(all|server|channel|person)\s+)?\$?(\d{1,6}(?:\.\d{1,6})?)\s*/\s*(day|month)")


class Spender(Protocol):
    """Whom a call is for; see `core/usage.Payer`."""

    @property
    def user(self) -> str | None: ...
    @property
    def channel(self) -> str | None: ...
    @property
    def server(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `nano` (nanodollars) in each `period`, for everything or for each of a kind."""

    scope: Scope
    period: Period
    nano: int

    def whose(self, payer: Spender) -> str | None:
        """The id that a call counts for under this limit; None if it doesn't."""
        if self.scope == "all":
            return ""
        return {"server": payer.server, "channel": payer.channel, "person": payer.user}[self.scope]


def limits_of(text: str) -> tuple[Limit, ...]:
    """The limits in a text such as `5/day, 60/month, person 0.50/day`; dollars. Raises ValueError.

    One without a kind is for everything together.
    """
    limits: dict[tuple[str, str], Limit] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        found = _LIMIT.fullmatch(part.lower())
        if found is None:
            raise ValueError(f"“{part}” is no budget; write for example 5/day, 60/month, person 0.50/day")
        scope: Scope = next(one for one in get_args(Scope) if one == (found[1] or "all"))
        period: Period = "day" if found[3] == "day" else "month"
        if (scope, period) in limits:
            raise ValueError(f"“{part}”: there is another budget for the same")
        limits[scope, period] = Limit(scope, period, int(Decimal(found[2]) * _NANO))
    return tuple(limits.values())


@dataclass(frozen=True, slots=True)
class Span:
    """One day or month in a time zone: its name (`2026-11-23`, `2026-11`), begin and end (ms)."""

    name: str
    begin: int
    end: int

    @classmethod
    def at(cls, time_ms: int, period: Period, zone: tzinfo = UTC) -> "Span":
        """The period that a time is in."""
        day = datetime.fromtimestamp(time_ms / 1000, zone).replace(hour=0, minute=0, second=0, microsecond=0)
        begin = day if period == "day" else day.replace(day=1)
        following = begin + timedelta(days=1 if period == "day" else 32)
        end = following if period == "day" else following.replace(day=1)
        # Wall times: a day in which the clock changes has 23 or 25 hours, and its midnight is still its end.
        begins, ends = (int(one.replace(fold=0).timestamp() * 1000) for one in (begin, end))
        return cls(f"{begin:%Y-%m-%d}" if period == "day" else f"{begin:%Y-%m}", begins, ends)


@dataclass(frozen=True, slots=True)
class Less:
    """Why an answer is not from the usual model: a budget, and until when (ms)."""

    level: Level
    scope: Scope
    period: Period
    until: int


@dataclass(frozen=True, slots=True)
class Wish:
    """A model that could make a call, and what (nanodollars) is put aside for it; 0 if it is free."""

    level: Level
    model: str
    nano: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The model that makes a call: None if no budget has room for one. `less` if it isn't the usual one."""

    wish: Wish | None
    less: Less | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What is spent under a limit in its present period, what was put aside included."""

    limit: Limit
    whose: str
    nano: int
    until: int

    @property
    def percent(self) -> int:
        """How much of the limit that is, in percent."""
        return self.nano * 100 // self.limit.nano if self.limit.nano else 100


@dataclass(slots=True)
class _Sum:
    span: Span
    nano: int = 0


class Book:
    """The sums that limits look at: what was spent and put aside in the periods that last still.

    Times are given, and never go back within `BACK_MS`.
    """

    def __init__(self, limits: Collection[Limit] = (), zone: tzinfo = UTC) -> None:
        self.limits = tuple(limits)
        self._zone = zone
        self._sums: dict[tuple[Limit, str], _Sum] = {}
        self._spans: dict[Period, Span] = {}
        self._holds: dict[str, tuple[int, int, Spender]] = {}
        self._newest = 0

    def time(self, now_ms: int) -> int:
        """The time that counts: not before anything that was counted, unless the clock was far ahead."""
        if now_ms >= self._newest or self._newest - now_ms > BACK_MS:
            self._newest = now_ms
        return self._newest

    def hold(self, id: str, at: int, nano: int, payer: Spender) -> None:
        """Put the most aside that the call `id` may cost."""
        if id not in self._holds:
            self._holds[id] = (at, nano, payer)
            self._add(at, nano, payer)

    def spend(self, id: str, at: int, nano: int, payer: Spender) -> None:
        """Count what the call `id` has cost; what was put aside for it is free again."""
        if (held := self._holds.pop(id, None)) is not None:
            began, put_aside, whose = held
            self._add(began, -put_aside, whose)
        self._add(at, nano, payer)

    def forget(self, user_id: str) -> None:
        """Drop what counts for a person. It still counts for everything, servers and channels."""
        for key in [one for one in self._sums if one[0].scope == "person" and one[1] == user_id]:
            del self._sums[key]

    def all_spent(self, now_ms: int) -> list[Spent]:
        """What is spent under each limit, for each of its kind, in the present periods."""
        at = self.time(now_ms)
        found = [self._spent(limit, whose, at) for limit, whose in self._sums]
        return [one for one in found if one.nano]

    def spent(self, payer: Spender, now_ms: int) -> list[Spent]:
        """What is spent under each limit that a call for `payer` would count for."""
        at = self.time(now_ms)
        whose = ((limit, limit.whose(payer)) for limit in self.limits)
        return [self._spent(limit, one, at) for limit, one in whose if one is not None]

    def choose(self, wishes: Sequence[Wish], payer: Spender, now_ms: int) -> Choice:
        """The first model, dearest first, that every limit has room for."""
        sums = self.spent(payer, now_ms)
        less: Less | None = None
        for wish in wishes:
            against = [one for one in sums if wish.nano and _refuses(one, wish)]
            if not against:
                return Choice(wish, None if less is None else _at(less, wish.level))
            last = max(against, key=lambda one: one.until)
            less = Less("offline", last.limit.scope, last.limit.period, last.until)
        return Choice(None, less)

    def background(self, wish: Wish, payer: Spender, now_ms: int) -> Choice:
        """Whether background work may make a call now; if not, `less` says until when it has to wait."""
        at, waits = self.time(now_ms), list[Less]()
        for one in self.spent(payer, now_ms):
            if not wish.nano or (until := self._too_soon(one, at)) is None:
                continue
            waits.append(Less("offline", one.limit.scope, one.limit.period, until))
        if waits:
            return Choice(None, max(waits, key=lambda one: one.until))
        return Choice(wish)

    # ------------------------------------------------------------------ inside

    def _too_soon(self, spent: Spent, at: int) -> int | None:
        """Until when (ms) background work has to wait under a limit; None if it need not."""
        if spent.percent >= 100:
            return spent.until
        if spent.percent < SLOW_FROM:
            return None
        span = self._span(spent.limit.period, at)
        ready = span.begin + (span.end - span.begin) * spent.nano // spent.limit.nano
        return min(ready, span.end) if ready > at else None

    def _add(self, at: int, nano: int, payer: Spender) -> None:
        self._newest = max(self._newest, at)
        for limit in self.limits:
            if (whose := limit.whose(payer)) is None:
                continue
            span, key = self._span(limit.period, at), (limit, whose)
            known = self._sums.get(key)
            if known is None or span.begin > known.span.begin:
                known = self._sums[key] = _Sum(span)
            if span == known.span:
                known.nano = max(0, known.nano + nano)

    def _spent(self, limit: Limit, whose: str, at: int) -> Spent:
        span, known = self._span(limit.period, at), self._sums.get((limit, whose))
        nano = known.nano if known is not None and known.span == span else 0
        return Spent(limit, whose, nano, span.end)

    def _span(self, period: Period, at: int) -> Span:
        known = self._spans.get(period)
        if known is None or not known.begin <= at < known.end:
            known = self._spans[period] = Span.at(at, period, self._zone)
        return known


def _refuses(spent: Spent, wish: Wish) -> bool:
    return spent.percent >= (SMALL_FROM if wish.level == "usual" else 100)


def _at(less: Less, level: Level) -> Less:
    return Less(level, less.scope, less.period, less.until)


def less_text(less: Less) -> str:
    """The sentence for a person who gets less than usual. The time is as Discord shows it to each reader."""
    whose = {"all": "my", "server": "this server's", "channel": "this channel's", "person": "your"}[
        less.scope
    ]
    when = "today" if less.period == "day" else "this month"
    back = f"<t:{less.until // 1000}:R>"
    if less.level == "small":
        return f"A smaller model answered: {whose} budget for {when} is nearly spent. Back to normal {back}."
    return f"Answered from memory alone: {whose} budget for {when} is spent. Back to normal {back}."


def most_pressing(spent: Iterable[Spent]) -> Spent | None:
    """The limit that is nearest to being spent; None if nothing is spent."""
    return max(spent, key=lambda one: one.percent, default=None)

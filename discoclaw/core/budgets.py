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

import hmac
import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Final, Literal, Protocol, TypeAlias, get_args

from discoclaw.core.values import dataclass, replace

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
            raise ValueError(f"“{part}” isn't a budget; write for example 5/day, 60/month, person 0.50/day")
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
    """Why an answer is not from the usual model, or why there is none: a budget, and until when (ms)."""

    level: Level
    scope: Scope
    period: Period
    until: int


@dataclass(frozen=True, slots=True)
class Wish:
    """A model that could make a call, and what (nanodollars) is put aside for it; 0 if it is free.

    It makes the call as long as less than `below` percent of each budget are spent.
    """

    level: Level
    model: str
    nano: int
    below: int = 100


@dataclass(frozen=True, slots=True)
class Choice:
    """The model that makes a call: None if no budget has room for one. `less` if it isn't the usual one."""

    wish: Wish | None
    less: Less | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """The sum under a limit in its present period `span`, what was put aside included."""

    limit: Limit
    whose: str
    nano: int
    span: Span

    @property
    def left(self) -> int:
        """What (nanodollars) is left of the limit."""
        return max(0, self.limit.nano - self.nano)

    @property
    def percent(self) -> int:
        """How much of the limit that is, in percent."""
        return self.nano * 100 // self.limit.nano if self.limit.nano else 100

    @property
    def until(self) -> int:
        """The end (ms) of the period."""
        return self.span.end

    def less(self, level: Level, until: int | None = None) -> Less:
        """The reason for an answer from another model."""
        return Less(level, self.limit.scope, self.limit.period, self.until if until is None else until)


_Key: TypeAlias = tuple[Limit, str, Span]
_MARK: Final = "~"
"""How the mark of an erased person begins, unlike any id."""


class Book:
    """The sums that limits look at: what was spent and put aside in each period.

    Times are given, and never go back within `BACK_MS`. What an erased person had spent counts on for them,
    under a mark that only `secret` connects with them: else erasing oneself would renew a budget.
    """

    def __init__(self, limits: Collection[Limit] = (), zone: tzinfo = UTC, secret: bytes = b"") -> None:
        self.limits = tuple(limits)
        self._zone = zone
        self._secret = secret
        self._unnamed: set[str] = set()
        self._sums: dict[_Key, int] = {}
        self._spans: dict[Period, Span] = {}
        self._holds: dict[str, tuple[int, list[_Key]]] = {}
        self._newest = 0

    def time(self, now_ms: int) -> int:
        """The time that counts: not before anything that was counted, unless the clock was far ahead."""
        if now_ms >= self._newest or self._newest - now_ms > BACK_MS:
            self._newest = now_ms
        return self._newest

    def begin(self, now_ms: int) -> int | None:
        """When (ms) the longest of the present periods began; None without limits."""
        return min((self._span(one.period, now_ms).begin for one in self.limits), default=None)

    def hold(self, id: str, at: int, nano: int, payer: Spender) -> None:
        """Put the most aside that the call `id` may cost."""
        if id not in self._holds:
            self._holds[id] = nano, self._add(at, nano, payer)

    def spend(self, id: str, at: int, nano: int, payer: Spender) -> None:
        """Count what the call `id` has cost; what was put aside for it is free again."""
        put_aside, keys = self._holds.pop(id, (0, ()))
        for key in keys:
            if key in self._sums:  # else the period is over
                self._sums[key] -= put_aside
        self._add(at, nano, payer)

    def forget(self, user_id: str) -> None:
        """Name a person no more. What counts for them goes on under their mark."""
        mark = self._mark(user_id)

        def marked(key: _Key) -> _Key:
            return (key[0], mark, key[2]) if key[0].scope == "person" and key[1] == user_id else key

        for key in [key for key in self._sums if marked(key) != key]:
            self._sums[marked(key)] = self._sums.get(marked(key), 0) + self._sums.pop(key)
        for id, (nano, keys) in self._holds.items():
            self._holds[id] = nano, [marked(key) for key in keys]
        self._unnamed.discard(user_id)

    def unnamed(self, user_id: str) -> None:
        """Note that what counts for a person is not written down as theirs; see `anew`."""
        self._unnamed.add(user_id)

    def anew(self, count: Callable[["Book"], None]) -> "Book":
        """A book for which `count` counts everything that is written down.

        It has from this one what no line says: what people spent who are named nowhere.
        """
        made = Book(self.limits, self._zone, self._secret)
        count(made)
        for key, nano in self._sums.items():
            whose = key[1]
            if key[0].scope == "person" and (whose in self._unnamed or key not in made._sums):
                made._sums[key] = max(nano, made._sums.get(key, 0))
        made._holds |= {id: hold for id, hold in self._holds.items() if id in made._holds}
        made._unnamed = self._unnamed
        return made

    def all_spent(self, now_ms: int) -> list[Spent]:
        """The sums under each limit, for each of its kind, in the present periods."""
        at = self.time(now_ms)
        present = {self._span(limit.period, at) for limit in self.limits}
        return [
            Spent(limit, whose, self._sum((limit, whose, span)), span)
            for (limit, whose, span), nano in self._sums.items()
            if nano and span in present and not whose.startswith(_MARK)
        ]

    def spent(self, payer: Spender, now_ms: int) -> list[Spent]:
        """The sums under each limit that a call for `payer` would count for."""
        at, found = self.time(now_ms), list[Spent]()
        for limit in self.limits:
            if (whose := limit.whose(payer)) is not None:
                span = self._span(limit.period, at)
                found.append(Spent(limit, whose, self._sum((limit, whose, span)), span))
        return found

    def choose(self, wishes: Sequence[Wish], payer: Spender, now_ms: int) -> Choice:
        """The first of these models that every limit has room for."""
        sums = self.spent(payer, now_ms)
        less: Less | None = None
        for wish in wishes:
            against = [one for one in sums if wish.nano and one.percent >= wish.below]
            if not against:
                return Choice(wish, less and replace(less, level=wish.level))
            less = max(against, key=lambda one: one.until).less("offline")
        return Choice(None, less)

    def background(self, wish: Wish, payer: Spender, now_ms: int) -> Choice:
        """Whether background work may make a call now; if not, `less` says until when it has to wait."""
        at, waits = self.time(now_ms), list[Less]()
        for one in self.spent(payer, now_ms):
            if wish.nano and (until := _ready(one)) > at:
                waits.append(one.less("offline", until))
        if waits:
            return Choice(None, max(waits, key=lambda one: one.until))
        return Choice(wish)

    # ------------------------------------------------------------------ inside

    def _sum(self, key: _Key) -> int:
        """The sum under a limit; for a person with what they had spent before they were erased."""
        limit, whose, span = key
        former = (limit, self._mark(whose), span) if limit.scope == "person" else None
        return self._sums.get(key, 0) + (self._sums.get(former, 0) if former is not None else 0)

    def _mark(self, user_id: str) -> str:
        return f"{_MARK}{hmac.digest(self._secret, user_id.encode(), 'sha256').hex()}"

    def _add(self, at: int, nano: int, payer: Spender) -> list[_Key]:
        """Add to the sums of a time. Returns their keys."""
        self._newest = max(self._newest, at)
        keys = list[_Key]()
        for limit in self.limits:
            if (whose := limit.whose(payer)) is None:
                continue
            key = limit, whose, self._span(limit.period, at)
            self._sums[key] = self._sums.get(key, 0) + nano
            keys.append(key)
        return keys

    def _span(self, period: Period, at: int) -> Span:
        known = self._spans.get(period)
        if known is None or not known.begin <= at < known.end:
            known = self._spans[period] = Span.at(at, period, self._zone)
            for over in [key for key in self._sums if key[2].end < self._newest - BACK_MS]:
                del self._sums[over]
        return known


def _ready(spent: Spent) -> int:
    """From when (ms) a limit lets background work go on: not before time has come as far as spending."""
    span = spent.span
    if spent.percent >= 100:
        return span.end
    if spent.percent < SLOW_FROM:
        return span.begin
    return span.begin + (span.end - span.begin) * spent.nano // spent.limit.nano


def less_text(less: Less) -> str:
    """The sentence for a person whose answer is not from the usual model, with a time of Discord's."""
    how = "A smaller model answered" if less.level == "small" else "Answered from memory alone"
    return f"{how}: {reason(less)}. Back to normal {_time(less)}."


def reason(less: Less) -> str:
    """Why the usual model doesn't answer: “my budget for today is spent”."""
    return f"{_whose(less)} is {'nearly ' if less.level == 'small' else ''}spent"


def refusal_text(less: Less, what: str = "do that", instead: str = "") -> str:
    """The sentence for a person who gets nothing. `instead` is what they can do, such as "write it, or "."""
    return f"I can't {what} now: {_whose(less)} doesn't allow it. Please {instead}try again {_time(less)}."


def _whose(less: Less) -> str:
    owners = {"all": "my", "server": "this server's", "channel": "this channel's", "person": "your"}
    return f"{owners[less.scope]} budget for {'today' if less.period == 'day' else 'this month'}"


def _time(less: Less) -> str:
    return f"<t:{-(-less.until // 1000)}:R>"

"""The use of models: whom a call is for, what it took, and the records of it.

    Payer     the person, channel and server that a call is for
    Call      one call that has ended: purpose, model, tokens, cost. A line of the usage log
    Hold      what a call may cost at most, put aside before it begins. Its `Call` has the same id

Who asks a model says for whom (`paid_by`), and an adapter says what the server counted (`used`). Both travel
with the task, like a database's transaction, because every step in between would otherwise carry both and
use neither. Money is in nanodollars: a token costs a whole number of them, so sums are exact.
Knows nothing about prices, about limits, and where records are kept.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, get_args

from discoclaw.core.message import Inbound
from discoclaw.core.model import Purpose, Usage
from discoclaw.core.times import valid_ms
from discoclaw.core.values import dataclass, field, replace

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

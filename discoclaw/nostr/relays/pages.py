"""The result of a fetch, and one page of it. Knows nothing about how pages are asked for."""

from collections import Counter
from dataclasses import dataclass, field

from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.check import CheckedBatch


@dataclass(slots=True)
class FetchResult:
    """The result of a fetch. `complete`: the relay has shown that there is nothing more.

    `reason` says why it isn't. `bad` counts dropped events: "garbage", "forged", "author", "kind", "filter",
    "oversize". `count` is the number of good events. They are in `events` unless a callback took them.
    """

    complete: bool = True
    reason: str = ""
    count: int = 0
    requests: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)

    def fail(self, reason: str) -> None:
        """Mark it as incomplete. The first reason is kept: later ones are often its consequences."""
        self.complete = False
        self.reason = self.reason or reason


@dataclass(slots=True)
class Page:
    """One answer. `total` counts everything in it, `rows` the good events, `fresh` those not seen before.

    `oldest` and `newest` are times in s.
    """

    total: int = 0
    rows: int = 0
    fresh: int = 0
    bad: int = 0
    oldest: int = 0
    newest: int = 0
    newest_first: bool = True
    ids: set[str] = field(default_factory=set)

    def add(self, checked: CheckedBatch) -> None:
        for time in checked.times:
            self.newest_first &= not self.rows or time <= self.oldest
            self.oldest = min(self.oldest, time) if self.rows else time
            self.newest = max(self.newest, time)
            self.rows += 1
        self.ids |= checked.ids
        self.fresh += len(checked.fresh)
        self.bad += checked.bad.total()
        self.total = self.rows + self.bad

"""The buffers between a connection, which never waits, and the readers of its events.

A `Request` is for stored events: it ends. A `Subscription` is for future events: it outlives connections.
Both hold only a bounded number of unread events.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.check import EventChecker
from discoclaw.nostr.relays.wire import Filter

log = logging.getLogger(__name__)

Handler = Callable[[Event], Awaitable[None]]

BATCH: Final = 256
"""Events that are checked at once: about a tenth of a second in a thread."""
_MAX_LIMITS: Final = 4
"""A request is stopped after this many times its limit: some relays ignore `limit`."""
_MAX_CHARACTERS: Final = 64 * 2**20
_MAX_UNREAD: Final = 5_000
_MAX_KNOWN: Final = 4_096


@dataclass(frozen=True, slots=True)
class End:
    """How a request ended. Only "eose" means that the relay has sent all stored events.

    "closed": the relay refused; `prefix` and `text` are its reason. "lost": the connection was lost.
    "stalled": nothing arrived for too long. "flooded": far more arrived than we asked for, so we stopped
    reading.
    """

    how: Literal["eose", "closed", "lost", "stalled", "flooded"]
    prefix: str = ""
    text: str = ""


class Inbox:
    """A bounded buffer of undecoded events."""

    def __init__(self, max_events: int, max_characters: int = _MAX_CHARACTERS) -> None:
        self._bodies: list[str] = []
        self._characters = 0
        self._max_events = max_events
        self._max_characters = max_characters
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._bodies)

    def put(self, body: str) -> bool:
        """Add an event. Returns False, and drops it, if the buffer is full."""
        if len(self._bodies) >= self._max_events or self._characters + len(body) > self._max_characters:
            return False
        self._bodies.append(body)
        self._characters += len(body)
        self._arrived.set()
        return True

    def wake(self) -> None:
        """Make a waiting `take` return, with nothing if nothing is there."""
        self._arrived.set()

    async def take(self) -> list[str]:
        """Wait, and return the next batch. Empty after a `wake` without new events."""
        await self._arrived.wait()
        taken, self._bodies = self._bodies[:BATCH], self._bodies[BATCH:]
        self._characters -= sum(map(len, taken))
        if not self._bodies:
            self._arrived.clear()
        return taken


class Request:
    """One REQ for stored events, until its end. `limit` is the number of events asked for.

    `oversize` counts events that were too large to decode.
    """

    def __init__(self, id_: str, filters: Sequence[Filter], limit: int) -> None:
        self.id = id_
        self.filters_json = [filter_.to_json(limit) for filter_ in filters]
        self.end: End | None = None
        self.oversize = 0
        self._max_rows = _MAX_LIMITS * limit + 16
        self._rows = 0
        self._inbox = Inbox(self._max_rows)

    def put(self, body: str) -> None:
        if self.end is None:
            self._rows += 1
            if self._rows > self._max_rows or not self._inbox.put(body):
                self.finish(End("flooded"))

    def finish(self, end: End) -> None:
        if self.end is None:
            self.end = end
            self._inbox.wake()

    async def take(self, silence_s: float) -> list[str] | None:
        """The next events, as JSON; None after the last. Ends as "stalled" after `silence_s` without any."""
        while self.end is None or len(self._inbox):
            try:
                async with asyncio.timeout(silence_s):
                    if taken := await self._inbox.take():
                        return taken
            except TimeoutError:
                self.finish(End("stalled"))
        return None


class Subscription:
    """A REQ for stored and future events. Its handler gets each good, matching event, one after the other.

    After a reconnect all stored events arrive again; those among the last 4,096 seen are left out. A
    handler's error is logged, and the next event is handled nevertheless. If events arrive faster than
    they are handled, those beyond 5,000 are dropped and counted in `bad` as "flood".
    """

    def __init__(self, id_: str, filters: Sequence[Filter], handler: Handler) -> None:
        self.id = id_
        self.filters = tuple(filters)
        self.filters_json = [filter_.to_json() for filter_ in filters]
        self.caught_up = asyncio.Event()
        """Set once all stored events have been handled for the first time."""
        self.bad: Counter[str] = Counter()
        self.refusals = 0
        """How often in a row the relay has closed it."""
        self._eose_received = False
        self._handler = handler
        self._checker = EventChecker(_MAX_KNOWN)
        self._inbox = Inbox(_MAX_UNREAD)

    def put(self, body: str) -> None:
        if not self._inbox.put(body):
            self.bad["flood"] += 1

    def on_eose(self) -> None:
        """The relay has sent all stored events."""
        self._eose_received = True
        self.refusals = 0
        self._inbox.wake()

    async def run(self) -> None:
        """Handle events until cancelled."""
        while True:
            if bodies := await self._inbox.take():
                await self._handle(bodies)
            if self._eose_received and not len(self._inbox):
                self.caught_up.set()

    async def _handle(self, bodies: list[str]) -> None:
        checked = await asyncio.to_thread(self._checker.check, bodies, self.filters)
        self.bad.update(checked.bad)
        for event in checked.fresh:
            try:
                await self._handler(event)
            except Exception:  # a named edge: one bad event must not end the subscription
                log.exception("cannot handle an event of kind %d", event.kind)

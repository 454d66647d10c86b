"""What a relay sends for one of our requests: between the connection, which never waits, and its reader.

`Request` is for what is stored: it ends. `Subscription` is for what comes: it outlives connections.
Both hold only so much that nobody has read yet.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.check import Checker
from discoclaw.nostr.relays.wire import Filter

log = logging.getLogger(__name__)

Handler = Callable[[Event], Awaitable[None]]

BATCH: Final = 256
"""Events that are checked at once: about a tenth of a second in a thread."""
_MOST_CHARACTERS: Final = 64 * 2**20
_MOST_LIVE: Final = 5_000
_MOST_KNOWN: Final = 4_096


@dataclass(frozen=True, slots=True)
class End:
    """How a request ended; only `eose` means that the relay has sent what it has.

    closed: the relay says why. lost: the connection broke off. stalled: it sent nothing more for too long.
    flooded: it sent far more than was asked for, and was stopped.
    """

    how: Literal["eose", "closed", "lost", "stalled", "flooded"]
    prefix: str = ""
    text: str = ""


class Inbox:
    """Bodies of events that nobody has read yet; what is too much is not taken."""

    def __init__(self, most_rows: int, most_characters: int = _MOST_CHARACTERS) -> None:
        self._bodies: list[str] = []
        self._characters = 0
        self._most_rows = most_rows
        self._most_characters = most_characters
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._bodies)

    def put(self, body: str) -> bool:
        """Whether there was room for it."""
        if len(self._bodies) >= self._most_rows or self._characters + len(body) > self._most_characters:
            return False
        self._bodies.append(body)
        self._characters += len(body)
        self._arrived.set()
        return True

    def wake(self) -> None:
        """Let the reader look again, without anything new."""
        self._arrived.set()

    async def take(self) -> list[str]:
        """Wait, and take the next few; nothing after a `wake`."""
        await self._arrived.wait()
        taken, self._bodies = self._bodies[:BATCH], self._bodies[BATCH:]
        self._characters -= sum(map(len, taken))
        if not self._bodies:
            self._arrived.clear()
        return taken


class Request:
    """One REQ for what is stored, until its end. `limit` is how many events were asked for."""

    def __init__(self, id_: str, filters: Sequence[Filter], limit: int) -> None:
        self.id = id_
        self.asked = [filter_.to_json(limit) for filter_ in filters]
        self.end: End | None = None
        self.oversize = 0
        self._most = 4 * limit + 16
        self._rows = 0
        self._inbox = Inbox(self._most)

    def put(self, body: str) -> None:
        if self.end is None:
            self._rows += 1
            if self._rows > self._most or not self._inbox.put(body):
                self.finish(End("flooded"))

    def finish(self, end: End) -> None:
        if self.end is None:
            self.end = end
            self._inbox.wake()

    async def take(self, silence_s: float) -> list[str] | None:
        """The next events, as JSON; None once all are taken. The wait for each few is `silence_s` at most."""
        while self.end is None or len(self._inbox):
            try:
                async with asyncio.timeout(silence_s):
                    if taken := await self._inbox.take():
                        return taken
            except TimeoutError:
                self.finish(End("stalled"))
        return None


class Subscription:
    """A standing request. Its handler gets each event that is good and asked for, one after the other.

    An event that comes again, as all stored ones do after a reconnect, is left out as long as it is among
    the last 4,096. A handler's error is logged, and the next event comes all the same. When a relay sends
    faster than it is read, events over 5,000 are dropped and counted in `bad` as "flood".
    """

    def __init__(self, id_: str, filters: Sequence[Filter], handler: Handler) -> None:
        self.id = id_
        self.filters = tuple(filters)
        self.asked = [filter_.to_json() for filter_ in filters]
        self.caught_up = asyncio.Event()
        """Set once everything that was stored has been handled, for the first time."""
        self.bad: Counter[str] = Counter()
        self.refusals = 0
        """How often in a row the relay closed it."""
        self._stored_sent = False
        self._handler = handler
        self._checker = Checker(_MOST_KNOWN)
        self._inbox = Inbox(_MOST_LIVE)

    def put(self, body: str) -> None:
        if not self._inbox.put(body):
            self.bad["flood"] += 1

    def stored_sent(self) -> None:
        """The relay has sent all that was stored."""
        self._stored_sent = True
        self.refusals = 0
        self._inbox.wake()

    async def run(self) -> None:
        """Handle what comes, until cancelled."""
        while True:
            if bodies := await self._inbox.take():
                await self._handle(bodies)
            if self._stored_sent and not len(self._inbox):
                self.caught_up.set()

    async def _handle(self, bodies: list[str]) -> None:
        checked = await asyncio.to_thread(self._checker.check, bodies, self.filters)
        self.bad.update(checked.bad)
        for event in checked.fresh:
            try:
                await self._handler(event)
            except Exception:
                log.exception("an event of kind %d could not be handled", event.kind)

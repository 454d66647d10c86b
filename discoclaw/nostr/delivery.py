"""Delivery: sends what waits in the outbox to every relay, until each has it or refuses it permanently.

Each relay has a sender of its own, and none waits for another. What happens after a relay's answer:

    accepted                                            acknowledged
    rate-limited, auth-required                         nothing is sent for a while; then it goes on
    error, other reasons, no answer in time             this event later; everything, if nothing else succeeds
    the connection is lost                              when it is back; a suspected cause is sent alone
    pow, blocked, invalid, restricted, too large, …     parked with the reason; only `unpark`, or a newer
                                                        version of the event, tries it again

There is no last try. Only events in flight are in memory; the outbox has everything else, so after a kill, at
worst, the same event is sent again. No conversation ever waits for this. Knows nothing about what events
mean.
"""

import asyncio
import logging
import random as dice
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from discoclaw.core.errors import MemoryFault, RelayError, RelayRefused, RelayUnreachable
from discoclaw.core.ports import Clock
from discoclaw.nostr.event import Event
from discoclaw.nostr.outbox import DeliveryProgress, Outbox, QueueStatus
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.relay import ConnectionStatus, Relay
from discoclaw.nostr.schemas import is_plaintext
from discoclaw.store.files import in_thread

log = logging.getLogger(__name__)
T = TypeVar("T")

PAUSE_PREFIXES: Final = frozenset({"rate-limited", "auth-required"})
"""Reasons that concern everything we send, for now (NIP-01, NIP-42)."""
PERMANENT_PREFIXES: Final = frozenset(
    {"pow", "blocked", "invalid", "restricted", "mute", "replaced", "deleted"}
)
"""Reasons of a permanent refusal: those of NIP-01, and of relays that we tested against."""
LOG_INTERVAL_S: Final = 60.0
"""Least time between two failures of a relay in the log."""
OUTBOX_PAUSE_S: Final = 1.0
MAX_OUTBOX_PAUSE_S: Final = 600.0
"""Pauses between two tries to use an outbox that fails; they double."""


# ---------------------------------------------------------------------- pace

MAX_WIDTH: Final = 20
FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 600.0


class Pace:
    """The pace for one relay. `random` returns 0 to 1.

    Pauses are up to half shorter at random, so that not all relays and bots come back at the same moment.
    """

    def __init__(
        self,
        *,
        random: Callable[[], float],
        first_pause_s: float = FIRST_PAUSE_S,
        max_pause_s: float = MAX_PAUSE_S,
        max_width: int = MAX_WIDTH,
    ) -> None:
        self._random = random
        self._timing = Timing(backoff_s=first_pause_s, max_backoff_s=max_pause_s)
        self._max_width = max_width
        self._failures = 0
        self._pause_s = 0.0
        self._until_s = float("-inf")
        self.width = max_width
        self.round = 0
        """The number of failures so far.

        Store it with each event sent: only the first failure of a round counts.
        """

    def succeeded(self) -> None:
        """An event was accepted or definitely refused: the relay does its work."""
        self.width = min(self._max_width, self.width + 1)
        self._failures = max(0, self._failures - 1)

    def failed(self, round_: int, now_s: float, *, hold: bool, alone: bool = False) -> float:
        """An event that was sent in this round failed. Returns after how many seconds to try it again.

        `hold`: send nothing until then, as after a second failure in a row. `alone`: one event at a time from
        now on.
        """
        if round_ == self.round:
            self.round += 1
            self._failures += 1
            self._pause_s = self._timing.pause_s(self._failures, self._random())
            self.width = 1 if alone else max(1, self.width // 2)
        if hold or self._failures > 1:
            self._until_s = max(self._until_s, now_s + self._pause_s)
        return self._pause_s

    def remaining_s(self, now_s: float) -> float:
        """How long (s) nothing may be sent."""
        return max(0.0, self._until_s - now_s)


# ---------------------------------------------------------------------- delivery


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """The state of a relay: its connection, its queue, and how long (s) sending to it is paused.

    `last_failure` is the reason for which an event last failed there, or "".
    """

    connection: ConnectionStatus
    queue: QueueStatus
    pause_s: float
    last_failure: str


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of sending an event.

    "acked", "parked", "later" (due again in `after_s`), or "due" (nothing is stored, so it is due at once).
    """

    event: Event
    what: Literal["acked", "parked", "later", "due"]
    reason: str = ""
    after_s: float = 0.0


class Delivery:
    """Senders for all relays, which are started and closed elsewhere.

    `allow_plaintext`: events that everybody can read may be sent; otherwise they are parked. `pace` makes the
    pace for one relay. `pause_s` is the first pause after the outbox failed; it doubles.
    """

    def __init__(
        self,
        outbox: Outbox,
        relays: Sequence[Relay],
        *,
        min_acks: int,
        clock: Clock,
        allow_plaintext: bool = False,
        pace: Callable[[], Pace] = lambda: Pace(random=dice.random),
        pause_s: float = OUTBOX_PAUSE_S,
    ) -> None:
        self._outbox = outbox
        self._min_acks = min_acks
        self._pause_s = pause_s
        self._senders = {
            relay.url: _Sender(outbox, relay, pace(), clock, allow_plaintext) for relay in relays
        }
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Send what waits. From now on nothing waits for relays other than these."""

        async def set_relays() -> None:
            await in_thread(self._outbox.set_relays, tuple(self._senders))

        async def run() -> None:
            await self._tried("delivery", set_relays)
            try:
                await asyncio.gather(*map(self._send, self._senders.values()))
            finally:
                await asyncio.gather(*(sender.stop() for sender in self._senders.values()))

        if self._task is None:
            self._task = asyncio.create_task(run(), name="delivery")

    async def close(self) -> None:
        """Stop. What is left waits in the outbox for the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def wake(self) -> None:
        """Tell the senders that the outbox has something new. Never blocks."""
        for sender in self._senders.values():
            sender.wake()

    async def drain(self, timeout_s: float | None = None) -> DeliveryProgress:
        """Wait until nothing waits for any relay, or `timeout_s` has passed, and return how far it is.

        What relays refused permanently doesn't wait. Call it only after `start`. Raises MemoryFault.
        """
        self.wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                for sender in self._senders.values():
                    await sender.idle.wait()
        return await in_thread(self._outbox.progress, tuple(self._senders), min_acks=self._min_acks)

    async def status(self) -> tuple[RelayStatus, ...]:
        """The state of each relay. Raises MemoryFault."""
        status = await in_thread(self._outbox.status, tuple(self._senders))
        return tuple(sender.status(status.relays[url]) for url, sender in self._senders.items())

    async def unpark(self, url: str | None = None) -> int:
        """Send again what a relay (URL) refused, or what all relays did.

        Returns how many. Raises MemoryFault.
        """
        count = await in_thread(self._outbox.unpark, url)
        self.wake()
        return count

    async def _send(self, sender: "_Sender") -> None:
        """Send until cancelled. Not a key of a `Worker`: this belongs to nobody who wakes it."""
        while True:
            sender.has_work.clear()
            wait_s = await self._tried(sender.url, sender.step)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await sender.has_work.wait()

    async def _tried(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns once it works, with growing pauses in between."""
        pause_s = self._pause_s
        while True:
            try:
                return await work()
            except Exception as error:  # a named edge: the other senders must go on
                is_bug = not isinstance(error, MemoryFault)
                log.warning("%s: nothing is sent for %.0f s: %s", name, pause_s, error, exc_info=is_bug)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_OUTBOX_PAUSE_S)


class _Sender:
    """Sends to one relay what waits for it. `idle` is set while nothing does.

    `has_work` is set when something may be done: something new, an answer, a connection.
    """

    def __init__(self, outbox: Outbox, relay: Relay, pace: Pace, clock: Clock, allow_plaintext: bool) -> None:
        self.url = relay.url
        self.idle = asyncio.Event()
        self.has_work = asyncio.Event()
        self._wakes = 0
        self._outbox = outbox
        self._relay = relay
        self._pace = pace
        self._clock = clock
        self._allow_plaintext = allow_plaintext
        self._sending: dict[str, asyncio.Task[None]] = {}
        """Events in flight, or ended without a stored outcome yet, by id."""
        self._outcomes: list[_Outcome] = []
        self._last_failure = ""
        self._quiet_until_s = float("-inf")
        relay.on_connected(self.has_work.set)

    def wake(self) -> None:
        self._wakes += 1
        self.idle.clear()
        self.has_work.set()

    def status(self, queue: QueueStatus) -> RelayStatus:
        return RelayStatus(self._relay.status(), queue, self._pace.remaining_s(_now_s()), self._last_failure)

    async def step(self) -> float | None:
        """Store outcomes, and send more events. Returns how long (s) there is nothing to do, None for ever.

        Something new in the outbox, a new connection, and the end of anything in flight always mean that
        there is. Raises MemoryFault.
        """
        await self._save_outcomes()
        if not self._sending:
            wakes = self._wakes
            if not await in_thread(self._outbox.has_waiting, self.url):
                if wakes == self._wakes:  # nothing was added while we looked
                    self.idle.set()
                return None
        if (remaining_s := self._pace.remaining_s(_now_s())) > 0:
            return remaining_s
        room = self._pace.width - len(self._sending)
        if room <= 0 or not self._relay.connected:
            return None
        now = self._clock()

        def due() -> tuple[list[Event], int | None]:
            found = self._outbox.due(self.url, now, len(self._sending) + room)
            fresh = [event for event in found if event.id not in self._sending][:room]
            return fresh, self._outbox.next_due(self.url, now)

        events, next_ms = await in_thread(due)
        for event in events:
            self._sending[event.id] = asyncio.create_task(self._send(event, self._pace.round))
        if self._sending:
            return None
        wait_s = MAX_OUTBOX_PAUSE_S if next_ms is None else (next_ms - now) / 1000
        return min(max(wait_s, 0.001), MAX_OUTBOX_PAUSE_S)  # bounded: a clock may be set back

    async def _send(self, event: Event, round_: int) -> None:
        def failed(*, hold: bool = False, alone: bool = False) -> float:
            return self._pace.failed(round_, _now_s(), hold=hold, alone=alone)

        try:
            if not self._allow_plaintext and is_plaintext(event):
                raise RelayRefused("not encrypted (NOSTR_ALLOW_PLAINTEXT=0)", prefix="blocked")
            await self._relay.publish(event)
            outcome = _Outcome(event, "acked")
        except RelayError as error:
            reason = str(error).removeprefix(f"{self._relay.url}: ")
            prefix = error.prefix if isinstance(error, RelayRefused) else ""
            failure, now_s = f"an event of kind {event.kind} was not accepted: {reason}", _now_s()
            # Not each one is logged: the text is the relay's, which can vary it at will.
            if failure != self._last_failure and now_s >= self._quiet_until_s:
                self._quiet_until_s = now_s + LOG_INTERVAL_S
                log.warning("%s: %s", self._relay.url, failure)
            self._last_failure = failure
            if prefix in PERMANENT_PREFIXES:
                outcome = _Outcome(event, "parked", reason)
            elif prefix in PAUSE_PREFIXES:
                failed(hold=True)
                outcome = _Outcome(event, "due")
            elif isinstance(error, RelayUnreachable) and not self._relay.connected:
                # Alone in flight, this event may be what the relay drops connections for. Among others it may
                # not.
                is_suspect, after_s = len(self._sending) == 1, failed(alone=True)
                outcome = _Outcome(event, "later", reason, after_s) if is_suspect else _Outcome(event, "due")
            else:
                outcome = _Outcome(event, "later", reason, failed())
        except Exception as error:  # a named edge: otherwise the event would count as in flight for ever
            log.exception("%s: cannot send an event of kind %d", self._relay.url, event.kind)
            outcome = _Outcome(event, "later", type(error).__name__, failed())
        if outcome.what in ("acked", "parked"):
            self._pace.succeeded()
        self._outcomes.append(outcome)
        self.has_work.set()

    async def _save_outcomes(self) -> None:
        """Store the outcomes. Raises MemoryFault; those events are then sent again."""
        outcomes, self._outcomes = self._outcomes, []

        def store() -> None:
            if acked := [one.event.id for one in outcomes if one.what == "acked"]:
                self._outbox.mark_acked(self.url, acked)
            for one in outcomes:
                if one.what == "parked":
                    self._outbox.park(self.url, one.event.id, one.reason)
                elif one.what == "later":
                    at_ms = self._clock() + int(1000 * one.after_s)
                    self._outbox.postpone(self.url, one.event.id, at_ms, one.reason)

        try:
            if outcomes:
                await in_thread(store)
        finally:
            for outcome in outcomes:
                del self._sending[outcome.event.id]

    async def stop(self) -> None:
        """Cancel what is in flight, and store the outcomes so far."""
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        with suppress(MemoryFault):
            await self._save_outcomes()
        self._sending.clear()


def _now_s() -> float:
    return asyncio.get_running_loop().time()

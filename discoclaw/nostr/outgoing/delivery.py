"""Delivery: what waits in the outbox goes to every relay, until each has it or says that it never will.

Each relay has a courier of its own, and none waits for another. What a relay says of an event:

    it has it                                           acked
    rate-limited, auth-required                         nothing is sent for a while; then it goes on
    error, other words without meaning, no answer       that event later; if nothing else works, all of them
    the connection broke off                            when it is back; what may be the cause goes alone
    pow, blocked, invalid, restricted, too large, …     parked with the reason; only `unpark`, or a newer
                                                        version of the event, has it tried again

There is no last try. Only what is on its way is in RAM; the outbox has everything else, so a process that
is killed sends, at worst, the same event once more. Nobody who speaks to a person waits for any of this.
Knows nothing about what events mean.
"""

import asyncio
import logging
import random as dice
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from discoclaw.core.errors import MemoryFault, RelayError, RelayRefused, RelayUnreachable
from discoclaw.core.ports import Clock
from discoclaw.memory.disk.files import in_thread
from discoclaw.nostr.event import Event
from discoclaw.nostr.outgoing.outbox import Outbox, Queue, Tally
from discoclaw.nostr.outgoing.pace import Pace
from discoclaw.nostr.relays.relay import RelayStatus
from discoclaw.nostr.schemas import in_clear

log = logging.getLogger(__name__)

FOR_ALL: Final = frozenset({"rate-limited", "auth-required"})
FOR_GOOD: Final = frozenset({"pow", "blocked", "invalid", "restricted", "mute", "replaced", "deleted"})
"""Words before a relay's reason (NIP-01, NIP-42, and those of relays that were met): it wants nothing at all
for now; it will never want this event."""
QUIET_S: Final = 60.0
"""Between two troubles of a relay in the log."""
REST_S: Final = 1.0
LONGEST_REST_S: Final = 600.0
"""Between two tries to use an outbox that fails."""


class Target(Protocol):
    """What a courier needs of a relay."""

    name: str
    url: str

    @property
    def connected(self) -> bool: ...

    def on_connected(self, callback: Callable[[], None]) -> None: ...

    async def publish(self, event: Event) -> None:
        """Return once the relay has it. Raises RelayRefused, and RelayUnreachable: no answer in time, too."""
        ...

    def status(self) -> RelayStatus: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How it stands with a relay: its connection, what it has yet to get, and for how long (s) it rests.

    `trouble` is what went wrong last with an event there, "" where nothing did.
    """

    relay: RelayStatus
    queue: Queue
    rests_s: float
    trouble: str


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of an event that was sent; `due`: nothing is to be noted, and it is sent again."""

    event: Event
    what: str
    reason: str = ""
    after_s: float = 0.0


class Delivery:
    """Couriers for all relays, which whoever made them starts and closes.

    `in_clear`: events that anybody can read may be sent; else they are parked. `pace` makes the pace for one
    relay. `rest_s` is the first pause when the outbox fails; it doubles.
    """

    def __init__(
        self,
        outbox: Outbox,
        relays: Sequence[Target],
        *,
        min_acks: int,
        clock: Clock,
        in_clear: bool = False,
        pace: Callable[[], Pace] = lambda: Pace(random=dice.random),
        rest_s: float = REST_S,
    ) -> None:
        self._outbox = outbox
        self._rest_s = rest_s
        self._min_acks = min_acks
        self._urls = tuple(relay.url for relay in relays)
        self._couriers = [_Courier(outbox, relay, pace(), clock, rest_s, in_clear) for relay in relays]
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with what waits. From now on nothing waits for relays that are not among these."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="delivery")

    async def close(self) -> None:
        """Stop; what is left waits in the outbox for the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def poke(self) -> None:
        """There is something new. Never blocks."""
        for courier in self._couriers:
            courier.poke()

    async def flushed(self, timeout_s: float | None = None) -> Tally:
        """Wait until nothing waits for any relay, or for so long (s), and see how far it came.

        What relays refused does not count as waiting. Only while it is started. Raises MemoryFault.
        """
        self.poke()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                for courier in self._couriers:
                    await courier.idle.wait()
        return await asyncio.to_thread(self._outbox.tally, self._urls, min_acks=self._min_acks)

    async def status(self) -> tuple[Standing, ...]:
        """How it stands with each relay. Raises MemoryFault."""
        status = await asyncio.to_thread(self._outbox.status, self._urls)
        return tuple(courier.standing(status.relays[courier.url]) for courier in self._couriers)

    async def unpark(self, url: str | None = None) -> int:
        """Send once more what a relay refused, or all of them. Returns how many. Raises MemoryFault."""
        count = await in_thread(self._outbox.unpark, url)
        self.poke()
        return count

    async def _run(self) -> None:
        rest_s = self._rest_s
        while True:
            try:
                await in_thread(self._outbox.enrol, self._urls)
                break
            except MemoryFault as fault:
                log.warning("nothing can be delivered for %.0f s: %s", rest_s, fault)
                await asyncio.sleep(rest_s)
                rest_s = min(2 * rest_s, LONGEST_REST_S)
        await asyncio.gather(*(courier.run() for courier in self._couriers))


class _Courier:
    """Brings one relay what waits for it. `idle` is set while nothing does."""

    def __init__(
        self, outbox: Outbox, relay: Target, pace: Pace, clock: Clock, rest_s: float, in_clear: bool
    ) -> None:
        self.url = relay.url
        self.idle = asyncio.Event()
        self._outbox = outbox
        self._relay = relay
        self._pace = pace
        self._clock = clock
        self._rest_s = rest_s
        self._in_clear = in_clear
        self._wake = asyncio.Event()
        self._pokes = 0
        self._sending: dict[str, asyncio.Task[None]] = {}
        """What is on its way, or has come to an end that is not written down yet, by the event's id."""
        self._outcomes: list[_Outcome] = []
        self._trouble = ""
        self._quiet_until_s = float("-inf")
        relay.on_connected(self._wake.set)

    def poke(self) -> None:
        self._pokes += 1
        self.idle.clear()
        self._wake.set()

    def standing(self, queue: Queue) -> Standing:
        return Standing(self._relay.status(), queue, self._pace.left_s(_now_s()), self._trouble)

    async def run(self) -> None:
        """Until cancelled."""
        rest_s = self._rest_s
        try:
            while True:
                self._wake.clear()
                try:
                    wait_s = await self._step()
                except MemoryFault as fault:
                    log.warning("%s: nothing is sent for %.0f s: %s", self._relay.name, rest_s, fault)
                except Exception:  # a named edge: the other relays get their events all the same
                    log.exception("%s: nothing is sent for %.0f s", self._relay.name, rest_s)
                else:
                    rest_s = self._rest_s
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait_s):
                            await self._wake.wait()
                    continue
                await asyncio.sleep(rest_s)
                rest_s = min(2 * rest_s, LONGEST_REST_S)
        finally:
            await self._stop()

    async def _step(self) -> float | None:
        """Note what came of events, and send others. Returns for how long (s) there is nothing to do.

        A poke, a new connection and the end of whatever is on its way always mean that there is.
        """
        await self._note()
        if not self._sending and not await self._anything_waits():
            return None
        if (left_s := self._pace.left_s(_now_s())) > 0:
            return left_s
        room = self._pace.width - len(self._sending)
        if room <= 0 or not self._relay.connected:
            return None
        now = self._clock()
        events, next_ms = await in_thread(self._look, now, room)
        for event in events:
            self._sending[event.id] = asyncio.create_task(self._send(event, self._pace.moment))
        if self._sending:
            return None
        wait_s = LONGEST_REST_S if next_ms is None else (next_ms - now) / 1000
        return min(max(wait_s, 0.001), LONGEST_REST_S)  # a clock that was set back must not stop us for long

    async def _anything_waits(self) -> bool:
        pokes = self._pokes
        waits = await in_thread(self._outbox.waits, self.url)
        if not waits and pokes == self._pokes:
            self.idle.set()
        return waits

    def _look(self, now: int, room: int) -> tuple[list[Event], int | None]:
        """What can be sent now, and when (ms) the next would be due. Blocking."""
        due = self._outbox.due(self.url, now, len(self._sending) + room)
        fresh = [event for event in due if event.id not in self._sending][:room]
        return fresh, self._outbox.next_due(self.url, now)

    async def _send(self, event: Event, moment: int) -> None:
        try:
            if not self._in_clear and in_clear(event):
                raise RelayRefused("it is not encrypted (NOSTR_ALLOW_PLAINTEXT=0)", prefix="blocked")
            await self._relay.publish(event)
        except RelayError as error:
            outcome = self._judged(event, error, moment)
        except Exception as error:  # a named edge: else it would never leave those that are on their way
            log.exception("%s: an event of kind %d could not be sent", self._relay.name, event.kind)
            outcome = _Outcome(event, "later", type(error).__name__, self._failed(moment))
        else:
            outcome = _Outcome(event, "acked")
        if outcome.what in ("acked", "parked"):
            self._pace.worked()
        self._outcomes.append(outcome)
        self._wake.set()

    def _judged(self, event: Event, error: RelayError, moment: int) -> _Outcome:
        """What a failure means for the event, and for the pace."""
        reason = str(error).removeprefix(f"{self._relay.name}: ")
        prefix = error.prefix if isinstance(error, RelayRefused) else ""
        self._say(f"an event of kind {event.kind} was not taken: {reason}")
        if prefix in FOR_GOOD:
            return _Outcome(event, "parked", reason)
        if prefix in FOR_ALL:
            self._failed(moment, hold=True)
            return _Outcome(event, "due")
        if isinstance(error, RelayUnreachable) and not self._relay.connected:
            suspect = len(self._sending) == 1  # with others on their way too nobody knows whose fault it was
            after_s = self._failed(moment, alone=True)
            return _Outcome(event, "later", reason, after_s) if suspect else _Outcome(event, "due")
        return _Outcome(event, "later", reason, self._failed(moment))

    def _failed(self, moment: int, *, hold: bool = False, alone: bool = False) -> float:
        return self._pace.failed(moment, _now_s(), hold=hold, alone=alone)

    async def _note(self) -> None:
        """Write down what came of events. Raises MemoryFault; they are sent once more then."""
        outcomes, self._outcomes = self._outcomes, []
        try:
            if outcomes:
                await in_thread(self._write, outcomes)
        finally:
            for outcome in outcomes:
                del self._sending[outcome.event.id]

    def _write(self, outcomes: Sequence[_Outcome]) -> None:
        acked = [outcome.event.id for outcome in outcomes if outcome.what == "acked"]
        if acked:
            self._outbox.acked(self.url, acked)
        for outcome in outcomes:
            if outcome.what == "parked":
                self._outbox.parked(self.url, outcome.event.id, outcome.reason)
            elif outcome.what == "later":
                at_ms = self._clock() + int(1000 * outcome.after_s)
                self._outbox.later(self.url, outcome.event.id, at_ms, outcome.reason)

    def _say(self, trouble: str) -> None:
        """Log what went wrong, but not all of it: the words are the relay's, and it may have many."""
        now_s = _now_s()
        if trouble != self._trouble and now_s >= self._quiet_until_s:
            self._quiet_until_s = now_s + QUIET_S
            log.warning("%s: %s", self._relay.name, trouble)
        self._trouble = trouble

    async def _stop(self) -> None:
        """End what is on its way, and note what came to an end."""
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        with suppress(MemoryFault):
            await self._note()
        self._sending.clear()


def _now_s() -> float:
    return asyncio.get_running_loop().time()

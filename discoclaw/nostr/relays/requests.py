"""The open requests (REQ) of one connection: those for stored events, and subscriptions that outlive it.

Knows nothing about what the events mean, nor about authentication beyond asking for it.
"""

import asyncio
import contextlib
import json
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from discoclaw.core.errors import BadEvent, RelayUnreachable
from discoclaw.nostr.event import Event, verified
from discoclaw.nostr.relays.connection import Connection
from discoclaw.nostr.relays.wire import Filter, close_frame, request_frame

# ----------------------------------------------------------------------
# The buffers between a connection, which never waits, and the readers of its events.

# ----------------------------------------------------------------------
# Checks the events of a relay: they have to decode, match the request, and have a correct id and signature.


@dataclass(slots=True)
class CheckedBatch:
    """A checked batch. `fresh` are the good events not seen before, in their order.

    `times` (s) and `ids` are those of all good events. `bad` counts the others: "garbage", "forged",
    "author", "kind" or "filter".
    """

    fresh: list[Event] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    bad: Counter[str] = field(default_factory=Counter)


class EventChecker:
    """Remembers the events it has seen; with `max_known`, only that many.

    It remembers the time of each, so that a forged copy with a known id cannot claim another time.
    """

    def __init__(self, max_known: int | None = None) -> None:
        self._known: dict[bytes, int] = {}
        self._max_known = max_known

    def check(self, bodies: Sequence[str], filters: Sequence[Filter]) -> CheckedBatch:
        """Check events, given as JSON, that arrived for these filters. Blocking; not thread-safe."""
        checked = CheckedBatch()
        for body in bodies:
            if (why := self._check(body, filters, checked)) is not None:
                checked.bad[why] += 1
        return checked

    def _check(self, body: str, filters: Sequence[Filter], checked: CheckedBatch) -> str | None:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return "garbage"
        if not isinstance(value, Mapping) or (key := _key(value)) is None:
            return "garbage"
        # A known id is not verified again: pages overlap, and after a reconnect everything arrives twice.
        if (known_at := self._known.get(key)) is not None:
            if not any(filter_.covers(known_at) for filter_ in filters):
                return "filter"
            checked.times.append(known_at)
            checked.ids.add(key.hex())
            return None
        if _other_author(value, filters):
            return "author"  # before the signature, which is expensive to check
        try:
            event = verified(value)
        except BadEvent:
            return "forged"
        if (why := _mismatch(event, filters)) is not None:
            return why
        self._note(key, event.created_at)
        checked.fresh.append(event)
        checked.times.append(event.created_at)
        checked.ids.add(event.id)
        return None

    def _note(self, key: bytes, created_at: int) -> None:
        self._known[key] = created_at
        if self._max_known is not None and len(self._known) > self._max_known:
            del self._known[next(iter(self._known))]


def _key(value: Mapping[str, Any]) -> bytes | None:
    """An event's id as bytes, a third of the memory of hex: a recovery holds a hundred thousand."""
    id_ = value.get("id")
    if not isinstance(id_, str) or len(id_) != 64:
        return None
    try:
        return bytes.fromhex(id_)
    except ValueError:
        return None


def _other_author(value: Mapping[str, Any], filters: Sequence[Filter]) -> bool:
    """Whether an event claims an author that no filter asks for."""
    return bool(filters) and all(one.authors and value.get("pubkey") not in one.authors for one in filters)


def _mismatch(event: Event, filters: Sequence[Filter]) -> str | None:
    """Why no filter matches, by the filter that comes closest; None if one matches."""
    reasons = [filter_.mismatch(event) for filter_ in filters]
    if not reasons or None in reasons:
        return None
    return next((why for why in ("filter", "kind") if why in reasons), "author")


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


log = logging.getLogger(__name__)


class OpenRequests:
    """Sends requests over a connection and hands each answer to the request it belongs to.

    `authenticate` is called when a relay closes a subscription because it wants that. It raises RelayError.
    """

    def __init__(self, connection: Connection, authenticate: Callable[[], Awaitable[None]]) -> None:
        self._connection = connection
        self._authenticate = authenticate
        self._requests: dict[str, Request] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}

    @property
    def bad(self) -> Counter[str]:
        """How many events all subscriptions dropped, by reason."""
        found: Counter[str] = Counter()
        for subscription in self._subscriptions.values():
            found.update(subscription.bad)
        return found

    # ------------------------------------------------------------------ requests

    @contextlib.asynccontextmanager
    async def request(self, filters: Sequence[Filter], limit: int) -> AsyncIterator[Request]:
        """Ask for stored events; on leaving, the relay is told to stop.

        Without a connection it ends as "lost".
        """
        request = Request(secrets.token_hex(8), filters, limit)
        self._requests[request.id] = request
        try:
            await self._send(request)
            yield request
        finally:
            del self._requests[request.id]
            if request.end is None or request.end.how not in ("closed", "lost"):
                self._send_close(request.id)

    async def subscribe(self, filters: Iterable[Filter], handler: Handler) -> Subscription:
        """Ask for stored and future events. `handler` gets each of them, also after a reconnect."""
        subscription = Subscription(secrets.token_hex(8), tuple(filters), handler)
        self._subscriptions[subscription.id] = subscription
        self._readers[subscription.id] = asyncio.create_task(subscription.run())
        limit = self._connection.limits.max_requests
        if limit is not None and len(self._subscriptions) >= limit:
            count = len(self._subscriptions)
            log.warning("%s allows %d requests at once, and %d are open", self._connection.name, limit, count)
        if self._connection.is_open:
            await self._send(subscription)
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription. Once this returns, its handler is not called any more."""
        reader = self._readers.pop(subscription.id, None)
        if self._subscriptions.pop(subscription.id, None) is not None:
            self._send_close(subscription.id)
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    def resubscribe(self) -> None:
        """Send all subscriptions again, over a new connection."""
        for subscription in self._subscriptions.values():
            self._connection.spawn(self._send(subscription))

    def send_all(self) -> None:
        """Send everything again: what a stranger was given may be less than what the author gets."""
        self.resubscribe()
        for request in self._requests.values():
            self._connection.spawn(self._send(request))

    def lose(self) -> None:
        """The connection is lost: requests for stored events end, subscriptions wait for the next one."""
        for request in self._requests.values():
            request.finish(End("lost"))

    async def close(self) -> None:
        """Stop handing over events."""
        readers, self._readers = list(self._readers.values()), {}
        self._subscriptions.clear()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    # ------------------------------------------------------------------ answers

    def put(self, id_: str, body: str) -> None:
        """An event arrived, as JSON. It is dropped if no request has this id."""
        if (one := self._find(id_)) is not None:
            one.put(body)

    def skip(self, id_: str) -> None:
        """An event arrived that is too large to decode. A request counts it, so that its page looks full."""
        if isinstance(one := self._find(id_), Request):
            one.oversize += 1

    def end(self, id_: str, end: End) -> bool:
        """The relay ended a request, or has sent all stored events. Returns whether the request is ours."""
        one = self._find(id_)
        if isinstance(one, Request):
            one.finish(end)
        elif one is not None and end.how == "eose":
            one.on_eose()
        elif one is not None:
            self._connection.spawn(self._resume(one, end))
        return one is not None

    # ------------------------------------------------------------------ inside

    def _find(self, id_: str) -> Request | Subscription | None:
        return self._requests.get(id_) or self._subscriptions.get(id_)

    def _send_close(self, id_: str) -> None:
        if self._connection.is_open:
            self._connection.spawn(self._connection.send(close_frame(id_)))

    async def _send(self, one: Request | Subscription) -> None:
        """Send a REQ.

        If the connection is lost, a request ends; a subscription is sent again by `resubscribe`.
        """
        try:
            await self._connection.send(request_frame(one.id, one.filters_json))
        except RelayUnreachable as error:
            if isinstance(one, Request):
                one.finish(End("lost", text=str(error)))

    async def _resume(self, subscription: Subscription, end: End) -> None:
        """Send a subscription again that the relay closed, after a pause that grows with each refusal."""
        subscription.refusals += 1
        if end.prefix == "auth-required" and subscription.refusals == 1:
            await self._authenticate()
        else:
            await asyncio.sleep(self._connection.pause_s(subscription.refusals))
        if subscription.id in self._subscriptions:
            await self._send(subscription)

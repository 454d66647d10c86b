"""One relay (NIP-01): it stays connected, and nothing that it sends is used unchecked.

    relay = Relay("wss://relay.example", keys)
    relay.start()
    await relay.publish(event)                              returns once the relay has accepted this event
    result = await relay.fetch([Filter(authors=(me,))])     everything it has, and whether that is everything
    await relay.subscribe([Filter(...)], handle)            events from now on, across reconnects
    await relay.close()

One task holds the connection and reads. It never waits for anything else. Times are in seconds.

We authenticate (NIP-42) as soon as a relay asks for it, and again when it refuses something for lack of it:
some relays silently hide from a stranger what they show to the author. nostr-relay refuses events without
saying which event it means; such a relay gets one event at a time from then on.
"""

import asyncio
import contextlib
import ipaddress
import json
import logging
import random as dice
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import aiohttp
import yarl

from discoclaw.core.errors import RelayError, RelayRefused, RelayUnreachable, SettingsError
from discoclaw.core.redact import redact, without_login
from discoclaw.nostr.event import MAX_EVENT_BYTES, Event, Keys
from discoclaw.nostr.relays import paging
from discoclaw.nostr.relays.connection import Limits, Timing, WebSocket, limits_of, session
from discoclaw.nostr.relays.paging import PAGE, FetchResult, OnEvents, RequestFailed
from discoclaw.nostr.relays.protocol import (
    MAX_CHALLENGE,
    Answer,
    Authentication,
    End,
    EventChecker,
    Filter,
    Handler,
    Ok,
    PendingOks,
    Request,
    Subscription,
    event_frame,
    one_line,
    parse,
    reason,
)

log = logging.getLogger(__name__)

_NOTICE_INTERVAL_S: Final = 60.0
"""Least time between two notices of a relay in the log: a relay decides how many it sends."""
_MAX_TRIES: Final = 3
_MAX_WAITS: Final = 12
"""How many time limits one answer may take in all, as long as something keeps arriving."""


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    """The state of a connection. Times are in ms since 1970.

    `url` identifies the relay, `address` is where it is now. `in_flight` counts events that wait for
    their OK. `bad` counts what the relay sent and we dropped, by kind.
    """

    url: str
    address: str
    connected_since_ms: int | None
    last_eose_ms: int | None
    last_error: str
    last_notice: str
    authenticated: bool
    in_flight: int
    bad: Mapping[str, int]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


USUAL_TIMING = Timing()


class Relay:
    """A relay. Raises SettingsError for a wrong address.

    It reconnects whenever the connection is lost, with growing pauses, until it is closed. Only a relay that
    did its work resets the pauses: one that accepts connections just to drop them gets ever longer ones.

    `name` identifies the relay in logs and in the outbox. By default it is the address without
    credentials; the embedded relay needs another one, because its port changes. Events of more than
    `max_message` characters are dropped without decoding them. For the times see `Timing`.
    """

    def __init__(
        self,
        url: str,
        keys: Keys,
        *,
        name: str | None = None,
        timing: Timing = USUAL_TIMING,
        max_message: int = 2 * MAX_EVENT_BYTES,
        random: Callable[[], float] = dice.random,
        now_ms: Callable[[], int] = _now_ms,
    ) -> None:
        address = relay_url(url)
        self.address = display_url(address)
        self.url = name or self.address
        self.timeout_s = timing.timeout_s
        self._limits = Limits()
        self._wire = address
        self._timing = timing
        self._random = random
        self._running: asyncio.Task[None] | None = None
        self._socket: WebSocket | None = None
        self._opened = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._announced: asyncio.Task[None] | None = None
        self._is_useful = False
        self._last_error = ""
        self._max_message = max_message
        self._now_ms = now_ms
        # User and password are for a proxy in front of the relay, which doesn't know them (NIP-42).
        self._auth = Authentication(keys, str(address.with_user(None)), self._send, now_ms)
        self._requests: dict[str, Request] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._pending = PendingOks()
        self._callbacks: list[Callable[[], None]] = []
        self._publishing = asyncio.Lock()
        self._fetching = asyncio.Lock()
        self._bad: Counter[str] = Counter()
        self._connected_since_ms: int | None = None
        self._connected_at = 0.0  # by the loop's clock
        self._last_eose_ms: int | None = None
        self._last_notice = ""
        self._notice_logged_at = float("-inf")

    # ------------------------------------------------------------------ the connection

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def start(self) -> None:
        """Connect in the background, and stay connected until `close`."""
        if self._running is None:
            self._running = asyncio.create_task(self._run(), name=f"relay {self.url}")

    async def close(self) -> None:
        """Disconnect within two seconds, whatever the relay does. What waits gets RelayUnreachable."""
        subscriptions, self._subscriptions = list(self._subscriptions.values()), {}
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
        ending = [running] if running is not None else []
        await asyncio.gather(*ending, *(one.close() for one in subscriptions), return_exceptions=True)

    async def ready(self, timeout_s: float | None = None) -> None:
        """Wait for a connection. Raises RelayUnreachable with the last error if there is none in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._opened.wait()
        except TimeoutError:
            raise self._not_connected() from None

    async def informed(self) -> Limits:
        """The relay's limits, after it had a few seconds to announce them."""
        if self._announced is not None and not self._announced.done():
            await asyncio.wait({self._announced})
        return self._limits

    def on_connected(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each new connection."""
        self._callbacks.append(callback)

    def status(self) -> ConnectionStatus:
        return ConnectionStatus(
            url=self.url,
            address=self.address,
            connected_since_ms=self._connected_since_ms,
            last_eose_ms=self._last_eose_ms,
            last_error=self._last_error,
            last_notice=self._last_notice,
            authenticated=self._auth.done,
            in_flight=len(self._pending),
            bad=sum((one.bad for one in self._subscriptions.values()), self._bad),
        )

    async def _run(self) -> None:
        failures = 0
        async with session() as http:
            while True:
                self._is_useful = False
                try:
                    await self._stay_connected(http)
                except RelayUnreachable as error:
                    self._last_error = f"{self.url}: {error}"
                    # The first failure is news; a relay that stays away for days is not.
                    (log.debug if failures else log.warning)("%s", self._last_error)
                except Exception:  # a named edge: a fault of ours must not end the reconnecting
                    log.exception("the connection to %s failed", self.url)
                failures = 1 if self._is_useful else failures + 1
                await asyncio.sleep(self._timing.pause_s(failures, self._random()))

    async def _stay_connected(self, http: aiohttp.ClientSession) -> None:
        """Connect, and read until the connection is lost. Always raises RelayUnreachable in the end."""

        async def announced() -> None:
            self._limits = await limits_of(http, self._wire, self.timeout_s)

        websocket = await WebSocket.open(http, self._wire, self._timing)
        try:
            log.info("connected to %s", self.url)
            self._socket = websocket
            self._announced = self._spawn(announced())
            self._opened.set()
            self._connected_since_ms = self._now_ms()
            self._connected_at = asyncio.get_running_loop().time()
            for subscription in self._subscriptions.values():
                self._spawn(self._ask(subscription))
            for callback in self._callbacks:
                try:
                    callback()
                except Exception:  # a named edge: a fault of a listener must not cost us the connection
                    log.exception("a listener for connections to %s failed", self.url)
            while True:
                self._on_text(await websocket.receive())
        finally:
            self._opened.clear()
            self._socket = self._connected_since_ms = None
            # Requests for stored events end; subscriptions wait for the next connection.
            lost = RelayUnreachable(f"{self.url}: the connection was lost")
            self._pending.fail(lost)
            self._auth.reset(lost)
            for request in self._requests.values():
                request.finish(End("lost"))
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await websocket.close()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, text: str) -> None:
        """Send a message. Raises RelayUnreachable."""
        if self._socket is None:
            raise self._not_connected()
        try:
            await self._socket.send(text)
        except RelayUnreachable as error:
            raise RelayUnreachable(f"{self.url}: {error}") from None

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside the reading; it is cancelled when this connection is lost."""

        async def logged() -> None:
            try:
                await work
            except RelayError as error:
                self._last_error = str(error)
            except Exception:  # a named edge: nobody awaits this task, so its error would be lost
                log.exception("a background task for %s failed", self.url)

        task = asyncio.create_task(logged())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before it starts never awaits its coroutine, which Python warns about.
        task.add_done_callback(lambda _: work.close())
        return task

    def _not_connected(self) -> RelayUnreachable:
        return RelayUnreachable(self._last_error or f"{self.url}: not connected")

    # ------------------------------------------------------------------ publishing and authenticating

    async def publish(self, event: Event) -> None:
        """Send an event, and return when the relay has it. Many may be in flight at once.

        Raises RelayUnreachable when no answer comes in time or the connection is lost; the relay may have the
        event nevertheless. Raises RelayRefused when the relay refuses, with the prefix "error" when it may
        have meant another event.
        """
        frame = event_frame(event)
        await self._introduce()
        limit = self._limits.max_message_bytes
        if limit is not None and len(frame.encode("utf-8")) > limit:
            raise RelayRefused(f"{self.url} accepts messages of at most {limit} bytes", prefix="invalid")
        async with self._publishing if self._pending.one_at_a_time else contextlib.nullcontext():
            was_stranger = not self._auth.done
            ok = await self._sent(event, frame)
            # Some relays ask for authentication on connecting, and refuse as "restricted" what arrives before
            # it.
            too_early = ok.prefix == "restricted" and was_stranger and self._auth.requested
            if not ok.has_it and (ok.prefix == "auth-required" or too_early):
                await self._authenticate()
                ok = await self._sent(event, frame)
        if not ok.has_it:
            raise RelayRefused(f"{self.url}: {ok.text or 'refused without a reason'}", prefix=ok.prefix)

    async def _sent(self, event: Event, frame: str) -> Ok:
        """The relay's answer to an event. Raises RelayUnreachable."""
        notice_before = self._last_notice
        answer: Ok | RelayUnreachable
        with self._pending.expect(event.id) as pending:
            try:
                async with asyncio.timeout(self.timeout_s):
                    await self._send(frame)
                    answer = await pending
            except TimeoutError:
                why = f"{self.url}: no answer to an event within {self.timeout_s:g} s"
                if self._last_notice != notice_before:  # some refuse only with a NOTICE (@nostr-relay)
                    why += f"; its notice: {self._last_notice}"
                answer = RelayUnreachable(why)
        if isinstance(answer, RelayUnreachable):
            raise answer
        return answer

    async def _authenticate(self) -> None:
        """Authenticate (NIP-42), unless that is done. Raises RelayRefused, RelayUnreachable."""
        before = self._auth.count
        try:
            await self._auth.authenticate(self.timeout_s)
        except RelayRefused as error:
            raise RelayRefused(f"{self.url}: {error}", prefix=error.prefix) from None
        finally:
            if self._auth.count != before:  # the answers to a stranger may have been cut
                for id_ in (*self._subscriptions, *self._requests):
                    self._spawn(self._ask(self._subscriptions.get(id_) or self._requests[id_]))

    async def _introduce(self) -> None:
        """Authenticate if the relay asks for it. Never raises: a failure shows where it matters.

        nostr-relay punishes a stranger who does anything first: it answers after 2, 4, 8, 16 seconds and
        so on.
        """
        if (await self.informed()).supports_auth:
            await self._auth.wait_for_challenge(self._connected_at, self.timeout_s)
        if self._auth.requested:
            with contextlib.suppress(RelayError):
                await self._authenticate()

    # ------------------------------------------------------------------ asking

    async def fetch(
        self, filters: Iterable[Filter], take: OnEvents | None = None, *, page: int = PAGE
    ) -> FetchResult:
        """All stored events for the filters, verified, and whether that is everything. One fetch at a time.

        The filters should name authors: a relay can sign endless events of its own. `take` gets the events in
        batches, each event once. Without it they are in the result. `page` is how many are asked for at once.
        Whatever the relay does is told by the result and not raised.
        """
        events: list[Event] = []
        count = requests = 0

        async def keep(batch: list[Event]) -> None:
            events.extend(batch)

        async with self._fetching:
            try:
                await self.ready(self.timeout_s)
            except RelayUnreachable as error:
                return FetchResult(complete=False, reason=str(error).removeprefix(f"{self.url}: "))
            limits = await self.informed()
            with contextlib.suppress(RelayError):
                await (self._authenticate() if limits.auth_required else self._introduce())
            checker, parts = EventChecker(), list(filters)
            while True:
                before = self._auth.count
                result = FetchResult()
                ask = partial(self._answer, checker, take or keep, result)
                await paging.fetch(ask, parts, result, page=page, max_events=limits.max_events)
                await self._introduce()
                count, requests = count + result.count, requests + result.requests
                if self._auth.count == before:
                    break  # otherwise it may have hidden from a stranger what it shows to the author
        result.count, result.requests, result.events = count, requests, events
        return result

    async def _answer(
        self, checker: EventChecker, take: OnEvents, result: FetchResult, asked: Filter, limit: int
    ) -> Answer:
        """Ask for at most `limit` stored events, and again where that may help, until an answer is complete.

        Hands over what arrives, and counts it in the result. Raises RequestFailed, and what `take` raises.
        """
        time = asyncio.get_running_loop().time
        for tried in range(1, _MAX_TRIES + 1):
            result.requests += 1
            answer, until = Answer(), time() + _MAX_WAITS * self.timeout_s
            request = Request([asked], limit)
            self._requests[request.id] = request
            try:
                await self._ask(request)
                left_s = self.timeout_s
                while (bodies := await request.take(min(self.timeout_s, left_s))) is not None:
                    if fresh := await asyncio.to_thread(checker.check, bodies, [asked], answer):
                        result.count += len(fresh)
                        await take(fresh)
                    left_s = max(0.0, until - time())
            finally:
                del self._requests[request.id]
                if self.connected and (request.end is None or request.end.how not in ("closed", "lost")):
                    self._spawn(self._send(json.dumps(["CLOSE", request.id], separators=(",", ":"))))
            if request.oversize:
                answer.bad["oversize"] += request.oversize
            result.bad.update(answer.bad)
            end = request.end or End("lost")
            # A relay that ignores `limit` may serve more than we read. Its newest part is as good as a page.
            if end.how == "eose" or (end.how == "flooded" and answer.rows and answer.newest_first):
                return answer
            if tried == _MAX_TRIES:
                break
            try:
                match end.how, end.prefix:
                    case "lost", _:
                        await self.ready(self.timeout_s)
                    case "closed", "auth-required" if tried == 1:
                        await self._authenticate()
                    case "closed", "rate-limited":
                        await asyncio.sleep(self.timeout_s * tried / 10)
                    case _:
                        break
            except RelayError:
                break
        match end.how:
            case "closed":
                why = f"it refuses: {end.text}" if end.text else "it refuses without a reason"
            case "stalled":
                why = f"its answer did not end within {self.timeout_s:g} s"
            case "flooded":
                why = "it sends far more than we asked for"
            case _:
                why = end.text or "the connection was lost"
        raise RequestFailed(why, refused=end.how == "closed")

    async def subscribe(self, filters: Iterable[Filter], handler: Handler) -> Subscription:
        """Hand over every event for the filters, stored ones first, until the relay is closed."""
        subscription = Subscription(tuple(filters), handler)
        self._subscriptions[subscription.id] = subscription
        limit, count = self._limits.max_requests, len(self._subscriptions)
        if limit is not None and count >= limit:
            log.warning("%s allows %d requests at once, and %d are open", self.url, limit, count)
        if self.connected:
            await self._ask(subscription)
        return subscription

    async def _ask(self, one: Request | Subscription) -> None:
        """Send a REQ. Without a connection a request ends; a subscription waits for the next one."""
        try:
            await self._send(one.frame)
        except RelayUnreachable as error:
            if isinstance(one, Request):
                one.finish(End("lost", text=str(error)))

    async def _resume(self, subscription: Subscription, end: End) -> None:
        """Send a subscription again that the relay closed, after a pause that grows with each refusal."""
        subscription.refusals += 1
        if end.prefix == "auth-required" and subscription.refusals == 1:
            await self._authenticate()
        else:
            await asyncio.sleep(self._timing.pause_s(subscription.refusals, self._random()))
        if subscription.id in self._subscriptions:
            await self._ask(subscription)

    # ------------------------------------------------------------------ messages of the relay

    def _on_text(self, text: str) -> None:
        match parse(text):
            case ["EVENT", id_, body]:
                one = self._requests.get(id_) or self._subscriptions.get(id_)
                if len(body) > self._max_message:
                    self._bad["oversize"] += 1
                    if isinstance(one, Request):
                        one.oversize += 1  # counted there too, so that its page looks full
                elif one is not None:
                    one.put(body)
            case ["OK", str(id_), bool(accepted), *rest]:
                ok = Ok(id_.lower(), accepted, *reason(rest))
                self._is_useful |= ok.accepted
                if not (ok.id and self._auth.pending.resolve(ok)):
                    self._pending.resolve(ok)
            case ["EOSE", str(id_), *_]:
                if self._on_end(id_, End("eose")):
                    self._is_useful = True
                    self._last_eose_ms = self._now_ms()
            case ["CLOSED", str(id_), *rest]:
                prefix, why = reason(rest)
                if self._on_end(id_, End("closed", prefix, why)):
                    self._last_error = f"{self.url} closed a request: {why}"
            case ["NOTICE", str(notice), *_]:
                self._last_notice = shown = redact(one_line(notice)).text  # it may quote what somebody sent
                now = asyncio.get_running_loop().time()
                if now - self._notice_logged_at >= _NOTICE_INTERVAL_S:
                    self._notice_logged_at = now
                    log.warning("notice from %s: %s", self.url, shown)
            case ["AUTH", str(challenge), *_] if 0 < len(challenge) <= MAX_CHALLENGE:
                # Only the first one is answered at once, later ones when something is refused: otherwise a
                # relay could make us sign as fast as it sends.
                if self._auth.challenged(challenge):
                    self._spawn(self._authenticate())
            case _:
                self._bad["nonsense"] += 1

    def _on_end(self, id_: str, end: End) -> bool:
        """The relay ended a request, or has sent all stored events. Returns whether the request is ours."""
        if (request := self._requests.get(id_)) is not None:
            request.finish(end)
        elif (subscription := self._subscriptions.get(id_)) is not None:
            if end.how == "eose":
                subscription.on_eose()
            else:
                self._spawn(self._resume(subscription, end))
        else:
            return False
        return True


# ----------------------------------------------------------------------
# The address of a relay: which ones are accepted, and how one is shown. Nothing is connected.


def relay_url(text: str) -> yarl.URL:
    """The address of a relay. Raises SettingsError, which never shows a password."""
    try:
        url = yarl.URL(text.strip())
        if url.scheme in ("ws", "wss") and url.host and url.port:
            return url.with_fragment(None)
    except ValueError:
        pass
    # What is shown has no password in it, and no key that was set in the wrong place.
    shown = without_login(text.strip())[:80] if "://" in text else "…"
    raise SettingsError(f"NOSTR_RELAYS={shown}: not the address of a relay; use ws://… or wss://…")


def check_private(addresses: Iterable[str]) -> None:
    """Raise SettingsError unless all these relays are on this machine or in a private network.

    Only the addresses are looked at. Other relays never get plaintext.
    """
    for url in map(relay_url, addresses):
        host = url.host or ""
        # A name is not resolved: what it stands for can change after the check.
        try:
            is_private = ipaddress.ip_address(host).is_private
        except ValueError:
            is_private = host == "localhost" or host.endswith(".localhost")
        if not is_private:
            raise SettingsError(
                f"NOSTR_ALLOW_PLAINTEXT=1: {display_url(url)} is not on this machine or in a private "
                "network; remove it from NOSTR_RELAYS, or set NOSTR_ALLOW_PLAINTEXT=0"
            )


def display_url(url: yarl.URL) -> str:
    """An address as it may be logged and shown: without user, password and query, which can hold secrets."""
    return str(url.with_user(None).with_query(None))

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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import yarl

from discoclaw.core.errors import NostrError, RelayError, RelayRefused, RelayUnreachable, SettingsError
from discoclaw.core.redact import redact, without_login
from discoclaw.nostr.event import MAX_EVENT_BYTES, Event, Keys
from discoclaw.nostr.relays import paging
from discoclaw.nostr.relays.connection import Connection, Timing
from discoclaw.nostr.relays.paging import PAGE, FetchResult, OnEvents
from discoclaw.nostr.relays.protocol import (
    AUTH_KIND,
    MAX_CHALLENGE,
    End,
    Filter,
    Handler,
    Ok,
    Request,
    Subscription,
    auth_frame,
    event_frame,
    one_line,
    parse,
    reason,
)

log = logging.getLogger(__name__)

_NOTICE_INTERVAL_S: Final = 60.0
"""Least time between two notices of a relay in the log: a relay decides how many it sends."""


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    """The state of a connection. Times are in ms since 1970.

    `name` and `url` identify the relay, `address` is where it is now. `in_flight` counts events that wait for
    their OK. `bad` counts what the relay sent and we dropped, by kind.
    """

    name: str
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


class Relay(Connection):
    """A relay. Raises SettingsError for a wrong address.

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
        super().__init__(address, self.url, timing, random)
        self._max_message = max_message
        self._now_ms = now_ms
        # User and password are for a proxy in front of the relay, which doesn't know them (NIP-42).
        self._auth = Authentication(keys, str(address.with_user(None)), self.send, now_ms)
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
    def auths(self) -> int:
        """How often we have authenticated, on all connections."""
        return self._auth.count

    async def close(self) -> None:
        subscriptions, self._subscriptions = list(self._subscriptions.values()), {}
        await asyncio.gather(super().close(), *(one.close() for one in subscriptions), return_exceptions=True)

    def on_connected(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each new connection."""
        self._callbacks.append(callback)

    def status(self) -> ConnectionStatus:
        return ConnectionStatus(
            name=self.name,
            url=self.url,
            address=self.address,
            connected_since_ms=self._connected_since_ms,
            last_eose_ms=self._last_eose_ms,
            last_error=self.last_error,
            last_notice=self._last_notice,
            authenticated=self._auth.done,
            in_flight=len(self._pending),
            bad=sum((one.bad for one in self._subscriptions.values()), self._bad),
        )

    def on_open(self) -> None:
        self._connected_since_ms = self._now_ms()
        self._connected_at = asyncio.get_running_loop().time()
        for subscription in self._subscriptions.values():
            self.spawn(self._ask(subscription))
        for callback in self._callbacks:
            try:
                callback()
            except Exception:  # a named edge: a fault of a listener must not cost us the connection
                log.exception("a listener for connections to %s failed", self.name)

    def on_close(self) -> None:
        """Requests for stored events end; subscriptions wait for the next connection."""
        self._connected_since_ms = None
        error = RelayUnreachable(f"{self.name}: the connection was lost")
        self._pending.fail(error)
        self._auth.reset(error)
        for request in self._requests.values():
            request.finish(End("lost"))

    # ------------------------------------------------------------------ publishing and authenticating

    async def publish(self, event: Event) -> None:
        """Send an event, and return when the relay has it. Many may be in flight at once.

        Raises RelayUnreachable when no answer comes in time or the connection is lost; the relay may have the
        event nevertheless. Raises RelayRefused when the relay refuses, with the prefix "error" when it may
        have meant another event.
        """
        frame = event_frame(event)
        await self.introduce()
        limit = self.limits.max_message_bytes
        if limit is not None and len(frame.encode("utf-8")) > limit:
            raise RelayRefused(f"{self.name} accepts messages of at most {limit} bytes", prefix="invalid")
        async with self._publishing if self._pending.one_at_a_time else contextlib.nullcontext():
            was_stranger = not self._auth.done
            ok = await self._send(event, frame)
            # Some relays ask for authentication on connecting, and refuse as "restricted" what arrives before
            # it.
            too_early = ok.prefix == "restricted" and was_stranger and self._auth.requested
            if not _has_it(ok) and (ok.prefix == "auth-required" or too_early):
                await self.authenticate()
                ok = await self._send(event, frame)
        if not _has_it(ok):
            raise RelayRefused(f"{self.name}: {ok.text or 'refused without a reason'}", prefix=ok.prefix)

    async def _send(self, event: Event, frame: str) -> Ok:
        """The relay's answer to an event. Raises RelayUnreachable."""
        notice_before = self._last_notice
        answer: Ok | RelayUnreachable
        with self._pending.expect(event.id) as pending:
            try:
                async with asyncio.timeout(self.timeout_s):
                    await self.send(frame)
                    answer = await pending
            except TimeoutError:
                why = f"{self.name}: no answer to an event within {self.timeout_s:g} s"
                if self._last_notice != notice_before:  # some refuse only with a NOTICE (@nostr-relay)
                    why += f"; its notice: {self._last_notice}"
                answer = RelayUnreachable(why)
        if isinstance(answer, RelayUnreachable):
            raise answer
        return answer

    async def authenticate(self) -> None:
        """Authenticate (NIP-42), unless that is done. Raises RelayRefused, RelayUnreachable."""
        before = self._auth.count
        try:
            await self._auth.authenticate(self.timeout_s)
        except RelayRefused as error:
            raise RelayRefused(f"{self.name}: {error}", prefix=error.prefix) from None
        finally:
            if self._auth.count != before:  # the answers to a stranger may have been cut
                for id_ in (*self._subscriptions, *self._requests):
                    self.spawn(self._ask(self._subscriptions.get(id_) or self._requests[id_]))

    async def introduce(self) -> None:
        """Authenticate if the relay asks for it. Never raises: a failure shows where it matters.

        nostr-relay punishes a stranger who does anything first: it answers after 2, 4, 8, 16 seconds and
        so on.
        """
        if (await self.informed()).supports_auth:
            await self._auth.wait_for_challenge(self._connected_at, self.timeout_s)
        if self._auth.requested:
            with contextlib.suppress(RelayError):
                await self.authenticate()

    # ------------------------------------------------------------------ asking

    async def fetch(
        self, filters: Iterable[Filter], take: OnEvents | None = None, *, page: int = PAGE
    ) -> FetchResult:
        """All stored events for the filters, verified, and whether that is everything. One fetch at a time.

        `take` gets the events in batches, each event once. Without it they are in the result. Whatever the
        relay does is told by the result and not raised.
        """
        async with self._fetching:
            try:
                await self.ready(self.timeout_s)
            except RelayUnreachable as error:
                return FetchResult(complete=False, reason=str(error).removeprefix(f"{self.name}: "))
            limits = await self.informed()
            with contextlib.suppress(RelayError):
                await (self.authenticate() if limits.auth_required else self.introduce())
            return await paging.fetch(self, filters, take, page=page, max_events=limits.max_events)

    @contextlib.asynccontextmanager
    async def request(self, filters: Sequence[Filter], limit: int) -> AsyncIterator[Request]:
        """One REQ for at most `limit` stored events; `fetch` sends them until nothing is left.

        On leaving, the relay is told to stop. Without a connection the request ends as "lost".
        """
        request = Request(filters, limit)
        self._requests[request.id] = request
        try:
            await self._ask(request)
            yield request
        finally:
            del self._requests[request.id]
            if request.end is None or request.end.how not in ("closed", "lost"):
                self._stop(request.id)

    async def subscribe(self, filters: Iterable[Filter], handler: Handler) -> Subscription:
        """Hand over every event for the filters, stored ones first, until `unsubscribe`."""
        subscription = Subscription(tuple(filters), handler)
        self._subscriptions[subscription.id] = subscription
        limit, count = self.limits.max_requests, len(self._subscriptions)
        if limit is not None and count >= limit:
            log.warning("%s allows %d requests at once, and %d are open", self.name, limit, count)
        if self.connected:
            await self._ask(subscription)
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription. Once this returns, its handler is not called any more."""
        if self._subscriptions.pop(subscription.id, None) is not None:
            self._stop(subscription.id)
        await subscription.close()

    async def _ask(self, one: Request | Subscription) -> None:
        """Send a REQ. Without a connection a request ends; a subscription waits for `on_open`."""
        try:
            await self.send(one.frame)
        except RelayUnreachable as error:
            if isinstance(one, Request):
                one.finish(End("lost", text=str(error)))

    def _stop(self, id_: str) -> None:
        """Tell the relay that a request is over."""
        if self.connected:
            self.spawn(self.send(json.dumps(["CLOSE", id_], separators=(",", ":"))))

    async def _resume(self, subscription: Subscription, end: End) -> None:
        """Send a subscription again that the relay closed, after a pause that grows with each refusal."""
        subscription.refusals += 1
        if end.prefix == "auth-required" and subscription.refusals == 1:
            await self.authenticate()
        else:
            await asyncio.sleep(self.pause_s(subscription.refusals))
        if subscription.id in self._subscriptions:
            await self._ask(subscription)

    # ------------------------------------------------------------------ messages of the relay

    def on_text(self, text: str) -> None:
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
                self.is_useful |= ok.accepted
                if not (ok.id and self._auth.pending.resolve(ok)):
                    self._pending.resolve(ok)
            case ["EOSE", str(id_), *_]:
                if self._on_end(id_, End("eose")):
                    self.is_useful = True
                    self._last_eose_ms = self._now_ms()
            case ["CLOSED", str(id_), *rest]:
                prefix, why = reason(rest)
                if self._on_end(id_, End("closed", prefix, why)):
                    self.last_error = f"{self.name} closed a request: {why}"
            case ["NOTICE", str(notice), *_]:
                self._last_notice = shown = redact(one_line(notice)).text  # it may quote what somebody sent
                now = asyncio.get_running_loop().time()
                if now - self._notice_logged_at >= _NOTICE_INTERVAL_S:
                    self._notice_logged_at = now
                    log.warning("notice from %s: %s", self.name, shown)
            case ["AUTH", str(challenge), *_] if 0 < len(challenge) <= MAX_CHALLENGE:
                # Only the first one is answered at once, later ones when something is refused: otherwise a
                # relay could make us sign as fast as it sends.
                if self._auth.challenged(challenge):
                    self.spawn(self.authenticate())
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
                self.spawn(self._resume(subscription, end))
        else:
            return False
        return True


def _has_it(ok: Ok) -> bool:
    """Whether the relay has the event. "duplicate" with false means that it had it before (NIP-01)."""
    return ok.accepted or ok.prefix == "duplicate"


# ---------------------------------------------------------------------- authentication

_PATIENCE: Final = 0.1
"""The share of the time limit to wait for what may never come.

That is a challenge on connecting, which some relays send only when they refuse something, and the OK for our
answer, which nostr-relay never sends."""


class Authentication:
    """The authentication on the current connection to the relay at `url`.

    `count` is how often we have authenticated, on all connections. `pending` has the OKs for our answers.
    """

    def __init__(
        self, keys: Keys, url: str, send: Callable[[str], Awaitable[None]], now_ms: Callable[[], int]
    ) -> None:
        self.count = 0
        self.pending = PendingOks()
        self._keys = keys
        self._url = url
        self._send = send
        self._now_ms = now_ms
        self._challenge = ""
        self._answered = ""
        self._challenged = asyncio.Event()
        self._lock = asyncio.Lock()

    @property
    def requested(self) -> bool:
        """Whether the relay has sent a challenge."""
        return bool(self._challenge)

    @property
    def done(self) -> bool:
        """Whether we have answered the relay's last challenge."""
        return bool(self._challenge) and self._answered == self._challenge

    def reset(self, error: RelayUnreachable) -> None:
        """The connection is lost: a challenge counts only on its own connection."""
        self._challenge = self._answered = ""
        self._challenged.clear()
        self.pending.fail(error)

    async def wait_for_challenge(self, connected_at: float, timeout_s: float) -> None:
        """Give the relay time for its challenge.

        Most send it right after connecting (`connected_at`, loop time).
        """
        left_s = connected_at + timeout_s * _PATIENCE - asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, left_s)):
                await self._challenged.wait()

    def challenged(self, challenge: str) -> bool:
        """Remember a challenge. Returns whether it is the first one on this connection."""
        first = not self._challenge
        self._challenge = challenge
        self._challenged.set()
        return first

    async def authenticate(self, timeout_s: float) -> None:
        """Answer the current challenge, unless that was done or tried. Waits for a challenge and for the OK.

        Raises RelayRefused and RelayUnreachable.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._challenged.wait()
        except TimeoutError:
            why = "it requires authentication, but sends no challenge"
            raise RelayRefused(why, prefix="auth-required") from None
        async with self._lock:
            if self._answered == self._challenge:
                return
            # Before the answer is sent, so that a rejected proof is not tried again for the same challenge.
            self._answered = self._challenge
            tags = [["relay", self._url], ["challenge", self._challenge]]
            try:
                event = self._keys.sign(AUTH_KIND, "", tags, self._now_ms() // 1000)
            except NostrError as error:
                why = f"its challenge cannot be signed: {error}"
                raise RelayRefused(why, prefix="auth-required") from None
            with self.pending.expect(event.id) as pending:
                await self._send(auth_frame(event))
                self.count += 1
                done, _ = await asyncio.wait({pending}, timeout=timeout_s * _PATIENCE)
                answer = pending.result() if done else None
            if isinstance(answer, RelayUnreachable):
                raise answer
            if answer is not None and not answer.accepted:
                raise RelayRefused(f"it rejects our authentication: {answer.text}", prefix="restricted")


# The events that were sent and wait for their OK (NIP-01), and which event an OK is about.

PendingOk = asyncio.Future[Ok | RelayUnreachable]

_MAX_LATE: Final = 1_000


class PendingOks:
    """The OKs that are outstanding on one connection."""

    def __init__(self) -> None:
        self.one_at_a_time = False
        """The relay has refused something without saying what, so it must get one event at a time."""
        self._waiting: dict[str, list[PendingOk]] = {}
        self._late: dict[str, None] = {}
        """Ids of events that timed out: their OK may still come. Oldest first."""

    def __len__(self) -> int:
        return len(self._waiting)

    @contextlib.contextmanager
    def expect(self, id_: str) -> Iterator[PendingOk]:
        """A future for the OK of the event with this id, while the context is open."""
        answer: PendingOk = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(id_, [])
        waiting.append(answer)
        try:
            yield answer
        finally:
            waiting.remove(answer)
            if not waiting:
                self._waiting.pop(id_, None)
            # Without an answer: it may still come, and must not count for another event then.
            if not answer.done() or answer.cancelled():
                answer.cancel()
                self._late[id_] = None
                if len(self._late) > _MAX_LATE:
                    del self._late[next(iter(self._late))]

    def resolve(self, ok: Ok) -> bool:
        """Give an OK to whoever waits for it. Returns False if nobody does."""
        if ok.id:
            self._late.pop(ok.id, None)
            return self._settle(ok.id, ok)
        if ok.accepted:
            return False
        self.one_at_a_time = True
        if self._late:
            del self._late[next(iter(self._late))]
            return True
        # "error" means "try again": the others must not be given up for what one of them did wrong.
        answer = ok if len(self._waiting) == 1 else Ok("", False, "error", ok.text)
        for id_ in list(self._waiting):
            self._settle(id_, answer)
        return True

    def fail(self, error: RelayUnreachable) -> None:
        """The connection is lost, so no OK will come."""
        self._late.clear()
        for id_ in list(self._waiting):
            self._settle(id_, error)

    def _settle(self, id_: str, result: Ok | RelayUnreachable) -> bool:
        waiting = [answer for answer in self._waiting.get(id_, ()) if not answer.done()]
        for answer in waiting:
            answer.set_result(result)
        return bool(waiting)


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

"""One relay: connected for as long as it is wanted, and nothing that it says is believed unchecked (NIP-01).

    relay = Relay("wss://relay.example", keys)
    relay.start()
    await relay.publish(event)                              until the relay has answered for this very event
    fetched = await relay.fetch([Filter(authors=(me,))])    all it has, and whether that is all
    await relay.subscribe([Filter(...)], handle)            what comes from now on, over reconnects
    await relay.close()

One task holds the connection and reads; it waits for nobody. Times are in seconds.

Who we are is proved as soon as a relay asks, and again where it refuses for that (`proof`): some relays
hide from a stranger, without a word, what they show to us. A relay that refuses without saying which event it
means (nostr-relay) gets one event at a time from then on.
"""

import asyncio
import contextlib
import logging
import random as dice
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from discoclaw.core.errors import RelayError, RelayRefused, RelayUnreachable
from discoclaw.core.redact import redact
from discoclaw.nostr.event import MOST_BYTES, Event, Keys
from discoclaw.nostr.relays import paging
from discoclaw.nostr.relays.answers import Answers
from discoclaw.nostr.relays.info import plain, relay_url, shown
from discoclaw.nostr.relays.paging import PAGE, Fetched, Take
from discoclaw.nostr.relays.proof import Proof
from discoclaw.nostr.relays.streams import End, Handler, Request, Subscription
from discoclaw.nostr.relays.upkeep import KeptLink, Patience
from discoclaw.nostr.relays.wire import (
    Challenge,
    Closed,
    Eose,
    Filter,
    Notice,
    Ok,
    Row,
    close_frame,
    event_frame,
    parse,
    request_frame,
)

log = logging.getLogger(__name__)

_QUIET_S: Final = 60.0
"""Between two of a relay's notices in the log."""


@dataclass(frozen=True, slots=True)
class RelayStatus:
    """How it stands with a relay; times in milliseconds. `bad` counts what was dropped of what it sent."""

    name: str
    url: str
    address: str
    connected_since_ms: int | None
    last_eose_ms: int | None
    last_error: str
    last_notice: str
    proved: bool
    in_flight: int
    bad: Mapping[str, int]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Relay:
    """A relay. Raises SettingsError for a wrong address.

    `name` is what it is called and known by everywhere, as its `url` too: its address without credentials,
    unless given, for one whose address changes.
    `max_message` is the most characters of an event that are decoded. For the times see `Patience`.
    """

    def __init__(
        self,
        url: str,
        keys: Keys,
        *,
        name: str | None = None,
        timeout_s: float = 10.0,
        backoff_s: float = 1.0,
        most_backoff_s: float = 300.0,
        heartbeat_s: float = 30.0,
        max_message: int = 2 * MOST_BYTES,
        random: Callable[[], float] = dice.random,
        now_ms: Callable[[], int] = _now_ms,
    ) -> None:
        address = relay_url(url)
        self.address = shown(address)
        self.url = self.name = name or self.address
        self.timeout_s = timeout_s
        self._max_message = max_message
        self._now_ms = now_ms
        patience = Patience(timeout_s, backoff_s, most_backoff_s, heartbeat_s)
        self._link = KeptLink(address, self.name, self, patience, random)
        self._proof = Proof(keys, plain(address), self._link.send, now_ms)
        self._callbacks: list[Callable[[], None]] = []
        self._answers = Answers()
        self._alone = asyncio.Lock()
        self._fetching = asyncio.Lock()
        self._requests: dict[str, Request] = {}
        self._live: dict[str, Subscription] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._bad: Counter[str] = Counter()
        self._since_ms: int | None = None
        self._up_at = 0.0
        self._eose_ms: int | None = None
        self._last_notice = ""
        self._notice_logged_at = float("-inf")

    # the connection

    @property
    def connected(self) -> bool:
        return self._link.up

    @property
    def proofs(self) -> int:
        """How often we have proved who we are."""
        return self._proof.given

    def start(self) -> None:
        """Connect in the background, and stay connected until `close`."""
        self._link.start()

    async def close(self) -> None:
        """Let go of the relay, within two seconds. What waits for it gets RelayUnreachable."""
        readers, self._readers = list(self._readers.values()), {}
        self._live.clear()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(self._link.close(), *readers, return_exceptions=True)

    async def ready(self, timeout_s: float | None = None) -> None:
        """Wait for a connection. Raises RelayUnreachable with the last error when there is none in time."""
        await self._link.ready(timeout_s)

    async def reconnected(self) -> bool:
        """Whether there is a connection, or comes to be one in the time an answer may take."""
        try:
            await self._link.ready(self.timeout_s)
        except RelayUnreachable:
            return False
        return True

    def on_connected(self, callback: Callable[[], None]) -> None:
        """Call back each time a connection was made."""
        self._callbacks.append(callback)

    def status(self) -> RelayStatus:
        bad = self._bad.copy()
        for subscription in self._live.values():
            bad.update(subscription.bad)
        return RelayStatus(
            name=self.name,
            url=self.url,
            address=self.address,
            connected_since_ms=self._since_ms,
            last_eose_ms=self._eose_ms,
            last_error=self._link.last_error,
            last_notice=self._last_notice,
            proved=self._proof.done,
            in_flight=len(self._answers),
            bad=bad,
        )

    def came_up(self) -> None:
        self._since_ms = self._now_ms()
        self._up_at = asyncio.get_running_loop().time()
        for subscription in self._live.values():
            self._link.spawn(self._ask(subscription))
        for callback in self._callbacks:
            try:
                callback()
            except Exception:  # it is somebody else's, and the connection is not to suffer from it
                log.exception("what follows a connection with %s failed", self.name)

    def went_down(self) -> None:
        self._since_ms = None
        gone = RelayUnreachable(f"{self.name}: the connection broke off")
        self._answers.lose(gone)
        self._proof.reset(gone)
        for request in self._requests.values():
            request.finish(End("lost"))

    # what we want of it

    async def publish(self, event: Event) -> None:
        """Send an event, and return when the relay has it. Many may be on their way at once.

        Raises RelayUnreachable when no answer comes in time or the connection ends: the relay may have it
        all the same. Raises RelayRefused when it says no, with the prefix "error" where that may be about
        another event.
        """
        frame = event_frame(event)
        await self.introduce()
        most = self._link.limits.message
        if most is not None and len(frame.encode("utf-8")) > most:
            raise RelayRefused(f"{self.name} takes messages of {most} bytes at most", prefix="invalid")
        async with self._alone if self._answers.unnamed else contextlib.nullcontext():
            stranger = not self._proof.done
            ok = await self._sent(event, frame)
            # Some greet us with the question who we are, and meanwhile refuse as if we had answered.
            in_between = ok.prefix == "restricted" and stranger and self._proof.wanted
            if not _took(ok) and (ok.prefix == "auth-required" or in_between):
                await self.authenticate()
                ok = await self._sent(event, frame)
        if not _took(ok):
            raise RelayRefused(f"{self.name}: {ok.text or 'it does not say why'}", prefix=ok.prefix)

    async def _sent(self, event: Event, frame: str) -> Ok:
        """The relay's answer. Raises RelayUnreachable."""
        noticed = self._last_notice
        with self._answers.expect(event.id) as answer:
            try:
                async with asyncio.timeout(self.timeout_s):
                    await self._link.send(frame)
                    said = await answer
            except TimeoutError:
                why = f"no answer to an event within {self.timeout_s:g} s"
                said = RelayUnreachable(f"{self.name}: {why}{self._since(noticed)}")
        if isinstance(said, RelayUnreachable):
            raise said
        return said

    def _since(self, noticed: str) -> str:
        """What the relay said to people meanwhile; some refuse that way."""
        return "" if self._last_notice == noticed else f"; it says: {self._last_notice}"

    async def authenticate(self) -> None:
        """Prove who we are, unless that is done. Raises RelayRefused, RelayUnreachable."""
        try:
            before = self._proof.given
            await self._proof.give(self.timeout_s)
        except RelayRefused as error:
            raise RelayRefused(f"{self.name}: {error}", prefix=error.prefix) from None
        finally:
            if self._proof.given != before:
                self._ask_all()  # what we asked as a stranger

    async def introduce(self) -> None:
        """Prove who we are, if the relay asks; whether that was good enough it says where it matters.

        nostr-relay takes it ill when a stranger does anything first: it pauses, ever longer.
        """
        if (await self._link.informed()).asks:
            await self._proof.asked(self._up_at, self.timeout_s)
        if self._proof.wanted:
            with contextlib.suppress(RelayError):
                await self.authenticate()

    async def fetch(
        self, filters: Iterable[Filter], take: Take | None = None, *, page: int = PAGE
    ) -> Fetched:
        """All that the relay has for the filters, and whether it is all; one fetch at a time.

        `take` gets the events in batches, each event once; without it they are in the result. They are
        verified, and asked for. Never raises for what the relay does: the result tells.
        """
        async with self._fetching:
            try:
                await self._link.ready(self.timeout_s)
            except RelayUnreachable as error:
                return Fetched(complete=False, reason=str(error).removeprefix(f"{self.name}: "))
            limits = await self._link.informed()
            with contextlib.suppress(RelayError):
                await (self.authenticate() if limits.auth else self.introduce())
            return await paging.fetch(self, filters, take, page=page, most_rows=limits.rows)

    @contextlib.asynccontextmanager
    async def request(self, filters: Sequence[Filter], limit: int) -> AsyncIterator[Request]:
        """Ask for what is stored; `fetch` does it until nothing is left."""
        request = Request(secrets.token_hex(8), filters, limit)
        self._requests[request.id] = request
        try:
            await self._ask(request)
            yield request
        finally:
            del self._requests[request.id]
            if self.connected and (request.end is None or request.end.how not in ("closed", "lost")):
                self._link.spawn(self._link.send(close_frame(request.id)))

    async def subscribe(self, filters: Iterable[Filter], handler: Handler) -> Subscription:
        """Hand over every event for the filters, those that are stored first, until `unsubscribe`."""
        subscription = Subscription(secrets.token_hex(8), tuple(filters), handler)
        self._live[subscription.id] = subscription
        self._readers[subscription.id] = asyncio.create_task(subscription.run())
        most = self._link.limits.requests
        if most is not None and len(self._live) >= most:
            log.warning("%s answers %d requests at once, and %d stand", self.name, most, len(self._live))
        if self.connected:
            await self._ask(subscription)
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Nothing more is handed over once this returns."""
        reader = self._readers.pop(subscription.id, None)
        if self._live.pop(subscription.id, None) is not None and self.connected:
            self._link.spawn(self._link.send(close_frame(subscription.id)))
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    def _ask_all(self) -> None:
        standing: list[Request | Subscription] = [*self._live.values(), *self._requests.values()]
        for one in standing:
            self._link.spawn(self._ask(one))

    async def _ask(self, one: Request | Subscription) -> None:
        """Send a request; a broken connection tells it so, or asks again when it is back."""
        try:
            await self._link.send(request_frame(one.id, one.asked))
        except RelayUnreachable as error:
            if isinstance(one, Request):
                one.finish(End("lost", text=str(error)))

    async def _resume(self, subscription: Subscription, end: End) -> None:
        """Ask again for what the relay ended, after a while."""
        subscription.refusals += 1
        if end.prefix == "auth-required" and subscription.refusals == 1:
            await self.authenticate()
        else:
            await asyncio.sleep(self._link.pause_s(subscription.refusals))
        if subscription.id in self._live:
            await self._ask(subscription)

    # what it says

    def heard(self, text: str) -> None:
        match parse(text):
            case Row(id_, body):
                self._hear_row(id_, body)
            case Ok() as ok:
                self._link.useful |= ok.accepted
                if not self._proof.hear(ok):
                    self._answers.hear(ok)
            case Eose(id_):
                self._hear_end(id_, End("eose"))
            case Closed(id_, prefix, why):
                self._hear_end(id_, End("closed", prefix, why))
            case Notice(notice):
                self._hear_notice(notice)
            case Challenge(challenge):
                # Later ones wait until something is refused: nobody makes us sign as fast as they ask.
                if self._proof.challenge(challenge):
                    self._link.spawn(self.authenticate())
            case None:
                self._bad["nonsense"] += 1

    def _hear_row(self, id_: str, body: str) -> None:
        one = self._requests.get(id_) or self._live.get(id_)
        if len(body) > self._max_message:
            self._bad["oversize"] += 1
            if isinstance(one, Request):
                one.oversize += 1
        elif one is not None:
            one.put(body)

    def _hear_end(self, id_: str, end: End) -> None:
        one = self._requests.get(id_) or self._live.get(id_)
        if one is None:
            return
        if end.how == "eose":
            self._link.useful = True
            self._eose_ms = self._now_ms()
        else:
            self._link.last_error = f"{self.name} closed a request: {end.text}"
        if isinstance(one, Request):
            one.finish(end)
        elif end.how == "eose":
            one.stored_sent()
        else:
            self._link.spawn(self._resume(one, end))

    def _hear_notice(self, notice: str) -> None:
        self._last_notice = notice = redact(notice).text  # it may repeat what somebody sent
        now = asyncio.get_running_loop().time()
        if now - self._notice_logged_at >= _QUIET_S:
            self._notice_logged_at = now
            log.warning("%s says: %s", self.name, notice)


def _took(ok: Ok) -> bool:
    """Whether the relay has the event now, or had it already."""
    return ok.accepted or ok.prefix == "duplicate"

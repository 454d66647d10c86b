"""What client and relay say to each other (NIP-01, NIP-42): messages, filters, authentication, and requests
until their end.

A relay is not trusted. `parse` takes any text and never raises. It leaves an event undecoded, so that nothing
large is decoded before its size is known and somebody waits for it. Events then wait in the bounded buffer
of their request. `EventChecker` lets through those that decode, match the request, and have a correct id and
signature. Knows nothing about the connection, nor what events mean.
"""

import asyncio
import contextlib
import json
import logging
import re
import secrets
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from discoclaw.core.errors import BadEvent, NostrError, RelayRefused, RelayUnreachable
from discoclaw.core.text import clip, collapse
from discoclaw.nostr.event import Event, Keys, verified

log = logging.getLogger(__name__)

AUTH_KIND: Final = 22_242
"""Kind of the event that answers a challenge (NIP-42)."""
MAX_OTHER_FRAME: Final = 65_536
"""Longest message that is decoded, in characters, apart from events."""
MAX_CHALLENGE: Final = 1_024
_MAX_SHOWN: Final = 200

_EVENT = re.compile(r'\s*\[\s*"EVENT"\s*,\s*"([^"\\]{1,64})"\s*,')
_PREFIX = re.compile(r"([a-z][a-z-]{0,30}): ?")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events to ask for. An empty field matches anything. Times are in whole seconds.

    Only `#d` is asked for among tags: relays index single-letter tags only, so `hk` or `ts` would match
    nothing. NIP-01 includes events of exactly `until`, but nostr-relay leaves them out.
    """

    kinds: tuple[int, ...] = ()
    authors: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    d: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        named = {"ids": self.ids, "authors": self.authors, "kinds": self.kinds, "#d": self.d}
        filters_json: dict[str, Any] = {name: list(values) for name, values in named.items() if values}
        bounds = {"since": self.since, "until": self.until, "limit": limit}
        return filters_json | {name: value for name, value in bounds.items() if value is not None}

    def mismatch(self, event: Event) -> str | None:
        """Why the event doesn't match: "author", "kind" or "filter"; None if it does."""
        if self.authors and event.pubkey not in self.authors:
            return "author"
        if self.kinds and event.kind not in self.kinds:
            return "kind"
        other = (self.ids and event.id not in self.ids) or (self.d and event.d not in self.d)
        return "filter" if other or not self.covers(event.created_at) else None

    def covers(self, at: int) -> bool:
        """Whether a time (s) is within `since` and `until`."""
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)


@dataclass(frozen=True, slots=True)
class Ok:
    """The answer to an event that we sent. `id` is "" when the relay doesn't say which one (nostr-relay)."""

    id: str
    accepted: bool
    prefix: str
    text: str

    @property
    def has_it(self) -> bool:
        """Whether the relay has the event. "duplicate" with false means that it had it before (NIP-01)."""
        return self.accepted or self.prefix == "duplicate"


def parse(text: str) -> list[Any]:
    """A relay's message: its name and what follows, of which nothing is checked. [] if it isn't a message.

    An event is not decoded: ["EVENT", request, its JSON].
    """
    # Recognised by its start alone, without decoding the event.
    if found := _EVENT.match(text):
        return ["EVENT", found[1], text[found.end() :].rstrip()[:-1]]
    try:
        message = json.loads(text) if len(text) <= MAX_OTHER_FRAME else None
    except (ValueError, RecursionError):
        return []
    return message if isinstance(message, list) and message[:1] != ["EVENT"] else []


def reason(rest: Sequence[object]) -> tuple[str, str]:
    """The machine-readable prefix before the colon, or "", and the whole text as one line."""
    text = rest[0] if rest and isinstance(rest[0], str) else ""
    found = _PREFIX.match(text)
    return (found[1] if found else "", one_line(text))


def one_line(text: str) -> str:
    """A relay's text, safe to log and show: one short line without control or invisible characters."""
    shown = text[: 4 * _MAX_SHOWN]
    kept = "".join(" " if unicodedata.category(char) in _HIDDEN else char for char in shown)
    return clip(collapse(kept), _MAX_SHOWN)


def event_frame(event: Event) -> str:
    return f'["EVENT",{event.encode()}]'


def auth_frame(event: Event) -> str:
    return f'["AUTH",{event.encode()}]'


# ---------------------------------------------------------------------- checking events


@dataclass(slots=True)
class Answer:
    """What arrived for a request, once it is checked. `rows` counts the good events, which `ids` names.

    `fresh` counts those of them not seen before. `bad` counts the others: "garbage", "forged", "author",
    "kind", "filter" or "oversize". `oldest` and `newest` are times in s.
    """

    rows: int = 0
    fresh: int = 0
    oldest: int = 0
    newest: int = 0
    newest_first: bool = True
    ids: set[str] = field(default_factory=set)
    bad: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """How many events there were, the bad ones included."""
        return self.rows + self.bad.total()

    def add(self, id_: str, at: int) -> None:
        """Count a good event."""
        self.newest_first &= not self.rows or at <= self.oldest
        self.oldest = min(self.oldest, at) if self.rows else at
        self.newest = max(self.newest, at)
        self.rows += 1
        self.ids.add(id_)


class EventChecker:
    """Remembers the events it has seen; with `max_known`, only that many.

    It remembers the time of each, so that a forged copy with a known id cannot claim another time.
    """

    def __init__(self, max_known: int | None = None) -> None:
        # As bytes, a third of the memory of hex: a recovery holds a hundred thousand.
        self._known: dict[bytes, int] = {}
        self._max_known = max_known

    def check(self, bodies: Sequence[str], filters: Sequence[Filter], answer: Answer) -> list[Event]:
        """Check events, given as JSON, that arrived for these filters, and count them in the answer.

        Returns the good ones not seen before, in their order. Blocking; not thread-safe.
        """
        fresh = []
        for body in bodies:
            found = self._checked(body, filters, answer)
            if isinstance(found, Event):
                fresh.append(found)
            elif found is not None:
                answer.bad[found] += 1
        answer.fresh += len(fresh)
        return fresh

    def _checked(self, body: str, filters: Sequence[Filter], answer: Answer) -> Event | str | None:
        """A good event that is new, None for one that was seen before, or why it is bad."""
        try:
            value = json.loads(body)
            id_ = value["id"]
            key = bytes.fromhex(id_)
        except (ValueError, TypeError, LookupError, RecursionError):
            return "garbage"
        if len(id_) != 64 or len(key) != 32:
            return "garbage"
        # A known id is not verified again: pages overlap, and after a reconnect everything arrives twice.
        if (known_at := self._known.get(key)) is not None:
            if not any(filter_.covers(known_at) for filter_ in filters):
                return "filter"
            answer.add(key.hex(), known_at)
            return None
        if filters and all(one.authors and value.get("pubkey") not in one.authors for one in filters):
            return "author"  # before the signature, which is expensive to check
        try:
            event = verified(value)
        except BadEvent:
            return "forged"
        reasons = {filter_.mismatch(event) for filter_ in filters}
        if reasons and None not in reasons:  # then the reason is that of the filter that comes closest
            return next(why for why in ("filter", "kind", "author") if why in reasons)
        self._known[key] = event.created_at
        if self._max_known is not None and len(self._known) > self._max_known:
            del self._known[next(iter(self._known))]
        answer.add(event.id, event.created_at)
        return event


# ---------------------------------------------------------------------- requests

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


class _Buffered:
    """A REQ, and a bounded buffer between the connection, which never waits, and the reader of its events."""

    def __init__(self, filters: Sequence[Filter], limit: int | None, max_events: int) -> None:
        self.id = secrets.token_hex(8)
        self.filters = tuple(filters)
        asked = [filter_.to_json(limit) for filter_ in filters]
        self.frame = json.dumps(["REQ", self.id, *asked], ensure_ascii=False, separators=(",", ":"))
        self._bodies: list[str] = []
        self._characters = 0
        self._max_events = max_events
        self._arrived = asyncio.Event()

    def _keep(self, body: str) -> bool:
        """Add an event, as JSON. Returns False, and drops it, if the buffer is full."""
        if len(self._bodies) >= self._max_events or self._characters + len(body) > _MAX_CHARACTERS:
            return False
        self._bodies.append(body)
        self._characters += len(body)
        self._arrived.set()
        return True

    async def _batch(self) -> list[str]:
        """Wait, and return the next events. Empty if something other than an event has arrived."""
        await self._arrived.wait()
        taken, self._bodies = self._bodies[:BATCH], self._bodies[BATCH:]
        self._characters -= sum(map(len, taken))
        if not self._bodies:
            self._arrived.clear()
        return taken


class Request(_Buffered):
    """One REQ for stored events, until its end. `limit` is the number of events asked for.

    `oversize` counts events that were too large to decode.
    """

    def __init__(self, filters: Sequence[Filter], limit: int) -> None:
        self.end: End | None = None
        self.oversize = 0
        self._max_rows = _MAX_LIMITS * limit + 16
        self._rows = 0
        super().__init__(filters, limit, self._max_rows)

    def put(self, body: str) -> None:
        if self.end is None:
            self._rows += 1
            if self._rows > self._max_rows or not self._keep(body):
                self.finish(End("flooded"))

    def finish(self, end: End) -> None:
        if self.end is None:
            self.end = end
            self._arrived.set()

    async def take(self, silence_s: float) -> list[str] | None:
        """The next events, as JSON; None after the last. Ends as "stalled" after `silence_s` without any."""
        while self.end is None or self._bodies:
            try:
                async with asyncio.timeout(silence_s):
                    if taken := await self._batch():
                        return taken
            except TimeoutError:
                self.finish(End("stalled"))
        return None


class Subscription(_Buffered):
    """A REQ for stored and future events. Its handler gets each good, matching event, one after the other.

    After a reconnect all stored events arrive again; those among the last 4,096 seen are left out. A
    handler's error is logged, and the next event is handled nevertheless. If events arrive faster than
    they are handled, those beyond 5,000 are dropped and counted in `bad` as "flood".
    """

    def __init__(self, filters: Sequence[Filter], handler: Handler) -> None:
        super().__init__(filters, None, _MAX_UNREAD)
        self.caught_up = asyncio.Event()
        """Set once all stored events have been handled for the first time."""
        self.bad: Counter[str] = Counter()
        self.refusals = 0
        """How often in a row the relay has closed it."""
        self._eose_received = False
        self._handler = handler
        self._checker = EventChecker(_MAX_KNOWN)
        self._reader = asyncio.create_task(self._read())

    def put(self, body: str) -> None:
        if not self._keep(body):
            self.bad["flood"] += 1

    def on_eose(self) -> None:
        """The relay has sent all stored events."""
        self._eose_received = True
        self.refusals = 0
        self._arrived.set()

    async def close(self) -> None:
        """Stop. Once this returns, the handler is not called any more."""
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            if bodies := await self._batch():
                answer = Answer()
                fresh = await asyncio.to_thread(self._checker.check, bodies, self.filters, answer)
                self.bad.update(answer.bad)
                for event in fresh:
                    try:
                        await self._handler(event)
                    except Exception:  # a named edge: one bad event must not end the subscription
                        log.exception("cannot handle an event of kind %d", event.kind)
            if self._eose_received and not self._bodies:
                self.caught_up.set()


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

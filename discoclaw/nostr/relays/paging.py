"""Everything that a relay has for some filters, page by page, and an honest word on whether it is everything.

A relay gives the newest first and only so many at once (500 is common), so older ones are asked for with
`until`, down to an answer that shows there are none. What makes that hard, and is met here:

- how many it gives is seldom said, so an answer is taken for whole only where the relay has shown that it
  gives more than that, or where nothing older is there;
- more events of one second than it gives: a larger limit, then one kind or author at a time; what can not
  be had that way makes the result incomplete;
- relays that leave out events of exactly `until`, that give the oldest first, that ignore `limit`;
- events that nobody asked for, in an answer so large that they may have displaced others.

An answer without an EOSE is never taken for whole. Knows nothing about the connection.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from discoclaw.core.errors import RelayError
from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.check import Checked, Checker
from discoclaw.nostr.relays.streams import End, Request
from discoclaw.nostr.relays.wire import Filter

Take = Callable[[list[Event]], Awaitable[None]]

PAGE: Final = 500
_LARGER: Final = 5_000
"""Asked for when one second holds more than a page."""
_CHUNK: Final = 200
"""Ids or identifiers in one request."""
_TRIES: Final = 3
_LEAST_CAP: Final = 50
"""An answer of fewer events is not suspected of being cut off; no relay is known that gives so few."""
_MOST_WAITS: Final = 12
"""Time limits that one answer may take, while it trickles."""


class Asker(Protocol):
    """The connection, as paging sees it. `proofs` counts how often it has proved who we are."""

    timeout_s: float

    @property
    def proofs(self) -> int: ...

    def request(self, filters: Sequence[Filter], limit: int) -> AbstractAsyncContextManager[Request]:
        """Ask; the request is closed on leaving. Without a connection it ends at once, as "lost"."""

    async def reconnected(self) -> bool:
        """Wait for a connection, so long as an answer is waited for."""

    async def introduce(self) -> None:
        """Prove who we are, if the relay has asked."""

    async def authenticate(self) -> None:
        """Prove who we are. Raises RelayError."""


@dataclass(slots=True)
class Fetched:
    """What came of it. `complete`: the relay has given everything that it shows to have.

    `reason` says why not. `bad` counts what was dropped: "garbage", "forged", "author", "kind", "filter",
    "oversize". `count` is the number of good events; they are in `events`, if nobody took them.
    """

    complete: bool = True
    reason: str = ""
    count: int = 0
    requests: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)

    def fail(self, reason: str) -> None:
        """It is not everything; the first reason stands."""
        self.complete = False
        self.reason = self.reason or reason


async def fetch(
    relay: Asker,
    filters: Iterable[Filter],
    take: Take | None = None,
    *,
    page: int = PAGE,
    most_rows: int | None = None,
) -> Fetched:
    """All that the relay has for the filters, which should name authors: a relay can sign events without end.

    `take` gets each batch as it comes, verified, each event once.

    `page` events are asked for at once; `most_rows` is what the relay says it gives. Raises only what `take`
    raises.
    """
    parts = [part for filter_ in filters for part in _parts(filter_)]
    checker = Checker()
    kept: list[Event] = []
    count = requests = 0
    while True:
        before = relay.proofs
        paging = _Paging(relay, checker, take or _keeper(kept), min(page, most_rows or page), most_rows)
        await paging.run(parts)
        result = paging.result
        await relay.introduce()
        count, requests = count + result.count, requests + result.requests
        if relay.proofs == before:
            break  # else it may have hidden from a stranger what it shows to us
    result.count, result.requests, result.events = count, requests, kept
    return result


def _keeper(kept: list[Event]) -> Take:
    async def keep(events: list[Event]) -> None:
        kept.extend(events)

    return keep


def _parts(filter_: Filter) -> Iterator[Filter]:
    """The filter, with only so many ids or identifiers at once as a relay will read."""
    if filter_.ids:
        for ids in _chunks(filter_.ids):
            yield replace(filter_, ids=ids)
    elif filter_.d:
        for d in _chunks(filter_.d):
            yield replace(filter_, d=d)
    else:
        yield filter_


def _chunks(values: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]


def _narrower(filter_: Filter) -> list[Filter]:
    """Filters that together ask for the same, each for less; none, where there is no way."""
    if len(filter_.kinds) > 1:
        return [replace(filter_, kinds=(kind,)) for kind in filter_.kinds]
    if len(filter_.authors) > 1:
        return [replace(filter_, authors=(author,)) for author in filter_.authors]
    if len(filter_.d) > 1:
        half = len(filter_.d) // 2
        return [replace(filter_, d=filter_.d[:half]), replace(filter_, d=filter_.d[half:])]
    return []


class _Broken(Exception):
    """A request has no usable answer."""

    def __init__(self, end: End) -> None:
        super().__init__(end.how)
        self.end = end


@dataclass(slots=True)
class _Page:
    """One answer. `total` counts everything in it, `rows` the good events, `fresh` those not known before."""

    total: int = 0
    rows: int = 0
    fresh: int = 0
    bad: int = 0
    oldest: int = 0
    newest: int = 0
    newest_first: bool = True
    ids: set[str] = field(default_factory=set)

    def add(self, checked: Checked) -> None:
        for time in checked.times:
            self.newest_first &= not self.rows or time <= self.oldest
            self.oldest = min(self.oldest, time) if self.rows else time
            self.newest = max(self.newest, time)
            self.rows += 1
        self.ids |= checked.ids
        self.fresh += len(checked.fresh)
        self.bad += checked.bad.total()
        self.total = self.rows + self.bad


class _Paging:
    def __init__(self, relay: Asker, checker: Checker, take: Take, limit: int, most_rows: int | None) -> None:
        self.result = Fetched()
        self._relay = relay
        self._checker = checker
        self._take = take
        self._limit = limit
        self._larger = min(_LARGER, most_rows or _LARGER)
        self._most = 0
        """Events of the largest answer so far: the relay gives that many."""
        self._cap: int | None = None
        """Events of an answer that was cut off by the relay."""
        self._leaves_out_until = False

    async def run(self, filters: Sequence[Filter]) -> None:
        for filter_ in filters:
            try:
                await (self._by_id(filter_) if filter_.ids else self._all(filter_))
            except _Broken as broken:
                self.result.fail(_reason(broken.end, self._relay.timeout_s))
                if broken.end.how != "closed":
                    return  # another filter would have to wait as long, for nothing

    async def _by_id(self, filter_: Filter) -> None:
        missing = set(filter_.ids)
        while missing:
            page = await self._page(replace(filter_, ids=tuple(sorted(missing))), len(missing))
            if not page.ids & missing:
                return
            missing -= page.ids

    async def _all(self, filter_: Filter) -> None:
        newest = await self._down(filter_, filter_.since)
        first = _Page(total=self._most)
        # A relay that gives the oldest first, against NIP-01, has more above what it gave.
        while newest is not None:
            since = newest
            above = await self._page(replace(filter_, since=since), self._limit)
            if above.fresh:
                self._was_cut(first)
            else:
                if self._had_room(above, self._limit):
                    return
                since, second = since + 1, above
                above = await self._page(replace(filter_, since=since), self._limit)
                if not above.rows:
                    return
                self._was_cut(second)
                await self._crowded(filter_, newest, second.total)
            newest = max(above.newest, await self._down(filter_, since) or 0)

    async def _down(self, filter_: Filter, since: int | None) -> int | None:
        """All events since a time (s), newest first. The newest time among them; None if there are none."""
        at, sure = filter_.until, False  # sure: an event of that very second is known
        before: _Page | None = None
        newest: int | None = None
        while True:
            page = await self._page(replace(filter_, since=since, until=self._bound(at)), self._limit)
            if sure and at is not None and page.newest < at and not self._leaves_out_until:
                self._leaves_out_until = True
                continue
            if not page.rows:
                return newest
            newest = max(newest or 0, page.newest)
            if before is not None and (page.fresh or at is None or page.oldest < at):
                self._was_cut(before)
            if at is None or page.oldest < at:
                if self._had_room(page, self._limit):
                    return newest
                at, sure, before = page.oldest, True, page
                continue
            older = await self._one_second(filter_, since, at, page)
            if older is None:
                return newest
            sure, before = older.oldest < at, older
            at = min(older.oldest, at - 1)  # whatever it gives, this has an end

    async def _one_second(self, filter_: Filter, since: int | None, at: int, page: _Page) -> _Page | None:
        """`page` has only events of second `at`: see that it has all of them, and what is before."""
        if self._had_room(page, self._limit):
            return None
        older = _Page()
        if at > (since or 0):
            older = await self._page(replace(filter_, since=since, until=self._bound(at - 1)), self._limit)
        if older.rows:
            self._was_cut(page)
        if older.rows or self._is_suspicious(page, self._limit):
            await self._crowded(filter_, at, page.total)
        return older if older.rows else None

    async def _crowded(self, filter_: Filter, at: int, given: int) -> None:
        """A second of which the relay gave so many events, and may have more."""
        page = await self._page(self._second(filter_, at), self._larger)
        if given < page.total < self._larger:
            return
        narrower = _narrower(filter_)
        if not narrower:
            self.result.fail(f"it gives {page.total} events of one second, and may have more of it")
        for part in narrower:
            page = await self._page(self._second(part, at), self._larger)
            if page.total >= given:
                await self._crowded(part, at, page.total)

    def _second(self, filter_: Filter, at: int) -> Filter:
        return replace(filter_, since=at, until=self._bound(at))

    def _bound(self, at: int | None) -> int | None:
        """What to ask for with `until`, so that events of second `at` come too."""
        return at + 1 if at is not None and self._leaves_out_until else at

    def _was_cut(self, page: _Page) -> None:
        if page.total < self._limit:
            self._cap = min(self._cap or page.total, page.total)

    def _had_room(self, page: _Page, limit: int) -> bool:
        """Whether the relay has given more at other times, and so has given all here."""
        return page.total < min(limit, self._most)

    def _is_suspicious(self, page: _Page, limit: int) -> bool:
        """Whether an answer may have been cut off."""
        known = self._cap if self._cap is not None else max(self._most, _LEAST_CAP)
        return page.total >= min(limit, known)

    async def _page(self, asked: Filter, limit: int) -> _Page:
        for tried in range(1, _TRIES + 1):
            page = _Page()
            end = await self._ask(asked, limit, page)
            usable = end.how == "flooded" and page.rows and page.newest_first
            if end.how == "eose" or usable:
                self._most = max(self._most, page.total)
                if page.bad and self._is_suspicious(page, limit):
                    self.result.fail(f"it sends what nobody asked for: {page.bad} of {page.total} events")
                return page
            if tried == _TRIES or not await self._may_try_again(end, tried):
                break
        raise _Broken(end)

    async def _ask(self, asked: Filter, limit: int, page: _Page) -> End:
        self.result.requests += 1
        time = asyncio.get_running_loop().time
        async with self._relay.request([asked], limit) as request:
            until = time() + _MOST_WAITS * self._relay.timeout_s
            while True:
                bodies = await request.take(min(self._relay.timeout_s, max(0.0, until - time())))
                if bodies is None:
                    break
                await self._read(bodies, asked, page)
        if request.oversize:
            self.result.bad["oversize"] += request.oversize
            page.bad += request.oversize
            page.total += request.oversize
        return request.end or End("lost")

    async def _read(self, bodies: Sequence[str], asked: Filter, page: _Page) -> None:
        checked = await asyncio.to_thread(self._checker.check, bodies, [asked])
        page.add(checked)
        self.result.bad.update(checked.bad)
        if checked.fresh:
            self.result.count += len(checked.fresh)
            await self._take(checked.fresh)

    async def _may_try_again(self, end: End, tried: int) -> bool:
        match end.how, end.prefix:
            case "lost", _:
                return await self._relay.reconnected()
            case "closed", "auth-required" if tried == 1:
                try:
                    await self._relay.authenticate()
                except RelayError:
                    return False
                return True
            case "closed", "rate-limited":
                await asyncio.sleep(self._relay.timeout_s * tried / 10)
                return True
        return False


def _reason(end: End, timeout_s: float) -> str:
    match end.how:
        case "closed":
            return f"it refuses: {end.text}" if end.text else "it refuses, and does not say why"
        case "stalled":
            return f"no end of its answer came within {timeout_s:g} s"
        case "flooded":
            return "it sends far more than it was asked for"
    return end.text or "the connection broke off"

"""Fetches all stored events for some filters, page by page, and finds out whether that is everything.

A relay serves the newest events first, and only so many at once (500 is common). Older ones are asked for
with `until`, down to an answer which shows that none are left. What makes this hard, and is handled here:

- Relays seldom say how many events they serve at once. So an answer counts as complete only if the relay has
  served larger ones before, or if nothing older is there.
- More events in one second than the relay serves. Then we ask with a larger limit, then for one kind or
  author at a time. If that isn't enough, the result is incomplete.
- Relays that leave out events of exactly `until`, serve the oldest first, or ignore `limit`.
- Events that we didn't ask for, in an answer so large that they may have displaced others.

An answer without EOSE never counts as complete: nostr-sdk's own client returns an empty list for a relay
that it cannot reach, and "empty" must never mean "no memory". Negentropy (NIP-77) is not used: two of
three relays lack it, and nostr-sdk's fails from 400 events on. Knows nothing about the connection.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.protocol import Answer, Filter


@dataclass(slots=True)
class FetchResult:
    """The result of a fetch. `complete`: the relay has shown that there is nothing more.

    `reason` says why it isn't. `bad` counts dropped events: "garbage", "forged", "author", "kind", "filter",
    "oversize". `count` is the number of good events. They are in `events` unless a callback took them.
    """

    complete: bool = True
    reason: str = ""
    count: int = 0
    requests: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)

    def fail(self, reason: str) -> None:
        """Mark it as incomplete. The first reason is kept: later ones are often its consequences."""
        self.complete = False
        self.reason = self.reason or reason


OnEvents = Callable[[list[Event]], Awaitable[None]]
"""Takes a batch of verified events."""

PAGE: Final = 500
"""Events asked for at once; LocalRelay serves no more, whatever the limit."""
LARGE_PAGE: Final = 5_000
"""Asked for when one second holds more than a page."""
_MIN_CAP: Final = 50
"""A shorter answer doesn't count as cut off: we know no relay that serves fewer at once."""


Ask = Callable[[Filter, int], Awaitable[Answer]]
"""Asks for at most so many events, and returns what arrived, down to its end. Raises RequestFailed."""


class RequestFailed(Exception):
    """A request got no usable answer, for this reason; `refused` if others may get one."""

    def __init__(self, why: str, *, refused: bool) -> None:
        super().__init__(why)
        self.refused = refused


async def fetch(
    ask: Ask, filters: Iterable[Filter], result: FetchResult, *, page: int = PAGE, max_events: int | None
) -> None:
    """Ask for all stored events for the filters, and say in the result whether they came.

    `page` is how many are asked for at once, `max_events` how many the relay says it serves at once. Raises
    only what `ask` raises besides RequestFailed.
    """
    paging = _Paging(ask, result, min(page, max_events or page), max_events)
    for filter_ in [part for one in filters for part in split(one)]:
        try:
            await paging.run(filter_)
        except RequestFailed as failed:
            result.fail(str(failed))
            if not failed.refused:
                return  # the next filter would only wait for the same timeout


class _Paging:
    """One pass over all filters. It learns how much the relay serves at once from the answers themselves."""

    def __init__(self, ask: Ask, result: FetchResult, limit: int, max_events: int | None) -> None:
        self._ask = ask
        self._result = result
        self._limit = limit
        self._larger = min(LARGE_PAGE, max_events or LARGE_PAGE)
        self._largest = 0
        """Size of the largest answer so far: the relay serves at least that many at once."""
        self._cap: int | None = None
        """Size of the smallest answer that is known to be cut off by the relay; None if there was none."""
        self._leaves_out_until = False

    async def run(self, filter_: Filter) -> None:
        missing = set(filter_.ids)
        while missing:
            page = await self._page(replace(filter_, ids=tuple(sorted(missing))), len(missing))
            # Some relays cut long answers, so what is missing is asked for again, while that helps.
            if not page.ids & missing:
                return
            missing -= page.ids
        if filter_.ids:
            return
        newest = await self._page_down(filter_, filter_.since)
        first = self._largest
        # A relay that serves the oldest first, against NIP-01, has newer events than those it served.
        while newest is not None:
            since = newest
            above = await self._page(replace(filter_, since=since), self._limit)
            if above.fresh:
                self._was_cut(first)
            else:
                if self._had_room(above):
                    return
                since, second = since + 1, above
                above = await self._page(replace(filter_, since=since), self._limit)
                if not above.rows:
                    return
                self._was_cut(second.total)
                await self._full_second(filter_, newest, second.total)
            newest = max(above.newest, await self._page_down(filter_, since) or 0)

    async def _page_down(self, filter_: Filter, since: int | None) -> int | None:
        """Fetch all events since a time (s), newest first.

        Returns their newest time; None if there are none.
        """
        at, sure = filter_.until, False  # sure: we know an event of exactly this second
        before: Answer | None = None
        newest: int | None = None
        while True:
            page = await self._page(replace(filter_, since=since, until=self._bound(at)), self._limit)
            # An event of this second exists and wasn't served: the relay leaves out those of exactly `until`.
            if sure and at is not None and page.newest < at and not self._leaves_out_until:
                self._leaves_out_until = True
                continue
            if not page.rows:
                return newest
            newest = max(newest or 0, page.newest)
            # Something older came, so the page before was not everything.
            if before is not None and (page.fresh or at is None or page.oldest < at):
                self._was_cut(before.total)
            if at is None or page.oldest < at:
                if self._had_room(page):
                    return newest
                at, sure, before = page.oldest, True, page
                continue
            older = await self._one_second(filter_, since, at, page)
            if older is None:
                return newest
            sure, before = older.oldest < at, older
            at = min(older.oldest, at - 1)  # always moves down, whatever the relay serves, so the loop ends

    async def _one_second(self, filter_: Filter, since: int | None, at: int, page: Answer) -> Answer | None:
        """`page` has only events of second `at`.

        Make sure that these are all, and return the page before it.
        """
        if self._had_room(page):
            return None
        older = Answer()
        if at > (since or 0):
            older = await self._page(replace(filter_, since=since, until=self._bound(at - 1)), self._limit)
        if older.rows:
            self._was_cut(page.total)
        if older.rows or self._is_suspicious(page, self._limit):
            await self._full_second(filter_, at, page.total)
        return older if older.rows else None

    async def _full_second(self, filter_: Filter, at: int, given: int) -> None:
        """Fetch the rest of a second of which the relay served `given` events and may have more.

        Here paging by `until` alone would stall: with 700 events in a second it fetched 500 of 1,400.
        """
        page = await self._page(self._second(filter_, at), self._larger)
        if given < page.total < self._larger:
            return
        parts = narrower(filter_)
        if not parts:
            self._result.fail(f"it serves {page.total} events of one second, and may have more of them")
        for part in parts:
            page = await self._page(self._second(part, at), self._larger)
            if page.total >= given:
                await self._full_second(part, at, page.total)

    def _second(self, filter_: Filter, at: int) -> Filter:
        return replace(filter_, since=at, until=self._bound(at))

    def _bound(self, at: int | None) -> int | None:
        """The `until` that includes events of second `at`.

        nostr-relay leaves out events of exactly `until`.
        """
        return at + 1 if at is not None and self._leaves_out_until else at

    def _was_cut(self, total: int) -> None:
        """Learn from an answer of so many events that turned out not to be everything."""
        if total < self._limit:
            self._cap = min(self._cap or total, total)

    def _had_room(self, page: Answer) -> bool:
        """Whether an answer is complete for sure: the relay has served larger ones."""
        return page.total < min(self._limit, self._largest)

    def _is_suspicious(self, page: Answer, limit: int) -> bool:
        """Whether an answer is as large as one that was, or may have been, cut off."""
        known = self._cap if self._cap is not None else max(self._largest, _MIN_CAP)
        return page.total >= min(limit, known)

    async def _page(self, asked: Filter, limit: int) -> Answer:
        """One answer. Raises RequestFailed."""
        page = await self._ask(asked, limit)
        self._largest = max(self._largest, page.total)
        # Foreign events may have displaced ours only in an answer that is as long as it can be.
        bad = page.bad.total()
        if bad and self._is_suspicious(page, limit):
            self._result.fail(f"it sends events we did not ask for: {bad} of {page.total}")
        return page


# ---------------------------------------------------------------------- narrower filters

CHUNK: Final = 200
"""Ids or identifiers in one request: relays refuse long lists."""


def split(filter_: Filter) -> Iterator[Filter]:
    """The filter, in parts of at most `CHUNK` ids or identifiers."""
    for start in range(0, len(filter_.ids or filter_.d) or 1, CHUNK):
        if filter_.ids:
            yield replace(filter_, ids=filter_.ids[start : start + CHUNK])
        else:
            yield replace(filter_, d=filter_.d[start : start + CHUNK])


def narrower(filter_: Filter) -> list[Filter]:
    """Filters that each ask for less: one kind, else one author, else half of the identifiers.

    Empty if the filter can't be split.
    """
    if len(filter_.kinds) > 1:
        return [replace(filter_, kinds=(kind,)) for kind in filter_.kinds]
    if len(filter_.authors) > 1:
        return [replace(filter_, authors=(author,)) for author in filter_.authors]
    if len(filter_.d) > 1:
        half = len(filter_.d) // 2
        return [replace(filter_, d=filter_.d[:half]), replace(filter_, d=filter_.d[half:])]
    return []

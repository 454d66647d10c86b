"""Collects everything of ours from relays: fetched, selected, decrypted, parsed. Nothing is written.

CPU work is done in batches, in threads, so that a running bot keeps answering.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from discoclaw.core.errors import RelayUnreachable
from discoclaw.core.subject import group_of, user_of
from discoclaw.nostr.event import Event
from discoclaw.nostr.incoming.read_views import ViewReader
from discoclaw.nostr.incoming.rebuild import RebuiltLedger, rebuild_ledgers
from discoclaw.nostr.incoming.report import Progress, RelayReport
from discoclaw.nostr.incoming.restore_views import RecoveredViews
from discoclaw.nostr.incoming.selection import (
    DecryptedEvent,
    EventCollector,
    Selection,
    UnreadableEvent,
    decrypted,
    is_tombstone,
)
from discoclaw.nostr.incoming.units import UnitLookup, with_units
from discoclaw.nostr.names import CHOICES, GROUP, INVENTORY, LEDGER, NPUB, Names
from discoclaw.nostr.relays.pages import FetchResult
from discoclaw.nostr.relays.paging import OnEvents
from discoclaw.nostr.relays.wire import Filter
from discoclaw.nostr.schemas import APP, DELETE, OWN_KINDS, Address, Codec

BATCH = 256
"""Events that are decrypted at once: about a twentieth of a second."""
OWN_PREFIXES = (LEDGER, INVENTORY, CHOICES, NPUB, GROUP)
"""Prefixes of our addresses of kind 30078. Others belong to another program with the same key (NIP-78)."""

OnProgress = Callable[[Progress], None]
"""Called often while a recovery runs."""


class ReadableRelay(Protocol):
    """What a recovery needs of a relay."""

    @property
    def url(self) -> str: ...

    async def fetch(self, filters: Iterable[Filter], take: OnEvents | None = None) -> FetchResult:
        """All stored events in verified batches. The result says whether that is everything. Never raises."""
        ...


class Stage:
    """Reports the progress of one stage, with its rate per second."""

    def __init__(self, name: str, on_progress: OnProgress | None, total: int | None = None) -> None:
        self._name, self._on_progress, self._total = name, on_progress, total
        self._time = asyncio.get_running_loop().time
        self._since = self._time()
        self.done = 0
        self.add(0)

    def add(self, number: int) -> None:
        """Report that so many more are done."""
        self.done += number
        if self._on_progress is not None:
            took = self._time() - self._since
            rate = self.done / took if took > 0 else 0.0
            self._on_progress(Progress(self._name, self.done, self._total, rate))


@dataclass(frozen=True, slots=True)
class RecoveredContent:
    """The content of the selected events. `units` has the unit of each address, as far as it is known.

    `usable` are the records and views, `inventory` the events that list what was published.
    """

    usable: tuple[DecryptedEvent, ...]
    tombstones: tuple[DecryptedEvent, ...]
    inventory: tuple[DecryptedEvent, ...]
    ledgers: dict[str, RebuiltLedger]
    views: RecoveredViews
    units: dict[Address, str]
    unreadable: tuple[UnreadableEvent, ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that was found, and on which relays."""

    collector: EventCollector
    relays: tuple[RelayReport, ...]
    selection: Selection
    content: RecoveredContent

    @property
    def deleted_addresses(self) -> set[Address]:
        """The addresses at which something was deleted, by a request or a tombstone."""
        deleted = {(one.kind, one.d) for one in self.selection.deleted}
        return deleted | {one.address for one in self.content.tombstones}


async def gather(
    relays: Sequence[ReadableRelay],
    codec: Codec,
    names: Names,
    *,
    subjects: Sequence[str] = (),
    tombstones: Iterable[Event] = (),
    on_progress: OnProgress | None = None,
) -> Gathered:
    """Fetch and parse everything of ours.

    `subjects` are those with a ledger on this disk. `tombstones` are our own tombstones and deletion
    requests: what they delete must not come back from a relay that ignored them. Raises RelayUnreachable,
    with each relay and its reason, when none can be read.
    """
    collector = EventCollector(codec.keys.public)
    fetched = await _fetched(relays, collector, on_progress)
    results = list(zip(relays, fetched, strict=True))
    if not any(result.complete or result.count for result in fetched):
        why = "; ".join(f"{relay.url}: {result.reason}" for relay, result in results)
        raise RelayUnreachable(f"no relay could be read, so nothing was done: {why or 'none is configured'}")
    collector.add_known(tombstones)
    selection = await asyncio.to_thread(collector.select)
    current = [event.id for event in selection.current]
    reports = tuple(_relay_report(relay, result, collector, current) for relay, result in results)
    events, unreadable = await _decrypted(codec, selection, on_progress)
    content = await asyncio.to_thread(_content, events, unreadable, names, subjects)
    return Gathered(collector, reports, selection, content)


def _content(
    events: Iterable[DecryptedEvent],
    unreadable: Iterable[UnreadableEvent],
    names: Names,
    subjects: Sequence[str],
) -> RecoveredContent:
    """Sort events by what they are, and parse them. Blocking."""
    tombstones: list[DecryptedEvent] = []
    inventory: list[DecryptedEvent] = []
    records: list[DecryptedEvent] = []
    views: list[DecryptedEvent] = []
    for one in events:
        is_app = one.event.kind == APP
        if is_tombstone(one):
            tombstones.append(one)
        elif is_app and one.event.d.startswith(INVENTORY):
            inventory.append(one)
        else:
            (records if is_app and one.event.d.startswith(LEDGER) else views).append(one)
    found, unusable = rebuild_ledgers(records, names)
    subjects = [*found, *subjects]
    reader = ViewReader(names, people=_ids(user_of, subjects), channels=_ids(group_of, subjects))
    unusable += reader.read(views)
    skipped = {one.event.id for one in unusable}
    usable = tuple(one for one in (*records, *views) if one.event.id not in skipped)
    stated = reader.units | {
        one.address: ledger.subject for ledger in found.values() for one in ledger.events
    }
    known = UnitLookup(names, {*subjects, *reader.units.values()}, reader.views.summaries)
    units = with_units(stated, (one.address for one in (*usable, *tombstones)), known)
    return RecoveredContent(
        usable, tuple(tombstones), tuple(inventory), found, reader.views, units, (*unreadable, *unusable)
    )


def _ids(id_of: Callable[[str], str | None], subjects: Iterable[str]) -> list[str]:
    return [key for subject in subjects if (key := id_of(subject)) is not None]


async def _fetched(
    relays: Sequence[ReadableRelay], collector: EventCollector, on_progress: OnProgress | None
) -> list[FetchResult]:
    stage = Stage("fetching", on_progress)
    filters = [Filter(kinds=(DELETE, *OWN_KINDS), authors=(collector.public,))]

    async def one(relay: ReadableRelay) -> FetchResult:
        async def take(events: list[Event]) -> None:
            stage.add(collector.add(relay.url, events))

        return await relay.fetch(filters, take)

    return list(await asyncio.gather(*map(one, relays)))


async def _decrypted(
    codec: Codec, selection: Selection, on_progress: OnProgress | None
) -> tuple[list[DecryptedEvent], list[UnreadableEvent]]:
    own = [one for one in selection.current if one.kind != APP or one.d.startswith(OWN_PREFIXES)]
    stage = Stage("reading", on_progress, len(own))
    found: list[DecryptedEvent] = []
    unreadable: list[UnreadableEvent] = []
    for start in range(0, len(own), BATCH):
        batch = own[start : start + BATCH]
        good, bad = await asyncio.to_thread(decrypted, codec, batch)
        found += good
        unreadable += bad
        stage.add(len(batch))
    return found, unreadable


def _relay_report(
    relay: ReadableRelay, result: FetchResult, collector: EventCollector, current: Sequence[str]
) -> RelayReport:
    events, missing = collector.count_of(relay.url), collector.missing(relay.url, current)
    return RelayReport(relay.url, events, result.complete, result.reason, missing, result.bad)

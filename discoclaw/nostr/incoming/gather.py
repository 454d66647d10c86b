"""Collects everything of ours from relays: fetched, selected, decrypted, parsed. Nothing is written.

Views become the values that our files hold. CPU work is done in batches, in threads, so that a running bot
keeps answering.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from discoclaw.core.errors import RelayUnreachable, UnreadableContent
from discoclaw.core.subject import group_of, user_of
from discoclaw.nostr.documents import DocumentCodec, FoundDocuments, UnitLookup
from discoclaw.nostr.event import Event
from discoclaw.nostr.incoming.report import Progress, RelayReport
from discoclaw.nostr.ledgers import RebuiltLedger, rebuild_ledgers
from discoclaw.nostr.names import CHOICES, GROUP, INVENTORY, LEDGER, NPUB, Names
from discoclaw.nostr.relays.paging import FetchResult
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.schemas import (
    APP,
    DELETE,
    OWN_KINDS,
    Address,
    Codec,
    DecryptedEvent,
    UnreadableEvent,
    deleted_until,
    supersedes,
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The events that count, of all that relays served: the newest version at each address.

    `current` are the events that count, `deleted` those that would count if we had not deleted them.

    `older` are other versions that relays still serve, `deletions` our own deletion requests.
    """

    current: tuple[Event, ...]
    deleted: tuple[Event, ...]
    older: tuple[Event, ...]
    deletions: tuple[Event, ...]


@dataclass(slots=True)
class EventCollector:
    """Collects what relays serve, in any order. `public` is the bot's public key in hex."""

    public: str
    _newest: dict[Address, Event] = field(default_factory=dict)
    _older: list[Event] = field(default_factory=list)
    _deletions: dict[str, Event] = field(default_factory=dict)
    _relays: list[str] = field(default_factory=list)
    _served: dict[str, int] = field(default_factory=dict)
    """The relays that served an event, by its id, as bits: a recovery holds 100,000 events."""

    def add(self, relay: str | None, events: Iterable[Event]) -> int:
        """Add events of a relay, or of the outbox (None). Returns how many are ours and new on relays."""
        if relay is not None and relay not in self._relays:
            self._relays.append(relay)
        bit, new = self._bit(relay), 0
        for event in events:
            known = self._served.get(event.id, 0)
            if (known or self._keep(event)) and bit:
                new += not known
                self._served[event.id] = known | bit
        return new

    def _bit(self, relay: str | None) -> int:
        return 1 << self._relays.index(relay) if relay in self._relays else 0

    def _keep(self, event: Event) -> bool:
        """Keep an event if it is ours. Returns whether it is."""
        if event.pubkey != self.public:
            return False
        if event.kind == DELETE:
            self._deletions[event.id] = event
            return True
        if event.kind not in OWN_KINDS or not event.d:
            return False
        address = (event.kind, event.d)
        known = self._newest.get(address)
        if known is None or supersedes(event, known):
            self._newest[address] = event
        if known is not None:
            self._older.append(known if self._newest[address] is event else event)
        return True

    @property
    def count(self) -> int:
        """The number of different events of ours, older versions included."""
        return len(self._served)

    def count_of(self, relay: str) -> int:
        """How many of these a relay served."""
        bit = self._bit(relay)
        return sum(bool(bits & bit) for bits in self._served.values())

    def missing(self, relay: str, ids: Iterable[str]) -> int:
        """How many of the events with these ids a relay did not serve."""
        bit = self._bit(relay)
        return sum(not self._served.get(event_id, 0) & bit for event_id in ids)

    def relays_of(self, event_id: str) -> set[str]:
        """The relays that served an event."""
        bits = self._served.get(event_id, 0)
        return {relay for number, relay in enumerate(self._relays) if bits & 1 << number}

    def select(self) -> Selection:
        """Select from everything added so far."""
        deletions = tuple(self._deletions.values())
        until, ids = deleted_until(deletions)
        current: list[Event] = []
        deleted: list[Event] = []
        for address, event in self._newest.items():
            is_deleted = event.created_at <= until.get(address, -1) or event.id in ids
            (deleted if is_deleted else current).append(event)
        return Selection(tuple(current), tuple(deleted), tuple(self._older), deletions)


# ---------------------------------------------------------------------- gathering

BATCH = 256
"""Events that are decrypted at once: about a twentieth of a second."""
OWN_PREFIXES = (LEDGER, INVENTORY, CHOICES, NPUB, GROUP)
"""Prefixes of our addresses of kind 30078. Others belong to another program with the same key (NIP-78)."""

OnProgress = Callable[[Progress], None]
"""Called often while a recovery runs."""


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
    documents: FoundDocuments
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
    relays: Sequence[Relay],
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
    stage = Stage("fetching", on_progress)
    filters = [Filter(kinds=(DELETE, *OWN_KINDS), authors=(collector.public,))]

    async def fetch(relay: Relay) -> FetchResult:
        async def take(events: list[Event]) -> None:
            stage.add(collector.add(relay.url, events))

        return await relay.fetch(filters, take)

    results = list(zip(relays, await asyncio.gather(*map(fetch, relays)), strict=True))
    if not any(result.complete or result.count for _, result in results):
        why = "; ".join(f"{relay.url}: {result.reason}" for relay, result in results)
        raise RelayUnreachable(f"no relay could be read, so nothing was done: {why or 'none is configured'}")
    collector.add(None, tombstones)
    selection = await asyncio.to_thread(collector.select)
    current = [event.id for event in selection.current]
    reports = tuple(
        RelayReport(
            relay.url,
            collector.count_of(relay.url),
            result.complete,
            result.reason,
            collector.missing(relay.url, current),
            result.bad,
        )
        for relay, result in results
    )
    own = [one for one in selection.current if one.kind != APP or one.d.startswith(OWN_PREFIXES)]
    stage = Stage("reading", on_progress, len(own))
    events: list[DecryptedEvent] = []
    unreadable: list[UnreadableEvent] = []

    def decrypt(batch: Sequence[Event]) -> None:  # about 0.2 ms per event
        for event in batch:
            try:
                events.append(DecryptedEvent(event, codec.decode(event)))
            except UnreadableContent as why:
                unreadable.append(UnreadableEvent(event, str(why)))

    for start in range(0, len(own), BATCH):
        await asyncio.to_thread(decrypt, own[start : start + BATCH])
        stage.add(len(own[start : start + BATCH]))
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
        if one.is_tombstone:
            tombstones.append(one)
        elif is_app and one.event.d.startswith(INVENTORY):
            inventory.append(one)
        else:
            (records if is_app and one.event.d.startswith(LEDGER) else views).append(one)
    found, unusable = rebuild_ledgers(records, names)
    subjects = [*found, *subjects]
    documents, unread = DocumentCodec(names).read(
        views,
        people=[key for subject in subjects if (key := user_of(subject)) is not None],
        channels=[key for subject in subjects if (key := group_of(subject)) is not None],
    )
    unusable += unread
    skipped = {one.event.id for one in unusable}
    usable = tuple(one for one in (*records, *views) if one.event.id not in skipped)
    of_ledgers = {one.address: ledger.subject for ledger in found.values() for one in ledger.events}
    stated = documents.units | of_ledgers
    known = UnitLookup(names, {*subjects, *documents.units.values()}, documents.summaries)
    addresses = (one.address for one in (*usable, *tombstones))
    units = {one: unit for one in addresses if (unit := stated.get(one) or known(one)) is not None}
    return RecoveredContent(
        usable, tuple(tombstones), tuple(inventory), found, documents, units, (*unreadable, *unusable)
    )

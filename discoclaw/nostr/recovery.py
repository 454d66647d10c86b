"""Recovery: unites everything of ours that relays have with what is on disk.

    1  fetch    from every relay, each to its end: deletion requests, records, views
    2  select   what is ours, the newest at each address, nothing that we deleted
    3  parse    what can't be decrypted or parsed goes to quarantine         (ledgers, documents)
    4  pack     as an archive, without what was cleared or erased here since
    5  load     the archive, as an import does; nothing here is lost           (memory/exchange/archive)
    6  compare  with the inventory of what was published: was anything rolled back?   (report)
    7  adopt    the outbox learns what is published already, and which relay has it

A ledger that is missing here comes back byte for byte, and one that is here gets the records that it lacks.
What a person erased here doesn't come back. What another replica erased is kept here and reported: only a
person erases.

A record that was withheld is lost with the disk, and so is what the person decided about it. If it came from
an owner's event, that event is marked as applied (`memory/live`), so that it is not applied again.

A relay that can't be reached, or doesn't end its answer, does not count as empty: the report says so. If
no relay can be reached, nothing is done. Recovery is idempotent, and after a kill it starts again from the
beginning. Knows nothing about who asked.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from discoclaw.core.errors import MemoryFault, Refused, RelayUnreachable, UnreadableContent, faulting
from discoclaw.core.ports import Clock
from discoclaw.core.subject import group_of, person_of, user_of, user_subject
from discoclaw.core.times import valid_ms
from discoclaw.memory.conversations import clears
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.exchange import archive as archives
from discoclaw.memory.exchange.archive import Archive, Loaded, load
from discoclaw.memory.exchange.histories import Records
from discoclaw.memory.exchange.load import Content
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.people import choices, tool_log
from discoclaw.memory.purge import DONE, FOLLOWER
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.documents import DocumentCodec, FoundDocuments, UnitLookup
from discoclaw.nostr.event import Event
from discoclaw.nostr.ledgers import RebuiltLedger, rebuild_ledgers
from discoclaw.nostr.mirror import INVENTORY_UNIT
from discoclaw.nostr.outbox import MAX_QUARANTINED, Outbox, inventory_of
from discoclaw.nostr.relays.paging import FetchResult
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.report import Progress, RecoveryReport, RelayReport, shortfall
from discoclaw.nostr.schemas import (
    APP,
    CHOICES,
    DELETE,
    GROUP,
    INVENTORY,
    LEDGER,
    NPUB,
    OWN_KINDS,
    Address,
    Codec,
    DecryptedEvent,
    Names,
    UnreadableEvent,
    deleted_until,
    supersedes,
    template_of,
)
from discoclaw.store.files import in_thread, read_in_thread, render_json, safe_id, session_name
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, ROLLING, TOOLS, Disk, Documents, Ledgers

log = logging.getLogger(__name__)


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
            known, address = self._served.get(event.id, 0), (event.kind, event.d)
            if not known:
                if event.pubkey != self.public:
                    continue
                if event.kind == DELETE:
                    self._deletions[event.id] = event
                elif event.kind not in OWN_KINDS or not event.d:
                    continue
                elif (other := self._newest.get(address)) is None:
                    self._newest[address] = event
                else:
                    newer = supersedes(event, other)
                    self._newest[address] = event if newer else other
                    self._older.append(other if newer else event)
            if bit:
                new += not known
                self._served[event.id] = known | bit
        return new

    def _bit(self, relay: str | None) -> int:
        return 1 << self._relays.index(relay) if relay in self._relays else 0

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
class Gathered:
    """Everything that was found, and on which relays.

    `usable` are the records and views, `inventory` the events that list what was published. `units` has the
    unit of each address, as far as it is known.
    """

    collector: EventCollector
    relays: tuple[RelayReport, ...]
    selection: Selection
    usable: tuple[DecryptedEvent, ...]
    tombstones: tuple[DecryptedEvent, ...]
    inventory: tuple[DecryptedEvent, ...]
    ledgers: dict[str, RebuiltLedger]
    documents: FoundDocuments
    units: dict[Address, str]
    unreadable: tuple[UnreadableEvent, ...]


async def gather(
    relays: Sequence[Relay],
    codec: Codec,
    names: Names,
    disk: Disk,
    *,
    also: Collection[str] = (),
    tombstones: Iterable[Event] = (),
    on_progress: OnProgress | None = None,
) -> Gathered:
    """Fetch and parse everything of ours: of the subjects that are on this disk, and of others (`also`).

    `tombstones` are our own tombstones and deletion requests: what they delete must not come back from a
    relay that ignored them. Raises MemoryFault, and RelayUnreachable, with each relay and its reason, when
    none can be read.
    """
    with faulting("cannot list the memories on this disk"):
        subjects = [*also, *(subject for subject, _ in await read_in_thread(disk.ledgers.by_age))]
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

    def parse() -> Gathered:
        """Sort events by what they are, and parse them."""
        gone, inventory, records, views = (list[DecryptedEvent]() for _ in range(4))
        for one in events:
            d = one.event.d if one.event.kind == APP else ""
            if one.is_tombstone:
                gone.append(one)
            else:
                (inventory if d.startswith(INVENTORY) else records if d.startswith(LEDGER) else views).append(
                    one
                )
        ledgers, unusable = rebuild_ledgers(records, names)
        known = [*ledgers, *subjects]
        documents, unread = DocumentCodec(names).read(
            views,
            people=[key for subject in known if (key := user_of(subject)) is not None],
            channels=[key for subject in known if (key := group_of(subject)) is not None],
        )
        bad = (*unreadable, *unusable, *unread)
        skipped = {one.event.id for one in bad}
        usable = tuple(one for one in (*records, *views) if one.event.id not in skipped)
        stated = documents.units | {one.address: key for key, each in ledgers.items() for one in each.events}
        lookup = UnitLookup(names, {*known, *documents.units.values()}, documents.summaries)
        addresses = (one.address for one in (*usable, *gone))
        units = {one: unit for one in addresses if (unit := stated.get(one) or lookup(one)) is not None}
        return Gathered(
            collector,
            reports,
            selection,
            usable,
            tuple(gone),
            tuple(inventory),
            ledgers,
            documents,
            units,
            bad,
        )

    return await asyncio.to_thread(parse)


# ---------------------------------------------------------------------- recovering

ADOPTED_AT_ONCE = 1_000
"""Events that the outbox stores in one transaction."""
UNKNOWN_UNIT = "gone"
"""The unit of tombstones and deletion requests whose unit nobody knows any more."""


async def recover(
    relays: Sequence[Relay],
    codec: Codec,
    names: Names,
    memory: Memory,
    outbox: Outbox,
    *,
    clock: Clock,
    progress: OnProgress | None = None,
    live: LiveConfig | None = None,
) -> RecoveryReport:
    """Restore what relays have. `memory` and `outbox` are open, and nobody else uses them yet.

    `live` remembers which events of the owner were applied; without it, only its file is changed.

    Raises RelayUnreachable when no relay can be read, Refused when memory is off, and MemoryFault when the
    disk fails: each file is then either complete or untouched, and calling it again continues.
    """
    disk = memory.disk
    _check(disk)
    tombstones = await read_in_thread(outbox.tombstones)
    found = await gather(relays, codec, names, disk, tombstones=tombstones, on_progress=progress)
    elsewhere = await read_in_thread(erased_elsewhere, disk.ledgers, names, found)
    archive = await read_in_thread(archive_of, found, disk, clock())
    await purge_anew(disk)  # first, so that a kill in between changes nothing
    # The owner's events from which withheld records came count as applied, before anything is loaded.
    lines = (line for one in found.ledgers.values() for line in one.lines)
    if sources := [line.source for line in lines if line.source is not None]:
        if live is None:
            live = LiveConfig(disk.documents(""), clock=clock)
            await in_thread(live.load)
        for address, signed in sources:
            live.take(address, signed.at, signed.id)
        if not await live.save():
            raise MemoryFault(
                "cannot store which events of the owner were applied; check the disk and recover again"
            )
    stage = Stage("writing", progress, len(archive.subjects))
    loaded = await load(archive, memory, now_ms=clock, tell=stage.add)
    # Last: after a kill before this, the next recovery finds everything again.
    await in_thread(adopt, found, names, outbox)
    report = _report(found, names, loaded, elsewhere, dry=False)
    files = len(report.files)
    log.info("recovered %d records of %d memories, and %d files", report.records, report.subjects, files)
    return report


async def preview(
    relays: Sequence[Relay],
    codec: Codec,
    names: Names,
    disk: Disk,
    *,
    clock: Clock,
    progress: OnProgress | None = None,
) -> RecoveryReport:
    """Report what `recover` would restore.

    Nothing is written, so a bot may be using the disk. Raises as `recover`.
    """
    _check(disk)
    found = await gather(relays, codec, names, disk, on_progress=progress)

    def look() -> RecoveryReport:
        elsewhere = erased_elsewhere(disk.ledgers, names, found)
        archive = archive_of(found, disk, clock())
        return _report(found, names, archives.preview(archive, disk, now_ms=clock()), elsewhere, dry=True)

    with faulting("cannot read the memory on this disk"):
        return await read_in_thread(look)


def _check(disk: Disk) -> None:
    if not disk.remembers:
        raise Refused(
            "memory is off (DISCOCLAW_STORE=none), so nothing can be restored; set it to files or sqlite"
        )


async def purge_anew(disk: Disk) -> None:
    """Forget what was purged already: relays may return a view of before.

    Raises MemoryFault.
    """

    def forget() -> None:
        folder = disk.documents(CURSORS)
        names = [one for one in folder.names() if one.startswith(DONE) or one == session_name(FOLLOWER)]
        if left := folder.remove(names)[1]:
            raise OSError("; ".join(left))

    with faulting("what people took back cannot be kept out"):
        await in_thread(forget)


def archive_of(found: Gathered, disk: Disk, now_ms: int) -> Archive:
    """What relays have as an archive: what was not cleared, replaced or erased here since. Blocking.

    Only relays say when something was published, so what a newer state hides is left out here; all else is
    decided when the archive is loaded. Raises MemoryFault.
    """
    documents, decided, texts = found.documents, Tombstones(disk), dict[str, bytes]()
    decided.load()

    def is_erased(people: Iterable[str | None], at: int) -> bool:
        """Whether one of these people was erased since a time (ms)."""
        return any(decided.erased_at(user_subject(one)) >= at for one in people if one is not None)

    def put(folder: str, name: str, value: object) -> None:
        texts[f"{folder}/{name}"] = render_json(value)

    with faulting(f"cannot read {clears.FILE}"):
        cleared = clears.newest([*clears.CLEARS.read(disk.log(clears.FILE)), *documents.clears])
    kept = [one for one in documents.clears if not is_erased((one.by, person_of(one.session)), one.at)]
    texts[clears.FILE] = clears.CLEARS.render(sorted(kept, key=lambda one: (one.at, one.id)))
    texts[choices.FILE] = choices.render_people(documents.choices)
    for session, summary in documents.summaries.items():
        person, name = person_of(session), session_name(session)
        people = {person} if person is not None else set(summary.people or ())
        # Without authors nobody knows whose words are in it, so it may be those of anybody who was erased.
        gone = is_erased(people, summary.updated_at) if people else decided.any()
        if gone or clears.hidden(cleared, session, summary.updated_at):
            continue
        if _updated_at(disk.documents(ROLLING), name) > summary.updated_at:
            continue
        put(ROLLING, name, {"summary": summary.text, "updatedAt": summary.updated_at})
        if summary.people is not None:
            authors = {"session": session, "people": sorted(set(summary.people))}
            put(CURSORS, session_name(f"people-{session}"), authors)
        if summary.up_to is not None:
            count = {"count": summary.count} if summary.count else {}
            put(CURSORS, session_name(f"summary-{session}"), {"upTo": summary.up_to} | count)
    for user_id, profile in documents.profiles.items():
        # `first_seen` is in whole seconds: the erasure may lie in the same one.
        if not is_erased([user_id], (profile.first_seen + 1) * 1000):
            put(PROFILES, f"{user_id}.json", profile.to_json())
    for channel_id, (group, at) in documents.groups.items():
        for member, _ in group.members:
            if is_erased([member], at * 1000):
                group = group.without(member)
        put(GROUPS, f"{channel_id}.json", group.to_json())
    for subject, calls in documents.calls.items():
        since = max(now_ms - tool_log.KEPT_MS, decided.erased_at(subject) + 1)
        shown = [one for one in calls if not clears.hidden(cleared, one.session, one.at) and one.at >= since]
        if shown:
            texts[f"{TOOLS}/{safe_id(subject)}.jsonl"] = tool_log.CALLS.render(shown)
    subjects = {one.subject: Records(one.records(), gaps=one.withheld) for one in found.ledgers.values()}
    return Archive(dict[str, Content](sorted(subjects.items())), texts, ours=True)


def _updated_at(rolling: Documents, name: str) -> int:
    """When (ms) the summary on this disk was updated; -1 for none that makes sense."""
    try:
        at = json.loads(rolling.find(name) or b"{}")["updatedAt"]
        return int(at) if valid_ms(at) else -1
    except (ValueError, TypeError, KeyError, RecursionError):
        return -1


def erased_elsewhere(ledgers: Ledgers, names: Names, found: Gathered) -> dict[str, tuple[int, int]]:
    """For each subject here, how many of its records are deleted on relays, and how many it has. Blocking.

    Subjects without deleted records are left out. Raises MemoryFault when the disk fails.
    """
    deleted = {one.d for one in found.selection.deleted} | {one.event.d for one in found.tombstones}
    prefixes, counts = {d.rpartition(":")[0] + ":" for d in deleted}, dict[str, tuple[int, int]]()
    with faulting("cannot read the memories on this disk"):
        for subject in [one for one, _ in ledgers.by_age() if names.ledger_prefix(one) in prefixes]:
            here = ledger.read(ledgers.log(subject)).records
            if gone := sum(names.record(subject, one.id) in deleted for one in here):
                counts[subject] = gone, len(here)
    return counts


def _report(
    found: Gathered, names: Names, loaded: Loaded, elsewhere: Mapping[str, tuple[int, int]], *, dry: bool
) -> RecoveryReport:
    times = {one.address: one.event.created_at for one in found.usable}
    keyed_hash = lru_cache(maxsize=None)(names.keyed_hash)
    units = ((one, unit) for one, unit in found.units.items() if one in times)
    served = inventory_of((keyed_hash(unit), *one, times[one]) for one, unit in units)
    return RecoveryReport(
        found.relays,
        found.collector.count,
        len(found.selection.current),
        loaded.reports,
        tuple(loaded.texts),
        Counter(one.why for one in found.unreadable),
        elsewhere,
        shortfall(found.inventory, served, found.tombstones, [one.url for one in found.relays]),
        dry,
    )


# ---------------------------------------------------------------------- what is published already


def adopt(found: Gathered, names: Names, outbox: Outbox) -> None:
    """Tell the outbox what relays have, so that it isn't signed and published again. Raises MemoryFault."""
    for bad in found.unreadable[:MAX_QUARANTINED]:
        outbox.quarantine(bad.event, bad.why)
    tombstones = {one.event.id for one in found.tombstones}
    older: dict[Address, list[Event]] = {}
    for event in found.selection.older:
        older.setdefault((event.kind, event.d), []).append(event)
    batch: dict[str, list[tuple[Event, str]]] = {}
    relays: dict[str, set[str]] = {}
    # The published events by unit, each with the digest of its template.
    units: dict[str, list[tuple[Event, str]]] = {}
    for one in (*found.inventory, *found.usable, *found.tombstones):
        unit = found.units.get(one.address, UNKNOWN_UNIT)
        if not one.is_tombstone and one.event.kind == APP and one.event.d.startswith(INVENTORY):
            unit = INVENTORY_UNIT
        units.setdefault(unit, []).append((one.event, template_of(one.event, one.body).digest))
    units.setdefault(UNKNOWN_UNIT, []).extend((event, "") for event in found.selection.deletions)
    for unit, events in units.items():
        unit_hash = names.keyed_hash(unit)
        known = {row.event_id for row in outbox.known(unit_hash).values()}
        if all(event.id in known for event, _ in events):
            continue
        # A later deletion request has to name all versions that any relay may still have.
        also = [(old, "") for event, _ in events for old in older.get((event.kind, event.d), ())]
        relays.update((event.id, found.collector.relays_of(event.id)) for event, _ in events)
        batch[unit_hash] = [*events, *also]
        if len(relays) >= ADOPTED_AT_ONCE:  # each transaction costs a sync
            outbox.adopt(batch, relays, tombstones=tombstones)
            batch, relays = {}, {}
    outbox.adopt(batch, relays, tombstones=tombstones)

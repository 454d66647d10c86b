"""Recovery: unites everything of ours that relays have with what is on disk.

    1  fetch    from every relay, each to its end: deletion requests, records, views  (gather)
    2  select   what is ours, the newest at each address, nothing that we deleted     (gather)
    3  parse    what can't be decrypted or parsed goes to quarantine                  (ledgers, documents)
    4  write    documents, then ledgers; nothing that is here is lost                     (restore)
    5  compare  with the inventory of what was published: was anything rolled back?   (report)
    6  adopt    the outbox learns what is published already, and which relay has it

A record that was withheld is lost with the disk, and so is what the person decided about it. If it came from
an owner's event, that event is marked as applied (`memory/live`), so that it is not applied again.

A relay that can't be reached, or doesn't end its answer, does not count as empty: the report says so. If
no relay can be reached, nothing is done. Recovery is idempotent, and after a kill it starts again from the
beginning. Views are written before ledgers because the followers of the ledgers read them. Knows nothing
about who asked.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from discoclaw.core.errors import MemoryFault, Refused, faulting
from discoclaw.core.ports import Clock
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_of, user_of
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.purge import DONE, FOLLOWER
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Event
from discoclaw.nostr.incoming.gather import Gathered, OnProgress, Stage, gather
from discoclaw.nostr.incoming.report import RecoveryReport, shortfall
from discoclaw.nostr.incoming.restore import (
    Destination,
    RestoredLedger,
    erased_elsewhere,
    preview_ledger,
    restore_documents,
    restore_ledger,
)
from discoclaw.nostr.names import INVENTORY, Names
from discoclaw.nostr.outgoing.mirror import INVENTORY_UNIT
from discoclaw.nostr.outgoing.outbox import Outbox, inventory_of
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.schemas import APP, Address, Codec, template_of
from discoclaw.store.files import in_thread, read_in_thread, render_json, session_name
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, Disk

log = logging.getLogger(__name__)

PARALLEL = 4
"""Ledgers that are written in parallel: while the disk syncs one, the next is assembled."""

ADOPTED_AT_ONCE = 1_000
"""Events that the outbox stores in one transaction."""
UNKNOWN_UNIT = "gone"
"""The unit of tombstones and deletion requests whose unit nobody knows any more."""
MAX_QUARANTINED = 1_000


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
    found = await gathered(relays, codec, names, disk, progress, tombstones)
    elsewhere = await read_in_thread(erased_elsewhere, memory.ledgers, names, found.deleted_addresses)
    to = Destination(disk, memory.erased_at, memory.erased_anybody(), clock())
    await purge_anew(disk)  # first, so that a kill in between changes nothing
    files = await _put_views(found, to)
    await _mark_applied(found, disk, live, clock)  # before the records: they must not be changed in between
    stage = Stage("writing", progress, len(found.content.ledgers))
    written: dict[str, RestoredLedger] = {}
    # All writers take from one iterator, so a large ledger holds up only one of them.
    waiting = iter(sorted(found.content.ledgers))

    async def write() -> None:
        for subject in waiting:
            one = await restore_ledger(memory, found.content.ledgers[subject], clock())
            if one.records:
                files.extend(await _update_view(memory, subject))
            written[subject] = one
            stage.add(1)

    faults: list[Exception] = []
    try:  # a group would raise an ExceptionGroup, which callers of MemoryFault don't catch
        async with asyncio.TaskGroup() as group:
            for _ in range(PARALLEL):
                group.create_task(write())
    except* MemoryFault as failed:
        faults += failed.exceptions
    if faults:
        raise faults[0]
    taken = [written[subject] for subject in sorted(written)]
    # Last: after a kill before this, the next recovery finds everything again.
    await in_thread(adopt, found, names, outbox)
    report = _report(found, names, taken, files, elsewhere, dry=False)
    log.info("recovered %d records of %d memories, and %d files", report.records, report.subjects, len(files))
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
    found = await gathered(relays, codec, names, disk, progress)
    tombstones = Tombstones(disk)
    await read_in_thread(tombstones.load)
    elsewhere = await read_in_thread(erased_elsewhere, disk.ledgers, names, found.deleted_addresses)
    to = Destination(disk, tombstones.erased_at, tombstones.any(), clock(), dry=True)
    files = await _put_views(found, to)
    taken = []
    for subject, ledger in sorted(found.content.ledgers.items()):
        here, erased_at = disk.ledgers.log(subject), tombstones.erased_at(subject)
        taken.append(await read_in_thread(preview_ledger, ledger, here, erased_at))
    return _report(found, names, taken, files, elsewhere, dry=True)


def _check(disk: Disk) -> None:
    if not disk.remembers:
        raise Refused(
            "memory is off (DISCOCLAW_STORE=none), so nothing can be restored; set it to files or sqlite"
        )


async def gathered(
    relays: Sequence[Relay],
    codec: Codec,
    names: Names,
    disk: Disk,
    on_progress: OnProgress | None,
    tombstones: Sequence[Event] = (),
    also: Collection[str] = (),
) -> Gathered:
    """Gather what relays have of the subjects that are here, and of others (`also`). Raises as `recover`."""
    try:
        subjects = [*also, *(subject for subject, _ in await read_in_thread(disk.ledgers.by_age))]
    except OSError as error:
        raise MemoryFault(
            f"cannot list the memories on this disk: {error}; check it and recover again"
        ) from error
    return await gather(
        relays, codec, names, subjects=subjects, tombstones=tombstones, on_progress=on_progress
    )


async def _mark_applied(found: Gathered, disk: Disk, live: LiveConfig | None, clock: Clock) -> None:
    """Mark the owner's events from which withheld records came as applied. Raises MemoryFault."""
    lines = (line for ledger in found.content.ledgers.values() for line in ledger.lines)
    sources = [line.source for line in lines if line.source is not None]
    if not sources:
        return
    if live is None:
        live = LiveConfig(disk.documents(""), clock=clock)
        await in_thread(live.load)
    for address, signed in sources:
        live.take(address, signed.at, signed.id)
    if not await live.save():
        raise MemoryFault(
            "cannot store which events of the owner were applied; check the disk and recover again"
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


async def _put_views(found: Gathered, to: Destination) -> list[str]:
    try:
        return await in_thread(restore_documents, found.content.documents, to)
    except OSError as error:
        raise MemoryFault(
            f"cannot write what relays have: {error}; free some space on the disk and recover again"
        ) from error


def _report(
    found: Gathered,
    names: Names,
    taken: Sequence[RestoredLedger],
    files: Sequence[str],
    elsewhere: Mapping[str, tuple[int, int]],
    *,
    dry: bool,
) -> RecoveryReport:
    content = found.content
    times = {one.address: one.event.created_at for one in content.usable}
    keyed_hash = lru_cache(maxsize=None)(names.keyed_hash)
    served = inventory_of(
        (keyed_hash(unit), *address, times[address])
        for address, unit in content.units.items()
        if address in times
    )
    return RecoveryReport(
        found.relays,
        found.collector.count,
        len(found.selection.current),
        tuple(taken),
        tuple(dict.fromkeys(files)),
        Counter(one.why for one in content.unreadable),
        elsewhere,
        shortfall(content.inventory, served, content.tombstones),
        dry,
    )


async def _update_view(memory: Memory, subject: str) -> list[str]:
    """Update the profile or group file that shows parts of a ledger, if there is one.

    Returns changed files. Raises MemoryFault.
    """
    user_id, channel_id = user_of(subject), group_of(subject)
    if user_id is None and channel_id is None:
        return []
    kind: type[Profile] | type[Group] = Profile if user_id is not None else Group
    folder, name = PROFILES if user_id is not None else GROUPS, f"{user_id or channel_id}.json"
    documents = memory.disk.documents(folder)
    try:
        before = await read_in_thread(documents.read, name)
        value = kind.from_json(json.loads(before))
        after = render_json(value.with_view(await memory.view(subject)).to_json())
        if after == before:
            return []
        await in_thread(documents.write, name, after)
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    except OSError as error:
        raise MemoryFault(
            f"cannot write {folder}/{name}: {error}; check the disk and recover again"
        ) from error
    return [f"{folder}/{name}"]


# ---------------------------------------------------------------------- what is published already


def adopt(found: Gathered, names: Names, outbox: Outbox) -> None:
    """Tell the outbox what relays have, so that it isn't signed and published again. Raises MemoryFault."""
    content = found.content
    for bad in content.unreadable[:MAX_QUARANTINED]:
        outbox.quarantine(bad.event, bad.why)
    tombstones = {one.event.id for one in content.tombstones}
    older: dict[Address, list[Event]] = {}
    for event in found.selection.older:
        older.setdefault((event.kind, event.d), []).append(event)
    batch: dict[str, list[tuple[Event, str]]] = {}
    relays: dict[str, set[str]] = {}
    # The published events by unit, each with the digest of its template.
    units: dict[str, list[tuple[Event, str]]] = {}
    for one in (*content.inventory, *content.usable, *content.tombstones):
        unit = content.units.get(one.address, UNKNOWN_UNIT)
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

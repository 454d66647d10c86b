"""Memory comes back: all that relays have of ours, united with what is on disk.

    1  fetch    from every relay, each to its end: deletions, records, views         (gather)
    2  sift     what is ours, the newest of each address, nothing that we deleted    (sift)
    3  open     what can not be opened or understood is kept apart                   (rebuild, read_views)
    4  write    views, then ledgers; nothing that is here is lost                    (restore_views, restore)
    5  compare  with the index of what was published: was anything rolled back?      (rollback)
    6  adopt    the outbox learns what is published already, and which relay has it

A relay that can not be reached, or does not end its answer, is no empty relay: that is said, and where none
can be reached at all, nothing is done. Doing it twice is doing it once; after a kill it is begun anew.
Views come before the ledgers, since what follows the ledgers reads them. Knows nothing about who asked.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.ports import Clock
from discoclaw.core.profile import Group, Profile
from discoclaw.core.subject import group_of, user_of
from discoclaw.memory.disk.files import in_thread, render_json
from discoclaw.memory.disk.port import GROUPS, PROFILES, Disk
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Event
from discoclaw.nostr.incoming.gather import Gathered, Source, Stage, Tell, gather
from discoclaw.nostr.incoming.recovered import Recovered
from discoclaw.nostr.incoming.restore import RestoredLedger, compared, erased_elsewhere, take_ledger
from discoclaw.nostr.incoming.restore_views import Target, put_views
from discoclaw.nostr.incoming.rollback import behind, stands
from discoclaw.nostr.incoming.sift import Opened
from discoclaw.nostr.names import Names
from discoclaw.nostr.outgoing.mirror import INDEX_UNIT
from discoclaw.nostr.outgoing.outbox import Outbox
from discoclaw.nostr.schemas import Address, Pen, wanted_of

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Ledgers that are written beside each other: while a disk syncs one, the next is put together."""

GONE = "gone"
"""The unit of what only says that something is gone, where nobody knows any more whose it was."""
MOST_QUARANTINED = 1_000


async def recover(
    relays: Sequence[Source],
    pen: Pen,
    names: Names,
    memory: Memory,
    outbox: Outbox,
    *,
    clock: Clock,
    progress: Tell | None = None,
) -> Recovered:
    """Bring back what relays have. The memory and the outbox are open, and nobody else uses either yet.

    Raises RelayUnreachable when no relay can be read, Refused when nothing may be remembered, and MemoryFault
    when the disk fails: what was written until then is whole, and the same again goes on.
    """
    disk = memory.disk
    _check(disk)
    gone = await asyncio.to_thread(outbox.gone)
    found = await _gathered(relays, pen, names, disk, progress, gone)
    elsewhere = await asyncio.to_thread(erased_elsewhere, memory.ledgers, names, found.addresses_gone)
    to = Target(disk, memory.erased_at, memory.erased_anybody(), clock())
    files = await _put_views(found, to)
    stage = Stage("writing", progress, len(found.found.ledgers))
    written: dict[str, RestoredLedger] = {}
    waiting = iter(sorted(found.found.ledgers))

    async def write() -> None:
        for subject in waiting:
            one = await take_ledger(memory, found.found.ledgers[subject], clock())
            if one.records:
                files.extend(await _shown(memory, subject))
            written[subject] = one
            stage.add(1)

    await _all(write() for _ in range(AT_ONCE))
    taken = [written[subject] for subject in sorted(written)]
    await in_thread(_adopt, found, names, outbox)
    report = _report(found, names, taken, files, elsewhere, dry=False)
    log.info("recovered %d records of %d memories and %d files", report.records, report.subjects, len(files))
    return report


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all of it beside each other. Raises the first MemoryFault; the others are stopped then."""
    faults: list[Exception] = []
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except* MemoryFault as failed:
        faults += failed.exceptions
    if faults:
        raise faults[0]


async def preview(
    relays: Sequence[Source],
    pen: Pen,
    names: Names,
    disk: Disk,
    *,
    clock: Clock,
    progress: Tell | None = None,
) -> Recovered:
    """What `recover` would bring back; nothing is written, and a bot may be using the disk.

    Raises as `recover` does.
    """
    _check(disk)
    found = await _gathered(relays, pen, names, disk, progress)
    tombstones = Tombstones(disk)
    await asyncio.to_thread(tombstones.load)
    elsewhere = await asyncio.to_thread(erased_elsewhere, disk.ledgers, names, found.addresses_gone)
    to = Target(disk, tombstones.erased_at, tombstones.any(), clock(), dry=True)
    files = await _put_views(found, to)
    taken = []
    for subject, ledger in sorted(found.found.ledgers.items()):
        here, erased_at = disk.ledgers.log(subject), tombstones.erased_at(subject)
        taken.append(await asyncio.to_thread(compared, ledger, here, erased_at))
    return _report(found, names, taken, files, elsewhere, dry=True)


def _check(disk: Disk) -> None:
    if not disk.remembers:
        raise Refused(
            "memory is off (DISCOCLAW_STORE=none), so nothing can be brought back; set another store"
        )


async def _gathered(
    relays: Sequence[Source],
    pen: Pen,
    names: Names,
    disk: Disk,
    tell: Tell | None,
    gone: Sequence[Event] = (),
) -> Gathered:
    try:
        subjects = [subject for subject, _ in await asyncio.to_thread(disk.ledgers.by_age)]
    except OSError as error:
        raise MemoryFault(f"nobody's memory can be read: {error}") from error
    return await gather(relays, pen, names, subjects=subjects, gone=gone, tell=tell)


async def _put_views(found: Gathered, to: Target) -> list[str]:
    try:
        return await in_thread(put_views, found.found.views, to)
    except OSError as error:
        raise MemoryFault(
            f"what relays have can not be written: {error}; make room on the disk and recover again"
        ) from error


def _report(
    found: Gathered,
    names: Names,
    taken: Sequence[RestoredLedger],
    files: Sequence[str],
    elsewhere: Mapping[str, tuple[int, int]],
    *,
    dry: bool,
) -> Recovered:
    here = found.found
    times = {one.address: one.event.created_at for one in here.said}
    mark = lru_cache(maxsize=None)(names.mark)
    marks = {address: mark(unit) for address, unit in here.units.items() if address in times}
    return Recovered(
        found.relays,
        found.sieve.count,
        len(found.sifted.held),
        tuple(taken),
        tuple(dict.fromkeys(files)),
        Counter(one.why for one in here.unread),
        elsewhere,
        behind(here.index, stands(marks, times), here.gone),
        dry,
    )


# ---------------------------------------------------------------------- views of ledgers


async def _shown(memory: Memory, subject: str) -> list[str]:
    """Have the file that shows a part of a ledger show what the ledger says now. Raises MemoryFault."""
    user_id, channel_id = user_of(subject), group_of(subject)
    key, folder = user_id or channel_id, PROFILES if user_id is not None else GROUPS
    if key is None:
        return []
    view = await memory.view(subject)
    renewed: Callable[[object], object] = (
        (lambda value: Profile.from_json(value).with_view(view).to_json())
        if user_id is not None
        else (lambda value: Group.from_json(value).with_view(view).to_json())
    )
    try:
        changed = await in_thread(_rewritten, memory.disk, folder, f"{key}.json", renewed)
    except OSError as error:
        raise MemoryFault(f"{folder}/{key}.json can not be written: {error}; recover again") from error
    return [f"{folder}/{key}.json"] if changed else []


def _rewritten(disk: Disk, folder: str, name: str, renewed: Callable[[object], object]) -> bool:
    documents = disk.documents(folder)
    with suppress(FileNotFoundError, ValueError, RecursionError):
        before = documents.read(name)
        after = render_json(renewed(json.loads(before)))
        if after != before:
            documents.write(name, after)
            return True
    return False


# ---------------------------------------------------------------------- what is published already


def _adopt(found: Gathered, names: Names, outbox: Outbox) -> None:
    """Let the outbox know what relays have, unless it does. Raises MemoryFault."""
    here = found.found
    for one in here.unread[:MOST_QUARANTINED]:
        outbox.quarantine(one.event, one.why)
    gone = {one.event.id for one in here.gone}
    older: dict[Address, list[Event]] = {}
    for event in found.sifted.older:
        older.setdefault((event.kind, event.d), []).append(event)
    for unit, said in _by_unit(found).items():
        mark = names.mark(unit)
        known = {row.event_id for row in outbox.known(mark).values()}
        if all(event.id in known for event, _ in said):
            continue
        # Whoever deletes an address has to name all its versions that anybody may still have.
        also = [(old, "") for event, _ in said for old in older.get((event.kind, event.d), ())]
        relays = {event.id: found.sieve.relays_of(event.id) for event, _ in said}
        outbox.adopt(mark, [*said, *also], relays, gone=gone)


def _by_unit(found: Gathered) -> dict[str, list[tuple[Event, str]]]:
    """What is published, with its digests, by unit."""
    here, units = found.found, {INDEX_UNIT: [_digested(one) for one in found.found.index]}
    for one in (*here.said, *here.gone):
        units.setdefault(here.units.get(one.address, GONE), []).append(_digested(one))
    units.setdefault(GONE, []).extend((event, "") for event in found.sifted.deletions)
    return units


def _digested(one: Opened) -> tuple[Event, str]:
    return one.event, wanted_of(one.event, one.body).digest

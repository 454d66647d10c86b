"""What was found on relays, brought into the memory on disk: ledgers first of all. Nothing here is ever lost.

A ledger that is not here comes back byte for byte. One that is here is united with what was found: records
are only added, none of them twice. What a person had erased here does not come back. What was erased by
another replica, and is here still, stays, and that is said: only a person erases.
Doing it twice is doing it once, and so is going on after a kill: each file is written whole or not at all.
Knows nothing about relays.
"""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Record, encode_line
from discoclaw.core.history import History
from discoclaw.core.subject import user_of
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.disk.port import Ledgers, Log
from discoclaw.memory.exchange.layout import Records
from discoclaw.memory.exchange.take import united
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.incoming.rebuild import RebuiltLedger, mended
from discoclaw.nostr.names import Names
from discoclaw.nostr.schemas import Address

_ANY_NUMBER = 1_000_000_000
"""Of memories on a branch: what was ours once is not refused for being too much."""


@dataclass(frozen=True, slots=True)
class RestoredLedger:
    """What came of one ledger. `records` counts what is new here; `lost` are commits that nobody has.

    `withheld` counts records that are not here and never left the disk that wrote them, `erased` what stays
    out because it was erased here. `refused` says why nothing was taken.
    """

    subject: str
    here: bool = False
    """Whether there was a ledger."""
    records: int = 0
    lost: frozenset[str] = frozenset()
    withheld: int = 0
    erased: int = 0
    refused: str = ""


async def take_ledger(memory: Memory, found: RebuiltLedger, now_ms: int) -> RestoredLedger:
    """Bring one ledger into memory. Raises MemoryFault when the disk fails; what is there then stays."""
    subject, erased_at = found.subject, memory.erased_at(found.subject)
    before = await asyncio.to_thread(compared, found, memory.ledgers.log(subject), erased_at)
    try:
        if not before.records:
            if before.here and await asyncio.to_thread(_lacks_picture, memory, subject):
                await memory.view(subject)  # which writes it
            return before
        if not before.here:
            lines, taken = await asyncio.to_thread(_anew, found, erased_at, now_ms)
            if not taken.records or await memory.restore(subject, lines):
                return taken
        return await memory.act(subject, lambda history, now, _: _added(found, history, now, erased_at))
    except Refused as refusal:
        return RestoredLedger(subject, refused=str(refusal))
    except MemoryFault as fault:
        if isinstance(fault.__cause__, OSError):
            raise  # the disk, which would fail the others too
        return RestoredLedger(subject, refused=str(fault))


def _lacks_picture(memory: Memory, subject: str) -> bool:
    """Whether there is no durable file where there should be one: a kill may have come before it."""
    user_id, folder = user_of(subject), memory.disk.durable
    return user_id is not None and folder is not None and not (folder / f"{user_id}.json").exists()


def compared(found: RebuiltLedger, here: Log, erased_at: int) -> RestoredLedger:
    """What would come of one ledger, beside what is here; a line counts as it stands. Blocking.

    Raises MemoryFault when the disk fails.
    """
    content = _read(here)
    lines, known = frozenset(content.splitlines()), _ids(content)
    records = found.records()
    kept = [one for one in records if ms_of_iso(one.timestamp) > erased_at]
    new = sum(not lines or encode_line(one).rstrip(b"\n") not in lines for one in kept)
    _, gaps = mended(kept, known, found.withheld)
    withheld = len(found.withheld.keys() - known)
    return RestoredLedger(found.subject, bool(content), new, gaps, withheld, len(records) - len(kept))


def _read(lines: Log) -> bytes:
    try:
        return lines.read()
    except OSError as error:
        raise MemoryFault(f"{lines.path.name} can not be read: {error}") from error


def _ids(content: bytes) -> frozenset[str]:
    """The ids that the lines of a ledger claim, those they accept as lost too; nothing is verified."""
    ids = set()
    for line in content.splitlines():
        try:
            value = json.loads(line)
            ids.add(str(value["id"]))
            if value.get("action") == "mend":
                ids.add(str(value["head"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # whoever loads the ledger says so
    return frozenset(ids)


def erased_elsewhere(ledgers: Ledgers, names: Names, gone: Collection[Address]) -> dict[str, tuple[int, int]]:
    """Of each subject here, how many of its records are deleted on relays, and how many it has. Blocking.

    Only those of which any are. Raises MemoryFault when the disk fails.
    """
    addresses = {d for _, d in gone}
    prefixes = {d.rpartition(":")[0] + ":" for d in addresses}
    told = {}
    try:
        subjects = [subject for subject, _ in ledgers.by_age()]
    except OSError as error:
        raise MemoryFault(f"nobody's memory can be read: {error}") from error
    for subject in subjects:
        if names.ledger_prefix(subject) not in prefixes:
            continue
        here = _ids(_read(ledgers.log(subject)))
        deleted = sum(names.record(subject, one) in addresses for one in here)
        if deleted:
            told[subject] = (deleted, len(here))
    return told


# ---------------------------------------------------------------------- records


def _anew(found: RebuiltLedger, erased_at: int, now_ms: int) -> tuple[bytes, RestoredLedger]:
    """The lines of a ledger that is not here."""
    records, taken = _added(found, History(), now_ms, erased_at)
    return b"".join(map(encode_line, records)), taken


def _added(
    found: RebuiltLedger, history: History, now_ms: int, erased_at: int
) -> tuple[Sequence[Record], RestoredLedger]:
    """The records to be added to a history. Raises Refused."""
    known = history.commits.keys() | history.accepted
    found_here = found.records()
    whole, gaps = mended(found_here, known, found.withheld, after=erased_at)
    records, report = united(
        Records(whole), history, now_ms=now_ms, max_items=_ANY_NUMBER, erased_at=erased_at
    )
    if not history.records:  # in the order in which they stood, and not in that of their times
        order: Mapping[str, int] = {record.id: number for number, record in enumerate(whole)}
        records.sort(key=lambda record: order.get(record.id, -1))
    new = max(0, report.records - (len(whole) - len(found_here)))
    ids = {record.id for record in history.records}
    withheld = len(found.withheld.keys() - ids)
    return records, RestoredLedger(found.subject, bool(ids), new, gaps, withheld, report.erased)

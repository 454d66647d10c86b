"""Restores ledgers from relays to the memory on disk. Nothing that is here is ever lost.

A ledger that is missing here comes back byte for byte. One that is here gets the records that it lacks,
each once. What a person erased here does not come back. What another replica erased is kept here and
reported: only a person erases. Restoring is idempotent, also after a kill: each file is written completely
or not at all. Knows nothing about relays.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Record, encode_line
from discoclaw.core.history import History
from discoclaw.core.subject import user_of
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.exchange.histories import Records
from discoclaw.memory.exchange.take import united
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.incoming.rebuild import RebuiltLedger, with_mends
from discoclaw.nostr.names import Names
from discoclaw.nostr.schemas import Address
from discoclaw.store.files import read_in_thread
from discoclaw.store.port import Ledgers, Log

_ANY_NUMBER = 1_000_000_000
"""The limit of items on a branch does not apply: recovery must not refuse what was stored before."""


@dataclass(frozen=True, slots=True)
class RestoredLedger:
    """The result for one ledger. `records` counts new ones; `lost` are ids of commits that no relay has.

    `withheld` counts missing records that never left the disk that wrote them, `erased` those left out
    because they were erased here. `refused` says why nothing was restored.
    """

    subject: str
    here: bool = False
    """Whether there was a ledger before."""
    records: int = 0
    lost: frozenset[str] = frozenset()
    withheld: int = 0
    erased: int = 0
    refused: str = ""


async def restore_ledger(memory: Memory, found: RebuiltLedger, now_ms: int) -> RestoredLedger:
    """Restore one ledger. Raises MemoryFault when the disk fails; the ledger is then unchanged."""
    subject, erased_at = found.subject, memory.erased_at(found.subject)
    try:
        before, new = await read_in_thread(_prepared, memory, found, erased_at, now_ms)
        if not before.records:
            if before.here and await read_in_thread(_lacks_durable_file, memory, subject):
                await memory.view(subject)  # this writes the file
            return before
        if new is not None:
            records, result = new
            if not result.records or await memory.restore(subject, records):
                return result
        return await memory.act(subject, lambda history, now, _: _new_records(found, history, now, erased_at))
    except Refused as refusal:
        return RestoredLedger(subject, refused=str(refusal))
    except MemoryFault as fault:
        if isinstance(fault.__cause__, OSError):
            raise  # the disk fails, so the other ledgers would fail too
        return RestoredLedger(subject, refused=str(fault))


def _lacks_durable_file(memory: Memory, subject: str) -> bool:
    """Whether a person's durable file is missing: a kill may have come between ledger and file."""
    user_id, folder = user_of(subject), memory.disk.durable
    return user_id is not None and folder is not None and not (folder / f"{user_id}.json").exists()


def preview_ledger(found: RebuiltLedger, here: Log, erased_at: int) -> RestoredLedger:
    """Report what restoring one ledger would do. Blocking. Raises MemoryFault when the disk fails.

    Lines on disk are compared as text and not verified.
    """
    content = _read(here)
    lines, known = frozenset(content.splitlines()), _ids(content)
    records = found.records()
    kept = [one for one in records if ms_of_iso(one.timestamp) > erased_at]
    new = sum(not lines or encode_line(one).rstrip(b"\n") not in lines for one in kept)
    _, gaps = with_mends(kept, known, found.withheld)
    withheld = len(found.withheld.keys() - _ids(content, mended=False))
    return RestoredLedger(found.subject, bool(content), new, gaps, withheld, len(records) - len(kept))


def _read(lines: Log) -> bytes:
    try:
        return lines.read()
    except OSError as error:
        raise MemoryFault(
            f"cannot read {lines.path.name}: {error}; check the disk and recover again"
        ) from error


def _ids(content: bytes, *, mended: bool = True) -> frozenset[str]:
    """The ids that a ledger's lines claim, and (`mended`) those that its mends accept as lost.

    Nothing is verified.
    """
    ids = set()
    for line in content.splitlines():
        try:
            value = json.loads(line)
            ids.add(str(value["id"]))
            if mended and value.get("action") == "mend":
                ids.add(str(value["head"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # loading the ledger reports damaged lines
    return frozenset(ids)


def erased_elsewhere(ledgers: Ledgers, names: Names, gone: Collection[Address]) -> dict[str, tuple[int, int]]:
    """For each subject here, how many of its records are deleted on relays, and how many it has. Blocking.

    Subjects without deleted records are left out. Raises MemoryFault when the disk fails.
    """
    addresses = {d for _, d in gone}
    prefixes = {d.rpartition(":")[0] + ":" for d in addresses}
    found = {}
    try:
        subjects = [subject for subject, _ in ledgers.by_age()]
    except OSError as error:
        raise MemoryFault(
            f"cannot list the memories on this disk: {error}; check it and recover again"
        ) from error
    for subject in subjects:
        if names.ledger_prefix(subject) not in prefixes:
            continue
        here = _ids(_read(ledgers.log(subject)))
        deleted = sum(names.record(subject, one) in addresses for one in here)
        if deleted:
            found[subject] = (deleted, len(here))
    return found


# ---------------------------------------------------------------------- records


NewRecords = tuple[Sequence[Record], RestoredLedger]


def _prepared(
    memory: Memory, found: RebuiltLedger, erased_at: int, now_ms: int
) -> tuple[RestoredLedger, NewRecords | None]:
    """Compute what restoring a ledger would change, with its records if the ledger is missing here. Blocking.

    Raises Refused, and MemoryFault when the disk fails.
    """
    before = preview_ledger(found, memory.ledgers.log(found.subject), erased_at)
    missing = bool(before.records) and not before.here
    return before, _new_records(found, History(), now_ms, erased_at) if missing else None


def _new_records(found: RebuiltLedger, history: History, now_ms: int, erased_at: int) -> NewRecords:
    """The records to add to a history. Raises Refused."""
    known = history.commits.keys() | history.accepted
    served = found.records()
    mended, gaps = with_mends(served, known, found.withheld, after=erased_at)
    records, report = united(
        Records(mended), history, now_ms=now_ms, max_items=_ANY_NUMBER, erased_at=erased_at
    )
    if not history.records:  # line order, not time order, so that the file comes back byte for byte
        order: Mapping[str, int] = {record.id: number for number, record in enumerate(mended)}
        records.sort(key=lambda record: order.get(record.id, -1))
    new = max(0, report.records - (len(mended) - len(served)))  # mends are not counted
    ids = {record.id for record in history.records}
    withheld = len(found.withheld.keys() - ids)
    return records, RestoredLedger(found.subject, bool(ids), new, gaps, withheld, report.erased)

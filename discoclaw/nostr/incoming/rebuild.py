"""Rebuilds ledgers from events: records with correct hashes, in the order in which they were written.

An event holds a record, or a part of a large one, with its subject and line number. Its address has to be
the one of exactly this record of this subject, so that no event can be passed off as another. Confidential
records never left the disk that wrote them; a stub replaces each. Records after a stub, or after a record
that no relay has any more, are kept, with a "mend" before them that accepts the gap. If stubs tell what
came before the gap, the mend names it: `follows` is the id of a commit that is here, or null. Pure: knows
nothing about relays or files.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from discoclaw.core.errors import LedgerDamaged, MemoryFault, NewerSchema, UnreadableContent
from discoclaw.core.event import Commit, Record, Ref, record_of_json
from discoclaw.core.live import Signed
from discoclaw.core.order import in_order
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.nostr.incoming.selection import DecryptedEvent, UnreadableEvent
from discoclaw.nostr.names import LEDGER, Names
from discoclaw.store.files import safe_id

BY = "recovery"
"""The author that mends name."""
MAX_PARTS = 10_000
"""Parts of one record that are put together: 180 MB. More is a damaged number."""


@dataclass(frozen=True, slots=True)
class RebuiltLine:
    """A line of a ledger: its number from 0, and its record, or id and parent of a withheld one.

    `source` has address, time and id of the owner's event from which a withheld record came.
    """

    number: int
    id: str
    record: Record | None
    parent: str | None = None
    source: tuple[str, Signed] | None = None


@dataclass(slots=True)
class RebuiltLedger:
    """A subject's ledger, as far as it was found. `events` are all its events, stubs and parts included."""

    subject: str
    lines: list[RebuiltLine] = field(default_factory=list)
    events: list[DecryptedEvent] = field(default_factory=list)

    @property
    def withheld(self) -> Mapping[str, str | None]:
        """The ids of withheld commits, with their parents' ids."""
        return {line.id: line.parent for line in self.lines if line.record is None}

    def records(self) -> tuple[Record, ...]:
        """The records by line number, if every line is there once and parents come first.

        Otherwise in the order that `core/history` gives any set of records.
        """
        lines = sorted(self.lines, key=lambda line: line.number)
        records = tuple(line.record for line in lines if line.record is not None)
        complete = all(line.number == number for number, line in enumerate(lines))
        return records if complete and _parents_first(records) else in_order(records)


def rebuild_ledgers(
    events: Iterable[DecryptedEvent], names: Names
) -> tuple[dict[str, RebuiltLedger], list[UnreadableEvent]]:
    """The ledgers in these events, by subject, and the events that can't be used."""
    found: dict[str, RebuiltLedger] = {}
    unreadable: list[UnreadableEvent] = []
    for group in _grouped(events):
        try:
            subject, line = _line(group, names)
        except (UnreadableContent, LedgerDamaged, NewerSchema) as why:
            unreadable += [UnreadableEvent(one.event, str(why)) for one in group]
            continue
        ledger = found.setdefault(subject, RebuiltLedger(subject))
        ledger.lines.append(line)
        ledger.events += group
    return found, unreadable


def with_mends(
    records: Sequence[Record],
    known: AbstractSet[str],
    withheld: Mapping[str, str | None],
    *,
    after: int = -1,
) -> tuple[tuple[Record, ...], frozenset[str]]:
    """The records, with a mend before each that continues a commit which is neither here nor `known`.

    Also the ids of the commits that are lost, which are those not `withheld` either. A mend is dated just
    before the record after it, so that every replica writes the same mend for the same gap. Records dated
    up to `after` (ms) need none: they were erased.
    """
    here = {record.id for record in records} | known
    done = {one.head for one in records if isinstance(one, Ref) and one.action == "mend"}
    gaps: set[str] = set()
    result: list[Record] = []
    for record in records:
        parent, when = _required_parent(record, withheld), ms_of_iso(record.timestamp)
        if parent is not None and parent not in here and parent not in done and when > after:
            metadata: dict[str, Any] = {"by": BY}
            if parent in withheld:
                metadata["follows"] = _last_kept(parent, withheld, here)
            at = iso_ms(max(when - 1, after + 1))
            result.append(Ref(action="mend", branch="", head=parent, timestamp=at, metadata=metadata))
            done.add(parent)
            gaps.add(parent)
        result.append(record)
    return tuple(result), frozenset(gaps - withheld.keys())


def _required_parent(record: Record, withheld: Mapping[str, str | None]) -> str | None:
    """The commit that a record continues, which has to be here or be accepted as lost."""
    if isinstance(record, Commit):
        return record.parent_id
    return record.head if record.action == "create" and record.head in withheld else None


def _last_kept(commit: str, withheld: Mapping[str, str | None], here: AbstractSet[str]) -> str | None:
    """The newest commit that is here before a withheld one; None if there is none."""
    seen: set[str] = set()
    at: str | None = commit
    while at is not None and at not in here and at not in seen:
        seen.add(at)
        at = withheld.get(at)
    return at if at in here else None


# ---------------------------------------------------------------------- one line


def _grouped(events: Iterable[DecryptedEvent]) -> Iterable[list[DecryptedEvent]]:
    """Events grouped by their record."""
    groups: dict[str, list[DecryptedEvent]] = {}
    for one in events:
        parts = one.event.d.removeprefix(LEDGER).split(":")
        groups.setdefault(":".join(parts[:2]), []).append(one)
    return groups.values()


def _line(group: Sequence[DecryptedEvent], names: Names) -> tuple[str, RebuiltLine]:
    """The line in the events of one record, and its subject.

    Raises UnreadableContent, LedgerDamaged, NewerSchema.
    """
    first = min(group, key=lambda one: len(one.event.d))  # the others end in the number of their part
    subject, number = _subject(first.body), _number(first.body, "line")
    record: Record | None = None
    parent, source = None, None
    if first.body.get("withheld") is True:
        key, parent, parts = first.body.get("id"), first.body.get("parent"), [first]
        if not isinstance(key, str) or not isinstance(parent, str | None):
            raise UnreadableContent("it stands for a withheld record without naming it")
        source = _source(first.body.get("event"))
    else:
        parts, value = _joined(group, first)
        record = record_of_json(value)
        key = record.id
    for part, one in enumerate(parts):
        if one.event.d != names.record(subject, key, part):
            raise UnreadableContent("its address is not that of its record")
    return subject, RebuiltLine(number, key, record, parent, source)


def _source(value: object) -> tuple[str, Signed] | None:
    """Address, time and id of the owner's event in a stub; None if it has none."""
    match value:
        case {"d": str(d), "created_at": int(at), "id": str(id_)}:
            return d, Signed(at, id_)
    return None


def _joined(group: Sequence[DecryptedEvent], first: DecryptedEvent) -> tuple[list[DecryptedEvent], Any]:
    """The events of a record in the order of its parts, and the record's JSON. Raises UnreadableContent."""
    if "parts" not in first.body:
        return [first], first.body.get("record")
    count = min(_number(first.body, "parts"), MAX_PARTS)
    by_part = {_number(one.body, "part"): one for one in group if "part" in one.body}
    if missing := sum(part not in by_part for part in range(count)):
        raise UnreadableContent(f"{missing} of its {count} parts are missing")
    parts = [by_part[part] for part in range(count)]
    texts = [one.body.get("text") for one in parts]
    try:
        return parts, json.loads("".join(text for text in texts if isinstance(text, str)))
    except (ValueError, RecursionError):
        raise UnreadableContent("its parts are not JSON together") from None


def _subject(body: Mapping[str, Any]) -> str:
    subject = body.get("subject")
    try:
        return safe_id(subject if isinstance(subject, str) else "")
    except MemoryFault:
        raise UnreadableContent("it does not name its subject") from None


def _number(body: Mapping[str, Any], name: str) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UnreadableContent(f"its {name} is not a number")
    return value


# ---------------------------------------------------------------------- order


def _parents_first(records: Sequence[Record]) -> bool:
    """Whether each record is there once, and after all the others that it depends on."""
    here = {record.id for record in records}
    seen: set[str] = set()
    for record in records:
        if record.id in seen or any(one in here and one not in seen for one in _dependencies(record)):
            return False
        seen.add(record.id)
    return True


def _dependencies(record: Record) -> Iterable[str]:
    merged = record.metadata.get("merged") if isinstance(record, Commit) else None
    first = record.parent_id if isinstance(record, Commit) else record.head
    return (one for one in (first, merged) if isinstance(one, str))

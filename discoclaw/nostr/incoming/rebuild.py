"""Ledgers out of events: records whose hashes are right, put in the order in which they once stood.

One event holds a record, or a part of a large one, with its subject and the number of its line. The address
has to be the one that this very record of this subject has, so no event of ours can stand for another.
Confidential records never left the disk that wrote them; a stub stands in their place. What follows such a
record, or one that no relay has any more, is kept, with a "mend" that accepts the gap; where a stub said so,
the mend says what came before: `follows`, the id of a commit that is here, or null.
Pure; knows nothing about relays or files.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from discoclaw.core.errors import LedgerDamaged, MemoryFault, NewerSchema, NotOpened
from discoclaw.core.event import Commit, Record, Ref, record_of_json
from discoclaw.core.order import in_order
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.memory.disk.files import safe_id
from discoclaw.nostr.incoming.sift import Opened, Unread
from discoclaw.nostr.names import LEDGER, Names

BY = "recovery"
"""What mends say of who made them."""
MOST_PARTS = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a ledger: its number from 0, and the record, or id and parent of one that was withheld."""

    number: int
    id: str
    record: Record | None
    parent: str | None = None


@dataclass(slots=True)
class RebuiltLedger:
    """What was found of one subject's ledger. `events` are all that stand for it, stubs and parts too."""

    subject: str
    lines: list[Line] = field(default_factory=list)
    events: list[Opened] = field(default_factory=list)

    @property
    def withheld(self) -> Mapping[str, str | None]:
        """Ids of commits that never left the disk that wrote them, with those of their parents."""
        return {line.id: line.parent for line in self.lines if line.record is None}

    def records(self) -> tuple[Record, ...]:
        """The records in the order of their lines, where every line is there once and none comes before
        what it rests on; else in the order that their set has."""
        lines = sorted(self.lines, key=lambda line: line.number)
        records = tuple(line.record for line in lines if line.record is not None)
        complete = all(line.number == number for number, line in enumerate(lines))
        return records if complete and _parents_first(records) else in_order(records)


def ledgers(events: Iterable[Opened], names: Names) -> tuple[dict[str, RebuiltLedger], list[Unread]]:
    """The ledgers that events of ledgers hold, by subject, and the events that can not be used."""
    found: dict[str, RebuiltLedger] = {}
    unread: list[Unread] = []
    for group in _grouped(events):
        try:
            subject, line = _line(group, names)
        except (NotOpened, LedgerDamaged, NewerSchema) as why:
            unread += [Unread(one.event, str(why)) for one in group]
            continue
        ledger = found.setdefault(subject, RebuiltLedger(subject))
        ledger.lines.append(line)
        ledger.events += group
    return found, unread


def mended(
    records: Sequence[Record],
    known: AbstractSet[str],
    withheld: Mapping[str, str | None],
    *,
    after: int = -1,
) -> tuple[tuple[Record, ...], frozenset[str]]:
    """Records with a mend before the first that rests on a commit which is neither here nor `known`; and the
    ids of those that are lost, that is, not `withheld` either.

    The mends are dated just before what follows, so whoever mends the same gap writes the same. What is
    dated until `after` (ms) needs none.
    """
    here = {record.id for record in records} | known
    done = {one.head for one in records if isinstance(one, Ref) and one.action == "mend"}
    gaps: set[str] = set()
    whole: list[Record] = []
    for record in records:
        wanted, when = _starts_at(record, withheld), ms_of_iso(record.timestamp)
        if wanted is not None and wanted not in here and wanted not in done and when > after:
            told: dict[str, Any] = {"by": BY}
            if wanted in withheld:
                told["follows"] = _last_kept(wanted, withheld, here)
            at = iso_ms(max(when - 1, after + 1))
            whole.append(Ref(action="mend", branch="", head=wanted, timestamp=at, metadata=told))
            done.add(wanted)
            gaps.add(wanted)
        whole.append(record)
    return tuple(whole), frozenset(gaps - withheld.keys())


def _starts_at(record: Record, withheld: Mapping[str, str | None]) -> str | None:
    """The commit on which a record goes on, and which has to be there or be accepted as lost."""
    if isinstance(record, Commit):
        return record.parent_id
    return record.head if record.action == "create" and record.head in withheld else None


def _last_kept(commit: str, withheld: Mapping[str, str | None], here: AbstractSet[str]) -> str | None:
    """The newest commit before a withheld one that is here."""
    seen: set[str] = set()
    at: str | None = commit
    while at is not None and at not in here and at not in seen:
        seen.add(at)
        at = withheld.get(at)
    return at if at in here else None


# ---------------------------------------------------------------------- one line


def _grouped(events: Iterable[Opened]) -> Iterable[list[Opened]]:
    """Events by the record that they are, or are parts of."""
    groups: dict[str, list[Opened]] = {}
    for one in events:
        parts = one.event.d.removeprefix(LEDGER).split(":")
        groups.setdefault(":".join(parts[:2]), []).append(one)
    return groups.values()


def _line(group: Sequence[Opened], names: Names) -> tuple[str, Line]:
    """The line that events are, and its subject. Raises NotOpened, LedgerDamaged and NewerSchema."""
    first = min(group, key=lambda one: len(one.event.d))  # the others have the number of their part behind
    subject, number = _subject(first.body), _number(first.body, "line")
    record: Record | None = None
    parent = None
    if first.body.get("withheld") is True:
        key, parent, parts = first.body.get("id"), first.body.get("parent"), [first]
        if not isinstance(key, str) or not isinstance(parent, str | None):
            raise NotOpened("it withholds a record and does not say which")
    else:
        parts, value = _put_together(group, first)
        record = record_of_json(value)
        key = record.id
    for part, one in enumerate(parts):
        if one.event.d != names.record(subject, key, part):
            raise NotOpened("its address is not that of the record in it")
    return subject, Line(number, key, record, parent)


def _put_together(group: Sequence[Opened], first: Opened) -> tuple[list[Opened], Any]:
    """The events whose texts make up a record, in order, and the record's JSON."""
    if "parts" not in first.body:
        return [first], first.body.get("record")
    count = min(_number(first.body, "parts"), MOST_PARTS)
    by_part = {_number(one.body, "part"): one for one in group if "part" in one.body}
    if missing := sum(part not in by_part for part in range(count)):
        raise NotOpened(f"{missing} of its {count} parts are not there")
    parts = [by_part[part] for part in range(count)]
    texts = [one.body.get("text") for one in parts]
    try:
        return parts, json.loads("".join(text for text in texts if isinstance(text, str)))
    except (ValueError, RecursionError):
        raise NotOpened("its parts make no record") from None


def _subject(body: Mapping[str, Any]) -> str:
    subject = body.get("subject")
    try:
        return safe_id(subject if isinstance(subject, str) else "")
    except MemoryFault:
        raise NotOpened("it does not say whom it is about") from None


def _number(body: Mapping[str, Any], name: str) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise NotOpened(f"it has no number of its {name}")
    return value


# ---------------------------------------------------------------------- order


def _parents_first(records: Sequence[Record]) -> bool:
    """Whether each record stands once, and behind those of the others that it rests on."""
    here = {record.id for record in records}
    seen: set[str] = set()
    for record in records:
        if record.id in seen or any(one in here and one not in seen for one in _rests_on(record)):
            return False
        seen.add(record.id)
    return True


def _rests_on(record: Record) -> Iterable[str]:
    merged = record.metadata.get("merged") if isinstance(record, Commit) else None
    first = record.parent_id if isinstance(record, Commit) else record.head
    return (one for one in (first, merged) if isinstance(one, str))

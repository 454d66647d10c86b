"""A ledger as it is published: one event for each record, several for a large one.

    {"subject", "line", "record"}                              a record, with its line number from 0
    {"subject", "line", "part", "parts", "text"}               a part of its JSON, if it is too long for one
    {"subject", "line", "withheld", "id", "parent", "reason", "event"}
                                                               in place of a record that must not leave the
                                                               disk; `event` names the owner's event that it
                                                               came from, if any

Each is written and read here. A rebuilt ledger has its records with correct hashes, in their order.

Confidential items never leave the disk: neither the record that marks one, nor any other record about it,
even an older one. A record that contains a secret key is withheld too: removing the key would change the
record's hash. The stub keeps the chain of parents, without which recovery could not place the records
after it, and the owner's event, which must not count again after a recovery.
Pure: knows nothing about files or relays.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from discoclaw.core.errors import LedgerDamaged, MemoryFault, NewerSchema, UnreadableContent
from discoclaw.core.event import Commit, Event, Record, decode_line, record_of_json
from discoclaw.core.history import in_order
from discoclaw.core.item import MAX_TEXT, item_id, triple_text
from discoclaw.core.live import Signed
from discoclaw.core.redact import Redactor
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso
from discoclaw.nostr.event import MAX_PLAINTEXT, canonical
from discoclaw.nostr.schemas import APP, LEDGER, NPUB, DecryptedEvent, EventTemplate, Names, UnreadableEvent
from discoclaw.store.files import safe_id

log = logging.getLogger(__name__)

PART_BYTES: Final = 18_000
"""Bytes of a record's JSON in one part.

As a string inside JSON they at most double, and still fit an event.
"""
RULES: Final = 2
"""The version of what is withheld. When it changes, every published ledger is compared anew."""
CONFIDENTIAL_MARK: Final = b'"confidential"'
"""A ledger without these bytes has nothing confidential, so it need not be parsed to know that."""
_WITHHELD = "withheld"
_PUBLIC: Final[Mapping[str, re.Pattern[str]]] = {
    "id": re.compile("[0-9a-f]{64}"),
    "d": re.compile(re.escape(NPUB) + "[0-9a-fA-F]{64}"),
}
"""What looks like a key in an owner's event: its id, and an address that names a person by a pseudonym."""


class LedgerLine(NamedTuple):
    """A line that verifies: its number from 0, the byte at which it begins, and its record."""

    number: int
    start: int
    record: Record


def read(content: bytes) -> tuple[list[LedgerLine], int]:
    """The records of a ledger, each once, and how many lines don't verify.

    An unfinished last line is left out: a kill may have cut it off.
    """
    found: dict[str, LedgerLine] = {}
    start = unreadable = 0
    for number, line in enumerate(content.split(b"\n")[:-1]):
        try:
            record = decode_line(line)
            found.setdefault(record.id, LedgerLine(number, start, record))
        except (LedgerDamaged, NewerSchema):
            unreadable += 1
        start += len(line) + 1
    return list(found.values()), unreadable


# ---------------------------------------------------------------------- what is confidential


@dataclass(frozen=True, slots=True)
class Confidential:
    """Items that were ever confidential in a ledger: their ids, and all texts they ever had."""

    items: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    _about: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Confidential":
        """Find what is confidential in the records of a ledger."""
        events = {event.id: event for one in records if isinstance(one, Commit) for event in one.events}
        about = {key: _items(event, events) for key, event in events.items()}
        items: set[str] = set()
        for key, event in events.items():
            if event.sensitivity == "confidential" and event.verb in ("add", "modify"):
                items |= about[key]
        texts = {_text(event) for key, event in events.items() if about[key] & items}
        return cls(frozenset(items), frozenset(texts - {""}), about)

    def concerns(self, record: Record) -> bool:
        """Whether a record is about something confidential, so that it must not leave the disk."""
        for event in record.events if isinstance(record, Commit) else ():
            items = set(self._about.get(event.id, ()))
            for part, name in (("conflict", "other"), ("link", "to")):  # the other items that it names
                value = event.ext.get(part)
                if isinstance(value, Mapping) and isinstance(other := value.get(name), str):
                    items.add(other)
            if event.sensitivity == "confidential" or not self.items.isdisjoint(items):
                return True
        return False


NOTHING_CONFIDENTIAL = Confidential()


def _items(event: Event, events: Mapping[str, Event]) -> frozenset[str]:
    """The ids of the items that an event can be about. A bare triple may continue its parents' item."""
    found: set[str] = set()
    seen: set[str] = set()
    one: Event | None = event
    while one is not None and one.id not in seen:
        seen.add(one.id)
        given = one.ext.get("item", {}).get("id")
        if isinstance(given, str):
            found.add(given)
            break
        found.add(item_id("fact", _text(replace(one, ext={})) or "-"))
        one = events.get(one.parent_id or "")
    return frozenset(found)


def _text(event: Event) -> str:
    """The text that an event gives its item, as the item has it; "" if it gives none."""
    text = event.ext.get("item", {}).get("text")
    if not isinstance(text, str):
        text = "" if event.ext else triple_text(event.subject, event.predicate, event.object)
    return collapse(scrub(text))[:MAX_TEXT].rstrip()


# ---------------------------------------------------------------------- what is published


def is_withheld(template: EventTemplate) -> bool:
    """Whether this is the stub of a record that must not leave the disk."""
    return template.body.get(_WITHHELD) is True


def templates(
    subject: str, line: LedgerLine, names: Names, redactor: Redactor, confidential: Confidential
) -> Iterator[EventTemplate]:
    """The templates of one record: itself, its parts, or the stub of one that is withheld.

    Raises NostrError.
    """
    record, at = line.record, max(0, ms_of_iso(line.record.timestamp) // 1000)
    head = {"subject": subject, "line": line.number}
    value, reason = record.to_json(), None
    if confidential.concerns(record):
        reason = "confidential"
    elif redactor.clean(text := "\n".join(_strings(_without_hashes(value)))) != text:
        reason = "secret"
        log.warning("%s, line %d contains a secret, so it is not mirrored", subject, line.number + 1)
    if reason is not None:
        parent = record.parent_id if isinstance(record, Commit) else record.head
        stub = {**head, _WITHHELD: True, "id": record.id, "parent": parent, "reason": reason}
        if isinstance(signed := record.metadata.get("event"), Mapping):
            stub["event"] = dict(signed)
        yield EventTemplate(APP, names.record(subject, record.id), stub, at)
        return
    body = {**head, "record": value}
    if len(canonical(body).encode("utf-8")) <= MAX_PLAINTEXT:
        yield EventTemplate(APP, names.record(subject, record.id), body, at)
        return
    parts = list(split(canonical(value)))
    for number, part in enumerate(parts):
        body = {**head, "part": number, "parts": len(parts), "text": part}
        yield EventTemplate(APP, names.record(subject, record.id, number), body, at)


def _without_hashes(value: Mapping[str, Any]) -> dict[str, Any]:
    """A record's JSON without its hashes: 64 hex digits look like a secret key.

    The owner's signed event that a commit came from has such digits in its id, and may in its address. Both
    are left out only where they have the form that the schema gives them, and nowhere else.
    """
    plain = {key: one for key, one in value.items() if key != "hash"}
    metadata = plain.get("metadata", {})
    if isinstance(signed := metadata.get("event"), Mapping):
        shown = dict(signed)
        for key, form in _PUBLIC.items():
            if isinstance(text := signed.get(key), str) and form.fullmatch(text):
                del shown[key]
        plain["metadata"] = {**metadata, "event": shown}
    if "events" in plain:
        plain["events"] = [
            {key: one for key, one in event.items() if key != "hash"} for event in plain["events"]
        ]
    return plain


def _strings(value: object) -> Iterator[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield str(key)
            yield from _strings(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one)


def split(text: str) -> Iterator[str]:
    """A text in parts of at most `PART_BYTES` bytes of UTF-8. No character is cut."""
    content, start = text.encode("utf-8"), 0
    while start < len(content):
        end = min(start + PART_BYTES, len(content))
        while end < len(content) and content[end] & 0xC0 == 0x80:  # a UTF-8 continuation byte
            end -= 1
        yield content[start:end].decode("utf-8")
        start = end


# ----------------------------------------------------------------------
# Rebuilds ledgers from events: records with correct hashes, in the order in which they were written.

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
        if any(line.number != number for number, line in enumerate(lines)):
            return in_order(records)
        here, seen = {record.id for record in records}, set[str]()
        for record in records:
            merged = record.metadata.get("merged") if isinstance(record, Commit) else None
            first = record.parent_id if isinstance(record, Commit) else record.head
            needed = {one for one in (first, merged) if isinstance(one, str)}
            if record.id in seen or needed & here - seen:
                return in_order(records)
            seen.add(record.id)
        return records


def rebuild_ledgers(
    events: Iterable[DecryptedEvent], names: Names
) -> tuple[dict[str, RebuiltLedger], list[UnreadableEvent]]:
    """The ledgers in these events, by subject, and the events that can't be used."""
    found: dict[str, RebuiltLedger] = {}
    unreadable: list[UnreadableEvent] = []
    groups: dict[str, list[DecryptedEvent]] = {}
    for one in events:
        record = ":".join(one.event.d.removeprefix(LEDGER).split(":")[:2])
        groups.setdefault(record, []).append(one)
    for group in groups.values():
        try:
            subject, line = _line(group, names)
        except (UnreadableContent, LedgerDamaged, NewerSchema) as why:
            unreadable += [UnreadableEvent(one.event, str(why)) for one in group]
            continue
        ledger = found.setdefault(subject, RebuiltLedger(subject))
        ledger.lines.append(line)
        ledger.events += group
    return found, unreadable


# ---------------------------------------------------------------------- one line


def _line(group: Sequence[DecryptedEvent], names: Names) -> tuple[str, RebuiltLine]:
    """The line in the events of one record, and its subject.

    Raises UnreadableContent, LedgerDamaged, NewerSchema.
    """
    first = min(group, key=lambda one: len(one.event.d))  # the others end in the number of their part
    number, subject = _number(first.body, "line"), first.body.get("subject")
    try:
        subject = safe_id(subject if isinstance(subject, str) else "")
    except MemoryFault:
        raise UnreadableContent("it does not name its subject") from None
    record: Record | None = None
    parent, source = None, None
    if first.body.get("withheld") is True:
        key, parent, parts = first.body.get("id"), first.body.get("parent"), [first]
        if not isinstance(key, str) or not isinstance(parent, str | None):
            raise UnreadableContent("it stands for a withheld record without naming it")
        source = source_of(first.body.get("event"))
    else:
        parts, value = _joined(group, first)
        record = record_of_json(value)
        key = record.id
    for part, one in enumerate(parts):
        if one.event.d != names.record(subject, key, part):
            raise UnreadableContent("its address is not that of its record")
    return subject, RebuiltLine(number, key, record, parent, source)


def source_of(value: object) -> tuple[str, Signed] | None:
    """Address, time and id of the owner's event that a record or its stub names; None if it names none."""
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


def _number(body: Mapping[str, Any], name: str) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UnreadableContent(f"its {name} is not a number")
    return value

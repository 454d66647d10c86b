"""A ledger as it is published: one address a record, of a large one several.

    {"subject", "line", "record"}                 a record, with the number of its line from 0
    {"subject", "line", "part", "parts", "text"}  a piece of its JSON, where that is too long for one event
    {"subject", "line", "withheld", "id", "parent", "reason"}  a stub of one that must not leave the disk

What is confidential never leaves the disk: neither a record that says so, nor any other about the same item,
whenever it was made confidential. A record with a secret key in it is withheld too: taking the key out would
change its hash. Pure; knows nothing about files or relays.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from discoclaw.core.errors import LedgerDamaged, NewerSchema, NostrError
from discoclaw.core.event import Commit, Event, Record, decode_line
from discoclaw.core.history import History
from discoclaw.core.item import MAX_TEXT, item_id, triple_text
from discoclaw.core.redact import Redactor
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.nostr.event import MOST_PLAIN
from discoclaw.nostr.names import Names
from discoclaw.nostr.schemas import APP, Wanted
from discoclaw.nostr.sealed import canonical

log = logging.getLogger(__name__)

PIECE: Final = 18_000
"""Bytes of a record's JSON in one part: written as a JSON text again they at most double."""
CONFIDENTIAL: Final = b'"confidential"'
"""Without these bytes nothing in a ledger is confidential."""
_WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class Line:
    """One line that verifies: its number from 0, the byte at which it begins, and its record."""

    number: int
    start: int
    record: Record


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a ledger holds, each record once. `size` is its length in bytes without an unfinished last line,
    `unread` the number of lines that do not verify."""

    subject: str
    lines: tuple[Line, ...] = ()
    size: int = 0
    unread: int = 0

    def shown(self) -> View:
        """What HEAD's branch says."""
        return History(line.record for line in self.lines).shown()


def sound_size(content: bytes) -> int:
    """The length in bytes of the lines that are finished."""
    return content.rfind(b"\n") + 1


def read(subject: str, content: bytes) -> Ledger:
    """The ledger in these bytes; what does not verify is left out."""
    found: dict[str, Line] = {}
    start = unread = 0
    for number, line in enumerate(content.split(b"\n")[:-1]):
        try:
            record = decode_line(line)
            found.setdefault(record.id, Line(number, start, record))
        except (LedgerDamaged, NewerSchema):
            unread += 1
        start += len(line) + 1
    return Ledger(subject, tuple(found.values()), start, unread)


# ---------------------------------------------------------------------- what is confidential


@dataclass(frozen=True, slots=True)
class Secrets:
    """What was ever confidential in a ledger: the ids of the items, and the texts that they ever had."""

    items: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    _about: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Secrets":
        """The secrets of all records of a ledger."""
        events = {event.id: event for one in records if isinstance(one, Commit) for event in one.events}
        about = {key: _items(event, events) for key, event in events.items()}
        items: set[str] = set()
        for key, event in events.items():
            if event.sensitivity == "confidential" and event.event_type in ("add", "modify"):
                items |= about[key]
        texts = {text for key, event in events.items() if about[key] & items for text in _texts(event)}
        return cls(frozenset(items), frozenset(texts), about)

    def withhold(self, record: Record) -> bool:
        """Whether a record must not leave the disk."""
        return isinstance(record, Commit) and any(self._hides(event) for event in record.events)

    def _hides(self, event: Event) -> bool:
        touched = {*self._about.get(event.id, ()), *_beside(event)}
        return event.sensitivity == "confidential" or not self.items.isdisjoint(touched)


NO_SECRETS = Secrets()


def _items(event: Event, events: Mapping[str, Event]) -> frozenset[str]:
    """The ids of the items an event can be about: its own, or of a bare triple that of what it continues."""
    found: set[str] = set()
    seen: set[str] = set()
    one: Event | None = event
    while one is not None and one.id not in seen:
        seen.add(one.id)
        given = one.ext.get("item", {}).get("id")
        if isinstance(given, str):
            found.add(given)
            break
        found.add(item_id("fact", _said(one) or "-"))
        one = events.get(one.parent_id or "")
    return frozenset(found)


def _beside(event: Event) -> Iterator[str]:
    """The ids of other items that an event names."""
    for part, name in (("conflict", "other"), ("link", "to")):
        held = event.ext.get(part)
        other = held.get(name) if isinstance(held, Mapping) else None
        if isinstance(other, str):
            yield other


def _texts(event: Event) -> Iterator[str]:
    """The texts that an event gives its item."""
    given = event.ext.get("item", {}).get("text")
    text = _tidy(given) if isinstance(given, str) else "" if event.ext else _said(event)
    if text:
        yield text


def _said(event: Event) -> str:
    return _tidy(triple_text(event.subject, event.predicate, event.object))


def _tidy(text: str) -> str:
    return collapse(scrub(text))[:MAX_TEXT].rstrip()


# ---------------------------------------------------------------------- what is published


def records(
    ledger: Ledger, names: Names, redactor: Redactor, secrets: Secrets, *, since: int = 0
) -> Iterator[Wanted]:
    """What is to stand for each record whose line begins at the byte `since` or behind it."""
    for line in ledger.lines:
        if line.start >= since:
            try:
                yield from _published(ledger.subject, line, names, redactor, secrets)
            except NostrError as error:
                log.error("%s, line %d is not mirrored: %s", ledger.subject, line.number + 1, error)


def is_withheld(wanted: Wanted) -> bool:
    """Whether this stands for a record that must not leave the disk."""
    return wanted.body.get(_WITHHELD) is True


def _published(
    subject: str, line: Line, names: Names, redactor: Redactor, secrets: Secrets
) -> Iterator[Wanted]:
    record, at = line.record, _seconds(line.record)
    head = {"subject": subject, "line": line.number}
    reason = _reason(record, redactor, secrets)
    if reason is not None:
        if reason == "secret":
            log.warning("%s, line %d holds a secret, so it is not mirrored", subject, line.number + 1)
        parent = record.parent_id if isinstance(record, Commit) else record.head
        stub = {**head, _WITHHELD: True, "id": record.id, "parent": parent, "reason": reason}
        yield Wanted(APP, names.record(subject, record.id), stub, at)
        return
    value = record.to_json()
    whole = {**head, "record": value}
    if len(canonical(whole).encode("utf-8")) <= MOST_PLAIN:
        yield Wanted(APP, names.record(subject, record.id), whole, at)
        return
    pieces = list(split(canonical(value)))
    for number, piece in enumerate(pieces):
        body = {**head, "part": number, "parts": len(pieces), "text": piece}
        yield Wanted(APP, names.record(subject, record.id, number), body, at)


def _reason(record: Record, redactor: Redactor, secrets: Secrets) -> str | None:
    """Why a record is withheld; None when it is not."""
    if secrets.withhold(record):
        return "confidential"
    said = "\n".join(_strings(_unsealed(record.to_json())))
    return "secret" if redactor.clean(said) != said else None


def _unsealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A record's JSON without its hashes, which look like keys."""
    plain = {key: one for key, one in value.items() if key != "hash"}
    if "events" in plain:
        plain["events"] = [
            {key: one for key, one in event.items() if key != "hash"} for event in plain["events"]
        ]
    return plain


def _strings(value: object) -> Iterator[str]:
    """Every text in a JSON value, keys too."""
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
    """A text in pieces of at most `PIECE` bytes of UTF-8, no character cut."""
    content, start = text.encode("utf-8"), 0
    while start < len(content):
        end = min(start + PIECE, len(content))
        while end < len(content) and content[end] & 0xC0 == 0x80:
            end -= 1
        yield content[start:end].decode("utf-8")
        start = end


def _seconds(record: Record) -> int:
    return max(0, ms_of_iso(record.timestamp) // 1000)

"""Events, commits and refs: immutable and content-addressed. A commit or a ref is one line of a ledger.

An event says that one thing about a subject was added, modified, forgotten or observed. A commit groups
events that take effect together. A ref records what happened to a branch. How ids are derived is a published
contract, with golden values in the tests:

    event id   first 16 hex digits of SHA-256 over the canonical JSON of
               {event_type, subject, predicate, object, scope, timestamp}, and `ext` when it is not empty
    commit id  the same over {branch, events (ids, sorted), parent_id, timestamp}
    ref id     the same over {action, branch, head, persona, timestamp}
    hash       full SHA-256 over the canonical JSON of everything else in the record, to detect tampering

Canonical JSON has sorted keys, Python's default separators, and unescaped non-ASCII characters. Changing it
would change every id. Source, evidence, message and metadata are not part of an id; the hash covers them.
Knows nothing about files, or what a fold of events means.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Literal, TypeAlias, cast, get_args

from discoclaw.core.errors import LedgerDamaged, NewerSchema, Refused
from discoclaw.core.item import (
    KINDS,
    MAX_TEXT,
    Facets,
    Item,
    Kind,
    Sensitivity,
    Source,
    tidy_tags,
    triple_text,
)
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso, valid_ms

EventType: TypeAlias = Literal["add", "modify", "forget", "observe"]
RefAction: TypeAlias = Literal["create", "switch", "delete", "union", "mend"]
_VERBS: Mapping[str, EventType] = {
    **{name: name for name in get_args(EventType)},
    "update": "modify",
    "deprecate": "forget",
    "confirm": "observe",
}
"""The meaning of each event type. Some programs of the ledger design have own words, which ids cover."""

_EVENT_KEYS = (
    "event_type",
    "subject",
    "predicate",
    "object",
    "scope",
    "timestamp",
    "confidence",
    "source",
    "evidence",
    "sensitivity",
    "parent_id",
)


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


def canonical(value: object) -> str:
    """The value as canonical JSON, the only form that is hashed."""
    return _CANONICAL.encode(value)


def _sha256(value: object) -> str:
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One immutable statement about a subject.

    `timestamp` is ISO 8601 in UTC. `scope` is permanent, session, temporary or any label. `source` is
    "discord:<channel>/<message>" or "manual"; `evidence` is a short quote or reason. `parent_id` is the event
    that this one changes. `ext` has the item's fields (see `view`). Raises Refused for an unknown type or
    sensitivity, or a confidence outside 0 to 1.
    """

    event_type: str
    subject: str
    predicate: str
    object: str
    timestamp: str
    scope: str | None = "permanent"
    confidence: float = 1.0
    source: str = "manual"
    evidence: str = ""
    sensitivity: Sensitivity = "normal"
    parent_id: str | None = None
    ext: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(init=False)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        if self.event_type not in tuple(_VERBS):
            allowed = ", ".join(get_args(EventType))
            raise Refused(f"unknown event type {self.event_type!r}; expected one of {allowed}")
        if self.sensitivity not in get_args(Sensitivity):
            allowed = ", ".join(get_args(Sensitivity))
            raise Refused(f"unknown sensitivity {self.sensitivity!r}; expected one of {allowed}")
        if not 0.0 <= self.confidence <= 1.0:
            raise Refused(f"confidence must be between 0 and 1, not {self.confidence}")
        hashed = {name: getattr(self, name) for name in _EVENT_KEYS[:6]}
        if self.ext:  # without it, the id is that of a bare triple in the ledger design
            hashed["ext"] = self.ext
        # A frozen dataclass can only set its derived fields this way.
        object.__setattr__(self, "id", _sha256(hashed)[:16])
        object.__setattr__(self, "hash", _sha256(self._body()))

    @property
    def verb(self) -> EventType:
        """The type by what the event does, whatever word its program has for it."""
        return _VERBS[self.event_type]

    def _body(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _EVENT_KEYS} | {"ext": self.ext, "id": self.id}

    def to_json(self) -> dict[str, Any]:
        return self._body() | {"hash": self.hash}

    @classmethod
    def from_json(cls, value: Any) -> "Event":
        """The event in a record, with its id and hash verified. Raises LedgerDamaged with the reason."""
        # Strict, since the hash does not cover an unknown field, so anybody could have added it.
        _check_fields(value, {*_EVENT_KEYS, "ext", "id", "hash"}, _EVENT_TEXTS, "an event")
        try:
            _check_time(value["timestamp"])
            _check_ext(value["ext"])
            event = cls(**{name: value[name] for name in _EVENT_KEYS}, ext=value["ext"])
        except (TypeError, ValueError, RecursionError, Refused) as error:
            raise LedgerDamaged(f"an event is malformed: {error}") from error
        if event.id != value.get("id"):
            raise LedgerDamaged(f"event {value.get('id')} does not match its content ({event.id})")
        if event.hash != value.get("hash"):
            raise LedgerDamaged(f"event {event.id} was changed after it was written")
        return event


_EVENT_TEXTS = ("subject", "predicate", "object", "timestamp", "source", "evidence")
_COMMIT_KEYS = {"type", "id", "branch", "parent_id", "timestamp", "message", "metadata", "events", "hash"}


def _check_fields(value: Any, names: set[str], texts: Collection[str], what: str) -> None:
    """Raise LedgerDamaged unless a record has exactly these fields, with text where text is expected."""
    if not isinstance(value, dict):
        raise LedgerDamaged(f"{what} is not a JSON object")
    if value.keys() != names:
        raise LedgerDamaged(f"{what} has unknown or missing fields: {sorted(value.keys() ^ names)}")
    optional = [name for name in ("scope", "parent_id", "head") if value.get(name) is not None]
    if wrong := [name for name in (*texts, *optional) if not isinstance(value[name], str)]:
        raise LedgerDamaged(f"{what} has fields that are not text: {wrong}")


def _check_time(timestamp: str) -> None:
    """Raise ValueError for a time before 1970, or so late that later records would have no valid time."""
    if not valid_ms(ms_of_iso(timestamp) + _ROOM_MS):
        raise ValueError(f"{timestamp} is not a valid time for a record")


_ROOM_MS = (
    86_400_000_000  # each record is at least 1 ms later than the last, so leave room for a thousand days
)


_EXT_TYPES: Mapping[str, type | tuple[type, ...]] = {"id": str, "text": str, "tags": list, "source": dict}
_EXT_PARTS = ("item", "facets", "conflict", "link")


def _check_ext(ext: Any) -> None:
    """Raise TypeError or ValueError, with the reason, for an `ext` of a shape that `view` cannot fold."""
    parts = (ext, *map(ext.get, _EXT_PARTS, repeat({}))) if isinstance(ext, dict) else (None,)
    if not all(isinstance(part, dict) for part in parts):
        raise TypeError("ext and its item, facets, conflict and link must be JSON objects")
    item = ext.get("item", {})
    for name, kind in _EXT_TYPES.items():
        if name in item and not isinstance(item[name], kind):
            raise TypeError(f"item.{name} has the wrong type")
    if item.get("kind", KINDS[0]) not in KINDS or item.get("status", "active") not in (
        "active",
        "deprecated",
    ):
        raise ValueError("item.kind or item.status is unknown")
    facets = ext.get("facets", {})
    if facets.get("author", "stated") not in ("stated", "inferred"):
        raise ValueError("facets.author is unknown")
    links = facets.get("links", [])
    if not isinstance(links, list) or not all(isinstance(link, str) for link in links):
        raise TypeError("facets.links must be a list of ids")
    if not isinstance(facets.get("key"), str | None) or not isinstance(facets.get("category", ""), str):
        raise TypeError("facets.key and facets.category must be text")
    if not all(valid_ms(item.get(name, 0)) for name in ("createdAt", "updatedAt")):
        raise ValueError("item.createdAt or item.updatedAt is not a time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Events that take effect together, and why.

    `metadata` may have any keys. Known ones: `merged` (the second parent of a merge) and `from` (its branch),
    `picked`, `reverts` and `restores` (ids of commits), `by` (who or what made it), `message` (the Discord
    message it is based on), `people` (see `attribution`). It is not part of the id, only of the hash.
    """

    branch: str
    events: tuple[Event, ...]
    message: str
    parent_id: str | None
    timestamp: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(init=False)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        ids = sorted(event.id for event in self.events)  # the id does not depend on the order, the hash does
        hashed = {
            "branch": self.branch,
            "events": ids,
            "parent_id": self.parent_id,
            "timestamp": self.timestamp,
        }
        object.__setattr__(self, "id", _sha256(hashed)[:16])
        sealed = hashed | {
            "events": [event.hash for event in self.events],
            "id": self.id,
            "message": self.message,
            "metadata": self.metadata,
        }
        object.__setattr__(self, "hash", _sha256(sealed))

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "commit",
            "id": self.id,
            "branch": self.branch,
            "parent_id": self.parent_id,
            "timestamp": self.timestamp,
            "message": self.message,
            "metadata": dict(self.metadata),
            "events": [event.to_json() for event in self.events],
            "hash": self.hash,
        }

    @classmethod
    def from_json(cls, value: Any) -> "Commit":
        """The commit in a record, verified together with its events. Raises LedgerDamaged with the reason."""
        _check_fields(value, _COMMIT_KEYS, ("branch", "message", "timestamp"), "a commit")
        if value["type"] != "commit" or not isinstance(value["metadata"], dict):
            raise LedgerDamaged('a commit needs the type "commit" and a metadata object')
        try:
            commit = cls(
                branch=value["branch"],
                events=tuple(Event.from_json(event) for event in value["events"]),
                message=value["message"],
                parent_id=value["parent_id"],
                timestamp=value["timestamp"],
                metadata=value["metadata"],
            )
            _check_time(commit.timestamp)
        except (TypeError, ValueError, RecursionError) as error:
            raise LedgerDamaged(f"a commit is malformed: {error}") from error
        if commit.id != value.get("id"):
            raise LedgerDamaged(f"commit {value.get('id')} does not match its content ({commit.id})")
        if commit.hash != value.get("hash"):
            raise LedgerDamaged(f"commit {commit.id} was changed after it was written")
        return commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A change to a branch: it was created at `head`, became HEAD ("switch"), or was deleted.

    `persona` describes a created branch. Two actions concern the whole ledger and leave `branch` empty:
    "union" records that another replica's records were added, "mend" accepts that the commit `head` is lost.
    """

    action: RefAction
    branch: str
    timestamp: str
    head: str | None = None
    persona: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(init=False)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        if self.action not in get_args(RefAction):
            raise Refused(f"unknown action {self.action!r}; expected one of {', '.join(get_args(RefAction))}")
        hashed = {name: getattr(self, name) for name in _REF_KEYS}
        object.__setattr__(self, "id", _sha256(hashed)[:16])
        object.__setattr__(self, "hash", _sha256(hashed | {"id": self.id, "metadata": self.metadata}))

    def to_json(self) -> dict[str, Any]:
        body = {name: getattr(self, name) for name in _REF_KEYS}
        return {"type": "ref", "id": self.id, **body, "metadata": dict(self.metadata), "hash": self.hash}

    @classmethod
    def from_json(cls, value: Any) -> "Ref":
        """The ref in a record, verified. Raises LedgerDamaged with the reason."""
        _check_fields(
            value, {"type", "id", "metadata", "hash", *_REF_KEYS}, ("branch", "persona", "timestamp"), "a ref"
        )
        if value["type"] != "ref" or not isinstance(value["metadata"], dict):
            raise LedgerDamaged('a ref needs the type "ref" and a metadata object')
        try:
            ref = cls(**{name: value[name] for name in _REF_KEYS}, metadata=value["metadata"])
            _check_time(ref.timestamp)
        except (TypeError, ValueError, RecursionError, Refused) as error:
            raise LedgerDamaged(f"a ref is malformed: {error}") from error
        if ref.id != value["id"]:
            raise LedgerDamaged(f"ref {value['id']} does not match its content ({ref.id})")
        if ref.hash != value["hash"]:
            raise LedgerDamaged(f"ref {ref.id} was changed after it was written")
        return ref


_REF_KEYS = ("action", "branch", "head", "persona", "timestamp")

Record: TypeAlias = Commit | Ref
"""The value of one ledger line."""


def encode_line(record: Record) -> bytes:
    """A record as a ledger line, including the newline."""
    return (canonical(record.to_json()) + "\n").encode("utf-8")


def decode_line(line: bytes) -> Record:
    """The record in a ledger line, verified.

    Raises LedgerDamaged with the reason, or NewerSchema for a type of line that this version does not know.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LedgerDamaged(f"not JSON: {error}") from error
    return record_of_json(value)


def record_of_json(value: Any) -> Record:
    """The record in a line's JSON value, verified. Raises the same errors as `decode_line`."""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "ref":
        return Ref.from_json(value)
    if kind != "commit" and isinstance(kind, str):  # not damage: a newer version may write other types
        raise NewerSchema(f"a line of type {kind!r}, which this version does not know")
    return Commit.from_json(value)


# ----------------------------------------------------------------------
# Applies one event to an item; `view` folds these. Every event makes something: none is rejected.


def triple_text_of(event: Event) -> str:
    """The text of a bare triple."""
    return _tidy(triple_text(event.subject, event.predicate, event.object)) or "-"


def _tidy(text: object) -> str:
    """Any value as an item's text, cut to what an item may have: a fold accepts every event."""
    return collapse(scrub(text))[:MAX_TEXT].rstrip() if isinstance(text, str) else ""


def author_of(event: Event) -> str:
    """The author of an event's claim: "stated" or "inferred"."""
    by_source = "stated" if event.source == "manual" else "inferred"
    return str(event.ext.get("facets", {}).get("author", by_source))


def is_wanted(event: Event) -> bool:
    """Whether a person asked for a change, themselves or by asking the model."""
    return author_of(event) == "stated" or bool(event.ext.get("asked"))


def _facets(event: Event, before: Facets) -> Facets:
    given: Mapping[str, Any] = event.ext.get("facets", {})
    triple = before.triple
    if not event.ext or event.ext.get("triple"):
        triple = event.subject, event.predicate, event.object
    elif "text" in event.ext.get("item", {}):
        triple = None
    return Facets(
        sensitivity=event.sensitivity,
        scope=event.scope,
        confidence=event.confidence,
        author=cast(Any, author_of(event)),
        key=given.get("key", before.key),
        category=given.get("category", before.category),
        links=frozenset(given["links"]) if "links" in given else before.links,
        triple=triple,
    )


def added(event: Event, target: str) -> Item:
    """The item that an event adds under the id `target`."""
    body: Mapping[str, Any] = event.ext.get("item", {})
    now = 0 if "createdAt" in body and "updatedAt" in body else ms_of_iso(event.timestamp)
    return Item(
        id=target,
        kind=cast(Kind, body.get("kind", "fact")),
        text=_tidy(body.get("text")) or triple_text_of(event),
        tags=tidy_tags(body.get("tags")),
        status=body.get("status", "active"),
        source=Source.from_json(body.get("source")),
        created_at=body.get("createdAt", now),
        updated_at=body.get("updatedAt", now),
        facets=_facets(event, Facets()),
    )


def changed(event: Event, before: Item) -> Item:
    """The item after an event."""
    body: Mapping[str, Any] = event.ext.get("item", {})
    is_taken = event.verb == "modify"  # a second `add` comes from another replica: keep the older date
    return replace(
        before,
        kind=cast(Kind, body.get("kind", before.kind)),
        text=(_tidy(body.get("text")) or before.text) if body else triple_text_of(event),
        tags=tidy_tags(body["tags"]) if "tags" in body else before.tags,
        status=body.get("status", before.status),
        source=Source.from_json(body["source"]) if "source" in body else before.source,
        created_at=body.get("createdAt", before.created_at) if is_taken else before.created_at,
        updated_at=body.get("updatedAt", ms_of_iso(event.timestamp)),
        facets=_facets(event, before.facets),
    )

"""An item is one thing the bot remembers. Its body follows DNAM's schema; its facets are what that lacks.

Other programs read and write DNAM's schema (`durable/<user-id>.json`, version 1), so field names, their order
and the derivation of ids are a contract: an id is "durable-" and the first 8 hex digits of SHA-256 of
"kind:normalised text". It is given at creation and never changes.
Knows nothing about files, ledgers, or how items change.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

from discoclaw.core.errors import Refused
from discoclaw.core.text import collapse, normalise, scrub, visible
from discoclaw.core.times import date_of, valid_ms

Kind: TypeAlias = Literal["preference", "fact", "project", "constraint", "person", "tool", "workflow"]
Status: TypeAlias = Literal["active", "deprecated"]
Sensitivity: TypeAlias = Literal["normal", "private", "confidential"]
Author: TypeAlias = Literal["stated", "inferred"]

KINDS: tuple[Kind, ...] = get_args(Kind)
STANDING: frozenset[Kind] = frozenset({"preference", "constraint"})
"""Kinds that say how to answer a person. They are in every prompt, without being searched for."""
MAX_TEXT = 1000
"""Longest text of an item, in code points. An item is a sentence, not a document."""
MAX_TAGS = 16
MAX_TAG = 48
"""Longest tag, in code points."""


def _is_id(value: object) -> TypeGuard[str]:
    """Whether an outside value is safe as a Discord id: it goes into prompts unquoted."""
    return isinstance(value, str) and re.fullmatch(r"[0-9A-Za-z_-]{1,40}", value) is not None


@dataclass(frozen=True, slots=True)
class Source:
    """The source of an item: a Discord message, or "manual" (a command, a tool, a hand edit)."""

    type: Literal["discord", "manual"] = "manual"
    channel_id: str = ""
    message_id: str = ""

    def __str__(self) -> str:
        return f"discord:{self.channel_id}/{self.message_id}" if self.type == "discord" else "manual"

    def to_json(self) -> dict[str, str]:
        if self.type == "manual":
            return {"type": "manual"}
        return {"type": "discord", "channelId": self.channel_id, "messageId": self.message_id}

    @classmethod
    def from_json(cls, value: object) -> "Source":
        """The source in a JSON value; anything without a channel and message id counts as "manual".

        The TypeScript bot, whose files we read, wrote other types such as "summary".
        """
        if not isinstance(value, Mapping) or value.get("type") == "manual":
            return MANUAL
        channel, message = value.get("channelId"), value.get("messageId")
        if not _is_id(channel) or not _is_id(message):
            return MANUAL
        return cls("discord", channel, message)

    @classmethod
    def from_text(cls, text: str) -> "Source":
        """The source that `str` made a text of; any other text counts as "manual"."""
        kind, _, place = text.partition(":")
        channel, _, message = place.partition("/")
        return cls.from_json({"type": kind, "channelId": channel, "messageId": message})


MANUAL = Source()


@dataclass(frozen=True, slots=True)
class Facets:
    """Facts of the ledger about an item beyond DNAM's schema.

    `author` is "stated" if the person wrote it with a command or an edit. It is "inferred" if a model
    concluded it, or was asked in conversation to remember it. `confidence` is 0 to 1. `key` names the item
    uniquely, `category` is core, knowledge or conversation, and `links` are ids of related items. `triple` is
    (subject, predicate, object), for an item that was added in that form.
    """

    author: Author = "inferred"
    sensitivity: Sensitivity = "normal"
    scope: str | None = "permanent"
    confidence: float = 1.0
    key: str | None = None
    category: str = "knowledge"
    links: frozenset[str] = frozenset()
    triple: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Item:
    """One memory. `text` is one line, `tags` are lower-case, times are in ms since 1970."""

    id: str
    kind: Kind
    text: str
    tags: tuple[str, ...]
    status: Status
    source: Source
    created_at: int
    updated_at: int
    facets: Facets = field(default=Facets())

    @property
    def active(self) -> bool:
        return self.status == "active"

    def to_json(self) -> dict[str, Any]:
        """The item in DNAM's schema, keys in its order."""
        return {
            "id": self.id,
            "kind": self.kind,
            "text": self.text,
            "tags": list(self.tags),
            "status": self.status,
            "source": self.source.to_json(),
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
        }


def triple_text(subject: str, predicate: str, object_: str) -> str:
    """The text of an item that was added as a triple, for example "User prefers backend Python"."""
    return collapse(f"{'User' if subject == 'user' else subject} {predicate} {object_}")


def item_id(kind: str, text: str) -> str:
    """The id that an item of this kind and text is given at creation."""
    digest = hashlib.sha256(f"{kind}:{normalise(text)}".encode("utf-8", "surrogatepass"))
    return f"durable-{digest.hexdigest()[:8]}"


def check_kind(kind: str) -> Kind:
    """The kind, trimmed and lower-cased. Raises Refused if it is not one of `KINDS`."""
    tidy = collapse(kind).lower()
    if tidy not in KINDS:
        raise Refused(f"unknown kind of memory {kind!r}; use one of {', '.join(KINDS)}")
    return tidy


def check_text(text: str) -> str:
    """The text on one line, white space collapsed. Raises Refused if it is empty or over `MAX_TEXT`."""
    tidy = collapse(scrub(text))
    if not visible(tidy).strip():
        raise Refused("there is no text to remember")
    if len(tidy) > MAX_TEXT:
        raise Refused(
            f"a memory can have at most {MAX_TEXT} characters, "
            f"and this one has {len(tidy)}; please shorten it"
        )
    return tidy


def tidy_tags(tags: object) -> tuple[str, ...]:
    """The first `MAX_TAGS` tags, trimmed and in lower case, each once. Drops what isn't text.

    Tags come from models and hand-edited files, and an item shouldn't be lost because of a bad one.
    """
    if not isinstance(tags, list | tuple):
        return ()
    tidy = (collapse(collapse(scrub(tag)).lower()[:MAX_TAG]) for tag in tags if isinstance(tag, str))
    return tuple(dict.fromkeys(tag for tag in tidy if tag))[:MAX_TAGS]


def new_item(kind: str, text: str, *, source: Source, now_ms: int, tags: object = (), facets: Facets) -> Item:
    """A new active item with its derived id. Raises Refused for an unknown kind or an unusable text."""
    kind, text = check_kind(kind), check_text(text)
    return Item(item_id(kind, text), kind, text, tidy_tags(tags), "active", source, now_ms, now_ms, facets)


def item_from_json(value: object, *, now_ms: int, facets: Facets) -> Item:
    """An item from a durable file. Lenient, since people edit that file by hand.

    A missing id, status, source or time is filled in, and unknown fields (the TypeScript bot wrote hit
    counters) are ignored. Raises Refused, naming the fault, if there is no usable kind, text or status.
    """
    if not isinstance(value, Mapping):
        raise Refused(f"an item must be a JSON object, not {type(value).__name__}")
    kind, text = value.get("kind"), value.get("text")
    if not isinstance(kind, str) or not isinstance(text, str):
        raise Refused('an item needs a "kind" and a "text"')
    status = value.get("status", "active")
    if status not in ("active", "deprecated"):
        raise Refused(f'"status" must be "active" or "deprecated", not {status!r}')
    item = new_item(
        kind,
        text,
        tags=value.get("tags"),
        source=Source.from_json(value.get("source")),
        now_ms=now_ms,
        facets=facets,
    )
    given, created, updated = value.get("id"), value.get("createdAt"), value.get("updatedAt")
    return replace(
        item,
        id=(collapse(scrub(given)) if isinstance(given, str) else "") or item.id,
        status=status,
        created_at=created if valid_ms(created) else now_ms,
        updated_at=updated if valid_ms(updated) else now_ms,
    )


def durable_line(item: Item, *, until_ms: int | None = None) -> str:
    """An item in prompts: `- [kind] text (src: discord:<channel>/<message> | manual, updated <date>)`.

    If a newer item replaced it at `until_ms`, its text begins with "(until <month>)".
    """
    ended = f"(until {date_of(until_ms)[:7]}) " if until_ms is not None else ""
    return f"- [{item.kind}] {ended}{item.text} (src: {item.source}, updated {date_of(item.updated_at)})"


def by_newest(item: Item) -> tuple[int, str]:
    """Sort key for newest first; items of the same time are ordered by id."""
    return (-item.updated_at, item.id)

"""Applies one event to an item; `view` folds these. Every event makes something: none is rejected."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from discoclaw.core.event import Event
from discoclaw.core.item import MAX_TEXT, Facets, Item, Kind, Source, tidy_tags, triple_text
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso


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
    return Facets(
        sensitivity=event.sensitivity,
        scope=event.scope,
        confidence=event.confidence,
        author=cast(Any, author_of(event)),
        key=given.get("key", before.key),
        category=given.get("category", before.category),
        links=frozenset(given["links"]) if "links" in given else before.links,
        triple=_triple(event, before),
    )


def _triple(event: Event, before: Facets) -> tuple[str, str, str] | None:
    if not event.ext or event.ext.get("triple"):
        return event.subject, event.predicate, event.object
    return None if "text" in event.ext.get("item", {}) else before.triple


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

"""A view is what a chain of events adds up to: the fold of a branch. It can always be thrown away.

What an event's `ext["item"]` holds: `id` always; on `add` the whole item as DNAM's file has it; on
`modify` only the fields that change. `ext["facets"]` holds what the file lacks (author, key, category,
links). An event without `ext` is a bare triple of the ledger design: its item's text is made from it; with
`ext["triple"]` an item has both. `ext["link"]`, {to, on}, links two items or parts them.
A `forget` removes the item; an `observe` changes no item, and one with `ext["conflict"]`, {text, reason,
other}, records that somebody's words contradict an item and a person has to settle it; one that also has
`settled` says how they did.
Knows nothing about files and never decides whether a change is allowed: that is `draft`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from discoclaw.core.event import Commit, Event
from discoclaw.core.item import (
    MAX_TEXT,
    Facets,
    Item,
    Kind,
    Sensitivity,
    Source,
    item_id,
    tidy_tags,
    triple_text,
)
from discoclaw.core.privacy import may_show
from discoclaw.core.text import collapse, scrub
from discoclaw.core.times import ms_of_iso
from discoclaw.core.visible import VisibleItems


@dataclass(frozen=True, slots=True)
class Conflict:
    """What stands against an item: `text`, or "" when it is said that the item no longer holds.

    `other_id` is the item that has the text already, when both are remembered. `event_id` is the event
    that noted it, by which a question to the person names it.
    """

    item_id: str
    text: str
    reason: str
    event_id: str
    sensitivity: Sensitivity = "normal"
    other_id: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """The items of a branch in the order they were added, and where the chain stands.

    `last_event` maps an item to the event that last touched it, which is the parent of the next one.
    `triples` maps the events of bare triples to their items. `forgotten` says when (ms) the person had an
    item removed, by the item's id and by the id its last words would derive.
    """

    items: Mapping[str, Item] = field(default_factory=dict)
    last_event: Mapping[str, str] = field(default_factory=dict)
    triples: Mapping[str, str] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    forgotten: Mapping[str, int] = field(default_factory=dict)
    head: str | None = None
    updated_at: int = 0
    commits: int = 0
    _visible: dict[bool, VisibleItems] = field(default_factory=dict, init=False, repr=False, compare=False)

    def visible(self, *, in_dm: bool) -> VisibleItems:
        """The active items that may be shown in a DM with their person, or elsewhere; computed once."""
        if in_dm not in self._visible:
            shown = (item for item in self.items.values() if item.active and may_show(item, in_dm=in_dm))
            self._visible[in_dm] = VisibleItems(shown)
        return self._visible[in_dm]

    def active(self) -> list[Item]:
        """Items that hold, in the order they were added."""
        return [item for item in self.items.values() if item.active]

    def after(self, commit: Commit) -> "View":
        """The view with one more commit."""
        return fold([commit], self)


EMPTY = View()


class Fold:
    """A view in the making: applies events one by one to copies of the start's maps."""

    def __init__(self, start: View = EMPTY) -> None:
        self.items = dict(start.items)
        self.last_event = dict(start.last_event)
        self.triples = dict(start.triples)
        self.conflicts = list(start.conflicts)
        self.forgotten = dict(start.forgotten)

    def apply(self, event: Event) -> None:
        """Let one event take effect. Every event is taken; one whose item is not here changes nothing."""
        target = _target(event, self.triples)
        if not event.ext:
            self.triples[event.id] = target
        if "link" in event.ext:
            self._link(event, target)
        elif event.event_type == "observe":
            self._observe(event, target)
        elif event.event_type == "forget":
            self._forget(event, target)
        else:
            self._set(event, target)

    def _link(self, event: Event, target: str) -> None:
        other = str(event.ext["link"].get("to", ""))
        if target == other or not {target, other} <= self.items.keys():
            return
        for one, far in ((target, other), (other, target)):
            held = self.items[one]
            links = held.facets.links | {far} if event.ext["link"].get("on") else held.facets.links - {far}
            self.items[one] = replace(held, facets=replace(held.facets, links=links))

    def _observe(self, event: Event, target: str) -> None:
        noted = event.ext.get("conflict")
        if not isinstance(noted, Mapping) or target not in self.items:
            return
        text = str(noted.get("text", ""))
        self.conflicts = [c for c in self.conflicts if (c.item_id, c.text) != (target, text)]
        if "settled" not in noted:
            reason, other = str(noted.get("reason", "")), str(noted.get("other", ""))
            self.conflicts.append(Conflict(target, text, reason, event.id, event.sensitivity, other))

    def _forget(self, event: Event, target: str) -> None:
        gone = self.items.pop(target, None)
        if gone is not None and _author(event) == "stated":
            when = ms_of_iso(event.timestamp)
            self.forgotten |= {target: when, item_id(gone.kind, gone.text): when}
        self.last_event.pop(target, None)
        self._settle(target)
        self._out(target)
        for other, item in self.items.items():
            if target in item.facets.links:
                kept = replace(item.facets, links=item.facets.links - {target})
                self.items[other] = replace(item, facets=kept)

    def _set(self, event: Event, target: str) -> None:
        before = self.items.get(target)
        if event.event_type == "modify" and before is None:
            return  # what it changes is not on this branch
        self.items[target] = _added(event, target) if before is None else _changed(event, before)
        self.last_event[target] = event.id
        self.forgotten.pop(target, None)
        if _author(event) == "stated" and {"text", "status"} & set(event.ext.get("item", ["text"])):
            self._settle(target)  # the person spoke again: what contradicted the old words is settled
        if not self.items[target].active:
            self._out(target)

    def _settle(self, target: str) -> None:
        self.conflicts = [conflict for conflict in self.conflicts if conflict.item_id != target]

    def _out(self, target: str) -> None:
        """The item holds no longer: nothing that rests on its words has to be settled."""
        if self.conflicts:
            self.conflicts = [conflict for conflict in self.conflicts if conflict.other_id != target]


def fold(commits: Iterable[Commit], start: View = EMPTY) -> View:
    """The view that `commits`, in the order of their chain, add to `start`."""
    working = Fold(start)
    head, updated_at, count = start.head, start.updated_at, start.commits
    for commit in commits:
        for event in commit.events:
            working.apply(event)
        head, updated_at, count = commit.id, ms_of_iso(commit.timestamp), count + 1
    return View(
        working.items,
        working.last_event,
        working.triples,
        tuple(working.conflicts),
        working.forgotten,
        head,
        updated_at,
        count,
    )


def _target(event: Event, triples: Mapping[str, str]) -> str:
    """The id of the item an event is about."""
    given = event.ext.get("item", {}).get("id")
    if isinstance(given, str):
        return given
    if event.parent_id is not None and event.parent_id in triples:
        return triples[event.parent_id]
    return item_id("fact", _triple_text(event))


def _triple_text(event: Event) -> str:
    return _tidy(triple_text(event.subject, event.predicate, event.object)) or "-"


def _tidy(text: object) -> str:
    """Text as an item may have it: whoever wrote the event, a fold takes it."""
    return collapse(scrub(text))[:MAX_TEXT].rstrip() if isinstance(text, str) else ""


def _author(event: Event) -> str:
    by_source = "stated" if event.source == "manual" else "inferred"
    return str(event.ext.get("facets", {}).get("author", by_source))


def _facets(event: Event, before: Facets) -> Facets:
    given: Mapping[str, Any] = event.ext.get("facets", {})
    return Facets(
        sensitivity=event.sensitivity,
        scope=event.scope,
        confidence=event.confidence,
        author=cast(Any, _author(event)),
        key=given.get("key", before.key),
        category=given.get("category", before.category),
        links=frozenset(given["links"]) if "links" in given else before.links,
        triple=_triple(event, before),
    )


def _triple(event: Event, before: Facets) -> tuple[str, str, str] | None:
    if not event.ext or event.ext.get("triple"):
        return event.subject, event.predicate, event.object
    return None if "text" in event.ext.get("item", {}) else before.triple


def _added(event: Event, target: str) -> Item:
    body: Mapping[str, Any] = event.ext.get("item", {})
    now = 0 if "createdAt" in body and "updatedAt" in body else ms_of_iso(event.timestamp)
    return Item(
        id=target,
        kind=cast(Kind, body.get("kind", "fact")),
        text=_tidy(body.get("text")) or _triple_text(event),
        tags=tidy_tags(body.get("tags")),
        status=body.get("status", "active"),
        source=Source.from_json(body.get("source")),
        created_at=body.get("createdAt", now),
        updated_at=body.get("updatedAt", now),
        facets=_facets(event, Facets()),
    )


def _changed(event: Event, before: Item) -> Item:
    body: Mapping[str, Any] = event.ext.get("item", {})
    is_taken = event.event_type == "modify"  # else two replicas have added it: it is as old as the older one
    return replace(
        before,
        kind=cast(Kind, body.get("kind", before.kind)),
        text=(_tidy(body.get("text")) or before.text) if body else _triple_text(event),
        tags=tidy_tags(body["tags"]) if "tags" in body else before.tags,
        status=body.get("status", before.status),
        source=Source.from_json(body["source"]) if "source" in body else before.source,
        created_at=body.get("createdAt", before.created_at) if is_taken else before.created_at,
        updated_at=body.get("updatedAt", ms_of_iso(event.timestamp)),
        facets=_facets(event, before.facets),
    )

"""What may be private, because a file says neither how private it is nor where it was said.

Whether it then is private is decided by DISCOCLAW_DM_PRIVACY, as for what the bot learns in private itself.
"""

from dataclasses import replace
from typing import TypeGuard

from discoclaw.core.event import Commit, Event, Record
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.privacy import PRESUMED, DmPrivacy, presumed_private, sensitivity
from discoclaw.core.view import target_of
from discoclaw.memory.exchange.layout import Items, Records


def as_private(item: Item, rule: DmPrivacy) -> Item:
    """An item that may have been said in private, as private as the rule makes it."""
    level = sensitivity(
        item.kind,
        item.text,
        inferred=item.facets.author == "inferred",
        learned_privately=True,
        marked=item.facets.sensitivity,
        rule=rule,
    )
    return replace(item, facets=replace(item.facets, sensitivity=level))


def with_private(content: Records, rule: DmPrivacy) -> Records:
    """A history whose events are as private as the rule makes them, where they don't say it themselves.

    The ids of events and commits stay: the sensitivity of an event counts only for its hash.
    """
    if not content.unmarked or rule == "open":
        return content

    def marked(event: Event) -> Event:
        # Such an event is a triple, which becomes a fact; no rule lets one leave a DM.
        return replace(event, sensitivity="private") if event.id in content.unmarked else event

    def rebuilt(record: Record) -> Record:
        if not has_unmarked(record, content):
            return record
        events = tuple(map(marked, record.events))
        named = sorted({target_of(event, {}) for event in events if event.id in content.unmarked})
        return replace(record, events=events, metadata={**record.metadata, PRESUMED: named})

    return replace(content, records=tuple(map(rebuilt, content.records)))


def current_items(content: Records, rule: DmPrivacy) -> Items:
    """The active memories of a history, on its current branch."""
    history = History(with_private(content, rule).records)
    items = tuple(history.shown().active())
    presumed = presumed_private(one for one in history.commits.values() if has_unmarked(one, content))
    secret = {item.id for item in items if item.facets.sensitivity == "private"}
    return Items(items, unmarked=frozenset(presumed & secret))


def has_unmarked(record: Record, content: Records) -> TypeGuard[Commit]:
    """Whether a record has events that don't say how private they are."""
    return isinstance(record, Commit) and any(event.id in content.unmarked for event in record.events)

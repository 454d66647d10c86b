"""A view is the state that a branch's events add up to: a fold over its chain of commits.

A view holds nothing that is not in the ledger, so it can be thrown away at any time. What events carry:

    ext["item"]      `id` always; on `add` the whole item in DNAM's schema; on `modify` the changed fields
    ext["facets"]    what that schema lacks: author, and where they changed key, category and links
    ext["triple"]    true: the item has the event's subject, predicate and object as its triple
    ext["link"]      {to, on}: two items are linked (`on`) or no longer linked
    ext["asked"]     true: a person asked for this, although it keeps the author of the item
    ext["confirms"]  true, on `observe`: another message says the same as the item
    ext["unsays"]    true, on `observe`: this message was deleted or changed, and says it no longer
    ext["unsaid"]    true: the change was made because no message says it any more
    ext["conflict"]  on `observe`, {text, reason, other}: something contradicts the item, and the person has
                     to settle it; with `settled`, how it was settled
    ext["proposal"]  on `observe`: what ext["item"] says waits for the person's yes; see `pending`

An event without `ext` is a bare triple, as the ledger design has it; its item's text is made from the triple.
One that changes or forgets, and follows no event that is here, is about the item with its subject and
predicate: the newest in its scope, or else the only one.
`forget` removes the item from the view; `observe` changes no item.
Knows nothing about files. Never decides whether a change is allowed: that is `draft`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from discoclaw.core.event import Commit, Event, added, author_of, changed, is_wanted, triple_text_of
from discoclaw.core.item import Item, Sensitivity, item_id
from discoclaw.core.pending import Pending, after_change, after_removal, is_proposal, noted, settled_as
from discoclaw.core.privacy import may_show, stricter
from discoclaw.core.purge import MOST, Held, Purge, TakenBack, purges, sources_with, words_of
from discoclaw.core.text import normalise
from discoclaw.core.times import ms_of_iso
from discoclaw.core.visible import VisibleItems


@dataclass(frozen=True, slots=True)
class Conflict:
    """A contradiction that the person has to settle: `text` contradicts the item.

    `text` is "" if the item is said to be no longer true. `other_id` is the item that has this text, if both
    are remembered. `event_id` is the event that recorded the conflict; questions to the person refer to it.
    `source` is the message that it rests on, as events name it.
    """

    item_id: str
    text: str
    reason: str
    event_id: str
    sensitivity: Sensitivity = "normal"
    other_id: str = ""
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class View:
    """The items of a branch in the order they were added, and the position in its chain.

    `last_event`: by item id, the event that last changed it, which is the parent of the next one. `triples`:
    by the id of a bare triple's event, its item's id. `forgotten`: when (ms) the person removed an item, by
    its id and by the id that its last text would be given; older words must not bring it back under either.
    `sources`: by item id, the messages that its text rests on, oldest first. `taken_back`: what the person
    took back and did not say or bring back since (see `taken_back`), by item id and normalised text.
    `head` is the newest commit, `updated_at` its time (ms), `commits` the length of the chain. `pending` is
    what the person has not agreed to remember yet; nobody is shown it but the person, to be asked.
    """

    items: Mapping[str, Item] = field(default_factory=dict)
    last_event: Mapping[str, str] = field(default_factory=dict)
    triples: Mapping[str, str] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    forgotten: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    taken_back: Mapping[tuple[str, str], TakenBack] = field(default_factory=dict)
    head: str | None = None
    updated_at: int = 0
    commits: int = 0
    pending: tuple[Pending, ...] = ()
    _visible: dict[bool, VisibleItems] = field(default_factory=dict, init=False, repr=False, compare=False)

    def visible(self, *, in_dm: bool) -> VisibleItems:
        """The active items that may be shown in a DM with their person, or elsewhere; computed once."""
        if in_dm not in self._visible:
            shown = (item for item in self.items.values() if item.active and may_show(item, in_dm=in_dm))
            self._visible[in_dm] = VisibleItems(shown)
        return self._visible[in_dm]

    def active(self) -> list[Item]:
        """The active items, in the order they were added."""
        return [item for item in self.items.values() if item.active]

    def purges(self, subject: str, which: Callable[[int], bool] = lambda at: True) -> list[Purge]:
        """The purges of what was taken back at certain times (ms)."""
        taken = [one for one in self.taken_back.values() if which(one.at)]
        return purges(subject, taken, self.items) if taken else []

    def after(self, commit: Commit) -> "View":
        """The view with one more commit."""
        return fold([commit], self)


EMPTY = View()


class Fold:
    """A view under construction: applies events one by one to copies of the start's maps."""

    def __init__(self, start: View = EMPTY) -> None:
        self.items = dict(start.items)
        self.last_event = dict(start.last_event)
        self.triples = dict(start.triples)
        self.conflicts = list(start.conflicts)
        self.forgotten = dict(start.forgotten)
        self.sources = dict(start.sources)
        self.taken_back = dict(start.taken_back)
        self.pending = start.pending

    def apply(self, event: Event) -> str:
        """Apply one event, and return the id of the item that it is about.

        None is ever rejected; one about an item that is not here changes nothing.

        A ledger may come from a newer version or another replica, and has to load all the same.
        """
        target = self._target(event)
        if not event.ext:
            self.triples[event.id] = target
        if "link" in event.ext:
            self._link(event, target)
        elif is_proposal(event):
            self._propose(event, target)
        elif event.verb == "observe":
            self._observe(event, target)
        elif event.verb == "forget":
            self._forget(event, target)
        else:
            self._set(event, target)
        return target

    def view(self, head: str | None, updated_at: int, commits: int) -> View:
        """The view of what was applied. The maps are handed over, so nothing may be applied after this."""
        return View(
            self.items,
            self.last_event,
            self.triples,
            tuple(self.conflicts),
            self.forgotten,
            self.sources,
            self.taken_back,
            head,
            updated_at,
            commits,
            self.pending,
        )

    def unplaced(self, event: Event) -> bool:
        """Whether a bare triple names no event before it, and nothing says which memory it changes."""
        if event.parent_id is not None or not _needs_slot(event) or self._target(event) in self.items:
            return False
        return event.verb == "modify" or bool(self._slot(event))

    def _target(self, event: Event) -> str:
        target = target_of(event, self.triples)
        if not _needs_slot(event) or event.parent_id in self.triples or target in self.items:
            return target
        found = self._slot(event)
        in_scope = [item for item in found if item.facets.scope == event.scope]
        return in_scope[-1].id if in_scope else found[0].id if len(found) == 1 else target

    def _slot(self, event: Event) -> list[Item]:
        """The memories with an event's subject and predicate."""
        slot, triples = (event.subject, event.predicate), self.items.values()
        return [item for item in triples if item.facets.triple is not None and item.facets.triple[:2] == slot]

    def _link(self, event: Event, target: str) -> None:
        other = str(event.ext["link"].get("to", ""))
        if target == other or not {target, other} <= self.items.keys():
            return
        for one, far in ((target, other), (other, target)):
            item = self.items[one]
            links = item.facets.links | {far} if event.ext["link"].get("on") else item.facets.links - {far}
            self.items[one] = replace(item, facets=replace(item.facets, links=links))

    def _observe(self, event: Event, target: str) -> None:
        if event.ext.get("confirms") and target in self.items:
            self.sources[target] = sources_with(self.sources.get(target, ()), event.source)
        if event.ext.get("unsays") and target in self.sources:
            self.sources[target] = tuple(one for one in self.sources[target] if one != event.source)
        noted = event.ext.get("conflict")
        if not isinstance(noted, Mapping) or target not in self.items:
            return
        text = str(noted.get("text", ""))
        if noted.get("settled") == "keep_old" and text:
            self._reject(target, text, event)
        # A repeated conflict replaces the old one, so that a question is never asked twice.
        self.conflicts = [c for c in self.conflicts if (c.item_id, c.text) != (target, text)]
        if "settled" not in noted:
            reason, other = str(noted.get("reason", "")), str(noted.get("other", ""))
            self.conflicts.append(
                Conflict(target, text, reason, event.id, event.sensitivity, other, event.source)
            )

    def _propose(self, event: Event, target: str) -> None:
        wanted = added(event, target)
        self.pending = noted(self.pending, event, wanted, self.items.get(target))
        if settled_as(event) == "dropped" and wanted.active:  # as with `forget`, for what is proposed again
            self.forgotten[item_id(wanted.kind, wanted.text)] = ms_of_iso(event.timestamp)

    def _forget(self, event: Event, target: str) -> None:
        gone = self.items.pop(target, None)
        if gone is not None and is_wanted(event):
            self._take_back(gone, event)
        self.sources.pop(target, None)
        if gone is not None and self.pending:
            self.pending = after_removal(self.pending, gone, stated=is_wanted(event))
        if gone is not None and author_of(event) == "stated":
            when = ms_of_iso(event.timestamp)
            # Under both ids: a model that learns the text again would derive the second one.
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
        if event.verb == "modify" and before is None:
            return  # the item it changes is not on this branch
        item = self.items[target] = added(event, target) if before is None else changed(event, before)
        self._rest(before, item, event)
        self.last_event[target] = event.id
        self.forgotten.pop(target, None)
        changes = bool({"text", "status"} & set(event.ext.get("item", ["text"])))
        claimed = author_of(event) == "stated" and changes
        if changes and is_wanted(event):
            self._settle(target)  # the person stated it anew, which settles what contradicted the old text
        if self.pending:
            self.pending = after_change(self.pending, self.items[target], stated=claimed)
        if not self.items[target].active:
            self._out(target)

    def _rest(self, before: Item | None, item: Item, event: Event) -> None:
        """Note what the item's text rests on now, and what the person took back with this change."""
        same = before is not None and normalise(before.text) == normalise(item.text)
        known = self.sources.get(item.id, ()) if same else ()
        says = not event.ext or "text" in event.ext.get("item", {})
        sources = sources_with(known, event.source) if says else known
        if before is not None and before.active and is_wanted(event):
            level = item.facets.sensitivity
            if not same or not item.active:
                self._take_back(before, event)
            elif level != before.facets.sensitivity and stricter(level, before.facets.sensitivity) == level:
                self._take_back(before, event, open_only=True)
        self.sources[item.id] = sources
        if item.active and self.taken_back:
            self._bring_back(item)

    def _take_back(self, item: Item, event: Event, *, open_only: bool = False) -> None:
        """Note that the person took back what an item said."""
        self._note_taken(
            TakenBack(
                item.id,
                item.kind,
                item.text,
                ms_of_iso(event.timestamp),
                item.facets.key,
                self.sources.get(item.id, ()),
                open_only,
                alone=bool(event.ext.get("unsaid")),
            )
        )

    def _reject(self, target: str, text: str, event: Event) -> None:
        """The person kept an item, and so took back the text that contradicted it."""
        kind, when = self.items[target].kind, ms_of_iso(event.timestamp)
        asked = [c for c in self.conflicts if (c.item_id, c.text) == (target, text) and not c.other_id]
        for conflict in asked:
            sources = sources_with((), conflict.source)
            self._note_taken(TakenBack(item_id(kind, text), kind, text, when, messages=sources))

    def _note_taken(self, taken: TakenBack) -> None:
        key = (taken.item_id, normalise(taken.text))
        self.taken_back.pop(key, None)  # so that the newest come last
        self.taken_back[key] = taken
        if self.pending and not taken.open_only:
            words = words_of([taken], Held(item.text for item in self.items.values() if item.active))
            self.pending = tuple(
                one for one in self.pending if not (words.hold(one.text) or words.hold(one.question))
            )
        if len(self.taken_back) > MOST:
            del self.taken_back[next(iter(self.taken_back))]

    def _bring_back(self, item: Item) -> None:
        """Note that an item, remembered again, isn't taken back, except from the open while it is private."""
        plain, private = normalise(item.text), item.facets.sensitivity != "normal"
        for key in [key for key in self.taken_back if key[1] == plain]:
            if not (self.taken_back[key].open_only and private):
                del self.taken_back[key]

    def _settle(self, target: str) -> None:
        self.conflicts = [conflict for conflict in self.conflicts if conflict.item_id != target]

    def _out(self, target: str) -> None:
        """Drop the conflicts in which a removed or deprecated item was the other side."""
        if self.conflicts:
            self.conflicts = [conflict for conflict in self.conflicts if conflict.other_id != target]


def fold(commits: Iterable[Commit], start: View = EMPTY) -> View:
    """The view after `commits` (in chain order) are applied to `start`."""
    working = Fold(start)
    head, updated_at, count = start.head, start.updated_at, start.commits
    for commit in commits:
        for event in commit.events:
            working.apply(event)
        head, updated_at, count = commit.id, ms_of_iso(commit.timestamp), count + 1
    return working.view(head, updated_at, count)


def _needs_slot(event: Event) -> bool:
    return not event.ext and event.verb in ("modify", "forget")


def target_of(event: Event, triples: Mapping[str, str]) -> str:
    """The id of the item an event is about. `triples` are those of earlier events; see `View`."""
    given = event.ext.get("item", {}).get("id")
    if isinstance(given, str):
        return given
    if event.parent_id is not None and event.parent_id in triples:  # a later triple about the same item
        return triples[event.parent_id]
    return item_id("fact", triple_text_of(event))

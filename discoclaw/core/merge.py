"""Verbs that bring two points of a history together: merge, cherry-pick, revert (undo) and restore.

All of them are the same three-way merge (`three_way`) with different points:

    merge         base = the newest common commit   theirs = the other branch
    cherry-pick   base = the commit's parent        theirs = the commit
    revert        base = the commit                 theirs = its parent
    restore       base = ours                       theirs = the older point

A clash becomes a conflict that the person settles. Each verb returns one commit, which nobody has recorded
yet. Merging is by item, not by event: if another branch's events were replayed on ours, a later one would
silently overwrite what was said here.
Pure. The outcome does not depend on the order in which records arrived.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from discoclaw.core.draft import RESOLUTIONS, Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.pending import Key, Pending, is_proposal, key_of_event, settled_as
from discoclaw.core.privacy import stricter
from discoclaw.core.reminder import after, did_in, id_in
from discoclaw.core.text import normalise
from discoclaw.core.view import Conflict, View

# ----------------------------------------------------------------------
# Comparing views: the difference of two, and the three-way merge of two with their common base.
#
# A three-way merge looks at each item that changed between the base and "theirs". If it did not change on our
# side, theirs is taken; if both sides made the same change, nothing happens. Otherwise the two sides clash:
# ours stays, and the other side becomes a question to the person. No statement is ever replaced silently.
#
# Privacy is only ever raised, and links and tags of both sides are kept. If both sides changed an item's
# kind, scope, category, confidence or key, ours stays without a clash: none of these is a claim about the
# person.


Kind: TypeAlias = Literal["added", "changed", "deprecated", "restored", "removed"]


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One item at two points of a history. It is None where the item does not exist."""

    before: Item | None
    after: Item | None

    @property
    def item(self) -> Item:
        """The item after the change, or before it if it was removed."""
        item = self.after or self.before
        assert item is not None
        return item

    @property
    def kind(self) -> Kind:
        """The kind of change to the item."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        if self.before.status != self.after.status:
            return "restored" if self.after.active else "deprecated"
        return "changed"


@dataclass(frozen=True, slots=True)
class Clash:
    """An item whose claim the sides changed in different ways. `ours` stays; None means it was removed."""

    ours: Item | None
    theirs: Item | None


def diff(old: View, new: View) -> list[ItemChange]:
    """The items that differ between two views, in the order of the newer one. Removed items come last."""
    changes = [ItemChange(old.items.get(key), item) for key, item in new.items.items()]
    gone = [ItemChange(item, None) for key, item in old.items.items() if key not in new.items]
    return [change for change in (*changes, *gone) if change.before != change.after]


def three_way(
    base: View, ours: View, theirs: View, *, slots: bool = True
) -> tuple[list[ItemChange], list[Clash]]:
    """The changes to take from theirs, and the clashes.

    With `slots` (for a merge or cherry-pick) a key has one item, and a subject and predicate have one object,
    so two items in one slot clash; and no item becomes less private than ours. Revert and restore go without
    it, since they bring back exactly what was there.
    """
    takes: list[ItemChange] = []
    clashes: list[Clash] = []
    filled = _slots(base, ours) if slots else {}
    for change in diff(base, theirs):
        key, before, after = change.item.id, change.before, change.after
        mine = ours.items.get(key)
        rival = filled.get(_slot(after)) if after is not None and mine == before else None
        if rival is not None and rival.id != key and _claim(rival) != _claim(after):
            clashes.append(Clash(rival, after))
            continue
        wanted, clash = _meet(before, mine, after, raising=slots)
        if clash:
            clashes.append(Clash(mine, after))
        if wanted != mine:
            takes.append(ItemChange(mine, wanted))
    return takes, clashes


def _claim(item: Item | None) -> tuple[str, bool] | None:
    """The claim that two sides can contradict: an item's text, and whether it is active."""
    return None if item is None else (normalise(item.text), item.active)


def _meet(
    before: Item | None, ours: Item | None, theirs: Item | None, *, raising: bool
) -> tuple[Item | None, bool]:
    """The outcome for an item that theirs changed, and whether the sides clash.

    `raising`: the outcome is at least as private as either side.
    """
    if ours == before:  # only theirs changed it
        if ours is None or theirs is None or not raising:
            return theirs, False
        said = ours if _stated(ours) and _claim(ours) == _claim(theirs) else theirs
        secret = stricter(ours.facets.sensitivity, theirs.facets.sensitivity)
        facets = replace(theirs.facets, sensitivity=secret, author=said.facets.author)
        return replace(theirs, facets=facets), False
    spoke = _spoke(before, ours, theirs) and _spoke(before, theirs, ours)
    clash = spoke and _claim(ours) != _claim(theirs)
    if ours is None or theirs is None:  # one side removed it: with a clash ours stays, else it goes
        return (ours if clash else None), clash
    both = _both(before, ours, theirs)
    return (replace(both, updated_at=ours.updated_at) if clash else both), clash


def _spoke(before: Item | None, now: Item | None, other: Item | None) -> bool:
    """Whether a side makes a claim of its own: it differs from the base, or the person stated it there."""
    return _claim(now) != _claim(before) or (_stated(now) and not _stated(before) and not _stated(other))


def _stated(item: Item | None) -> bool:
    return item is not None and item.facets.author == "stated"


def _slot(item: Item) -> str | None:
    """The slot that only one active item may fill: its key, else the subject and predicate of its triple."""
    if not item.active:
        return None
    if item.facets.key is not None:
        return f"key {item.facets.key}"
    triple = item.facets.triple
    return f"triple {normalise(triple[0])} {normalise(triple[1])}" if triple is not None else None


def _slots(base: View, ours: View) -> dict[str | None, Item]:
    """Our items in slots that we filled or changed since the base. Theirs cannot have known about those."""
    filled: dict[str | None, Item] = {}
    for item in ours.items.values():
        before = base.items.get(item.id)
        if before is None or (_slot(before), _claim(before)) != (_slot(item), _claim(item)):
            filled[_slot(item)] = item
    filled.pop(None, None)
    return filled


def _both(base: Item | None, ours: Item, theirs: Item) -> Item:
    """The item that both sides changed without contradiction: each field from the side that changed it."""
    start = base or ours

    def pick(of: Callable[[Item], Any]) -> Any:
        return of(theirs) if of(ours) == of(start) else of(ours)

    tags = _both_sets(base and base.tags, ours.tags, theirs.tags)
    links = _both_sets(base and base.facets.links, ours.facets.links, theirs.facets.links)
    said = _said(base, ours, theirs)
    facets = replace(
        said.facets,
        sensitivity=stricter(ours.facets.sensitivity, theirs.facets.sensitivity),
        scope=pick(lambda item: item.facets.scope),
        confidence=pick(lambda item: item.facets.confidence),
        key=pick(lambda item: item.facets.key),
        category=pick(lambda item: item.facets.category),
        links=frozenset(links),
    )
    return replace(
        said,
        kind=pick(lambda item: item.kind),
        tags=tuple(tags),
        facets=facets,
        created_at=ours.created_at,
        updated_at=max(ours.updated_at, theirs.updated_at),
    )


def _said(base: Item | None, ours: Item, theirs: Item) -> Item:
    """The side whose text is taken: the one the person stated, else the one that changed it."""
    if _claim(ours) == _claim(theirs) and _stated(ours) != _stated(theirs):
        return ours if _stated(ours) else theirs
    return theirs if not _spoke(base, ours, theirs) else ours


def _both_sets(base: Any, ours: Any, theirs: Any) -> list[str]:
    dropped = set(base or ()) - set(theirs)
    return list(
        dict.fromkeys([*(one for one in ours if one not in dropped), *sorted(set(theirs) - set(base or ()))])
    )


# ----------------------------------------------------------------------
# The verbs.


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The outcome: the commit to record (None if there is nothing to do), its changes, and the clashes."""

    commit: Commit | None
    changes: tuple[ItemChange, ...] = ()
    clashes: tuple[Clash, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeContext:
    """The branch to change, who asked for it, when (ms), and the most items the branch may have.

    `metadata` is added to the commit's.
    """

    branch: str
    origin: Origin
    now_ms: int
    max_items: int = 200
    metadata: tuple[tuple[str, Any], ...] = ()


def merge(history: History, source: str, context: MergeContext) -> MergeResult:
    """Bring another branch's changes into `context.branch`. Merging it again does nothing.

    Raises Refused if there is no such branch, or if both are the same.
    """
    ours, theirs = history.branch(context.branch), history.branch(source)
    if ours.name == theirs.name:
        raise Refused(f"{ours.name!r} can't be merged into itself; name another branch")
    base = history.base(ours.head, theirs.head)
    if base == theirs.head or theirs.head not in history.commits:  # nothing new there, or nothing at all
        return MergeResult(None)
    note = f"the persona {theirs.name} says otherwise"
    points = _Points(history.view(base), history.view(ours.head), history.view(theirs.head))
    meta = {"merged": theirs.head, "from": theirs.name}
    return _bring(history, points, context, f"merge {theirs.name} into {ours.name}", note, meta, empty=True)


def cherry_pick(history: History, wanted: str, context: MergeContext) -> MergeResult:
    """Bring the changes of one commit into `context.branch`. Picking it again does nothing.

    Raises Refused if there is no such commit.
    """
    commit = history.commit(wanted, on=context.branch)
    ours = history.branch(context.branch)
    # Picking is remembered in metadata, as the commit itself does not become an ancestor.
    have = history.ancestors(ours.head)
    if commit.id in have or any(history.commits[one].metadata.get("picked") == commit.id for one in have):
        return MergeResult(None)
    points = _picked(history, commit, ours.head)
    meta = {"picked": commit.id, "from": commit.branch}
    return _bring(history, points, context, f"cherry-pick: {commit.message}", "another persona says so", meta)


def revert(history: History, wanted: str, context: MergeContext) -> MergeResult:
    """Undo the changes of one commit by a new one. What was changed again since then stays, as a clash.

    Raises Refused for a commit that is not on the branch.
    """
    commit = history.commit(wanted, on=context.branch)
    ours = history.branch(context.branch)
    if commit.id not in history.ancestors(ours.head):
        raise Refused(f"{commit.id} is not on the branch {ours.name!r}; use `cherry-pick` to bring it over")
    points = _Points(
        history.view(commit.id), history.view(ours.head), history.view(_before(history, commit)), slots=False
    )
    meta = {"reverts": commit.id}
    return _bring(history, points, _asked(context), f"undo: {commit.message}", None, meta, undoes=commit)


def restore(history: History, wanted: str, context: MergeContext) -> MergeResult:
    """Return the branch to its state at an earlier commit, by a new commit.

    Raises Refused if there is no such commit.
    """
    commit = history.commit(wanted, on=context.branch)
    ours = history.view(history.branch(context.branch).head)
    points = _Points(ours, ours, history.view(commit.id), slots=False)
    return _bring(history, points, _asked(context), f"back to {commit.id}", None, {"restores": commit.id})


def last_change(history: History, branch: str) -> Commit:
    """The newest commit of a branch that has something to undo, for `revert`; repeated, the one before it.

    Commits that were reverted already, and the reverts themselves, are skipped. Raises Refused if no change
    is left.
    """
    undone: set[str] = set()
    trial = MergeContext(branch, Origin("stated"), now_ms=0, max_items=sys.maxsize)
    for commit in reversed(history.chain(history.branch(branch).head)):
        reverts = commit.metadata.get("reverts")
        if commit.id in undone:
            continue
        if isinstance(reverts, str):
            undone.add(reverts)
        elif commit.events and revert(history, commit.id, trial).commit is not None:
            return commit
    raise Refused("there is nothing left to undo")


# ---------------------------------------------------------------------- inside


def _asked(context: MergeContext) -> MergeContext:
    """The context of an undo: what it removes, the person takes back, whoever said it."""
    return replace(context, origin=replace(context.origin, asked=context.origin.author == "stated"))


@dataclass(frozen=True, slots=True)
class _Points:
    """The three views to merge. `slots` is as for `three_way`."""

    base: View
    ours: View
    theirs: View
    slots: bool = True


def _bring(
    history: History,
    points: _Points,
    context: MergeContext,
    message: str,
    note: str | None,
    metadata: Mapping[str, Any],
    *,
    empty: bool = False,
    undoes: Commit | None = None,
) -> MergeResult:
    """Merge three points into a draft and make it a commit.

    `note` is the reason given in the conflicts that clashes become; with None clashes are only reported.
    `empty`: record a commit even without changes, so that a later merge starts from here. `undoes`: the
    commit whose reminders go back to what they were; no branch has them, so the points don't.
    """
    takes, clashes = three_way(points.base, points.ours, points.theirs, slots=points.slots)
    now_ms = history.branches.next_ms(context.now_ms)
    draft = Draft(
        points.ours,
        now_ms=now_ms,
        max_items=context.max_items,
        reminders=history.branches.reminders,
    )
    for change in takes:
        event = _whole(history, points, change)
        if event is not None:
            draft.replay(event)
        else:
            provenance = _provenance(history, points, change.item.id, context.origin)
            draft.set_item(change.item.id, change.after, **provenance)
    for change in takes:  # once more, since an item may be linked with one that was added after it
        if change.after is not None and draft.items[change.item.id] != change.after:
            provenance = _provenance(history, points, change.item.id, context.origin)
            draft.set_item(change.item.id, change.after, **provenance)
    _pair_links(draft, context.origin)
    _bring_conflicts(draft, points, context.origin, _settled(history, points) if points.slots else set())
    bring_pending(draft, points.base, points.ours, points.theirs, context.origin, _answered(history, points))
    if undoes is not None:
        _undo_reminders(draft, history, undoes, context.origin)
    if note is not None:
        for clash in clashes:
            _note(draft, clash, note, context.origin)
    commit = draft.commit(message, branch=context.branch, empty=empty, **metadata, **dict(context.metadata))
    return MergeResult(commit, tuple(diff(points.ours, draft.view)), tuple(clashes))


def _whole(history: History, points: _Points, change: ItemChange) -> Event | None:
    """The single event that made an item what it is in theirs, if there is one. It can be replayed as it is.

    The event then keeps its id, so both branches show the same origin.
    """
    # An item with links, or one that exists here already, takes more than one event.
    if change.before is not None or change.after is None or change.after.facets.links:
        return None
    event_id = points.theirs.last_event.get(change.after.id)
    event = history.event(event_id) if event_id is not None else None
    return event if event is not None and event.event_type == "add" and event.ext else None


def _provenance(history: History, points: _Points, target: str, origin: Origin) -> dict[str, Any]:
    """The event that a change taken from theirs continues, with its evidence, as arguments for a draft."""
    event_id = points.theirs.last_event.get(target)
    event = history.event(event_id) if event_id is not None else None
    if target not in points.theirs.items and points.slots and target not in points.theirs.forgotten:
        origin = replace(origin, author="inferred")  # it was removed there, but not by the person
    if event is None:
        return {"parent": None, "origin": origin}
    return {"parent": event.id, "origin": replace(origin, evidence=event.evidence or origin.evidence)}


def _picked(history: History, commit: Commit, ours: str | None) -> _Points:
    """The points of a cherry-pick. An item that we never had is taken as a whole, not just its change."""
    before, present, after = (
        history.view(_before(history, commit)),
        history.view(ours),
        history.view(commit.id),
    )
    known = {*present.items, *present.forgotten, *history.view(history.base(ours, commit.id)).items}
    news = {change.item.id for change in diff(before, after) if change.before and change.item.id not in known}
    base = replace(before, items={key: item for key, item in before.items.items() if key not in news})
    theirs = {key: item for key, item in after.items.items() if key not in news or item.active}
    return _Points(base, present, replace(after, items=theirs))


def _pair_links(draft: Draft, origin: Origin) -> None:
    """Complete links of which only one end was taken: a link always goes both ways."""
    for item in list(draft.items.values()):
        for other in sorted(item.facets.links & draft.items.keys()):
            if item.id not in draft.items[other].facets.links:
                draft.link(draft.items[other], item, origin)


def _settled(history: History, points: _Points) -> set[tuple[str, str]]:
    """Conflicts (item id, text) that the person settled on our branch since theirs forked."""
    found: set[tuple[str, str]] = set()
    for one in history.ancestors(points.ours.head) - history.ancestors(points.theirs.head):
        for event in history.commits[one].events:
            noted = event.ext.get("conflict", {})
            if noted.get("settled") in RESOLUTIONS:
                found.add((str(event.ext.get("item", {}).get("id")), str(noted.get("text", ""))))
    return found


def _answered(history: History, points: _Points) -> set[Key]:
    """Keys of the proposals that the person answered on our branch since theirs forked."""
    return (
        answered(
            event
            for one in history.ancestors(points.ours.head) - history.ancestors(points.theirs.head)
            for event in history.commits[one].events
        )
        if points.slots
        else set()
    )


def _bring_conflicts(
    draft: Draft, points: _Points, origin: Origin, settled: Collection[tuple[str, str]]
) -> None:
    """Merge the open conflicts as items are: add what is new in theirs, drop what theirs no longer has."""
    base, ours, theirs = _keyed(points.base), _keyed(draft.view), _keyed(points.theirs)
    gone = base.keys() - _keyed(points.ours).keys()  # as ours was before this merge took anything
    for key, conflict in theirs.items():
        mine, before = ours.get(key), base.get(key)
        if mine is None:
            wanted = key not in gone and key not in settled
        else:  # the point to restore has the same conflict, worded differently
            wanted = (
                not points.slots
                and before is not None
                and _wording(mine) == _wording(before) != _wording(conflict)
            )
        if wanted:
            draft.note_conflict(conflict, origin)
    for key, conflict in base.items():
        if key not in theirs and key in ours:
            draft.note_conflict(conflict, origin, on=False)


def _note(draft: Draft, clash: Clash, note: str, origin: Origin) -> None:
    """Record a clash as a conflict of our item. Without an item of ours there is nothing to attach it to."""
    if clash.ours is None or clash.ours.id not in draft.items:
        return
    theirs = clash.theirs
    text = theirs.text if theirs is not None and theirs.active else ""
    secret = stricter(clash.ours.facets.sensitivity, theirs.facets.sensitivity if theirs else "normal")
    noted = _keyed(draft.view).get((clash.ours.id, text))  # may be open already, even between two items
    wanted = noted or Conflict(clash.ours.id, text, note, "", secret)
    wanted = replace(wanted, sensitivity=stricter(wanted.sensitivity, secret))
    if wanted != noted:
        draft.note_conflict(wanted, origin)


def _wording(conflict: Conflict) -> Conflict:
    """A conflict as it is worded, whichever event recorded it."""
    return replace(conflict, event_id="")


def _keyed(view: View) -> dict[tuple[str, str], Conflict]:
    return {(conflict.item_id, conflict.text): conflict for conflict in view.conflicts}


def _before(history: History, commit: Commit) -> str | None:
    """The commit before another in its chain; None for the first one."""
    chain = history.chain(commit.id)
    return chain[-2].id if len(chain) > 1 else None


def _undo_reminders(draft: Draft, history: History, commit: Commit, origin: Origin) -> None:
    """Make the reminders of a commit what they were before it. What was delivered or changed since, stays."""
    for event in reversed(commit.events):
        if not (key := id_in(event)) or did_in(event) == "delivered":
            continue
        events = history.of_reminder(key)
        place = next(number for number, one in enumerate(events) if one.id == event.id)
        later = [did_in(one) for one in events[place + 1 :]]
        before = after(events[place - 1]) if place else None
        now = draft.reminders.get(key)
        # One that was set and repeats can be ended, however often it came. Any other would come once more.
        if any(did != "delivered" for did in later) or (later and before is not None) or before == now:
            continue
        kept = before or now
        assert kept is not None  # they are not equal
        draft.remind(kept, origin, "undone", gone=before is None)


# ---------------------------------------------------------------------- proposals


def answered(events: Iterable[Event]) -> set[Key]:
    """Keys of the proposals that the person answered in these events."""
    return {
        key_of_event(event)
        for event in events
        if is_proposal(event) and settled_as(event) in ("kept", "dropped")
    }


def bring_pending(
    draft: Draft, base: View, ours: View, theirs: View, origin: Origin, answered: Collection[Key]
) -> None:
    """Merge what is pending into a draft that holds the merged items already."""
    before, after, here = _pending_keyed(base), _pending_keyed(theirs), _pending_keyed(draft.view)
    gone = before.keys() - _pending_keyed(ours).keys()
    for key, one in after.items():
        if key not in here and key not in gone and key not in answered and not _held(draft, one):
            draft.note_proposal(one.item, origin, parent=one.event_id)
    for key, one in before.items():
        if key not in after and key in here:
            draft.note_proposal(one.item, origin, "undone", parent=one.event_id)


def _held(draft: Draft, pending: Pending) -> bool:
    """Whether what is proposed holds already: it is remembered, or there is nothing left to forget."""
    if not pending.item.active:
        held = draft.items.get(pending.item.id)
        return held is None or not held.active
    plain = normalise(pending.text)
    return any(item.active and normalise(item.text) == plain for item in draft.items.values())


def _pending_keyed(view: View) -> dict[Key, Pending]:
    return {one.key: one for one in view.pending}

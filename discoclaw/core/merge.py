"""Bringing two points of a history together: diff, three-way merge, cherry-pick, revert, restore, undo.

One rule for all: between a base and "theirs" something changed; what did not change on our side since the
base is taken as theirs has it; what changed on both sides in the same way stays; the rest is a clash, in
which ours stays and the other side becomes a conflict for the person. So

    merge         base = the newest commit both share   theirs = the other branch
    cherry-pick   base = the commit's parent            theirs = the commit
    revert        base = the commit                     theirs = its parent
    restore       base = ours                           theirs = the older point

Privacy is only ever raised by a merge, and what one side linked or tagged is kept. Where both sides changed
an item's kind, scope, category, confidence or key, ours stays without a conflict: none of them is a claim.
Pure, and the same for every order in which records arrived.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from discoclaw.core.draft import RESOLUTIONS, Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.privacy import stricter
from discoclaw.core.text import normalise
from discoclaw.core.view import Conflict, View

Kind: TypeAlias = Literal["added", "changed", "deprecated", "restored", "removed"]


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One item at two points; None where it is absent."""

    before: Item | None
    after: Item | None

    @property
    def item(self) -> Item:
        """The item as it is afterwards, or was before it went."""
        item = self.after or self.before
        assert item is not None
        return item

    @property
    def kind(self) -> Kind:
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        if self.before.status != self.after.status:
            return "restored" if self.after.active else "deprecated"
        return "changed"


@dataclass(frozen=True, slots=True)
class Clash:
    """Both sides changed what an item claims, differently: `ours` stays. One of them may be absent."""

    ours: Item | None
    theirs: Item | None


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What came of it: the commit to record (None: nothing to do), what it changes, and what clashed."""

    commit: Commit | None
    changes: tuple[ItemChange, ...] = ()
    clashes: tuple[Clash, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeContext:
    """Who brings points together: on which branch, from where, when, and with how many items at most."""

    branch: str
    origin: Origin
    now_ms: int
    max_items: int = 200
    metadata: tuple[tuple[str, Any], ...] = ()


def diff(old: View, new: View) -> list[ItemChange]:
    """What differs between two points, in the order of the newer one; what went comes last."""
    changes = [ItemChange(old.items.get(key), item) for key, item in new.items.items()]
    gone = [ItemChange(item, None) for key, item in old.items.items() if key not in new.items]
    return [change for change in (*changes, *gone) if change.before != change.after]


def three_way(
    base: View, ours: View, theirs: View, *, slots: bool = True
) -> tuple[list[ItemChange], list[Clash]]:
    """What to take from theirs, and what clashes.

    `slots`: one key, or triple, has one object, and nothing becomes less private than it is with us.
    """
    takes: list[ItemChange] = []
    clashes: list[Clash] = []
    held = _slots(base, ours) if slots else {}
    for change in diff(base, theirs):
        key, before, after = change.item.id, change.before, change.after
        mine = ours.items.get(key)
        rival = held.get(_slot(after)) if after is not None and mine == before else None
        if rival is not None and rival.id != key and _claim(rival) != _claim(after):
            clashes.append(Clash(rival, after))
            continue
        wanted, clash = _meet(before, mine, after, raising=slots)
        if clash:
            clashes.append(Clash(mine, after))
        if wanted != mine:
            takes.append(ItemChange(mine, wanted))
    return takes, clashes


def merge(history: History, source: str, context: MergeContext) -> MergeResult:
    """Bring another branch's changes into `context.branch`. Merging it again brings nothing.

    Raises Refused when there is no such branch, or it is the same one.
    """
    ours, theirs = history.branch(context.branch), history.branch(source)
    if ours.name == theirs.name:
        raise Refused(f"{ours.name!r} can not be merged into itself; name another branch")
    base = history.base(ours.head, theirs.head)
    if base == theirs.head or theirs.head not in history.commits:
        return MergeResult(None)
    note = f"the persona {theirs.name} says otherwise"
    points = _Points(history.view(base), history.view(ours.head), history.view(theirs.head))
    meta = {"merged": theirs.head, "from": theirs.name}
    return _bring(history, points, context, f"merge {theirs.name} into {ours.name}", note, meta, empty=True)


def cherry_pick(history: History, wanted: str, context: MergeContext) -> MergeResult:
    """Bring the changes of one commit into `context.branch`. Doing it again brings nothing.

    Raises Refused when there is no such commit.
    """
    commit = history.commit(wanted, on=context.branch)
    ours = history.branch(context.branch)
    have = history.ancestors(ours.head)
    if commit.id in have or any(history.commits[one].metadata.get("picked") == commit.id for one in have):
        return MergeResult(None)
    points = _picked(history, commit, ours.head)
    meta = {"picked": commit.id, "from": commit.branch}
    return _bring(history, points, context, f"cherry-pick: {commit.message}", "another persona says so", meta)


def revert(history: History, wanted: str, context: MergeContext) -> MergeResult:
    """Take the changes of one commit back, by a new one; what changed since stays, as a clash.

    Raises Refused for a commit that is not on the branch.
    """
    commit = history.commit(wanted, on=context.branch)
    ours = history.branch(context.branch)
    if commit.id not in history.ancestors(ours.head):
        raise Refused(f"{commit.id} is not on the branch {ours.name!r}; `cherry-pick` brings commits over")
    points = _Points(
        history.view(commit.id), history.view(ours.head), history.view(_before(history, commit)), slots=False
    )
    return _bring(history, points, context, f"undo: {commit.message}", None, {"reverts": commit.id})


def restore(history: History, wanted: str, context: MergeContext) -> MergeResult:
    """Make the branch say what it said at an earlier point, by a new commit. Raises Refused."""
    commit = history.commit(wanted, on=context.branch)
    ours = history.view(history.branch(context.branch).head)
    points = _Points(ours, ours, history.view(commit.id), slots=False)
    return _bring(history, points, context, f"back to {commit.id}", None, {"restores": commit.id})


def last_change(history: History, branch: str) -> Commit:
    """The newest change of a branch of which something can be undone. Raises Refused when there is none."""
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
    raise Refused("there is no change left to undo")


# ---------------------------------------------------------------------- inside


@dataclass(frozen=True, slots=True)
class _Points:
    """The three views that are brought together."""

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
) -> MergeResult:
    """Draft what three points amount to. `note` is why clashes become conflicts; None: they do not."""
    takes, clashes = three_way(points.base, points.ours, points.theirs, slots=points.slots)
    now_ms = history.branches.next_ms(context.now_ms)
    draft = Draft(points.ours, now_ms=now_ms, max_items=context.max_items)
    for change in takes:
        event = _whole(history, points, change)
        if event is not None:
            draft.replay(event)
        else:
            provenance = _provenance(history, points, change.item.id, context.origin)
            draft.set_item(change.item.id, change.after, **provenance)
    for change in takes:  # once more, for an item may be linked with one that came only later
        if change.after is not None and draft.items[change.item.id] != change.after:
            provenance = _provenance(history, points, change.item.id, context.origin)
            draft.set_item(change.item.id, change.after, **provenance)
    _pair_links(draft, context.origin)
    _bring_conflicts(draft, points, context.origin, _settled(history, points) if points.slots else set())
    if note is not None:
        for clash in clashes:
            _note(draft, clash, note, context.origin)
    commit = draft.commit(message, branch=context.branch, empty=empty, **metadata, **dict(context.metadata))
    return MergeResult(commit, tuple(diff(points.ours, draft.view)), tuple(clashes))


def _whole(history: History, points: _Points, change: ItemChange) -> Event | None:
    """The one event that made an item what it is to become, if there is one: it is brought as it is."""
    if change.before is not None or change.after is None or change.after.facets.links:
        return None
    event_id = points.theirs.last_event.get(change.after.id)
    event = history.event(event_id) if event_id is not None else None
    return event if event is not None and event.event_type == "add" and event.ext else None


def _provenance(history: History, points: _Points, target: str, origin: Origin) -> dict[str, Any]:
    """The event that a taken item continues, and its evidence."""
    event_id = points.theirs.last_event.get(target)
    event = history.event(event_id) if event_id is not None else None
    if target not in points.theirs.items and points.slots and target not in points.theirs.forgotten:
        origin = replace(origin, author="inferred")  # no person had it removed there
    if event is None:
        return {"parent": None, "origin": origin}
    return {"parent": event.id, "origin": replace(origin, evidence=event.evidence or origin.evidence)}


def _picked(history: History, commit: Commit, ours: str | None) -> _Points:
    """The points of a cherry-pick. What it changes of an item that we never had, it adds as a whole."""
    before, held, after = history.view(_before(history, commit)), history.view(ours), history.view(commit.id)
    known = {*held.items, *held.forgotten, *history.view(history.base(ours, commit.id)).items}
    news = {change.item.id for change in diff(before, after) if change.before and change.item.id not in known}
    base = replace(before, items={key: item for key, item in before.items.items() if key not in news})
    theirs = {key: item for key, item in after.items.items() if key not in news or item.active}
    return _Points(base, held, replace(after, items=theirs))


def _pair_links(draft: Draft, origin: Origin) -> None:
    """A link holds both ways, also where only one of its ends was taken."""
    for item in list(draft.items.values()):
        for other in sorted(item.facets.links & draft.items.keys()):
            if item.id not in draft.items[other].facets.links:
                draft.link(draft.items[other], item, origin)


def _settled(history: History, points: _Points) -> set[tuple[str, str]]:
    """The conflicts (by item and text) that the person has settled with us, which theirs does not know."""
    found: set[tuple[str, str]] = set()
    for one in history.ancestors(points.ours.head) - history.ancestors(points.theirs.head):
        for event in history.commits[one].events:
            noted = event.ext.get("conflict", {})
            if noted.get("settled") in RESOLUTIONS:
                found.add((str(event.ext.get("item", {}).get("id")), str(noted.get("text", ""))))
    return found


def _bring_conflicts(
    draft: Draft, points: _Points, origin: Origin, settled: Collection[tuple[str, str]]
) -> None:
    base, ours, theirs = _keyed(points.base), _keyed(draft.view), _keyed(points.theirs)
    gone = base.keys() - _keyed(points.ours).keys()  # not by what was taken just now
    for key, conflict in theirs.items():
        mine, before = ours.get(key), base.get(key)
        if mine is None:
            told_anew = key not in gone and key not in settled
        else:  # put in another way at the earlier point that is brought back
            told_anew = (
                not points.slots and before is not None and _put(mine) == _put(before) != _put(conflict)
            )
        if told_anew:
            draft.note_conflict(conflict, origin)
    for key, conflict in base.items():
        if key not in theirs and key in ours:
            draft.note_conflict(conflict, origin, on=False)


def _note(draft: Draft, clash: Clash, note: str, origin: Origin) -> None:
    """Record a clash as a conflict of our item; where ours is gone there is nothing to attach it to."""
    if clash.ours is None or clash.ours.id not in draft.items:
        return
    theirs = clash.theirs
    text = theirs.text if theirs is not None and theirs.active else ""
    secret = stricter(clash.ours.facets.sensitivity, theirs.facets.sensitivity if theirs else "normal")
    noted = _keyed(draft.view).get((clash.ours.id, text))  # asked already, and perhaps of two items
    wanted = noted or Conflict(clash.ours.id, text, note, "", secret)
    wanted = replace(wanted, sensitivity=stricter(wanted.sensitivity, secret))
    if wanted != noted:
        draft.note_conflict(wanted, origin)


def _put(conflict: Conflict) -> Conflict:
    return replace(conflict, event_id="")


def _keyed(view: View) -> dict[tuple[str, str], Conflict]:
    return {(conflict.item_id, conflict.text): conflict for conflict in view.conflicts}


def _before(history: History, commit: Commit) -> str | None:
    chain = history.chain(commit.id)
    return chain[-2].id if len(chain) > 1 else None


def _claim(item: Item | None) -> tuple[str, bool] | None:
    """What an item says, as far as two sides can contradict each other."""
    return None if item is None else (normalise(item.text), item.active)


def _meet(
    before: Item | None, ours: Item | None, theirs: Item | None, *, raising: bool
) -> tuple[Item | None, bool]:
    """What becomes of an item that theirs changed, and whether the two sides clash."""
    if ours == before:
        if ours is None or theirs is None or not raising:
            return theirs, False
        said = ours if _stated(ours) and _claim(ours) == _claim(theirs) else theirs
        secret = stricter(ours.facets.sensitivity, theirs.facets.sensitivity)
        facets = replace(theirs.facets, sensitivity=secret, author=said.facets.author)
        return replace(theirs, facets=facets), False
    spoke = _spoke(before, ours, theirs) and _spoke(before, theirs, ours)
    clash = spoke and _claim(ours) != _claim(theirs)
    if ours is None or theirs is None:
        return (ours if clash else None), clash
    both = _both(before, ours, theirs)
    return (replace(both, updated_at=ours.updated_at) if clash else both), clash


def _spoke(before: Item | None, now: Item | None, other: Item | None) -> bool:
    """Whether a side says something else than the base, or the person has stated there what it says."""
    return _claim(now) != _claim(before) or (_stated(now) and not _stated(before) and not _stated(other))


def _stated(item: Item | None) -> bool:
    return item is not None and item.facets.author == "stated"


def _slot(item: Item) -> str | None:
    """The place of which an item is the only holder: its key, or subject and predicate of its triple."""
    if not item.active:
        return None
    if item.facets.key is not None:
        return f"key {item.facets.key}"
    triple = item.facets.triple
    return f"triple {normalise(triple[0])} {normalise(triple[1])}" if triple is not None else None


def _slots(base: View, ours: View) -> dict[str | None, Item]:
    """What our side put into slots since the base; what was there before, theirs knew."""
    held: dict[str | None, Item] = {}
    for item in ours.items.values():
        before = base.items.get(item.id)
        if before is None or (_slot(before), _claim(before)) != (_slot(item), _claim(item)):
            held[_slot(item)] = item
    held.pop(None, None)
    return held


def _both(base: Item | None, ours: Item, theirs: Item) -> Item:
    """An item that both sides changed without contradiction: each field from the side that changed it."""
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
    """Whose words an item has: the person's, else those of the side that changed them."""
    if _claim(ours) == _claim(theirs) and _stated(ours) != _stated(theirs):
        return ours if _stated(ours) else theirs
    return theirs if not _spoke(base, ours, theirs) else ours


def _both_sets(base: Any, ours: Any, theirs: Any) -> list[str]:
    dropped = set(base or ()) - set(theirs)
    return list(
        dict.fromkeys([*(one for one in ours if one not in dropped), *sorted(set(theirs) - set(base or ()))])
    )

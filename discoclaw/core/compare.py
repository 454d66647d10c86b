"""Comparing views: the difference of two, and the three-way merge of two with their common base.

A three-way merge looks at each item that changed between the base and "theirs". If it did not change on our
side, theirs is taken; if both sides made the same change, nothing happens. Otherwise the two sides clash:
ours stays, and the other side becomes a question to the person. No statement is ever replaced silently.

Privacy is only ever raised, and links and tags of both sides are kept. If both sides changed an item's kind,
scope, category, confidence or key, ours stays without a clash: none of these is a claim about the person.
Pure. Knows nothing about branches and commits; that is `merge`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from discoclaw.core.item import Item
from discoclaw.core.privacy import stricter
from discoclaw.core.text import normalise
from discoclaw.core.view import View

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

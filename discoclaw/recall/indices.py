"""Caches the indices of items that were ranked lately. Pure.

After a change of a memory nearly all its items are the same objects, so the new index is made from the
previous one, which takes a twentieth of the time of indexing 200 items. Indices that share an item are of one
memory, of which the latest few are kept: it has few views at a time.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from discoclaw.core.item import Item
from discoclaw.core.visible import VisibleItems
from discoclaw.recall.document import Document
from discoclaw.recall.index import Index

MOST_INDEXED = 40_000
"""The most items in cached indices, in total: a memory of 10,000 in a DM and elsewhere, and all others."""
MOST_VERSIONS = 4
"""The most indices of one memory: of two branches, each in a DM and elsewhere."""
MOST_CHANGED = 1 / 8
"""If a larger share of the items changed, or more positions are empty, all are indexed again."""


@dataclass(frozen=True, slots=True, eq=False)
class Indexed:
    """Some items with their index; `places` has the item, if any, at each position of the index.

    `versions` are the indices of the same memory, this one included, the one unused for longest first.
    """

    items: VisibleItems
    places: Sequence[Item | None]
    index: Index
    versions: list["Indexed"]


class Indices:
    """Indices by the identity of their items; `document` gives an item's document."""

    def __init__(self, document: Callable[[Item], Document]) -> None:
        self._document = document
        self._kept: OrderedDict[tuple[int, ...], Indexed] = OrderedDict()
        self._with: dict[int, list[Indexed]] = {}  # the indices of a memory, by the identity of each item
        self._count = 0

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self._with.clear()
        self._count = 0

    def of(self, items: VisibleItems) -> Indexed:
        """The index of exactly these items."""
        for _ in self.making(items):
            pass
        kept = self._kept[items.identities]
        self._kept.move_to_end(items.identities)
        if kept.versions[-1] is not kept:
            kept.versions.remove(kept)
            kept.versions.append(kept)
        return kept

    def making(self, items: VisibleItems) -> Iterator[None]:
        """Make the index that `of` returns, with a rest after each item."""
        if items.identities in self._kept:
            return
        versions = next((self._with[one] for one in items.identities if one in self._with), [])
        kept = self._changed(items, versions[-1]) if versions else None
        if kept is None:
            places = list(items.by_id.values())
            index = yield from Index.making(map(self._document, places))
            kept = Indexed(items, places, index, versions)
        self._keep(kept)

    def _keep(self, kept: Indexed) -> None:
        if kept.items.identities in self._kept:
            return  # somebody else made it meanwhile
        self._kept[kept.items.identities] = kept
        self._with.update(dict.fromkeys(kept.items.identities, kept.versions))
        self._count += len(kept.items)
        kept.versions.append(kept)
        while len(kept.versions) > MOST_VERSIONS:
            self._drop(kept.versions[0])
        while len(self._kept) > 1 and self._count > MOST_INDEXED:
            self._drop(next(iter(self._kept.values())))

    def _drop(self, one: Indexed) -> None:
        del self._kept[one.items.identities]
        one.versions.remove(one)
        self._count -= len(one.items)
        left = set(one.items.identities).difference(*(other.items.identities for other in one.versions))
        for identity in left:
            if self._with.get(identity) is one.versions:
                del self._with[identity]

    def _changed(self, items: VisibleItems, before: Indexed) -> Indexed | None:
        """The index made from one of nearly the same items; None if too much changed."""
        changes = _changes(before.places, items.by_id.values())
        if changes is None:
            return None
        places = list(before.places)
        for position, item in sorted(changes.items()):
            places[position : position + 1] = [item]
        documents = {
            position: self._document(item) if item is not None else None for position, item in changes.items()
        }
        return Indexed(items, places, before.index.with_changes(documents), before.versions)


def _changes(places: Sequence[Item | None], items: Collection[Item]) -> dict[int, Item | None] | None:
    """What has to stand where, so that `places` have the items in their order; None when that is too much."""
    most = int(len(items) * MOST_CHANGED)
    changes: dict[int, Item | None] = {}
    position = 0
    for item in items:
        while position < len(places) and not _is_place_of(item, places[position]):
            if places[position] is not None:
                changes[position] = None
            position += 1
        if position >= len(places) or places[position] is not item:
            changes[position] = item
        if len(changes) > most:
            return None
        position += 1
    changes.update({rest: None for rest in range(position, len(places)) if places[rest] is not None})
    size = max(len(places), position)
    return changes if len(changes) <= most and size - len(items) <= most else None


def _is_place_of(item: Item, held: Item | None) -> bool:
    return held is item or (held is not None and held.id == item.id)

"""Caches the indices of items that were ranked lately. Pure.

After a change of a memory nearly all its items are the same objects, so the new index is made from the
previous one, which takes a twentieth of the time of indexing 200 items.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from discoclaw.core.item import Item
from discoclaw.core.visible import VisibleItems
from discoclaw.recall.document import Document
from discoclaw.recall.index import Index

MOST_INDEXED = 10_000
"""The most items in cached indices, in total."""
MOST_CHANGED = 1 / 8
"""If a larger share of the items changed, or more positions are empty, all are indexed again."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """Some items with their index; `places` has the item, if any, at each position of the index."""

    items: VisibleItems
    places: Sequence[Item | None]
    index: Index


class Indices:
    """Indices by the identity of their items; `document` gives an item's document."""

    def __init__(self, document: Callable[[Item], Document]) -> None:
        self._document = document
        self._kept: OrderedDict[tuple[int, ...], Indexed] = OrderedDict()
        self._with: dict[int, Indexed] = {}  # by the identity of some of its items
        self._count = 0

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self._with.clear()
        self._count = 0

    def of(self, items: VisibleItems) -> Indexed:
        """The index of exactly these items."""
        kept = self._kept.get(items.identities)
        if kept is None:
            kept = self._changed(items) or self._anew(items)
            self._keep(kept)
        self._kept.move_to_end(items.identities)
        return kept

    def _keep(self, kept: Indexed) -> None:
        self._kept[kept.items.identities] = kept
        self._with.update(dict.fromkeys(_landmarks(kept.items), kept))
        self._count += len(kept.items)
        while len(self._kept) > 1 and self._count > MOST_INDEXED:
            _, oldest = self._kept.popitem(last=False)
            self._count -= len(oldest.items)
            for landmark in _landmarks(oldest.items):
                if self._with.get(landmark) is oldest:
                    del self._with[landmark]

    def _anew(self, items: VisibleItems) -> Indexed:
        places = list(items.by_id.values())
        return Indexed(items, places, Index.of([self._document(item) for item in places]))

    def _changed(self, items: VisibleItems) -> Indexed | None:
        """The index made from one of nearly the same items; None if there is none."""
        before = next((self._with[one] for one in _landmarks(items) if one in self._with), None)
        changes = _changes(before.places, items.by_id.values()) if before is not None else None
        if before is None or changes is None:
            return None
        places = list(before.places)
        for position, item in sorted(changes.items()):
            places[position : position + 1] = [item]
        documents = {
            position: self._document(item) if item is not None else None for position, item in changes.items()
        }
        return Indexed(items, places, before.index.with_changes(documents))


def _landmarks(items: VisibleItems) -> Iterator[int]:
    """The identities of two items by which an index of nearly the same ones is found."""
    return (id(items[place]) for place in {0, len(items) // 2} if items)


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

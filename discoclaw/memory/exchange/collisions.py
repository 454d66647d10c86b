"""Which memories of a file collide with one that is remembered already, or with another of the file. Pure."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from discoclaw.core.draft import Draft
from discoclaw.core.item import Item
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.text import normalise
from discoclaw.memory.exchange.unmarked import as_private


def known_and_new(
    items: Iterable[Item], draft: Draft, unmarked: AbstractSet[str], rule: DmPrivacy
) -> tuple[list[tuple[Item, Item]], list[Item]]:
    """The items that collide with another, each beside that one, and those that don't.

    `unmarked` are the ids of those that may have been said in private; `rule` decides about them.
    """
    held, new = [], []
    places = _Places(draft.items.values())
    for item in items:
        other = places.of(item)
        # Repeating what is known, maybe in private, makes it no less open.
        repeats = other is not None and normalise(other.text) == normalise(item.text)
        if item.id in unmarked and not repeats:
            item = as_private(item, rule)
        if other is None:
            places.add(item)
            new.append(item)
        else:
            held.append((other, item))
    return held, new


class _Places:
    """Finds the item, existing or just imported, that a new one would collide with."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._by: dict[tuple[str, str], Item] = {}
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        for place in self._places(item):
            self._by.setdefault(place, item)

    def of(self, item: Item) -> Item | None:
        return next((self._by[place] for place in self._places(item) if place in self._by), None)

    @staticmethod
    def _places(item: Item) -> Sequence[tuple[str, str]]:
        """By id, by key, and by text."""
        key = item.facets.key if item.active else None
        keyed = [("key", key)] if key is not None else []
        return [("id", item.id), *keyed, (item.kind, normalise(item.text))]

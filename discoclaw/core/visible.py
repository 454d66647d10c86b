"""The items that may be shown in one place, and what a prompt needs of them. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from discoclaw.core.item import STANDING, Item, by_newest, durable_line
from discoclaw.core.text import utf16_length
from discoclaw.core.words import fold

CORE = "core"
_FILLERS = frozenset({"a", "an", "the", "my", "user", "users"})
_WORDS = re.compile(r"[\w+#]+")


class Line(NamedTuple):
    """An item's line in a prompt. `cost` is its length in UTF-16 units, with the line break.

    `gist` is equal for texts that say the same, to drop near-duplicates.
    """

    text: str
    cost: int
    gist: tuple[str, ...] | str


def is_standing(item: Item) -> bool:
    """Whether an item is always in the prompt, because it says how to answer or its category is core."""
    return item.kind in STANDING or item.facets.category == CORE


class VisibleItems(tuple[Item, ...]):
    """Items with values derived from them, each of which is computed at most once.

    `View.visible` returns the same object as long as the view is the same. So an unchanged memory is not
    filtered, sorted and indexed again for every message.
    """

    @classmethod
    def of(cls, items: Iterable[Item]) -> "VisibleItems":
        """The items themselves, if they are visible items already."""
        return items if isinstance(items, cls) else cls(items)

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        return {item.id: item for item in self}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Their texts by id."""
        return {item.id: item.text for item in self}

    @cached_property
    def identities(self) -> tuple[int, ...]:
        """A key for caches about exactly these objects. A cache has to keep the items too, or ids repeat."""
        return tuple(map(id, self))

    @cached_property
    def newest(self) -> Sequence[Item]:
        """All of them, newest first."""
        return sorted(self, key=by_newest)

    @cached_property
    def standing(self) -> Sequence[Item]:
        """The items that are always in the prompt, newest first."""
        return sorted(filter(is_standing, self), key=by_newest)

    @cached_property
    def shortest(self) -> int:
        """The length of kind and text of the shortest item, in characters."""
        return min((len(item.text) + len(item.kind) for item in self), default=0)


def line_of(item: Item) -> Line:
    """An item's line in a prompt."""
    text = durable_line(item)
    return Line(text, utf16_length(text) + 1, _gist(item.text))


def _gist(text: str) -> tuple[str, ...] | str:
    """What a text says, for comparison: its words in order, without articles and the like.

    Words such as "not", "from" or "before" are kept, since they change the meaning.
    """
    words = _WORDS.findall(fold(text).replace("'", "").replace("’", ""))
    return tuple([word for word in words if word not in _FILLERS]) or text

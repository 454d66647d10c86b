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
    """An item's line in a prompt, what it costs in UTF-16 units with its line break, and what it says."""

    text: str
    cost: int
    gist: tuple[str, ...] | str


def is_standing(item: Item) -> bool:
    """Whether an item is always in the prompt, asked for or not: it says how to answer, or is core."""
    return item.kind in STANDING or item.facets.category == CORE


class VisibleItems(tuple[Item, ...]):
    """Items, and what is derived from them, each computed once.

    `View.visible` returns the same object for as long as the view is the same, so an unchanged memory is
    neither filtered, sorted nor indexed again for the next message.
    """

    @classmethod
    def of(cls, items: Iterable[Item]) -> "VisibleItems":
        """The items themselves, if they are visible items already."""
        return items if isinstance(items, cls) else cls(items)

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        return {item.id: item for item in self}

    @cached_property
    def identities(self) -> tuple[int, ...]:
        """A key for what is kept of just these objects, as long as whoever keeps it keeps them too."""
        return tuple(map(id, self))

    @cached_property
    def newest(self) -> Sequence[Item]:
        """All of them, newest first."""
        return sorted(self, key=by_newest)

    @cached_property
    def standing(self) -> Sequence[Item]:
        """Those that are always in the prompt, newest first."""
        return sorted(filter(is_standing, self), key=by_newest)

    @cached_property
    def shortest(self) -> int:
        """The characters of kind and text that the shortest of them has."""
        return min((len(item.text) + len(item.kind) for item in self), default=0)


def line_of(item: Item) -> Line:
    """An item's line."""
    text = durable_line(item)
    return Line(text, utf16_length(text) + 1, _gist(item.text))


def _gist(text: str) -> tuple[str, ...] | str:
    """Two texts with the same words in the same order say the same. A "not", "from" or "before" counts."""
    words = _WORDS.findall(fold(text).replace("'", "").replace("’", ""))
    return tuple([word for word in words if word not in _FILLERS]) or text

"""The items that may be shown in one place, and what a prompt needs of them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from discoclaw.core.gist import Gist, gist_of
from discoclaw.core.item import STANDING, Item, by_newest, durable_line
from discoclaw.core.manner import says_harm, says_how
from discoclaw.core.replaced import may_end
from discoclaw.core.text import utf16_length

CORE = "core"
FRAME = len("- []  (src: manual, updated 2026-01-01) [i1]") + 1
"""What a line has at least around its item's kind and text."""
BEGINNING = len("User's phone")
"""Characters at which most texts have said whose and what, and not yet which."""


class Line(NamedTuple):
    """An item's line in a prompt. `cost` is its length in UTF-16 units, with the line break.

    `gist` is equal for texts that say the same, to drop near-duplicates. Two marks of standing items: `bound`
    ones are core, constraints that the person stated, or name what could do harm; `general` ones say how to
    answer whatever the topic. `may_end`: it names something of which there is one at a time.
    """

    text: str
    cost: int
    gist: Gist
    bound: bool = False
    general: bool = False
    may_end: bool = False


def is_standing(item: Item) -> bool:
    """Whether an item is in a prompt unasked, because it says how to answer or its category is core."""
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

    def deriving(self) -> Iterator[None]:
        """Compute ahead what a prompt needs, with a rest after each value: 10 ms among 10,000 items."""
        for name in ("by_id", "identities", "standing", "harmful", "newest", "shortest", "_by_beginning"):
            getattr(self, name)
            yield

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        return {item.id: item for item in self}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Their texts by id."""
        return {item.id: item.text for item in self}

    @cached_property
    def keyed(self) -> Sequence[Item]:
        """Those that have a key."""
        return [item for item in self if item.facets.key is not None]

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
        """The items that may be in a prompt unasked, newest first within three groups.

        These are core ones and stated constraints, what else the person stated, and the rest.
        """
        return sorted(filter(is_standing, self), key=_by_weight)

    @cached_property
    def standing_ids(self) -> frozenset[str]:
        """Their ids."""
        return frozenset(item.id for item in self.standing)

    @cached_property
    def harmful(self) -> Sequence[Item]:
        """Those of the standing items that name what could do harm."""
        return [item for item in self.standing if says_harm(gist_of(item.text))]

    def like(self, item: Item) -> Sequence[Item]:
        """The items of an item's kind whose texts begin alike, itself included, the newest first."""
        beginning = _beginning(item)
        found = self._sorted.get(beginning)
        if found is None:
            found = self._sorted[beginning] = sorted(self._by_beginning.get(beginning, ()), key=by_newest)
        return found

    @cached_property
    def _by_beginning(self) -> Mapping[tuple[str, str], Sequence[Item]]:
        found: dict[tuple[str, str], list[Item]] = {}
        for item in self:
            found.setdefault(_beginning(item), []).append(item)
        return found

    @cached_property
    def _sorted(self) -> dict[tuple[str, str], Sequence[Item]]:
        return {}

    @cached_property
    def shortest(self) -> int:
        """The length of kind and text of the shortest item, in characters."""
        return min((len(item.text) + len(item.kind) for item in self), default=0)


def _beginning(item: Item) -> tuple[str, str]:
    """What texts that are alike have in common. It is made for every item, so words would take too long."""
    return item.kind, item.text[:BEGINNING]


def line_of(item: Item) -> Line:
    """An item's line in a prompt."""
    text, gist = durable_line(item), gist_of(item.text)
    standing = is_standing(item)
    bound = standing and (_is_bound(item) or says_harm(gist))
    return Line(text, utf16_length(text) + 1, gist, bound, standing and says_how(gist), may_end(gist))


def _is_bound(item: Item) -> bool:
    stated = item.facets.author == "stated"
    return item.facets.category == CORE or (stated and item.kind == "constraint")


def _by_weight(item: Item) -> tuple[bool, bool, int, str]:
    """Sort key of standing items: bound ones first, then what the person stated, newest first."""
    return (not _is_bound(item), item.facets.author != "stated", *by_newest(item))

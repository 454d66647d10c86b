"""What a prompt does with facts that a newer one replaced: the newest comes first, and is there at all. Pure.

A message that asks about Linz finds "User lives in Linz", and perhaps not that the person has moved since.
So what is found brings along what replaced it.
"""

from collections.abc import Iterator, Mapping, Sequence

from discoclaw.core.gist import Gist
from discoclaw.core.item import Item
from discoclaw.core.ports import Hit, Recall
from discoclaw.core.replaced import Pair, alike, ended, newest_first
from discoclaw.core.values import dataclass
from discoclaw.core.visible import FRAME, VisibleItems

MOST_COMPARED = 40
"""So many of the best are compared, however much room there is."""
TIE = 0.9
"""The share of the older one's score from which a newer one that is alike comes first."""
MOST_NEWER = 3
"""So many of the newest with the same beginning are looked at for one that replaces an item."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Items in the order in which they get room. `until` is when (ms) those that ended did, by id.

    `brought` are the ids of items that are there because they replaced another.
    """

    always: Sequence[Item]
    relevant: Sequence[Item]
    until: Mapping[str, int]
    brought: frozenset[str]


def compare(
    recall: Recall,
    known: VisibleItems,
    always: Sequence[Item],
    relevant: Sequence[Item],
    *,
    found: Mapping[str, Hit],
    max_chars: int,
) -> Compared:
    """Compare the best of the standing items and of those found, as many as there is room for.

    `found` are hits by id.
    """

    def gist(item: Item) -> Gist:
        return recall.line(item).gist

    best = [*_within(always, max_chars), *_within(relevant, max_chars)]
    here = {item.id for item in best}
    ending = [item for item in best if recall.line(item).may_end]
    newer = {one.id: one for item in ending for one in _newer(known, item) if one.id not in here}
    pairs = alike((*best, *newer.values()), gist)
    over = [pair for pair in pairs if ended(pair, gist)]
    until = {pair.older.id: pair.newer.updated_at for pair in over}  # the next newer one is the last
    brought: dict[str, Item] = {}
    for pair in over:
        if pair.older.id in here and pair.newer.id in newer and pair.newer.id not in until:
            brought.setdefault(pair.older.id, pair.newer)
    if brought:
        always, relevant = _with_newer([always, relevant], brought)
    in_order = [pair for pair in pairs if pair.older.id in until or _tied(pair, found)]
    new = frozenset(one.id for one in brought.values())
    return Compared(newest_first(always, over), newest_first(relevant, in_order), until, new)


def _tied(pair: Pair, found: Mapping[str, Hit]) -> bool:
    """Whether a message calls for both of a pair alike, and not for the older one by its name."""
    newer, older = found.get(pair.newer.id), found.get(pair.older.id)
    return newer is not None and older is not None and newer.score >= TIE * older.score


def _with_newer(lists: Sequence[Sequence[Item]], brought: Mapping[str, Item]) -> list[list[Item]]:
    """The lists, in front of each item what it brought along, and each item once."""
    placed: set[str] = set()
    made: list[list[Item]] = []
    for items in lists:
        made.append([])
        for item in items:
            for one in (brought.get(item.id), item):
                if one is not None and one.id not in placed:
                    placed.add(one.id)
                    made[-1].append(one)
    return made


def _newer(known: VisibleItems, item: Item) -> list[Item]:
    """The items that may have replaced one."""
    return [other for other in known.like(item)[:MOST_NEWER] if other.updated_at > item.updated_at]


def _within(items: Sequence[Item], max_chars: int) -> Iterator[Item]:
    """The first items of which a prompt could have all."""
    for item in items[:MOST_COMPARED]:
        max_chars -= len(item.text) + len(item.kind) + FRAME
        if max_chars < 0:
            return
        yield item

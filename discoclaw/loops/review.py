"""Which items a consolidation shows to a model together, so that each pair that is near is looked at once.

A memory that fits into one prompt is shown as a whole. Of a larger one, each item that waits for a review is
shown beside its neighbours, by words and by vectors where there are any. What is left when `MOST_BATCHES` are
full waits for the next time. Open and private items are never in one batch, confidential ones in none.

What waits is known from the history: what changed since the last review, what was left over then, and what a
date in its own words has put in the past since. Pure but for the pauses of its thread.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from discoclaw.core import titles
from discoclaw.core.consolidate import available
from discoclaw.core.item import Item, Sensitivity, by_newest
from discoclaw.core.times import date_of
from discoclaw.core.view import View
from discoclaw.prompt.quote import quote_entry
from discoclaw.recall.document import dates_in
from discoclaw.recall.neighbours import Neighbours
from discoclaw.search.matrix import Matrix

BATCH_ITEMS = 150
BATCH_CHARS = 12_000
MOST_BATCHES = 10
"""The limit of one run for open and for private items each."""
FEWEST = 10
"""Fewer items than this are shown beside the newest ones."""
NEAR_BY_MEANING = 5
"""How many items with the nearest vectors are shown beside one. All of 108 replaced facts were among them."""
LEVELS: tuple[Sensitivity, ...] = ("normal", "private")
AT_ONCE = 20
PAUSE_S = 0.001
"""After every `AT_ONCE` items the interpreter is yielded, so that replies go on."""

Near: TypeAlias = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The items of each prompt, and the ids of those that wait for the next run.

    `new` are, for each prompt, the ids of those that it is made for.
    """

    batches: tuple[tuple[Item, ...], ...] = ()
    left: frozenset[str] = frozenset()
    new: tuple[frozenset[str], ...] = ()

    def left_from(self, place: int) -> frozenset[str]:
        """The ids of what waits if the prompts from one on are not made."""
        return self.left.union(*self.new[place:])


@dataclass(frozen=True, slots=True)
class Meanings:
    """The vectors of a memory, if there are any, and the cosine from which two may be about the same."""

    matrix: Matrix | None = None
    floor: float = 0.0


def planned(view: View, waiting: Collection[str] | None = None, meanings: Meanings = Meanings()) -> Plan:
    """The items of a view to review; `waiting` are the ids of those that need it, None: all. For a thread."""
    asked = [one for conflict in view.conflicts for one in (conflict.item_id, conflict.other_id)]
    items = sorted(available(view.items.values(), asked), key=by_newest)
    found: list[tuple[Item, ...]] = []
    left: set[str] = set()
    made_for: list[frozenset[str]] = []
    for level in LEVELS:
        group = [item for item in items if item.facets.sensitivity == level]
        new = {item.id: item for item in group if waiting is None or item.id in waiting}
        if not new or len(group) < 2:  # a single item has nothing to be compared with
            continue
        if _fits(group):
            found.append(tuple(group))
            made_for.append(frozenset(new))
            continue
        batches, rest = _packed(group, new, _near(group, meanings))
        found += batches.values()
        made_for += batches
        left |= rest
    return Plan(tuple(found), frozenset(left), tuple(made_for))


def over_since(items: Collection[Item], before_ms: int, now_ms: int) -> set[str]:
    """The ids of items that name a day or month that has passed between two times."""
    before, now = date_of(before_ms), date_of(now_ms)
    found = set()
    for item in items:
        named = {term[2:] for term in dates_in(item.text) if len(term) >= len("d:2026-01")}
        days = [one for one in named if not any(one != more and more.startswith(one) for more in named)]
        if any(before[: len(one)] <= one < now[: len(one)] for one in days):
            found.add(item.id)
    return found


def prompt(items: Sequence[Item], now_ms: int) -> str:
    """The prompt of one review: today's date, and the items."""
    return titles.SEPARATOR.join(
        [
            f"{titles.TODAY}\n{date_of(now_ms)}",
            "\n".join([titles.TO_TIDY, *(entry(item) for item in items)]),
        ]
    )


def entry(item: Item) -> str:
    """An item's line in a prompt."""
    since, updated = date_of(item.created_at), date_of(item.updated_at)
    about = f"({item.facets.author}, since {since}, updated {updated})"
    return f"- {quote_entry(item.id)} [{item.kind}] {about} {quote_entry(item.text)}"


_ROOM = BATCH_CHARS - len(prompt([], 0))


def _size(item: Item) -> int:
    return len(entry(item)) + 1


def _fits(items: Sequence[Item]) -> bool:
    return len(items) <= BATCH_ITEMS and sum(map(_size, items)) <= _ROOM


def _near(items: Sequence[Item], meanings: Meanings) -> Near:
    """A function that returns the ids of the items near to one."""
    count = 0

    def pause() -> None:
        nonlocal count
        count += 1
        if count % AT_ONCE == 0:
            time.sleep(PAUSE_S)

    words, texts = Neighbours(items, pause), {item.id: item.text for item in items}
    rows = meanings.matrix.rows_of(texts) if meanings.matrix is not None else None

    def near(one: str) -> list[str]:
        pause()
        by_meaning = rows.nearest(one, NEAR_BY_MEANING, meanings.floor) if rows is not None else []
        return list(dict.fromkeys([*words.of(one), *by_meaning]))

    return near


def _packed(
    items: Sequence[Item], new: dict[str, Item], near: Near
) -> tuple[dict[frozenset[str], tuple[Item, ...]], set[str]]:
    """Batches of new items (ids) with their neighbours, and those new ones that no batch has room for.

    An item's neighbours come next, so that those near each other are shown in few batches.
    """
    known = {item.id: item for item in items}
    todo, queue, found = dict.fromkeys(new), deque[str](), dict[frozenset[str], tuple[Item, ...]]()
    while todo and len(found) < MOST_BATCHES:
        batch: dict[str, Item] = {}
        waited = set(todo)
        room = _ROOM
        while todo:
            while queue and queue[0] not in todo:
                queue.popleft()
            one = queue[0] if queue else next(iter(todo))
            beside = [other for other in near(one) if other in known]
            group = [known[name] for name in (one, *beside) if name not in batch]
            size = sum(map(_size, group))
            if batch and (size > room or len(batch) + len(group) > BATCH_ITEMS):
                break
            while size > room and len(group) > 2:  # the nearest come first
                size -= _size(group.pop())
            batch.update((item.id, item) for item in group)
            room -= size
            del todo[one]
            queue.extend(beside)
        for item in items:  # newest first
            if len(batch) >= FEWEST:
                break
            batch.setdefault(item.id, item)
        found[frozenset(waited.difference(todo))] = tuple(batch.values())
    return found, set(todo)

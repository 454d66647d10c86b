"""What goes into a prompt: standing items first, then what the query finds, whole lines under a budget.

Standing items say how to answer this person (preferences, constraints) and are always there; everything
else is there for a reason or not at all. Pure.
"""

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass

from discoclaw.core.item import STANDING, Item, by_newest, durable_line
from discoclaw.core.ports import LINKED_WITH, NO_SIGNALS, Recall, Signals
from discoclaw.core.query import Query
from discoclaw.core.text import utf16_length
from discoclaw.core.words import fold

_FILLERS = frozenset({"a", "an", "the", "my", "user", "users"})
FRAME = len("- []  (src: manual, updated 2026-01-01)") + 1
"""What a line has at least around its item's kind and text."""
CORE = "core"
MOST_STANDING = 200
"""Standing items that are looked at; far more than any prompt has room for."""
ALWAYS, EVERYTHING = "standing", "asked for everything"
"""Why an item is there that no word of the talk called for."""
STANDING_SHARE = 0.5
"""At most this share of the budget goes to standing items while others have evidence."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One item that will be shown, its line, and why it is there."""

    item: Item
    line: str
    why: str

    @property
    def called_for(self) -> bool:
        """Whether the talk called for just this item, by its own words or their meaning."""
        return self.why not in (ALWAYS, EVERYTHING) and not self.why.startswith(LINKED_WITH)


def is_standing(item: Item) -> bool:
    """Whether an item is always in the prompt, asked for or not: it says how to answer, or is core."""
    return item.kind in STANDING or item.facets.category == CORE


def choose(
    recall: Recall,
    query: Query,
    items: Sequence[Item],
    *,
    max_chars: int,
    now_ms: int,
    signals: Signals = NO_SIGNALS,
) -> tuple[Chosen, ...]:
    """The items to show, best first, as whole lines of together at most `max_chars` UTF-16 units.

    `items` are active and may be shown here. A line that does not fit is passed over, not cut.
    """
    if query.everything:
        found = {item.id: EVERYTHING for item in items}
        ranked = sorted(items, key=by_newest)
    else:
        hits = recall.rank(query, items, now_ms=now_ms, signals=signals)
        found = {hit.item.id: hit.why for hit in hits}
        ranked = [hit.item for hit in hits]
    standing = heapq.nsmallest(
        MOST_STANDING,
        [item for item in items if item.kind in STANDING or item.facets.category == CORE],
        key=lambda item: (item.id not in found, -item.updated_at, item.id),
    )
    relevant = [item for item in ranked if not is_standing(item)]
    said: set[object] = set()
    first = _fit(standing, int(max_chars * STANDING_SHARE) if relevant else max_chars, found, said)
    second = _fit(relevant, max_chars - _size(first), found, said)
    taken = {chosen.item.id for chosen in first}
    rest = [item for item in standing if item.id not in taken]
    third = _fit(rest, max_chars - _size(first) - _size(second), found, said)
    return (*first, *second, *third)


def _fit(items: Sequence[Item], budget: int, found: dict[str, str], said: set[object]) -> tuple[Chosen, ...]:
    """Greedy: every item whose line still fits and says something not yet `said`, to which it is added."""
    chosen: list[Chosen] = []
    for item in items:
        if len(item.text) + len(item.kind) + FRAME > budget:
            continue  # most items of a long memory end here, before anything is built for them
        line = durable_line(item)
        cost = utf16_length(line) + 1
        if cost > budget or (gist := _gist(item)) in said:
            continue
        said.add(gist)
        budget -= cost
        chosen.append(Chosen(item, line, found.get(item.id) or ALWAYS))
    return tuple(chosen)


def _size(chosen: Sequence[Chosen]) -> int:
    return sum(utf16_length(one.line) + 1 for one in chosen)


def _gist(item: Item) -> tuple[str, ...] | str:
    """Two items with the same words in the same order say the same. A "not", "from" or "before" counts."""
    words = re.findall(r"[\w+#]+", re.sub("['’]", "", fold(item.text)))
    return tuple(word for word in words if word not in _FILLERS) or item.text

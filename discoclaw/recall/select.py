"""What goes into a prompt: standing items first, then what the query finds, whole lines under a budget.

Standing items say how to answer this person (preferences, constraints) and are always there; everything
else is there for a reason or not at all. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from discoclaw.core.item import Item, Kind, by_newest, durable_line
from discoclaw.core.ports import Recall
from discoclaw.core.text import utf16_length
from discoclaw.core.words import fold, terms

STANDING: frozenset[Kind] = frozenset({"preference", "constraint"})
_FILLERS = frozenset({"a", "an", "the", "my", "user", "users"})
FRAME = len("- []  (src: manual, updated 2026-01-01)") + 1
"""What a line has at least around its item's kind and text."""
STANDING_SHARE = 0.5
"""At most this share of the budget goes to standing items while others have evidence."""


_EVERYTHING = re.compile(
    r"\b(?:remember|know|recall|learn\w*|memor\w+|stor\w+|notes?)\b[^.!?\n]*\b(?:me|myself|i|my)\b"
    r"|\bwho am i\b|\bmy (?:memor\w+|notes)\b",
    re.IGNORECASE,
)
_MEMORY_WORDS = frozenset(
    terms("recall learned memory memories stored notes everything anything facts show list far date")
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """One item that will be shown, its line, and why it is there."""

    item: Item
    line: str
    why: str


def choose(
    recall: Recall, message: str, items: Sequence[Item], *, max_chars: int, now_ms: int, recent: str = ""
) -> tuple[Chosen, ...]:
    """The items to show, best first, as whole lines of together at most `max_chars` UTF-16 units.

    `items` are active and may be shown here. `recent` is what was said just before; it helps when the
    message alone says next to nothing ("and why?"). A line that does not fit is passed over, not cut.
    """
    if asks_for_everything(message):
        found = {item.id: "asked for everything" for item in items}
        ranked = sorted(items, key=by_newest)
    else:
        query = message if len(set(terms(message))) > 1 else f"{message}\n{recent}"
        hits = recall.rank(query, items, now_ms=now_ms)
        found = {hit.item.id: hit.why for hit in hits}
        ranked = [hit.item for hit in hits]
    standing = sorted(
        (item for item in items if item.kind in STANDING),
        key=lambda item: (item.id not in found, *by_newest(item)),
    )
    relevant = [item for item in ranked if item.kind not in STANDING]
    said: set[object] = set()
    first = _fit(standing, int(max_chars * STANDING_SHARE) if relevant else max_chars, found, said)
    second = _fit(relevant, max_chars - _size(first), found, said)
    taken = {chosen.item.id for chosen in first}
    rest = [item for item in standing if item.id not in taken]
    third = _fit(rest, max_chars - _size(first) - _size(second), found, said)
    return (*first, *second, *third)


def asks_for_everything(message: str) -> bool:
    """Whether somebody asks what is remembered of them at all, and of nothing in particular.

    English only; in other languages the model finds the same with its search tool.
    """
    return _EVERYTHING.search(message) is not None and not set(terms(message)) - _MEMORY_WORDS


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
        chosen.append(Chosen(item, line, found.get(item.id) or "standing"))
    return tuple(chosen)


def _size(chosen: Sequence[Chosen]) -> int:
    return sum(utf16_length(one.line) + 1 for one in chosen)


def _gist(item: Item) -> tuple[str, ...] | str:
    """Two items with the same words in the same order say the same. A "not", "from" or "before" counts."""
    words = re.findall(r"[\w+#]+", re.sub("['’]", "", fold(item.text)))
    return tuple(word for word in words if word not in _FILLERS) or item.text

"""Selects what goes into a prompt: standing items first, then what the query finds, whole lines in a budget.

Standing items say how to answer this person (preferences, constraints) and are always included; every other
item needs a reason. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.item import Item
from discoclaw.core.ports import IDLE, LINKED_WITH, NO_SIGNALS, Hit, Recall, Signals
from discoclaw.core.query import Query
from discoclaw.core.short_ids import ShortIds
from discoclaw.core.text import utf16_length
from discoclaw.core.visible import VisibleItems, is_standing

FRAME = len("- []  (src: manual, updated 2026-01-01) [i1]") + 1
"""What a line has at least around its item's kind and text."""
MOST_STANDING = 200
"""Standing items that are looked at; far more than any prompt has room for."""
ALWAYS, EVERYTHING = "standing", "asked for everything"
"""Why an item is there that no word of the talk called for."""
STANDING_SHARE = 0.5
"""At most this share of the budget goes to standing items while others have evidence."""
SAID, NO_ROOM, UNRELATED = "said already", "no room", "not related"
"""Why an item is not there: another line says the same, the budget, or nothing that calls for it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One item that will be shown, and its line with its short id. `hit` is what found it.

    Without one, `always` says why it is there.
    """

    item: Item
    line: str
    hit: Hit | None
    always: str = ALWAYS

    @property
    def why(self) -> str:
        """Why it is there; worked out when it is asked for, which is after the answer."""
        return self.hit.why if self.hit is not None else self.always

    @property
    def called_for(self) -> bool:
        """Whether the talk called for just this item, by its own words or their meaning."""
        return self.hit is not None and not self.hit.why.startswith(LINKED_WITH)


@dataclass(frozen=True, slots=True)
class Selection:
    """The `chosen` items, best first, and what is needed to say why the other `items` are not among them."""

    chosen: tuple[Chosen, ...]
    items: Sequence[Item]
    recall: Recall
    query: Query
    max_chars: int
    now_ms: int
    signals: Signals = NO_SIGNALS

    def short_ids(self) -> ShortIds:
        """The ids by which a model reads the chosen items, to go on counting from."""
        return ShortIds("i", (one.item.id for one in self.chosen))

    @property
    def crowded(self) -> bool:
        """Whether some of the standing items would have to leave for what another query finds."""
        standing = [utf16_length(one.line) + 1 for one in self.chosen if is_standing(one.item)]
        return sum(standing) > int(self.max_chars * STANDING_SHARE)

    def left_out(self) -> dict[str, str]:
        """Why each of the other items was not chosen, by id: `SAID`, `NO_ROOM`, `UNRELATED` or `IDLE`.

        Worked out when it is asked for, from what the choice was made from.
        """
        ranked = self.recall.consider(self.query, self.items, now_ms=self.now_ms, signals=self.signals)
        found = {hit.item.id for hit in ranked if not hit.dropped}
        gists = {self.recall.line(one.item).gist for one in self.chosen}
        chosen = {one.item.id for one in self.chosen}

        def why(item: Item) -> str:
            if self.query.everything or is_standing(item) or item.id in found:
                return SAID if self.recall.line(item).gist in gists else NO_ROOM
            return IDLE if self.faded(item) else UNRELATED

        return {item.id: why(item) for item in self.items if item.id not in chosen}

    def faded(self, item: Item) -> bool:
        """Whether no message finds an item any more, because it was idle for too long."""
        return self.recall.faded(item, now_ms=self.now_ms, signals=self.signals)


def choose(
    recall: Recall,
    query: Query,
    items: Sequence[Item],
    *,
    max_chars: int,
    now_ms: int,
    signals: Signals = NO_SIGNALS,
) -> tuple[Chosen, ...]:
    """The items to show, best first; see `select`."""
    return select(recall, query, items, max_chars=max_chars, now_ms=now_ms, signals=signals).chosen


def select(
    recall: Recall,
    query: Query,
    items: Sequence[Item],
    *,
    max_chars: int,
    now_ms: int,
    signals: Signals = NO_SIGNALS,
) -> Selection:
    """The items to show, best first, as whole lines of together at most `max_chars` UTF-16 units.

    `items` are active and may be shown here. A line that does not fit is passed over, not cut.
    """
    known = VisibleItems.of(items)
    found: dict[str, Hit] = {}
    if query.everything:
        ranked = known.newest
    else:
        hits = recall.rank(query, known, now_ms=now_ms, signals=signals)
        found = {hit.item.id: hit for hit in hits}
        ranked = [hit.item for hit in hits]
    standing = [item for item in known.standing if item.id in found]
    standing += [item for item in known.standing if item.id not in found]
    always = {item.id for item in standing}
    relevant = [item for item in ranked if item.id not in always]
    page = _Page(recall, known, found, max_chars, EVERYTHING if query.everything else ALWAYS)
    page.fill(standing[:MOST_STANDING], int(max_chars * STANDING_SHARE) if relevant else max_chars)
    page.fill(relevant, page.room)
    page.fill(standing[:MOST_STANDING], page.room)
    return Selection(tuple(page.chosen), known, recall, query, max_chars, now_ms, signals)


class _Page:
    """The lines chosen so far. `found` maps ids to hits; `always` is why items without one are there."""

    def __init__(
        self, recall: Recall, known: VisibleItems, found: Mapping[str, Hit], room: int, always: str
    ) -> None:
        self.chosen: list[Chosen] = []
        self.room = room
        self._recall = recall
        self._shortest = known.shortest + FRAME
        self._found = found
        self._always = always
        self._said: set[object] = set()

    def fill(self, items: Sequence[Item], budget: int) -> None:
        """Add every item, in order, whose line fits into `budget` and says something not yet said."""
        for item in items:
            if self._shortest > budget:
                return
            if len(item.text) + len(item.kind) + FRAME > budget:
                continue  # before anything is built for it
            line = self._recall.line(item)
            named = f" [i{len(self.chosen) + 1}]"  # as `Selection.short_ids` counts them
            cost = line.cost + len(named)
            if cost > budget or line.gist in self._said:
                continue
            self._said.add(line.gist)
            budget -= cost
            self.room -= cost
            self.chosen.append(Chosen(item, line.text + named, self._found.get(item.id), self._always))

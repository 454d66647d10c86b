"""What time does to knowledge: how recency fades a score, and which items leave the memory.

Three categories: "core" is never touched, "knowledge" may fade when nobody asks for it, "conversation" is
what mattered for some days and leaves by its age alone. What a person stated, and how they want to be
answered (standing items), stays whatever its category. Whether knowledge leaves is a matter of chance, and
the chance is an argument: who rolls writes down what came of it, so that nobody rolls twice.
Pure; times are ms since 1970 unless a name says otherwise. Knows nothing about ledgers or settings.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.core.item import STANDING, Item

DAY_MS = 86_400_000
CORE, KNOWLEDGE, CONVERSATION = "core", "knowledge", "conversation"


@dataclass(frozen=True, slots=True)
class Decay:
    """By what rules items leave.

    `max_age_s`: things of the day leave when nothing was written of them for so long. `max_idle_days`:
    knowledge that nobody asked for that long leaves, but for the share `survival_chance` (0 to 1) of it. 0
    seconds or days: never.
    """

    max_age_s: int = 604_800
    max_idle_days: float = 0
    survival_chance: float = 0.05


def recency(age_s: float, half_life_s: float) -> float:
    """The factor of a score by age: exp(-ln 2 * age / half-life); 1.0 with a half-life of 0."""
    if half_life_s <= 0:
        return 1.0
    return math.exp(-math.log(2) * max(age_s, 0.0) / half_life_s)


def idle_fade(idle_days: float, window_days: float) -> float:
    """The factor of a score by idleness: 1.0 until half the window, then in a straight line to 0.0 at its
    end; 1.0 with a window of 0."""
    if window_days <= 0:
        return 1.0
    return min(max(2 * (1 - idle_days / window_days), 0.0), 1.0)


def last_use(item: Item, accessed: Mapping[str, int]) -> int:
    """When (ms) an item was last stored or found; an access that is 0 or missing is that of the writing."""
    return max(accessed.get(item.id, 0), item.updated_at)


def idle_days(item: Item, accessed: Mapping[str, int], now_ms: int) -> float:
    """For how many days nobody has stored or found an item; never below 0."""
    return max(0.0, (now_ms - last_use(item, accessed)) / DAY_MS)


def may_fade(item: Item) -> bool:
    """Whether an item is of those that leave when nobody asks for them."""
    facets = item.facets
    inferred = facets.author == "inferred"
    return item.active and inferred and facets.category == KNOWLEDGE and item.kind not in STANDING


def is_short_lived(item: Item) -> bool:
    """Whether an item is of those that leave by their age."""
    return item.facets.category == CONVERSATION and item.facets.author == "inferred"


def roll_survival(
    items: Collection[Item],
    accessed: Mapping[str, int],
    now_ms: int,
    *,
    max_idle_days: float,
    survival_chance: float,
    roll: Callable[[], float],
) -> tuple[list[Item], list[Item]]:
    """Which idle items are lost, and which survive; all others are in neither list.

    Eligible is knowledge that is idle for longer than `max_idle_days` (0: nothing is). Each of them has one
    roll, in the order of their ids: below `survival_chance` it survives. `roll` gives numbers from 0.0 to
    below 1.0, so a chance of 0 loses all and one of 1 none.
    """
    lost: list[Item] = []
    survivors: list[Item] = []
    for item in _idle(items, accessed, now_ms, max_idle_days):
        (survivors if roll() < survival_chance else lost).append(item)
    return lost, survivors


def expired(items: Collection[Item], written: Mapping[str, int], now_ms: int, max_age_s: int) -> list[Item]:
    """The things of the day of which nothing was written for longer than `max_age_s` (0: ever), by their ids.

    `written` says when (ms) something was last written of an item, where that is later than its own time.
    """
    return sorted(
        (
            item
            for item in items
            if is_short_lived(item) and 0 < max_age_s * 1000 < now_ms - last_use(item, written)
        ),
        key=lambda item: item.id,
    )


def due(
    items: Collection[Item], accessed: Mapping[str, int], written: Mapping[str, int], rules: Decay
) -> int | None:
    """When (ms) the next of these items may have to leave; None when none of them ever will."""
    passing = [item for item in items if is_short_lived(item)] if rules.max_age_s > 0 else []
    times = [last_use(item, written) + rules.max_age_s * 1000 for item in passing]
    if rules.max_idle_days > 0:
        window = int(rules.max_idle_days * DAY_MS)
        times += [last_use(item, accessed) + window for item in items if may_fade(item)]
    return min(times, default=None)


def _idle(
    items: Collection[Item], accessed: Mapping[str, int], now_ms: int, max_idle_days: float
) -> Sequence[Item]:
    if max_idle_days <= 0:
        return ()
    return sorted(
        (item for item in items if may_fade(item) and idle_days(item, accessed, now_ms) > max_idle_days),
        key=lambda item: item.id,
    )

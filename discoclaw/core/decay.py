"""Decay: how age lowers an item's score, and which items are removed from memory.

There are three categories. "core" items never decay. "knowledge" may be removed when nobody has used it for
long. "conversation" items are short-lived and expire by age. Items that a person stated, and standing items
(preferences, constraints), stay whatever their category.
Whether idle knowledge is removed is decided by chance. The random source is an argument, and the caller
records the outcome as an event, so that a replay of the ledger never rolls again.
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
    """When items are removed. 0 seconds or days switches a rule off.

    `max_age_s`: short-lived items expire this long after they were last written. `max_idle_days`: knowledge
    that was neither stored nor found for longer is removed, except for a random share `survival_chance`
    (0 to 1) of it. `pending_days`: what waits for the person's yes lapses after so long.
    """

    max_age_s: int = 604_800
    max_idle_days: float = 0
    survival_chance: float = 0.05
    pending_days: float = 0


def recency(age_s: float, half_life_s: float) -> float:
    """The factor for a score by age: exp(-ln 2 * age / half-life), so 0.5 after one half-life.

    1.0 if the half-life is 0, which switches recency off.
    """
    if half_life_s <= 0:
        return 1.0
    return math.exp(-math.log(2) * max(age_s, 0.0) / half_life_s)  # a clock set back must not raise a score


def idle_fade(idle_days: float, window_days: float) -> float:
    """The factor for a score by idleness: 1.0 for half the window, then falling linearly to 0.0 at its end.

    1.0 if the window is 0. An item thus fades from results before decay may remove it.
    """
    if window_days <= 0:
        return 1.0
    return min(max(2 * (1 - idle_days / window_days), 0.0), 1.0)


def last_use(item: Item, accessed: Mapping[str, int]) -> int:
    """When (ms) an item was last stored or found.

    `accessed` has when items were last found, by id. It is a statistic that may be lost, so 0 or a missing
    entry falls back to when the item was written.
    """
    return max(accessed.get(item.id, 0), item.updated_at)


def idle_days(item: Item, accessed: Mapping[str, int], now_ms: int) -> float:
    """Days since an item was last stored or found, never below 0."""
    return max(0.0, (now_ms - last_use(item, accessed)) / DAY_MS)


def may_fade(item: Item) -> bool:
    """Whether an item may be removed for being idle: active, inferred, category knowledge, not standing."""
    facets = item.facets
    inferred = facets.author == "inferred"
    return item.active and inferred and facets.category == KNOWLEDGE and item.kind not in STANDING


def is_short_lived(item: Item) -> bool:
    """Whether an item expires by age. One that a person stated does not."""
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
    """The idle items that are lost and those that survive, by one roll each. Other items are in neither list.

    An item is idle after more than `max_idle_days` (0: never). It survives if `roll`, which returns numbers
    from 0.0 to below 1.0, is below `survival_chance`; so a chance of 0 loses all of them and 1 loses none.
    Items are rolled in the order of their ids, so that one seed gives one outcome.
    """
    lost: list[Item] = []
    survivors: list[Item] = []
    for item in _idle(items, accessed, now_ms, max_idle_days):
        (survivors if roll() < survival_chance else lost).append(item)
    return lost, survivors


def expired(items: Collection[Item], written: Mapping[str, int], now_ms: int, max_age_s: int) -> list[Item]:
    """The short-lived items that were last written more than `max_age_s` ago, sorted by id; none if it is 0.

    `written` has when (ms) an item was last written, by id, where that is later than its `updated_at`.
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
    """When (ms) the next of these items may have to be removed; None if none of them ever will.

    Callers sleep until then instead of looking at every item on every tick.
    """
    expiring = [item for item in items if is_short_lived(item)] if rules.max_age_s > 0 else []
    times = [last_use(item, written) + rules.max_age_s * 1000 for item in expiring]
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

"""What time does to knowledge: two factors of a score, and who leaves."""

import json
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.decay import Decay, due, expired, idle_days, idle_fade, recency, roll_survival
from discoclaw.core.item import KINDS, STANDING, Item
from tests.core.builders import DAY, NOW, item
from tests.tables import each_row

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "knowledge.json").read_text("utf-8"))
WINDOW = 30
DICE = random.Random(7).random


def old(text: str, days: float = WINDOW + 1, **given: Any) -> Item:
    """An inferred piece of knowledge that was written so long ago."""
    return item(text, updated_at=NOW - int(days * DAY), **{"author": "inferred", **given})


def always(number: float) -> Callable[[], float]:
    return lambda: number


def never() -> float:
    raise AssertionError("nobody had to roll")


def lost(
    items: Collection[Item],
    chance: float = 0.0,
    roll: Callable[[], float] = DICE,
    *,
    accessed: dict[str, int] | None = None,
    days: float = WINDOW,
) -> tuple[list[str], list[str]]:
    """The texts of what is lost, and of what survives."""
    gone, kept = roll_survival(
        items, accessed or {}, NOW, max_idle_days=days, survival_chance=chance, roll=roll
    )
    return [one.text for one in gone], [one.text for one in kept]


ITEMS = st.lists(
    st.builds(
        lambda number, days, author, category, kind, active: replace(
            old(f"memory {number}", days, author=author, category=category, kind=kind),
            status="active" if active else "deprecated",
        ),
        st.integers(0, 10_000),
        st.floats(0, 400),
        st.sampled_from(["stated", "inferred"]),
        st.sampled_from(["core", "knowledge", "conversation", "of my own"]),
        st.sampled_from(KINDS),
        st.booleans(),
    ),
    max_size=20,
    unique_by=lambda one: one.id,
)


class TestRecency:
    @pytest.mark.design(175)
    @each_row("case", VECTORS["recency_decay"])
    def test_it_halves_with_every_half_life(self, case: dict[str, float]) -> None:
        assert recency(case["age_s"], case["half_life_s"]) == pytest.approx(case["factor"], abs=1e-9)

    @each_row("age", [0, -5, -1e12])
    def test_what_is_dated_ahead_is_as_fresh_as_can_be(self, age: float) -> None:
        assert recency(age, 3600) == 1.0

    @given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(1, 1e9))
    def test_older_never_counts_more(self, one: float, other: float, half_life: float) -> None:
        young, aged = sorted((one, other))
        assert 0 <= recency(aged, half_life) <= recency(young, half_life) <= 1


class TestIdleFade:
    @pytest.mark.design(182)
    @each_row("case", VECTORS["idle_fade"]["cases"])
    def test_whole_for_half_the_window_then_in_a_line_to_nothing(self, case: dict[str, float]) -> None:
        factor = idle_fade(case["idle_days"], VECTORS["idle_fade"]["window_days"])
        assert factor == pytest.approx(case["factor"], abs=1e-6)

    @each_row("idle", [0, 29, 1e9])
    def test_a_window_of_nothing_fades_nothing(self, idle: float) -> None:
        assert idle_fade(idle, 0) == 1.0

    @given(st.floats(-10, 1e6), st.floats(0.1, 1e4))
    def test_it_stays_between_nothing_and_whole(self, idle: float, window: float) -> None:
        assert 0.0 <= idle_fade(idle, window) <= 1.0


class TestIdleness:
    @each_row(
        ("written", "found", "idle"),
        [(10, None, 10), (10, NOW, 10), (10, 2, 2), (10, 20, 10), (-5, None, 0)],
    )
    def test_the_later_of_writing_and_finding_counts_and_nothing_ahead(
        self, written: int, found: int | None, idle: int
    ) -> None:
        one = old("x", written)
        accessed = {} if found is None else {one.id: 0 if found == NOW else NOW - found * DAY}
        assert idle_days(one, accessed, NOW) == idle


class TestFate:
    @each_row(("rolled", "expected"), [(0.049, ([], ["a"])), (0.05, (["a"], []))])
    def test_below_the_chance_it_survives(self, rolled: float, expected: tuple[list[str], list[str]]) -> None:
        assert lost([old("a")], 0.05, always(rolled)) == expected

    @each_row("days", [WINDOW, WINDOW - 0.001, 0])
    def test_within_the_window_nobody_rolls(self, days: float) -> None:
        assert lost([old("a", days)], 0.0, never) == ([], [])

    def test_zero_days_switch_it_off_and_what_was_found_lately_is_not_idle(self) -> None:
        one = old("a", 4000)
        assert lost([one], 0.0, never, days=0) == ([], [])
        assert lost([one], 0.0, never, accessed={one.id: NOW - DAY}) == ([], [])

    @each_row(
        "given",
        [
            {"category": "core"},
            {"category": "conversation"},
            {"category": "a label of their own"},
            {"author": "stated"},
            *({"kind": kind} for kind in sorted(STANDING)),
        ],
    )
    def test_these_are_never_eligible(self, given: dict[str, Any]) -> None:
        assert lost([old("a", 4000, **given)], 0.0, never) == ([], [])

    @given(ITEMS, st.floats(0, 1), st.floats(0.5, 300), st.integers(0, 2**32))
    def test_each_rolls_once_and_the_rest_is_left_alone(
        self, items: list[Item], chance: float, days: float, seed: int
    ) -> None:
        dice, rolls = random.Random(seed), []

        def roll() -> float:
            rolls.append(dice.random())
            return rolls[-1]

        gone, kept = roll_survival(items, {}, NOW, max_idle_days=days, survival_chance=chance, roll=roll)
        eligible = [
            one
            for one in items
            if (one.active, one.facets.category, one.facets.author) == (True, "knowledge", "inferred")
            and one.kind not in ("preference", "constraint")
            and NOW - one.updated_at > days * DAY
        ]
        assert sorted(map(_id, [*gone, *kept])) == sorted(map(_id, eligible))
        assert len(rolls) == len(eligible)
        assert len(kept) == sum(one < chance for one in rolls)

    @given(ITEMS, st.randoms(use_true_random=False))
    def test_the_same_numbers_give_the_same_fate_in_whatever_order(
        self, items: list[Item], shuffled: random.Random
    ) -> None:
        other = items[:]
        shuffled.shuffle(other)

        def both(these: Sequence[Item]) -> Any:
            roll = random.Random(3).random
            return roll_survival(these, {}, NOW, max_idle_days=30, survival_chance=0.5, roll=roll)

        assert both(items) == both(other)

    @given(ITEMS)
    def test_the_two_ends_of_chance(self, items: list[Item]) -> None:
        roll = random.Random(5).random
        assert lost(items, 0.0, roll)[1] == []
        assert lost(items, 1.0, roll)[0] == []


class TestThingsOfTheDay:
    WEEK = 7 * 86_400

    def test_they_leave_by_their_age(self) -> None:
        items = [old("flies on Friday", 8, category="conversation"), old("eats", 6, category="conversation")]
        assert [one.text for one in expired(items, {}, NOW, self.WEEK)] == ["flies on Friday"]

    @each_row("given", [{"category": "knowledge"}, {"category": "core"}, {"author": "stated"}])
    def test_nothing_else_does(self, given: dict[str, Any]) -> None:
        one = old("x", 4000, **{"category": "conversation", **given})
        assert expired([one], {}, NOW, self.WEEK) == []

    def test_what_was_brought_back_has_its_whole_time_again(self) -> None:
        one = old("x", 8, category="conversation")
        assert expired([one], {one.id: NOW - DAY}, NOW, self.WEEK) == []


class TestWhenSomethingIsDue:
    RULES = Decay(max_age_s=7 * 86_400, max_idle_days=WINDOW)

    @given(ITEMS)
    def test_nothing_leaves_before_and_something_may_right_after(self, items: list[Item]) -> None:
        when = due(items, {}, {}, self.RULES)

        def leaving(now: int) -> int:
            gone, kept = roll_survival(
                items, {}, now, max_idle_days=WINDOW, survival_chance=0.5, roll=random.Random(1).random
            )
            return len(gone) + len(kept) + len(expired(items, {}, now, self.RULES.max_age_s))

        if when is None:
            assert leaving(NOW + 100_000 * DAY) == 0
        else:
            assert leaving(when) == 0
            assert leaving(when + 1) > 0

    def test_knowledge_is_never_due_without_decay(self) -> None:
        assert due([old("a", 4000)], {}, {}, Decay()) is None


def _id(one: Item) -> str:
    return one.id

"""The floor of a model: between the cosines of what has nothing in common and of what belongs together."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.recall.floor import NEVER, PAIRS, PROBE, floor_of, texts
from tests.tables import each_row

COUNT = len(PAIRS)
Table = list[list[float]]


def table(far: float, near: float, *, spread: float = 0.0, seed: int = 1) -> Table:
    """Cosines around `near` for what belongs together, around `far` for everything else."""
    rng = random.Random(seed)
    return [
        [(near if row == column else far) + rng.gauss(0, spread) for column in range(COUNT)]
        for row in range(COUNT)
    ]


MODELS = {
    "like MiniLM": table(0.05, 0.45, spread=0.08),
    "like e5": table(0.77, 0.85, spread=0.02),
    "with negative cosines": table(-0.3, 0.3, spread=0.1),
}


class TestTheFloor:
    @each_row("cosines", MODELS.values())
    def test_is_above_what_has_nothing_in_common_and_below_what_belongs_together(
        self, cosines: Table
    ) -> None:
        floor = floor_of(cosines)
        related = [row[place] for place, row in enumerate(cosines)]
        others = [
            cos for place, row in enumerate(cosines) for column, cos in enumerate(row) if column != place
        ]
        assert sum(cos >= floor for cos in others) <= 0.005 * len(others)
        assert sum(cos >= floor for cos in related) >= 0.5 * COUNT

    @pytest.mark.parametrize("cosines", MODELS.values(), ids=MODELS)
    @given(st.floats(0.05, 1), st.floats(-1, 1))
    def test_moves_along_with_cosines_that_are_squeezed_or_shifted(
        self, cosines: Table, factor: float, shift: float
    ) -> None:
        moved = [[factor * cos + shift for cos in row] for row in cosines]
        assert floor_of(moved) == pytest.approx(factor * floor_of(cosines) + shift, abs=1e-9)

    @each_row("seed", range(20))
    def test_is_out_of_reach_for_a_model_that_gives_noise(self, seed: int) -> None:
        assert floor_of(table(0.0, 0.0, spread=0.1, seed=seed)) == NEVER

    @each_row("cosine", [-1.0, 0.0, 0.8, 1.0])
    def test_is_out_of_reach_for_a_model_that_finds_all_alike(self, cosine: float) -> None:
        assert floor_of(table(cosine, cosine)) == NEVER
        assert floor_of(table(cosine, cosine, spread=1e-7)) == NEVER

    def test_is_out_of_reach_for_a_model_that_finds_the_wrong_ones(self) -> None:
        assert floor_of(table(0.6, 0.2, spread=0.05)) == NEVER

    def test_hardly_depends_on_one_odd_pair(self) -> None:
        cosines = table(0.05, 0.45, spread=0.08)
        before = floor_of(cosines)
        cosines[3][3], cosines[5][6] = -1.0, 1.0
        assert floor_of(cosines) == pytest.approx(before, abs=0.03)


class TestTheTexts:
    def test_are_questions_and_memories_no_two_the_same(self) -> None:
        assert len(texts()) == 2 * COUNT
        assert max(Counter(texts()).values()) == 1
        assert texts()[0] == PROBE

    def test_are_few_and_short_enough_for_one_request(self) -> None:
        assert len(texts()) <= 64
        assert max(map(len, texts())) < 100

"""What prompts hold, in figures."""

import pytest

from bench.recall.cases_run import Asked
from bench.recall.data_asked import people
from bench.recall.prompts import (
    ASKED,
    STEP,
    VAIN,
    Line,
    Message,
    contents,
    figures,
    of_cases,
    of_people,
)
from bench.recall.score import MAX_CHARS
from bench.recall.systems import Ours, ours_for_items
from discoclaw.core.item import STANDING, Item

FEW = Asked(step=60)
SEED = 7


def message(must: str, count: int = 10) -> Message:
    return Message("?", (None,) * count, frozenset(must))


def test_figures_are_as_by_hand():
    prompts = [
        [Line(100, True, standing=False), Line(60, False, standing=True), Line(40, None, standing=False)],
        [],
    ]
    found = figures("kind", "ours", [message("ab"), message("c", 20)], prompts)
    assert (found.count, found.memory) == (2, 15)
    assert found.found == pytest.approx(1 / 3)
    assert found.of_lines == pytest.approx(1 / 2)
    assert found.of_characters == pytest.approx(100 / 160)
    assert found.standing == pytest.approx(60 / 200)
    assert found.tokens_in_vain == pytest.approx(60 / 4 / 2)
    assert (found.empty, found.lines, found.characters) == (0.5, 1.5, 100)


def test_a_small_memory_has_the_answer_and_a_full_one_has_tens_of_preferences_too():
    made = {**of_people(people(SEED)[:1]), **of_cases(FEW, SEED)}
    assert {ASKED, VAIN} < set(made)
    for kind, (small, full) in made.items():
        assert len(small) == len(full) > 0
        for few, many in zip(small, full, strict=True):
            assert few.must == many.must
            assert few.must <= ids(few.items) <= ids(many.items), kind
            assert len(few.items) <= 61
            assert 200 <= len(many.items) <= 500
            assert sum(item.kind in STANDING for item in many.items) >= 15


def test_a_prompt_is_what_a_turn_would_choose():
    found = contents(ours_for_items(), people(SEED)[:1], FEW, SEED, say=lambda line: None)
    assert {one.system for one in found} == set(ours_for_items())
    assert all(one.characters <= MAX_CHARS for one in found)
    small, _ = of_cases(Asked(step=FEW.step * STEP), SEED)["preferences"]
    right = wrong = 0
    for one in small:
        system = Ours()
        system.load(one.items)
        chosen = {line.item.id for line in system.chosen(one.text, MAX_CHARS)}
        assert one.tolerated
        right += len(chosen & one.must)
        wrong += len(chosen - one.must - one.tolerated)
    row = next(one for one in found if one.asked == "preferences")
    assert row.of_lines == pytest.approx(right / (right + wrong))
    assert row.found == pytest.approx(right / sum(len(one.must) for one in small))


def ids(items: tuple[Item, ...]) -> set[str]:
    return {item.id for item in items}

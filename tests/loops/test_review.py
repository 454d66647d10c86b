"""Which memories a consolidation shows together: each pair that is near, once, and nothing twice."""

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import Item
from discoclaw.core.view import View
from discoclaw.loops.nearest import (
    BATCH_CHARS,
    BATCH_ITEMS,
    FEWEST,
    MOST_BATCHES,
    Meanings,
    Neighbours,
    over_since,
    planned,
    prompt,
)
from discoclaw.search.matrix import Matrix, packed
from discoclaw.search.vectors import hash_of
from tests.core.builders import NOW, item

DAY = 86_400_000
WORDS = [f"{one}{two}{three}" for one in "bdfgklmnprst" for two in "aeiou" for three in ("lo", "ra", "ti")]


def texts(count: int, seed: int = 1) -> list[str]:
    """Sentences that have next to nothing in common."""
    dice = random.Random(seed)
    return [
        f"User keeps {' '.join(dice.choice(WORDS) + str(dice.randrange(10_000)) for _ in range(9))}."
        for _ in range(count)
    ]


def many(sentences: Iterable[str], **given: Any) -> list[Item]:
    """An item for each sentence, each a day younger than the one before it."""
    return [
        item(text, updated_at=NOW + number * DAY, **{"author": "inferred", **given})
        for number, text in enumerate(sentences)
    ]


def view(items: Sequence[Item]) -> View:
    return View(items={one.id: one for one in items})


def together(batches: Iterable[Sequence[Item]], *wanted: Item) -> bool:
    return any(set(wanted) <= set(batch) for batch in batches)


class TestNeighbours:
    def test_are_those_that_share_what_few_have(self) -> None:
        others = many(texts(500))
        linz, graz = item("User lives in Linz."), item("User lives in Graz.")
        cat = item("User's cat Miso is ill.")
        near = Neighbours([*others, linz, graz, cat])
        assert near.of(linz.id) == [graz.id] and near.of(graz.id) == [linz.id]
        assert near.of(cat.id) == []

    def test_are_the_newest_of_many_that_are_as_near(self) -> None:
        same_words = [item(f"Miso eats {n}.", updated_at=NOW + n) for n in range(10, 19)]
        near = Neighbours([*many(texts(400)), *same_words])
        found = near.of(same_words[0].id)
        assert found == [one.id for one in same_words[:-6:-1]]

    @given(st.permutations(range(60)))
    def test_do_not_depend_on_the_order_of_storing(self, order: list[int]) -> None:
        dice = random.Random(3)
        known = [
            item(f"{number} {' '.join(dice.sample(WORDS[:25], 3))}", updated_at=NOW + number // 5)
            for number in range(60)
        ]
        near, again = Neighbours(known), Neighbours([known[number] for number in order])
        assert all(near.of(one.id) == again.of(one.id) for one in known)


class TestAPlan:
    def test_of_a_small_memory_is_one_prompt_with_all_of_it(self) -> None:
        known = many(texts(50))
        plan = planned(view(known), {known[3].id})
        assert plan.batches == (tuple(reversed(known)),) and not plan.left

    def test_has_no_prompt_where_nothing_is_new(self) -> None:
        known = many(texts(50))
        secret = many(texts(50, seed=2), sensitivity="private")
        assert planned(view(known), set()).batches == ()
        (batch,) = planned(view([*known, *secret]), {secret[0].id}).batches
        assert {one.facets.sensitivity for one in batch} == {"private"}

    def test_shows_two_that_say_the_same_together_however_far_apart_they_were_said(self) -> None:
        known = many(
            ["User lives in Linz.", "User's cat is called Miso.", *texts(600), "User lives in Graz."]
        )
        plan = planned(view(known), {known[-1].id})
        assert together(plan.batches, known[0], known[-1])
        assert len(plan.batches) == 1 and len(plan.batches[0]) == FEWEST

    def test_looks_at_every_near_pair_once_all_are_reviewed(self) -> None:
        dice = random.Random(4)
        pairs = [(f"User met {name} in town.", f"{name} is a friend of User.") for name in WORDS[:60]]
        known = many(dice.sample([*itertools.chain(*pairs), *texts(500)], 620))
        by_text = {one.text: one for one in known}
        waiting, batches = {one.id for one in known}, list[Sequence[Item]]()
        for _ in range(20):
            plan = planned(view(known), waiting)
            assert len(plan.batches) <= MOST_BATCHES and plan.left < waiting
            batches += plan.batches
            waiting = set(plan.left)
            if not waiting:
                break
        assert not waiting
        assert all(together(batches, by_text[one], by_text[other]) for one, other in pairs)
        assert {one.id for batch in batches for one in batch} == {one.id for one in known}

    def test_shows_what_means_the_same_together(self) -> None:
        known = many(["User lives in Linz.", *texts(300), "Die Wohnung ist in Graz."])
        vectors = {
            hash_of(one.text): packed([1.0 if place == number else 0.01 for place in range(303)])
            for number, one in enumerate(known)
        }
        vectors[hash_of(known[-1].text)] = packed([1.0, *[0.01] * 302])
        meanings = Meanings(Matrix(vectors), 0.5)
        assert not together(planned(view(known), {known[-1].id}).batches, known[0], known[-1])
        assert together(planned(view(known), {known[-1].id}, meanings).batches, known[0], known[-1])

    def test_shows_nothing_more_for_vectors_at_the_floor(self) -> None:
        known = many(texts(300))
        vectors = {hash_of(one.text): packed([1.0, number / 1e6]) for number, one in enumerate(known)}
        plan = planned(view(known), {known[0].id}, Meanings(Matrix(vectors), 1.0))
        assert plan.batches == planned(view(known), {known[0].id}).batches

    @given(
        st.lists(st.sampled_from([40, 200, 900]), min_size=2, max_size=120),
        st.lists(st.sampled_from(["normal", "private", "confidential"]), min_size=120, max_size=120),
        st.randoms(use_true_random=False),
    )
    def test_keeps_to_its_bounds_and_apart_what_is_apart(
        self, lengths: list[int], levels: list[str], dice: random.Random
    ) -> None:
        known = [
            item(
                f"{number} {' '.join(dice.choices(WORDS[:30], k=length // 5))}",
                updated_at=NOW + number,
                sensitivity=level,
            )
            for number, (length, level) in enumerate(zip(lengths, levels, strict=False))
        ]
        waiting = {one.id for one in known if dice.random() < 0.5}
        plan = planned(view(known), waiting)
        for batch in plan.batches:
            assert len({one.facets.sensitivity for one in batch}) == 1
            assert "confidential" not in {one.facets.sensitivity for one in batch}
            assert 1 < len(batch) <= BATCH_ITEMS
            assert len(prompt(batch, NOW)) <= BATCH_CHARS
            assert len({one.id for one in batch}) == len(batch)
        assert plan.left <= waiting


class TestWhatIsOver:
    @pytest.mark.parametrize(
        ("text", "over"),
        [
            ("User flies to Rome on 2026-02-04.", True),
            ("User flies to Rome on 5 February 2026.", True),
            ("User flies to Rome on 2026-02-06.", False),
            ("User flew to Rome on 2026-01-04.", False),
            ("User is away until January 2026.", True),
            ("User lives in Linz.", False),
        ],
    )
    def test_is_what_names_a_day_or_month_that_passed_since(self, text: str, over: bool) -> None:
        before = 1_769_817_600_000  # 2026-01-31
        one = item(text)
        assert over_since([one], before, before + 6 * DAY) == ({one.id} if over else set())

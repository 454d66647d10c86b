"""Which memories a consolidation shows together: each pair that is near, once, and nothing twice."""

import asyncio
import itertools
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, ModelTimeout
from discoclaw.core.item import Item
from discoclaw.core.patch import Consolidation, Contradiction
from discoclaw.core.view import View
from discoclaw.loops.nearest import Nearest
from discoclaw.loops.review import (
    BATCH_CHARS,
    BATCH_ITEMS,
    FEWEST,
    MOST_BATCHES,
    Meanings,
    over_since,
    planned,
    prompt,
)
from discoclaw.memory.subjects import verbs
from discoclaw.recall.neighbours import Neighbours
from discoclaw.search.matrix import Matrix, packed
from discoclaw.search.vectors import hash_of
from tests.core.builders import NOW, item
from tests.loops.tidying import ANN, Home, Tidier, same
from tests.session.scene import until

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


async def keep(home: Home, items: Sequence[Item]) -> None:
    def wish(draft: Draft) -> None:
        for one in items:
            draft.emit("add", one, one.to_json(), Origin("inferred"))  # an upsert would compare all

    await home.memory.change(ANN, "a test", wish)


def shown(prompts: Iterable[str]) -> list[set[str]]:
    """The texts in each prompt."""
    return [
        {line.partition(") ")[2] for line in one.splitlines() if line.startswith("- ")} for one in prompts
    ]


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

    @settings(max_examples=20, deadline=None)
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
            ["User lives in Linz.", "User's cat is called Miso.", *texts(3_000), "User lives in Graz."]
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

    @settings(max_examples=25, deadline=None)
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


class TestRounds:
    async def test_finish_what_one_has_no_room_for_and_pay_for_nothing_twice(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000)
        known = many(["User lives in Linz.", *texts(2_000), "User lives in Graz."])
        await keep(home, known)
        await home.heartbeat.beat()
        assert len(home.model.prompts) == MOST_BATCHES
        again = home.restarted()
        for _ in range(8):
            await again.heartbeat.beat()
        prompts = shown(again.model.prompts)
        assert set().union(*prompts) == {one.text for one in known}
        assert any({known[0].text, known[-1].text} <= one for one in prompts)
        count = len(prompts)
        await again.heartbeat.beat()
        assert len(again.model.prompts) == count
        await again.remember("User moved to Linz.")
        await again.heartbeat.beat()
        (last,) = shown(again.model.prompts[count:])
        assert {"User moved to Linz.", "User lives in Linz."} <= last and len(last) <= FEWEST

    async def test_one_that_is_killed_is_done_again(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000)
        known = many(["User lives in Linz.", *texts(300), "User lives in Graz."])
        await keep(home, known)
        home.model.gate = asyncio.Event()
        beat = asyncio.create_task(home.heartbeat.beat())
        await until(lambda: bool(home.model.prompts))
        beat.cancel()
        await asyncio.wait([beat])
        again = Home(tmp_path, max_items=10_000)
        await again.heartbeat.beat()
        assert set().union(*shown(again.model.prompts)) == {one.text for one in known}

    async def test_show_to_no_model_what_is_taken_back_meanwhile(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000)
        known = many(texts(400))
        await keep(home, known)
        home.model.gate = asyncio.Event()
        beat = asyncio.create_task(home.heartbeat.beat())
        await until(lambda: bool(home.model.prompts))
        secret = next(one for one in known if one.text not in home.model.prompts[0])
        await home.memory.change(ANN, "a test", lambda draft: draft.deprecate(secret, Origin("stated")))
        home.model.gate.set()
        await beat
        assert len(home.model.prompts) > 1 and secret.text not in "".join(home.model.prompts)

    async def test_take_what_slipped_through_into_one(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000)
        await keep(home, many(["User has a cat called Miso.", *texts(300)]))
        await home.heartbeat.beat()
        new = await home.remember("Miso is the cat of User.", kind="fact")
        old = next(one for one in (await home.view()).active() if one.text.startswith("User has a cat"))
        home.model.answers = [same(new, old, text="User has a cat called Miso.")]
        await home.heartbeat.beat()
        found = [text for text in await home.texts() if "Miso" in text]
        assert found == ["User has a cat called Miso."]

    async def test_ask_about_what_was_stated(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000)
        await keep(home, many(texts(300)))
        linz = await home.remember("User lives in Linz.", by="stated", kind="fact")
        await home.heartbeat.beat()
        graz = await home.remember("User lives in Graz.", kind="fact")
        entry = Contradiction(older=linz.id, newer=graz.id, reason="one home")
        home.model.answers = [Consolidation(contradictions=[entry])]
        await home.heartbeat.beat()
        assert [one.item_id for one in (await home.view()).conflicts] == [linz.id]
        assert {"User lives in Linz.", "User lives in Graz."} <= set(await home.texts())

    async def test_look_again_at_what_a_date_has_put_in_the_past(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000)
        await keep(home, many(texts(300)))
        flight = "User wants nothing but tea until 2026-02-05."
        await home.remember(flight)
        await home.heartbeat.beat()
        count = len(home.model.prompts)
        home.clock.forward(5 * DAY)
        await home.remember("User has a sofa.")
        await home.heartbeat.beat()
        assert any(flight in one for one in shown(home.model.prompts[count:]))

    async def test_review_of_a_new_persona_only_what_it_says_itself(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000)
        await keep(home, many(texts(300)))
        await home.heartbeat.beat()
        count = len(home.model.prompts)
        await verbs.create_branch(home.memory, ANN, "coding")
        await home.remember("User codes in Rust.", branch="coding")
        await home.heartbeat.beat()
        (last,) = shown(home.model.prompts[count:])
        assert "User codes in Rust." in last and len(last) <= FEWEST

    async def test_go_by_words_where_the_vectors_cannot_be_read(self, tmp_path: Path) -> None:
        home = Home(tmp_path, Tidier(), max_items=10_000, nearest=Nearest(_Broken()))  # type: ignore[arg-type]
        await keep(home, many(["User lives in Linz.", *texts(300)]))
        await home.heartbeat.beat()
        await home.remember("User lives in Graz.")
        await home.heartbeat.beat()
        assert {"User lives in Linz.", "User lives in Graz."} <= shown(home.model.prompts)[-1]


class _Broken:
    """Vectors on a disk that fails."""

    async def matrix(self, subject: str) -> Matrix:
        raise MemoryFault("the disk fails")

    async def test_a_model_that_fails_late_loses_nothing_that_it_answered(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000)
        known = many(["User lives in Linz.", *texts(300), "User's home is in Linz."])
        await keep(home, known)
        home.model.answers = [same(known[-1], known[0]), Consolidation(), ModelTimeout("it is down")]
        await home.heartbeat.beat()
        assert len(home.model.prompts) == 3
        assert len(await home.texts()) == len(known) - 1
        again = home.restarted()
        await again.heartbeat.beat()
        seen, later = shown(home.model.prompts[:2]), shown(again.model.prompts[3:])
        assert set().union(*seen, *later) >= {one.text for one in known[1:]}
        assert not any(known[-1].text in one for one in later), "it was paid for"
        count = len(again.model.prompts)
        await again.heartbeat.beat()
        assert len(again.model.prompts) == count

    async def test_one_ends_with_the_prompt_in_which_its_person_opts_out(self, tmp_path: Path) -> None:
        home = Home(tmp_path, max_items=10_000, skip=lambda user_id: len(home.model.prompts) > 1)
        await keep(home, many(texts(300)))
        home.model.always = Consolidation()
        await home.heartbeat.beat()
        assert len(home.model.prompts) == 2

"""The index of what is ranked: one made from the index before is as good as one made anew."""

import gc
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.item import Item
from discoclaw.core.purge import Purge
from discoclaw.core.visible import VisibleItems
from discoclaw.recall.document import Document, Documents, of_item, parse
from discoclaw.recall.index import MOST_VERSIONS, Index, Indices
from discoclaw.recall.rank import Ranker
from tests.core.builders import NOW, item
from tests.examples import FEW
from tests.purging import from_ram

WORDS = ["apple", "pear", "plum", "fig", "kiwi", "Ωμέγα", "東京", "k8s", "in May 2023", "teacher", "teaching"]
QUERIES = [
    "apple",
    "plum fig kiwi",
    "what of 東京 in May?",
    "teachings",
    "build a pear tree",
    "appel",
    "plums",
]


def many(count: int, dice: random.Random) -> list[Item]:
    return [
        item(f"{dice.choice(WORDS)} {dice.choice(WORDS)} number{number}", updated_at=NOW + number)
        for number in range(count)
    ]


def changed(items: list[Item], number: int, dice: random.Random) -> list[Item]:
    """The items after something was learned, forgotten, said anew, or brought back in its old place."""
    place = dice.randrange(len(items))
    new = item(f"{dice.choice(WORDS)} news{number}", updated_at=NOW + 1000 + number)
    match dice.randrange(5):
        case 0:
            return [*items, new]
        case 1:
            return items[:place] + items[place + 1 :]
        case 2:
            anew = replace(items[place], text=f"{dice.choice(WORDS)} again{number}", updated_at=NOW + number)
            return [*items[:place], anew, *items[place + 1 :]]
        case 3:
            return [*items[:place], new, *items[place:]]
        case _:
            return items[: place + 1] if place > len(items) // 2 else items


def found(ranker: Ranker, items: Sequence[Item]) -> list[object]:
    return [ranker.consider(parse(query), items, now_ms=NOW) for query in QUERIES]


class TestAfterAChange:
    @FEW
    @given(st.integers(0, 2**32), st.integers(8, 60))
    def test_everything_is_found_as_by_a_ranker_that_never_saw_the_items_before(
        self, seed: int, count: int
    ) -> None:
        dice, used = random.Random(seed), Ranker()
        items = many(count, dice)
        for number in range(5):
            assert found(used, items) == found(Ranker(), items)
            items = changed(items, number, dice) or items

    def test_only_what_changed_is_read_again(self) -> None:
        read: list[str] = []

        def document(one: Item) -> object:
            read.append(one.id)
            return of_item(one)

        items, indices = many(40, random.Random(1)), Indices(document)  # type: ignore[arg-type]
        indices.of(VisibleItems(items))
        assert read == [one.id for one in items]
        read.clear()
        new = item("a plum", updated_at=NOW + 99)
        indices.of(VisibleItems([*items[:7], *items[8:], new]))
        assert read == [new.id]

    def test_where_much_changed_all_is_indexed_anew(self) -> None:
        items, indices = many(40, random.Random(1)), Indices(of_item)
        indices.of(VisibleItems(items))
        fewer = indices.of(VisibleItems([items[0], *items[20:]]))
        assert None not in fewer.places


def alive() -> int:
    """How many indices are in RAM."""
    gc.collect()
    return sum(type(one) is Index for one in gc.get_referrers(Index))


class TestWhatIsKept:
    def test_of_a_memory_that_changes_all_the_time_only_the_latest_indices_are_kept(self) -> None:
        dice, ranker = random.Random(1), Ranker()
        items, kept = many(40, dice), []
        others = alive()
        for number in range(3 * MOST_VERSIONS):
            items = [*items[1:], item(f"{dice.choice(WORDS)} news{number}")]
            ranker.rank(parse("apple"), VisibleItems(items), now_ms=NOW)
            kept.append(alive() - others)
        assert set(kept[MOST_VERSIONS:]) == {MOST_VERSIONS}

    def test_two_branches_in_a_dm_and_elsewhere_are_read_once(self) -> None:
        read: list[str] = []

        def document(one: Item) -> Document:
            read.append(one.id)
            return of_item(one)

        items, indices = many(40, random.Random(1)), Indices(document)
        branches = [items, [*items[:20], *many(20, random.Random(2))]]
        views = [VisibleItems(view) for branch in branches for view in (branch, branch[:-1])]
        first = [indices.of(view) for view in views]
        read.clear()
        assert [indices.of(view) for view in views] == first
        assert read == []

    def test_what_is_forgotten_while_an_index_is_made_does_not_stay(self) -> None:
        documents, items = Documents(), VisibleItems(many(9, random.Random(1)))
        ranker = Ranker(documents=documents)
        making = ranker.prepare(items)
        next(making)
        from_ram(ranker, Purge("", 0))
        assert list(making) == []
        assert not any(map(documents.known, items))

    def test_the_same_items_have_the_same_index(self) -> None:
        items, indices = many(9, random.Random(1)), Indices(of_item)
        assert indices.of(VisibleItems(items)) is indices.of(VisibleItems(items))

    def test_of_more_than_a_bound_the_one_unused_for_longest_goes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("discoclaw.recall.index.MOST_INDEXED", 30)
        indices = Indices(of_item)
        one, other, more = (VisibleItems(many(10, random.Random(n))) for n in range(3))
        kept, gone = indices.of(one), indices.of(other)
        indices.of(one)
        indices.of(more)
        indices.of(VisibleItems([item("a plum"), item("a pear")]))
        assert indices.of(one) is kept
        assert indices.of(other) is not gone

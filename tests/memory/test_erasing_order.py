"""An erasing goes through its stages in one order, whatever parts there are and whoever registered them."""

import asyncio
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from discoclaw.core.purge import Derived, Phase, Purge, Purged
from discoclaw.memory.stores import Store
from discoclaw.store.port import INTENTS
from tests.memory.kit import ANN, remember
from tests.memory.leftovers import Shelves, shelves, traces

WORD = "Kanarie-4711"


@pytest.fixture
def house(tmp_path: Path, store: Store) -> Iterator[Shelves]:
    opened = shelves(tmp_path / "data", store=store)
    opened.memory.open()
    yield opened
    opened.memory.close()


class Witness(Derived):
    """Notes each stage, with whether the intent and the tombstone are there, and the person's words."""

    def __init__(self, house: Shelves, name: str, seen: list[tuple[str, str, str]]) -> None:
        self.name = name
        self._house = house
        self._seen = seen

    def _note(self, stage: str) -> None:
        memory = self._house.memory
        there = {
            "intent": f"{ANN}.json" in memory.disk.documents(INTENTS).names(),
            "tombstone": memory.erased_at(ANN) >= 0,
            "ledger": memory.ledgers.log(ANN).size() > 0,
        }
        self._seen.append((stage, self.name, " ".join(name for name, holds in there.items() if holds)))

    def outside(self, subject: str) -> Collection[str]:
        self._note("steps outside")
        return [f"step of {self.name}"]

    def purge(self, purge: Purge, phase: Phase) -> Purged | None:
        assert purge.outside == {"step of first", "step of last"}
        if phase != "ram":
            assert purge.sessions >= {"discoclaw:first", "discoclaw:last"}
        self._note(phase)
        return Purged(sessions=frozenset({f"discoclaw:{self.name}"})) if phase == "ram" else None


async def test_each_stage_is_over_for_all_parts_before_the_next_one_begins(house: Shelves) -> None:
    seen: list[tuple[str, str, str]] = []
    await house.memory.change(ANN, "why", remember(WORD))
    house.memory.join(Witness(house, "first", seen), Witness(house, "last", seen))
    erased = await house.memory.erase(ANN)
    stands, gone = "intent tombstone ledger", "intent tombstone"
    assert seen == [
        ("steps outside", "first", "ledger"),
        ("steps outside", "last", "ledger"),
        ("ram", "first", stands),
        ("ram", "last", stands),
        ("ram", "first", stands),  # with the conversations that both know
        ("ram", "last", stands),
        ("disk", "first", stands),  # before the files, so that nobody writes what they had read
        ("disk", "last", stands),
        ("done", "first", gone),
        ("done", "last", gone),
    ]
    assert erased.todo == ("step of first", "step of last")
    assert {"discoclaw:first", "discoclaw:last"} <= {*erased.sessions}
    for step in erased.todo:
        assert house.memory.pending_erasures(step) == [ANN]
        await house.memory.finish_step(ANN, step)
    assert house.memory.disk.documents(INTENTS).names() == []


async def test_the_stores_files_go_in_the_order_in_which_a_killed_erasing_finds_them_again(
    house: Shelves,
) -> None:
    names = [part.name for part in house.memory.personal]
    del names[: names.index("group records")]  # what only keeps up with them, and stops first
    of_one_store = names[: names.index("freed space") + 1]
    assert of_one_store[0] == "group records"
    assert of_one_store[-3:] == ["cursors", "clears and answers", "freed space"]
    assert names.count("named files") == names.count("cursors") == 2  # of the other store too


async def test_a_part_that_comes_later_is_visited_too(house: Shelves) -> None:
    seen: list[tuple[str, str, str]] = []
    await house.memory.change(ANN, "why", remember(WORD))
    (first, last) = (Witness(house, name, seen) for name in ("first", "last"))
    house.memory.join(first)
    house.memory.join(last)
    await asyncio.gather(house.memory.erase(ANN), house.memory.erase("user-1"))
    assert {name for stage, name, _ in seen if stage == "disk"} == {"first", "last"}
    assert traces(house.data, WORD) == []

"""An erasing goes through its stages in one order, whatever parts there are and whoever registered them."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from discoclaw.core.purge import Derived, Purge, Purged
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

    def sessions_of(self, subject: str) -> Iterable[str]:
        self._note("sessions in RAM")
        return [f"discoclaw:{self.name}"]

    def sessions_on_disk(self, subject: str) -> Iterable[str]:
        self._note("sessions on disk")
        return ()

    def outside(self, subject: str) -> Collection[str]:
        self._note("steps outside")
        return [f"step of {self.name}"]

    def purge_ram(self, purge: Purge) -> None:
        assert purge.sessions >= {"discoclaw:first", "discoclaw:last"}
        assert purge.outside == {"step of first", "step of last"}
        self._note("RAM")

    @asynccontextmanager
    async def exclusive(self, purge: Purge) -> AsyncIterator[None]:
        self._note("alone")
        yield
        self._note("no longer alone")

    def erase(self, purge: Purge) -> Purged:
        self._note("files")
        return Purged(1)


async def test_each_stage_is_over_for_all_parts_before_the_next_one_begins(house: Shelves) -> None:
    seen: list[tuple[str, str, str]] = []
    await house.memory.change(ANN, "why", remember(WORD))
    house.memory.join(Witness(house, "first", seen), Witness(house, "last", seen))
    erased = await house.memory.erase(ANN)
    stands, gone = "intent tombstone ledger", "intent tombstone"
    assert seen == [
        ("sessions in RAM", "first", "ledger"),
        ("sessions in RAM", "last", "ledger"),
        ("sessions on disk", "first", "ledger"),
        ("sessions on disk", "last", "ledger"),
        ("steps outside", "first", "ledger"),
        ("steps outside", "last", "ledger"),
        ("RAM", "first", stands),
        ("RAM", "last", stands),
        ("alone", "first", stands),
        ("alone", "last", stands),
        ("files", "first", gone),
        ("files", "last", gone),
        ("no longer alone", "last", gone),
        ("no longer alone", "first", gone),
    ]
    assert erased.todo == ("step of first", "step of last")
    for step in erased.todo:
        assert house.memory.pending_erasures(step) == [ANN]
        await house.memory.finish_step(ANN, step)
    assert house.memory.disk.documents(INTENTS).names() == []


async def test_the_stores_files_go_in_the_order_in_which_a_killed_erasing_finds_them_again(
    house: Shelves,
) -> None:
    names = [part.name for part in house.memory.personal]
    of_one_store = names[: names.index("freed space") + 1]
    assert of_one_store[0] == "group records"
    assert of_one_store[-3:] == ["cursors", "clears and answers", "freed space"]
    assert names.count("ledgers") == names.count("cursors") == 2  # of the other store too


async def test_a_part_that_comes_later_is_visited_too(house: Shelves) -> None:
    seen: list[tuple[str, str, str]] = []
    await house.memory.change(ANN, "why", remember(WORD))
    (first, last) = (Witness(house, name, seen) for name in ("first", "last"))
    house.memory.join(first)
    house.memory.join(last)
    await asyncio.gather(house.memory.erase(ANN), house.memory.erase("user-1"))
    assert {name for stage, name, _ in seen if stage == "files"} == {"first", "last"}
    assert traces(house.data, WORD) == []

"""Erases in processes of their own, to be killed in the middle, and on a disk that is full.

Run as `python -m tests.memory.erase_child`: it reads lines of JSON
[step, what, store, data folder]: each is done in a fresh fork that is killed right before its `step`th act
on the folder. Said is whether it lived; before that, at step 0, the kinds of all acts.
"""

import asyncio
from pathlib import Path

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.stores import Store
from tests.memory.child import full_at, say
from tests.memory.kills import die_at, in_forks
from tests.memory.leftovers import ANN, Shelves, shelves


def erase(step: int, house: Shelves) -> list[str]:
    house.memory.open()
    kinds = die_at(step, house.data, house.memory)
    asyncio.run(house.memory.erase(ANN))
    return kinds


def resume(step: int, house: Shelves) -> list[str]:
    kinds = die_at(step, house.data, house.memory)
    house.memory.open()
    return kinds


def forge() -> None:
    def run(step: int, what: str, store: Store, data: str) -> list[str]:
        return {"erase": erase, "resume": resume}[what](step, shelves(Path(data), store=store))

    in_forks(run)


def erase_full(data: str, room: str) -> None:
    """Erase where no file can grow beyond `room` bytes; say the fault."""
    house = shelves(Path(data))
    house.memory.open()
    try:
        with full_at(int(room)):
            asyncio.run(house.memory.erase(ANN))
        say("")
    except MemoryFault as fault:
        say(str(fault))
    house.memory.close()


if __name__ == "__main__":
    forge()

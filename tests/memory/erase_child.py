"""Erases in processes of their own: to be killed in the middle, or to meet a disk that is full.

Run as `python -m tests.memory.erase_child <program> [<argument>...]`. `forge` reads lines of JSON
[what, step, store, data folder]: each is done in a fresh fork that is killed right before its `step`th act
on the folder. Said is whether it lived; before that, at step 0, the kinds of all acts.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from pathlib import Path

from discoclaw.core.errors import MemoryFault
from tests.memory.child import full_at, say
from tests.memory.kills import die_at
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
    gc.freeze()  # else every fork has its own copy of what was imported
    for line in sys.stdin:
        what, step, store, data = json.loads(line)
        pid = os.fork()
        if pid == 0:
            kinds = {"erase": erase, "resume": resume}[what](step, shelves(Path(data), store=store))
            if step == 0:
                say(kinds)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
        assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
        say(os.WIFEXITED(status))


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


PROGRAMS = {program.__name__: program for program in (forge, erase_full)}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])

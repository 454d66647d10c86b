"""Erases in processes of their own: to be killed in the middle, or to meet a disk that is full.

Run as `python -m tests.memory.erase_child <program> [<argument>...]`. `forge` reads lines of JSON
[what, step, store, data folder]: each is done in a fresh fork that kills itself (SIGKILL) right before its
`step`th act on the folder, as an audit hook sees it, or statement to a database; said is whether it lived.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.disk.sqlite import SqliteDisk
from tests.memory.child import full_at, say
from tests.memory.leftovers import ANN, Shelves, shelves

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
ACTS = frozenset({"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate"})


def die_at(step: int, house: Shelves) -> None:
    """Kill this process right before it touches the data folder for the `step`th time from now."""
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def look(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(args[2], int) and bool(args[2] & WRITES)
        if (writes or event in ACTS) and str(house.data) in str(args[0]):
            count()

    sys.addaudithook(look)
    if isinstance(disk := house.memory.disk, SqliteDisk):
        with disk.reading() as db:
            assert db is not None
            db.set_trace_callback(lambda statement: count())


def erase(step: int, house: Shelves) -> None:
    house.memory.open()
    die_at(step, house)
    asyncio.run(house.memory.erase(ANN))


def resume(step: int, house: Shelves) -> None:
    die_at(step, house)
    house.memory.open()


def forge() -> None:
    for line in sys.stdin:
        what, step, store, data = json.loads(line)
        pid = os.fork()
        if pid == 0:
            {"erase": erase, "resume": resume}[what](step, shelves(Path(data), store=store))
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

"""Programs the tests run in a process of their own: to be killed, or to meet a disk that is full.

"Full" is real: the kernel refuses to let a file grow beyond RLIMIT_FSIZE, in the middle of a write, for
root and everybody else. Run as `python -m tests.memory.child <program> <argument>...`.
"""

import asyncio
import contextlib
import errno
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.files import append_synced, write_atomic
from discoclaw.memory.rolling import RollingMemory
from discoclaw.memory.store import Memory
from tests.memory.kit import ANN, NOW, Clock, ledger_of, remember, texts


@contextlib.contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes while this is open."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def overwrite(path: str) -> None:
    """Write ever new versions of a file, for ever."""
    for number in range(sys.maxsize):
        write_atomic(Path(path), f"{number}\n".encode() * 20_000)
        say(number)


def overwrite_full(path: str) -> None:
    """Try to replace a file by one the disk has no room for."""
    with full_at(1000):
        try:
            write_atomic(Path(path), b"new" * 1000)
        except OSError as error:
            say(error.errno)


def append_full(folder: str, *cases: str) -> None:
    """Append lines the disk takes only a part of ("<bytes taken>/<length>"), then all of them."""
    say(
        [
            _append_full(Path(folder) / str(number), *map(int, case.split("/")))
            for number, case in enumerate(cases)
        ]
    )


def _append_full(ledger: Path, room: int, length: int) -> str:
    before, line = b"a line\n" * 100, b"x" * (length - 1) + b"\n"
    ledger.write_bytes(before)
    with full_at(len(before) + room):
        try:
            append_synced(ledger, line, expected_size=len(before))
        except OSError as error:
            assert error.errno == errno.EFBIG
    if ledger.read_bytes() != before:
        return f"{ledger.stat().st_size - len(before)} bytes stayed"
    append_synced(ledger, line, expected_size=len(before))
    return "cut back"


def hold(root: str) -> None:
    """Take the memory's folder and sit on it."""
    memory = Memory(Path(root), clock=Clock())
    memory.open()
    say("held")
    time.sleep(60)


def commit_for_ever(root: str) -> None:
    """Commit item after item; say each one's id when the memory has acknowledged it."""

    async def work() -> None:
        memory = Memory(Path(root), clock=Clock(), max_items=100_000)
        memory.open()
        for number in range(sys.maxsize):
            say(await memory.change(ANN, "a test", remember(f"{os.getpid()} {number}")))

    asyncio.run(work())


def commit_full(folder: str, *rooms: str) -> None:
    """Commit onto disks with so many bytes left for the ledger, then again when there is space."""
    say([asyncio.run(_commit_full(Path(folder) / room, int(room))) for room in rooms])


async def _commit_full(root: Path, room: int) -> dict[str, Any]:
    memory = Memory(root, clock=Clock())
    for number in range(5):
        await memory.change(ANN, "a test", remember(f"before {number}"))
    ledger = ledger_of(memory)
    view, content = await memory.view(ANN), ledger.read_bytes()
    fault = ""
    with full_at(len(content) + room):
        try:
            await memory.change(ANN, "a test", remember("lost"))
        except MemoryFault as error:
            fault = str(error)
    report = {
        "fault": "could not be written" in fault,
        "same view": (await memory.view(ANN)) == view,
        "same ledger": ledger.read_bytes() == content,
    }
    with contextlib.suppress(MemoryFault):
        await memory.change(ANN, "a test", remember("after"))
    return report | {"last": (await texts(memory))[-1]}


def summarise_full(folder: str) -> None:
    """Store a summary the disk has no room for over one that is there."""

    async def work() -> dict[str, Any]:
        rolling = RollingMemory(Path(folder), clock=Clock())
        await rolling.put("s", "old", generation=await rolling.generation("s"))
        fault = ""
        with full_at(1000):
            try:
                await rolling.put("s", "new " * 1000, generation=await rolling.generation("s"))
            except MemoryFault as error:
                fault = str(error)
        again = RollingMemory(Path(folder), clock=Clock(NOW + 1))
        return {
            "fault": fault,
            "ram": (await rolling.get("s")).summary,
            "disk": (await again.get("s")).summary,
            "names": sorted(os.listdir(folder)),
        }

    say(asyncio.run(work()))


def forge(program: str, *arguments: str) -> None:
    """For each line of input, run a program in a fresh fork; say its process id, and when it is dead."""
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            say({"pid": os.getpid()})
            PROGRAMS[program](*arguments)
        os.waitpid(pid, 0)
        say("dead")


PROGRAMS = {
    program.__name__: program
    for program in (
        overwrite,
        overwrite_full,
        append_full,
        hold,
        commit_for_ever,
        commit_full,
        summarise_full,
        forge,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])

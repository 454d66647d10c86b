"""Programs the tests run in a process of their own, to be killed, and what is done on a disk that is full.

"Full" is real: the kernel refuses to let a file of this process grow beyond RLIMIT_FSIZE, in the middle of a
write, for root and everybody else. Run as `python -m tests.memory.child <program> <argument>...`.
"""

import asyncio
import contextlib
import errno
import gc
import json
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discoclaw.core.draft import Origin
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.stores import Store, disks
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.ledger import repair
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import append_synced, write_atomic
from tests.memory.kit import ANN, NOW, STAMP, Clock, ledger_of, lines_of, listening, remember, texts


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


def pause_before_rename(*paths: str) -> None:
    """Replace each file by "zebra" in its own thread; wait before each rename for the end of the input."""

    def pause(event: str, args: tuple[Any, ...]) -> None:
        if event == "os.rename":
            say("before the rename")
            sys.stdin.read()

    sys.addaudithook(pause)
    writers = [threading.Thread(target=write_atomic, args=(Path(path), b"zebra")) for path in paths]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


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


def commit_for_ever(store: Store, root: str) -> None:
    """Commit item after item; say each one's id when the memory has acknowledged it."""

    async def work() -> None:
        memory = Memory(disks(store, Path(root)), clock=Clock(), max_items=100_000)
        memory.open()
        for number in range(sys.maxsize):
            say(await memory.change(ANN, "a test", remember(f"{os.getpid()} {number}")))

    asyncio.run(work())


def commit_and_die(root: str, subject: str, text: str) -> None:
    """Commit one item; be killed behind the ledger's line, right before the durable file is written."""

    def look(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]).startswith(f"{root}/durable/") and args[2] & os.O_CREAT:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    memory = Memory(Path(root), clock=Clock())
    memory.open()
    asyncio.run(memory.change(subject, "a test", remember(text)))


def live_for_ever(store: Store, root: str, people: str) -> None:
    """Do all that a memory can do, one thing after another, with one of so many people.

    Said are who it is and, after each act, where the branches stand: the time of the newest record, HEAD,
    each branch's newest commit; and the commits that were made.
    """

    async def work() -> None:
        dice = random.Random(os.getpid())
        subject = f"user-{dice.randrange(int(people))}"
        memory = Memory(disks(store, Path(root)), clock=Clock(), max_items=20)
        memory.open()
        made = listening(memory).commits
        say(subject)
        for number in range(sys.maxsize):
            with contextlib.suppress(Refused):
                await _live(memory, subject, dice, f"{os.getpid()} {number}")
            branches = await memory.branches(subject)
            heads = {name: branch.head for name, branch in branches.all.items()}
            say([branches.last_ms, branches.current, heads, [commit.id for _, commit in made]])
            made.clear()

    asyncio.run(work())


async def _live(memory: Memory, subject: str, dice: random.Random, text: str) -> None:
    """Do one thing: mostly a change, now and then something with branches."""
    name, stated = dice.choice(["coding", "games", "work-2"]), Origin("stated")
    match dice.randrange(24):
        case 0:
            await verbs.switch(memory, subject, dice.choice(["main", name]))
        case 1:
            await verbs.delete_branch(memory, subject, name)
        case 2:
            await verbs.create_branch(memory, subject, name, f"as {text}")
        case 3:
            await verbs.merge(memory, subject, name, stated)
        case 4:
            await verbs.undo(memory, subject, stated)
        case 5 | 6 | 7:
            await memory.change(subject, "a test", remember(text), branch=name)
        case _:
            await memory.change(subject, "a test", remember(text))


def commit_full(store: Store, folder: str, *rooms: str) -> None:
    """Commit onto disks with so many bytes left for the ledger, then again when there is space."""
    say([asyncio.run(_commit_full(store, Path(folder) / room, int(room))) for room in rooms])


async def _commit_full(store: Store, root: Path, room: int) -> dict[str, Any]:
    memory = Memory(disks(store, root), clock=Clock())
    grows = ledger_of(memory) if store == "files" else root / "memory.sqlite-wal"
    for number in range(5):
        await memory.change(ANN, "a test", remember(f"before {number}"))
    view, content = await memory.view(ANN), lines_of(memory).read()
    fault = ""
    with full_at(grows.stat().st_size + room):
        try:
            await memory.change(ANN, "a test", remember("lost"))
        except MemoryFault as error:
            fault = str(error)
    report = {
        "fault": "could not be written" in fault,
        "same view": (await memory.view(ANN)) == view,
        "same ledger": lines_of(memory).read() == content,
    }
    with contextlib.suppress(MemoryFault):
        await memory.change(ANN, "a test", remember("after"))
    return report | {"last": (await texts(memory))[-1]}


def summarise_full(folder: str) -> None:
    """Store a summary the disk has no room for over one that is there."""

    async def work() -> dict[str, Any]:
        rolling = RollingMemory(Path(folder), cursors=Cursors(Path(folder).parent), clock=Clock())
        await rolling.put("s", "old", generation=await rolling.generation("s"))
        fault = ""
        with full_at(1000):
            try:
                await rolling.put("s", "new " * 1000, generation=await rolling.generation("s"))
            except MemoryFault as error:
                fault = str(error)
        again = RollingMemory(Path(folder), cursors=Cursors(Path(folder).parent), clock=Clock(NOW + 1))
        return {
            "fault": fault,
            "ram": (await rolling.get("s")).summary,
            "disk": (await again.get("s")).summary,
            "names": sorted(os.listdir(folder)),
        }

    say(asyncio.run(work()))


def choose_full(folder: str) -> None:
    """Choose on a disk that has no room for it, then again when there is."""
    root = Path(folder)

    def told(choices: Choices) -> list[bool]:
        return [choices.opted_out("1"), choices.opted_out("2")]

    async def work() -> dict[str, Any]:
        choices, later = Choices(root), Choices(root)
        choices.load()
        await choices.choose("1", opted_out=True)
        fault = ""
        with full_at(20):
            try:
                await choices.choose("2", opted_out=True)
            except MemoryFault as error:
                fault = str(error)
        later.load()
        report = {"fault": fault, "ram": told(choices), "disk": told(later), "names": os.listdir(folder)}
        await choices.choose("2", opted_out=True)
        return {**report, "again": told(choices)}

    say(asyncio.run(work()))


def move_full(folder: str) -> None:
    """Move HEAD, create, delete and merge on a full disk, then again when there is space."""

    async def work() -> dict[str, Any]:
        memory = Memory(Path(folder), clock=Clock())
        await memory.change(ANN, "a test", remember("likes tea"))
        await memory.change(ANN, "a test", remember("uses vim"), branch="coding")
        branches, content = await memory.branches(ANN), ledger_of(memory).read_bytes()
        faults = 0
        with full_at(len(content) + 100):
            for act in (
                verbs.switch(memory, ANN, "coding"),
                verbs.create_branch(memory, ANN, "games"),
                verbs.delete_branch(memory, ANN, "coding"),
                verbs.merge(memory, ANN, "coding", Origin("stated")),
            ):
                try:
                    await act
                except MemoryFault:
                    faults += 1
        report = {
            "faults": faults,
            "same branches": await memory.branches(ANN) == branches,
            "same ledger": ledger_of(memory).read_bytes() == content,
        }
        moved = await verbs.switch(memory, ANN, "coding")
        return report | {"then": [moved.current, await texts(memory)]}

    say(asyncio.run(work()))


def repair_full(ledger: str, room: str) -> None:
    """Repair a ledger on a disk that takes no file beyond `room` bytes."""
    with full_at(int(room)):
        try:
            repair(Path(ledger), now_ms=NOW, stamp=STAMP)
        except OSError as error:
            assert error.errno == errno.EFBIG
            say("full")


def forge(program: str, *arguments: str) -> None:
    """For each line of input, run a program in a fresh fork; say its process id, and when it is dead."""
    gc.freeze()  # else every fork has its own copy of what was imported
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
        pause_before_rename,
        hold,
        commit_for_ever,
        commit_and_die,
        live_for_ever,
        forge,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])

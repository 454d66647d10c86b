"""Processes that are killed or stopped while they have a lease: somebody else has it soon, for good."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress

import pytest

from tests.memory.kit import REPOSITORY
from tests.memory.sharing import process, until

Start = Callable[[str], Awaitable["Child"]]


class Child:
    """The other process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def said(self) -> str:
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode().strip()

    async def write(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        await self.process.stdin.drain()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@pytest.fixture
async def start(database: str) -> AsyncIterator[Start]:
    """Starts a process that has the lease "mirror"."""
    started: list[asyncio.subprocess.Process] = []

    async def start(how: str) -> Child:
        command = [sys.executable, "-m", "tests.memory.sharing_child", how, database]
        pipe = subprocess.PIPE
        one = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=REPOSITORY)
        started.append(one)
        child = Child(one)
        assert await child.said() == "has it"
        return child

    yield start
    for one in started:
        with suppress(ProcessLookupError):
            one.kill()
        await one.wait()
        one._transport.close()  # type: ignore[attr-defined]


async def test_a_killed_process_is_succeeded_within_seconds(database: str, start: Start) -> None:
    child = await start("hold")
    async with process(database) as one:
        async with one.processes.free("mirror") as free:
            assert not free
        child.send(signal.SIGKILL)
        async with asyncio.timeout(30), one.processes.lease("mirror"):
            one.disk.documents("").write("note.json", b"1")
        await one.processes.all_know()  # waits for nobody who is dead


async def test_a_stopped_process_is_succeeded_and_its_late_writes_are_refused(
    database: str, start: Start
) -> None:
    child = await start("hold")
    await child.write()
    assert await child.said() == "wrote"
    child.send(signal.SIGSTOP)
    async with process(database) as one, one.processes.lease("mirror"):
        one.disk.documents("").write("child.json", b"ours")
        await child.write()
        child.send(signal.SIGCONT)
        said = [await child.said()]
        while said[-1] in ("refused", "failed"):
            said.append(await child.said())
        assert "wrote" not in said
        assert said[-1] == "lost"
        assert one.disk.documents("").read("child.json") == b"ours"


async def test_what_a_process_did_not_commit_before_it_was_stopped_is_never_committed(
    database: str, start: Start
) -> None:
    child = await start("stop-before-commit")
    await child.write()
    assert await child.said() == "before COMMIT"
    async with process(database) as one, one.processes.lease("mirror"):
        assert "child.json" not in one.disk.documents("").names()
        child.send(signal.SIGCONT)
        assert await child.said() in ("refused", "failed", "lost", "before COMMIT")
        await until(lambda: one.processes.in_touch)
        assert "child.json" not in one.disk.documents("").names()


async def test_a_process_whose_event_loop_hangs_keeps_its_leases(database: str) -> None:
    hanging = """
import asyncio, sys, time
from tests.memory.sharing import process

async def main():
    async with process(sys.argv[1]) as one, one.processes.lease("mirror"):
        print("has it", flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""
    pipe = subprocess.PIPE
    async with AsyncExitStack() as stack:
        child = Child(
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", hanging, database, stdin=pipe, stdout=pipe, cwd=REPOSITORY
            )
        )
        stack.push_async_callback(child.process.wait)
        assert await child.said() == "has it"
        one = await stack.enter_async_context(process(database))
        waiting = asyncio.create_task(one.processes.lease("mirror").__aenter__())
        await asyncio.wait([waiting], timeout=3 * 2.5)
        assert not waiting.done()
        await child.write()  # its loop goes on, and it ends
        await asyncio.wait_for(waiting, 30)

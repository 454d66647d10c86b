"""A process that shares a store, for tests that kill or stop it: `python -m tests.memory.sharing_child`.

`hold <url>` has the lease "mirror", says "has it", and then writes a text each time it is asked for a line.
`stop-before-commit <url>` stops itself between the last statement of such a write and its COMMIT.
"""

import asyncio
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from discoclaw.core.errors import LeaseLost
from discoclaw.store.files import in_thread
from tests.memory.sharing import One, process


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def stop_before_commit(one: One) -> None:
    """Have this process stop itself at its next write, right before the COMMIT."""
    database = one.disk.database
    unsure = database.unsure

    @contextmanager
    def stopping() -> Iterator[None]:
        say("before COMMIT")
        # To this thread, which a signal to the process might stop only after the COMMIT.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        with unsure():
            yield

    vars(database)["unsure"] = stopping


async def hold(url: str, *, stops: bool) -> None:
    async with process(url) as one:
        try:
            await work(one, stops=stops)
        except LeaseLost:
            say("lost")


async def work(one: One, *, stops: bool) -> None:
    async with one.processes.lease("mirror"):
        say("has it")
        if stops:
            stop_before_commit(one)
        while await asyncio.to_thread(sys.stdin.readline):
            try:
                await in_thread(one.disk.documents("").change, "child.json", lambda before: b"late")
                say("wrote")
            except LeaseLost:
                say("refused")
            except OSError:
                say("failed")


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[2], stops=sys.argv[1] == "stop-before-commit"))

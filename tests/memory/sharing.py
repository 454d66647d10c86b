"""Processes that share a real PostgreSQL, all in this one: for tests, which make their leases short."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import psycopg

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.changes import Listener
from discoclaw.memory.processes import SharedProcesses
from discoclaw.store.postgres.disk import PostgresDisk
from discoclaw.store.postgres.processes import ProcessRows

LEASE_S = 2.5


@dataclass
class Heard(Listener):
    """Notes what it is told. `slow` keeps it from letting go of anything."""

    names: list[str] = field(default_factory=list)
    lost: int = 0
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
    fails: int = 0

    async def renewed(self, names: Collection[str]) -> None:
        await self.may_go_on.wait()
        if self.fails:
            self.fails -= 1
            raise MemoryFault("not now")
        self.names += sorted(names)

    def out_of_touch(self) -> None:
        self.lost += 1


@dataclass
class One:
    """A process with its own connections."""

    disk: PostgresDisk
    processes: SharedProcesses
    heard: Heard

    @property
    def number(self) -> int:
        return self.disk.presence.process


@asynccontextmanager
async def process(url: str, *, lease_s: float = LEASE_S) -> AsyncIterator[One]:
    """A process that shares a store, as long as the block lasts."""
    disk, heard = PostgresDisk(url), Heard()
    heard.may_go_on.set()
    disk.open()
    processes = SharedProcesses(disk.rows(lease_s), disk.presence, disk.seen, heard, "bot")
    await processes.start()
    try:
        yield One(disk, processes, heard)
    finally:
        await processes.close()
        disk.close()


@contextmanager
def registered(url: str) -> Iterator[tuple[PostgresDisk, ProcessRows]]:
    """A process that was heard from once, for an hour, and does nothing by itself."""
    disk = PostgresDisk(url)
    disk.open()
    rows = disk.rows(3600.0)
    disk.presence.process, *_ = rows.enter("bot")
    try:
        yield disk, rows
    finally:
        rows.beating.close()
        disk.close()


def silenced(url: str, number: int, ago: str = "1 s") -> None:
    """Let a process be silent for so long."""
    with psycopg.connect(url) as db:
        at = f"clock_timestamp() - interval '{ago}'"
        db.execute(f"UPDATE beats SET until = {at}, heard = {at} WHERE process = {number}".encode())


def lived_long(url: str, number: int) -> None:
    """Let a process have been heard from for so long that it may replace others."""
    with psycopg.connect(url) as db:
        db.execute("UPDATE beats SET since = since - interval '1 day' WHERE process = %s", (number,))


async def until(what: Callable[[], bool]) -> None:
    """Wait for something that comes about in another thread or process."""
    while not what():  # noqa: ASYNC110 - nothing there sets an event
        await asyncio.sleep(0.01)


def held(processes: SharedProcesses) -> set[str]:
    """The leases that a process has."""
    return {name for name, one in processes._leases._known.items() if one.tasks}

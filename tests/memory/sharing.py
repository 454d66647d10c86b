"""Processes that share a real PostgreSQL, all in this one: for tests, which make their leases short."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.changes import Listener
from discoclaw.memory.processes import SharedProcesses
from discoclaw.store.postgres.disk import PostgresDisk
from discoclaw.store.sharing import Member
from tests.servers.postgres import Postgres

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
    def epoch(self) -> int:
        return self.disk.presence.epoch


@asynccontextmanager
async def process(url: str, *, lease_s: float = LEASE_S) -> AsyncIterator[One]:
    """A process that shares a store, as long as the block lasts."""
    disk, heard = PostgresDisk(url), Heard()
    heard.may_go_on.set()
    disk.open()
    processes = SharedProcesses(disk.rows(lease_s), disk.presence, disk.seen, heard, Member("bot"))
    await processes.start()
    try:
        yield One(disk, processes, heard)
    finally:
        await processes.close()
        disk.close()


async def until(what: Callable[[], bool]) -> None:
    """Wait for something that comes about in another thread or process."""
    while not what():  # noqa: ASYNC110 - nothing there sets an event
        await asyncio.sleep(0.01)


def end_connections(postgres: Postgres, url: str, state: str) -> None:
    """Have the server end the connections to a database that are in this state."""
    name = urlsplit(url).path.lstrip("/")
    postgres.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        f"WHERE datname = '{name}' AND state = '{state}'"
    )

"""A durable PostgreSQL on the disk that the plain files lie on too, and members of a store for the figures.

Its settings are those of a small server as a package installs it. What runs on four processes at once shares
this machine's cores with the server and with whoever asks, so only ratios inside one run say anything.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing import get_context
from multiprocessing.pool import Pool
from multiprocessing.synchronize import Barrier
from pathlib import Path

from bench.world import settings_in
from discoclaw.app import now_ms
from discoclaw.memory.processes import SharedProcesses
from discoclaw.storage import Storage, build
from tests.servers.postgres import Postgres

FILES = "files"
SETTINGS = {"shared_buffers": "128MB", "autovacuum": "on", "max_wal_size": "1GB", "synchronous_commit": "on"}


@contextmanager
def server() -> Iterator[Postgres]:
    """A server of its own. Raises Unavailable where none can run."""
    with Postgres(durable=True, settings=SETTINGS) as postgres:
        yield postgres


@asynccontextmanager
async def opened(store: str, folder: Path) -> AsyncIterator[Storage]:
    """A store as a process of its own sees it."""
    storage = build(settings_in(folder, store=store), clock=now_ms)
    storage.open()
    storage.load()
    members = storage.processes
    try:
        if isinstance(members, SharedProcesses):
            await members.start()
        yield storage
    finally:
        if isinstance(members, SharedProcesses):
            await members.close()
        storage.close()


_together: Barrier


def meet() -> None:
    """Wait until all processes of a pool are here."""
    _together.wait(120)


def _know(barrier: Barrier) -> None:
    global _together
    _together = barrier


@contextmanager
def processes(count: int) -> Iterator[Pool]:
    """Processes that start without anything of ours, each with one piece of work at a time."""
    context = get_context("spawn")
    with context.Pool(count, _know, (context.Barrier(count),)) as pool:
        yield pool

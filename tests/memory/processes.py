"""Whole processes on one shared store: everything on disk, as the bot and the terminal build it.

InRam       the store of `together`, in which nothing happens by time
OnPostgres  a real database
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import psycopg
from psycopg.types.string import TextLoader

from discoclaw.core.draft import Origin
from discoclaw.core.subject import user_subject
from discoclaw.memory.stores import Disks
from discoclaw.settings import Settings
from discoclaw.storage import Storage, build
from tests.memory.kit import Clock, remember, texts
from tests.memory.together import Member, Together


class Process:
    """One process, with a data folder of its own. `member` is what it is in a store in RAM."""

    def __init__(self, storage: Storage, data: Path, member: Member | None = None) -> None:
        self.storage = storage
        self.data = data
        self.memory = storage.memory
        self.beside: list[Process] = []
        self._member = member

    async def start(self) -> None:
        self.storage.open()
        await self.storage.processes.start()
        self.storage.load()
        await self.storage.purger.start()

    async def close(self) -> None:
        await self.storage.purger.close()
        await self.storage.processes.close()
        self.storage.close()

    @property
    def member(self) -> Member:
        assert self._member is not None, "only a store in RAM"
        return self._member

    async def hear(self) -> None:
        """Hear of everything that others wrote."""
        if self._member is not None:
            await self._member.hear()
        else:
            for other in self.beside:
                await other.storage.processes.all_know()

    async def look(self, *names: str) -> None:
        """Hear of what others wrote to these texts, as a turn does that asks for them."""
        await self.storage.processes.look(names)

    async def remember(self, user_id: str, text: str) -> None:
        """Let somebody state something."""
        await self.memory.change(user_subject(user_id), "stated", remember(text, origin=Origin("stated")))

    async def sum_up(self, session_key: str, summary: str) -> None:
        """Store the summary of a conversation."""
        summaries = self.storage.summaries
        generation = await summaries.generation(session_key)
        assert await summaries.put(session_key, summary, generation=generation)

    async def known(self, user_id: str) -> list[str]:
        """What a turn with somebody would use: it looks for what changed first."""
        await self.look(f"ledger/user-{user_id}.jsonl", f"choices/{user_id}.json", "tombstones.jsonl")
        return await texts(self.memory, user_subject(user_id))

    def on_this_machine(self) -> bytes:
        """Every byte below the data folder."""
        return b"".join(
            f"{path}\n".encode() + path.read_bytes() for path in self.data.rglob("*") if path.is_file()
        )


class Shared(Protocol):
    """A store that processes share."""

    def process(self, folder: Path, clock: Clock) -> Process: ...

    def dump(self) -> bytes:
        """Everything in the store, as bytes."""
        ...


class InRam:
    """The store of `together`."""

    def __init__(self) -> None:
        self.together = Together()

    def process(self, folder: Path, clock: Clock) -> Process:
        settings = _settings(folder)
        member = self.together.join()
        stores = Disks(settings.memory_dir, member.disk)
        storage = build(settings, clock=clock, stores=stores, processes=member)
        member.listener = storage.memory.changes
        return Process(storage, folder / "data", member)

    def dump(self) -> bytes:
        return self.together.dump()


class OnPostgres:
    """A database."""

    def __init__(self, url: str) -> None:
        self._url = url

    def process(self, folder: Path, clock: Clock) -> Process:
        return Process(build(_settings(folder, store=self._url), clock=clock), folder / "data")

    def dump(self) -> bytes:
        with psycopg.connect(self._url) as db:
            db.adapters.register_loader("timestamptz", TextLoader)  # one may be -infinity
            tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            rows = [row for (name,) in tables for row in db.execute(f'SELECT * FROM "{name}"'.encode())]
        return b"\n".join(
            bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
            for row in rows
            for value in row
        )


def _settings(folder: Path, **given: str) -> Settings:
    return Settings(_env_file=None, data_dir=folder / "data", content_dir=folder / "content", **given)


@asynccontextmanager
async def sharing(folder: Path, shared: Shared, clock: Clock, count: int) -> AsyncIterator[list[Process]]:
    """So many processes on one store."""
    processes = [shared.process(folder / f"p{number}", clock) for number in range(count)]
    for process in processes:
        process.beside = [other for other in processes if other is not process]
    try:
        for process in processes:
            await process.start()
        yield processes
    finally:
        for process in processes:
            await process.close()

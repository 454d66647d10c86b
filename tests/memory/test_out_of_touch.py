"""What lies in RAM while a shared store is out of reach: nobody may use it, until what changed is known."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.consent import Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.message import Place
from discoclaw.core.shards import EVERY
from discoclaw.memory.conversations.inboxes import Inboxes
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors, sessions_in
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.processes import SharedProcesses, processes_of
from discoclaw.memory.stores import disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import in_thread
from discoclaw.store.port import CURSORS, PROFILES, ROLLING
from discoclaw.store.postgres.connection import MOST
from discoclaw.store.postgres.disk import PostgresDisk
from tests.memory.kit import ANN, Clock, erased_from, remember, texts
from tests.memory.sharing import until
from tests.servers.postgres import Postgres

KEY = "discord:dm:123"
USER = ANN.removeprefix("user-")


@dataclass
class Parts:
    """A process with everything that a turn asks, in RAM."""

    memory: Memory
    processes: SharedProcesses
    rolling: RollingMemory
    profiles: Profiles
    used: LastUsed
    cursors: Cursors


@pytest.fixture
async def parts(database: str, tmp_path: Path, clock: Clock) -> AsyncIterator[Parts]:
    memory = Memory(disks(database, tmp_path / "memory"), clock=clock)
    memory.open()
    disk = memory.disk
    assert isinstance(disk, PostgresDisk)
    processes = processes_of(disk, memory.changes, "bot")
    assert isinstance(processes, SharedProcesses)
    await processes.start()
    rolling = RollingMemory(disk.documents(ROLLING), cursors=Cursors(disk.documents(CURSORS)), clock=clock)
    profiles = Profiles(disk.documents(PROFILES), memory, clock=clock, consent=erased_from(memory))
    cursors = Cursors(disk.documents(CURSORS))
    used = LastUsed(memory, cursors, clock=clock)
    memory.join(rolling, profiles, used, cursors)
    yield Parts(memory, processes, rolling, profiles, used, cursors)
    await profiles.close()
    await processes.close()
    memory.close()


async def test_what_is_in_ram_is_not_used_while_the_store_is_out_of_reach(
    parts: Parts, postgres: Postgres, clock: Clock
) -> None:
    memory, rolling, profiles = parts.memory, parts.rolling, parts.profiles
    await memory.change(ANN, "said", remember("likes tea"))
    await rolling.put(KEY, "tea", generation=await rolling.generation(KEY))
    profiles.seen(USER, "Ann", clock.now)
    await profiles.settle()
    await parts.used.load(ANN)
    await parts.cursors.put("summary", {"at": 1})
    postgres.pause()
    try:
        assert await parts.processes.claim("1")
        assert memory.view_in_ram(ANN) is None
        assert memory.branches_in_ram(ANN) is None
        for reading in (memory.view, memory.branches, memory.history, memory.last_view):
            with pytest.raises(MemoryFault, match="could not be reached lately"):
                await reading(ANN)
        assert rolling.in_ram(KEY) is None
        with pytest.raises(MemoryFault):
            await rolling.get(KEY)
        assert profiles.in_ram(USER) is None
        assert not profiles.at_hand(USER)
        with pytest.raises(MemoryFault):
            await profiles.get(USER)
        assert not parts.used.complete(ANN)
        assert await parts.used.load(ANN) == parts.used.of(ANN)
        assert await parts.cursors.get("summary") == {}
        with pytest.raises(MemoryFault):
            await memory.change(ANN, "said", remember("likes coffee"))
    finally:
        postgres.resume()
    await until(lambda: parts.processes.in_touch)
    assert await texts(memory) == ["likes tea"]
    assert (await rolling.get(KEY)).summary == "tea"
    assert (await parts.cursors.get("summary")) == {"at": 1}
    profile = await profiles.get(USER)
    assert profile is not None
    assert profile.name == "Ann"
    await parts.used.load(ANN)
    assert parts.used.complete(ANN)


async def test_a_store_that_only_takes_reads_stays_out_of_touch(
    parts: Parts, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.read_only(True)
    try:
        for message in ("1", "2"):
            assert await parts.processes.claim(message)
            assert not parts.processes.in_touch
    finally:
        postgres.read_only(False)
    assert [one for one in caplog.messages if "in touch with the store again" in one] == []
    await until(lambda: parts.processes.in_touch)


async def test_an_inbox_that_could_not_be_written_is_written_once_the_store_is_back(
    parts: Parts, postgres: Postgres
) -> None:
    inboxes = Inboxes(parts.cursors, Consent(), catches_up=True, shared=True)
    parts.memory.join(inboxes)
    await inboxes.serve(EVERY)
    place, key = Place("dm", "900", None, "Ann", private=True), "discord:dm:41"
    postgres.pause()
    try:
        assert await parts.processes.claim("1001")
        assert inboxes.take(place, key, "1001")
        await inboxes.settle()
    finally:
        postgres.resume()
    await until(lambda: parts.processes.in_touch)
    await inboxes.settle()
    written = await in_thread(parts.cursors.documents.read, "inbox:1:0.json")
    assert b'"floor": "1000"' in written
    await inboxes.close()


async def test_what_was_erased_meanwhile_is_not_shown_afterwards(
    parts: Parts, postgres: Postgres, database: str
) -> None:
    await parts.memory.change(ANN, "said", remember("likes tea"))
    postgres.pause()
    assert await parts.processes.claim("1")
    postgres.resume()
    # Another process, before this one is in touch again or just after.
    other = PostgresDisk(database)
    other.documents("ledger").remove([f"{ANN}.jsonl"])
    other.close()
    await until(lambda: parts.processes.in_touch)
    await parts.processes.look([f"ledger/{ANN}.jsonl"])
    assert await texts(parts.memory) == []


async def test_a_cursor_that_could_not_be_read_once_is_not_taken_for_none(parts: Parts) -> None:
    name, disk = "people-discord:channel:1", parts.memory.disk
    assert isinstance(disk, PostgresDisk)
    assert await parts.cursors.put(name, {"people": [USER], "session": "discord:channel:1"})
    parts.cursors.drop(name)
    with ExitStack() as in_use:
        for _ in range(MOST):
            in_use.enter_context(disk.database.connection())
        assert await parts.cursors.get(name) == {}
        with pytest.raises(OSError, match="connections"):  # an erasing would leave that summary
            sessions_in(disk.documents(CURSORS), ANN)
    assert (await parts.cursors.get(name))["people"] == [USER]


async def test_a_cursor_that_was_being_read_when_it_changed_is_read_again(parts: Parts) -> None:
    disk, was_read, goes_on = parts.memory.disk, threading.Event(), threading.Event()

    class Slow:
        """A store whose first answer takes its time."""

        def __getattr__(self, name: str) -> Any:
            return getattr(disk.documents(CURSORS), name)

        def find(self, name: str) -> bytes | None:
            content = disk.documents(CURSORS).find(name)
            if not was_read.is_set():
                was_read.set()
                goes_on.wait()
            return content

    disk.documents(CURSORS).write("one.json", b'{"at": 1}')
    cursors = Cursors(Slow())
    first = asyncio.create_task(cursors.get("one"))
    await in_thread(was_read.wait)
    disk.documents(CURSORS).write("one.json", b'{"at": 2}')
    await cursors.renewed([f"{CURSORS}/one.json"])
    second = asyncio.create_task(cursors.get("one"))
    await asyncio.sleep(0)  # it has begun
    goes_on.set()
    assert await second == {"at": 2}
    await first
    assert await cursors.get("one") == {"at": 2}

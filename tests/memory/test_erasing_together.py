"""An erasing across processes: nothing of the person stays in any of them, whatever they are doing."""

import asyncio
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from discoclaw.core.errors import LeaseLost, MemoryFault
from discoclaw.core.history import PEOPLE, History
from discoclaw.core.purge import Derived, Phase, Purge, Purged
from discoclaw.core.subject import user_subject
from discoclaw.memory import processes as memory_processes
from discoclaw.memory import purge
from discoclaw.memory.changes import Listener
from discoclaw.memory.conversations.responses import Response
from discoclaw.memory.erasing import erase
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.processes import SharedProcesses
from discoclaw.store.files import in_thread
from tests.memory.kit import NOW, REPOSITORY, Clock, remember, texts
from tests.memory.processes import InRam, OnPostgres, Process, Shared, sharing
from tests.memory.sharing import LEASE_S, held, registered, silenced, until
from tests.servers.line import Line

if TYPE_CHECKING:
    from tests.servers.postgres import Postgres

DIES = """
import asyncio, os, signal, sys
from pathlib import Path

from discoclaw.memory.erasing.erase import Eraser
from tests.memory.kit import Clock
from tests.memory.processes import OnPostgres, sharing

async def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    Eraser._all_know = die
    async with sharing(Path(sys.argv[2]), OnPostgres(sys.argv[1]), Clock(), 1) as (one,):
        await one.memory.erase(sys.argv[3])

asyncio.run(main())
"""
WORDS = "I like tulips from Leiden"
ANNS, BOBS = "820000000000000123", "820000000000000456"
ANN, BOB = user_subject(ANNS), user_subject(BOBS)
SESSION = "discord:channel:77"


@pytest.fixture
def in_ram() -> InRam:
    return InRam()


@pytest.fixture
async def three_in_ram(
    tmp_path: Path, in_ram: InRam, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[Process]]:
    """Three that can be stopped in the middle."""
    monkeypatch.setattr(purge, "RETRY_S", 0.01)
    async with sharing(tmp_path, in_ram, clock, 3) as processes:
        yield processes


async def finished(*processes: Process) -> None:
    """Wait until no erasing is left to do."""
    while any(process.memory.pending_erasures() for process in processes):
        for process in processes:
            await process.hear()
        await asyncio.sleep(0.001)


async def begun(process: Process) -> None:
    """Wait until a process knows of an erasing."""
    while not process.memory.pending_erasures():
        await process.hear()
        await asyncio.sleep(0.001)


def shared_by(process: Process) -> SharedProcesses:
    """How a process on a real database sees the others."""
    assert isinstance(process.storage.processes, SharedProcesses)
    return process.storage.processes


async def _serve(process: Process) -> None:
    """Have a shard, as a bot does until it ends."""
    async with process.storage.processes.lease("shard/0/1"):
        await asyncio.Event().wait()


class Window(Derived):
    """What somebody said in a conversation, in the RAM of one process."""

    name = "a window"

    def __init__(self, subject: str) -> None:
        self.subject = subject

    def purge(self, purge: Purge, phase: Phase) -> Purged | None:
        there = phase == "ram" and purge.subject == self.subject
        return Purged(sessions=frozenset({SESSION})) if there else None


class Slow(Listener):
    """Takes its time with what other processes changed."""

    def __init__(self) -> None:
        self.hears, self.goes_on = asyncio.Event(), asyncio.Event()

    async def renewed(self, names: Collection[str]) -> None:
        self.hears.set()
        await self.goes_on.wait()


class TestErasing:
    async def test_leaves_nothing_in_the_store_in_ram_or_on_any_machine(
        self, shared: Shared, three: list[Process], clock: Clock
    ) -> None:
        here, there, other = three
        await here.remember(ANNS, WORDS)
        said = Response("key", "sha", "model", WORDS, clock.now, clock.now)
        for process in three:
            assert await process.known(ANNS) == [WORDS]
            await process.storage.conversations.responses.put(ANN, said)
            assert b"tulips" in process.on_this_machine()
        await there.sum_up(SESSION, f"Ann said: {WORDS}")
        await there.storage.cursors.put(f"people-{SESSION}", {"session": SESSION, "people": [ANNS]})
        assert "tulips" in (await other.storage.summaries.get(SESSION)).summary
        permissions = [process.storage.consent.ask(ANNS, clock.now) for process in three]
        assert all(one.holds for one in permissions)

        erased = await here.memory.erase(ANN)

        assert (erased.left, erased.waiting) == ((), False)
        assert b"tulips" not in shared.dump()
        assert ANNS not in shared.dump().decode("utf-8", "replace")
        for process, permission in zip(three, permissions, strict=True):
            assert b"tulips" not in process.on_this_machine()
            assert not permission.holds
            assert process.memory.erased_at(ANN) >= clock.now
            branches = process.memory.branches_in_ram(ANN)
            assert branches is None or not branches.last_ms
            assert (await process.storage.summaries.get(SESSION)).summary == ""
            assert await process.known(ANNS) == []

    async def test_removes_the_summaries_of_conversations_that_only_another_process_knows(
        self, shared: Shared, three: list[Process]
    ) -> None:
        here, there, other = three
        there.memory.join(Window(ANN))
        await other.sum_up(SESSION, f"Somebody said: {WORDS}")
        erased = await here.memory.erase(ANN)
        assert SESSION in erased.sessions
        assert b"tulips" not in shared.dump()
        assert (await other.storage.summaries.get(SESSION)).summary == ""
        await here.sum_up(SESSION, "Tea was discussed.")
        await other.hear()
        assert (await other.storage.summaries.get(SESSION)).summary == "Tea was discussed."

    async def test_that_one_process_could_not_finish_is_over_everywhere_when_another_one_has(
        self, shared: Shared, two: list[Process]
    ) -> None:
        here, there = two
        await here.remember(ANNS, WORDS)
        await here.memory.change("group-55", "learned", remember(WORDS), **{PEOPLE: [ANNS]})
        in_the_way = here.data / "cache" / "views" / "group-55.json"
        (in_the_way / "x").mkdir(parents=True)
        assert (await here.memory.erase(ANN)).left
        with pytest.raises(MemoryFault, match="could not be removed"):
            await here.memory.view("group-55")
        shutil.rmtree(in_the_way)
        async with asyncio.timeout(60):
            await finished(here, there)
        for process in two:
            assert await texts(process.memory, "group-55") == []
        assert b"tulips" not in shared.dump()

    async def test_of_two_people_at_once_makes_one_key(
        self, shared: Shared, three: list[Process], tmp_path: Path, clock: Clock
    ) -> None:
        here, there, _ = three
        await here.remember(ANNS, WORDS)
        await there.remember(BOBS, WORDS)
        await asyncio.gather(here.memory.erase(ANN), there.memory.erase(BOB), here.memory.erase("bot"))
        async with sharing(tmp_path / "later", shared, clock, 1) as (later,):
            for process in (*three, later):
                assert process.memory.erased_at(ANN) > 0
                assert process.memory.erased_at(BOB) > 0
        assert b"tulips" not in shared.dump()

    async def test_of_a_channel_waits_for_no_lock_that_it_holds_itself(
        self, shared: Shared, two: list[Process]
    ) -> None:
        here, there = two
        await here.memory.change("group-55", "learned", remember(WORDS), **{PEOPLE: [ANNS]})
        await there.memory.view("group-55")
        async with asyncio.timeout(20):
            assert not (await here.memory.erase("group-55")).left
        assert b"tulips" not in shared.dump()

    async def test_makes_a_key_only_where_no_other_process_made_one(self, three: list[Process]) -> None:
        marks = [Tombstones(process.memory.disk) for process in three]
        for one in marks:
            await in_thread(one.load)
        await in_thread(marks[0].add, ANN, NOW)
        await in_thread(marks[1].note, ANN, NOW + 1)
        await in_thread(marks[1].add, BOB, NOW)
        await in_thread(marks[2].load)
        assert (marks[2].erased_at(ANN), marks[2].erased_at(BOB)) == (NOW, NOW)

    async def test_ends_permissions_as_soon_as_its_tombstone_is_seen(
        self, three: list[Process], clock: Clock
    ) -> None:
        here, there, _ = three
        permission = there.storage.consent.ask(ANNS, clock.now)
        await in_thread(Tombstones(here.memory.disk).add, ANN, clock.now)
        await there.look("tombstones.jsonl")
        assert permission.erased

    async def test_lets_the_person_begin_anew_in_every_process(
        self, three: list[Process], clock: Clock
    ) -> None:
        here, there, _ = three
        await here.remember(ANNS, WORDS)
        await there.memory.erase(ANN)
        clock.forward(minutes=1)
        await here.hear()
        await here.remember(ANNS, "I like roses")
        for process in three:
            await process.hear()
            assert await process.known(ANNS) == ["I like roses"]

    async def test_ends_no_later_than_what_a_process_with_a_fast_clock_recorded(
        self, shared: Shared, three: list[Process], clock: Clock
    ) -> None:
        here, there, _ = three
        clock.now = NOW + 60_000
        await there.remember(ANNS, WORDS)
        clock.now = NOW
        assert (await here.memory.erase(ANN)).at >= NOW + 60_000


class TestAProcessThat:
    async def test_records_somebody_for_the_first_time_is_waited_for(
        self, in_ram: InRam, three_in_ram: list[Process], clock: Clock
    ) -> None:
        here, there, _ = three_in_ram
        there.member.disk.goes_on.clear()
        clock.now = NOW + 60_000  # its clock is fast
        recording = asyncio.create_task(there.remember(ANNS, WORDS))
        await in_thread(there.member.disk.appends.wait)
        clock.now = NOW
        erasing = asyncio.create_task(here.memory.erase(ANN))
        await begun(here)
        there.member.disk.goes_on.set()
        await recording
        erased = await erasing
        assert not erased.waiting
        assert here.memory.erased_at(ANN) == erased.at >= NOW + 60_000
        assert b"tulips" not in in_ram.dump()
        for process in three_in_ram:
            assert await process.known(ANNS) == []

    async def test_died_is_not_waited_for_and_its_late_write_is_refused(
        self, in_ram: InRam, three_in_ram: list[Process]
    ) -> None:
        here, there, _ = three_in_ram
        there.member.disk.goes_on.clear()
        recording = asyncio.create_task(there.remember(ANNS, WORDS))
        await in_thread(there.member.disk.appends.wait)
        await there.member.kill()
        assert not (await here.memory.erase(ANN)).waiting
        there.member.disk.goes_on.set()
        with pytest.raises(LeaseLost):
            await recording
        assert b"tulips" not in in_ram.dump()

    async def test_cannot_be_reached_keeps_it_from_being_done_until_it_hears_of_it(
        self, in_ram: InRam, three_in_ram: list[Process], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        here, there, _ = three_in_ram
        await there.remember(ANNS, WORDS)
        monkeypatch.setattr(erase, "OTHERS_S", 0.01)
        await there.member.cut_off()
        assert (await here.memory.erase(ANN)).waiting
        assert here.memory.pending_erasures() == [ANN]
        await there.member.cut_off(until=True)
        await finished(*three_in_ram)
        assert b"tulips" not in in_ram.dump()
        assert await there.known(ANNS) == []

    async def test_never_answers_again_is_waited_for_until_it_is_known_to_be_dead(
        self, in_ram: InRam, three_in_ram: list[Process], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        here, there, other = three_in_ram
        await there.remember(ANNS, WORDS)
        await other.member.kill()
        monkeypatch.setattr(erase, "OTHERS_S", 0.01)
        await there.member.cut_off()
        assert (await here.memory.erase(ANN)).waiting
        await there.member.kill()
        await finished(here)
        assert b"tulips" not in in_ram.dump()

    async def test_was_killed_in_the_middle_has_it_finished_by_another_one(
        self, in_ram: InRam, three_in_ram: list[Process]
    ) -> None:
        here, there, other = three_in_ram
        await here.remember(ANNS, WORDS)
        await other.member.cut_off()
        erasing = asyncio.create_task(here.memory.erase(ANN))
        await begun(there)
        await here.member.kill()
        await other.member.cut_off(until=True)
        await finished(there, other)
        assert b"tulips" not in in_ram.dump()
        assert not there.memory.pending_erasures()
        await asyncio.gather(erasing, return_exceptions=True)  # it is dead, whatever it believes

    async def test_is_killed_for_real_after_it_noted_the_erasing_is_succeeded(
        self, prepared_database: str, tmp_path: Path, clock: Clock
    ) -> None:
        shared = OnPostgres(prepared_database)
        async with sharing(tmp_path, shared, clock, 2) as two:
            await two[0].remember(ANNS, WORDS)
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", DIES, prepared_database, str(tmp_path / "child"), ANN, cwd=REPOSITORY
            )
            assert await child.wait() == -signal.SIGKILL
            while two[1].memory.erased_at(ANN) < 0:  # it may be finished by the time that this is known
                await two[1].hear()
            await finished(*two)
            assert b"tulips" not in shared.dump()
            assert await two[1].known(ANNS) == []

    async def test_starts_finishes_what_was_left_and_begins_with_empty_caches(
        self, in_ram: InRam, three_in_ram: list[Process], tmp_path: Path, clock: Clock
    ) -> None:
        here, _, other = three_in_ram
        await here.remember(ANNS, WORDS)
        await other.member.cut_off()
        erasing = asyncio.create_task(here.memory.erase(ANN))
        await begun(here)
        for process in three_in_ram:
            await process.member.kill()
        with pytest.raises(LeaseLost):
            await erasing
        cache = tmp_path / "later" / "p0" / "data" / "cache" / "responses" / f"{ANN}.json"
        cache.parent.mkdir(parents=True)
        cache.write_text(WORDS)
        async with sharing(tmp_path / "later", in_ram, clock, 1) as (later,):
            assert not cache.exists()
            assert later.memory.erased_at(ANN) > 0
            await finished(later)
            assert b"tulips" not in in_ram.dump()

    async def test_was_cut_off_while_somebody_was_erased_ends_and_has_nothing_when_it_starts_again(
        self,
        tmp_path: Path,
        clock: Clock,
        database: str,
        postgres: "Postgres",
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(memory_processes, "LEASE_S", LEASE_S)
        shared = OnPostgres(database)
        with Line(postgres.port) as line:
            here, there = await one_behind(line, database, tmp_path, clock)
            try:
                serving = asyncio.create_task(_serve(there))
                await until(lambda: "shard/0/1" in held(shared_by(there)))
                line.cut()
                await until(lambda: not there.storage.processes.in_touch)
                assert not (await here.memory.erase(ANN)).waiting  # it is known to be dead
                assert ANNS.encode() not in shared.dump()
                line.mend()
                async with asyncio.timeout(60):
                    with pytest.raises(LeaseLost):  # by which a bot ends, and it is started again
                        await serving
                assert not await there.storage.processes.claim("1")
                with pytest.raises(MemoryFault):  # what it knows to have been said may be from before
                    await there.remember(ANNS, WORDS)
                await there.close()
                there = shared.process(tmp_path / "there", clock)
                await there.start()
                assert b"tulips" not in there.on_this_machine()
                assert await there.known(ANNS) == []
            finally:
                await there.close()
                await here.close()

    async def test_died_keeps_no_name_of_whom_it_worked_for(
        self, tmp_path: Path, clock: Clock, prepared_database: str
    ) -> None:
        shared = OnPostgres(prepared_database)
        async with sharing(tmp_path, shared, clock, 1) as (here,):
            await here.remember(ANNS, WORDS)
            with registered(prepared_database) as (dead, rows):
                assert all(rows.take(name) for name in (f"facts/{ANNS}", "shard/0/2"))
                assert rows.beat(0, 0.0, [f"summary/discord:dm:{ANNS}"])
                silenced(prepared_database, dead.presence.process)
            await here.memory.erase(ANN)
            assert ANNS.encode() not in shared.dump()

    async def test_lost_its_shard_erases_nothing_of_what_was_said_since(
        self,
        tmp_path: Path,
        clock: Clock,
        database: str,
        postgres: "Postgres",
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(memory_processes, "LEASE_S", LEASE_S)
        with Line(postgres.port) as line:
            here, there = await one_behind(line, database, tmp_path, clock)
            try:
                serving = asyncio.create_task(_serve(there))
                await until(lambda: "shard/0/1" in held(shared_by(there)))
                async with here.storage.processes.lease(erase.LEASE):
                    erasing = asyncio.create_task(there.memory.erase(ANN))
                    await until(lambda: erase.LEASE in shared_by(there)._leases.waiting)
                    line.cut()
                    taking = asyncio.create_task(_serve(here))
                    await until(lambda: "shard/0/1" in held(shared_by(here)))
                    # It does by now what they asked for, and what they ask for next.
                    await here.memory.erase(ANN)
                    await here.remember(ANNS, "I like roses")
                line.mend()
                for work in (serving, erasing):
                    with pytest.raises(LeaseLost):
                        await work
                with pytest.raises(MemoryFault):
                    await there.remember(ANNS, WORDS)
                assert await here.known(ANNS) == ["I like roses"]
                assert not here.memory.pending_erasures()
                taking.cancel()
            finally:
                await there.close()
                await here.close()


async def one_behind(line: Line, database: str, folder: Path, clock: Clock) -> tuple[Process, Process]:
    """Two processes that know what Ann said; the second one's way to the database is the line."""
    here = OnPostgres(database).process(folder / "here", clock)
    there = OnPostgres(line.url(database)).process(folder / "there", clock)
    await here.start()
    await there.start()
    await here.remember(ANNS, WORDS)
    assert await there.known(ANNS) == [WORDS]
    said = Response("key", "sha", "model", WORDS, clock.now, clock.now)
    await there.storage.conversations.responses.put(ANN, said)
    return here, there


async def test_a_database_that_is_away_costs_the_bot_none_of_its_own_memory(three: list[Process]) -> None:
    async def away(subject: str) -> History:
        raise MemoryFault(f"the history of {subject} cannot be read") from OSError("nothing listens there")

    one = three[0]
    await one.remember(ANNS, WORDS)
    with pytest.raises(MemoryFault, match="cannot be read"):
        await one.memory.eraser.erase(ANN, NOW, away)
    assert await one.known(ANNS) == [WORDS]
    assert not one.memory.pending_erasures()

"""Several processes on one real PostgreSQL: claims, leases, what they hear of each other, losing touch."""

import asyncio
import os
import time
from collections.abc import Collection

import psycopg
import pytest

from discoclaw.core.errors import LeaseLost, MemoryFault
from discoclaw.memory import processes
from discoclaw.store.port import NO_LOG, seconds
from tests.memory.sharing import LEASE_S, One, held, lived_long, process, registered, silenced, until
from tests.servers.line import Line
from tests.servers.postgres import Postgres

NOTE = "notes.json"


async def test_a_message_is_claimed_by_one_process_for_good(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        every = [one, other] * 20
        claims = await asyncio.gather(*(each.processes.claim("123") for each in every))
        winners = {each.number for each, claimed in zip(every, claims, strict=True) if claimed}
        assert len(winners) == 1
        # Asked again, as after a lost answer, whoever has it still has it.
        assert claims.count(True) == 20
        assert await other.processes.claim("124")
        assert not await one.processes.claim("124")


async def test_what_a_process_claimed_that_ended_is_claimed_by_another(prepared_database: str) -> None:
    async with process(prepared_database) as other:
        async with process(prepared_database) as one:
            assert await one.processes.claim("123")
            assert not await other.processes.claim("123")
        assert await other.processes.claim("123")
        async with process(prepared_database) as third:
            assert not await third.processes.claim("123")


async def test_a_process_says_which_leases_others_have_and_who_they_are(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        async with one.processes.lease("shard/0/2"), one.processes.lease("mirror"):
            (found,) = (await other.processes.holders("shard/")).items()
            assert found[0] == "shard/0/2"
            assert found[1].startswith(f"process {one.number} on ") and found[1].endswith(
                f", pid {os.getpid()}"
            )
            assert await one.processes.holders("shard/") == {}
        assert await other.processes.holders("shard/") == {}


async def test_a_claim_lets_go_of_what_another_process_changed(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        one.disk.documents("").write(NOTE, b"1")
        other.disk.documents("").read(NOTE)
        await one.processes.all_know()
        other.heard.names.clear()
        one.disk.documents("").write(NOTE, b"2")
        await other.processes.claim("1", [NOTE, "ledger/user-1.jsonl"])
        assert set(other.heard.names) == {NOTE}  # the list of changes may tell of it as well


async def test_a_claim_tells_of_a_text_that_this_process_never_read(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        other.heard.may_go_on.clear()  # the list of changes is not taken up for now
        one.disk.documents("").write(NOTE, b"1")
        claiming = asyncio.create_task(other.processes.claim("1", [NOTE]))
        other.heard.may_go_on.set()
        assert await claiming
        assert NOTE in other.heard.names


async def test_what_a_part_could_not_let_go_of_is_told_again_though_it_was_read(
    prepared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        tries: list[str] = []

        async def renewed(names: Collection[str]) -> None:
            tries.extend(name for name in names if name == NOTE)
            await asyncio.to_thread(other.disk.documents("").read, NOTE)
            if len(tries) < 3:
                raise MemoryFault("its own disk is full")

        monkeypatch.setattr(other.heard, "renewed", renewed)
        one.disk.documents("").write(NOTE, b"1")
        await one.processes.all_know()
        assert tries == [NOTE] * 3


async def test_what_others_write_is_heard_by_all_and_ones_own_by_nobody(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        one.disk.documents("").write(NOTE, b"1")
        one.disk.log("ledger/user-1.jsonl").append(b"{}\n", after=NO_LOG)
        await one.processes.all_know()
        assert set(other.heard.names) == {NOTE, "ledger/user-1.jsonl"}
        assert one.heard.names == []


async def test_all_know_waits_for_a_process_that_is_slow_to_let_go(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        other.heard.may_go_on.clear()
        one.disk.documents("").write(NOTE, b"1")
        waiting = asyncio.create_task(one.processes.all_know())
        # Longer than a lease: a process that hangs but lives has to be waited for.
        await asyncio.wait([waiting], timeout=2 * LEASE_S)
        assert not waiting.done()
        other.heard.may_go_on.set()
        await waiting
        assert other.heard.names == [NOTE]


async def test_all_know_waits_for_what_a_dead_process_is_still_committing(prepared_database: str) -> None:
    async with process(prepared_database) as one:
        with registered(prepared_database) as (dead, _), psycopg.connect(prepared_database) as late:
            # As a COMMIT that waits for a standby: its process asked the fence while it lived.
            late.execute("INSERT INTO documents (name, content) VALUES (%s, '1')", (NOTE,))
            late.execute("SELECT fence(%s)", (dead.presence.process,))
            silenced(prepared_database, dead.presence.process)
            waiting = asyncio.create_task(one.processes.all_know())
            await asyncio.wait([waiting], timeout=2 * LEASE_S)
            assert not waiting.done()
            late.commit()
            await waiting
            assert one.disk.documents("").names() == [NOTE]
            with pytest.raises(LeaseLost):
                dead.documents("").write(NOTE, b"late")


async def test_what_could_not_be_let_go_of_does_not_count_as_known(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        other.heard.fails = 2
        one.disk.documents("").write(NOTE, b"1")
        await one.processes.all_know()
        assert (other.heard.fails, other.heard.names) == (0, [NOTE])


async def test_a_lease_is_had_by_one_process_and_shared_by_its_tasks(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        order: list[str] = []

        async def work(name: str) -> None:
            async with other.processes.lease("mirror"):
                order.append(name)

        async with one.processes.lease("mirror"), one.processes.free("mirror") as again:
            assert again
            async with other.processes.free("mirror") as free:
                assert not free
            waiting = asyncio.create_task(work("other"))
            await until(lambda: bool(other.processes._leases.waiting))
            order.append("one")
        await waiting
        assert order == ["one", "other"]
        async with one.processes.free("mirror") as free:
            assert free


async def test_a_process_that_ends_frees_its_leases_at_once(prepared_database: str) -> None:
    async with process(prepared_database, lease_s=600.0) as other:
        async with process(prepared_database, lease_s=600.0) as one:
            await one.processes.lease("shard/0/1").__aenter__()
        async with other.processes.free("shard/0/1") as free:
            assert free


async def test_a_process_that_ends_frees_its_shards_and_its_claims_at_one_moment(
    prepared_database: str,
) -> None:
    async def serve(one: One) -> None:
        async with one.processes.lease("shard/0/1"):
            await asyncio.Event().wait()

    url = prepared_database
    async with process(url, lease_s=600.0) as other, process(url, lease_s=600.0) as one:
        assert await one.processes.claim("7")
        serving = asyncio.create_task(serve(one))
        await until(lambda: bool(held(one.processes)))
        await one.processes.close()
        serving.cancel()  # not before, or others could have the shard, and not what was claimed there
        await asyncio.wait([serving])
        assert serving.cancelled()
        assert await other.processes.claim("7")
        async with other.processes.free("shard/0/1") as free:
            assert free


async def test_a_task_that_outlives_a_lease_may_write(prepared_database: str) -> None:
    async with process(prepared_database) as one:
        go_on = asyncio.Event()

        async def later() -> None:
            await go_on.wait()
            one.disk.documents("").write(NOTE, b"later")

        async with one.processes.lease("summary"):
            task = asyncio.create_task(later())
        go_on.set()
        await task
        assert one.disk.documents("").read(NOTE) == b"later"


async def test_without_an_answer_in_time_a_turn_goes_on_out_of_touch(
    database: str, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    async with process(database, lease_s=60.0) as one:
        assert one.processes.in_touch
        postgres.pause()
        assert await one.processes.claim("1")
        assert not one.processes.in_touch
        assert one.heard.lost == 1
        with pytest.raises(OSError, match="could not be reached lately"):
            one.disk.documents("").read(NOTE)
        async with one.processes.free("mirror") as free:
            assert not free
        assert await one.processes.claim("2")  # asks nobody
        postgres.resume()
        await until(lambda: one.processes.in_touch)
        assert one.disk.documents("").names() == []
    said = [record.getMessage() for record in caplog.records if "touch" in record.getMessage()]
    assert [one.partition(":")[0].partition(",")[0] for one in said] == [
        "out of touch with the store",
        "in touch with the store again",
    ]


async def test_after_a_split_network_what_changed_is_let_go_of_before_ram_is_used(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        async with process(database) as one, process(line.url(database)) as split:
            split.disk.documents("").names()
            line.cut()
            await until(lambda: not split.processes.in_touch)
            one.disk.documents("").write(NOTE, b"1")
            split.heard.may_go_on.clear()
            line.mend()
            await until(lambda: seconds() < split.disk.presence.until)
            await asyncio.wait([asyncio.create_task(split.heard.may_go_on.wait())], timeout=0.5)
            assert (
                not split.processes.in_touch
            )  # the others count on it, but it still has to let go of something
            assert await split.processes.claim("1")  # messages go on, and do not keep it from coming back
            split.heard.may_go_on.set()
            await until(lambda: split.processes.in_touch)
            assert split.heard.names == [NOTE]


async def test_a_process_that_was_cut_off_keeps_its_lease_if_nobody_wanted_it(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        async with process(line.url(database)) as one, process(database) as other:
            assert await one.processes.claim("1")
            async with one.processes.lease("shard/0/1"):
                line.cut()
                await until(lambda: not one.processes.in_touch)
                line.mend()
                await until(lambda: one.processes.in_touch)
                await asyncio.to_thread(one.disk.documents("").write, NOTE, b"1")
                assert not await other.processes.claim("1")


async def test_nobody_is_replaced_after_a_restart_of_the_database_that_all_lost(
    database: str, postgres: Postgres
) -> None:
    async with process(database) as one, process(database) as other, one.processes.lease("shard/0/1"):

        async def wants() -> None:
            async with other.processes.lease("shard/0/1"):
                pass

        wanting = asyncio.create_task(wants())
        await until(lambda: bool(other.processes._leases.waiting))
        postgres.kill9()
        await asyncio.sleep(2 * LEASE_S)
        postgres.start()
        await until(lambda: one.processes.in_touch and other.processes.in_touch)
        await asyncio.wait([wanting], timeout=LEASE_S)
        assert not wanting.done()
        await asyncio.to_thread(one.disk.documents("").write, NOTE, b"1")
        wanting.cancel()


async def test_a_lease_that_another_process_took_is_lost_with_what_was_done_under_it(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        async with process(database) as one, process(line.url(database)) as split:
            refused: list[BaseException] = []

            async def work() -> None:
                async with split.processes.lease("mirror"):
                    try:
                        await asyncio.Event().wait()
                    finally:  # as work that saves something before it ends
                        try:
                            split.disk.documents("").write(NOTE, b"late")
                        except OSError as error:
                            refused.append(error)

            working = asyncio.create_task(work())
            await until(lambda: bool(held(split.processes)))
            line.cut()
            async with one.processes.lease("mirror"):
                line.mend()
                with pytest.raises(LeaseLost):
                    await working
            assert len(refused) == 1
            assert one.disk.documents("").names() == []


async def test_whatever_was_changed_counts_as_changed_once_the_list_was_cut(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        async with process(database) as one, process(line.url(database)) as split:
            one.disk.documents("").write(NOTE, b"1")
            one.disk.documents("rolling").write("a.json", b"1")
            split.disk.documents("rolling").read("a.json")
            await one.processes.all_know()
            split.heard.names.clear()
            line.cut()
            await until(lambda: not split.processes.in_touch)
            one.disk.documents("rolling").write("a.json", b"2")
            postgres.execute(
                "UPDATE discoclaw SET forgotten = pg_current_xact_id()::text::bigint",
                database.rsplit("/")[-1],
            )
            postgres.execute("TRUNCATE changes", database.rsplit("/")[-1])
            line.mend()
            await until(lambda: split.processes.in_touch)
            assert set(split.heard.names) == {NOTE, "rolling/a.json"}


async def test_that_all_know_is_not_said_while_the_store_is_away(database: str, postgres: Postgres) -> None:
    async with process(database) as one:
        postgres.kill9()
        with pytest.raises(MemoryFault):
            await one.processes.all_know()
        postgres.start()
        await until(lambda: one.processes.in_touch)
        await one.processes.all_know()


def test_what_a_silent_process_has_is_free_once_another_one_replaced_it(prepared_database: str) -> None:
    with registered(prepared_database) as (_, rows), registered(prepared_database) as (second, other):
        stopped = rows._own
        assert rows.take("shard/0/2") and rows.take("mirror")
        assert rows.claim([1], []).messages
        silenced(prepared_database, stopped)
        assert not other.take("mirror")  # it is not known for how long all were silent
        assert not other.claim([1], []).messages
        lived_long(prepared_database, second.presence.process)
        assert other.take("mirror")
        assert other.claim([1], []).messages
        assert other.take("shard/0/2")
        assert not rows.beat(0, 0.0)
        for act in (lambda: rows.take("other"), lambda: rows.claim([2], [])):
            with pytest.raises(LeaseLost):
                act()
        rows.leave()
        assert not other.replace()


def test_what_nobody_needs_any_more_is_removed(prepared_database: str) -> None:
    with (
        registered(prepared_database) as (disk, rows),
        registered(prepared_database) as (_, dead),
        registered(prepared_database) as (_, waiting),
    ):
        assert dead.take("mirror")
        assert waiting.take("shard/0/1")
        assert dead.claim([1], []).messages
        for one in (dead, waiting):
            silenced(prepared_database, one._own, "4 days")
        lived_long(prepared_database, rows._own)
        with disk.database.connection() as db:
            db.execute("UPDATE claims SET at = clock_timestamp() - interval '4 days'")
            assert rows.claim([2], []).messages
            assert rows.prune() == 2
            assert db.execute("SELECT message FROM claims").fetchall() == [(2,)]
            rows.hide()
            assert db.execute("SELECT name FROM leases").fetchall() == [("shard/0/1",)]
            rows.prune()
            for table in ("SELECT id FROM processes ORDER BY id", "SELECT process FROM beats ORDER BY 1"):
                assert db.execute(table).fetchall() == [(rows._own,), (waiting._own,)]


async def test_a_claim_waits_for_a_store_that_is_back_soon(
    database: str, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ANSWER_S", 30.0)  # soon enough on any machine
    with Line(postgres.port) as line:
        async with process(database) as one, process(line.url(database), lease_s=60.0) as other:
            line.cut()
            claiming = asyncio.create_task(other.processes.claim("7"))
            await until(lambda: not other.processes.in_touch)
            line.mend()
            assert await claiming
            assert not await one.processes.claim("7")  # it was written down, and not only assumed


async def test_a_claim_waits_too_if_it_is_the_first_to_notice_the_loss(
    database: str, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ANSWER_S", 30.0)
    with Line(postgres.port) as line:
        async with process(database) as one, process(line.url(database)) as other:
            assert await one.processes.claim("7")
            line.cut()
            while other.disk.presence.in_touch:
                time.sleep(0.01)  # noqa: ASYNC251 - the event loop is told of it, and has not come to that yet
            line.mend()
            assert not await other.processes.claim("7")


async def test_a_process_whose_shard_another_one_has_claims_nothing_more(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        async with process(database) as one, process(line.url(database)) as split:

            async def serve() -> None:
                async with split.processes.lease("shard/0/1"):
                    await asyncio.Event().wait()

            serving = asyncio.create_task(serve())
            await until(lambda: bool(held(split.processes)))
            line.cut()
            async with one.processes.lease("shard/0/1"):
                line.mend()
                with pytest.raises(LeaseLost):
                    await serving
                assert not await split.processes.claim("7")
                assert await one.processes.claim("7")


async def test_once_nobody_counts_on_a_process_each_turn_drops_what_was_said(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        async with process(database), process(line.url(database)) as split:
            line.cut()
            await until(lambda: seconds() > split.disk.presence.until)
            before = split.heard.lost
            assert await split.processes.claim("7")
            assert split.heard.lost > before

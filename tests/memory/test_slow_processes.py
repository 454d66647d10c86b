"""Processes whose event loop deals late with what their thread has heard."""

import asyncio
from collections.abc import Collection

from tests.memory.sharing import process, until
from tests.servers.line import Line
from tests.servers.postgres import Postgres

NOTE = "notes.json"


async def test_a_claim_does_not_wait_for_a_text_that_its_turn_does_not_read(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        one.heard.may_go_on.clear()  # as an erasing that waits for a slow write
        other.disk.documents("").write(NOTE, b"1")
        await until(lambda: bool(one.processes._owed))
        assert await one.processes.claim("1", ["config.json"])
        assert one.processes.in_touch
        one.heard.may_go_on.set()
        await other.processes.all_know()
        assert one.heard.names == [NOTE]


async def test_a_lease_that_was_left_while_the_epoch_changed_is_free(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        async with process(database) as other, process(line.url(database)) as one:
            epoch, leases = one.epoch, one.processes._leases
            leave = asyncio.Event()

            async def work() -> None:
                async with one.processes.lease("mirror"):
                    await leave.wait()

            working = asyncio.create_task(work())
            await until(lambda: bool(leases.held()))
            one.heard.may_go_on.clear()
            moved = leases.moved
            entered: list[tuple[int, Collection[str]]] = []
            leases.moved = lambda *now: entered.append(now)  # type: ignore[method-assign]
            line.cut()
            await until(lambda: not one.processes.in_touch)
            line.mend()
            await until(lambda: one.epoch > epoch and bool(entered))
            leave.set()  # before the event loop hears of the new epoch
            await working
            moved(*entered[0])
            one.heard.may_go_on.set()
            async with asyncio.timeout(20), other.processes.lease("mirror"):
                pass

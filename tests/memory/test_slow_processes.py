"""Processes whose event loop deals late with what their thread has heard."""

import asyncio

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


async def test_a_lease_that_was_left_while_the_store_was_away_is_free_when_it_is_back(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        async with process(database, lease_s=60.0) as other, process(line.url(database), lease_s=60.0) as one:
            async with one.processes.lease("mirror"):
                line.cut()
            line.mend()
            taken, wanted = other.processes.lease("mirror"), one.processes.free("mirror")
            async with asyncio.timeout(20), taken, wanted as ours:
                assert not ours

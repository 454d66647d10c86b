"""Many messages at one instant: a process that waits for itself is not out of touch with its store."""

import asyncio
import time
from collections import Counter
from contextlib import ExitStack

import psycopg
import pytest

from discoclaw.memory import processes
from discoclaw.store.postgres.connection import MOST
from tests.memory.sharing import process
from tests.servers.line import Line
from tests.servers.postgres import Postgres

NOTE = "notes.json"
MESSAGES = 1_000


async def test_a_thousand_messages_are_each_claimed_once_far_from_the_database(
    database: str, postgres: Postgres
) -> None:
    with Line(postgres.port) as line:
        url = line.url(database)
        async with process(url, lease_s=60.0) as one, process(url, lease_s=60.0) as other:
            line.delay(0.1)
            both = [one, other]
            about = ["config.json", *(f"ledger/user-{number}.jsonl" for number in range(10))]
            asked = [each.processes.claim(str(number), about) for number in range(MESSAGES) for each in both]
            claimed = await asyncio.gather(*asked)
            assert [sum(pair) for pair in zip(claimed[::2], claimed[1::2], strict=True)] == [1] * MESSAGES
            assert [each.heard.lost for each in both] == [0, 0]


async def test_a_claim_tells_each_message_of_its_own_texts_alone(prepared_database: str) -> None:
    async with process(prepared_database) as one, process(prepared_database) as other:
        texts = [f"cursors/{number}.json" for number in range(20)]
        other.heard.may_go_on.clear()  # the list of changes is not taken up for now
        for text in texts:
            one.disk.documents("").write(text, b"1")
        told: list[set[str]] = []
        renewed = other.processes._renewed

        async def noted(names: set[str], about: set[str] | None = None) -> None:
            if about is not None:
                told.append(set(names))
            await renewed(names, about)

        other.processes._renewed = noted  # type: ignore[method-assign,assignment]
        other.heard.may_go_on.set()
        await asyncio.gather(*(other.processes.claim(str(n), [text]) for n, text in enumerate(texts)))
        assert told == [{text} for text in texts]


async def test_a_claim_does_not_wait_for_connections_that_are_all_in_use(prepared_database: str) -> None:
    async with process(prepared_database) as one:
        with ExitStack() as in_use:
            for _ in range(MOST):
                in_use.enter_context(one.disk.database.connection())
            assert all(await asyncio.gather(*(one.processes.claim(str(number)) for number in range(50))))
            assert one.processes.in_touch
        assert one.heard.lost == 0


async def test_an_event_loop_that_is_busy_for_long_does_not_lose_touch(
    prepared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ANSWER_S", 0.2)
    async with process(prepared_database, lease_s=60.0) as one:
        with psycopg.connect(prepared_database, autocommit=True) as db:
            claiming = asyncio.create_task(one.processes.claim("7"))
            for _ in range(5):
                await asyncio.sleep(0)  # until a thread asks
            while not db.execute("SELECT message FROM claims").fetchall():
                time.sleep(0.01)  # noqa: ASYNC251 - nothing else happens in the loop
            time.sleep(0.4)  # noqa: ASYNC251
        assert await claiming
        assert one.heard.lost == 0


async def test_while_the_server_has_no_connection_left_those_of_a_process_are_shared(
    database: str, postgres: Postgres
) -> None:
    async with process(database) as one:
        one.disk.documents("").write(NOTE, b"1")
        postgres.execute("ALTER ROLE discoclaw CONNECTION LIMIT 0")
        try:
            reads = (asyncio.to_thread(one.disk.documents("").read, NOTE) for _ in range(50))
            claims = (one.processes.claim(str(number)) for number in range(50))
            assert Counter(await asyncio.gather(*reads, *claims)) == {b"1": 50, True: 50}
            assert one.heard.lost == 0
        finally:
            postgres.execute("ALTER ROLE discoclaw CONNECTION LIMIT -1")

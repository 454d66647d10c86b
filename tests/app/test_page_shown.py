"""What the admin's page shows of a running bot, and how it changes settings."""

import asyncio
import os
from typing import Any

from pydantic import SecretStr

from tests.app.conftest import Start
from tests.app.models import Scripted
from tests.app.test_nostr import mirrored
from tests.app.visiting import visited
from tests.servers.nostr_relay import LyingRelay
from tests.session.scene import until

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "catch_up_hours": 0}


class TestConnections:
    async def test_are_processes_and_leases_of_a_shared_store(self, start: Start, database: str) -> None:
        async with visited(start, store=SecretStr(database), **QUIET) as (world, me):
            await world.ann.send(world.general, "hello")
            await me.enter()
            shown = await me.get("/connections")
            assert f"pid {os.getpid()}" in shown
            assert "Leases" in shown
            assert "withdrawals" in shown
            assert database not in me.source


class TestQueues:
    async def test_show_a_recovery_before_the_bot_answers_anybody(self, start: Start) -> None:
        async with LyingRelay(silent=True) as relay, visited(start, **QUIET) as (world, me):
            canonical = mirrored(relay, nostr_mode="canonical", nostr_timeout_s=60)
            starting = asyncio.create_task(world.restart(**canonical))
            await until(lambda: relay.peers > 0)
            assert "Recovery from the relays" in await me.enter()
            relay.lies.silent = False
            await relay.drop()
            await starting
            assert "Recovery" not in await me.get("/queues")


class TestAHangingDisk:
    async def test_costs_a_part_of_the_page_and_no_answer(self, start: Start) -> None:
        model = Scripted()
        async with visited(start, model, **QUIET) as (world, me):
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.bob.send(world.general, "hello")
            await world.settle()
            await me.enter()
            ledger = world.memory.ledger_folder / f"user-{world.ann.id}.jsonl"
            content = ledger.read_bytes()
            await world.restart()
            ledger.unlink()
            os.mkfifo(ledger)  # whoever opens it waits for somebody to write
            try:
                await me.enter()
                assert "The people could not be read within 2 s; the disk or the database may hang" in me.text
                assert "connected 1 server" in me.text
                before = len(model.requests)
                await world.bob.send(world.general, "and now?")
                assert len(model.requests) == before + 1
                assert "The people could not be read" in await me.get("/people")
            finally:
                await asyncio.to_thread(ledger.write_bytes, content)  # those who wait may go on
                ledger.unlink()
                ledger.write_bytes(content)

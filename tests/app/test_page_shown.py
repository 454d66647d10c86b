"""What the admin's page shows of a running bot, and how it changes settings."""

import asyncio
import logging
import os
import re
from typing import Any

from pydantic import SecretStr

from discoclaw.bot.whereabouts import MOST_CHANNELS
from discoclaw.core.errors import ModelNotFound
from discoclaw.core.live import GLOBAL, Scope
from discoclaw.core.usage import Payer
from discoclaw.jobs import at_work
from tests.app.conftest import GUILD_ID, Start, World
from tests.app.models import Scripted
from tests.app.test_live_config import Hand, edit
from tests.app.test_nostr import mirrored
from tests.app.test_usage_shown import written
from tests.app.visiting import Visitor, visited
from tests.core.calls import DAY, call
from tests.servers.nostr_relay import LyingRelay
from tests.session.scene import until

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "catch_up_hours": 0}


class TestConnections:
    async def test_are_servers_with_what_may_be_done_in_each_channel(self, start: Start) -> None:
        async with visited(start) as (world, me):
            await me.enter()
            shown = await me.get("/connections")
            assert f"1 server Home 2 members · {GUILD_ID} # general # dev # hidden (can't see)" in shown
            await world.restart(channels=frozenset({str(world.general.id)}))
            await me.enter()
            assert "# general # dev (hears nothing)" in await me.get("/connections")

    async def test_are_bounded_where_there_are_very_many(self, start: Start) -> None:
        async with visited(start) as (world, me):
            for number in range(MOST_CHANNELS):
                world.guild.create_text_channel(f"room-{number}")
            for number in range(26):
                world.env.create_guild(f"Server {number}")
            await world.env.settle()
            await me.enter()
            assert "27 servers" in await me.get("/connections")
            assert "and 3 more" in me.text
            assert "Page 1 of 2 More" in me.text
            assert "Back Page 2 of 2" in await me.get("/connections?page=2")
            for odd in ("0", "99999999999", "x", "-1", "%C2%B2"):
                assert " of 2" in await me.get(f"/connections?page={odd}")

    async def test_are_processes_and_leases_of_a_shared_store(self, start: Start, database: str) -> None:
        async with visited(start, store=SecretStr(database), **QUIET) as (world, me):
            await world.ann.send(world.general, "hello")
            await me.enter()
            shown = await me.get("/connections")
            assert f"pid {os.getpid()}" in shown
            assert "Leases" in shown
            assert "withdrawals" in shown
            assert database not in me.source


class TestPeople:
    async def test_are_counted_and_nobody_reads_what_they_said(self, start: Start) -> None:
        async with visited(start, **QUIET) as (world, me):
            await world.ann.send(world.general, "hello")
            for text in ("my cat is Tom", "I like tea"):
                await world.ann.send(world.general, f"!memory remember {text}")
            await world.ann.send(world.general, "!memory forget I like tea")
            await world.bob.send(world.general, "!memory remember I keep bees")
            await world.bob.send(world.general, "!memory optout")
            await world.settle()
            await me.enter()
            shown = await me.get("/people")
            assert f"ann {world.ann.id} 1 1 1 3" in shown
            assert f"name unknown {world.bob.id} opted out 1 0 1" in shown
            for path in ("/", "/people", "/queues", "/errors", "/settings", "/memories"):
                assert not [word for word in ("Tom", "tea", "bees") if word in await me.get(path)]

    async def test_who_were_erased_are_gone(self, start: Start) -> None:
        async with visited(start, **QUIET) as (world, me):
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            logging.getLogger("discoclaw").warning("user-%s: something failed", world.ann.id)
            await me.enter()
            assert str(world.ann.id) in await me.get("/people")
            assert str(world.ann.id) in await me.get("/errors")
            await world.ann.send(world.general, "!memory erase --yes")
            await world.settle()
            await world.restart()
            await me.enter()
            for path in ("/people", "/errors", "/"):
                assert str(world.ann.id) not in await me.get(path)

    async def test_see_their_own_memories_if_they_are_the_only_owner(self, start: Start) -> None:
        async with visited(start, **QUIET) as (world, me):
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.ann.send_dm("!memory remember my doctor is Dr. Weiss")
            await world.bob.send(world.general, "!memory remember I keep bees")
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await me.enter()
            shown = await me.get("/memories")
            assert "I like tea" in shown
            assert "1 more is private" in shown
            assert not [word for word in ("Weiss", "bees") if word in shown]
            await world.restart(owners=frozenset({str(world.ann.id), str(world.bob.id)}))
            await me.enter()
            await me.get("/memories")
            assert me.status == 404


class TestUsage:
    async def test_is_by_day_purpose_model_person_and_channel(self, start: Start) -> None:
        async with visited(start, **QUIET) as (world, me):
            await world.bob.send(world.general, "hello")
            await world.settle()
            now, bob = world._now(), Payer(str(world.bob.id), str(world.general.id), str(GUILD_ID))
            records = [
                call(now, 340_000_000, payer=bob),
                call(now - 9 * DAY, 1_000_000_000, payer=Payer(), purpose="tidying", model="haiku"),
                call(now - 40 * DAY, 5_000_000_000, payer=bob),
            ]
            await world.restart(meanwhile=lambda: written(world, records))
            await me.enter()
            shown = await me.get("/usage")
            assert "$0.34 today · 2 calls" in shown
            assert "$1.34 in the last 30 days · 3 calls" in shown
            for group in (
                "Purpose Cost Used tidying $1.00 1 call",
                "Person Cost Used nobody in particular $1.00 1 call · 1.0k tokens in, 200 out",
                f"bob {world.bob.id} $0.34 2 calls",
                "# general $0.34 2 calls",
                "Server Cost Used direct messages, and what the bot does by itself $1.00",
            ):
                assert group in shown
            assert me.source.count("<rect") == 30
            assert me.source.count('class="none"') == 28


class TestQueues:
    async def test_show_who_waits_and_the_background_work(self, start: Start) -> None:
        model = Scripted()
        async with visited(start, model, **QUIET) as (world, me):
            await world.ann.send(world.general, "hello")
            await world.settle()
            model.hold, model.asked = asyncio.Event(), asyncio.Event()
            talking = asyncio.create_task(world.ann.send(world.general, "again"))
            await model.asked.wait()
            # A page's request has the machine's clock and the bot the world's: what runs may look hanging.
            await world.app.client.talk.inboxes.settle()
            await me.enter()
            assert re.search(r" answers \d done 0 1 ", await me.get("/queues"))
            assert re.search(r" inboxes \d+ done 0 0 good ", me.text)
            assert all(f" {work.name} " in me.text for work in at_work())
            assert "questions 0" in me.text
            model.hold.set()
            await talking

    async def test_show_what_relays_lack(self, start: Start) -> None:
        async with LyingRelay() as relay, visited(start, **mirrored(relay, **QUIET)) as (world, me):
            await relay.kill()
            await world.ann.send(world.general, "!memory remember I like tea")
            await world.settle()
            await me.enter()
            shown = await me.get("/queues")
            assert f"outbox events for {relay.url}" in shown
            assert "warning not connected oldest from 0 s ago" in shown

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

    async def test_show_that_missed_messages_are_still_to_be_read(self, start: Start) -> None:
        async with visited(start, **{**QUIET, "catch_up_hours": 72}) as (world, me):
            await world.ann.send(world.general, "hello")

            def missed() -> None:
                world.env.backend.create_message(world.general.id, world.ann.id, "are you there?")
                world.env.inject_error("GET", "/channels/*/messages", status=500, times=None)

            await world.restart(meanwhile=missed)
            await me.enter()
            assert "Reading what was missed 0 so far; 0 of these messages ask for an answer" in me.text
            assert "1 channel still to read" in await me.get("/queues")


class TestErrors:
    async def test_are_those_of_the_log_each_once_with_its_number(self, start: Start) -> None:
        async with visited(start) as (_, me):
            log = logging.getLogger("discoclaw.test")
            for pause in (30, 60, 120):
                log.warning("the relay is gone, next try in %d s", pause)
            log.error("a job failed")
            log.info("nothing to see")
            await me.enter()
            assert "2 warnings and errors lately" in me.text
            shown = await me.get("/errors")
            assert "the relay is gone, next try in 120 s" in shown
            assert "3 times since" in shown
            assert shown.index("a job failed") < shown.index("the relay is gone")
            assert "nothing to see" not in shown


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


class Changing:
    """Somebody who changes settings on the page."""

    def __init__(self, world: World, me: Visitor) -> None:
        self.world, self.me = world, me

    async def sets(self, scope: str, field: str, value: str, **more: str) -> str:
        await self.me.get(f"/settings?scope={scope}")
        return await self.me.sends("/settings", scope=scope, field=field, value=value, **more)


class TestSettings:
    async def test_are_shown_with_where_they_come_from(self, start: Start) -> None:
        async with visited(start, context_history=12, **QUIET) as (world, me):
            edit(world, {"global": {"receipts": True}})
            await Hand(world).signs(Scope("group", str(world.general.id)), respond_mode="all")
            await me.enter()
            shown = await me.get(f"/settings?scope=group:{world.general.id}")
            assert "Settings for #general When I answer every message signed by the owner" in shown
            assert "with their key, so it can't be changed here" in shown
            assert "Messages I look back on 12 from DISCOCLAW_CONTEXT_HISTORY" in shown
            assert "Receipts on set in config.json, for everywhere" in shown
            assert "Listen here on default" in shown
            assert "Set so far global Receipts: on" in shown

    async def test_change_what_the_next_message_goes_by(self, start: Start) -> None:
        model = Scripted()
        async with visited(start, model, respond_mode="mention", **QUIET) as (world, me):
            await me.enter()
            change = Changing(world, me)
            here = f"group:{world.general.id}"
            assert "When I answer is now every message." in await change.sets(here, "respond_mode", "all")
            assert "When I answer every message set in config.json" in me.text
            await world.ann.send(world.general, "nobody is meant")
            assert len(model.requests) == 1
            assert "is the default again" in await change.sets(here, "respond_mode", "all", unset="1")
            await world.ann.send(world.general, "nobody is meant")
            assert len(model.requests) == 1
            prompt = "Be brief.\nBe kind to <b>newcomers</b>."
            await change.sets("global", "prompt", prompt)
            assert "Be kind to <b>newcomers</b>." in me.text
            assert world.app.storage.live.explain(GLOBAL)["prompt"].value == prompt

    async def test_name_the_only_owner_here_and_in_discord(self, start: Start, caplog: Any) -> None:
        caplog.set_level(logging.INFO)
        async with visited(start, **QUIET) as (world, me):
            await world.ann.send(world.general, "hello")
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await me.enter()
            await Changing(world, me).sets("global", "receipts", "on")
            assert "Receipts on set by ann , 0 s ago" in me.text
            changed = world.app.storage.people.changed_by.of(GLOBAL, "receipts", True)
            assert changed is not None and changed.by == str(world.ann.id)
            assert f"the owner, on the admin's page ({world.ann.id}) set receipts for global" in caplog.text

    async def test_name_nobody_where_it_is_not_known_who_it_was(self, start: Start, caplog: Any) -> None:
        caplog.set_level(logging.INFO)
        async with visited(start, **QUIET) as (world, me):
            await me.enter()
            changed_by = world.app.storage.people.changed_by
            changed_by.note(GLOBAL, "receipts", False, "7", 1)
            assert changed_by.of(GLOBAL, "receipts", False) is not None
            await Changing(world, me).sets("global", "receipts", "on")
            assert "somebody on the admin's page set receipts for global: None → True" in caplog.text
            assert changed_by.of(GLOBAL, "receipts", False) is changed_by.of(GLOBAL, "receipts", True) is None

    async def test_that_are_wrong_change_nothing_and_stay_in_the_form(self, start: Start) -> None:
        class Choosy(Scripted):
            async def stream(self, request: Any) -> Any:
                if request.model == "gone":
                    raise ModelNotFound("no such model")
                async for event in super().stream(request):
                    yield event

        async with visited(start, Choosy(), **QUIET) as (world, me):
            await me.enter()
            change = Changing(world, me)
            for field, value, said in (
                ("context_history", "many", "“Messages I look back on” must be a whole number from 1 to 200"),
                ("model", "gone", "the server doesn't give me the model"),
                ("nothing", "on", "there is no such setting here"),
                ("persona", "x", "there is no such setting here"),
            ):
                assert said in await change.sets("global", field, value)
                assert me.status == 422
                assert field in ("nothing", "persona") or f'value="{value}"' in me.source
            assert "unknown scope" in await me.sends("/settings", scope="x", field="receipts", value="on")
            await Hand(world).signs(GLOBAL, receipts=False)
            fixed = await me.sends("/settings", scope="global", field="receipts", value="on")
            assert "the owner has signed this" in fixed
            edit(world, {"version": 9})
            assert "config.json" in await change.sets("global", "approve", "on")
            assert me.status == 422

    async def test_of_a_channel_that_is_not_known_are_shown_with_a_warning(self, start: Start) -> None:
        async with visited(start, **QUIET) as (_, me):
            await me.enter()
            assert "This process doesn't know the channel 123." in await me.get("/settings?scope=group:123")
            assert "Settings for person 123" in await me.get("/settings?scope=user:123")
            assert "Settings for channel aaaa" in await me.get(f"/settings?scope=group:{'a' * 64}")

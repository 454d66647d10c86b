"""The admin's page of a running bot: who gets in, what nobody can do to it, what it shows and changes."""

import asyncio
import logging
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.contract.commands import typed
from tests.contract.live import edit, here, owned, signs, written
from tests.contract.meanwhile import until
from tests.contract.published import mirrored
from tests.contract.visitor import TOKEN, free_port, visited
from tests.contract.world import GUILD_ID, Start
from tests.servers.messages_api import failure
from tests.servers.nostr_relay import LyingRelay

PATHS = ["/", "/connections", "/usage", "/queues", "/people", "/memories", "/settings", "/errors"]
TRIES = 10
SECRET = "a-secret-that-nobody-may-see-4711"
HOSTILE = "<script>alert(1)</script>\u202e\u2066gnp.exe\u200b"
FORM = {"scope": "global", "field": "receipts", "value": "on"}


class TestTheWayIn:
    async def test_leads_past_the_token_with_a_form_or_an_address_that_nothing_keeps(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        async with visited(start) as (world, me):
            for path in PATHS:
                shown = await me.get(path)
                assert shown.startswith("DiscoClaw Who's there?") and "Home" not in shown
                assert str(world.general.id) not in me.source
            assert "Overview connected 1 server" in await me.enter()
            (cookie,) = me.http.cookie_jar
            assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
            assert 0 < int(cookie["max-age"]) <= 8 * 3600
            await me.get("/")
            assert "Who's there?" in await me.sends("/leave")
            me.http.cookie_jar.update_cookies({cookie.key: cookie.value})
            assert "Who's there?" in await me.get("/")  # the session has ended, whoever has its key
            async with me.raw("GET", f"/enter?token={TOKEN}", allow_redirects=False) as response:
                assert (response.status, response.headers["Location"]) == (303, "/")
                assert response.headers["Referrer-Policy"] == "no-referrer"
                assert TOKEN not in await response.text()
            assert "Overview" in await me.get("/") and TOKEN not in me.source + caplog.text

    async def test_is_in_the_log_where_no_token_is_set_and_another_after_each_start(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        paths = set()
        async with visited(start, page_token=None, log_level="WARNING") as (world, me):
            for _ in range(2):
                said = [one for one in caplog.messages if "the way into the admin's page" in one]
                (path,) = re.findall(r"http://127\.0\.0\.1:\d+(/enter\?token=\S+)", said[-1])
                paths.add(path)
                assert "Overview" in await me.get(path)
                assert path.partition("=")[2] not in await me.get("/errors")
                await world.restart()
                assert "Who's there?" in await me.get("/")  # sessions end with the process
        assert len(paths) == 2

    async def test_is_closed_to_a_wrong_token_and_after_many_to_any(self, start: Start) -> None:
        async with visited(start) as (_, me):
            for number in range(TRIES):
                path = f"/enter?token=wrong-{number}"
                said = await (me.get(path) if number % 2 else me.enter(f"wrong-{number}"))
                assert "That token isn't right" in said
            assert "too many wrong tokens" in await me.enter(TOKEN)
            assert "Who's there?" in await me.get("/")

    async def test_is_there_only_where_it_is_wanted_and_a_port_in_use_stops_the_start(
        self, start: Start
    ) -> None:
        port = free_port()
        async with start():
            with pytest.raises(OSError, match=r"refused|failed"):
                await asyncio.open_connection("127.0.0.1", port)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for setting, variable in (("page", "DISCOCLAW_PAGE"), ("metrics", "DISCOCLAW_METRICS")):
                with pytest.raises(
                    Exception, match=rf"^{variable}=127.0.0.1:{port}: can't listen there[^\n]*$"
                ):
                    async with start(**{setting: f"127.0.0.1:{port}"}):
                        pass


class TestAForgedRequest:
    async def test_by_another_name_or_page_sees_nothing(self, start: Start) -> None:
        async with visited(start) as (_, me):
            await me.enter()
            evil = [
                "evil.example",
                "127.0.0.1.evil.example",
                "localhost.evil:80",
                "localhost.",
                "[::2]",
                "0.0.0.0",
            ]
            for host in [*evil, ""]:
                for method, path in (("GET", "/people"), ("GET", "/style.css"), ("POST", "/enter")):
                    async with me.raw(method, path, headers={"Host": host}) as response:
                        assert response.status == 403, host
                        assert "names of this machine only" in await response.text()
            for host in ("localhost:99", "127.0.0.1", "127.1.2.3:8765", "[::1]:8765", "LOCALHOST"):
                assert "People" in await me.get("/people", headers={"Host": host}), host  # through a tunnel
            for site in ("cross-site", "same-site", "odd"):
                shown = await me.get("/people", headers={"Sec-Fetch-Site": site})
                assert (me.status, "People" in shown) == (403, False), site
                for _ in range(TRIES // 2):
                    await me.get("/enter?token=wrong", headers={"Sec-Fetch-Site": site})
            assert "Overview" in await me.enter()  # these weren't tries

    async def test_changes_nothing(self, start: Start) -> None:
        forged: list[dict[str, Any]] = [
            {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"},
            {"Sec-Fetch-Site": "none"},
            {"Sec-Fetch-Site": None, "Origin": "http://evil.example"},
            {"Sec-Fetch-Site": None, "Origin": "http://127.0.0.1:1"},
            {"Sec-Fetch-Site": None, "Origin": "null"},
            {"Sec-Fetch-Site": None, "Origin": None},
        ]
        async with visited(start) as (world, me):
            await me.enter()
            await me.get("/settings")
            others = me.csrf
            for headers in forged:
                shown = await me.post("/settings", {"csrf": others, **FORM}, headers=headers)
                assert me.status == 403, headers
                assert "not sent by the page" in shown or "Another page" in shown
            await me.enter()  # a session of its own
            await me.get("/settings")
            assert me.csrf != others
            for csrf in ({"csrf": others}, {"csrf": ""}, {}):
                assert "This form is out of date" in await me.post("/settings", {**csrf, **FORM})
                assert me.status == 403
                await me.post("/leave", csrf)
            assert written(world) == {}
            ours: list[dict[str, Any]] = [
                {"Sec-Fetch-Site": None},  # a browser that says its origin only
                {"Origin": "https://bot.example.org"},  # a proxy with a name of its own
            ]
            for headers, value in zip(ours, ("on", "off"), strict=True):
                await me.get("/settings")
                await me.post("/settings", {"csrf": me.csrf, **FORM, "value": value}, headers=headers)
                assert written(world)["global"] == {"receipts": value == "on"}

    async def test_that_is_odd_gets_a_page_that_says_so_and_is_no_error_of_ours(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        async with visited(start) as (_, me):
            await me.enter()
            await me.get("/settings")
            csrf = {"csrf": me.csrf}
            for status, said in {
                404: await me.get("/nothing"),
                405: await me.post("/people", csrf),
                413: await me.post("/settings", {**csrf, **FORM, "value": "x" * 100_000}),
                415: await me.post("/settings", csrf, headers={"Content-Type": "text/plain"}),
                400: await me.post("/settings", {**csrf, "scope": "global"}),
            }.items():
                assert "That didn't work" in said and f"Error {status}." in said and "Traceback" not in said
            for charset, token, status in (
                ("utf-8", b"\xff", 400),
                ("unicode_escape", b"\\ud800", 415),
                ("bogus", b"a", 415),
            ):
                kind = f"application/x-www-form-urlencoded; charset={charset}"
                await me.post("/enter", b"token=" + token, headers={"Content-Type": kind})
                assert me.status == status, charset
            port = int(me.address.rpartition(":")[2])
            for request in (
                f"GET /enter?token={TOKEN} HTTP/9.9\r\n\r\n",
                f"GET /enter?token={TOKEN} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                f"\x00\x01{TOKEN}\r\n\r\n",
                f"GET /enter?token={TOKEN} HTTP/1.1\r\nX: {'y' * 20_000}\r\n\r\n",
            ):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request.encode())
                async with asyncio.timeout(10):
                    answer = await reader.read()
                writer.close()
                assert b"Traceback" not in answer and b"Who's there" not in answer
            assert TOKEN not in await me.get("/errors") and TOKEN not in me.source
        assert TOKEN not in caplog.text and "Traceback" not in caplog.text


class TestEveryPage:
    async def test_forbids_what_it_does_not_need_and_has_no_script(self, start: Start) -> None:
        policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'"
        async with visited(start) as (_, me):
            seen = []
            for path in [*PATHS, "/enter", "/enter?token=x", "/nothing", "/style.css", "/icon.svg"]:
                async with me.raw("GET", path, allow_redirects=False) as response:
                    seen.append(response.headers)
            await me.enter()
            for path in [*PATHS, "/nothing"]:
                await me.get(path)
                seen.append(me.headers)
                assert re.findall(r"<script|<style|\sstyle=|\son\w+=|javascript:|https?://", me.source) == []
            for headers in seen:
                assert policy in headers["Content-Security-Policy"]
                assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
                assert headers["X-Content-Type-Options"] == "nosniff"
                assert "no-store" in headers["Cache-Control"]
                assert headers["Referrer-Policy"] in ("same-origin", "no-referrer")

    async def test_shows_names_as_text_and_no_secret(self, start: Start) -> None:
        secrets = {
            "token": SecretStr(SECRET),
            "api_key": SecretStr(f"{SECRET}-key"),
            "openai_key": SecretStr(f"{SECRET}-openai"),
            "transcribe_url": "http://ann:horse-battery@127.0.0.1:1",
        }
        log = logging.getLogger("discoclaw")
        async with visited(start, **secrets) as (world, me):
            world.guild.create_text_channel(HOSTILE)
            eve = world.guild.add_member(world.env.create_user(HOSTILE))
            await world.says(eve, world.general, "hello")
            await world.says(eve, world.general, f"!memory remember I like {HOSTILE}")
            await world.restart(owners=frozenset({str(eve.id)}))
            log.error("%s failed", HOSTILE)
            log.warning("%s and %s are secret, nsec1%s too", SECRET, TOKEN, "q" * 58)
            log.warning("http://ann:horse-battery@127.0.0.1:1 can't be reached")
            try:
                raise ValueError(f"{SECRET}-key")
            except ValueError:
                log.exception("a failure")
            await me.enter()
            for path in PATHS:
                shown = await me.get(path)
                if path in ("/connections", "/usage", "/people", "/memories", "/errors"):
                    assert "<script>alert(1)</script>gnp.exe" in shown, path
                assert "<script" not in me.source
                assert not {"\u202e", "\u2066", "\u200b"} & set(me.source)
                for secret in (SECRET, TOKEN, "horse-battery", "nsec1q"):
                    assert secret not in me.source, path
            assert "[secret] and [secret] are secret" in await me.get("/errors")
            assert "a failure (ValueError: [secret]" in me.text
            shown = await me.get("/settings?scope=%3Cscript%3Ealert(1)%3C/script%3E")
            assert (me.status, "unknown scope '<script>alert(1)</script>'" in shown) == (400, True)
            assert "<script" not in me.source


class TestWhatItShows:
    async def test_is_what_is_left_of_each_budget_and_whose_it_is(self, start: Start, tmp_path: Path) -> None:
        prices = tmp_path / "prices.toml"
        prices.write_text('["claude-sonnet-5-5"]\ninput = 1000\noutput = 1\n')
        budget = "person 1/day, channel 2/day, server 4/month, 5/day"
        async with visited(start, prices=prices, budget=budget) as (world, me):
            await typed(world, "remember I like tea")  # which makes their name known
            await world.says(world.ann, world.general, "hello")
            await me.enter()
            usage = await me.get("/usage")
            for whose in (f"person ann {world.ann.id}", f"channel #general {world.general.id}"):
                assert f"{whose} , today" in usage
            assert f"server Home {GUILD_ID} , this month" in usage and "everybody together, today" in usage
            assert "$0.99 of $1.00" in usage

    async def test_are_connections_people_usage_queues_and_errors_but_nothing_that_was_said(
        self, start: Start
    ) -> None:
        log = logging.getLogger("discoclaw.test")
        async with visited(start, auto_save="dm") as (world, me):
            for text in ("my cat is Tom", "I like tea"):
                await typed(world, f"remember {text}")
            await typed(world, "forget I like tea")
            await typed(world, "remember my doctor is Dr. Weiss", privately=True)
            await typed(world, "remember I keep bees", world.bob)
            await typed(world, "optout", world.bob)
            await world.says(world.ann, world.general, "hello")
            await me.enter()
            connections = await me.get("/connections")
            assert f"1 server Home 2 members · {GUILD_ID} # general # dev # hidden (can't see)" in connections
            people = await me.get("/people")
            assert re.search(rf"ann {world.ann.id} 2 1 1 \d", people)
            assert f"name unknown {world.bob.id} opted out 1 0 1" in people
            overview = await me.get("/")
            tile = re.search(r"([\d,]+) waiting in queues", overview)
            health = re.search(r"none of them hangs; (\d+) jobs? waiting", overview)
            assert tile and health and tile[1] == health[1] == "0"
            assert "questions 0" in await me.get("/queues")
            usage = await me.get("/usage")
            assert "1 call" in usage and "#general" in usage and me.source.count("<rect") == 30
            assert "Purpose Cost Calls Input Cached Output answers free 1 10 0 5" in usage
            settings = await me.get("/settings")
            assert "Archive on for direct messages" in settings and "Model sonnet" in settings
            for pause in (30, 60, 120):
                log.warning("the relay is gone, next try in %d s", pause)
            log.error("user-%s: a job failed", world.ann.id)
            log.info("nothing to see")
            errors = await me.get("/errors")
            assert "the relay is gone, next try in 120 s" in errors and "3 times since" in errors
            assert errors.index("a job failed") < errors.index("the relay is gone")
            assert "nothing to see" not in errors
            for path in PATHS:
                assert not [word for word in ("Tom", "tea", "bees", "Weiss") if word in await me.get(path)], (
                    path
                )
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await me.enter()
            mine = await me.get("/memories")  # of the only owner
            assert "my cat is Tom" in mine and "1 more is private" in mine
            assert not [word for word in ("Weiss", "bees") if word in mine]
            await world.restart(owners=frozenset({str(world.ann.id), str(world.bob.id)}))
            await me.enter()
            await me.get("/memories")
            assert me.status == 404
            await typed(world, "erase --yes")
            await world.settle()
            await world.restart(owners=frozenset())
            await me.enter()
            for path in ("/people", "/errors", "/"):
                assert str(world.ann.id) not in await me.get(path)

    async def test_is_bounded_where_there_is_very_much(self, start: Start) -> None:
        async with visited(start) as (world, me):
            for number in range(60):
                world.guild.create_text_channel(f"room-{number}")
            for number in range(26):
                world.env.create_guild(f"Server {number}")
            await world.env.settle()
            await me.enter()
            assert "27 servers" in await me.get("/connections") and "and 3 more" in me.text
            assert "Page 1 of 2 More" in me.text
            assert "Back Page 2 of 2" in await me.get("/connections?page=2")
            for odd in ("0", "99999999999", "x", "-1", "%C2%B2"):
                assert " of 2" in await me.get(f"/connections?page={odd}")

    async def test_is_what_relays_lack_and_what_is_still_to_be_read(self, start: Start) -> None:
        async with LyingRelay() as relay, visited(start, **owned(relay), catch_up_hours=72) as (world, me):
            await world.says(world.ann, world.general, "hello")
            await relay.kill()
            await typed(world, "remember I like tea")
            await world.settle()
            await me.enter()
            queues = await me.get("/queues")
            assert f"outbox events for {relay.url}" in queues
            assert "warning not connected oldest from 0 s ago" in queues

            def missed() -> None:
                world.env.backend.create_message(world.general.id, world.ann.id, "are you there?")
                world.env.inject_error("GET", "/channels/*/messages", status=500, times=None)

            await world.restart(meanwhile=missed)
            await me.enter()
            assert "Reading what was missed 0 so far; 0 of these messages ask for an answer" in me.text
            assert "1 channel still to read" in await me.get("/queues")

    async def test_is_a_recovery_before_anybody_is_answered_and_what_a_hanging_disk_leaves(
        self, start: Start
    ) -> None:
        async with LyingRelay(no_eose=True) as relay, visited(start) as (world, me):
            await world.remember(world.ann, "I like tea")
            ledger = world.data / "memory" / "ledger" / f"user-{world.ann.id}.jsonl"
            content = ledger.read_bytes()
            canonical = {**mirrored(relay), "nostr_mode": "canonical", "nostr_timeout_s": 60}
            starting = asyncio.create_task(world.restart(**canonical))
            await until(lambda: relay.peers > 0)
            async with asyncio.timeout(20):  # the relay is known a moment before the recovery begins
                while "Recovery from the relays" not in await me.enter():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            relay.lies.no_eose = False
            await relay.drop()
            await starting
            await me.enter()
            assert "Recovery" not in await me.get("/queues")
            await world.restart(nostr_relays=())
            ledger.unlink()
            os.mkfifo(ledger)  # whoever opens it waits for somebody to write
            try:
                told = "The people could not be read within 2 s; the disk or the database may hang"
                assert told in await me.enter() and "connected 1 server" in me.text
                assert await world.says(world.bob, world.general, "and now?") == "ok"
                assert "The people could not be read" in await me.get("/people")
            finally:
                await asyncio.to_thread(ledger.write_bytes, content)  # those who wait may go on
                ledger.unlink()
                ledger.write_bytes(content)


class TestSettings:
    async def test_change_what_the_next_message_goes_by_and_name_who_did_it(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with visited(start, respond_mode="mention", context_history=12) as (world, me):
            edit(world, {"global": {"receipts": True}})
            await me.enter()
            place = here(world)
            shown = await me.get(f"/settings?scope={place}")
            assert "Messages I look back on 12 from DISCOCLAW_CONTEXT_HISTORY" in shown
            assert "Receipts on set in config.json, for everywhere" in shown
            assert "Listen here on default" in shown and "Set so far global Receipts: on" in shown
            assert "When I answer is now every message." in await me.sets(place, "respond_mode", "all")
            assert "When I answer every message set in config.json" in me.text
            await world.says(world.ann, world.general, "nobody is meant")
            assert len(world.turns()) == 1
            assert "is the default again" in await me.sets(place, "respond_mode", "all", unset="1")
            await world.says(world.ann, world.general, "nobody is meant")
            assert len(world.turns()) == 1
            prompt = "Be brief.\nBe kind to <b>newcomers</b>."
            await me.sets("global", "prompt", prompt)
            assert "Be kind to <b>newcomers</b>." in me.text and written(world)["global"]["prompt"] == prompt
            assert "somebody on the admin's page set prompt for global" in caplog.text
            await world.restart(owners=frozenset({str(world.ann.id)}))
            await me.enter()
            await me.sets("global", "receipts", "off")
            assert "Receipts off set by ann , 0 s ago" in me.text
            assert f"the owner, on the admin's page ({world.ann.id}) set receipts for global" in caplog.text
            assert "This process doesn't know the channel 123." in await me.get("/settings?scope=group:123")
            assert "Settings for person 123" in await me.get("/settings?scope=user:123")
            assert "Settings for channel aaaa" in await me.get(f"/settings?scope=group:{'a' * 64}")

    async def test_that_are_wrong_or_signed_change_nothing_and_stay_in_the_form(self, start: Start) -> None:
        async with LyingRelay() as relay, visited(start, **owned(relay)) as (world, me):
            await me.enter()
            world.server.script(failure(404, "not_found_error", "model: gone"))
            for field, value, said in (
                ("model", "gone", "the server doesn't give me the model"),
                ("context_history", "many", "“Messages I look back on” must be a whole number from 1 to 200"),
                ("nothing", "on", "there is no such setting here"),
                ("persona", "x", "there is no such setting here"),
            ):
                assert said in await me.sets("global", field, value)
                assert me.status == 422
                assert field in ("nothing", "persona") or f'value="{value}"' in me.source
            assert "unknown scope" in await me.sends("/settings", scope="x", field="receipts", value="on")
            await signs(world, relay, "global", "receipts=false")
            assert "with their key, so it can't be changed here" in await me.get("/settings?scope=global")
            fixed = await me.sends("/settings", **FORM)
            assert "the owner has signed this" in fixed
            edit(world, {"version": 9})
            assert "config.json" in await me.sets("global", "approve", "on") and me.status == 422
            assert written(world) == {"version": 9}

"""The admin's page of a running bot, by real HTTP: who gets in, and what nobody can do to it."""

import asyncio
import logging
import re
import socket
from pathlib import Path

import pytest
from pydantic import SecretStr

from discoclaw.app import build
from discoclaw.app.page import Page
from discoclaw.core.errors import SettingsError
from discoclaw.core.live import GLOBAL
from discoclaw.core.usage import Payer
from discoclaw.models.offline.model import OfflineModel
from discoclaw.settings_types import Listen
from discoclaw.web.page.access import TRIES
from discoclaw.web.page.guard import HEADERS, MOST_BYTES
from tests.app.conftest import Start, settings_for
from tests.app.test_usage_shown import written
from tests.app.visiting import TOKEN, visited
from tests.core.calls import call

PATHS = ["/", "/connections", "/usage", "/queues", "/people", "/memories", "/settings", "/errors"]
SECRET = "a-secret-that-nobody-may-see-4711"
HOSTILE = "<script>alert(1)</script>\u202e\u2066gnp.exe\u200b"


class TestByDefault:
    async def test_there_is_no_page(self, start: Start) -> None:
        async with start() as world:
            assert world.app.feature(Page).services == ()

    async def test_a_port_in_use_stops_the_start_with_one_line(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            settings = settings_for(tmp_path, page=Listen("127.0.0.1", port))
            with pytest.raises(SettingsError, match=f"DISCOCLAW_PAGE=127.0.0.1:{port}: can't listen there"):
                async with build(settings, model=OfflineModel()):
                    pass


class TestTheWayIn:
    @pytest.mark.parametrize("path", PATHS)
    async def test_leads_past_the_token(self, start: Start, path: str) -> None:
        async with visited(start) as (world, me):
            shown = await me.get(path)
            assert shown.startswith("DiscoClaw Who's there?")
            assert str(world.general.id) not in me.source
            assert "Home" not in shown

    async def test_is_a_form(self, start: Start) -> None:
        async with visited(start) as (_, me):
            assert "Overview connected 1 server" in await me.enter()
            assert await me.get("/people") != ""
            cookie = me.cookies[0]
            assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
            assert 0 < int(cookie["max-age"]) <= 8 * 3600

    async def test_is_an_address_that_nothing_keeps(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        async with visited(start) as (_, me):
            async with me.raw("GET", f"/enter?token={TOKEN}", allow_redirects=False) as response:
                assert (response.status, response.headers["Location"]) == (303, "/")
                assert response.headers["Referrer-Policy"] == "no-referrer"
                assert TOKEN not in await response.text()
            assert "Overview" in await me.get("/")
            assert TOKEN not in me.source
            assert TOKEN not in caplog.text

    async def test_is_in_the_log_where_no_token_is_set(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        tokens = []
        async with visited(start, page_token=None, log_level="WARNING") as (world, me):
            for _ in range(2):
                said = [one for one in caplog.messages if "the way into the admin's page" in one]
                (path,) = re.findall(r"http://127\.0\.0\.1:\d+(/enter\?token=\S+)", said[-1])
                tokens.append(path)
                assert "Overview" in await me.get(path)
                assert tokens[-1].partition("=")[2] not in await me.get("/errors")
                await world.restart()
                assert "Who's there?" in await me.get("/")  # sessions end with the process
        assert len(set(tokens)) == 2

    async def test_is_closed_to_a_wrong_token_and_after_many_to_any(self, start: Start) -> None:
        async with visited(start) as (_, me):
            for number in range(TRIES):
                path = f"/enter?token=wrong-{number}"
                said = await (me.get(path) if number % 2 else me.enter(f"wrong-{number}"))
                assert "That token isn't right" in said
            assert "too many wrong tokens" in await me.enter(TOKEN)
            assert "Who's there?" in await me.get("/")

    async def test_leads_out_again(self, start: Start) -> None:
        async with visited(start) as (_, me):
            await me.enter()
            kept = {one.key: one.value for one in me.http.cookie_jar}
            assert "Who's there?" in await me.sends("/leave")
            me.http.cookie_jar.update_cookies(kept)
            assert "Who's there?" in await me.get("/")  # the session has ended, whoever has its key


class TestAForgedRequest:
    @pytest.mark.parametrize(
        "host",
        ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "localhost.", "[::2]", "0.0.0.0", ""],
    )
    async def test_by_another_name_of_this_machine_sees_nothing(self, start: Start, host: str) -> None:
        async with visited(start) as (_, me):
            await me.enter()
            for method, path in (("GET", "/people"), ("GET", "/style.css"), ("POST", "/enter")):
                async with me.raw(method, path, headers={"Host": host}) as response:
                    assert response.status == 403
                    assert "names of this machine only" in await response.text()

    @pytest.mark.parametrize(
        "host", ["localhost:99", "127.0.0.1", "127.1.2.3:8765", "[::1]:8765", "LOCALHOST"]
    )
    async def test_is_none_through_a_tunnel(self, start: Start, host: str) -> None:
        async with visited(start) as (_, me):
            await me.enter()
            assert "People" in await me.get("/people", headers={"Host": host})

    @pytest.mark.parametrize("site", ["cross-site", "same-site", "odd"])
    async def test_by_another_page_sees_nothing_and_tries_nothing(self, start: Start, site: str) -> None:
        async with visited(start) as (_, me):
            await me.enter()
            shown = await me.get("/people", headers={"Sec-Fetch-Site": site})
            assert (me.status, "People" in shown) == (403, False)
            for _ in range(TRIES):
                await me.get("/enter?token=wrong", headers={"Sec-Fetch-Site": site})
            assert "Overview" in await me.enter()  # these were no tries

    @pytest.mark.parametrize(
        "headers",
        [
            {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"},
            {"Sec-Fetch-Site": "none"},
            {"Sec-Fetch-Site": None, "Origin": "http://evil.example"},
            {"Sec-Fetch-Site": None, "Origin": "http://127.0.0.1:1"},
            {"Sec-Fetch-Site": None, "Origin": "null"},
            {"Sec-Fetch-Site": None, "Origin": None},
        ],
    )
    async def test_changes_nothing(self, start: Start, headers: dict[str, str | None]) -> None:
        async with visited(start) as (world, me):
            await me.enter()
            await me.get("/settings")
            form = {"csrf": me.csrf, "scope": "global", "field": "receipts", "value": "on"}
            shown = await me.post("/settings", form, headers=headers)
            assert (me.status, "not sent by the page" in shown or "Another page" in shown) == (403, True)
            assert world.app.storage.live.overrides() == []

    @pytest.mark.parametrize(
        "headers",
        [
            pytest.param({"Sec-Fetch-Site": None}, id="a browser that says its origin only"),
            pytest.param({"Origin": "https://bot.example.org"}, id="a proxy with a name of its own"),
        ],
    )
    async def test_is_none_from_the_page_itself(self, start: Start, headers: dict[str, str | None]) -> None:
        async with visited(start) as (world, me):
            await me.enter()
            await me.get("/settings")
            form = {"csrf": me.csrf, "scope": "global", "field": "receipts", "value": "on"}
            await me.post("/settings", form, headers=headers)
            assert world.app.storage.live.explain(GLOBAL)["receipts"].value is True

    async def test_lacks_the_token_of_its_session(self, start: Start) -> None:
        async with visited(start) as (world, me):
            await me.enter()
            await me.get("/settings")
            others = me.csrf
            await me.enter()  # a session of its own
            await me.get("/settings")
            assert me.csrf != others
            for csrf in ({"csrf": others}, {"csrf": ""}, {}):
                form = {**csrf, "scope": "global", "field": "receipts", "value": "on"}
                assert "This form is out of date" in await me.post("/settings", form)
                assert me.status == 403
                await me.post("/leave", csrf)
            assert world.app.storage.live.overrides() == []
            assert "Settings" in await me.get("/settings")


class TestAnOddRequest:
    async def test_gets_a_page_that_says_so(self, start: Start) -> None:
        async with visited(start) as (_, me):
            await me.enter()
            await me.get("/settings")
            csrf = {"csrf": me.csrf}
            long = {**csrf, "scope": "global", "field": "prompt", "value": "x" * MOST_BYTES}
            for status, said in {
                404: await me.get("/nothing"),
                405: await me.post("/people", csrf),
                413: await me.post("/settings", long),
                415: await me.post("/settings", csrf, headers={"Content-Type": "text/plain"}),
                400: await me.post("/settings", {**csrf, "scope": "global"}),
            }.items():
                assert "That didn't work" in said
                assert f"Error {status}." in said
                assert "Traceback" not in said

    @pytest.mark.parametrize(
        ("charset", "token", "status"),
        [("utf-8", b"\xff", 400), ("unicode_escape", b"\\ud800", 415), ("bogus", b"a", 415)],
    )
    async def test_with_a_form_in_another_encoding_is_no_error_of_ours(
        self, start: Start, caplog: pytest.LogCaptureFixture, charset: str, token: bytes, status: int
    ) -> None:
        async with visited(start) as (_, me):
            kind = f"application/x-www-form-urlencoded; charset={charset}"
            await me.post("/enter", b"token=" + token, headers={"Content-Type": kind})
            assert me.status == status
        assert "Traceback" not in caplog.text

    @pytest.mark.parametrize(
        ("more", "body"),
        [("Content-Length: 100", b"token=a"), ("Content-Length: 9\r\nContent-Encoding: gzip", b"x" * 9)],
    )
    async def test_with_a_form_that_breaks_off_is_no_error_of_ours(
        self, start: Start, caplog: pytest.LogCaptureFixture, more: str, body: bytes
    ) -> None:
        async with visited(start) as (world, me):
            _, writer = await asyncio.open_connection("127.0.0.1", world.app.feature(Page).listener.port)
            head = f"POST /enter HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n{more}\r\n"
            kind = "Content-Type: application/x-www-form-urlencoded"
            writer.write(f"{head}{kind}\r\n\r\n".encode() + body)
            await writer.drain()
            await me.get("/enter")  # the form is being read by then
            writer.close()
            await writer.wait_closed()
            assert "Overview" in await me.enter()
            assert "form did not arrive" not in await me.get("/errors")
        assert [one for one in caplog.records if one.levelno >= logging.WARNING and one.exc_info] == []

    async def test_that_is_no_http_says_and_keeps_nothing(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        async with visited(start) as (world, me):
            port = world.app.feature(Page).listener.port
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
                assert b"Traceback" not in answer
                assert b"Who's there" not in answer
            await me.enter()
            assert TOKEN not in await me.get("/errors")
            assert TOKEN not in me.source
            assert TOKEN not in caplog.text


class TestEveryResponse:
    async def test_has_headers_that_forbid_what_is_not_needed(self, start: Start) -> None:
        async with visited(start) as (_, me):
            seen = []
            for path in [*PATHS, "/enter", "/enter?token=x", "/nothing", "/style.css", "/icon.svg"]:
                async with me.raw("GET", path, allow_redirects=False) as response:
                    seen.append(response.headers)
            await me.enter()
            for path in [*PATHS, "/nothing"]:
                await me.get(path)
                seen.append(me.headers)
            for headers in seen:
                ours = {name: value for name, value in HEADERS.items() if name != "Referrer-Policy"}
                assert {name: headers.get(name) for name in ours} == ours
                assert headers["Referrer-Policy"] in ("same-origin", "no-referrer")
            assert (
                "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'"
                in HEADERS["Content-Security-Policy"]
            )

    async def test_has_neither_scripts_nor_styles_of_its_own(self, start: Start) -> None:
        async with visited(start) as (_, me):
            await me.enter()
            for path in PATHS:
                await me.get(path)
                assert re.findall(r"<script|<style|\sstyle=|\son\w+=|javascript:|https?://", me.source) == []


class TestNames:
    async def test_of_people_and_places_are_shown_as_text(self, start: Start) -> None:
        async with visited(start, catch_up_hours=0) as (world, me):
            world.guild.create_text_channel(HOSTILE)
            eve = world.guild.add_member(world.env.create_user(HOSTILE))
            await eve.send(world.general, "hello")
            await eve.send(world.general, f"!memory remember I like {HOSTILE}")
            await world.settle()
            written(world, [call(world._now(), payer=Payer(str(eve.id)), model=HOSTILE)])
            logging.getLogger("discoclaw").error("%s failed", HOSTILE)
            await world.restart(owners=frozenset({str(eve.id)}))
            logging.getLogger("discoclaw").error("%s failed", HOSTILE)
            await me.enter()
            shown = {path: await me.get(path) for path in PATHS}
            for path in ("/connections", "/usage", "/people", "/memories", "/errors"):
                assert "<script>alert(1)</script>gnp.exe" in shown[path], path
            for path in PATHS:
                await me.get(path)
                assert "<script" not in me.source
                assert not {"\u202e", "\u2066", "\u200b"} & set(me.source)

    async def test_in_an_address_are_shown_as_text(self, start: Start) -> None:
        async with visited(start) as (_, me):
            await me.enter()
            shown = await me.get("/settings?scope=%3Cscript%3Ealert(1)%3C/script%3E")
            assert (me.status, "unknown scope '<script>alert(1)</script>'" in shown) == (400, True)
            assert "<script" not in me.source


class TestSecrets:
    async def test_are_on_no_page(self, start: Start) -> None:
        secrets = {
            "token": SecretStr(SECRET),
            "api_key": SecretStr(f"{SECRET}-key"),
            "openai_key": SecretStr(f"{SECRET}-openai"),
            "embedding_url": "http://bot:pass%20word@127.0.0.1:9/v1",
            "transcribe_url": "http://ann:horse-battery@127.0.0.1:1",
        }
        async with visited(start, **secrets) as (_, me):
            for level in (logging.WARNING, logging.ERROR):
                log = logging.getLogger("discoclaw")
                log.log(level, "%s and %s are secret, nsec1%s too", SECRET, TOKEN, "q" * 58)
            logging.getLogger("discoclaw").error("%s and %s", "pass%20word", "pass word")
            try:
                raise ValueError(f"{SECRET}-key")
            except ValueError:
                log.exception("a failure")
            log.warning("http://ann:horse-battery@127.0.0.1:1 can't be reached")
            await me.enter()
            for path in PATHS:
                await me.get(path)
                assert SECRET not in me.source and "horse-battery" not in me.source
                assert TOKEN not in me.source
            assert "[secret] and [secret] are secret" in await me.get("/errors")
            assert "a failure (ValueError: [secret]" in me.text
            assert "nsec1q" not in me.text
            assert "pass%20word" not in me.text and "pass word" not in me.text

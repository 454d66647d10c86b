"""One relay: what is sent gets its answer, what comes is checked, and a connection comes back."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import RelayRefused, RelayUnreachable, SettingsError
from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.relays.relay import Relay, display_url, relay_url
from tests.nostr.relay_kit import ME, NOW_S, OTHER, connected, dumps, event, events, ids, plain
from tests.servers.nostr_relay import LyingRelay, changed
from tests.tables import naming

MINE = [Filter(authors=(ME.public,), kinds=(30_078,))]


class Heard:
    """A handler that keeps what it gets."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._arrived = asyncio.Condition()

    async def __call__(self, event: Event) -> None:
        async with self._arrived:
            self.events.append(event)
            self._arrived.notify_all()

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(10), self._arrived:
            await self._arrived.wait_for(lambda: len(self.events) >= count)


class TestPublishing:
    async def test_sending_it_again_is_no_error_however_the_relay_says_so(self) -> None:
        sent = event()
        async with LyingRelay() as server, connected(server.url) as relay:
            await relay.publish(sent)
            await relay.publish(sent)
            server.lies.refuses = "duplicate: exists"
            await relay.publish(sent)

    async def test_many_are_on_their_way_at_once_and_each_gets_its_own_answer(self) -> None:
        sent = events(30)
        bad = {one.id for one in sent[::7]}

        def refused(one: Any) -> str | None:
            return "blocked: not this one" if one["id"] in bad else None

        async with LyingRelay(refuses_if=refused) as server, connected(server.url) as relay:
            outcomes = await asyncio.gather(*map(relay.publish, sent), return_exceptions=True)
            for one, outcome in zip(sent, outcomes, strict=True):
                assert isinstance(outcome, RelayRefused) == (one.id in bad)

    async def test_a_refusal_tells_its_prefix_and_reason(self) -> None:
        for said, prefix in (
            ("blocked: you are", "blocked"),
            ("rate-limited: slow down", "rate-limited"),
            ("restricted: no", "restricted"),
            ("error: unknown", "error"),
            ("no colon here", ""),
            ("", ""),
        ):
            with naming(said, prefix):
                async with LyingRelay(refuses=said) as server, connected(server.url) as relay:
                    with pytest.raises(RelayRefused, match=said or "refused without a reason") as refused:
                        await relay.publish(event())
                    assert refused.value.prefix == prefix

    async def test_no_answer_in_time_is_an_unreachable_relay(self) -> None:
        async with LyingRelay(silent=True) as server, connected(server.url, timeout_s=0.1) as relay:
            with pytest.raises(RelayUnreachable, match=r"no answer to an event within 0\.1 s"):
                await relay.publish(event())
            assert relay.connected

    async def test_a_refusal_that_is_only_a_notice_is_repeated_in_the_error(self) -> None:
        lies = {"refuses": "invalid: too much", "notices_instead": True}
        async with LyingRelay(**lies) as server, connected(server.url, timeout_s=0.2) as relay:
            with pytest.raises(RelayUnreachable, match="its notice: invalid: too much"):
                await relay.publish(event())

    async def test_a_connection_that_breaks_off_ends_the_waiting(self) -> None:
        async with LyingRelay(silent=True) as server, connected(server.url, timeout_s=60) as relay:
            waiting = [asyncio.create_task(relay.publish(one)) for one in events(3)]
            await server.wait_for_events(3)
            await server.drop()
            for outcome in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(outcome, RelayUnreachable)

    async def test_answers_to_what_nobody_sent_are_ignored(self) -> None:
        async with LyingRelay() as server, connected(server.url) as relay:
            await server.say(dumps(["OK", "0" * 64, True, ""]))
            await server.say(dumps(["OK", "", True, ""]))
            await relay.publish(event())

    async def test_an_event_that_the_relay_says_is_too_long_is_not_sent(self) -> None:
        information = {"limitation": {"max_message_length": 300}}
        async with LyingRelay(information=information) as server, connected(server.url) as relay:
            with pytest.raises(RelayRefused, match="300 bytes") as refused:
                await relay.publish(event(content="x" * 300))
            assert refused.value.prefix == "invalid"
            assert not server.sent

    async def test_nothing_is_sent_without_a_connection(self) -> None:
        relay = Relay("ws://127.0.0.1:9", ME)
        with pytest.raises(RelayUnreachable):
            await relay.publish(event())


class TestRefusalsWithoutAnId:
    """nostr-relay refuses with `OK ""`, so that it has to be guessed which event it means."""

    async def test_the_only_one_on_its_way_is_meant(self) -> None:
        lies = {"refuses": "invalid: no", "unnamed": True}
        async with LyingRelay(**lies) as server, connected(server.url) as relay:
            with pytest.raises(RelayRefused) as refused:
                await relay.publish(event())
            assert refused.value.prefix == "invalid"

    async def test_of_several_none_is_blamed_and_then_they_go_one_by_one(self) -> None:
        sent = events(5)

        def refused(one: Any) -> str | None:
            return "invalid: no" if one["id"] == sent[2].id else None

        async with LyingRelay(refuses_if=refused, unnamed=True) as server, connected(server.url) as relay:
            outcomes = await asyncio.gather(*map(relay.publish, sent), return_exceptions=True)
            assert {one.prefix for one in outcomes if isinstance(one, RelayRefused)} == {"error"}

            outcomes = await asyncio.gather(*map(relay.publish, sent), return_exceptions=True)
            assert [getattr(one, "prefix", None) for one in outcomes] == [None, None, "invalid", None, None]

    async def test_one_that_comes_late_is_about_what_was_given_up(self) -> None:
        slow, good = event("slow"), event("good")
        async with LyingRelay(silent=True) as server, connected(server.url, timeout_s=0.1) as relay:
            with pytest.raises(RelayUnreachable):
                await relay.publish(slow)
            publishing = asyncio.create_task(relay.publish(good))
            await server.wait_for_events(2)
            await server.say(dumps(["OK", "", False, "invalid: the slow one"]))
            await server.say(dumps(["OK", good.id, True, ""]))
            await publishing


class TestProvingWhoWeAre:
    @pytest.mark.parametrize("late", [False, True])
    async def test_it_is_proved_where_it_is_asked_for(self, late: bool) -> None:
        sent = event()
        async with LyingRelay(auth="both", auth_late=late) as server, connected(server.url) as relay:
            await relay.publish(sent)
            fetched = await relay.fetch(MINE)
            assert fetched.complete and ids(fetched.events) == {sent.id}
            assert [proof["kind"] for proof in server.proofs] == [22_242]
            assert relay.status().authenticated

    async def test_a_fetch_alone_proves_it_too(self) -> None:
        async with LyingRelay(auth="read", auth_late=True) as server, connected(server.url) as relay:
            server.put(*plain(event()))
            fetched = await relay.fetch(MINE)
            assert fetched.complete and fetched.count == 1

    @pytest.mark.parametrize("when", ["auth_late", "auth_after_answer", "auth_silent"])
    async def test_what_is_hidden_from_strangers_without_a_word_is_found(self, when: str) -> None:
        lies = {"auth": "read", "auth_silent": when != "auth_late", when: True}
        async with LyingRelay(**lies) as server, connected(server.url) as relay:
            server.put(*plain(event()))
            fetched = await relay.fetch(MINE)
            assert fetched.complete and fetched.count == len(fetched.events) == 1

    async def test_a_refusal_that_crosses_our_proof_is_not_the_last_word(self) -> None:
        lies = {"auth": "both", "auth_late": True, "auth_says": "restricted: permission denied"}
        async with LyingRelay(**lies) as server, connected(server.url) as relay:
            await relay.publish(event())
            assert server.events

    async def test_one_that_says_it_asks_is_given_the_time_to(self) -> None:
        lies = {"auth": "both", "information": {"supported_nips": [1, 42]}, "auth_says": "error: who?"}
        async with LyingRelay(**lies) as server, connected(server.url) as relay:
            await asyncio.gather(*map(relay.publish, events(3)))
            assert not relay.status().last_error

    async def test_a_relay_that_gives_no_ok_for_a_proof_is_believed(self) -> None:
        lies = {"auth": "both", "auth_without_ok": True}
        async with LyingRelay(**lies) as server, connected(server.url, timeout_s=0.3) as relay:
            await relay.publish(event())

    async def test_a_proof_that_is_not_accepted_is_tried_once_for_each_challenge(self) -> None:
        lies = {"auth": "write", "auth_refused": True}
        async with LyingRelay(**lies) as server, connected(server.url) as relay:
            for _ in range(3):
                with pytest.raises(RelayRefused) as refused:
                    await relay.publish(event())
                assert refused.value.prefix in ("auth-required", "restricted")
            assert len(server.proofs) == 1

    async def test_a_relay_that_demands_it_and_never_asks_is_given_up(self) -> None:
        lies = {"auth": "both", "auth_never_asks": True}
        async with LyingRelay(**lies) as server, connected(server.url, timeout_s=0.1) as relay:
            with pytest.raises(RelayRefused) as refused:
                await relay.publish(event())
            assert refused.value.prefix == "auth-required"
            fetched = await relay.fetch(MINE)
            assert not fetched.complete and "only know friends" in fetched.reason

    async def test_nobody_makes_us_sign_as_fast_as_they_ask(self) -> None:
        greets = [dumps(["AUTH", f"challenge {number}"]) for number in range(50)]
        async with LyingRelay(greets=greets) as server, connected(server.url) as relay:
            await relay.fetch(MINE)
            assert len(server.proofs) <= 3


class TestSubscribing:
    async def test_what_is_stored_and_what_comes_is_handed_over(self) -> None:
        old, new = event("old", at=NOW_S - 5), event("new")
        heard = Heard()
        async with LyingRelay() as server, connected(server.url) as relay:
            server.put(*plain(old))
            subscription = await relay.subscribe(MINE, heard)
            async with asyncio.timeout(10):
                await subscription.caught_up.wait()
            assert heard.events == [old]
            async with connected(server.url, keys=OTHER) as somebody:
                await somebody.publish(new)
            await heard.wait_for(2)
            assert heard.events == [old, new]

    async def test_only_what_is_good_and_asked_for_gets_through(self) -> None:
        good = event("good")
        forged = [
            changed(plain(good)[0], content="other"),
            changed(plain(good)[0], sig="0" * 128),
            *plain(event("foreign", by=OTHER), event("kind", kind=30_079)),
        ]
        heard = Heard()
        async with LyingRelay() as server, connected(server.url) as relay:
            subscription = await relay.subscribe(MINE, heard)
            await server.wait_until(lambda _: server.requests)
            for one in [*forged, *plain(good)]:
                await server.say(dumps(["EVENT", subscription.id, one]))
                await server.say(dumps(["EVENT", "nobody's", one]))
            await heard.wait_for(1)
            assert heard.events == [good]
            assert relay.status().bad == {"forged": 2, "author": 1, "kind": 1}

    async def test_it_outlives_a_reconnect_and_nothing_comes_twice(self) -> None:
        first, second = event("1"), event("2")
        heard = Heard()
        async with LyingRelay() as server, connected(server.url) as relay:
            await relay.subscribe(MINE, heard)
            await relay.publish(first)
            await heard.wait_for(1)
            await server.drop()
            server.put(*plain(second))
            await heard.wait_for(2)
            assert heard.events == [first, second]

    async def test_one_from_before_the_first_connection_counts_too(self) -> None:
        heard = Heard()
        async with LyingRelay() as server:
            server.put(*plain(event()))
            relay = Relay(server.url, ME)
            await relay.subscribe(MINE, heard)
            relay.start()
            await heard.wait_for(1)
            await relay.close()

    async def test_a_handlers_error_costs_one_event(self, caplog: pytest.LogCaptureFixture) -> None:
        heard = Heard()

        async def handle(one: Event) -> None:
            if one.d == "bad":
                raise ValueError("oops")
            await heard(one)

        async with LyingRelay() as server, connected(server.url) as relay:
            await relay.subscribe(MINE, handle)
            for d in ("a", "bad", "b"):
                await relay.publish(event(d))
            await heard.wait_for(2)
            assert [one.d for one in heard.events] == ["a", "b"]
            assert relay.connected
        assert "oops" in caplog.text

    async def test_a_request_that_the_relay_ended_is_made_again(self) -> None:
        heard = Heard()
        lies = {"closes": "error: shutting down", "closes_times": 2}
        async with LyingRelay(**lies) as server, connected(server.url) as relay:
            server.put(*plain(event()))
            await relay.subscribe(MINE, heard)
            await heard.wait_for(1)
            assert "shutting down" in relay.status().last_error

    async def test_one_that_is_only_for_friends_is_made_again_after_the_proof(self) -> None:
        heard = Heard()
        async with LyingRelay(auth="read", auth_late=True) as server, connected(server.url) as relay:
            server.put(*plain(event()))
            await relay.subscribe(MINE, heard)
            await heard.wait_for(1)


class TestTheConnection:
    async def test_it_comes_back_and_says_so_each_time(self) -> None:
        told = asyncio.Queue[int]()
        async with LyingRelay() as server, connected(server.url) as relay:
            relay.on_connected(lambda: 1 // 0)
            relay.on_connected(lambda: told.put_nowait(server.connections))
            for _ in range(2):
                await server.drop()
                await asyncio.wait_for(told.get(), 10)
            await server.kill()
            await server.revive()
            await asyncio.wait_for(told.get(), 10)
            await relay.publish(event())
            assert relay.status().connected_since_ms is not None

    async def test_a_relay_that_is_not_there_is_said_so(self) -> None:
        async with LyingRelay() as server:
            await server.kill()
            relay = Relay(server.url, ME, timing=Timing(timeout_s=0.2, backoff_s=0.01))
            relay.start()
            with pytest.raises(RelayUnreachable, match=server.url):
                await relay.ready(0.1)
            fetched = await relay.fetch(MINE)
            assert not fetched.complete and "cannot be reached" in fetched.reason
            await relay.close()

    async def test_one_that_answers_no_ping_is_left_and_tried_again(self) -> None:
        async with LyingRelay(no_pong=True) as server, connected(server.url, heartbeat_s=0.05):
            await server.wait_for_connections(3)

    async def test_one_that_takes_nothing_holds_nobody_up(self) -> None:
        big = event(content="x" * 60_000)
        async with (
            LyingRelay(reads_nothing=True) as server,
            connected(server.url, timeout_s=0.3, heartbeat_s=60) as relay,
        ):
            publishing = [asyncio.create_task(relay.publish(big)) for _ in range(150)]
            outcomes = await asyncio.gather(*publishing, return_exceptions=True)
            assert all(isinstance(outcome, RelayUnreachable) for outcome in outcomes)
            await server.wait_for_connections(2)

    async def test_it_closes_while_a_relay_hangs(self) -> None:
        async with LyingRelay(reads_nothing=True) as server:
            relay = Relay(server.url, ME, timing=Timing(timeout_s=60, heartbeat_s=60))
            relay.start()
            await relay.ready(10)
            big = event(content="x" * 60_000)
            waiting = [asyncio.create_task(relay.publish(big)) for _ in range(150)]
            await asyncio.sleep(0)
            async with asyncio.timeout(10):
                await relay.close()
                outcomes = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(outcome, RelayUnreachable) for outcome in outcomes)

    async def test_it_closes_while_it_connects_and_when_it_never_began(self) -> None:
        async with LyingRelay() as server:
            relay = Relay(server.url, ME)
            await relay.close()
            relay.start()
            await relay.close()
            assert not relay.connected

    async def test_whatever_a_relay_sends_does_not_hurt(self) -> None:
        for text in (
            "",
            "nonsense",
            '["EVENT"]',
            '["EVENT","x"]',
            '["EVENT","<id>",',
            '["EVENT","<id>",null]',
            '["EVENT","<id>",{"id":"' + "0" * 64 + '"},{}]',
            '["EVENT","<id>",' + "[" * 100_000 + "]]",
            "[" * 60_000,
            '["EVENT","<id>",{"content":"' + "x" * 5_000_000 + '"}]',
            "x" * 5_000_000,
            '["OK","\\ud800",true,"\\ud800"]',
            '["OK",1,2,3]',
            '["OK","x","true",""]',
            '["EOSE"]',
            '["EOSE",{}]',
            '["CLOSED","who"]',
            '["NOTICE",17]',
            '["AUTH",""]',
            '["AUTH","\\ud800"]',
            "{}",
            "null",
        ):
            with naming(text):
                sent = event()
                lies = {"garbage": [text], "greets": [text, b"binary"]}
                async with LyingRelay(**lies) as server, connected(server.url, timeout_s=5) as relay:
                    await relay.publish(sent)
                    fetched = await relay.fetch(MINE)
                    assert fetched.complete and fetched.events == [sent]
                    assert server.connections == 1

    async def test_a_message_beyond_all_measure_costs_the_connection(self) -> None:
        async with LyingRelay() as server, connected(server.url) as relay:
            await server.say("x" * (8 * 2**20 + 1))
            await server.wait_for_connections(2)
            await relay.ready(10)
            await relay.publish(event())

    async def test_notices_are_logged_seldom_short_and_harmless(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with LyingRelay(notices=50) as server, connected(server.url) as relay:
            assert (await relay.fetch(MINE)).complete
            assert relay.status().last_notice.startswith("[31mbuy nownow")
            assert len(relay.status().last_notice) == 200
        said = [record.getMessage() for record in caplog.records if "notice" in record.getMessage()]
        assert len(said) == 1
        assert "\x1b" not in said[0] and "\n" not in said[0]

    async def test_it_follows_no_redirect(self) -> None:
        async with LyingRelay() as server:
            async with _http(web.HTTPFound(server.url.replace("ws", "http"))) as url:
                relay = Relay(url, ME, timing=Timing(backoff_s=60))
                relay.start()
                with pytest.raises(RelayUnreachable, match="another address"):
                    await _failing(relay)
                await relay.close()
            assert not server.connections

    async def test_a_server_that_is_no_relay_is_said_so(self) -> None:
        async with _http(web.HTTPForbidden()) as url:
            relay = Relay(url, ME, timing=Timing(backoff_s=60))
            relay.start()
            with pytest.raises(RelayUnreachable, match="answers HTTP 403"):
                await _failing(relay)
            await relay.close()

    async def test_nonsense_about_its_limits_changes_nothing(self) -> None:
        for raw in (
            b"nonsense",
            b"[" * 60_000,
            b"x" * 200_000,
            b'{"limitation": {"max_limit": -1}}',
            b'{"limitation":1}',
        ):
            with naming(raw):
                sent = events(3)
                async with LyingRelay(information_raw=raw) as server, connected(server.url) as relay:
                    for one in sent:
                        await relay.publish(one)
                    assert (await relay.fetch(MINE)).count == 3

    async def test_its_status_tells_how_it_stands(self) -> None:
        async with LyingRelay() as server:
            async with connected(server.url, name="home", now_ms=lambda: 42_000) as relay:
                await relay.fetch(MINE)
                status = relay.status()
                assert (status.url, status.address) == ("home", server.url)
                assert (status.connected_since_ms, status.last_eose_ms) == (42_000, 42_000)
                assert not status.last_error and not status.authenticated
            assert relay.status().connected_since_ms is None


class TestAddresses:
    @pytest.mark.parametrize("text", ["wss://relay.example", " ws://127.0.0.1:7777/path ", "wss://[::1]:1"])
    def test_websockets_are_taken(self, text: str) -> None:
        assert relay_url(text).scheme in ("ws", "wss")

    def test_others_are_refused_without_showing_a_password(self) -> None:
        for text in (
            "",
            "relay.example",
            "http://a",
            "wss://",
            "ws://a:99999",
            "wss://u:hunter2@",
            "nsec1hunter2",
        ):
            with naming(text):
                with pytest.raises(SettingsError, match=r"use ws://… or wss://…") as error:
                    relay_url(text)
                assert "hunter2" not in str(error.value)

    def test_credentials_are_shown_nowhere(self) -> None:
        relay = Relay("wss://user:hunter2@relay.example/x?token=hunter2", ME)
        assert relay.url == display_url(relay_url(relay.url)) == "wss://relay.example/x"
        assert "hunter2" not in repr(relay.status())


@given(st.integers(1, 100), st.floats(0, 1))
def test_pauses_grow_up_to_a_bound_and_differ_by_chance(failures: int, chance: float) -> None:
    times = Timing(backoff_s=1.0, max_backoff_s=300.0)
    whole = min(300.0, 2.0 ** (failures - 1))
    assert whole / 2 <= times.pause_s(failures, chance) <= whole
    assert times.pause_s(failures, 0.0) == whole


async def _failing(relay: Relay) -> None:
    """Wait until the first try has failed, and raise what it failed with."""
    for _ in range(1_000):
        if relay.status().last_error:
            await relay.ready(0)
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _http(answer: web.HTTPException) -> AsyncIterator[str]:
    """A server that gives this answer to everything."""

    async def handle(_: web.Request) -> web.StreamResponse:
        raise answer

    app = web.Application()
    app.router.add_get("/", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()

"""Delivery over real relays, honest and lying: everything arrives, as it was signed, whatever they do."""

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault
from discoclaw.nostr.delivery import Delivery, Pace
from discoclaw.nostr.event import Event, SecretBox
from discoclaw.nostr.outbox import DeliveryProgress, Outbox, OutboxEntry
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.schemas import PREFERENCE, Codec, EventTemplate
from tests.memory.child import full_at
from tests.nostr.outbox_kit import (
    KEYS,
    START_S,
    UNIT,
    deletion,
    deletions,
    entries,
    entry,
    ids,
    now_ms,
    opened,
)
from tests.servers import nostr_relay
from tests.servers.nostr_relay import LyingRelay

IN_TIME_S = 30.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outbox.sqlite"


@pytest.fixture
def outbox(path: Path) -> Iterator[Outbox]:
    with opened(path) as made:
        yield made


@pytest.fixture
async def server() -> AsyncIterator[LyingRelay]:
    async with LyingRelay() as made:
        yield made


@contextlib.asynccontextmanager
async def delivering(
    outbox: Outbox, *urls: str, min_acks: int = 1, pause_s: float = 0.01, timeout_s: float = 30.0
) -> AsyncIterator[Delivery]:
    """Deliver to these relays. `pause_s` is the first pause after a failure; pauses stay as short as that."""
    timing = Timing(timeout_s=timeout_s, backoff_s=0.01, max_backoff_s=0.02)
    relays = [Relay(url, KEYS, timing=timing) for url in urls]
    delivery = Delivery(
        outbox,
        relays,
        min_acks=min_acks,
        clock=now_ms,
        pace=lambda: Pace(random=lambda: 0.0, first_pause_s=pause_s, max_pause_s=2 * pause_s),
        pause_s=0.01,
    )
    for relay in relays:
        relay.start()
    delivery.start()
    try:
        yield delivery
    finally:
        await delivery.close()
        await asyncio.gather(*(relay.close() for relay in relays))


def dead_url() -> str:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"ws://127.0.0.1:{free.getsockname()[1]}"


def held(server: LyingRelay) -> set[str]:
    """The ids of what a relay has."""
    return {event["id"] for event in server.events}


def sent(server: LyingRelay) -> list[str]:
    """The ids of what was sent to a relay, in order."""
    return [event["id"] for event in server.sent]


class Parked:
    """What the relays of a delivery refused, by reason."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery

    async def now(self) -> dict[str, int]:
        return {reason: count for one in await self.delivery.status() for reason, count in one.queue.parked}


class TestInClear:
    async def test_nothing_goes_out_that_anybody_can_read(self, outbox: Outbox, server: LyingRelay) -> None:
        template = EventTemplate(
            PREFERENCE, "d:preference", {"preference": "vim", "updated_at": None}, plaintext_ok=True
        )
        codec = Codec(KEYS, SecretBox.of(KEYS), allow_plaintext=True)
        outbox.put(UNIT, [OutboxEntry(codec.encode(template, START_S), "digest")])
        async with delivering(outbox, server.url) as delivery:
            await delivery.drain(10)
            assert await Parked(delivery).now() == {"not encrypted (NOSTR_ALLOW_PLAINTEXT=0)": 1}
            await delivery.unpark()
            await delivery.drain(10)
        assert sent(server) == []


class TestEverythingArrives:
    async def test_what_waited_and_what_comes_later_oldest_first(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        made = entries(60)
        outbox.put(UNIT, made[:50])
        async with delivering(outbox, server.url) as delivery:
            assert await delivery.drain(IN_TIME_S) == DeliveryProgress(50, everywhere=50, enough=50)
            outbox.put(UNIT, made[50:])
            delivery.wake()
            await server.wait_for_events(60)
            assert (await delivery.drain(IN_TIME_S)).safe
        assert sent(server) == [one.event.id for one in made]
        assert server.events == [one.event.to_json() for one in made]

    async def test_on_as_many_relays_as_are_wanted(self, outbox: Outbox, server: LyingRelay) -> None:
        outbox.put(UNIT, entries(5))
        async with LyingRelay() as other, delivering(outbox, server.url, other.url, min_acks=2) as delivery:
            assert await delivery.drain(IN_TIME_S) == DeliveryProgress(5, everywhere=5, enough=5)
            other.lies.refuses = "blocked: no"
            outbox.put(UNIT, entries(6))
            progress = await delivery.drain(IN_TIME_S)
            assert (progress, progress.safe) == (DeliveryProgress(6, everywhere=5, enough=5), False)

    async def test_twenty_at_most_are_on_their_way(self, outbox: Outbox, server: LyingRelay) -> None:
        outbox.put(UNIT, entries(30))
        server.lies.silent = True
        async with delivering(outbox, server.url) as delivery:
            await server.wait_for_events(20)
            (status,) = await delivery.status()
            assert status.connection.in_flight == 20
            assert status.queue.depth == 30
        assert len(server.sent) == 20

    async def test_a_superseded_version_is_sent_no_more(self, outbox: Outbox, server: LyingRelay) -> None:
        await server.kill()
        outbox.put(UNIT, [entry("one"), entry("two")])
        async with delivering(outbox, server.url) as delivery:
            await delivery.drain(0.02)
            outbox.put(UNIT, [newer := entry("one", START_S + 1)])
            await server.revive()
            assert (await delivery.drain(IN_TIME_S)).safe
        assert set(sent(server)) == {newer.event.id, entry("two").event.id}

    async def test_an_empty_outbox_is_flushed(self, outbox: Outbox, server: LyingRelay) -> None:
        async with delivering(outbox, server.url, dead_url()) as delivery:
            assert await delivery.drain(IN_TIME_S) == DeliveryProgress(0, 0, 0)
            assert all(one.queue.depth == 0 for one in await delivery.status())


class TestRefusals:
    @pytest.mark.parametrize("prefix", ["blocked", "invalid", "pow", "restricted", "mute", "replaced"])
    async def test_for_good_are_parked_with_their_reason_and_stop_nothing(
        self, outbox: Outbox, server: LyingRelay, prefix: str
    ) -> None:
        made = entries(30)
        unwanted = made[3].event.id
        outbox.put(UNIT, made)
        server.lies.refuses_if = lambda event: f"{prefix}: no" if event["id"] == unwanted else None
        async with delivering(outbox, server.url) as delivery:
            assert await delivery.drain(IN_TIME_S) == DeliveryProgress(30, everywhere=29, enough=29)
            assert await Parked(delivery).now() == {f"{prefix}: no": 1}
            assert sent(server).count(unwanted) == 1

    async def test_for_good_end_with_unpark_or_a_newer_version(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        outbox.put(UNIT, entries(2))
        server.lies.refuses = "blocked: not today"
        async with delivering(outbox, server.url) as delivery:
            await delivery.drain(IN_TIME_S)
            assert await Parked(delivery).now() == {"blocked: not today": 2}
            server.lies.refuses = None
            outbox.put(UNIT, [entry("00000", START_S + 1)])
            await delivery.drain(IN_TIME_S)
            assert held(server) == {entry("00000", START_S + 1).event.id}
            assert await delivery.unpark("ws://nobody.example") == 0
            assert await delivery.unpark(server.url) == 1
            assert (await delivery.drain(IN_TIME_S)).safe
        assert held(server) == ids(outbox)

    @pytest.mark.parametrize("why", ["error: the disk is full", "rate-limited: slow down", ""])
    async def test_for_now_are_tried_until_they_end(
        self, outbox: Outbox, server: LyingRelay, why: str
    ) -> None:
        outbox.put(UNIT, entries(30))
        server.lies.refuses = why
        async with delivering(outbox, server.url) as delivery:
            await server.wait_for_events(40)
            assert await Parked(delivery).now() == {}
            server.lies.refuses = None
            assert (await delivery.drain(IN_TIME_S)).safe
        assert held(server) == ids(outbox)
        assert set(sent(server)) == ids(outbox)

    async def test_for_now_of_one_event_delay_no_other(self, outbox: Outbox, server: LyingRelay) -> None:
        made = entries(60)
        bad = made[0].event.id
        outbox.put(UNIT, made)
        server.lies.refuses_if = lambda event: "error: unknown" if event["id"] == bad else None
        async with delivering(outbox, server.url) as delivery:
            await server.wait_until(lambda relay: len(relay.events) == 59 and sent(relay).count(bad) > 2)
            (status,) = await delivery.status()
            assert (status.queue.depth, status.last_failure[-14:]) == (1, "error: unknown")

    async def test_a_relay_that_wants_less_is_left_in_peace(self, outbox: Outbox, server: LyingRelay) -> None:
        outbox.put(UNIT, entries(100))
        server.lies.limit_events = 10
        async with delivering(outbox, server.url, pause_s=600) as delivery:
            await server.wait_for_events(20)
            await delivery.drain(0.05)
            (status,) = await delivery.status()
            assert status.pause_s > 0
            assert "rate-limited" in status.last_failure
        # ten were taken and let ten more go out before the first refusal was read
        assert len(server.sent) <= 30

    async def test_without_an_id_cost_no_other_event_anything(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        made = entries(30)
        bad = made[5].event.id
        outbox.put(UNIT, made)
        server.lies.unnamed = True
        server.lies.refuses_if = lambda event: "invalid: no" if event["id"] == bad else None
        async with delivering(outbox, server.url) as delivery:
            assert await delivery.drain(IN_TIME_S) == DeliveryProgress(30, everywhere=29, enough=29)
            assert await Parked(delivery).now() == {"invalid: no": 1}

    async def test_that_never_come_are_waited_for_only_so_long(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        made = entries(30)
        outbox.put(UNIT, made)
        server.lies.silent = True
        async with delivering(outbox, server.url, timeout_s=0.03) as delivery:
            await server.wait_for_events(31)  # they are on their way once more
            server.lies.silent = False
            assert (await delivery.drain(IN_TIME_S)).safe
        assert set(sent(server)) == ids(outbox)

    async def test_of_what_is_larger_than_the_relay_says_it_takes_are_parked(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        server.lies.information = {"limitation": {"max_message_length": 2000}}
        outbox.put(UNIT, [entry("large", content="x" * 3000), *entries(10)])
        frightened = asyncio.Event()

        def refuse(event: Any) -> str | None:
            if len(event["content"]) > 2000:
                break_off(server)
                frightened.set()
            return None

        server.lies.refuses_if = refuse
        async with delivering(outbox, server.url) as delivery:
            assert await delivery.drain(IN_TIME_S) == DeliveryProgress(11, everywhere=10, enough=10)
            (reason,) = await Parked(delivery).now()
            assert "messages of at most 2000 bytes" in reason


def break_off(server: LyingRelay) -> None:
    """End all connections at once, without a word."""
    for peer in list(server._peers):
        nostr_relay._abort(peer)


class TestRelaysThatGoAway:
    async def test_one_killed_in_the_middle_gets_the_rest_later_under_the_same_ids(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        outbox.put(UNIT, entries(200))
        async with delivering(outbox, server.url) as delivery:
            for count in (30, 90, 150):
                await server.wait_for_events(count)
                await server.kill()
                (status,) = await delivery.status()
                assert status.connection.connected_since_ms is None
                assert status.queue.depth > 0
                await server.revive()
            assert await delivery.drain(IN_TIME_S) == DeliveryProgress(200, everywhere=200, enough=200)
        assert set(sent(server)) == held(server) == ids(outbox)
        assert len(server.events) == 200

    async def test_a_dead_one_costs_the_others_nothing(self, outbox: Outbox, server: LyingRelay) -> None:
        outbox.put(UNIT, entries(50))
        async with LyingRelay() as late:
            await late.kill()
            async with delivering(outbox, late.url, server.url) as delivery:
                async with asyncio.timeout(IN_TIME_S):
                    while (progress := await delivery.drain(0.05)).enough < 50:
                        pass
                assert progress == DeliveryProgress(50, everywhere=0, enough=50)
                assert [one.queue.depth for one in await delivery.status()] == [50, 0]
                assert progress.safe
                await late.revive()
                assert (await delivery.drain(IN_TIME_S)).everywhere == 50
                assert held(late) == held(server) == ids(outbox)

    async def test_a_dead_one_is_not_looked_after_again_and_again(self, path: Path) -> None:
        class Counted(Outbox):
            looks = 0

            def due(self, relay: str, now_ms: int, limit: int) -> list[Event]:
                self.looks += 1
                return super().due(relay, now_ms, limit)

            def has_waiting(self, relay: str) -> bool:
                self.looks += 1
                return super().has_waiting(relay)

        outbox = Counted(path, clock=now_ms)
        outbox.open()
        with contextlib.closing(outbox):
            outbox.put(UNIT, entries(5))
            async with delivering(outbox, dead_url()) as delivery:
                await delivery.drain(0.05)
                for _ in range(1000):
                    delivery.wake()
                await delivery.drain(0.05)
            assert outbox.looks < 10

    async def test_one_that_broke_off_gets_one_event_at_a_time_to_see_which_it_was(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        outbox.put(UNIT, entries(30))
        server.lies.silent = True
        async with delivering(outbox, server.url) as delivery:
            await server.wait_for_events(20)
            await server.drop()
            await server.wait_for_events(21)
            (status,) = await delivery.status()
            assert status.connection.in_flight == 1
        assert len(server.sent) == 21

    async def test_an_event_that_breaks_every_connection_goes_last_and_alone(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        made = entries(40)
        poison = made[2].event.id
        outbox.put(UNIT, made)

        def refuse(event: Any) -> str | None:
            if event["id"] == poison:
                break_off(server)
                return "error: poisoned"
            return None

        server.lies.refuses_if = refuse
        async with delivering(outbox, server.url) as delivery:
            await server.wait_until(lambda relay: len(relay.events) == 39)
            server.lies.refuses_if = None
            assert (await delivery.drain(IN_TIME_S)).safe

    async def test_the_backlog_outlives_a_restart(self, path: Path, server: LyingRelay) -> None:
        with opened(path) as outbox:
            outbox.put(UNIT, entries(20))
            before = ids(outbox)
            async with delivering(outbox, dead_url()) as delivery:
                assert await delivery.drain(0.02) == DeliveryProgress(20, everywhere=0, enough=0)
        with opened(path) as outbox:
            async with delivering(outbox, server.url) as delivery:
                assert (await delivery.drain(IN_TIME_S)).safe
        assert held(server) == before


class TestDeletions:
    async def test_are_sent_once_the_tombstones_are_there(self, outbox: Outbox, server: LyingRelay) -> None:
        names = ["one", "two", "three"]
        outbox.put(UNIT, [entry(name) for name in names])
        old = sorted(ids(outbox))
        tombstones = [entry(name, START_S + 1, tombstone=True) for name in names]
        asked = deletion(names, START_S + 2, old)
        outbox.put(UNIT, [*tombstones, asked])
        reluctant = {one.event.id for one in tombstones}

        def refuse(event: Any) -> str | None:
            if event["id"] in reluctant:
                reluctant.discard(event["id"])
                return "error: later"
            return None

        server.lies.refuses_if = refuse
        async with delivering(outbox, server.url) as delivery:
            assert (await delivery.drain(IN_TIME_S)).safe
        order = sent(server)
        assert order[-1] == asked.event.id and order.count(asked.event.id) == 1
        assert deletions(outbox) == {asked.event.id}
        assert held(server) == {asked.event.id}

    async def test_are_sent_also_where_a_tombstone_was_refused(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        tombstone, asked = entry("one", START_S, tombstone=True), deletion(["one"], START_S + 1)
        outbox.put(UNIT, [tombstone, asked])
        server.lies.refuses_if = lambda event: "blocked: no" if event["kind"] != 5 else None
        async with delivering(outbox, server.url) as delivery:
            assert await delivery.drain(IN_TIME_S) == DeliveryProgress(2, everywhere=1, enough=1)
        assert held(server) == {asked.event.id}


class TestOurOwnFaults:
    async def test_a_full_disk_sends_events_once_more_under_the_same_ids(
        self, outbox: Outbox, server: LyingRelay, caplog: pytest.LogCaptureFixture
    ) -> None:
        outbox.put(UNIT, entries(5))
        with full_at(0):  # nothing at all can be written to any file, not even whom to deliver to
            async with delivering(outbox, server.url) as delivery:
                await delivery.drain(0.02)
        outbox.set_relays([server.url])
        with full_at(0):
            async with delivering(outbox, server.url):
                await server.wait_for_events(10)
        assert "is full" in caplog.text
        async with delivering(outbox, server.url) as delivery:
            assert (await delivery.drain(IN_TIME_S)).safe
        assert set(sent(server)) == held(server) == ids(outbox)

    async def test_a_bug_of_the_outbox_is_logged_and_it_goes_on(
        self, path: Path, server: LyingRelay, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Buggy(Outbox):
            failures = iter([True, True])

            def has_waiting(self, relay: str) -> bool:
                if next(self.failures, False):
                    raise KeyError("a bug")
                return super().has_waiting(relay)

        outbox = Buggy(path, clock=now_ms)
        outbox.open()
        with contextlib.closing(outbox):
            outbox.put(UNIT, entries(3))
            async with delivering(outbox, server.url) as delivery:
                assert (await delivery.drain(IN_TIME_S)).safe
        assert caplog.text.count("nothing is sent for") == 2
        assert "a bug" in caplog.text

    async def test_a_bug_stops_neither_the_event_nor_the_others(
        self, outbox: Outbox, server: LyingRelay, caplog: pytest.LogCaptureFixture
    ) -> None:
        outbox.put(UNIT, entries(3))
        failures = iter([True, False, True])

        class Buggy(Relay):
            async def publish(self, event: Event) -> None:
                if next(failures, False):
                    raise KeyError("a bug")
                await super().publish(event)

        relay = Buggy(server.url, KEYS)
        delivery = Delivery(
            outbox,
            [relay],
            min_acks=1,
            clock=now_ms,
            pace=lambda: Pace(random=lambda: 0.0, first_pause_s=0.01),
        )
        relay.start()
        delivery.start()
        assert (await delivery.drain(IN_TIME_S)).safe
        await delivery.close()
        await relay.close()
        assert "a bug" in caplog.text
        assert held(server) == ids(outbox)

    async def test_a_fault_of_the_outbox_is_told_to_whoever_asks(
        self, outbox: Outbox, server: LyingRelay
    ) -> None:
        async with delivering(outbox, server.url) as delivery:
            outbox.close()
            with pytest.raises(MemoryFault):
                await delivery.drain(0.01)
            with pytest.raises(MemoryFault):
                await delivery.status()


class TestThePace:
    @given(st.lists(st.tuples(st.sampled_from(["worked", "failed", "hold", "late"]), st.floats(0, 5))))
    def test_stays_within_its_bounds_and_comes_back(self, acts: list[tuple[str, float]]) -> None:
        pace, now = Pace(random=random.Random(1).random, first_pause_s=1, max_pause_s=60), 0.0
        for act, later_s in acts:
            now += later_s
            if act == "worked":
                pace.succeeded()
            else:
                round_ = pace.round - (act == "late")
                assert 0 <= pace.failed(round_, now, hold=act == "hold") <= 60
            assert 1 <= pace.width <= 20
            assert 0 <= pace.remaining_s(now) <= 60
        for _ in range(len(acts) + 20):
            pace.succeeded()
        assert pace.width == 20
        assert pace.remaining_s(now + 60) == 0
        assert pace.failed(pace.round, now + 60, hold=False) <= 1
        assert pace.remaining_s(now + 60) == 0  # one failure among successes stops nobody

    def test_doubles_its_pauses_up_to_the_longest(self) -> None:
        pace = Pace(random=lambda: 0.0, first_pause_s=1, max_pause_s=60)
        assert [pace.failed(pace.round, 0, hold=True) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]

    def test_stops_everything_once_two_failed_and_none_worked(self) -> None:
        pace = Pace(random=lambda: 0.0, first_pause_s=1)
        for _ in range(3):
            pace.failed(pace.round, 0, hold=False)
            assert pace.remaining_s(0) == 0
            pace.succeeded()
        pace.failed(pace.round, 0, hold=False)
        assert pace.failed(pace.round, 0, hold=False) == pace.remaining_s(0) == 2

    def test_counts_what_fails_together_once(self) -> None:
        pace = Pace(random=lambda: 0.0, first_pause_s=1)
        round_ = pace.round
        assert [pace.failed(round_, 0, hold=True) for _ in range(20)] == [1] * 20
        assert (pace.width, pace.remaining_s(0)) == (10, 1)

    def test_finds_what_a_relay_bears(self) -> None:
        """One event in ten seconds is taken: after a while about as often it is asked."""
        pace, now, tokens, asked = Pace(random=lambda: 0.0, first_pause_s=1), 0.0, 0.0, 0
        while now < 1000:
            round_ = pace.round
            for _ in range(pace.width):
                asked += 1
                if tokens >= 1:
                    tokens -= 1
                    pace.succeeded()
                else:
                    pace.failed(round_, now, hold=True)
            wait = max(0.01, pace.remaining_s(now))
            now, tokens = now + wait, min(10, tokens + wait / 10)
        assert asked < 500


def test_a_poke_never_blocks(outbox: Outbox) -> None:
    """It is called where a reply is on its way: no loop, no lock, no file."""
    delivery = Delivery(outbox, [Relay(dead_url(), KEYS)], min_acks=1, clock=now_ms)
    outbox.close()
    delivery.wake()

"""Fetching: everything that a relay has, or an honest word that it is not everything."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.protocol import Filter
from tests.nostr.relay_kit import ME, NOW_S, OTHER, connected, dumps, event, events, ids, plain
from tests.servers.nostr_relay import LyingRelay, changed

MINE = [Filter(authors=(ME.public,), kinds=(30_078,))]
ALL = [Filter(authors=(ME.public,), kinds=(30_078, 30_079, 5))]
FIVE_SECONDS = [
    event(f"x:{number}", at=NOW_S - number // 8, kind=30_078 + number % 2) for number in range(40)
]
"""40 events of two kinds, of each second 8."""


class TestAnHonestRelay:
    async def test_nothing_is_nothing_only_when_the_relay_says_so(self) -> None:
        async with LyingRelay() as server, connected(server.url, timeout_s=0.1) as relay:
            fetched = await relay.fetch(MINE)
            assert fetched.complete and not fetched.count
            server.lies.no_eose = True
            fetched = await relay.fetch(MINE)
            assert not fetched.complete and "its answer did not end" in fetched.reason
            server.lies.no_eose = False
            server.lies.closes = "error: no disk"
            fetched = await relay.fetch(MINE)
            assert not fetched.complete and "error: no disk" in fetched.reason

    async def test_all_filters_are_asked_and_nothing_else_comes(self) -> None:
        async with LyingRelay() as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS, event("o", by=OTHER), event("k", kind=30_090)))
            filters = [Filter(authors=(ME.public,), kinds=(kind,)) for kind in (30_078, 30_079)]
            fetched = await relay.fetch(filters)
            assert fetched.complete and ids(fetched.events) == ids(FIVE_SECONDS)
            assert len(fetched.events) == fetched.count == 40
            assert not fetched.bad

    async def test_few_requests_are_enough_for_few_events(self) -> None:
        async with LyingRelay() as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            assert (await relay.fetch(ALL)).requests == 3
            assert (await relay.fetch(ALL, page=20)).requests == 4

    async def test_batches_are_handed_over_as_they_come(self) -> None:
        batches: list[list[Event]] = []

        async def take(batch: list[Event]) -> None:
            batches.append(batch)

        async with LyingRelay() as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            fetched = await relay.fetch(ALL, take)
            assert fetched.complete and fetched.count == 40 and not fetched.events
            assert ids(one for batch in batches for one in batch) == ids(FIVE_SECONDS)

    async def test_an_error_of_who_takes_them_is_theirs(self) -> None:
        async def take(_: list[Event]) -> None:
            raise ValueError("disk full")

        async with LyingRelay() as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            with pytest.raises(ValueError, match="disk full"):
                await relay.fetch(ALL, take)
            assert (await relay.fetch(ALL)).complete

    async def test_by_id_and_by_identifier_hundreds_can_be_asked_for(self) -> None:
        many = events(230)
        async with LyingRelay(most_rows=70) as server, connected(server.url) as relay:
            server.put(*plain(*many))
            wanted = tuple(one.id for one in many[:210])
            fetched = await relay.fetch([Filter(ids=(*wanted, "0" * 64))])
            assert fetched.complete and ids(fetched.events) == set(wanted)
            server.lies.most_rows = None
            fetched = await relay.fetch([Filter(authors=(ME.public,), d=tuple(one.d for one in many[:210]))])
            assert fetched.complete and ids(fetched.events) == set(wanted)

    async def test_two_fetches_at_once_do_not_mix(self) -> None:
        async with LyingRelay() as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            both = await asyncio.gather(*(relay.fetch([Filter(kinds=(kind,))]) for kind in (30_078, 30_079)))
            assert [{one.kind for one in fetched.events} for fetched in both] == [{30_078}, {30_079}]

    async def test_requests_are_closed_behind_it(self) -> None:
        async with LyingRelay() as server, connected(server.url) as relay:
            await relay.fetch(MINE)
            await server.wait_until(lambda _: any(frame.startswith(b'["CLOSE"') for frame in server.frames))


class TestPages:
    async def test_a_second_with_more_is_asked_for_kind_by_kind(self) -> None:
        async with LyingRelay(most_rows=7) as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            fetched = await relay.fetch(ALL)
            assert fetched.complete, fetched.reason
            assert ids(fetched.events) == ids(FIVE_SECONDS)

    async def test_where_that_does_not_help_it_is_said(self) -> None:
        async with LyingRelay(most_rows=3) as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            fetched = await relay.fetch(ALL)
            assert not fetched.complete and "of one second" in fetched.reason
            assert {one.created_at for one in fetched.events} == {one.created_at for one in FIVE_SECONDS}

    async def test_more_of_one_second_than_a_page_has_comes_with_a_larger_limit(self) -> None:
        crowd = events(70, step=0)
        async with LyingRelay() as server, connected(server.url) as relay:
            server.put(*plain(*crowd, *events(5, at=NOW_S - 9)))
            fetched = await relay.fetch(MINE, page=50)
            assert fetched.complete and fetched.count == 75

    async def test_what_the_relay_says_of_its_limit_is_believed(self) -> None:
        information = {"limitation": {"max_limit": 30}}
        async with (
            LyingRelay(most_rows=30, information=information) as server,
            connected(server.url) as relay,
        ):
            server.put(*plain(*FIVE_SECONDS))
            assert ids((await relay.fetch(ALL)).events) == ids(FIVE_SECONDS)
            assert {asked["limit"] for _, _, asked in server.requests} == {30}

    async def test_one_that_sends_everything_at_once_is_stopped_and_gives_all_too(self) -> None:
        many = events(200)
        async with LyingRelay(ignores_limit=True) as server, connected(server.url) as relay:
            server.put(*plain(*many))
            fetched = await relay.fetch(MINE, page=20)
            assert fetched.complete, fetched.reason
            assert fetched.count == 200
            server.lies.order = "shuffled"
            fetched = await relay.fetch(MINE, page=20)
            assert not fetched.complete and "far more than we asked for" in fetched.reason

    @given(
        times=st.lists(st.integers(0, 6), min_size=1, max_size=30),
        most_rows=st.integers(2, 31),
        leaves_out_until=st.booleans(),
        order=st.sampled_from(["newest", "oldest"]),
        copies=st.integers(1, 2),
    )
    async def test_it_has_all_or_says_that_it_has_not(
        self, times: list[int], most_rows: int, leaves_out_until: bool, order: str, copies: int
    ) -> None:
        stored = [_pooled(number, at) for number, at in enumerate(times)]
        lies = {
            "most_rows": most_rows,
            "leaves_out_until": leaves_out_until,
            "order": order,
            "copies": copies,
        }
        async with LyingRelay(**lies) as server, connected(server.url) as relay:
            server.put(*plain(*stored))
            fetched = await relay.fetch(MINE)
        assert ids(fetched.events) <= ids(stored) and fetched.count == len(ids(fetched.events))
        if fetched.complete and len(set(times)) > 1:  # of a single second a cap cannot be told from the end
            assert ids(fetched.events) == ids(stored)
        if max(map(times.count, times)) < most_rows:
            assert fetched.complete


class TestWhatIsNotBelieved:
    async def test_forgeries_are_dropped_and_counted(self) -> None:
        good = event("good")
        adds = [
            changed(plain(good)[0], content="other"),
            changed(plain(good)[0], sig="0" * 128),
            changed(plain(event("b"))[0], id="0" * 64),
            {"id": "0" * 64},
            {"id": "short"},
            {},
        ]
        async with LyingRelay(adds=adds) as server, connected(server.url) as relay:
            server.put(*plain(good))
            fetched = await relay.fetch(MINE)
            assert fetched.events == [good]
            assert fetched.bad["forged"] >= 4 and fetched.bad["garbage"] >= 2

    async def test_a_forged_copy_does_not_keep_the_genuine_one_out(self) -> None:
        good = event("good")
        async with (
            LyingRelay(adds=[changed(plain(good)[0], content="x")]) as server,
            connected(server.url) as relay,
        ):
            server.put(*plain(good))
            assert (await relay.fetch(MINE)).events == [good]

    async def test_a_forged_copy_of_a_known_one_does_not_lie_about_its_time(self) -> None:
        newest = event("new", at=NOW_S + 9)
        async with LyingRelay(most_rows=20) as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS, newest))
            server.lies.adds = [changed(plain(newest)[0], created_at=0)]
            fetched = await relay.fetch(ALL)
            assert ids(FIVE_SECONDS) <= ids(fetched.events)

    @pytest.mark.parametrize(
        ("other", "why"),
        [
            (event("x", by=OTHER), "author"),
            (event("x", kind=30_090), "kind"),
            (event("x", at=NOW_S - 1_000), "filter"),
        ],
    )
    async def test_what_nobody_asked_for_is_dropped_and_counted(self, other: Event, why: str) -> None:
        wanted = Filter(authors=(ME.public,), kinds=(30_078,), since=NOW_S - 100)
        async with LyingRelay(adds=plain(other)) as server, connected(server.url) as relay:
            server.put(*plain(*events(3)))
            fetched = await relay.fetch([wanted])
            assert fetched.count == 3 and set(fetched.bad) == {why}

    async def test_a_relay_that_drowns_us_in_others_events_is_not_believed_to_have_given_all(self) -> None:
        crowd = [one.to_json() for one in (event(str(n), by=OTHER) for n in range(60))]
        async with (
            LyingRelay(ignores_filters=True, most_rows=60) as server,
            connected(server.url) as relay,
        ):
            server.put(*crowd, *plain(*events(3, at=NOW_S - 60)))
            fetched = await relay.fetch(MINE)
            assert not fetched.complete and "we did not ask for" in fetched.reason
            assert fetched.bad["author"] >= 60

    async def test_all_forged_is_not_nothing_stored(self) -> None:
        async with LyingRelay(forges_signatures=True) as server, connected(server.url) as relay:
            server.put(*plain(*events(60)))
            fetched = await relay.fetch(MINE)
            assert not fetched.complete and not fetched.count and fetched.bad["forged"] >= 60

    async def test_an_event_of_five_million_characters_is_dropped_undecoded(self) -> None:
        good = event("good")
        huge = {**plain(good)[0], "content": "x" * 5_000_000}
        async with LyingRelay(adds=[huge]) as server, connected(server.url) as relay:
            server.put(*plain(good))
            fetched = await relay.fetch(MINE)
            assert fetched.events == [good] and fetched.bad["oversize"]
            assert relay.status().bad["oversize"]

    async def test_versions_and_ties_all_come_for_the_reader_to_choose(self) -> None:
        old, new = event("a", at=NOW_S - 5), event("a")
        ties = [event("b", content=content) for content in ("1", "2")]
        async with LyingRelay(keeps_old=True) as server, connected(server.url) as relay:
            server.put(*plain(new, old, *ties))
            assert ids((await relay.fetch(MINE)).events) == ids([old, new, *ties])


class TestWhatBreaks:
    async def test_a_connection_that_breaks_within_a_frame_is_made_again_and_it_goes_on(self) -> None:
        lies = {"cuts_after_rows": 7, "cuts_times": 2}
        async with LyingRelay(**lies) as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            fetched = await relay.fetch(ALL)
            assert fetched.complete and ids(fetched.events) == ids(FIVE_SECONDS) and fetched.count == 40
            assert server.connections == 3

    async def test_one_that_breaks_each_time_is_no_whole_answer(self) -> None:
        async with LyingRelay(cuts_after_rows=7) as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            fetched = await relay.fetch(ALL)
            assert not fetched.complete and fetched.count == 7

    async def test_a_relay_that_wants_it_slower_is_asked_again(self) -> None:
        lies = {"closes": "rate-limited: slow down", "closes_times": 2}
        async with LyingRelay(**lies) as server, connected(server.url, timeout_s=0.2) as relay:
            server.put(*plain(*FIVE_SECONDS))
            fetched = await relay.fetch(ALL)
            assert fetched.complete and fetched.count == 40

    async def test_a_filter_that_is_refused_does_not_cost_the_others(self) -> None:
        async with (
            LyingRelay(closes="invalid: too broad", closes_times=1) as server,
            connected(server.url) as relay,
        ):
            server.put(*plain(*FIVE_SECONDS))
            fetched = await relay.fetch([Filter(kinds=(1,)), *ALL])
            assert not fetched.complete and "too broad" in fetched.reason and fetched.count == 40

    async def test_an_end_that_is_not_ours_ends_nothing(self) -> None:
        greets = [dumps(["EOSE", "x"]), dumps(["CLOSED", "x", "error: no"])]
        async with LyingRelay(greets=greets) as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            assert (await relay.fetch(ALL)).count == 40

    async def test_publishing_goes_on_meanwhile(self) -> None:
        more = events(20, at=NOW_S + 60)
        async with LyingRelay(most_rows=9) as server, connected(server.url) as relay:
            server.put(*plain(*FIVE_SECONDS))
            fetched, *_ = await asyncio.gather(relay.fetch(ALL), *map(relay.publish, more))
            assert ids(FIVE_SECONDS) <= ids(fetched.events)


_POOL: dict[tuple[int, int], Event] = {}
_DICE = random.Random(7)


def _pooled(number: int, at: int) -> Event:
    """Signing is dear: one event for each number and second."""
    key = (number, at)
    if key not in _POOL:
        _POOL[key] = event(f"p:{number}", at=NOW_S + at, content=str(_DICE.random()))
    return _POOL[key]

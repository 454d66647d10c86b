"""Our connection with a relay that others wrote, and what a client that others wrote does in its place.

The relay has ideas of its own about NIP-01. It knows its friends, and takes nothing of strangers.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import nostr_sdk
import pytest

from discoclaw.core.errors import RelayRefused
from discoclaw.nostr.event import Event
from discoclaw.nostr.relays.protocol import Filter
from tests.nostr.relay_kit import ME, NOW_S, OTHER, connected, event, events, ids, plain
from tests.servers.nostr_relay import LyingRelay
from tests.servers.third_party_relay import third_party_relay


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with third_party_relay(tmp_path_factory.mktemp("relay"), friends=[ME.public]) as address:
        yield address


def of(kind: int) -> list[Filter]:
    """Each test has a kind of its own."""
    return [Filter(authors=(ME.public,), kinds=(kind,))]


async def test_events_are_sent_and_fetched_page_by_page(url: str) -> None:
    """It leaves out events of exactly `until`: with plain paging a third of these would be lost."""
    sent = [event(f"x:{number}", at=NOW_S - number // 8, kind=30_401) for number in range(60)]
    async with connected(url, timeout_s=4) as relay:
        await asyncio.gather(*map(relay.publish, sent))
        await relay.publish(sent[0])  # which it calls a duplicate, and refuses
        fetched = await relay.fetch(of(30_401), page=20)
        assert fetched.complete and ids(fetched.events) == ids(sent)


async def test_older_versions_are_served_for_the_reader_to_choose(url: str) -> None:
    new, old = event("a:b", kind=30_402), event("a:b", kind=30_402, at=NOW_S - 5)
    async with connected(url, timeout_s=4) as relay:
        await relay.publish(new)
        await relay.publish(old)
        assert ids((await relay.fetch(of(30_402))).events) == {new.id, old.id}
        # Only a deletion by id is heeded.
        await relay.publish(ME.sign(5, "", [["a", f"30402:{ME.public}:a:b"], ["k", "30402"]], NOW_S + 1))
        assert ids((await relay.fetch(of(30_402))).events) == {new.id, old.id}
        await relay.publish(ME.sign(5, "", [["e", new.id], ["e", old.id], ["k", "30402"]], NOW_S + 2))
        assert not (await relay.fetch(of(30_402))).count


async def test_what_is_published_reaches_a_subscription(url: str) -> None:
    arrived = asyncio.Queue[Event]()
    async with connected(url, timeout_s=4) as relay:
        subscription = await relay.subscribe(of(30_403), arrived.put)
        async with asyncio.timeout(10):
            await subscription.caught_up.wait()
            sent = events(3, kind=30_403)
            for one in sent:
                await relay.publish(one)
            assert {(await arrived.get()).id for _ in sent} == ids(sent)


async def test_a_refusal_without_an_id_is_about_what_was_sent(url: str) -> None:
    too_old = event("x", at=NOW_S - 400_000_000, kind=30_404)
    async with connected(url, timeout_s=4) as relay:
        with pytest.raises(RelayRefused) as refused:
            await relay.publish(too_old)
        assert refused.value.prefix == "invalid"


async def test_a_stranger_is_told_that_it_is_one(url: str) -> None:
    """Where it lets a request go by, it says so only in a notice; that isn't an empty answer."""
    async with connected(url, keys=OTHER, timeout_s=1) as relay:
        fetched = await relay.fetch(of(30_405))
        assert not fetched.complete
        assert relay.status().last_notice.startswith("restricted:")
    async with connected(url, timeout_s=4) as relay:
        fetched = await relay.fetch(of(30_405))
        assert fetched.complete and relay.status().authenticated


@contextlib.asynccontextmanager
async def sdk(url: str) -> AsyncIterator[nostr_sdk.Client]:
    """The client of nostr-sdk, as careful as it can be told to be."""
    nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    client = nostr_sdk.ClientBuilder().verify_subscriptions(True).build()
    await client.add_relay(nostr_sdk.RelayUrl.parse(url))
    await client.connect(timedelta(seconds=1))
    try:
        yield client
    finally:
        await client.shutdown()


async def mine(client: nostr_sdk.Client) -> list[nostr_sdk.Event]:
    target = nostr_sdk.ReqTarget.auto([nostr_sdk.Filter().author(nostr_sdk.PublicKey.parse(ME.public))])
    return list(await client.fetch_events(target, timedelta(seconds=2)))


class TestWhyTheClientIsOurs:
    """What nostr-sdk's client does. One that fails here may be good news: docs/dev/decisions.md, "Nostr"."""

    async def test_a_dead_relay_looks_empty_to_it(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"ws://127.0.0.1:{free.getsockname()[1]}"
        async with sdk(url) as client:
            assert await mine(client) == []

    async def test_an_answer_that_breaks_off_looks_complete_to_it(self) -> None:
        async with LyingRelay(cuts_after_rows=40) as server, sdk(server.url) as client:
            server.put(*plain(*events(100)))
            assert len(await mine(client)) < 100

    async def test_a_forged_copy_of_a_known_event_gets_past_it(self) -> None:
        async with LyingRelay() as server, sdk(server.url) as client:
            server.put(*plain(event("a")))
            assert [one.verify() for one in await mine(client)] == [True]
            server.events.clear()
            server.lies.adds = [{**plain(event("a"))[0], "content": "forged"}]
            assert [(one.content(), one.verify()) for one in await mine(client)] == [("forged", False)]

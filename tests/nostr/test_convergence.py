"""Whatever relays do with events, the same memory comes of them: any order, losses, copies, lies, forgeries.

What is published in two stages of a bot, with all older versions, tombstones and requests to delete, has to
give the memory as it was at the end, as long as one relay has each event that counts.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.nostr.event import Event, Keys, SecretBox
from discoclaw.nostr.recovery import gather
from discoclaw.nostr.relays.embedded import EmbeddedRelay
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.schemas import APP, DELETE, Codec, Deletion, EventTemplate, supersedes
from discoclaw.store.files import session_name
from discoclaw.store.plain import FilesDisk
from tests.examples import FEW
from tests.memory.kit import NOW, Clock
from tests.nostr.recovery_kit import (
    ANN,
    BOB,
    CHANNEL,
    CLEO,
    CODEC,
    DM,
    KEYS,
    NAMES,
    BotMemory,
    StoredRelay,
)
from tests.nostr.relay_kit import connected, plain
from tests.servers.nostr_relay import LyingRelay
from tests.servers.third_party_relay import third_party_relay

NOTHING = FilesDisk(Path("nowhere"))
"""A disk with nothing on it."""

THREAD = "discord:thread:88"
STRANGER = Keys.parse("2".rjust(64, "0"))


@dataclass(frozen=True)
class Lived:
    """What was on disk at the end, every event that was ever published, and those that count at the end."""

    files: dict[str, bytes]
    events: list[Event]
    counting: list[Event]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    async def work() -> Lived:
        bot = BotMemory(tmp_path_factory.mktemp("lived") / "data")
        with bot:
            await bot.live()
            await bot.summarise(THREAD, "This will be cleared.")
            first = await bot.published()
            bot.clock.forward(minutes=10)
            await bot.change(ANN, "said later")
            await bot.summarise(DM, "They talked once more.")
            async with bot.mirrored() as mirror:
                await bot.memory.erase(BOB)
                await mirror.push()
            await bot.clear(THREAD)
            await bot.change(CLEO, "said at last")
            await bot.show("123", "Ann at work")
            await bot.show("789", "Cleopatra")
            last = await bot.published()
            files = bot.files()
            # With Bob the summary of the channel went, and no relay knows how far that had come.
            del files[f"cursors/{session_name(f'summary-{CHANNEL}')}"]
            return Lived(files, list({one.id: one for one in [*first, *last]}.values()), last)

    return asyncio.run(work())


async def memory_of(folder: Path, *relays: Any) -> dict[str, bytes]:
    """What a new disk has after a recovery, but for what only the old disk knew."""
    with BotMemory(folder / "data", Clock(NOW + 3_600_000)) as bot:
        await bot.recover(*relays)
        return bot.files()


async def content_of(*relays: Any) -> object:
    """What is found, as values that can be compared: the memory before it is written."""
    found = await gather(relays, CODEC, NAMES, NOTHING)
    ledgers = {subject: ledger.records() for subject, ledger in found.ledgers.items()}
    views = found.documents
    calls = {subject: sorted(calls, key=lambda one: one.id) for subject, calls in views.calls.items()}
    clears = sorted(views.clears, key=lambda one: one.id)
    return ledgers, views.profiles, views.groups, views.summaries, calls, clears


class TestTheSameMemory:
    async def test_it_is_the_one_that_was_lost(self, lived: Lived, tmp_path: Path) -> None:
        """Nothing of Bob, the later name, the later summary; and the cleared one stays away."""
        found = await memory_of(tmp_path, StoredRelay(*lived.events))
        assert found == lived.files
        assert not any("456" in name for name in found)
        assert f"rolling/{session_name(THREAD)}" not in found
        assert b"Cleopatra" in found["profiles/789.json"]

    @FEW
    @given(data=st.data())
    def test_in_any_order_with_copies_and_losses_over_three_relays(
        self, lived: Lived, data: st.DataObject
    ) -> None:
        """Each event that counts is at one of them at least; older versions are anywhere or nowhere."""
        places = st.sets(st.integers(0, 2), min_size=0, max_size=3)
        counting = {one.id for one in lived.counting}
        dice = random.Random(data.draw(st.integers(0, 2**32)))
        relays: list[list[Event]] = [[], [], []]
        for one in lived.events:
            for place in data.draw(places) or ({dice.randrange(3)} if one.id in counting else set()):
                relays[place] += [one] * dice.choice([1, 1, 2])
        for relay in relays:
            dice.shuffle(relay)
        served = [StoredRelay(*relay, url=f"ws://{number}") for number, relay in enumerate(relays)]
        assert asyncio.run(content_of(*served)) == asyncio.run(content_of(StoredRelay(*lived.counting)))

    @FEW
    @given(strange=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from("foeutdg")), max_size=6))
    def test_what_is_forged_foreign_old_or_redeleted_changes_nothing(
        self, lived: Lived, strange: Sequence[tuple[int, str]]
    ) -> None:
        others = [strange_event(lived, number, how) for number, how in strange]
        mixed = [*others, *lived.events, *others]
        assert asyncio.run(content_of(StoredRelay(*mixed))) == asyncio.run(
            content_of(StoredRelay(*lived.counting))
        )


def strange_event(lived: Lived, number: int, how: str) -> Event:
    """An event that is not to change anything, made of one that counts."""
    counting = [each for each in lived.counting if each.kind != DELETE]
    if how == "t":  # ids are random, and there is hardly a higher one than ffff…
        counting = [each for each in counting if "2" < each.id[0] < "d"]
    one = counting[number % min(20, len(counting))]
    at, tags = one.created_at, [list(tag) for tag in one.tags]
    if how == "f":  # somebody else's, in our place, later
        return STRANGER.sign(one.kind, one.content, tags, at + 1_000)
    if how == "o":  # ours, of an older time
        return KEYS.sign(one.kind, one.content, tags, at - 1 - number % 5)
    if how == "e":  # a stranger asks to delete it
        return Codec(STRANGER, SecretBox.of(STRANGER)).deletion(
            [Deletion(one.kind, one.d, (one.id,))], at + 1_000
        )
    if how == "u":  # we had deleted what was there before
        return CODEC.deletion([Deletion(one.kind, one.d, ("0" * 64,))], at - 1)
    if how == "t":  # a tie, of a higher id
        return tie(one, wins=False)
    if how == "d":  # the same with an address of another kind of ours
        return KEYS.sign(1, one.content, tags, at + 1_000)
    return KEYS.sign(APP, CODEC.keys.seal('{"note": 1}'), [["d", "snowclaw:daily:x"]], at + 1_000)


def tie(one: Event, *, wins: bool) -> Event:
    """A version of the very second of another one, which says something else, and wins by its id or not."""
    for number in range(1_000):
        body = dict(CODEC.decode(one)) | {"x_tie": number}
        template = EventTemplate(one.kind, one.d, body, hk=one.tag("hk") or "")
        other = CODEC.encode(template, one.created_at)
        if supersedes(other, one) is wins:
            return other
    raise AssertionError


class TestRealRelays:
    """The same over sockets, from relays with habits of their own, each of which lacks something."""

    async def test_two_honest_ones_a_stubborn_one_and_a_liar(self, lived: Lived, tmp_path: Path) -> None:
        dice = random.Random(4242)
        folder = tmp_path / "third"
        folder.mkdir()
        liar = LyingRelay(
            keeps_old=True,
            ignores_deletions=True,
            copies=2,
            adds=plain(*forgeries(lived)),
            most_rows=40,
        )
        with third_party_relay(folder) as third:
            async with AsyncExitStack() as stack:
                embedded = EmbeddedRelay(tmp_path / "embedded")
                await embedded.start()
                stack.push_async_callback(embedded.stop)
                await stack.enter_async_context(liar)
                liar.put(*plain(*dice.sample(lived.events, len(lived.events))))
                relays = [
                    await stack.enter_async_context(connected(url, keys=KEYS, timeout_s=5))
                    for url in (embedded.url, third, liar.url)
                ]
                await send(relays[0], dice.sample(lived.counting, len(lived.counting) // 2))
                ours = [one for one in lived.events if one.kind != DELETE]
                await send(relays[1], dice.sample(ours, len(ours) // 2))
                assert await memory_of(tmp_path, *relays) == lived.files
                alone = await memory_of(tmp_path / "alone", relays[2])
                assert alone == lived.files


async def send(relay: Relay, events: Sequence[Event]) -> None:
    for one in events:
        await relay.publish(one)


def forgeries(lived: Lived) -> Iterator[Event]:
    """Events whose id or signature is wrong, and such of somebody else, in the place of ours."""
    for one in lived.counting[:3]:
        yield replace(one, content=one.content + "A")
        yield replace(one, created_at=one.created_at + 1)
        yield STRANGER.sign(one.kind, one.content, [list(tag) for tag in one.tags], one.created_at + 9)

"""A mirror that several processes have in turn: nothing is published twice, and what was erased goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.adapter import OthersChanges, SharingAdapter
from discoclaw.nostr.config import NostrConfig
from discoclaw.nostr.event import SecretBox
from discoclaw.nostr.mirror import STEP
from discoclaw.nostr.schemas import Codec
from discoclaw.nostr.units import unit_of
from tests.memory.kit import Clock, remember
from tests.memory.together import Together
from tests.nostr.recovery_kit import ANN, BOB, KEYS
from tests.servers.nostr_relay import LyingRelay
from tests.tables import naming

CANARY, COFFEE = "Kanarie-4711", "coffee-4712"


class Process:
    """One process with a mirror. Each has a disk of its own for its outbox."""

    def __init__(self, store: Together, relay: LyingRelay, folder: Path, clock: Clock) -> None:
        self.member = store.join()
        self.memory = Memory(Disks(folder / "memory", self.member.disk), clock=clock)
        codec = Codec(KEYS, SecretBox.of(KEYS), allow_plaintext=True)
        config = NostrConfig(codec, (relay.url,), folder, folder / "outbox.sqlite", flush_s=0.0)
        self.adapter = SharingAdapter(config, self.memory, clock=clock)
        self.memory.join(self.adapter.mirror, OthersChanges(self.adapter.mirror))
        self.member.listener = self.memory.changes

    async def begin(self) -> None:
        """Mirror, until everything that is to be published is."""
        await self.adapter.open()
        await self.adapter.start()
        (learning,) = [one for one in self.adapter._tasks if one.get_name() == "nostr-mirror"]
        await learning
        await self.flush()

    async def flush(self) -> None:
        await self.adapter.flush(10)

    async def remember(self, subject: str, word: str) -> None:
        await self.memory.change(subject, "why", remember(f"User prefers {word}.", "preference"))


def contents(relay: LyingRelay) -> str:
    return "\n".join(event["content"] for event in relay.events)


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[tuple[LyingRelay, Clock, Process, Process]]:
    """A relay, a clock, and two processes with one store."""
    store, clock = Together(), Clock()
    async with LyingRelay() as relay:
        one, other = (Process(store, relay, folder / name, clock) for name in "ab")
        yield relay, clock, one, other


async def test_the_next_process_publishes_nothing_again(tmp_path: Path) -> None:
    async with two(tmp_path) as (relay, clock, one, other):
        await one.remember(ANN, COFFEE)
        await one.begin()
        before = {event["id"] for event in relay.events}
        assert before
        await one.adapter.close()
        clock.forward(minutes=10)
        await other.begin()
        assert {event["id"] for event in relay.events} == before
        await other.remember(BOB, CANARY)
        await other.flush()
        assert CANARY in contents(relay)
        await other.adapter.close()


async def test_what_another_process_changes_is_mirrored(tmp_path: Path) -> None:
    async with two(tmp_path) as (relay, _clock, one, other):
        await one.begin()
        await other.remember(ANN, CANARY)
        await one.member.hear()
        await one.adapter.mirror.settle()
        await one.adapter.drain(10)
        assert CANARY in contents(relay)
        await one.adapter.close()


async def test_the_next_process_deletes_what_a_killed_one_published(tmp_path: Path) -> None:
    async with two(tmp_path) as (relay, clock, one, other):
        await one.remember(ANN, CANARY)
        await one.remember(BOB, COFFEE)
        await one.begin()
        assert CANARY in contents(relay)
        await one.adapter.close()
        await one.member.kill()
        await other.member.hear()
        await other.memory.erase(ANN)
        assert other.memory.pending_erasures(STEP) == [ANN]
        clock.forward(minutes=10)
        await other.begin()
        assert CANARY not in contents(relay) and COFFEE in contents(relay)
        assert other.memory.pending_erasures(STEP) == []
        await other.adapter.close()


async def test_an_erasure_is_not_over_before_the_relays_have_it(tmp_path: Path) -> None:
    async with two(tmp_path) as (relay, clock, one, other):
        await one.remember(ANN, CANARY)
        await one.begin()
        relay.lies.refuses = "error: not now"
        clock.forward(minutes=10)
        await one.memory.erase(ANN)
        await one.adapter.mirror.settle()
        assert one.memory.pending_erasures(STEP) == [ANN]  # its outbox alone knows of it
        await one.adapter.close()
        await one.member.kill()
        relay.lies.refuses = None
        await other.member.hear()
        clock.forward(minutes=10)
        await other.begin()
        assert CANARY not in contents(relay)
        await other.adapter.close()


async def test_a_process_begins_with_no_old_outbox_and_can_mirror_again(tmp_path: Path) -> None:
    async with two(tmp_path) as (relay, _, one, _):
        await one.remember(ANN, CANARY)
        await one.begin()
        await one.adapter.close()
        await one.remember(BOB, COFFEE)
        await one.begin()
        assert CANARY in contents(relay) and COFFEE in contents(relay)
        await one.adapter.close()


def test_each_text_of_the_store_is_shown_by_its_unit() -> None:
    for name, unit in (
        ("ledger/user-1.jsonl", "user-1"),
        ("tools/user-1.jsonl", "user-1"),
        ("erasing/user-1.json", "user-1"),
        ("profiles/1.json", "user-1"),
        ("groups/7.json", "group-7"),
        ("rolling/discord:dm:1.json", "session:discord:dm:1"),
        ("cursors/summary-discord:channel:7.json", "session:discord:channel:7"),
        ("cursors/facts-1.json", None),
        ("choices/1.json", "choices"),
        ("choices.json", "choices"),
        ("config.json", None),
    ):
        with naming(name, unit):
            assert unit_of(name) == unit

"""A disk is lost and comes back from relays, byte for byte; and whatever else may lie in the way."""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.errors import MemoryFault, Refused, RelayUnreachable
from discoclaw.core.event import Ref
from discoclaw.core.profile import Group, Profile
from discoclaw.memory.conversations.clears import Clear
from discoclaw.memory.live import LiveConfig
from discoclaw.memory.people import tool_log
from discoclaw.memory.stores import Store
from discoclaw.memory.subjects import ledger, verbs
from discoclaw.nostr.delivery import Delivery
from discoclaw.nostr.documents import DocumentCodec
from discoclaw.nostr.event import Event, SecretBox, canonical, sha256
from discoclaw.nostr.mirror import Mirror, Pace
from discoclaw.nostr.owner import OwnerNotes
from discoclaw.nostr.recovery import preview
from discoclaw.nostr.relays.connection import Timing
from discoclaw.nostr.relays.embedded import EmbeddedRelay
from discoclaw.nostr.relays.relay import Relay
from discoclaw.nostr.report import Progress, RecoveryReport
from discoclaw.nostr.schemas import (
    APP,
    DELETE,
    ERASED,
    PREFERENCE,
    SUMMARY,
    TOOL,
    UNIQUE,
    Codec,
    EventTemplate,
)
from discoclaw.nostr.units import Views
from discoclaw.store.files import render_json, session_name
from discoclaw.store.port import CURSORS, GROUPS, PROFILES, ROLLING
from tests.memory.child import full_at
from tests.memory.kills import chosen
from tests.memory.kit import NOW, REPOSITORY, Clock, asides, edit, texts
from tests.nostr.recovery_kit import (
    ANN,
    BOB,
    CHANNEL,
    CLEO,
    CODEC,
    DEAD,
    DM,
    KEYS,
    NAMES,
    STATED,
    BotMemory,
    StoredRelay,
    of_kind,
    records_of,
)
from tests.nostr.relay_kit import connected, plain
from tests.servers.nostr_relay import LyingRelay


@dataclass(frozen=True)
class Lived:
    """A memory that was lived once for all tests: what it was on disk, and what was published of it."""

    files: dict[str, bytes]
    events: list[Event]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    async def work() -> Lived:
        with BotMemory(tmp_path_factory.mktemp("lived") / "data") as bot:
            await bot.live()
            return Lived(bot.files(), await bot.published())

    return asyncio.run(work())


def late() -> Clock:
    """A clock behind everything that was published."""
    return Clock(NOW + 3_600_000)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[BotMemory]:
    """A new disk."""
    with BotMemory(tmp_path / "data", late()) as bot:
        yield bot


def shuffled(events: list[Event]) -> list[Event]:
    return random.Random(4242).sample(events, len(events))


def lines_of(bot: BotMemory, subject: str) -> ledger.Loaded:
    return ledger.read(bot.memory.ledgers.log(subject))


def warning(report: RecoveryReport, words: str) -> str:
    """The one warning with these words in it."""
    (found,) = [one for one in report.warnings() if words in one]
    return found


class TestEverythingComesBack:
    @pytest.mark.parametrize("store", ["files", "sqlite"])
    async def test_byte_for_byte_from_a_real_relay(self, tmp_path: Path, store: Store) -> None:
        embedded = EmbeddedRelay(tmp_path / "relay")
        await embedded.start()
        bot = BotMemory(tmp_path / "data", store=store)
        async with connected(embedded.url, keys=KEYS) as relay:
            with bot:
                await bot.live()
                async with bot.mirrored():
                    before = bot.files()
                    delivery = Delivery(bot.outbox, [relay], min_acks=1, clock=bot.clock)
                    delivery.start()
                    assert (await delivery.drain(10)).safe
                    await delivery.close()
                known = bot.outbox.inventory()
            bot.lose()
            with bot:
                said: list[Progress] = []
                report = await bot.recover(relay, progress=said.append)
                assert bot.files() == before
                assert (report.is_complete, report.warnings()) == (True, [])
                assert report.ledgers[BOB].records == 1
                assert [one.stage for one in said if one.done == one.total] == ["reading", "writing"]
                assert bot.outbox.inventory() == known
                async with bot.mirrored():
                    assert bot.outbox.due(relay.url, 10**15, 10**6) == []
        await embedded.stop()

    async def test_twice_is_once(self, lived: Lived, empty: BotMemory) -> None:
        await empty.recover(StoredRelay(*lived.events))
        assert empty.files() == lived.files
        again = await empty.recover(StoredRelay(*shuffled(lived.events)))
        assert not (again.records or again.files) and again.is_complete
        assert empty.files() == lived.files

    async def test_a_relay_that_lacks_something_gets_it_the_same_event(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        events, half = lived.events, lived.events[::2]
        report = await empty.recover(StoredRelay(*events, url="ws://a"), StoredRelay(*half, url="ws://b"))
        lacking = f"ws://b lacks {len(events) - len(half)} of {len(events)} events"
        assert warning(report, "lacks").startswith(lacking)
        due = empty.outbox.due("ws://b", 10**15, 10**6)
        assert {one.id for one in due} == {one.id for one in events} - {one.id for one in half}
        assert empty.outbox.due("ws://a", 10**15, 10**6) == []

    async def test_a_preview_says_the_same_and_writes_nothing(self, lived: Lived, empty: BotMemory) -> None:
        relay, disk = StoredRelay(*lived.events), empty.memory.disk
        seen = await preview([relay], CODEC, NAMES, disk, clock=empty.clock)
        assert empty.files() == {}
        done = await empty.recover(relay)
        assert (seen.dry, seen.records, seen.subjects) == (True, done.records, done.subjects)
        assert seen.files == done.files

    async def test_where_nothing_may_be_remembered_it_is_refused(self, lived: Lived, tmp_path: Path) -> None:
        with (
            BotMemory(tmp_path / "data", store="none") as bot,
            pytest.raises(Refused, match="DISCOCLAW_STORE=none"),
        ):
            await bot.recover(StoredRelay(*lived.events))


class TestRelaysThatSayLess:
    async def test_where_none_can_be_read_nothing_is_done_and_that_is_an_error(
        self, empty: BotMemory
    ) -> None:
        await empty.change(ANN, "likes tea")
        before = empty.files()
        async with LyingRelay() as gone:
            pass
        relay = Relay(gone.url, KEYS, timing=Timing(timeout_s=0.05))
        relay.start()
        try:
            with pytest.raises(RelayUnreachable, match=r"no relay could be read.*ws://127.*ws://dead"):
                await empty.recover(relay, DEAD)
        finally:
            await relay.close()
        assert empty.files() == before

    async def test_an_empty_relay_is_no_error(self, empty: BotMemory) -> None:
        report = await empty.recover(StoredRelay())
        assert not (report.records or report.files) and report.is_complete

    async def test_a_relay_without_an_end_is_partial_and_not_empty(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        async with LyingRelay(no_eose=True) as lying, connected(lying.url, keys=KEYS, timeout_s=0.5) as relay:
            lying.put(*plain(*lived.events[:30]))
            report = await empty.recover(relay)
        assert not report.is_complete
        assert "served 30 events, but maybe not everything it has" in warning(report, "ws://127")

    async def test_a_dead_relay_is_told_and_the_others_bring_all(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        report = await empty.recover(DEAD, StoredRelay(*lived.events))
        assert empty.files() == lived.files
        assert report.is_complete and warning(report, "ws://dead served nothing")

    async def test_an_older_state_is_found_out_by_the_index(self, lived: Lived, empty: BotMemory) -> None:
        """All of Ann's ledger but its first two records is gone from the only relay."""
        gone = records_of(lived.events, ANN)[2:]
        report = await empty.recover(StoredRelay(*(one for one in lived.events if one not in gone)))
        assert not report.is_complete
        missing = f"ws://stored lacks {len(gone)} of {len(gone) + 2} published records of 1 memory"
        assert warning(report, "rolled back").startswith(missing)

    async def test_a_ledger_that_is_not_served_at_all_is_missed_too(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        rest = [one for one in lived.events if one not in records_of(lived.events, BOB)]
        report = await empty.recover(StoredRelay(*rest, url="ws://a"), StoredRelay(*rest, url="ws://b"))
        parts = len(lived.events) - len(rest)
        assert warning(report, "rolled back").startswith(
            f"every relay lacks {parts} of {parts} published records of 1 "
        )
        assert parts > 1

    async def test_a_record_that_is_on_no_relay_is_accepted_and_comes_later(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        """What follows it is kept, and whoever has it may bring it another day."""
        ours = records_of(lived.events, ANN)
        gone = next(one for one in ours if CODEC.decode(one)["line"] == 1)
        report = await empty.recover(StoredRelay(*(one for one in lived.events if one is not gone)))
        assert not report.is_complete and "1 commit on no relay" in warning(report, ANN)
        loaded = lines_of(empty, ANN)
        assert (loaded.damage, len(loaded.records)) == ((), len(ours))
        assert "User has the flu." not in await texts(empty.memory, ANN)
        await empty.change(ANN, "likes tea")

        later = await empty.recover(StoredRelay(*lived.events))
        assert later.is_complete and later.records == 1
        assert {"User has the flu.", "likes tea"} <= set(await texts(empty.memory, ANN))


class TestWhatIsHereIsNeverLost:
    async def test_a_ledger_is_united_with_what_was_found(self, lived: Lived, empty: BotMemory) -> None:
        await empty.recover(
            StoredRelay(*[one for one in lived.events if CODEC.decode(one).get("line", 0) < 3])
        )
        await empty.change(ANN, "said since")
        edited = empty.memory.durable_folder / "456.json"
        edit(edited, lambda file: file["items"].append({"kind": "fact", "text": "by hand"}))
        await empty.recover(StoredRelay(*lived.events))
        whole = {record.id for record in lines_of(empty, ANN).records}
        assert whole > {CODEC.decode(one)["record"]["id"] for one in records_of(lived.events, ANN)}
        assert {"said since", "User has a cat."} <= set(await texts(empty.memory, ANN))
        assert "by hand" in await texts(empty.memory, BOB)
        assert lines_of(empty, ANN).damage == ()

    async def test_a_durable_file_without_its_ledger_counts_as_what_it_is(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        """A picture of the lost ledger changes nothing; an edit of it becomes a commit."""
        empty.memory.durable_folder.mkdir(parents=True)
        for name in ("123", "456"):
            path = empty.memory.durable_folder / f"{name}.json"
            path.write_bytes(lived.files[f"durable/{name}.json"])
        edit(empty.memory.durable_folder / "456.json", lambda file: file["items"].pop())
        await empty.recover(StoredRelay(*lived.events))
        assert empty.files()[f"ledger/{ANN}.jsonl"] == lived.files[f"ledger/{ANN}.jsonl"]
        assert [one.message for one in lines_of(empty, BOB).commits] == ["remembered", "edited by hand"]

    async def test_profiles_and_groups_are_brought_together(self, lived: Lived, empty: BotMemory) -> None:
        disk = empty.memory.disk
        first = json.loads(lived.files["profiles/123.json"])["first_seen"]
        here = Profile((("Ann", first - 60), ("Annie", first + 900)), first - 60, other={"since": "here"})
        disk.documents(PROFILES).write("123.json", render_json(here.to_json()))
        group = Group(None, (("789", "Cleo"), ("123", "Ann now")))
        disk.documents(GROUPS).write("77.json", render_json(group.to_json()))
        await empty.recover(StoredRelay(*lived.events))
        profile = json.loads(disk.documents(PROFILES).read("123.json"))
        assert [name for name, _ in profile["display_names"]] == ["Ann", "Ann at work", "Annie"]
        assert (profile["first_seen"], profile["since"]) == (first - 60, "here")
        assert "User has a cat." in profile["notes"]
        found = json.loads(disk.documents(GROUPS).read("77.json"))
        assert found["members"] == [["456", "Bøb 🐍"], ["789", "Cleo"], ["123", "Ann now"]]
        assert (found["purpose"], found["mood"]) == ("All about cats", "good")
        assert found["themes"] == ["cats"]

    @pytest.mark.parametrize("later", [-1, 0, 1])
    async def test_of_two_summaries_the_later_one_counts(
        self, lived: Lived, empty: BotMemory, later: int
    ) -> None:
        name, rolling = session_name(CHANNEL), empty.memory.disk.documents(ROLLING)
        at = json.loads(lived.files[f"rolling/{name}"])["updatedAt"]
        here = render_json({"summary": "What was here.", "updatedAt": at + later})
        rolling.write(name, here)
        report = await empty.recover(StoredRelay(*lived.events))
        ours = later >= 0
        assert rolling.read(name) == (here if ours else lived.files[f"rolling/{name}"])
        assert (f"rolling/{name}" in report.files) is not ours
        cursor = empty.memory.disk.documents(CURSORS)
        assert (session_name(f"summary-{CHANNEL}") in cursor.names()) is (later <= 0)

    async def test_a_file_that_can_not_be_read_is_kept_aside(self, lived: Lived, empty: BotMemory) -> None:
        broken = {
            ROLLING: session_name(CHANNEL),
            PROFILES: "123.json",
            GROUPS: "77.json",
            CURSORS: session_name(f"people-{CHANNEL}"),
        }
        for folder, name in broken.items():
            empty.memory.disk.documents(folder).write(name, b"{no JSON")
        await empty.recover(StoredRelay(*lived.events))
        for folder, name in broken.items():
            (aside,) = asides(empty.root / folder / name, "corrupt")
            assert aside.read_bytes() == b"{no JSON"
            aside.unlink()
        assert empty.files() == lived.files

    async def test_a_damaged_ledger_is_left_alone_and_told(self, lived: Lived, empty: BotMemory) -> None:
        lines = lived.files[f"ledger/{ANN}.jsonl"].replace(b"cat", b"dog", 1)
        empty.memory.ledgers.log(ANN).replace(lines)
        relay, clock = StoredRelay(*lived.events), empty.clock
        seen = await preview([relay], CODEC, NAMES, empty.memory.disk, clock=clock)
        report = await empty.recover(relay)
        assert not (report.is_complete or seen.is_complete)
        for one in (report, seen):
            assert "verify --repair" in warning(one, f"{ANN}: nothing was restored")
        assert empty.memory.ledgers.log(ANN).read() == lines
        assert empty.files()[f"ledger/{BOB}.jsonl"] == lived.files[f"ledger/{BOB}.jsonl"]

    async def test_a_future_record_is_refused_with_the_way_out(self, lived: Lived, tmp_path: Path) -> None:
        """The clock of a new machine stands at 1970; nothing of a ledger is taken then."""
        with BotMemory(tmp_path / "data", Clock(1_000)) as bot:
            report = await bot.recover(StoredRelay(*records_of(lived.events, ANN)))
            assert "set the clock right" in warning(report, ANN)
            assert bot.files() == {}


class TestBesideAMirror:
    async def test_nothing_is_signed_anew_while_it_comes_back(self, lived: Lived, empty: BotMemory) -> None:
        """The outbox learns last what is published; until then everything would desired new to a mirror."""
        views = Views(empty.memory.disk, NAMES)
        mirror = Mirror(
            empty.memory, views, CODEC, empty.outbox, clock=empty.clock, pace=Pace(flush_s=0, gap_s=0)
        )
        await empty.recover(StoredRelay(*lived.events))
        await mirror.push()
        await mirror.close()
        known = empty.outbox.due("ws://nowhere", 10**15, 10**6)
        assert {event.id for event in known} == {event.id for event in lived.events}


async def erased_elsewhere(lived: Lived, empty: BotMemory, tmp_path: Path) -> list[Event]:
    """Recover here and in another replica, which then erases Ann; what it sends about that."""
    await empty.recover(StoredRelay(*lived.events))
    with BotMemory(tmp_path / "elsewhere", empty.clock) as other:
        await other.recover(StoredRelay(*lived.events))
        async with other.mirrored() as mirror:
            await other.memory.erase(ANN)
            await mirror.push()
        return other.outbox.due("ws://nowhere", 10**15, 10**6)


class TestErasing:
    async def test_what_was_erased_here_does_not_come_back(self, lived: Lived, empty: BotMemory) -> None:
        await empty.memory.erase(ANN)
        report = await empty.recover(StoredRelay(*lived.events))
        names = empty.files().keys()
        assert not any("123" in name for name in names)
        assert session_name(CHANNEL) not in empty.memory.disk.documents(ROLLING).names()
        assert "erased here are still on relays" in warning(report, ANN)
        group = json.loads(empty.files()["groups/77.json"])
        assert [user for user, _ in group["members"]] == ["456"]
        again = await empty.recover(StoredRelay(*lived.events))
        assert not (again.records or again.files)

    async def test_what_was_erased_elsewhere_is_told_and_stays_here(
        self, lived: Lived, empty: BotMemory, tmp_path: Path
    ) -> None:
        after = await erased_elsewhere(lived, empty, tmp_path)
        before = empty.files()
        report = await empty.recover(StoredRelay(*lived.events, *after))
        count = len(lines_of(empty, ANN).records)
        assert f"{count} of {count} records here were erased by another replica" in warning(report, ANN)
        assert empty.files() == before

    @pytest.mark.design(317)
    async def test_what_was_erased_elsewhere_is_not_published_again_and_what_is_new_is(
        self, lived: Lived, empty: BotMemory, tmp_path: Path
    ) -> None:
        after = await erased_elsewhere(lived, empty, tmp_path)
        await empty.recover(StoredRelay(*lived.events, *after))

        def live() -> list[tuple[int, str]]:
            units = [NAMES.keyed_hash(unit) for unit in (ANN, f"session:{DM}")]
            rows = [row for unit in units for row in empty.outbox.known(unit).values()]
            return [(row.kind, row.d) for row in rows if not row.tombstone and row.kind != DELETE]

        async with empty.mirrored() as mirror:
            await mirror.push(full=True)
        assert live() == []
        empty.clock.forward(minutes=1)
        await empty.change(ANN, "is here again")
        await empty.summarise(DM, "They talk again.")
        async with empty.mirrored() as mirror:
            await mirror.push(full=True)
        last = lines_of(empty, ANN).records[-1]
        assert set(live()) == {
            (APP, NAMES.record(ANN, last.id)),
            (APP, NAMES.profile("123")),
            (PREFERENCE, f"{NAMES.user_key('123')}:preference"),
            (SUMMARY, f"{NAMES.history_key(DM)}:summary"),
        }

    async def test_a_deleted_person_does_not_come_back_though_old_versions_are_served(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        await empty.recover(StoredRelay(*lived.events))
        async with empty.mirrored() as mirror:
            await empty.memory.erase(ANN)
            await mirror.push()
        after = empty.outbox.due("ws://nowhere", 10**15, 10**6)
        empty.lose()
        with empty:
            await empty.recover(StoredRelay(*shuffled([*lived.events, *after, *lived.events])))
            assert not any("123" in name for name in empty.files())
            assert empty.files()[f"ledger/{BOB}.jsonl"] == lived.files[f"ledger/{BOB}.jsonl"]

    async def test_what_was_erased_with_a_clock_set_back_does_not_come_back_either(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        await empty.recover(StoredRelay(*lived.events))
        async with empty.mirrored() as mirror:
            empty.clock.now -= 400 * 86_400_000
            await empty.memory.erase(ANN)
            await mirror.push()
        report = await empty.recover(StoredRelay(*lived.events))  # which hides that anything was deleted
        assert not any("123" in name for name in empty.files())
        assert [subject for subject, one in report.ledgers.items() if one.records] == []


class TestWhatCanNotBeUsed:
    async def test_another_box_is_kept_apart_and_counted(self, lived: Lived, empty: BotMemory) -> None:
        other = Codec(KEYS, SecretBox(bytes(32)))
        summary = of_kind(lived.events, SUMMARY)[0]
        strange = other.encode(
            EventTemplate(SUMMARY, summary.d, {"x": 1}, hk=summary.tag("hk") or ""), 2_000_000_000
        )
        report = await empty.recover(StoredRelay(*lived.events, strange))
        assert "1 event cannot be used" in warning(report, "quarantine: it cannot be decrypted")
        assert empty.outbox.quarantined() == 1
        assert len([name for name in empty.files() if name.startswith("rolling/")]) == 1

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"subject": BOB}, "address"),
            ({"subject": "../../etc"}, "name its subject"),
            ({"line": -1}, "line is not a number"),
            ({"record": {"type": "commit"}}, "fields"),
            ({"record": None, "parts": 2, "part": 0, "text": "{"}, "parts are missing"),
        ],
    )
    async def test_a_record_that_is_not_what_its_address_says_is_left_out(
        self, lived: Lived, empty: BotMemory, change: dict[str, Any], why: str
    ) -> None:
        genuine = records_of(lived.events, CLEO)[-1]
        body = {**CODEC.decode(genuine), **change}
        forged = CODEC.encode(EventTemplate(APP, genuine.d, body), genuine.created_at + 1)
        report = await empty.recover(StoredRelay(*lived.events, forged))
        assert warning(report, why)
        assert genuine.id not in {record.id for record in lines_of(empty, CLEO).records}
        assert empty.files()[f"ledger/{ANN}.jsonl"] == lived.files[f"ledger/{ANN}.jsonl"]

    async def test_other_uses_of_the_key_are_none_of_ours(self, lived: Lived, empty: BotMemory) -> None:
        others = [
            KEYS.sign(APP, "hello", [["d", "snowclaw:core:mood"]], 1_800_000_000),
            KEYS.sign(1, "hello", [], 1_800_000_000),
        ]
        report = await empty.recover(StoredRelay(*lived.events, *others))
        assert report.warnings() == []
        assert empty.files() == lived.files


class TestWhatNeverLeftTheDisk:
    async def test_the_rest_is_kept_and_that_is_said(self, tmp_path: Path) -> None:
        """A confidential record is gone with the disk; what follows it on its branch and on others is not."""
        with BotMemory(tmp_path / "data") as bot:
            await bot.change(ANN, "likes tea")
            await bot.change(ANN, "has a secret", marked="confidential")
            await verbs.create_branch(bot.memory, ANN, "coding", "", by="command")
            await bot.change(ANN, "likes coffee")
            before, events = lines_of(bot, ANN).records, await bot.published()
            bot.lose()
            with bot:
                report = await bot.recover(StoredRelay(*events))
                assert "1 record never left the disk" in warning(report, "confidential")
                assert not report.is_complete
                loaded = lines_of(bot, ANN)
                assert loaded.damage == ()
                assert [one for one in loaded.records if one in before] == [
                    one for one in before if one is not before[1]
                ]
                (mend,) = [one for one in loaded.records if isinstance(one, Ref) and one.action == "mend"]
                assert (mend.head, mend.metadata["follows"]) == (before[1].id, before[0].id)
                assert await texts(bot.memory, ANN) == ["likes tea", "likes coffee"]
                coding = (await bot.memory.history(ANN)).branch("coding")
                assert (coding.head, coding.base) == (before[0].id, before[0].id)
                assert await texts(bot.memory, ANN, branch="coding") == ["likes tea"]
                await bot.change(ANN, "goes on")
                again = await bot.recover(StoredRelay(*events))
                assert not (again.records or again.files) and not again.is_complete

    async def test_where_the_disk_is_still_there_nothing_is_mended(self, empty: BotMemory) -> None:
        await empty.change(ANN, "has a secret", marked="confidential")
        await empty.change(ANN, "likes tea")
        events, before = await empty.published(), empty.files()
        report = await empty.recover(StoredRelay(*events))
        assert not (report.records or report.files) and report.warnings() == []
        assert empty.files() == before


class TestAddressesOfEarlierVersions:
    async def test_a_call_and_a_clear_whose_hash_leaves_out_the_padding_come_back_and_are_replaced(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        published = [_addressed_as_before(one) for one in lived.events]
        old = {one.d for one in published if one.kind in UNIQUE}
        assert len(old) == 4 and not old & {one.d for one in lived.events}
        report = await empty.recover(StoredRelay(*published))
        assert report.is_complete and report.warnings() == []
        assert empty.files() == lived.files
        async with empty.mirrored():
            due = empty.outbox.due("ws://nowhere", 10**15, 10**6)
        shown = {one.d for one in due if one.kind in UNIQUE and ERASED not in CODEC.decode(one)}
        assert shown == {one.d for one in lived.events if one.kind in UNIQUE}
        assert {one.d for one in due if one.kind in UNIQUE} - shown == old


def _addressed_as_before(event: Event) -> Event:
    """A tool call or clear marker under the hash of its JSON alone, any other event as it is."""
    if event.kind not in UNIQUE:
        return event
    body = CODEC.decode(event)
    hk = str(event.tag("hk"))
    template = EventTemplate(event.kind, f"{hk}:{sha256(canonical(body))}", body, event.created_at, hk)
    return CODEC.encode(template, event.created_at)


class TestNotesOfTheOwner:
    @pytest.mark.parametrize("named", [True, False], ids=["named by the stub", "of an older version"])
    async def test_one_that_was_withheld_does_not_come_back_after_it_was_forgotten(
        self, tmp_path: Path, named: bool
    ) -> None:
        with BotMemory(tmp_path / "data") as bot:
            await bot.change(ANN, "likes tea")
            at = bot.clock() // 1000
            event = KEYS.sign(APP, '{"notes":["Leads the team."]}', [["d", "snowclaw:memory:npub:123"]], at)
            notes = OwnerNotes(bot.memory, str, consent=UNLIMITED)
            assert await notes.add(event, event.content)
            bot.clock.forward(minutes=1)
            forget = lambda draft: draft.deprecate([*draft.items.values()][-1], STATED)  # noqa: E731
            await bot.memory.change(ANN, "forgotten", forget, by="command")
            _, noted, _ = lines_of(bot, ANN).records
            published = [_withheld(one, noted.id, named) for one in await bot.published()]
            bot.lose()
            with bot:
                report = await bot.recover(StoredRelay(*published))
                assert "1 record never left the disk" in warning(report, "contain a key")
                assert not report.is_complete
                live = LiveConfig(bot.memory.disk.documents(""), clock=bot.clock)
                live.load()
                assert live.fresh(event.d, event.created_at, event.id) is not named
                notes = OwnerNotes(bot.memory, str, consent=UNLIMITED)
                assert await notes.add(event, event.content)
                assert await texts(bot.memory, ANN) == ["likes tea"]


def _withheld(event: Event, record_id: str, named: bool) -> Event:
    """The event of this record as a stub, any other as it is. `named`: with the owner's event in it."""
    if event.d != NAMES.record(ANN, record_id):
        return event
    body = CODEC.decode(event)
    record = body.pop("record")
    stub = {**body, "withheld": True, "id": record_id, "parent": record["parent_id"], "reason": "secret"}
    if named:
        stub["event"] = record["metadata"]["event"]
    return CODEC.encode(EventTemplate(APP, event.d, stub), event.created_at)


class TestWhatAClearHides:
    async def test_older_summaries_and_calls_stay_hidden_and_later_ones_show(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        """The channel was cleared on another replica, between its tool calls, after the summary."""
        calls = tool_log.CALLS.read(empty.memory.disk.log(f"tools/{ANN}.jsonl"))
        assert calls == []
        await empty.recover(StoredRelay(*of_kind(lived.events, TOOL)))
        calls = tool_log.CALLS.read(empty.memory.disk.log(f"tools/{ANN}.jsonl"))
        at = next(one.at for one in calls if one.session == CHANNEL)
        marker = DocumentCodec(NAMES).clear(Clear("ab" * 8, at, CHANNEL, "456"))
        empty.lose()
        with empty:
            await empty.recover(StoredRelay(*lived.events, CODEC.encode(marker, at // 1000)))
            names = empty.files()
            assert f"rolling/{session_name(CHANNEL)}" not in names
            assert f"rolling/{session_name(DM)}" in names
            kept = tool_log.CALLS.read(empty.memory.disk.log(f"tools/{ANN}.jsonl"))
            assert kept == [one for one in calls if one.session == DM or one.at > at]
            assert len(kept) == len(calls) - 1
            assert "User prefers tabs over spaces." in names["profiles/123.json"].decode()

    async def test_calls_of_more_than_a_month_ago_stay_out(self, lived: Lived, empty: BotMemory) -> None:
        empty.clock.forward(minutes=31 * 24 * 60)
        report = await empty.recover(StoredRelay(*lived.events))
        assert report.is_complete and "tools" not in {name.partition("/")[0] for name in empty.files()}


class TestCutOff:
    @pytest.mark.long
    def test_after_a_kill_at_any_point_the_same_again_ends_the_same(
        self, lived: Lived, tmp_path: Path
    ) -> None:
        events = tmp_path / "events"
        events.write_text("".join(f"{one.encode()}\n" for one in lived.events), encoding="utf-8")
        with subprocess.Popen(
            [sys.executable, "-m", "tests.nostr.recover_child", str(events)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdin is not None and child.stdout is not None
            said = self.at(child, 0, tmp_path / "whole")
            assert json.loads(child.stdout.readline()) is True
            steps = chosen(said, last=False)
            for step in steps:
                data = tmp_path / f"data-{step}"
                done = self.at(child, step, data)
                with BotMemory(data, late()) as bot:
                    asyncio.run(bot.recover(StoredRelay(*lived.events)))
                    assert bot.files() == lived.files, step
        assert done
        assert len(steps) > 5

    def at(self, child: "subprocess.Popen[str]", step: int, data: Path) -> Any:
        """What the child says to a recovery that is killed at a step."""
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(json.dumps([step, str(data)]) + "\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())

    async def test_a_full_disk_is_an_error_and_with_room_the_same_again_goes_on(
        self, lived: Lived, empty: BotMemory
    ) -> None:
        """The first file that does not fit is Bob's ledger, of 50 kB; everything that is there is whole."""
        with full_at(45_000), pytest.raises(MemoryFault, match=r"user-456\.jsonl could not be written"):
            await empty.recover(StoredRelay(*lived.events))
        assert {name: lived.files[name] for name in empty.files()} == empty.files()
        await empty.recover(StoredRelay(*lived.events))
        assert empty.files() == lived.files

    async def test_a_full_disk_stops_at_a_view_too(self, lived: Lived, empty: BotMemory) -> None:
        with full_at(100), pytest.raises(MemoryFault, match="free some space on the disk and recover again"):
            await empty.recover(StoredRelay(*lived.events))
        await empty.recover(StoredRelay(*lived.events))
        assert empty.files() == lived.files

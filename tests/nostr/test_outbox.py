"""The outbox: what was signed is there for good, once, and each relay gets what it has not got."""

import contextlib
import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import MemoryFault, NewerSchema, NostrError
from discoclaw.nostr import outbox as rows
from discoclaw.nostr.event import Event
from discoclaw.nostr.outbox import MAX_QUARANTINED, DeliveryProgress, Outbox, OutboxEntry, Row
from discoclaw.nostr.schemas import APP, DELETE, PREFERENCE
from tests.memory.kit import NOW, STAMP, Clock
from tests.nostr.outbox_kit import (
    KEYS,
    OTHER,
    START_S,
    UNIT,
    address,
    deletion,
    entries,
    entry,
    full,
    ids,
    signed,
    unsigned,
)

HERE, THERE = "wss://here.example", "wss://there.example"
FAR = 10**15


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outbox" / "outbox.sqlite"


@pytest.fixture
def outbox(path: Path, clock: Clock) -> Iterator[Outbox]:
    made = Outbox(path, clock=clock)
    made.open()
    yield made
    made.close()


def due(outbox: Outbox, relay: str = HERE, *, now: int = NOW, limit: int = 100) -> list[str]:
    """The ids of what a relay is to get."""
    return [event.id for event in outbox.due(relay, now, limit)]


def depth(outbox: Outbox, relay: str = HERE) -> int:
    return outbox.status([relay]).relays[relay].depth


class TestWhatIsPublished:
    def test_an_address_has_its_newest_version(self, outbox: Outbox) -> None:
        outbox.put(UNIT, [entry("one"), entry("two")])
        newer = entry("one", START_S + 1, content="y")
        outbox.put(UNIT, [newer])
        held = outbox.known(UNIT)
        assert set(held) == {(APP, address("one")), (APP, address("two"))}
        assert held[APP, address("one")] == Row(
            APP, address("one"), START_S + 1, "digest of y", newer.event.id, False
        )
        assert outbox.latest(APP, address("one")) == held[APP, address("one")]
        assert outbox.latest(APP, address("three")) is None

    def test_every_version_is_remembered_by_its_id(self, outbox: Outbox) -> None:
        versions = [entry("one", START_S + number) for number in range(3)]
        for version in versions:
            outbox.put(UNIT, [version])
        outbox.put(UNIT, [entry("two")])
        assert outbox.versions(APP, address("one")) == [version.event.id for version in versions]

    def test_what_is_there_already_changes_nothing(self, outbox: Outbox) -> None:
        outbox.put(UNIT, [entry("one")])
        outbox.mark_acked(HERE, ids(outbox))
        outbox.put(UNIT, [entry("one")])
        assert due(outbox) == []

    def test_a_version_that_is_not_newer_is_refused_and_nothing_is_half_done(self, outbox: Outbox) -> None:
        outbox.put(UNIT, [entry("one")], cursor=10)
        with pytest.raises(NostrError, match="has to be later"):
            outbox.put(UNIT, [entry("two"), entry("one", content="y")], cursor=20)
        assert set(outbox.known(UNIT)) == {(APP, address("one"))}
        assert outbox.cursor(UNIT) == 10

    def test_units_are_apart_and_have_cursors(self, outbox: Outbox) -> None:
        outbox.put(UNIT, [entry("one")], cursor=7)
        outbox.put(OTHER, [entry("two")])
        outbox.put("c" * 32, [], cursor=9)
        assert outbox.units() == [UNIT, OTHER, "c" * 32]
        assert set(outbox.known(OTHER)) == {(APP, address("two"))}
        assert [outbox.cursor(unit) for unit in outbox.units()] == [7, 0, 9]

    def test_a_request_to_delete_is_its_own_address(self, outbox: Outbox) -> None:
        first, second = deletion(["one"], START_S), deletion(["one"], START_S + 1)
        outbox.put(UNIT, [first, second])
        assert set(outbox.known(UNIT)) == {(DELETE, first.event.id), (DELETE, second.event.id)}

    def test_an_event_comes_back_as_it_was_signed(self, outbox: Outbox) -> None:
        event = signed("one", content="ciphertext “…” \U0001f600")
        outbox.put(UNIT, [OutboxEntry(event, "")])
        assert outbox.due(HERE, NOW, 1) == [event]

    def test_a_restart_finds_everything(self, outbox: Outbox, path: Path, clock: Clock) -> None:
        outbox.put(UNIT, entries(3), cursor=5)
        outbox.mark_acked(HERE, due(outbox, limit=1))
        outbox.set_meta("greeting", "hello")
        left = due(outbox)
        outbox.close()
        again = Outbox(path, clock=clock)
        again.open()
        with contextlib.closing(again):
            assert (due(again), again.cursor(UNIT), again.meta("greeting")) == (left, 5, "hello")


class TestWhatARelayIsToGet:
    def test_what_failed_comes_again_after_its_time_and_behind_what_is_new(self, outbox: Outbox) -> None:
        first, second, third = (one.event.id for one in entries(3))
        outbox.put(UNIT, entries(2))
        outbox.postpone(HERE, first, NOW + 1000, "error: busy")
        assert (due(outbox), outbox.next_due(HERE, NOW)) == ([second], NOW + 1000)
        outbox.put(UNIT, entries(3))
        assert due(outbox, now=NOW + 1000) == [second, third, first]
        assert outbox.next_due(HERE, NOW + 1000) is None
        assert due(outbox, THERE) == [first, second, third]

    def test_what_it_refused_only_when_it_is_asked_again(self, outbox: Outbox) -> None:
        outbox.put(UNIT, entries(2))
        first, second = due(outbox)
        outbox.park(HERE, first, "blocked: no")
        assert (due(outbox, now=FAR), due(outbox, THERE)) == ([second], [first, second])
        assert outbox.unpark(THERE) == 0
        assert outbox.unpark("wss://nobody.example") == 0
        assert outbox.unpark(HERE) == 1
        assert due(outbox) == [first, second]
        outbox.park(HERE, first, "blocked: no")
        outbox.park(THERE, second, "pow: 30")
        assert outbox.unpark() == 2

    def test_a_start_tries_again_at_once(self, outbox: Outbox) -> None:
        outbox.put(UNIT, entries(1))
        outbox.postpone(HERE, *due(outbox), FAR, "a clock that went wrong")
        assert due(outbox) == []
        outbox.set_relays([HERE])
        assert len(due(outbox)) == 1

    def test_a_new_relay_gets_the_very_same_events(self, outbox: Outbox) -> None:
        outbox.set_relays([HERE])
        outbox.put(UNIT, entries(3))
        outbox.mark_acked(HERE, due(outbox))
        outbox.set_relays([HERE, THERE])
        assert due(outbox) == []
        assert set(due(outbox, THERE)) == ids(outbox)

    def test_nothing_waits_for_a_relay_that_is_left(self, outbox: Outbox) -> None:
        outbox.set_relays([HERE, THERE])
        outbox.put(UNIT, entries(2))
        outbox.mark_acked(THERE, due(outbox, THERE, limit=1))
        outbox.set_relays([HERE])
        outbox.put(UNIT, entries(3))
        with outbox.reading() as db:
            assert db.execute("SELECT count(*) FROM deliveries").fetchone() == (4,)
        assert depth(outbox, THERE) == 2  # it is told all the same
        outbox.set_relays([HERE, THERE])
        assert due(outbox, THERE) == due(outbox)[1:]

    def test_what_a_few_relays_had_that_were_left_is_remembered_and_not_of_ever_more(
        self, outbox: Outbox
    ) -> None:
        outbox.put(UNIT, entries(1))
        for number in range(rows.MAX_FORMER_RELAYS + 5):
            outbox.set_relays([f"ws://127.0.0.1:{number}"])
            outbox.mark_acked(f"ws://127.0.0.1:{number}", ids(outbox))
        outbox.set_relays([HERE])
        with outbox.reading() as db:
            for table in ("relays", "deliveries"):
                assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (rows.MAX_FORMER_RELAYS + 1,)


class TestDeletions:
    def test_wait_for_the_tombstones_of_what_they_delete(self, outbox: Outbox) -> None:
        outbox.put(UNIT, [entry("one"), entry("two"), entry("three")])
        outbox.mark_acked(HERE, due(outbox))
        tombstones = [entry("one", START_S + 1, tombstone=True), entry("two", START_S + 1, tombstone=True)]
        asked = deletion(["one", "two"], START_S + 2)
        outbox.put(UNIT, [asked, *tombstones])
        first, second = (tombstone.event.id for tombstone in tombstones)
        assert due(outbox) == [first, second]
        outbox.mark_acked(HERE, [first])
        outbox.postpone(HERE, second, NOW + 1000, "error: busy")
        assert due(outbox) == []
        outbox.park(HERE, second, "blocked: no")
        assert due(outbox) == [asked.event.id]
        assert set(due(outbox, THERE)) == {first, second, entry("three").event.id}

    def test_and_tombstones_stay_when_a_unit_is_forgotten(self, outbox: Outbox, path: Path) -> None:
        old = entry("one", content="ciphertext of a secret")
        outbox.put(UNIT, [old, entry("left", content="ciphertext left behind")], cursor=5)
        outbox.put(OTHER, [entry("two")])
        secret = signed("one", START_S + 5, content="ciphertext nobody reads")
        outbox.quarantine(secret, "it does not open")
        outbox.quarantine(KEYS.sign(PREFERENCE, "about them", [["d", "user:abcdef:x"]], START_S), "nor this")
        outbox.quarantine(
            KEYS.sign(PREFERENCE, "about others", [["d", "user:012345:x"]], START_S), "nor this"
        )
        tombstone, asked = (
            entry("one", START_S + 1, tombstone=True),
            deletion(["one"], START_S + 2, [old.event.id]),
        )
        outbox.put(UNIT, [tombstone, asked])
        path.with_name(f"{path.name}.corrupt-20260101-000000").write_bytes(b"whose is it?")
        outbox.forget(UNIT, about=["abcdef", ""])
        assert ids(outbox) == {tombstone.event.id, asked.event.id}
        left = outbox.latest(APP, address("one"))
        assert left is not None and left.ts == START_S + 1
        assert outbox.versions(APP, address("one")) == []
        assert (outbox.cursor(UNIT), outbox.quarantined()) == (0, 1)
        assert due(outbox) == [entry("two").event.id, tombstone.event.id]
        bytes_left = b"".join(file.read_bytes() for file in path.parent.iterdir())
        assert b"ciphertext" not in bytes_left and b"about them" not in bytes_left
        assert b"about others" in bytes_left and b"whose" not in bytes_left

    def test_somebody_who_comes_back_publishes_above_their_tombstone(self, outbox: Outbox) -> None:
        outbox.put(UNIT, [entry("one")])
        outbox.put(UNIT, [entry("one", START_S + 1, tombstone=True), deletion(["one"], START_S + 1)])
        outbox.forget(UNIT)
        with pytest.raises(NostrError):
            outbox.put(UNIT, [entry("one", START_S + 1, content="y")])
        outbox.put(UNIT, [entry("one", START_S + 2)])
        assert not outbox.known(UNIT)[APP, address("one")].tombstone


class TestWhatCameFromRelays:
    def test_is_as_published(self, outbox: Outbox) -> None:
        outbox.set_relays([HERE, THERE])
        one, two = signed("one"), signed("two")
        found = {one.id: {HERE, THERE}, two.id: {THERE}}
        outbox.adopt({UNIT: [(one, "digest"), (two, "")]}, found, tombstones={two.id})
        assert (due(outbox), due(outbox, THERE)) == ([two.id], [])
        assert [row.tombstone for row in outbox.known(UNIT).values()] == [False, True]
        assert outbox.known(UNIT)[APP, address("one")].digest == "digest"
        assert outbox.versions(APP, address("one")) == [one.id]

    def test_what_is_newer_here_stays_and_the_older_id_is_remembered(self, outbox: Outbox) -> None:
        old, new = signed("one"), signed("one", START_S + 1)
        outbox.put(UNIT, [OutboxEntry(new, "")])
        outbox.adopt({UNIT: [(old, "")]}, {old.id: {HERE}})
        assert due(outbox) == [new.id]
        assert outbox.versions(APP, address("one")) == [old.id, new.id]

    def test_what_is_newer_there_is_taken(self, outbox: Outbox) -> None:
        old, new = signed("one"), signed("one", START_S + 1)
        outbox.put(UNIT, [OutboxEntry(old, "")])
        outbox.adopt({UNIT: [(new, "")]}, {new.id: {HERE}})
        assert (due(outbox), due(outbox, THERE)) == ([], [new.id])

    def test_of_two_of_one_second_the_lowest_id_holds(self, outbox: Outbox) -> None:
        low, high = sorted((signed("one", content=text) for text in "xy"), key=lambda event: event.id)
        for found in ([low, high], [high, low]):
            outbox.adopt({UNIT: [(event, "") for event in found]}, {})
            assert ids(outbox) == {low.id}

    def test_what_we_had_already_is_acknowledged(self, outbox: Outbox) -> None:
        outbox.put(UNIT, entries(2))
        (first, second) = outbox.due(HERE, NOW, 2)
        outbox.adopt({UNIT: [(first, "")]}, {first.id: {HERE}})
        assert due(outbox) == [second.id]


class TestARelayThatLostSomething:
    def test_gets_it_again(self, outbox: Outbox) -> None:
        outbox.put(UNIT, entries(4))
        kept, lost, *_, waiting = due(outbox)
        outbox.mark_acked(HERE, [one for one in due(outbox) if one != waiting])
        outbox.park(HERE, waiting, "blocked: no")
        outbox.mark_acked(THERE, due(outbox, THERE))
        assert outbox.requeue_missing(HERE, {kept}) == 2
        assert lost in due(outbox) and kept not in due(outbox) and waiting not in due(outbox)
        assert due(outbox, THERE) == []

    def test_need_not_get_what_was_deleted(self, outbox: Outbox) -> None:
        old = entry("one")
        outbox.put(UNIT, [old])
        tombstone, asked = (
            entry("one", START_S + 1, tombstone=True),
            deletion(["one"], START_S + 2, [old.event.id]),
        )
        outbox.put(UNIT, [tombstone, asked])
        outbox.mark_acked(HERE, ids(outbox))
        assert outbox.requeue_missing(HERE, set()) == 0

    def test_but_gets_the_deletion_again_when_that_is_back(self, outbox: Outbox) -> None:
        old = entry("one")
        outbox.put(UNIT, [old])
        tombstone = entry("one", START_S + 1, tombstone=True)
        asked = deletion(["one"], START_S + 2, [old.event.id, tombstone.event.id])
        outbox.put(UNIT, [tombstone, asked])
        outbox.mark_acked(HERE, ids(outbox))
        assert outbox.requeue_missing(HERE, {tombstone.event.id}) == 0
        assert outbox.requeue_missing(HERE, {old.event.id}) == 2
        assert due(outbox) == [tombstone.event.id]


class TestStatus:
    def test_says_how_much_waits_since_when_and_why_the_rest_does_not(
        self, outbox: Outbox, clock: Clock
    ) -> None:
        outbox.put(UNIT, entries(1))
        clock.forward(minutes=1)
        outbox.put(UNIT, entries(6))
        first, *refused = due(outbox)
        for number, event_id in enumerate(refused[:3]):
            outbox.park(HERE, event_id, "blocked: no" if number else "pow: 30")
        outbox.mark_acked(HERE, [first])
        status = outbox.status([HERE, THERE])
        assert status.events == 6
        here, there = status.relays[HERE], status.relays[THERE]
        assert (here.depth, here.since, here.parked) == (
            2,
            NOW + 60_000,
            (("blocked: no", 2), ("pow: 30", 1)),
        )
        assert (there.depth, there.since, there.parked) == (6, NOW, ())

    def test_a_relay_can_not_make_up_reasons_without_end(self, outbox: Outbox) -> None:
        outbox.put(UNIT, entries(30))
        for number, event_id in enumerate(due(outbox)):
            outbox.park(HERE, event_id, f"{number} {'nonsense' * 1000}")
        parked = outbox.status([HERE]).relays[HERE].parked
        assert len(parked) == 20 and all(len(reason) <= 200 for reason, _ in parked)

    def test_progress_counts_how_many_relays_have_each_event(self, outbox: Outbox) -> None:
        outbox.put(UNIT, entries(3))
        relays = [HERE, THERE, "wss://third.example"]
        for relay, count in zip(relays, (3, 2, 0), strict=True):
            outbox.mark_acked(relay, due(outbox, relay)[:count])
        outbox.park(THERE, *due(outbox, THERE), "blocked: no")
        assert outbox.progress(relays, min_acks=1) == DeliveryProgress(3, everywhere=0, enough=3)
        assert outbox.progress(relays, min_acks=2) == DeliveryProgress(3, everywhere=0, enough=2)
        assert outbox.progress(relays[:2], min_acks=2) == DeliveryProgress(3, everywhere=2, enough=2)
        assert not outbox.progress(relays, min_acks=3).safe
        assert outbox.progress([], min_acks=0).safe

    def test_another_process_reads_it_while_it_is_written(self, outbox: Outbox, path: Path) -> None:
        outbox.put(UNIT, entries(2), cursor=3)
        outbox.mark_acked(HERE, due(outbox)[:1])
        looked = Outbox.to_read(path)
        with contextlib.closing(looked):
            assert [looked.status([url]).relays[url].depth for url in (HERE, THERE)] == [1, 2]
            assert looked.progress([HERE, THERE], min_acks=1) == DeliveryProgress(2, everywhere=0, enough=1)
            outbox.put(UNIT, entries(3))
            assert looked.status([HERE]).events == 3
            with pytest.raises(MemoryFault):
                looked.put(UNIT, entries(4))

    def test_and_after_it_was_closed(self, outbox: Outbox, path: Path) -> None:
        outbox.put(UNIT, entries(2))
        outbox.close()
        with contextlib.closing(Outbox.to_read(path)) as looked:
            assert looked.status([]).events == 2

    def test_there_is_nothing_to_read_before_the_first_start(self, path: Path) -> None:
        with pytest.raises(MemoryFault, match="nothing was ever mirrored"):
            Outbox.to_read(path)
        assert not path.parent.exists()


class TestTheIndex:
    def test_counts_records_names_them_by_a_digest_and_has_the_newest_view(self, outbox: Outbox) -> None:
        def other(kind: int, d: str, ts: int) -> OutboxEntry:
            return OutboxEntry(KEYS.sign(kind, "x", [["d", d]], ts), "")

        outbox.put(UNIT, [entry("b"), entry("a"), entry("gone", tombstone=True), deletion(["gone"], START_S)])
        outbox.put(
            UNIT, [other(APP, "snowclaw:memory:npub:x", START_S + 3), other(PREFERENCE, "hk", START_S + 2)]
        )
        outbox.put("c" * 32, [other(APP, "discoclaw:index:0", START_S)])
        outbox.put(OTHER, [entry("c")])
        digest = hashlib.sha256(f"{address('a')}\n{address('b')}\n".encode()).hexdigest()
        index = outbox.inventory()
        assert set(index) == {UNIT, OTHER}
        assert (index[UNIT].records, index[UNIT].digest, index[UNIT].newest) == (2, digest, START_S + 3)
        assert (index[OTHER].records, index[OTHER].newest) == (1, 0)


class TestQuarantineAndNotes:
    def test_the_newest_thousand_are_kept_each_once(self, outbox: Outbox) -> None:
        outbox.quarantine(unsigned("old"), "it does not open")
        with outbox.writing() as db:
            columns = "event_id, kind, d, reason, at_ms, event"
            sql = f"INSERT INTO quarantine ({columns}) VALUES (?, 0, '', '', 0, '')"
            db.executemany(sql, [(str(number),) for number in range(MAX_QUARANTINED - 1)])
        for name in ("new", "new", "newer"):
            outbox.quarantine(unsigned(name), "it does not open")
        assert outbox.quarantined() == MAX_QUARANTINED
        with outbox.reading() as db:
            (oldest,) = db.execute("SELECT event_id FROM quarantine ORDER BY id").fetchone()
        assert oldest == "1"

    def test_a_note_is_replaced(self, outbox: Outbox) -> None:
        assert outbox.meta("a") is None
        outbox.set_meta("a", "1")
        outbox.set_meta("a", "2")
        assert outbox.meta("a") == "2"


class TestTheFile:
    def test_is_for_us_alone_and_durable(self, outbox: Outbox, path: Path) -> None:
        outbox.put(UNIT, entries(1))
        assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
        with outbox.reading() as db:
            settings_ = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in SETTINGS]
        assert dict(zip(SETTINGS, settings_, strict=True)) == SETTINGS

    def test_on_a_full_disk_nothing_is_half_done_and_then_it_goes_on(self, outbox: Outbox) -> None:
        outbox.put(UNIT, entries(1), cursor=1)
        with full(outbox), pytest.raises(MemoryFault, match="the disk is full"):
            outbox.put(UNIT, entries(200, first=1), cursor=2)
        assert (len(outbox.known(UNIT)), outbox.cursor(UNIT), len(due(outbox))) == (1, 1, 1)
        outbox.put(UNIT, entries(200, first=1), cursor=2)
        assert (len(outbox.known(UNIT)), outbox.cursor(UNIT)) == (201, 2)

    @pytest.mark.parametrize("damage", ["no database", "a page"])
    def test_a_damaged_one_is_kept_aside_and_a_new_one_begun(
        self, outbox: Outbox, path: Path, damage: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        outbox.put(UNIT, entries(100))
        outbox.close()
        content = bytearray(path.read_bytes())
        content[:] = b"?" * 5000 if damage == "no database" else content
        content[4096 * 3 : 4096 * 5] = b"\xff" * 4096 * 2
        path.write_bytes(content)
        outbox.open()
        assert outbox.status([HERE]).events == 0
        assert path.with_name(f"{path.name}.corrupt-{STAMP}").read_bytes() == content
        assert "nostr recover" in caplog.text
        outbox.put(UNIT, entries(1))
        outbox.close()
        path.write_bytes(content)
        outbox.open()
        assert path.with_name(f"{path.name}.corrupt-{STAMP}-2").exists()

    def test_one_of_a_newer_version_is_left_as_it_is(self, outbox: Outbox, path: Path) -> None:
        with outbox.reading() as db:
            db.execute("PRAGMA user_version = 99")
        outbox.close()
        before = path.read_bytes()
        for open_ in (outbox.open, lambda: Outbox.to_read(path)):
            with pytest.raises(NewerSchema):
                open_()
        assert path.read_bytes() == before

    def test_one_of_another_program_is_left_as_it_is(self, path: Path, clock: Clock) -> None:
        path.parent.mkdir()
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE theirs (x)")
        with pytest.raises(MemoryFault, match="another program"):
            Outbox(path, clock=clock).open()

    def test_one_that_can_not_be_used_says_so(self, tmp_path: Path, clock: Clock) -> None:
        (tmp_path / "outbox.sqlite").mkdir()
        with pytest.raises(MemoryFault, match="can't be opened"):
            Outbox(tmp_path / "outbox.sqlite", clock=clock).open()

    def test_erasing_is_not_done_while_somebody_reads_what_was_erased(
        self, outbox: Outbox, path: Path
    ) -> None:
        outbox.open()  # once more is fine
        outbox.put(UNIT, entries(2))
        with contextlib.closing(Outbox.to_read(path)) as looked, looked.reading() as db:
            with outbox.reading() as ours:
                ours.execute("PRAGMA busy_timeout = 1")
            db.execute("BEGIN")
            db.execute("SELECT * FROM events").fetchone()
            with pytest.raises(MemoryFault, match="another program is reading it"):
                outbox.forget(UNIT)
            db.execute("COMMIT")
        outbox.forget(UNIT)
        assert outbox.known(UNIT) == {}

    def test_one_that_is_closed_says_so(self, outbox: Outbox) -> None:
        outbox.close()
        with pytest.raises(MemoryFault, match="not open"):
            outbox.units()

    def test_no_query_of_delivery_goes_through_all_events(self, outbox: Outbox) -> None:
        queries: dict[str, tuple[Any, ...]] = {
            rows.DUE: (1, NOW, 20),
            rows.NEXT: (1, NOW),
            rows.WAITS: (1,),
            rows.DEPTH: (1,),
            rows.REASONS: (1, 20),
        }
        with outbox.reading() as db:
            plans = [
                db.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall() for sql, values in queries.items()
            ]
        assert [step[3] for plan in plans for step in plan if step[3].startswith("SCAN")] == []


SETTINGS = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}

ACTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put", "put", "tombstone", "ack", "ack", "park", "later", "unpark", "time", "forget"]
        ),
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from([HERE, THERE]),
    ),
    max_size=25,
)


class Plain:
    """The same in the plainest way: lists, gone through again and again."""

    def __init__(self) -> None:
        self.now = NOW
        self.newest: dict[str, tuple[Event, bool]] = {}
        self.order: list[str] = []
        self.states: dict[tuple[str, str], tuple[str, int]] = {}

    def put(self, name: str, event: Event, gone: bool) -> None:
        self.newest[name] = event, gone
        self.order = [one for one in self.order if one != name] + [name]
        for relay in (HERE, THERE):
            self.states[relay, name] = "waiting", 0

    def due(self, relay: str) -> list[str]:
        waiting = [(self.states[relay, name], at, name) for at, name in enumerate(self.order)]
        fit = sorted((time, at, name) for (state, time), at, name in waiting if state == "waiting")
        return [self.newest[name][0].id for time, _, name in fit if time <= self.now]

    def forget(self) -> None:
        self.order = [name for name in self.order if self.newest[name][1]]


class TestAgainstThePlainestOutbox:
    @given(ACTS)
    def test_the_same_is_due_whatever_happens(self, acts: list[tuple[str, str, str]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            outbox, plain = Outbox(Path(folder) / "o.sqlite", clock=Clock()), Plain()
            outbox.open()
            with contextlib.closing(outbox):
                outbox.set_relays([HERE, THERE])
                with outbox.reading() as db:
                    db.execute("PRAGMA synchronous = OFF")
                for act in acts:
                    self.do(outbox, plain, *act)
                    for relay in (HERE, THERE):
                        assert due(outbox, relay, now=plain.now) == plain.due(relay)
                waiting = [state for (_, name), (state, _) in plain.states.items() if name in plain.order]
                assert sum(depth(outbox, relay) for relay in (HERE, THERE)) == waiting.count("waiting")

    def do(self, outbox: Outbox, plain: Plain, act: str, name: str, relay: str) -> None:
        event_id = plain.newest[name][0].id if name in plain.order else "nobody's"
        match act:
            case "put" | "tombstone":
                before = outbox.latest(APP, address(name))
                event = unsigned(name, before.ts + 1 if before is not None else 1)
                outbox.put(UNIT, [OutboxEntry(event, "", tombstone=act == "tombstone")])
                plain.put(name, event, act == "tombstone")
            case "ack":
                outbox.mark_acked(relay, [event_id])
                plain.states[relay, name] = "acked", 0
            case "park":
                outbox.park(relay, event_id, "no")
                plain.states[relay, name] = "parked", 0
            case "later":
                outbox.postpone(relay, event_id, plain.now + 1000, "no")
                if plain.states.get((relay, name), ("", 0))[0] == "waiting":
                    plain.states[relay, name] = "waiting", plain.now + 1000
            case "unpark":
                outbox.unpark(relay)
                for key, (state, _) in list(plain.states.items()):
                    if key[0] == relay and state == "parked":
                        plain.states[key] = "waiting", 0
            case "time":
                plain.now += 700
            case "forget":
                outbox.forget(UNIT)
                plain.forget()

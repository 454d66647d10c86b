"""When and how what is on disk gets into the outbox, and what a relay makes of what comes out of it."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Origin
from discoclaw.core.errors import NostrError
from discoclaw.core.event import encode_line
from discoclaw.core.redact import Redactor
from discoclaw.nostr import ledgers
from discoclaw.nostr.event import MAX_PLAINTEXT, Event, SecretBox, canonical, verified
from discoclaw.nostr.mirror import MAX_UNITS, inventory
from discoclaw.nostr.outbox import Outbox, OutboxEntry, Row, UnitInventory
from discoclaw.nostr.schemas import (
    APP,
    CLEAR,
    DELETE,
    ERASED,
    INVENTORY,
    LEDGER,
    PREFERENCE,
    SUMMARY,
    TOOL,
    Codec,
    EventTemplate,
)
from discoclaw.nostr.signing import (
    MAX_AGE_S,
    MAX_AHEAD_S,
    MAX_PER_SECOND,
    Change,
    EventSigner,
    SecondSlots,
    tombstones_of,
)
from discoclaw.store.files import session_name
from discoclaw.store.port import LEDGERS, ROLLING
from tests.memory.kit import NOW, Clock, chain, lines_of, remember
from tests.nostr.mirror_kit import (
    ANN,
    ANN_ID,
    BOB,
    CHANNEL_ID,
    CODEC,
    DM,
    GROUP,
    KEYS,
    NAMES,
    PLACE,
    SECOND,
    Relay,
    is_deletion,
    mirror_setup,
)

STATED = Origin("stated")


def kinds(events: Sequence[Event]) -> Counter[int]:
    return Counter(event.kind for event in events)


def ledger_events(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.d.startswith(LEDGER)]


def without_inventory(events: Sequence[Event]) -> list[Event]:
    """Events, but for those of the index, and what deletes one."""

    def is_inventory(event: Event) -> bool:
        about = event.tag("a") if is_deletion(event) else event.d
        return about is not None and INVENTORY in about

    return [event for event in events if not is_inventory(event)]


class TestPublishing:
    async def test_everything_on_disk_is_published_once(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            await setup.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
            await setup.memory.change("bot", "why", remember("I am kind."))
            setup.profile()
            setup.group()
            setup.summary("They planned a fête.", NOW - 5_000)
            setup.tool()
            setup.clear(NOW - 60_000, DM)
            await setup.mirror.push()
            events = setup.sent()
            assert kinds(without_inventory(events)) == {
                APP: 4,
                30093: 1,
                30094: 1,
                30095: 1,
                30096: 1,
                30097: 1,
            }
            assert all(verified(event.to_json()) == event for event in events)
            await setup.mirror.push(full=True)
            assert setup.sent() == []
            await setup.mirror.close()

    async def test_only_what_is_new_of_a_ledger_is_published(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            for number in range(3):
                await setup.memory.change(ANN, "why", remember(f"fact {number}"))
                await setup.mirror.push()
                (event,) = ledger_events(setup.sent())
                assert CODEC.decode(event)["line"] == number
            size = lines_of(setup.memory, ANN).size()
            assert setup.outbox.cursor(NAMES.keyed_hash(ANN)) == size
            await setup.mirror.close()

    async def test_a_ledger_that_was_written_anew_is_compared_as_a_whole(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            first, second, third = map(encode_line, chain("one", "two", "three"))
            log = lines_of(setup.memory, ANN)
            log.replace(first + second)
            await setup.mirror.push()
            assert len(ledger_events(setup.sent())) == 2
            log.replace(first + b"x" * (len(second) - 1) + b"\n" + third)
            await setup.mirror.push()
            (event,) = ledger_events(setup.sent())
            assert CODEC.decode(event)["line"] == 2
            assert len(Relay().take(setup.sent()).holds()) == 0
            await setup.mirror.close()

    async def test_under_new_rules_of_what_is_withheld_every_record_is_looked_at_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An older version withheld the commits of the owner's notes, and let keys in disguise through."""
        was_secret = Redactor(own=frozenset({"User leads the core team."}))
        is_secret = Redactor(own=frozenset({"User prefers a disguise."}))
        monkeypatch.setattr(ledgers, "RULES", 1)
        with mirror_setup(tmp_path, redactor=was_secret) as setup:
            await setup.memory.change(ANN, "why", remember("User leads the core team."))
            await setup.memory.change(ANN, "why", remember("User prefers a disguise."))
            await setup.mirror.push()
            relay = Relay(obeys=False).take(setup.sent())
            assert "core team" not in relay.says() and "disguise" in relay.says()
            await setup.mirror.close()
        monkeypatch.undo()
        with mirror_setup(tmp_path, redactor=is_secret) as setup:
            await setup.mirror.push()
            relay.take(setup.sent())
            assert "core team" in relay.says() and "disguise" not in relay.says()
            await setup.mirror.push()
            assert setup.sent() == []
            await setup.mirror.close()

    async def test_a_restart_finds_what_changed_meanwhile(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            await setup.memory.change(ANN, "why", remember("one"))
            setup.profile()
            setup.summary("They planned a fête.", NOW - 5_000)
            await setup.mirror.push()
            setup.sent()
            await setup.mirror.close()
        with mirror_setup(tmp_path, Clock(NOW + 60_000)) as later:
            await later.memory.change(BOB, "why", remember("two"))
            later.profile(notes=["changed"])
            later.memory.disk.documents(ROLLING).remove([session_name(PLACE)])
            await later.mirror.catch_up()
            await later.mirror.settle()
            events = without_inventory(later.sent())
            assert kinds(events) == {APP: 2, SUMMARY: 1, DELETE: 1}
            (summary,) = (event for event in events if event.kind == SUMMARY)
            assert CODEC.decode(summary)[ERASED] is True
            await later.mirror.close()

    async def test_after_a_kill_between_events_and_cursor_nothing_is_published_twice(
        self, tmp_path: Path
    ) -> None:
        class Dying(Outbox):
            def put(self, unit: str, entries: Sequence[OutboxEntry], *, cursor: int | None = None) -> None:
                if cursor is not None:
                    raise NostrError("killed")
                super().put(unit, entries)

        with mirror_setup(tmp_path, outbox=Dying) as setup:
            await setup.memory.change(ANN, "why", remember("one"))
            await setup.mirror.push()
            assert len(ledger_events(setup.sent())) == 1
            assert setup.outbox.cursor(NAMES.keyed_hash(ANN)) == 0
            await setup.mirror.close()
        with mirror_setup(tmp_path) as later:
            await later.mirror.push()
            assert ledger_events(later.sent()) == []
            assert later.outbox.cursor(NAMES.keyed_hash(ANN)) > 0
            await later.mirror.close()

    async def test_a_preference_that_turns_private_is_not_left_in_clear(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path, codec=Codec(KEYS, SecretBox.of(KEYS), allow_plaintext=True)) as setup:
            item = await setup.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
            await setup.mirror.push()
            before = setup.sent()
            (open_one,) = (event for event in before if event.kind == PREFERENCE)
            assert "vim" in open_one.content
            setup.clock.now += 5_000
            await setup.memory.change(
                ANN, "why", lambda draft: draft.mark(draft.items[item], "private", STATED)
            )
            await setup.mirror.push()
            after = setup.sent()
            assert all("prefers vim" not in json.dumps(event.to_json()) for event in after)
            (deletion,) = filter(is_deletion, after)
            assert ("e", open_one.id) in deletion.tags
            held = Relay().take([*before, *after]).holds()
            (text,) = (body["preference"] for (kind, _), body in held.items() if kind == PREFERENCE)
            assert text == "User prefers vim."
            await setup.mirror.close()

    async def test_once_nothing_may_be_in_clear_any_more_nothing_is(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path, codec=Codec(KEYS, SecretBox.of(KEYS), allow_plaintext=True)) as setup:
            await setup.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
            await setup.mirror.push()
            before = setup.sent()
            await setup.mirror.close()
        with mirror_setup(tmp_path) as later:
            await later.mirror.push()
            after = later.sent()
            assert all("prefers vim" not in json.dumps(event.to_json()) for event in after)
            (deletion,) = filter(is_deletion, after)
            (open_one,) = (event for event in before if event.kind == PREFERENCE)
            assert ("e", open_one.id) in deletion.tags
            assert "vim" in Relay().take([*before, *after]).says()
            assert not later.outbox.plaintext_units()
            await later.mirror.close()
        with mirror_setup(tmp_path) as again:
            await again.mirror.push()
            assert again.sent() == []
            await again.mirror.close()


class TestWhatIsGone:
    async def test_lines_that_went_with_time_are_overwritten_and_asked_to_be_deleted(
        self, tmp_path: Path
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            setup.profile()
            setup.tool(1, NOW - 1_000)
            setup.tool(2, NOW)
            await setup.mirror.push()
            before = setup.sent()
            old = setup.known(ANN)
            setup.clock.now += 86_400_000
            log = setup.memory.disk.log(f"tools/{ANN}.jsonl")
            log.replace(log.read().splitlines(keepends=True)[1])
            await setup.mirror.push()
            after = without_inventory(setup.sent())
            assert kinds(after) == {TOOL: 1, DELETE: 1}
            tombstone, deletion = sorted(after, key=is_deletion)
            assert CODEC.decode(tombstone)["content"] == ""
            assert old[TOOL, tombstone.d].event_id in deletion.tags[0]
            assert ("a", f"{TOOL}:{KEYS.public}:{tombstone.d}") in deletion.tags
            held = Relay().take([*before, *after]).holds()
            assert [body["x_id"] for (kind, _), body in held.items() if kind == TOOL] == [f"{2:016x}"]
            await setup.mirror.push()
            assert setup.sent() == []
            await setup.mirror.close()

    async def test_a_cleared_conversation_shows_nothing_to_readers_of_amans_schema(
        self, tmp_path: Path
    ) -> None:
        for obeys in (True, False):
            with mirror_setup(tmp_path / str(obeys)) as setup:
                relay = Relay(obeys)
                await setup.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
                setup.summary("They planned a fête.", NOW)
                setup.tool(1, NOW)
                await setup.mirror.push()
                relay.take(setup.sent())
                assert rehydrated(relay.holds()) == {"vim": True, "summary": True, "tools": 1}
                setup.clock.now += 120_000
                setup.clear(setup.clock.now)
                setup.memory.disk.documents(ROLLING).remove([session_name(PLACE)])
                await setup.mirror.push()
                relay.take(setup.sent())
                assert rehydrated(relay.holds()) == {"vim": True, "summary": False, "tools": 0}
                assert "fête" not in relay.says()
                setup.summary("They began anew.", setup.clock.now + 1)
                setup.tool(2, setup.clock.now + 2_000)
                await setup.mirror.push()
                relay.take(setup.sent())
                assert rehydrated(relay.holds()) == {"vim": True, "summary": True, "tools": 1}
                await setup.mirror.close()

    async def test_what_becomes_confidential_is_replaced_and_asked_to_be_deleted(
        self, tmp_path: Path
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            item = await setup.memory.change(ANN, "why", remember("The code is 471147114711."))
            setup.profile(notes=["The code is 471147114711."])
            await setup.mirror.push()
            before = setup.sent()
            assert "471147114711" in Relay().take(before).says()
            setup.clock.now += 1_000
            await setup.memory.change(
                ANN, "why", lambda draft: draft.mark(draft.items[item], "confidential", STATED)
            )
            setup.profile(notes=[])
            await setup.mirror.push()
            after = setup.sent()
            (deletion,) = filter(is_deletion, after)
            replaced = [event.id for event in before if not event.d.startswith(INVENTORY)]
            assert {tag[1] for tag in deletion.tags if tag[0] == "e"} >= set(replaced)
            relay = Relay().take([*before, *after])
            assert "471147114711" not in relay.says()
            stubs = [body for (_, d), body in relay.holds().items() if d.startswith(LEDGER)]
            assert [stub["withheld"] for stub in stubs] == [True, True]
            assert "471147114711" not in Relay(obeys=False).take([*before, *after]).says()
            await setup.mirror.close()

    async def test_the_parts_of_a_record_that_is_withheld_go(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            ids: list[str] = []
            await setup.memory.change(
                ANN, "why", lambda draft: ids.extend(remember(f"{n} {'ü' * 990}")(draft) for n in range(30))
            )
            await setup.mirror.push()
            parts = len(ledger_events(setup.sent()))
            assert parts > 3
            setup.clock.now += 1_000
            await setup.memory.change(
                ANN, "why", lambda draft: draft.mark(draft.items[ids[0]], "confidential", STATED)
            )
            await setup.mirror.push()
            after = ledger_events(setup.sent())
            bodies = [CODEC.decode(event) for event in after]
            assert Counter("withheld" if "withheld" in body else "erased" for body in bodies) == {
                "withheld": 2,
                "erased": parts - 1,
            }
            await setup.mirror.close()

    @pytest.mark.parametrize("full", [False, True])
    async def test_a_disk_that_was_lost_deletes_nothing(
        self, tmp_path: Path, full: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        with mirror_setup(tmp_path) as setup:
            await setup.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
            await setup.memory.change(BOB, "why", remember("two"))
            setup.profile()
            setup.group()
            setup.tool()
            setup.summary("They planned a fête.", NOW)
            setup.clear(NOW - 60_000, DM)
            await setup.mirror.push()
            setup.sent()
            await setup.mirror.close()
        for folder in (
            setup.root / LEDGERS,
            setup.root / "rolling",
            setup.root / "cursors",
            setup.root / "tools",
        ):
            for path in folder.iterdir():
                path.unlink()
        for path in (setup.root / "profiles" / f"{ANN_ID}.json", setup.root / "clears.jsonl"):
            path.unlink()
        (setup.root / "groups" / f"{CHANNEL_ID}.json").unlink()
        with mirror_setup(tmp_path) as later:
            await later.mirror.push(full=full)
            assert later.sent() == []
            assert "2 mirrored memories are not on this disk" in caplog.text
            later.profile()
            await later.mirror.push(full=full)
            assert later.sent() == []
            assert f"{ANN}: 1 mirrored records are not on this disk" in caplog.text
            await later.mirror.close()


def rehydrated(held: Mapping[tuple[int, str], Mapping[str, Any]]) -> dict[str, Any]:
    """What a reader of Aman's schema shows: what is dated at or before the newest clear is hidden."""
    found = [(kind, body) for (kind, _), body in held.items() if "history_key" in body]
    cleared = {
        body["history_key"]: body["created_at"]
        for kind, body in sorted(found, key=lambda one: one[1].get("created_at") or 0)
        if kind == CLEAR
    }
    summaries = [
        body["summary"]
        for kind, body in found
        if kind == SUMMARY and body["updated_at"] > cleared.get(body["history_key"], -1) and body["summary"]
    ]
    tools = [
        body
        for kind, body in found
        if kind == TOOL and body["created_at"] > cleared.get(body["history_key"], -1)
    ]
    vim = any("vim" in body["preference"] for kind, body in found if kind == PREFERENCE)
    return {"vim": vim, "summary": bool(summaries), "tools": len(tools)}


class TestTimes:
    """Times rise at each address, and never crowd."""

    async def test_a_history_is_spread_as_it_was_lived(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            for number in range(3):
                setup.clock.now += 3_600_000
                await setup.memory.change(ANN, "why", remember(f"fact {number}"))
            setup.clock.now += 86_400_000
            await setup.mirror.push()
            times = sorted(event.created_at for event in ledger_events(setup.sent()))
            assert times == [SECOND + 3_600, SECOND + 7_200, SECOND + 10_800]
            await setup.mirror.close()

    @given(
        st.lists(st.integers(-400 * 86_400_000, 400 * 86_400_000), min_size=1, max_size=6),
        st.sampled_from([f"{LEDGER}a:b", "discoclaw:test"]),
    )
    def test_versions_rise_though_the_clock_goes_back(self, leaps: list[int], address: str) -> None:
        clock, last = Clock(NOW), 0
        signer = EventSigner(CODEC, clock=clock, versions=lambda kind, d: [])
        for number, leap in enumerate(leaps):
            clock.now = NOW + leap
            template = EventTemplate(APP, address, {"n": number}, NOW // 1000)
            (put,) = signer.sign([Change(template, last)])
            assert put.event.created_at > last
            assert last or put.event.created_at <= clock.now // 1000 + MAX_AHEAD_S
            last = put.event.created_at

    @pytest.mark.parametrize("age", [0, 3_600, 3 * 365 * 86_400])
    def test_a_crowd_is_spread_over_seconds(self, age: int) -> None:
        signer = EventSigner(CODEC, clock=Clock(NOW), versions=lambda kind, d: [])
        template = EventTemplate(APP, f"{LEDGER}a:b", {}, SECOND - age)
        times = Counter(signer.time(Change(template)) for _ in range(230))
        assert max(times.values()) == MAX_PER_SECOND
        assert max(SECOND - age, SECOND - MAX_AGE_S) == min(times)
        assert max(times) == min(times) + 2

    def test_a_second_has_room_until_all_of_them_are_full(self) -> None:
        seconds = SecondSlots()
        taken = Counter(seconds.reserve(10, 12) for _ in range(600))
        assert taken == {10: 200, 11: 200, 12: 200}
        assert seconds.reserve(5, 12, 100) == 5
        assert seconds.reserve(5, 12) == 6
        assert seconds.reserve(13, 12) == 13

    def test_the_time_of_a_call_is_part_of_what_it_says(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            setup.tool(1, NOW - 400 * 86_400_000)
            changes = [Change(one) for one in setup.views.desired(ANN).templates]
            signer = EventSigner(CODEC, clock=setup.clock, versions=setup.outbox.versions)
            signer._seconds.add(SECOND - 400 * 86_400, MAX_PER_SECOND)
            puts = signer.sign(changes)
            assert {put.event.created_at for put in puts} == {SECOND - 400 * 86_400}
            assert all(CODEC.decode(put.event)["created_at"] == put.event.created_at for put in puts)

    def test_a_request_to_delete_takes_no_newer_version_along(self) -> None:
        many = {"discoclaw:test:1": ["ab" * 32] * 350, "discoclaw:test:40": ["ab" * 32] * 301}
        signer = EventSigner(CODEC, clock=Clock(NOW), versions=lambda kind, d: many.get(d, ["ab" * 32]))
        stay = [
            Change(EventTemplate(APP, f"discoclaw:test:{n}", {}), SECOND - n, purge=True) for n in range(30)
        ]
        published = [Row(APP, f"discoclaw:test:{n}", SECOND - n, "", "", False) for n in range(30, 135)]
        gone = tombstones_of(published)
        puts = signer.sign([*stay, *gone])
        held = Relay().take(put.event for put in puts).holds()
        assert {d for _, d in held} == {f"discoclaw:test:{n}" for n in range(30)}
        deletions = [put.event for put in puts if is_deletion(put.event)]
        ids = [tag for event in deletions for tag in event.tags if tag[0] == "e"]
        assert len(ids) == 133 + 350 + 301
        tombstones = {put.event.d: put.event.created_at for put in puts if put.tombstone}
        for event in deletions:
            about = [tag[1].split(":", 2)[2] for tag in event.tags if tag[0] == "a"]
            assert all(event.created_at == tombstones[d] for d in about if d in tombstones)

    def test_what_can_not_be_signed_is_left_out(self, caplog: pytest.LogCaptureFixture) -> None:
        signer = EventSigner(CODEC, clock=Clock(NOW), versions=lambda kind, d: [])
        changes = [
            Change(EventTemplate(APP, "long", {"a": "x" * 50_000})),
            Change(EventTemplate(APP, "short", {})),
        ]
        assert [put.event.d for put in signer.sign(changes)] == ["short"]
        assert "cannot sign the event at 30078 long" in caplog.text


class TestWhen:
    @pytest.mark.design(54)
    async def test_changes_wait_for_others_unless_somebody_asked_for_them(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path, flush_s=300.0) as setup:
            await setup.mirror.push()
            await setup.memory.change(ANN, "learned from talk", remember("one"), by="extraction")
            await setup.mirror.settle()
            assert setup.sent() == []
            for subject, by in ((ANN, "command"), (BOB, "memory_store")):
                await setup.memory.change(subject, "remembered", remember(f"by {by}"), by=by)
                await setup.mirror.settle()
                assert {CODEC.decode(event)["subject"] for event in setup.sent()} == {subject}
            await setup.mirror.close()

    async def test_no_pause_means_soon(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path, flush_s=0.0) as setup:
            await setup.mirror.push()
            published = asyncio.Event()
            setup.mirror._wake_delivery = published.set
            await setup.memory.change(ANN, "why", remember("one"))
            await asyncio.wait_for(published.wait(), 10)
            assert len(ledger_events(setup.sent())) == 1
            await setup.mirror.close()

    async def test_one_that_fails_stops_no_other(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with mirror_setup(tmp_path, retry_s=600.0) as setup:
            await setup.memory.change(BOB, "why", remember("two"))
            broken = lines_of(setup.memory, ANN).path
            broken.mkdir(parents=True)
            await setup.mirror.push()
            assert f"nostr: {ANN} failed, next try in 600 s" in caplog.text
            assert [CODEC.decode(event)["subject"] for event in ledger_events(setup.sent())] == [BOB]
            broken.rmdir()
            broken.write_bytes(b"".join(map(encode_line, chain("one"))))
            await setup.mirror.push()
            assert [CODEC.decode(event)["subject"] for event in ledger_events(setup.sent())] == [ANN]
            await setup.mirror.close()

    async def test_what_is_at_an_address_of_another_unit_is_replaced(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            setup.profile()
            (template,) = setup.views.desired(ANN).templates
            old = CODEC.encode(template, SECOND + 10)
            setup.outbox.adopt({"0" * 32: [(old, "another digest")]}, {})
            await setup.mirror.push()
            (row,) = setup.known(ANN).values()
            assert row.ts == SECOND + 11
            await setup.mirror.close()

    async def test_a_record_that_stands_twice_is_published_once(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            (line,) = map(encode_line, chain("one"))
            lines_of(setup.memory, ANN).replace(line + line)
            await setup.mirror.push()
            assert len(ledger_events(setup.sent())) == 1
            await setup.mirror.close()


class TestIndex:
    async def test_it_says_what_is_published_of_every_unit(self, tmp_path: Path) -> None:
        with mirror_setup(tmp_path) as setup:
            await setup.memory.change(ANN, "why", remember("one"))
            setup.profile()
            setup.group()
            await setup.mirror.push()
            events = setup.sent()
            parts = [CODEC.decode(event)["units"] for event in events if event.d.startswith(INVENTORY)]
            said = {mark: one for part in parts for mark, one in part.items()}
            assert said.keys() == {NAMES.keyed_hash(ANN), NAMES.keyed_hash(GROUP)}
            (record,) = ledger_events(events)
            assert said[NAMES.keyed_hash(ANN)][0] == 1
            assert said == {
                mark: [one.records, one.digest, one.newest] for mark, one in setup.outbox.inventory().items()
            }
            assert record.d
            await setup.mirror.close()

    def test_many_units_are_divided_by_the_beginning_of_their_marks(self) -> None:
        few = {NAMES.keyed_hash(str(n)): UnitInventory(n, "ab" * 32, SECOND) for n in range(40)}
        many = {NAMES.keyed_hash(str(n)): UnitInventory(n, "ab" * 32, SECOND) for n in range(5_000)}
        assert {len(one.d) for one in inventory(few).views} == {len(INVENTORY) + 1}
        full = {f"{n:032x}": UnitInventory(10**6, "ab" * 32, SECOND) for n in range(MAX_UNITS)}
        (fullest,) = inventory(full).views
        assert len(canonical(fullest.body)) <= MAX_PLAINTEXT
        parts = inventory(many).views
        assert {len(one.d) for one in parts} == {len(INVENTORY) + 2}
        assert sum(len(one.body["units"]) for one in parts) == 5_000
        for one in parts:
            assert all(mark.startswith(one.d.removeprefix(INVENTORY)) for mark in one.body["units"])

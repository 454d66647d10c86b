"""When and how what is on disk gets into the outbox, and what a relay makes of what comes out of it."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discoclaw.core.draft import Origin
from discoclaw.core.errors import NostrError
from discoclaw.core.event import encode_line
from discoclaw.memory.changes import SESSION
from discoclaw.memory.disk.files import session_name
from discoclaw.memory.disk.port import LEDGERS, ROLLING
from discoclaw.nostr.event import MOST_PLAIN, Event, received
from discoclaw.nostr.names import INDEX, LEDGER
from discoclaw.nostr.outgoing.compare import MOST_UNITS, index
from discoclaw.nostr.outgoing.outbox import Outbox, Put, UnitIndex
from discoclaw.nostr.outgoing.scribe import AHEAD_S, MOST_A_SECOND, OLDEST_S, Publication, Scribe, Seconds
from discoclaw.nostr.schemas import APP, CLEAR, DELETE, ERASED, PREFERENCE, SUMMARY, TOOL, Pen, Wanted
from discoclaw.nostr.sealed import Box, canonical
from tests.memory.kit import NOW, Clock, chain, lines_of, remember
from tests.nostr.mirror_kit import (
    ANN,
    ANN_ID,
    BOB,
    BOB_ID,
    CHANNEL_ID,
    DM,
    GROUP,
    KEYS,
    NAMES,
    PEN,
    PLACE,
    SECOND,
    Relay,
    house,
    in_clear,
    is_deletion,
)

STATED = Origin("stated")
CONVERSATION = f"{SESSION}{PLACE}"


def kinds(events: Sequence[Event]) -> Counter[int]:
    return Counter(event.kind for event in events)


def ledger_events(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.d.startswith(LEDGER)]


def without_index(events: Sequence[Event]) -> list[Event]:
    """Events, but for those of the index, and what deletes one."""

    def is_index(event: Event) -> bool:
        about = event.tag("a") if is_deletion(event) else event.d
        return about is not None and INDEX in about

    return [event for event in events if not is_index(event)]


class TestPublishing:
    async def test_everything_on_disk_is_published_once(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            await home.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
            await home.memory.change("bot", "why", remember("I am kind."))
            home.profile()
            home.group()
            home.summary("They planned a fête.", NOW - 5_000)
            home.tool()
            home.clear(NOW - 60_000, DM)
            await home.mirror.push()
            events = home.sent()
            assert kinds(without_index(events)) == {APP: 4, 30093: 1, 30094: 1, 30095: 1, 30096: 1, 30097: 1}
            assert all(received(event.to_json()) == event for event in events)
            await home.mirror.push(whole=True)
            assert home.sent() == []
            await home.mirror.close()

    async def test_a_relay_sees_no_id_no_name_and_no_word(self, tmp_path: Path) -> None:
        clock = Clock(NOW)
        with house(tmp_path, clock, owners=[ANN_ID]) as home:
            await home.memory.change(
                ANN, "secretly", remember("User prefers vim.", "preference"), by="command"
            )
            home.profile()
            home.group()
            home.summary("They planned a fête.", NOW)
            home.tool()
            home.clear(NOW - 60_000, DM)
            await home.mirror.push()
            for event in home.sent():
                whole = json.dumps(event.to_json())
                for word in (ANN_ID, BOB_ID, CHANNEL_ID, "Ann", "Bob", "vim", "cakes", "weather", "sunny"):
                    assert word not in in_clear(event)
                    assert len(word) < 4 or word not in whole
                assert [tag[0] for tag in event.tags][-1] in ("encrypted", "enc")
            await home.mirror.close()

    async def test_only_what_is_new_of_a_ledger_is_published(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            for number in range(3):
                await home.memory.change(ANN, "why", remember(f"fact {number}"))
                await home.mirror.push()
                (event,) = ledger_events(home.sent())
                assert PEN.read(event)["line"] == number
            size = lines_of(home.memory, ANN).size()
            assert home.outbox.cursor(NAMES.mark(ANN)) == size
            await home.mirror.close()

    async def test_a_ledger_that_was_written_anew_is_compared_as_a_whole(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            first, second, third = map(encode_line, chain("one", "two", "three"))
            log = lines_of(home.memory, ANN)
            log.replace(first + second)
            await home.mirror.push()
            assert len(ledger_events(home.sent())) == 2
            log.replace(first + b"x" * (len(second) - 1) + b"\n" + third)
            await home.mirror.push()
            (event,) = ledger_events(home.sent())
            assert PEN.read(event)["line"] == 2
            assert len(Relay().take(home.sent()).holds()) == 0
            await home.mirror.close()

    async def test_a_restart_finds_what_changed_meanwhile(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            await home.memory.change(ANN, "why", remember("one"))
            home.profile()
            home.summary("They planned a fête.", NOW - 5_000)
            await home.mirror.push()
            home.sent()
            await home.mirror.close()
        with house(tmp_path, Clock(NOW + 60_000)) as later:
            await later.memory.change(BOB, "why", remember("two"))
            later.profile(notes=["changed"])
            later.memory.disk.documents(ROLLING).remove([session_name(PLACE)])
            await later.mirror.catch_up()
            await later.mirror.settle()
            events = without_index(later.sent())
            assert kinds(events) == {APP: 2, SUMMARY: 1, DELETE: 1}
            (summary,) = (event for event in events if event.kind == SUMMARY)
            assert PEN.read(summary)[ERASED] is True
            await later.mirror.close()

    async def test_after_a_kill_between_events_and_cursor_nothing_is_published_twice(
        self, tmp_path: Path
    ) -> None:
        class Dying(Outbox):
            def put(self, unit: str, entries: Sequence[Put], *, cursor: int | None = None) -> None:
                if cursor is not None:
                    raise NostrError("killed")
                super().put(unit, entries)

        with house(tmp_path, outbox=Dying) as home:
            await home.memory.change(ANN, "why", remember("one"))
            await home.mirror.push()
            assert len(ledger_events(home.sent())) == 1
            assert home.outbox.cursor(NAMES.mark(ANN)) == 0
            await home.mirror.close()
        with house(tmp_path) as later:
            await later.mirror.push()
            assert ledger_events(later.sent()) == []
            assert later.outbox.cursor(NAMES.mark(ANN)) > 0
            await later.mirror.close()

    async def test_a_preference_that_turns_private_is_not_left_in_clear(self, tmp_path: Path) -> None:
        with house(tmp_path, pen=Pen(KEYS, Box.of(KEYS), in_clear=True)) as home:
            item = await home.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
            await home.mirror.push()
            before = home.sent()
            (open_one,) = (event for event in before if event.kind == PREFERENCE)
            assert "vim" in open_one.content
            home.clock.now += 5_000
            await home.memory.change(
                ANN, "why", lambda draft: draft.mark(draft.items[item], "private", STATED)
            )
            await home.mirror.push()
            after = home.sent()
            assert all("vim" not in json.dumps(event.to_json()) for event in after)
            (deletion,) = filter(is_deletion, after)
            assert ("e", open_one.id) in deletion.tags
            held = Relay().take([*before, *after]).holds()
            (text,) = (body["preference"] for (kind, _), body in held.items() if kind == PREFERENCE)
            assert text == "User prefers vim."
            await home.mirror.close()

    async def test_once_nothing_may_be_in_clear_any_more_nothing_is(self, tmp_path: Path) -> None:
        with house(tmp_path, pen=Pen(KEYS, Box.of(KEYS), in_clear=True)) as home:
            await home.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
            await home.mirror.push()
            before = home.sent()
            await home.mirror.close()
        with house(tmp_path) as later:
            await later.mirror.push()
            after = later.sent()
            assert all("vim" not in json.dumps(event.to_json()) for event in after)
            (deletion,) = filter(is_deletion, after)
            (open_one,) = (event for event in before if event.kind == PREFERENCE)
            assert ("e", open_one.id) in deletion.tags
            assert "vim" in Relay().take([*before, *after]).says()
            assert not later.outbox.in_clear()
            await later.mirror.close()
        with house(tmp_path) as again:
            await again.mirror.push()
            assert again.sent() == []
            await again.mirror.close()


class TestWhatIsGone:
    async def test_lines_that_went_with_time_are_overwritten_and_asked_to_be_deleted(
        self, tmp_path: Path
    ) -> None:
        with house(tmp_path) as home:
            home.profile()
            home.tool(1, NOW - 1_000)
            home.tool(2, NOW)
            await home.mirror.push()
            before = home.sent()
            old = home.known(ANN)
            home.clock.now += 86_400_000
            log = home.memory.disk.log(f"tools/{ANN}.jsonl")
            log.replace(log.read().splitlines(keepends=True)[1])
            await home.mirror.push()
            after = without_index(home.sent())
            assert kinds(after) == {TOOL: 1, DELETE: 1}
            tombstone, deletion = sorted(after, key=is_deletion)
            assert PEN.read(tombstone)["content"] == ""
            assert old[TOOL, tombstone.d].event_id in deletion.tags[0]
            assert ("a", f"{TOOL}:{KEYS.public}:{tombstone.d}") in deletion.tags
            held = Relay().take([*before, *after]).holds()
            assert [body["x_id"] for (kind, _), body in held.items() if kind == TOOL] == [f"{2:016x}"]
            await home.mirror.push()
            assert home.sent() == []
            await home.mirror.close()

    async def test_a_cleared_conversation_shows_nothing_to_readers_of_amans_schema(
        self, tmp_path: Path
    ) -> None:
        for obeys in (True, False):
            with house(tmp_path / str(obeys)) as home:
                relay = Relay(obeys)
                await home.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
                home.summary("They planned a fête.", NOW)
                home.tool(1, NOW)
                await home.mirror.push()
                relay.take(home.sent())
                assert rehydrated(relay.holds()) == {"vim": True, "summary": True, "tools": 1}
                home.clock.now += 120_000
                home.clear(home.clock.now)
                home.memory.disk.documents(ROLLING).remove([session_name(PLACE)])
                await home.mirror.push()
                relay.take(home.sent())
                assert rehydrated(relay.holds()) == {"vim": True, "summary": False, "tools": 0}
                assert "fête" not in relay.says()
                home.summary("They began anew.", home.clock.now + 1)
                home.tool(2, home.clock.now + 2_000)
                await home.mirror.push()
                relay.take(home.sent())
                assert rehydrated(relay.holds()) == {"vim": True, "summary": True, "tools": 1}
                await home.mirror.close()

    async def test_what_becomes_confidential_is_replaced_and_asked_to_be_deleted(
        self, tmp_path: Path
    ) -> None:
        with house(tmp_path) as home:
            item = await home.memory.change(ANN, "why", remember("The code is 4711."))
            home.profile(notes=["The code is 4711."])
            await home.mirror.push()
            before = home.sent()
            assert "4711" in Relay().take(before).says()
            home.clock.now += 1_000
            await home.memory.change(
                ANN, "why", lambda draft: draft.mark(draft.items[item], "confidential", STATED)
            )
            home.profile(notes=[])
            await home.mirror.push()
            after = home.sent()
            (deletion,) = filter(is_deletion, after)
            replaced = [event.id for event in before if not event.d.startswith(INDEX)]
            assert {tag[1] for tag in deletion.tags if tag[0] == "e"} >= set(replaced)
            relay = Relay().take([*before, *after])
            assert "4711" not in relay.says()
            stubs = [body for (_, d), body in relay.holds().items() if d.startswith(LEDGER)]
            assert [stub["withheld"] for stub in stubs] == [True, True]
            assert "4711" not in Relay(obeys=False).take([*before, *after]).says()
            await home.mirror.close()

    async def test_the_parts_of_a_record_that_is_withheld_go(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            ids: list[str] = []
            await home.memory.change(
                ANN, "why", lambda draft: ids.extend(remember(f"{n} {'ü' * 990}")(draft) for n in range(30))
            )
            await home.mirror.push()
            parts = len(ledger_events(home.sent()))
            assert parts > 3
            home.clock.now += 1_000
            await home.memory.change(
                ANN, "why", lambda draft: draft.mark(draft.items[ids[0]], "confidential", STATED)
            )
            await home.mirror.push()
            after = ledger_events(home.sent())
            bodies = [PEN.read(event) for event in after]
            assert Counter("withheld" if "withheld" in body else "erased" for body in bodies) == {
                "withheld": 2,
                "erased": parts - 1,
            }
            await home.mirror.close()

    @pytest.mark.parametrize("whole", [False, True])
    async def test_a_disk_that_was_lost_deletes_nothing(
        self, tmp_path: Path, whole: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        with house(tmp_path) as home:
            await home.memory.change(ANN, "why", remember("User prefers vim.", "preference"))
            await home.memory.change(BOB, "why", remember("two"))
            home.profile()
            home.group()
            home.tool()
            home.summary("They planned a fête.", NOW)
            home.clear(NOW - 60_000, DM)
            await home.mirror.push()
            home.sent()
            await home.mirror.close()
        for folder in (
            home.root / LEDGERS,
            home.root / "rolling",
            home.root / "cursors",
            home.root / "tools",
        ):
            for path in folder.iterdir():
                path.unlink()
        for path in (home.root / "profiles" / f"{ANN_ID}.json", home.root / "clears.jsonl"):
            path.unlink()
        (home.root / "groups" / f"{CHANNEL_ID}.json").unlink()
        with house(tmp_path) as later:
            await later.mirror.push(whole=whole)
            assert later.sent() == []
            assert "2 memories that are mirrored are not on this disk" in caplog.text
            later.profile()
            await later.mirror.push(whole=whole)
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
        with house(tmp_path) as home:
            for number in range(3):
                home.clock.now += 3_600_000
                await home.memory.change(ANN, "why", remember(f"fact {number}"))
            home.clock.now += 86_400_000
            await home.mirror.push()
            times = sorted(event.created_at for event in ledger_events(home.sent()))
            assert times == [SECOND + 3_600, SECOND + 7_200, SECOND + 10_800]
            await home.mirror.close()

    @given(
        st.lists(st.integers(-400 * 86_400_000, 400 * 86_400_000), min_size=1, max_size=6),
        st.sampled_from([f"{LEDGER}a:b", "discoclaw:test"]),
    )
    @settings(max_examples=30, deadline=None)
    def test_versions_rise_though_the_clock_goes_back(self, leaps: list[int], address: str) -> None:
        clock, last = Clock(NOW), 0
        scribe = Scribe(PEN, clock=clock, versions=lambda kind, d: [])
        for number, leap in enumerate(leaps):
            clock.now = NOW + leap
            wanted = Wanted(APP, address, {"n": number}, NOW // 1000)
            (put,) = scribe.sign([Publication(wanted, last)])
            assert put.event.created_at > last
            assert last or put.event.created_at <= clock.now // 1000 + AHEAD_S
            last = put.event.created_at

    @pytest.mark.parametrize("age", [0, 3_600, 3 * 365 * 86_400])
    def test_a_crowd_is_spread_over_seconds(self, age: int) -> None:
        scribe = Scribe(PEN, clock=Clock(NOW), versions=lambda kind, d: [])
        wanted = Wanted(APP, f"{LEDGER}a:b", {}, SECOND - age)
        times = Counter(scribe.time(Publication(wanted)) for _ in range(230))
        assert max(times.values()) == MOST_A_SECOND
        assert max(SECOND - age, SECOND - OLDEST_S) == min(times)
        assert max(times) == min(times) + 2

    def test_a_second_has_room_until_all_of_them_are_full(self) -> None:
        seconds = Seconds()
        taken = Counter(seconds.take(10, 12) for _ in range(600))
        assert taken == {10: 200, 11: 200, 12: 200}
        assert seconds.take(5, 12, 100) == 5
        assert seconds.take(5, 12) == 6
        assert seconds.take(13, 12) == 13

    def test_the_time_of_a_call_is_part_of_what_it_says(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            home.tool(1, NOW - 400 * 86_400_000)
            changes = [Publication(one) for one in home.views.wanted(ANN)]
            scribe = Scribe(PEN, clock=home.clock, versions=home.outbox.versions)
            scribe._seconds.note(SECOND - 400 * 86_400, MOST_A_SECOND)
            puts = scribe.sign(changes)
            assert {put.event.created_at for put in puts} == {SECOND - 400 * 86_400}
            assert all(PEN.read(put.event)["created_at"] == put.event.created_at for put in puts)

    def test_a_request_to_delete_takes_no_newer_version_along(self) -> None:
        many = {"discoclaw:test:1": ["ab" * 32] * 350, "discoclaw:test:40": ["ab" * 32] * 301}
        scribe = Scribe(PEN, clock=Clock(NOW), versions=lambda kind, d: many.get(d, ["ab" * 32]))
        stay = [
            Publication(Wanted(APP, f"discoclaw:test:{n}", {}), SECOND - n, purge=True) for n in range(30)
        ]
        gone = [Publication.away(APP, f"discoclaw:test:{n}", SECOND - n) for n in range(30, 135)]
        puts = scribe.sign([*stay, *gone])
        held = Relay().take(put.event for put in puts).holds()
        assert {d for _, d in held} == {f"discoclaw:test:{n}" for n in range(30)}
        deletions = [put.event for put in puts if is_deletion(put.event)]
        ids = [tag for event in deletions for tag in event.tags if tag[0] == "e"]
        assert len(ids) == 133 + 350 + 301
        tombstones = {put.event.d: put.event.created_at for put in puts if put.gone}
        for event in deletions:
            about = [tag[1].split(":", 2)[2] for tag in event.tags if tag[0] == "a"]
            assert all(event.created_at == tombstones[d] for d in about if d in tombstones)

    def test_what_can_not_be_signed_is_left_out(self, caplog: pytest.LogCaptureFixture) -> None:
        scribe = Scribe(PEN, clock=Clock(NOW), versions=lambda kind, d: [])
        changes = [
            Publication(Wanted(APP, "long", {"a": "x" * 50_000})),
            Publication(Wanted(APP, "short", {})),
        ]
        assert [put.event.d for put in scribe.sign(changes)] == ["short"]
        assert "long is not mirrored" in caplog.text


class TestWhen:
    async def test_changes_wait_for_others_unless_somebody_asked_for_them(self, tmp_path: Path) -> None:
        with house(tmp_path, flush_s=300.0) as home:
            await home.mirror.push()
            await home.memory.change(ANN, "learned from talk", remember("one"), by="extraction")
            await home.mirror.settle()
            assert home.sent() == []
            for subject, by in ((ANN, "command"), (BOB, "memory_store")):
                await home.memory.change(subject, "remembered", remember(f"by {by}"), by=by)
                await home.mirror.settle()
                assert {PEN.read(event)["subject"] for event in home.sent()} == {subject}
            await home.mirror.close()

    async def test_no_pause_means_soon(self, tmp_path: Path) -> None:
        with house(tmp_path, flush_s=0.0) as home:
            await home.mirror.push()
            published = asyncio.Event()
            home.mirror._poke = published.set
            await home.memory.change(ANN, "why", remember("one"))
            await asyncio.wait_for(published.wait(), 10)
            assert len(ledger_events(home.sent())) == 1
            await home.mirror.close()

    async def test_one_that_fails_stops_no_other(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with house(tmp_path, retry_s=600.0) as home:
            await home.memory.change(BOB, "why", remember("two"))
            broken = lines_of(home.memory, ANN).path
            broken.mkdir(parents=True)
            await home.mirror.push()
            assert f"nostr: {ANN} failed, next try in 600 s" in caplog.text
            assert [PEN.read(event)["subject"] for event in ledger_events(home.sent())] == [BOB]
            broken.rmdir()
            broken.write_bytes(b"".join(map(encode_line, chain("one"))))
            await home.mirror.push()
            assert [PEN.read(event)["subject"] for event in ledger_events(home.sent())] == [ANN]
            await home.mirror.close()

    async def test_what_is_at_an_address_of_another_unit_is_replaced(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            home.profile()
            (wanted,) = home.views.wanted(ANN)
            old = PEN.sign(wanted, SECOND + 10)
            home.outbox.adopt("0" * 32, [(old, "another digest")], {})
            await home.mirror.push()
            (row,) = home.known(ANN).values()
            assert row.ts == SECOND + 11
            await home.mirror.close()

    async def test_a_record_that_stands_twice_is_published_once(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            (line,) = map(encode_line, chain("one"))
            lines_of(home.memory, ANN).replace(line + line)
            await home.mirror.push()
            assert len(ledger_events(home.sent())) == 1
            await home.mirror.close()


class TestIndex:
    async def test_it_says_what_is_published_of_every_unit(self, tmp_path: Path) -> None:
        with house(tmp_path) as home:
            await home.memory.change(ANN, "why", remember("one"))
            home.profile()
            home.group()
            await home.mirror.push()
            events = home.sent()
            parts = [PEN.read(event)["units"] for event in events if event.d.startswith(INDEX)]
            said = {mark: one for part in parts for mark, one in part.items()}
            assert said.keys() == {NAMES.mark(ANN), NAMES.mark(GROUP)}
            (record,) = ledger_events(events)
            assert said[NAMES.mark(ANN)][0] == 1
            assert said == {
                mark: [one.records, one.digest, one.newest] for mark, one in home.outbox.index().items()
            }
            assert record.d
            await home.mirror.close()

    def test_many_units_are_divided_by_the_beginning_of_their_marks(self) -> None:
        few = {NAMES.mark(str(n)): UnitIndex(n, "ab" * 32, SECOND) for n in range(40)}
        many = {NAMES.mark(str(n)): UnitIndex(n, "ab" * 32, SECOND) for n in range(5_000)}
        assert {len(one.d) for one in index(few).views} == {len(INDEX) + 1}
        full = {f"{n:032x}": UnitIndex(10**6, "ab" * 32, SECOND) for n in range(MOST_UNITS)}
        (fullest,) = index(full).views
        assert len(canonical(fullest.body)) <= MOST_PLAIN
        parts = index(many).views
        assert {len(one.d) for one in parts} == {len(INDEX) + 2}
        assert sum(len(one.body["units"]) for one in parts) == 5_000
        for one in parts:
            assert all(mark.startswith(one.d.removeprefix(INDEX)) for mark in one.body["units"])

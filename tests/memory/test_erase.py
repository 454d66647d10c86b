"""Erasing a person: every byte, whatever happens meanwhile, and nothing of it comes back."""

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Record
from discoclaw.core.history import History
from discoclaw.core.patch import Summary
from discoclaw.core.purge import Derived, Phase, Purge, Purged
from discoclaw.core.subject import dm_of
from discoclaw.core.times import ms_of_iso, snowflake_at
from discoclaw.loops.consolidate import Consolidator
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.memory.conversations.rolling import NOTHING
from discoclaw.memory.stores import Store, disks
from discoclaw.memory.subjects import ledger
from discoclaw.store.files import session_name
from discoclaw.store.port import CHOICES, INTENTS, NO_LOG
from tests.loops.tidying import Tidier
from tests.memory.erase_child import erase_full
from tests.memory.kills import Forge
from tests.memory.kit import NOW, STAMP, fingerprint, lines_of, listening, remember, texts, told_by
from tests.memory.leftovers import (
    ANN,
    BOB,
    CANARY,
    DM,
    GENERAL,
    GENERAL_KEY,
    Shelves,
    about,
    backlog,
    said,
    shelves,
    traces,
    upsert,
)
from tests.session.scene import ScriptedModel, until

ANN_ID, BOB_ID = "910000000000000177", "820000000000000288"


class Part(Derived):
    """One that knows further conversations, or has steps outside for every erasing."""

    name = "a part"

    def __init__(
        self, sessions: Callable[[str], Iterable[str]] = lambda subject: (), *, steps: Collection[str] = ()
    ) -> None:
        self._sessions = sessions
        self._steps = steps

    def purge(self, purge: Purge, phase: Phase) -> Purged | None:
        return Purged(sessions=frozenset(self._sessions(purge.subject))) if phase == "ram" else None

    def outside(self, subject: str) -> Collection[str]:
        return self._steps


def restarted(house: Shelves) -> Shelves:
    """The next start over the same folder, at the same time."""
    house.memory.close()
    again = shelves(house.data, house.clock, store=house.store)
    again.memory.open()
    return again


@pytest.fixture
def house(tmp_path: Path, store: Store) -> Iterator[Shelves]:
    opened = shelves(tmp_path / "data", store=store)
    opened.memory.open()
    yield opened
    opened.memory.close()


class TestEveryByteGoes:
    @pytest.mark.every_store
    async def test_wherever_it_was(self, full: Shelves) -> None:
        before = full.traces(CANARY)
        assert len(before) > (15 if full.store == "files" else 1)
        erased = await full.memory.erase(ANN)
        assert full.traces(CANARY) == []
        assert erased.removed >= len(before)
        assert erased.left == ()
        assert set(erased.sessions) == {dm_of(ANN_ID), GENERAL_KEY}

    @pytest.mark.every_store
    async def test_nor_does_any_file_say_of_whom_it_was(self, full: Shelves) -> None:
        await full.memory.erase(ANN)
        await full.cursors.update("transparency", lambda known: {"820000000000000288": "80"})
        await full.memory.finish_step(ANN, "transparency")
        assert full.traces(ANN_ID) == []

    @pytest.mark.every_store
    async def test_also_in_folders_that_nothing_here_knows(self, full: Shelves) -> None:
        disk = full.memory.disk
        folders = {name: disk.documents(name) for name in ("mottos", CHOICES)}
        for folder in folders.values():
            for user_id in (ANN_ID, BOB_ID):
                folder.write(f"{user_id}.json", b"{}")
        folders["mottos"].keep_aside(f"{ANN_ID}.json", "corrupt", STAMP)
        disk.log(f"mottos/{ANN}.jsonl").append(b"{}\n", after=NO_LOG)
        await full.memory.erase(ANN)
        assert folders["mottos"].names() == [f"{BOB_ID}.json"]
        assert f"{ANN_ID}.json" in folders[CHOICES].names()  # that somebody opted out outlives it

    async def test_what_it_looks_for_is_found_however_it_is_written(self, tmp_path: Path) -> None:
        forms = [CANARY.encode(), json.dumps(CANARY).encode(), CANARY.encode("utf-16")]
        for number, form in enumerate(forms):
            (tmp_path / str(number)).write_bytes(b"x" * 7 + form)
        (tmp_path / f"about {CANARY}").mkdir()
        assert len(traces(tmp_path, CANARY)) == len(forms) + 1

    @pytest.mark.every_store
    async def test_of_other_people_not_a_byte_changes(self, full: Shelves) -> None:
        before = about(full, BOB)
        assert len(before) > (10 if full.store == "files" else 5)
        await full.memory.erase(ANN)
        assert about(full, BOB) == before
        assert "I like coffee" in await texts(full.memory, BOB)

    @pytest.mark.every_store
    async def test_other_peoples_entries_in_shared_cursors_stay(self, full: Shelves) -> None:
        await full.memory.erase(ANN)
        if full.store in {"files", "sqlite"}:
            index = json.dumps([await full.cursors.get(one) for one in ("ledgers", "ledgers-recent")])
            assert BOB in index and ANN not in index
        assert (await full.cursors.get("transparency"))["820000000000000288"] == "80"

    @given(st.lists(st.from_regex(r"[1-9][0-9]{0,3}", fullmatch=True), min_size=2, max_size=5, unique=True))
    def test_ids_that_begin_or_end_alike_are_different_people(
        self, tmp_path_factory: pytest.TempPathFactory, ids: list[str]
    ) -> None:
        house = shelves(tmp_path_factory.mktemp("alike"))
        root = house.data / "memory"
        for folder, name in (
            (root / "ledger", "user-{}.jsonl"),
            (root / "ledger", "user-{}.jsonl.torn-1"),
            (root / "durable", "{}.json"),
            (root / "durable", "{}.json~"),
            (root / "cursors", "facts-{}.json"),
            (root / "rolling", "discord:dm:{}.json"),
        ):
            folder.mkdir(parents=True, exist_ok=True)
            for one in ids:
                (folder / name.format(one)).write_text('{"a": "1"}')
        asyncio.run(house.memory.erase(f"user-{ids[0]}"))
        assert len([path for path in root.rglob("*") if path.is_file()]) == 6 * (len(ids) - 1) + 2
        for one in ids[1:]:
            assert (root / "durable" / f"{one}.json").exists()

    @pytest.mark.parametrize(
        "content", [b"", b"\xff\0 nonsense", b'{"type": "sealed"}\n', b"[" * 9000], ids=range(4)
    )
    async def test_files_that_nobody_can_read_go_too(self, full: Shelves, content: bytes) -> None:
        """A damaged ledger, a durable file of a newer version, a cursor that is none."""
        root = full.data / "memory"
        for path in (
            root / "ledger" / f"{ANN}.jsonl",
            root / "durable" / f"{ANN_ID}.json",
            root / "cursors" / f"facts-{ANN_ID}.json",
            root / "rolling" / session_name(dm_of(ANN_ID)),
        ):
            path.write_bytes(content + CANARY.encode())
        (root / "durable" / f"{ANN_ID}.json").write_text(f'{{"version": 99, "items": ["{CANARY}"]}}')
        (root / "cursors" / "unreadable.json").write_bytes(content + CANARY.encode())
        await full.memory.erase(ANN)
        assert traces(full.data, CANARY) == []

    async def test_of_somebody_unknown_there_is_nothing_but_the_tombstone(self, house: Shelves) -> None:
        erased = await house.memory.erase("user-1")
        assert (erased.removed, erased.left, erased.todo) == (0, (), ())
        assert house.memory.erased_at("user-1") == erased.at == NOW
        assert house.memory.erased_at("user-2") == -1

    async def test_it_leaves_ram(self, full: Shelves) -> None:
        await full.memory.view(ANN)
        await full.rolling.get(GENERAL_KEY)
        await full.memory.erase(ANN)
        assert not any(map(full.memory.has_in_ram, (ANN, BOB, "bot")))
        for key in (GENERAL_KEY, dm_of(ANN_ID)):
            assert full.rolling.in_ram(key) is None
            assert await full.rolling.get(key) == NOTHING

    async def test_a_subject_that_is_no_person_can_be_erased(self, house: Shelves) -> None:
        await house.memory.change("server-1", "why", remember(CANARY))
        await house.memory.erase("server-1")
        assert traces(house.data, CANARY) == []

    async def test_a_name_that_is_none_is_refused(self, house: Shelves) -> None:
        with pytest.raises(MemoryFault):
            await house.memory.erase("../user-1")


class TestTombstones:
    async def test_they_do_not_say_whom_and_outlive_a_restart(self, house: Shelves) -> None:
        erased = await house.memory.erase(ANN)
        content = (house.data / "memory" / "tombstones.jsonl").read_text()
        assert ANN_ID not in content
        (line,) = map(json.loads, content.splitlines())
        assert line["at"] == erased.at
        assert len(bytes.fromhex(line["mark"])) == 32
        assert restarted(house).memory.erased_at(ANN) == erased.at

    async def test_the_key_is_ours_alone_and_stays_the_same(self, house: Shelves) -> None:
        path = house.data / "memory" / "tombstone.key"
        await house.memory.erase(ANN)
        key = path.read_bytes()
        assert len(key) == 32
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await restarted(house).memory.erase(BOB)
        assert path.read_bytes() == key

    @pytest.mark.parametrize("key", [None, b"", b"short", b"x" * 33])
    async def test_without_their_key_there_is_no_start(self, house: Shelves, key: bytes | None) -> None:
        await house.memory.erase(ANN)
        path = house.data / "memory" / "tombstone.key"
        path.unlink()
        if key is not None:
            path.write_bytes(key)
        with pytest.raises(MemoryFault, match=r"tombstone\.key"):
            restarted(house)
        (house.data / "memory" / "tombstones.jsonl").unlink()
        path.unlink(missing_ok=True)
        restarted(house)  # the folder was given back

    async def test_a_line_that_is_none_is_left_out_and_torn_ones_harm_no_later_one(
        self, house: Shelves
    ) -> None:
        first = await house.memory.erase(ANN)
        path = house.data / "memory" / "tombstones.jsonl"
        with path.open("ab") as file:
            file.write(b'[1]\n{"mark": 7, "at": 8}\n\xff\n{"mark": "ab')
        again = restarted(house)
        second = await again.memory.erase(BOB)
        last = restarted(again)
        assert (last.memory.erased_at(ANN), last.memory.erased_at(BOB)) == (first.at, second.at)

    async def test_the_later_of_two_counts(self, house: Shelves) -> None:
        first = await house.memory.erase(ANN)
        second = await house.memory.erase(ANN)
        assert second.at > first.at
        assert restarted(house).memory.erased_at(ANN) == second.at


class TestNothingComesBack:
    async def test_inferred_words_from_before_are_ignored_and_stated_ones_count(self, house: Shelves) -> None:
        at = (await house.memory.erase(ANN)).at

        def wish(draft: Draft) -> list[str]:
            origins = [Origin("inferred", said_at=at), Origin("inferred", said_at=at + 1), Origin("stated")]
            return [draft.upsert("fact", f"{CANARY} {n}", origin)[1] for n, origin in enumerate(origins)]

        assert await house.memory.change(ANN, "why", wish) == ["ignored", "added", "added"]

    async def test_records_from_before_are_refused(self, full: Shelves) -> None:
        records: list[Record] = list((await full.memory.history(ANN)).records)
        await full.memory.erase(ANN)

        def bring(history: History, now_ms: int, max_items: int) -> tuple[list[Record], None]:
            return records[-1:], None

        with pytest.raises(Refused, match="does not come back"):
            await full.memory.act(ANN, bring)
        assert traces(full.data, CANARY) == []

    async def test_what_is_recorded_afterwards_is_younger_though_the_clock_stands_still(
        self, full: Shelves
    ) -> None:
        at = (await full.memory.erase(ANN)).at
        assert at > full.clock()  # its records were ahead of the clock
        await full.memory.change(ANN, "why", remember("anew"))
        (commit,) = ledger.read(lines_of(full.memory, ANN)).commits
        assert ms_of_iso(commit.timestamp) > at

    async def test_a_chat_whose_clock_is_ahead_is_believed(self, house: Shelves) -> None:
        assert (await house.memory.erase(ANN, asked_at=NOW + 5000)).at == NOW + 5000

    async def test_a_record_of_the_year_9999_does_not_bar_what_is_said_till_then(
        self, house: Shelves
    ) -> None:
        await house.memory.change(ANN, "why", remember("one"))
        house.clock.now = 253_402_300_000_000
        await house.memory.change(ANN, "why", remember("two"))
        house.clock.now = NOW
        assert (await house.memory.erase(ANN)).at <= NOW + 3_600_000

    async def test_a_snapshot_that_is_put_back_brings_nothing(self, full: Shelves) -> None:
        path = full.data / "cache" / "views" / f"{ANN}.json"
        content = path.read_bytes()
        await full.memory.erase(ANN)
        path.write_bytes(content)
        assert await texts(restarted(full).memory) == []

    async def test_a_late_extraction_learns_nothing(self, house: Shelves) -> None:
        """Its messages were said before, and the model answers after."""
        model = ScriptedModel()
        model.gate = asyncio.Event()
        message = said(1, ANN, CANARY, sent_at=NOW + 60_000)  # by the chat's clock, which is ahead
        model.patches.append(upsert(CANARY, GENERAL, message))
        run = asyncio.create_task(house.facts_loop(model).run(ANN_ID, backlog(GENERAL, message), {}))
        await until(lambda: model.at_once == 1)
        await house.memory.erase(ANN)
        model.gate.set()
        await run
        assert traces(house.data, CANARY, ANN_ID) == []

    async def test_old_talk_that_is_read_again_is_not_even_shown_to_a_model(self, house: Shelves) -> None:
        at = (await house.memory.erase(ANN)).at
        model = ScriptedModel()
        old = [said(n, ANN, f"{CANARY} {n}", sent_at=at - n) for n in range(3)]
        new = said(9, ANN, "I like cake", sent_at=at + 1)
        waiting = backlog(GENERAL, *old, new)
        model.patches.append(upsert("User likes cake", GENERAL, new))
        loop = house.facts_loop(model)
        while await loop.run(ANN_ID, waiting, {GENERAL_KEY: old}):
            pass
        (prompt,) = model.extractions
        assert CANARY not in prompt
        assert await texts(house.memory, ANN) == ["User likes cake"]


class TestADurableFileSavedLate:
    """By an editor that was open, or put back from a backup: what is new in it counts, the rest is gone."""

    async def test_its_items_from_before_stay_erased_and_no_copy_is_kept(self, full: Shelves) -> None:
        path = full.memory.durable_folder / f"{ANN_ID}.json"
        content = path.read_bytes()
        await full.memory.erase(ANN)
        path.write_bytes(content)
        assert await texts(full.memory, ANN) == []
        assert traces(full.data, CANARY) == []

    async def test_what_was_added_by_hand_is_taken(self, full: Shelves) -> None:
        path = full.memory.durable_folder / f"{ANN_ID}.json"
        file = json.loads(path.read_bytes())
        await full.memory.erase(ANN)
        file["items"].append({"kind": "fact", "text": "I have a dog"})
        path.write_text(json.dumps(file))
        assert await texts(full.memory, ANN) == ["I have a dog"]
        assert traces(full.data, CANARY) == []

    async def test_what_was_remembered_since_is_not_taken_for_forgotten(self, full: Shelves) -> None:
        path = full.memory.durable_folder / f"{ANN_ID}.json"
        content = path.read_bytes()
        await full.memory.erase(ANN)
        await full.memory.change(ANN, "why", remember("anew"))
        path.write_bytes(content)
        assert await texts(full.memory, ANN) == ["anew"]
        assert traces(full.data, CANARY) == []

    async def test_an_item_without_its_time_is_brought_back_on_purpose(self, full: Shelves) -> None:
        path = full.memory.durable_folder / f"{ANN_ID}.json"
        await full.memory.erase(ANN)
        items = [{"kind": "fact", "text": CANARY}]
        path.write_text(json.dumps({"version": 1, "updatedAt": NOW, "items": items}))
        assert await texts(full.memory, ANN) == [CANARY]


class TestSummaries:
    async def test_who_took_part_is_noted_by_id_before_the_summary_is_there(self, house: Shelves) -> None:
        model = ScriptedModel([], summaries=[Summary(summary="They talk.")])
        loop, name = house.summary_loop(model), f"people-{GENERAL_KEY}"
        await loop.run(GENERAL_KEY, backlog(GENERAL, said(1, ANN, "a"), said(2, BOB, "b")))
        assert await house.cursors.get(name) == {
            "session": GENERAL_KEY,
            "people": ["820000000000000288", ANN_ID],
            "names": {ANN_ID: ANN, "820000000000000288": BOB},
        }
        await loop.run(GENERAL_KEY, backlog(GENERAL, said(3, "user-1", "c")))
        assert len((await house.cursors.get(name))["people"]) == 3
        await house.rolling.clear(GENERAL_KEY)
        await loop.run(GENERAL_KEY, backlog(GENERAL, said(4, BOB, "d")))
        assert (await house.cursors.get(name))["people"] == ["820000000000000288"]

    async def test_a_dm_needs_no_note(self, house: Shelves) -> None:
        key = dm_of(ANN_ID)
        await house.summary_loop(ScriptedModel()).run(key, backlog(DM, said(1, ANN, "a")))
        assert (await house.rolling.get(key)).summary
        assert await house.cursors.get(f"people-{key}") == {}

    async def test_where_that_can_not_be_noted_there_is_no_summary(self, house: Shelves) -> None:
        loop = house.summary_loop(ScriptedModel())
        house.cursors.folder.parent.mkdir(parents=True, exist_ok=True)
        house.cursors.folder.write_text("a file in the way")
        waiting = backlog(GENERAL, said(1, ANN, "a"))
        for _ in range(2):
            with pytest.raises(MemoryFault, match="could not be noted"):
                await loop.run(GENERAL_KEY, waiting)
            assert await house.rolling.get(GENERAL_KEY) == NOTHING
            assert len(waiting.waiting) == 1
        house.cursors.folder.unlink()
        await loop.run(GENERAL_KEY, waiting)
        assert await house.cursors.get(f"people-{GENERAL_KEY}") != {}

    async def test_of_an_earlier_version_the_persons_own_cursor_tells(self, house: Shelves) -> None:
        await house.rolling.put(GENERAL_KEY, CANARY, generation=await house.rolling.generation(GENERAL_KEY))
        await house.cursors.put(f"facts-{ANN_ID}", {GENERAL_KEY: "77", "left": {GENERAL_KEY: ["76"]}})
        erased = await house.memory.erase(ANN)
        assert GENERAL_KEY in erased.sessions and "left" not in erased.sessions
        assert await house.rolling.get(GENERAL_KEY) == NOTHING
        assert traces(house.data, CANARY) == []

    async def test_somebody_who_knows_more_conversations_is_asked(self, house: Shelves) -> None:
        await house.rolling.put(GENERAL_KEY, CANARY, generation=await house.rolling.generation(GENERAL_KEY))
        house.memory.join(Part(lambda subject: [GENERAL_KEY] if subject == ANN else []))
        await house.memory.erase(BOB)
        assert (await house.rolling.get(GENERAL_KEY)).summary == CANARY
        await house.memory.erase(ANN)
        assert traces(house.data, CANARY) == []

    async def test_old_talk_stays_seen(self, full: Shelves) -> None:
        at = (await full.memory.erase(ANN)).at
        for house in (full, restarted(full)):
            loop = house.summary_loop(ScriptedModel())
            for key in (GENERAL_KEY, dm_of(ANN_ID)):
                assert await loop.seen_up_to(key) == snowflake_at(at)
            assert 0 < await loop.seen_up_to(dm_of("820000000000000288")) < snowflake_at(at)

    async def test_a_cursor_that_is_further_is_not_set_back(self, full: Shelves) -> None:
        newest = str(1 << 62)
        await full.cursors.put(f"summary-{GENERAL_KEY}", {"upTo": newest, "left": ["77"]})
        await full.memory.erase(ANN)
        assert await full.cursors.get(f"summary-{GENERAL_KEY}") == {"upTo": newest}

    async def test_other_conversations_keep_theirs(self, full: Shelves) -> None:
        key = "discord:channel:56"
        await full.rolling.put(key, "Bob alone.", generation=await full.rolling.generation(key))
        await full.memory.erase(ANN)
        assert (await restarted(full).rolling.get(key)).summary == "Bob alone."

    @pytest.mark.parametrize("earlier", [False, True])
    async def test_a_run_that_is_at_work_stores_nothing_of_what_it_saw(
        self, house: Shelves, earlier: bool
    ) -> None:
        """Whether or not anything told before it that the person takes part."""
        model = ScriptedModel()
        loop = house.summary_loop(model)
        if earlier:
            await loop.run(GENERAL_KEY, backlog(GENERAL, said(1, ANN, "hello")))
        model.gate = asyncio.Event()
        model.summaries.append(Summary(summary=CANARY))
        others = [] if earlier else [said(3, BOB, "tea, please")]
        waiting = backlog(GENERAL, said(2, ANN, CANARY), *others)
        run = asyncio.create_task(loop.run(GENERAL_KEY, waiting))
        await until(lambda: model.at_once == 1)
        await house.memory.erase(ANN)
        model.gate.set()
        more = await run
        assert traces(house.data, CANARY, ANN_ID) == []
        while more:
            more = await loop.run(GENERAL_KEY, waiting)
        assert traces(house.data, CANARY, ANN_ID) == []
        assert CANARY not in model.summarised[-1] or earlier

    async def test_words_from_before_that_wait_still_are_left_out(self, house: Shelves) -> None:
        at = (await house.memory.erase(ANN)).at
        model = ScriptedModel()
        old, new = said(1, ANN, CANARY, sent_at=at), said(2, ANN, "good morning", sent_at=at + 1)
        await house.summary_loop(model).run(GENERAL_KEY, backlog(GENERAL, old, said(3, BOB, "hi"), new))
        (prompt,) = model.summarised
        assert CANARY not in prompt
        assert "good morning" in prompt
        assert "hi" in prompt

    async def test_a_reset_meanwhile_does_not_set_a_cursor_back(self, full: Shelves) -> None:
        at = (await full.memory.erase(ANN)).at
        loop = full.summary_loop(ScriptedModel())
        for key in (GENERAL_KEY, dm_of(ANN_ID)):
            await loop.saw(key, 5)
            assert await loop.seen_up_to(key) == snowflake_at(at)
        assert traces(full.data / "memory" / "cursors", f"summary-{dm_of(ANN_ID)}") == []


class TestTwoThingsAtOnce:
    async def test_a_change_that_waits_for_the_lock_begins_with_nothing(self, full: Shelves) -> None:
        await full.memory.view(ANN)
        seen: list[int] = []

        def wish(draft: Draft) -> None:
            seen.append(len(draft.items))
            draft.upsert("fact", CANARY, Origin("inferred", said_at=NOW))
            draft.upsert("fact", "anew", Origin("stated"))

        erasing = asyncio.create_task(full.memory.erase(ANN))
        await until(lambda: full.memory.view_in_ram(ANN) is None)
        await asyncio.gather(erasing, full.memory.change(ANN, "why", wish))
        assert seen == [0]
        assert await texts(full.memory, ANN) == ["anew"]
        assert traces(full.data, CANARY) == []

    async def test_a_change_that_came_first_is_erased_with_the_rest(self, house: Shelves) -> None:
        await asyncio.gather(house.memory.change(ANN, "why", remember(CANARY)), house.memory.erase(ANN))
        assert traces(house.data, CANARY) == []

    async def test_a_look_meanwhile_never_shows_a_part(self, full: Shelves) -> None:
        before = len((await full.memory.view(ANN)).items)
        erasing = asyncio.create_task(full.memory.erase(ANN))
        found = set()
        while not erasing.done():
            found.add(len((await full.memory.view(ANN)).items))
            await asyncio.sleep(0)
        assert found <= {before, 0}
        assert len((await full.memory.view(ANN)).items) == 0

    async def test_two_erasings_of_one_person_and_of_two_who_talk_with_each_other(
        self, full: Shelves
    ) -> None:
        subjects = [ANN, BOB, ANN, BOB, ANN]
        async with asyncio.timeout(20):
            erased = await asyncio.gather(*map(full.memory.erase, subjects))
        assert traces(full.data, CANARY, "coffee") == []
        assert len({one.at for one in erased if one.subject == ANN}) == 3
        assert full.memory.erased_at(ANN) == max(one.at for one in erased if one.subject == ANN)

    async def test_one_that_was_begun_goes_on_though_the_caller_gives_up(self, full: Shelves) -> None:
        for pauses in range(6):
            task = asyncio.create_task(full.memory.erase(ANN))
            for _ in range(pauses):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert traces(full.data, CANARY) == []
        assert full.memory.pending_erasures() == full.memory.pending_erasures("transparency")

    async def test_a_summary_that_was_begun_before_is_not_stored_after(self, full: Shelves) -> None:
        for key in (GENERAL_KEY, dm_of(ANN_ID)):
            generation = await full.rolling.generation(key)
            await full.memory.erase(ANN)
            assert not await full.rolling.put(key, CANARY, generation=generation)
            assert await full.rolling.put(key, "anew", generation=await full.rolling.generation(key))
        assert traces(full.data, CANARY) == []

    async def test_a_summary_that_is_stored_meanwhile_goes(self, full: Shelves) -> None:
        for pauses in range(6):
            generation = await full.rolling.generation(GENERAL_KEY)
            erasing = asyncio.create_task(full.memory.erase(ANN))
            for _ in range(pauses):
                await asyncio.sleep(0)
            await full.rolling.put(GENERAL_KEY, CANARY, generation=generation)
            await erasing
            if pauses == 0:
                assert GENERAL_KEY in (await erasing).sessions
                full.memory.join(Part(lambda subject: [GENERAL_KEY]))
            assert traces(full.data, CANARY) == []

    async def test_cursors_that_are_written_meanwhile_are_complete(self, full: Shelves) -> None:
        async def count_up(name: str) -> None:
            for number in range(20):
                await full.cursors.put(name, {"n": number})

        await asyncio.gather(full.memory.erase(ANN), *(count_up(f"x-{n}") for n in range(3)))
        for cursors in (full.cursors, restarted(full).cursors):
            assert [await cursors.get(f"x-{n}") for n in range(3)] == [{"n": 19}] * 3

    async def test_a_cursor_that_was_being_read_is_read_again(self, house: Shelves) -> None:
        """The file is a pipe: it is read when we write into it, which is after the erasing."""
        path = house.cursors.folder / f"facts-{ANN_ID}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
        looking = asyncio.create_task(house.cursors.get(f"facts-{ANN_ID}"))
        pipe = await asyncio.to_thread(os.open, path, os.O_WRONLY)
        async with house.cursors.alone():
            path.unlink()
        os.write(pipe, b'{"discord:channel:55": "77"}')
        os.close(pipe)
        assert await looking == {}

    async def test_a_tidying_that_is_at_work_notes_nothing(self, full: Shelves) -> None:
        """What it would note names the branches, whose names are the person's words."""
        model = Tidier()
        model.gate = asyncio.Event()
        tidying = Consolidator(model, full.memory, clock=full.clock)
        heartbeat = Heartbeat(tidying, full.memory, full.cursors, clock=full.clock, every_minutes=0)
        await full.cursors.put(f"tidied-{BOB}", {"size": lines_of(full.memory, BOB).size()})
        beating = asyncio.create_task(heartbeat.beat())
        await until(lambda: model.at_once == 1)
        await full.memory.erase(ANN)
        model.gate.set()
        await beating
        assert (await full.cursors.get(f"tidied-{ANN}")) == {}
        assert traces(full.data / "memory" / "cursors", ANN) == []


class TestWhoIsTold:
    async def test_before_the_files_go_and_once_the_erasing_stands(self, full: Shelves) -> None:
        told = []

        class Told(Derived):
            name = "who is told"

            def purge(self, purge: Purge, phase: Phase) -> None:
                if phase != "ram":
                    return
                told.append((purge.subject, purge.at, purge.sessions, full.memory.erased_at(ANN)))
                assert traces(full.data, CANARY)

        full.memory.join(Told())
        erased = await full.memory.erase(ANN)
        assert told == [(ANN, erased.at, frozenset(erased.sessions), erased.at)]

    async def test_a_listener_that_fails_stops_nothing(self, full: Shelves) -> None:
        class Failing(Derived):
            name = "a part with a bug"

            def purge(self, purge: Purge, phase: Phase) -> None:
                if phase != "disk":
                    raise ValueError("a bug")

        full.memory.join(Failing())
        assert (await full.memory.erase(ANN)).left == ()
        assert traces(full.data, CANARY) == []

    async def test_followers_hear_of_it(self, full: Shelves) -> None:
        changed = listening(full.memory).subjects
        await full.memory.erase(ANN)
        assert changed == [ANN]


class TestStepsOutside:
    async def test_the_intent_waits_with_only_the_subject_and_the_steps(self, full: Shelves) -> None:
        erased = await full.memory.erase(ANN)
        assert erased.todo == ("transparency",)
        for house in (full, restarted(full)):
            intent = house.memory.disk.documents(INTENTS).read(f"{ANN}.json")
            assert json.loads(intent) == {"subject": ANN, "todo": ["transparency"]}
            assert house.memory.pending_erasures("transparency") == [ANN]
            assert (await house.cursors.get("transparency"))[ANN_ID] == "70"
        for _ in range(2):
            await house.memory.finish_step(ANN, "transparency")
            assert house.memory.disk.documents(INTENTS).names() == []
            assert house.memory.pending_erasures() == []

    async def test_what_is_remembered_meanwhile_outlives_the_next_start(self, full: Shelves) -> None:
        await full.memory.erase(ANN)
        await full.memory.change(ANN, "why", remember("anew"))
        assert await texts(restarted(full).memory, ANN) == ["anew"]

    async def test_a_step_can_belong_to_every_erasing(self, house: Shelves) -> None:
        house.memory.join(Part(steps=("transparency",)))
        assert (await house.memory.erase(ANN)).todo == ("transparency",)
        assert (await house.memory.erase(ANN)).todo == ("transparency",)
        await house.memory.finish_step(ANN, "something else")
        await house.memory.finish_step(BOB, "transparency")
        assert house.memory.pending_erasures() == [ANN]


class TestWhatTheDiskDoesNotGiveAway:
    def in_the_way(self, house: Shelves) -> list[Path]:
        """Folders with the names of files, which no unlink removes: one beside each kind of file."""
        root = house.data / "memory"
        found = [
            root / "ledger" / f"{ANN}.jsonl.torn-x",
            root / "durable" / f"{ANN_ID}.json.v1-x",
            root / "rolling" / f"{session_name(dm_of(ANN_ID))}.corrupt-x",
        ]
        for path in found:
            path.mkdir()
        return found

    async def test_is_named_and_nothing_is_remembered_until_it_is_gone(self, full: Shelves) -> None:
        stay = self.in_the_way(full)
        erased = await full.memory.erase(ANN)
        assert len(erased.left) == 3
        assert all(any(str(path) in line for line in erased.left) for path in stay)
        assert traces(full.data, CANARY) == []
        again = restarted(full)
        for house in (full, again):
            for asked in (house.memory.view(ANN), house.memory.change(ANN, "why", remember("anew"))):
                with pytest.raises(MemoryFault, match="not everything could be removed"):
                    await asked
            assert house.memory.view_in_ram(ANN) is None
            assert house.memory.pending_erasures() == [ANN]
        for path in stay:
            path.rmdir()
        last = restarted(again)
        assert last.memory.pending_erasures() == [ANN]  # the step outside
        assert await texts(last.memory, ANN) == []
        assert await last.memory.change(ANN, "why", remember("anew"))

    async def test_erasing_once_more_finishes_it_too(self, full: Shelves) -> None:
        (first, *rest) = self.in_the_way(full)
        await full.memory.erase(ANN)
        for path in (first, *rest):
            path.rmdir()
        assert (await full.memory.erase(ANN)).left == ()
        assert await texts(full.memory, ANN) == []

    async def test_a_summary_that_stays_on_disk_is_not_read_again(self, full: Shelves) -> None:
        path = full.rolling.folder / session_name(GENERAL_KEY)
        path.unlink()
        path.mkdir()
        erased = await full.memory.erase(ANN)
        assert len(erased.left) == 1
        full.clock.forward(minutes=180)
        assert await full.rolling.get(GENERAL_KEY) == NOTHING


class TestAFullDisk:
    def erase(self, data: Path, room: int) -> str:
        """The fault of an erasing where no file can grow beyond `room` bytes."""
        return str(told_by(erase_full, data, room))

    def test_that_has_no_room_for_the_intent_changes_nothing(self, template: Path, tmp_path: Path) -> None:
        data = tmp_path / "data"
        shutil.copytree(template, data)
        house = shelves(data)
        house.memory.open()  # removes what killed writers left
        house.memory.close()
        before = fingerprint(data)
        assert "nothing was erased" in self.erase(data, 10)
        assert fingerprint(data) == before
        house.memory.open()
        assert house.memory.erased_at(ANN) == -1
        house.memory.close()

    def test_nor_does_one_that_has_no_room_for_the_tombstone(self, template: Path, tmp_path: Path) -> None:
        data = tmp_path / "data"
        shutil.copytree(template, data)
        house = shelves(data)
        house.memory.open()
        for number in range(30):
            asyncio.run(house.memory.erase(f"user-{number}"))
        house.memory.close()
        before = fingerprint(data)
        assert (data / "memory" / "tombstones.jsonl").stat().st_size > 2000
        assert "nothing was erased" in self.erase(data, 2000)
        assert fingerprint(data) == before

    def test_with_room_for_both_it_is_done(self, template: Path, tmp_path: Path) -> None:
        data = tmp_path / "data"
        shutil.copytree(template, data)
        assert self.erase(data, 2000) == ""
        assert traces(data, CANARY) == []


class Before:
    """What there is of Ann and Bob in the folder that is copied."""

    def __init__(self, template: Path, store: Store) -> None:
        house = shelves(template, store=store)
        self.ann, self.bob = about(house, ANN), about(house, BOB)
        self.traces = traces(template, CANARY)
        house.memory.close()


class TestKilledAtAnyStep:
    @pytest.mark.long
    @pytest.mark.own_store
    def test_either_nothing_happened_or_the_next_start_finishes_it(
        self, template: Path, tmp_path: Path, store: Store
    ) -> None:
        outcomes = []
        before = Before(template, store)
        with Forge("tests.memory.erase_child") as forge:
            for step in forge.steps("erase", store, shutil.copytree(template, tmp_path / "whole")):
                data = shutil.copytree(template, tmp_path / str(step))
                lived = forge.lived(step, "erase", store, data)
                outcomes.append(self.check(before, data, store))
                shutil.rmtree(data)
        assert lived
        assert outcomes == sorted(outcomes)  # once it stands, it stands
        assert outcomes.count(False) >= 1
        assert outcomes.count(True) >= 10

    @pytest.mark.long
    @pytest.mark.own_store
    def test_also_when_the_next_starts_are_killed_one_after_the_other(
        self, template: Path, tmp_path: Path, store: Store
    ) -> None:
        data = tmp_path / "data"
        shutil.copytree(template, data)
        before, kills = Before(template, store), 0
        with Forge("tests.memory.erase_child") as forge:
            for step in count(1):
                shutil.rmtree(data)
                shutil.copytree(template, data)
                assert not forge.lived(step, "erase", store, data)
                with disks(store, data / "memory") as stores:
                    if any(name.endswith(".json") for name in stores.used.documents(INTENTS).names()):
                        break
            for step in forge.steps("resume", store, shutil.copytree(data, tmp_path / "whole")):
                if forge.lived(step, "resume", store, data):
                    break
                kills += 1
            else:
                pytest.fail("it was killed at every start")
        assert kills >= 3
        assert self.check(before, data, store)

    def check(self, before: "Before", data: Path, store: Store) -> bool:
        """After one more start: whether Ann is erased, and altogether; else that nothing happened."""
        house = shelves(data, store=store)
        house.memory.open()
        try:
            erased = house.memory.erased_at(ANN) >= 0
            left = traces(data, CANARY)
            if erased:
                assert left == []
                assert asyncio.run(texts(house.memory, ANN)) == []
                assert house.memory.pending_erasures() == [ANN]  # the message outside
                assert house.memory.disk.documents(INTENTS).names() == [f"{ANN}.json"]
            else:
                assert about(house, ANN) == before.ann
                # Any start removes what killed writers left.
                assert set(left) >= {one for one in before.traces if not one.endswith(".tmp")}
                assert not any(one.endswith(".tmp") for one in left)
                assert house.memory.disk.documents(INTENTS).names() == []
            assert about(house, BOB) == before.bob
        finally:
            house.memory.close()
        return erased


class TestIntents:
    @pytest.mark.parametrize("content", ["", "{", "[]", '{"subject": 7, "at": "x"}', '{"at": -1}'])
    def test_one_that_can_not_be_read_is_done_by_its_name(
        self, template: Path, tmp_path: Path, content: str
    ) -> None:
        data = tmp_path / "data"
        shutil.copytree(template, data)
        folder = data / "memory" / "erasing"
        folder.mkdir()
        (folder / f"{ANN}.json").write_text(content)
        house = shelves(data)
        house.memory.open()
        house.memory.close()
        assert traces(data / "memory" / "ledger", CANARY) == []
        assert traces(data / "memory" / "durable", CANARY) == []
        assert house.memory.erased_at(ANN) == NOW

    def test_a_half_written_one_was_never_made(self, template: Path, tmp_path: Path) -> None:
        data = tmp_path / "data"
        shutil.copytree(template, data)
        folder = data / "memory" / "erasing"
        folder.mkdir()
        (folder / f".{ANN}.json.0a1b2c3d.tmp").write_text('{"subject"')
        house = shelves(data)
        house.memory.open()
        house.memory.close()
        assert house.memory.erased_at(ANN) == -1
        assert list(folder.iterdir()) == []
        assert about(house, ANN) == about(shelves(template), ANN)

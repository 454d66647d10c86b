"""Each part lets go of what its person took back, in RAM and on disk, and of nothing else."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault
from discoclaw.core.item import item_id
from discoclaw.core.message import Entry, Place
from discoclaw.core.purge import Purge, Words, terms_of
from discoclaw.memory import purge
from discoclaw.memory.changes import Listener
from discoclaw.memory.conversations.responses import Response, Responses
from discoclaw.memory.people import tool_log
from discoclaw.memory.people.groups import Learned
from discoclaw.memory.people.tool_log import Call
from discoclaw.memory.purge import Purger
from discoclaw.memory.subjects import verbs
from discoclaw.nostr import recovery
from discoclaw.search.archive import Put
from discoclaw.search.vectors import VectorCache, hash_of
from discoclaw.session.archiving import words_of as archived_words
from discoclaw.settings import Settings
from discoclaw.soul.interview import Interview, Line
from discoclaw.storage import Storage, build
from discoclaw.store.files import session_name
from discoclaw.store.port import GROUPS, ROLLING, TOOLS
from tests.examples import FEW
from tests.memory.kit import ANN, BOB, NOW, Clock, remember
from tests.purging import from_disk, from_ram

ANN_ID = ANN.removeprefix("user-")
GENERAL = Place("channel", "55", "55", "general", private=False, group_name="general")


def taken_back(text: str, **given: Any) -> Purge:
    words = Words(frozenset(terms_of(text)))
    return Purge(ANN, **{"at": NOW + 10, "words": words, "texts": (text,), **given})


def storage_in(folder: Path, clock: Clock, **given: Any) -> Storage:
    opened = build(Settings(_env_file=None, data_dir=folder / "data", **given), clock=clock)
    opened.open()
    opened.load()
    return opened


class TestCachedAnswers:
    async def stored(self, folder: Path, clock: Clock) -> Responses:
        responses = Responses(folder, clock=clock)
        for subject, text in ((ANN, "tea"), (BOB, "Ann drinks espresso"), (BOB, "milk")):
            await responses.put(subject, Response(text, "0" * 64, "m", text, NOW, NOW))
        return responses

    async def test_of_the_person_go_and_of_others_those_with_the_words(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        responses = await self.stored(tmp_path, clock)
        gone = await from_disk(responses, taken_back("espresso"))
        assert gone.answers == 2
        assert not (tmp_path / f"{ANN}.json").exists()
        assert [one["key"] for one in json.loads((tmp_path / f"{BOB}.json").read_bytes())] == ["milk"]
        assert (await from_disk(responses, taken_back("espresso"))).answers == 0

    async def test_are_not_served_between_the_commit_and_the_disk(self, tmp_path: Path, clock: Clock) -> None:
        responses = await self.stored(tmp_path, clock)
        from_ram(responses, taken_back("espresso"))
        assert await responses.get(ANN, "tea", "0" * 64) is None
        assert await responses.get(BOB, "Ann drinks espresso", "0" * 64) is None
        assert await responses.get(BOB, "milk", "0" * 64) == "milk"

    async def test_that_were_asked_for_before_are_not_stored(self, tmp_path: Path, clock: Clock) -> None:
        responses = await self.stored(tmp_path, clock)
        from_ram(responses, taken_back("espresso"))
        await from_disk(responses, taken_back("espresso"))
        await responses.put(ANN, Response("late", "0" * 64, "m", "whatever", NOW + 5, NOW))
        assert await responses.get(ANN, "late", "0" * 64) is None
        clock.now += 20
        await responses.put(ANN, Response("new", "0" * 64, "m", "whatever", NOW + 20, NOW + 20))
        assert await responses.get(ANN, "new", "0" * 64) == "whatever"


class TestVectors:
    async def test_stay_only_of_what_a_persona_remembers(self, tmp_path: Path) -> None:
        cache = VectorCache(tmp_path / "vectors.sqlite")
        rows = {hash_of(text): bytes(16) for text in ("espresso", "tea", "old")}
        began = cache.erasings(ANN)
        assert cache.put(ANN, "m", rows, erasings=began)
        from_ram(cache, taken_back("espresso"))
        assert not cache.put(ANN, "m", {hash_of("late"): bytes(16)}, erasings=began)
        await from_disk(cache, taken_back("espresso"))
        assert set(cache.load(ANN, "m")) == {hash_of("tea"), hash_of("old")}
        cache.keep_only(ANN, {hash_of("tea")})
        assert set(cache.load(ANN, "m")) == {hash_of("tea")}
        cache.close()


class TestToolCalls:
    async def test_that_have_the_words_go_from_disk_and_from_the_queue(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        house = storage_in(tmp_path, clock)
        log = house.people.tool_log
        about = {"tool": "memory_search", "ok": True, "channel": "55", "private": False, "said_at": NOW}
        for content in ("found espresso", "found tea"):
            log.note(ANN, content=content, session="discord:channel:55", **about)  # type: ignore[arg-type]
        await log.settle()
        log.note(ANN, content="more espresso", session="discord:channel:55", **about)  # type: ignore[arg-type]
        assert from_ram(log, taken_back("espresso")).answers == 1
        assert (await from_disk(log, taken_back("espresso"))).answers == 1
        await log.settle()
        content = house.memory.disk.log(f"{TOOLS}/{ANN}.jsonl").read()
        assert b"espresso" not in content
        assert b"tea" in content
        await log.close()
        house.close()


class TestARecovery:
    async def test_has_everything_withdrawn_once_more(self, tmp_path: Path, clock: Clock) -> None:
        house = storage_in(tmp_path, clock)
        text = "User keeps a zanzibarvogel."
        await house.memory.change(ANN, "why", remember(text))
        gone = (await house.memory.view(ANN)).items[item_id("fact", text)]
        await house.memory.change(ANN, "why", lambda draft: draft.deprecate(gone, Origin("stated")))
        await house.purger.settle()
        await house.purger.close()
        disk = house.memory.disk
        await recovery.purge_anew(disk)
        call = Call("0" * 16, NOW, "memory_search", True, text, "55", "discord:channel:55", False)
        tool_log.CALLS.add(tool_log.log_of(disk, ANN), [call])  # a relay returned it
        house.close()
        again = storage_in(tmp_path, clock)
        await again.purger.start()
        assert tool_log.CALLS.read(tool_log.log_of(disk, ANN)) == []
        await again.purger.close()
        again.close()


class TestWhatIsLeftOfASummary:
    KEY = "discord:channel:55"
    SUMMARY = (
        "Open:\n- 2026-02-01 Ann: whose kayak is red? It leaks.\n"
        "Decided:\n- 2026-02-01 Bob: paints on Friday\n- 2026-01-30 Ann: rents no kayak"
    )

    @pytest.mark.parametrize(
        ("summary", "left"),
        [
            (SUMMARY, "Decided:\n- 2026-02-01 Bob: paints on Friday"),
            ("Bob paints. Ann has a kayak!\nThey talk.", "Bob paints.\nThey talk."),
        ],
    )
    async def test_are_the_lines_and_sentences_without_the_words(
        self, tmp_path: Path, summary: str, left: str
    ) -> None:
        house = storage_in(tmp_path, Clock())
        rolling = house.conversations.rolling
        await rolling.put(self.KEY, summary, generation=await rolling.generation(self.KEY))
        gone = Purge(ANN, NOW, words=Words(terms_of("kayak")))
        await from_disk(rolling, replace(gone, sessions=frozenset({self.KEY})))
        assert (await house.cursors.get(f"summary-{self.KEY}"))["base"] == left
        house.close()


class TestWhatAChannelRemembers:
    async def test_goes_only_if_it_rests_on_the_persons_words(self, tmp_path: Path, clock: Clock) -> None:
        house = storage_in(tmp_path, clock)
        groups = house.people.groups
        origin = Origin("inferred", said_at=NOW)
        for texts, person in ((("espresso club", "tea club"), ANN_ID), (("espresso fans",), "7")):
            known = await groups.known(GENERAL)
            assert known is not None
            learned = Learned(themes=texts, messages=["1"])
            await groups.learn(GENERAL, learned, known, {person: -1} if person else {}, origin)
        place = await groups.notes(GENERAL)
        assert "espresso club" in place
        from_ram(groups, taken_back("espresso club"))
        assert "club" not in await groups.notes(GENERAL)  # at once, whoever said it
        assert (await from_disk(groups, taken_back("espresso"))).notes >= 1
        groups._taken_back.clear()
        assert "tea club" in await groups.notes(GENERAL)
        assert "espresso club" not in await groups.notes(GENERAL)
        (last, *_) = (await house.memory.history("group-55")).chain(
            (await house.memory.view("group-55")).head
        )[::-1]
        assert last.message == "somebody took back what it rests on"
        assert last.metadata["by"] == "withdrawal"
        await groups.settle()
        assert b"espresso club" not in house.memory.disk.documents(GROUPS).read("55.json")
        await groups.close()
        house.close()

    async def test_goes_from_its_file_and_from_profiles_also_while_memory_is_off(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        house = storage_in(tmp_path, clock)
        groups, profiles = house.people.groups, house.people.profiles
        groups.seen(GENERAL, NOW, user_id=ANN_ID, name="Ann")
        profiles.seen(ANN_ID, "Ann", NOW)
        await house.memory.change(ANN, "why", remember("User likes espresso.", origin=Origin("stated")))
        known = await groups.known(GENERAL)
        assert known is not None
        learned = Learned(themes=("espresso club",), messages=["1"])
        await groups.learn(GENERAL, learned, known, {ANN_ID: -1}, Origin("inferred", said_at=NOW))
        await groups.close()
        await profiles.close()
        house.close()
        folder = tmp_path / "data" / "memory"
        files = folder / "groups" / "55.json", folder / "profiles" / f"{ANN_ID}.json"
        assert all(b"espresso" in file.read_bytes() for file in files)
        house = storage_in(tmp_path, clock, durable_enabled=False)
        groups = house.people.groups
        assert await groups.notes(GENERAL) == "" and await groups.known(GENERAL) is None
        await house.memory.change(
            ANN, "why", lambda draft: draft.remove(*draft.view.active(), Origin("stated"))
        )
        for part in house.memory.personal:
            await from_disk(part, taken_back("espresso"))
        assert not any(b"espresso" in file.read_bytes() for file in files)
        house.close()


class TestDamagedCopies:
    async def test_that_have_the_words_go(self, tmp_path: Path, clock: Clock) -> None:
        house = storage_in(tmp_path, clock)
        folder = house.memory.disk.documents(ROLLING)
        for name, text in (("a", "espr\\u0065sso {"), ("b", "tea {")):
            folder.write(f"{session_name(name)}", text.encode())
            folder.keep_aside(session_name(name), "corrupt", "20260101T000000Z")
        for part in house.memory.personal:
            await from_disk(part, taken_back("espresso"))
        copies = [name for name in folder.names() if "corrupt" in name]
        assert [name[0] for name in copies] == ["b"]
        house.close()


class TestTheInterview:
    def test_loses_the_lines_with_the_words_but_not_its_turns(self) -> None:
        lines = (Line("1", "Hello?", ours=True), Line("2", "I drink espresso"), Line("3", "Tea?", ours=True))
        before = Interview(ANN_ID, "discord:dm:1", NOW, NOW, lines, unsaved="espresso")
        after = before.emptied(taken_back("espresso"))
        assert [line.text for line in after.lines] == ["Hello?", "", "Tea?"]
        assert after.unsaved == ""
        assert before.emptied(taken_back("milk")) is before
        assert before.emptied(taken_back("espresso", open_only=True)) is before


# ---------------------------------------------------------------------- any history

NAMES = ("zanzibarvogel", "timbuktuvogel", "samarkandvogel")
STEPS = st.tuples(st.sampled_from(["learn", "forget", "edit", "undo"]), st.integers(0, len(NAMES) - 1))


async def _step(house: Storage, verb: str, name: str) -> None:
    """One thing that happens to a memory, with all that is derived from it."""
    text = f"User keeps a {name}."
    memory, key = house.memory, item_id("fact", text)
    view = await memory.view(ANN)
    here = view.items.get(key)
    if verb == "learn":
        await memory.change(ANN, "why", remember(text))
        await _derive(house, text)
    elif verb == "forget" and here is not None:
        await memory.change(ANN, "why", lambda draft: draft.deprecate(here, Origin("stated")))
    elif verb == "edit" and here is not None:
        await memory.change(ANN, "why", lambda draft: _edited(draft, key))
    elif verb == "undo" and view.items:
        await verbs.undo(memory, ANN, Origin("stated", asked=True))


def _edited(draft: Draft, key: str) -> None:
    draft.upsert("fact", "User keeps a dog.", Origin("stated"), given_id=key)


async def _derive(house: Storage, text: str) -> None:
    """Have a text in the archive, in the answer to somebody else, and in the channel's summary."""
    talk = house.conversations
    key = "discord:channel:55"
    at = (await house.memory.view(ANN)).updated_at
    number = str(10**18 + at)
    entry = Entry(number, key, "55", "55", "9", ANN_ID, "Ann", text, at)
    talk.archive.write([Put(entry)], words=archived_words, consent=house.consent)
    await talk.responses.put(BOB, Response(number, "0" * 64, "m", text, at, at))
    generation = await talk.rolling.generation(key)
    await talk.rolling.put(
        key, f"{(await talk.rolling.get(key)).summary} {text}".strip(), generation=generation
    )
    await house.cursors.put(f"people-{key}", {"session": key, "people": [ANN_ID]})


async def _holding(house: Storage) -> dict[str, set[str]]:
    """Which of the names each derived thing has."""
    said = {
        "archive": " ".join(one.text for one in house.conversations.archive.audit()),
        "summary": (await house.conversations.rolling.get("discord:channel:55")).summary,
        "answers": "".join(path.read_text() for path in house.conversations.responses.folder.glob("*.json")),
    }
    return {where: {name for name in NAMES if name in text} for where, text in said.items()}


@FEW
@given(st.lists(STEPS, min_size=1, max_size=7))
def test_after_any_history_only_what_is_remembered_is_derived(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[str, int]]
) -> None:
    async def live() -> None:
        clock = Clock()
        house = storage_in(tmp_path_factory.mktemp("history"), clock)
        for verb, number in steps:
            clock.now += 1_000
            await _step(house, verb, NAMES[number])
            await house.purger.settle()
            active = " ".join(item.text for item in (await house.memory.view(ANN)).active())
            remembered = {name for name in NAMES if name in active}
            for where, names in (await _holding(house)).items():
                assert names <= remembered, where
        await house.purger.close()
        house.close()

    asyncio.run(live())


async def test_an_erasing_that_the_disk_refused_is_finished_while_the_bot_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "RETRY_S", 0.01)
    house = storage_in(tmp_path, Clock())
    await house.memory.change(ANN, "why", remember("tea"))
    in_the_way = tmp_path / "data" / "memory" / "ledger" / f"{ANN}.jsonl.torn-x"
    in_the_way.mkdir()
    assert (await house.memory.erase(ANN)).left
    with pytest.raises(MemoryFault, match="tried again and again"):
        await house.memory.view(ANN)
    tried = asyncio.Event()

    class Told(Listener):
        def recorded(self, subject: str) -> None:
            tried.set()

    house.memory.join(Told())
    in_the_way.rmdir()
    await tried.wait()
    assert house.memory.pending_erasures() == []
    assert (await house.memory.view(ANN)).active() == []
    await house.purger.close()
    house.close()


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes as this one exist on POSIX only")
class TestAStart:
    async def test_waits_for_a_ledger_that_hangs_and_then_begins_all_the_same(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        storage = storage_in(tmp_path, Clock())
        ledger = tmp_path / "data" / "memory" / "ledger" / f"{ANN}.jsonl"
        ledger.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(ledger)  # whoever opens it waits for somebody to write
        purger = Purger(
            storage.memory,
            storage.memory.eraser,
            storage.memory.personal,
            storage.cursors,
            storage.consent,
            start_s=0.1,
        )
        await purger.start()
        assert "the talk begins all the same" in caplog.text
        handle = os.open(ledger, os.O_RDWR | os.O_NONBLOCK)
        ledger.unlink()
        os.close(handle)
        await purger.close()
        storage.close()

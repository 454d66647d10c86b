"""What channels are about: files and ledgers of groups, and how a person is taken out of them for good."""

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Record
from discoclaw.core.history import History, contributors
from discoclaw.core.item import Facets, Source
from discoclaw.core.message import Place
from discoclaw.core.patch import Summary
from discoclaw.core.profile import key_of
from discoclaw.core.purge import erasing
from discoclaw.loops.consolidate import Consolidator
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.summary import SummaryLoop, SummaryRules
from discoclaw.memory.people.groups import Groups, Known, Learned
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.stores import Store
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import GROUPS, INTENTS, PROFILES
from tests.cli.shell import Shell
from tests.examples import FEW
from tests.loops.tidying import Tidier
from tests.memory.backups import written
from tests.memory.kills import Forge
from tests.memory.kit import (
    NOW,
    STAMP,
    Clock,
    asides,
    erased_from,
    lines_of,
    listening,
    remember,
    texts,
)
from tests.memory.leftovers import ANN, BOB, CANARY, ME, Shelves, backlog, said, shelves, templates_of, traces
from tests.purging import from_disk, from_ram
from tests.session.scene import ScriptedModel, until

ANN_ID, BOB_ID = (one.removeprefix("user-") for one in (ANN, BOB))
GENERAL = Place("channel", "55", "55", "general", private=False, group_name="general", topic="Ships")
THREAD = Place("thread", "56", "55", "release", private=False, group_name="general", topic="Ships")
CLOSED = Place("thread", "57", "55", "board", private=True, group_name="general", closed=True)
STAFF = Place("channel", "60", "60", "staff", private=True, group_name="staff")
DEV = Place("channel", "70", "70", "dev", private=False, group_name="dev")
DM = Place("dm", "66", None, "direct message", private=True)


def groups_of(memory: Memory, clock: Clock, **given: Any) -> Groups:
    given = {"consent": erased_from(memory), **given}
    groups = Groups(memory.disk.documents(GROUPS), memory, clock=clock, **given)
    memory.join(groups)
    return groups


@pytest.fixture
def groups(memory: Memory, clock: Clock) -> Groups:
    return groups_of(memory, clock)


def on_disk(groups: Groups, group_id: str = "55") -> Any:
    """The file; None when there is none."""
    name = f"{group_id}.json"
    return json.loads(groups.documents.read(name)) if name in groups.documents.names() else None


async def spoke(groups: Groups, *who: tuple[str, str], place: Place = GENERAL, at: int = NOW) -> Any:
    """People speak in a place, one after another; what the file says then."""
    for user_id, name in who:
        groups.seen(place, at, user_id=user_id, name=name)
    await groups.settle()
    return on_disk(groups, str(place.group_id))


async def learn(
    groups: Groups, text: str, *people: str, place: Place = GENERAL, themes: bool = False, number: int = 1
) -> None:
    """A group learns something from people's talk, as the loop does it."""
    known = await groups.known(place)
    assert known is not None
    learned = Learned([text]) if themes else Learned(decisions=[text])
    origin = Origin("inferred", Source("discord", place.channel_id, str(number)), NOW, place.private)
    heard = {one: groups._memory.erased_at(f"user-{one}") for one in people}
    await groups.learn(place, learned, known, heard, origin)


async def decisions(memory: Memory, group: str = "group-55") -> list[str]:
    return await texts(memory, group)


class TestWhoTalksThere:
    async def test_the_first_message_makes_the_file_which_follows_names_and_topics(
        self, groups: Groups
    ) -> None:
        groups.seen(GENERAL, NOW)  # of whom nothing is kept, only that somebody spoke
        await spoke(groups, ("2", "Bob"), place=DM)
        assert on_disk(groups) == {"purpose": "Ships", "members": [], "themes": [], "decisions": []}
        file = await spoke(groups, ("1", "Ann"), ("2", "Bob"), place=THREAD)
        assert file["members"] == [["1", "Ann"], ["2", "Bob"]], "a thread belongs to its channel"
        groups.seen(Place("channel", "55", "55", "general", private=False), NOW, user_id="1", name="Anna")
        await groups.close()
        file = on_disk(groups)
        assert (file["purpose"], file["members"]) == (None, [["2", "Bob"], ["1", "Anna"]])
        assert groups.documents.names() == ["55.json"]

    async def test_nothing_is_written_while_nothing_is_new(
        self, memory: Memory, clock: Clock, groups: Groups
    ) -> None:
        told = listening(memory).units
        for one in (groups, again := groups_of(memory, clock)):
            await spoke(one, ("1", "Ann"), ("2", "Bob"), ("1", "Ann"), ("2", "Bob"))
        assert told == ["group-55"]
        assert (await again.get("55")).members == (("1", "Ann"), ("2", "Bob"))

    async def test_the_newest_members_are_kept_also_those_of_the_file(
        self, memory: Memory, clock: Clock, groups: Groups
    ) -> None:
        await spoke(groups, *((str(n), f"person {n}") for n in range(250)))
        assert [one for one, _ in on_disk(groups)["members"]] == [str(n) for n in range(50, 250)]
        again = groups_of(memory, clock)
        file = await spoke(again, ("50", "person 50"), ("1000", "new"))
        assert [one for one, _ in file["members"]][-3:] == ["249", "50", "1000"]
        assert file["members"][0] == ["52", "person 52"]

    async def test_a_crowd_is_not_written_anew_with_each_message(
        self, memory: Memory, groups: Groups, clock: Clock
    ) -> None:
        await spoke(groups, *((str(n), f"person {n}") for n in range(200)))
        told = listening(memory).units
        for number in range(300, 310):
            await spoke(groups, (str(number), "new"))
        assert told == []
        clock.forward(minutes=2)
        file = await spoke(groups, ("400", "newest"))
        assert told == ["group-55"]
        assert [one for one, _ in file["members"]][-3:] == ["308", "309", "400"]

    async def test_who_is_seen_while_others_are_indexed_is_indexed_before_the_file_names_them(
        self, groups: Groups, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loop, indexed = asyncio.get_running_loop(), set[str]()

        def note(group: str, users: Iterable[str]) -> None:
            indexed.update(users)
            loop.call_soon_threadsafe(lambda: groups.seen(GENERAL, NOW, user_id="2", name="Bob"))
            time.sleep(0.02)

        monkeypatch.setattr(groups._index, "note", note)
        file = await spoke(groups, ("1", "Ann"))
        assert {one for one, _ in file["members"]} == indexed == {"1", "2"}

    async def test_a_key_in_a_topic_is_taken_out(self, groups: Groups) -> None:
        place = Place("channel", "55", "55", "general", private=False, topic=f"see nsec1{'q' * 58} here")
        assert "nsec1qq" not in json.dumps(await spoke(groups, ("1", "Ann"), place=place))


class TestWhatItLearns:
    async def test_themes_and_decisions_are_items_of_the_ledger_and_in_the_file(
        self, memory: Memory, groups: Groups
    ) -> None:
        await spoke(groups, ("1", "Ann"))
        await learn(groups, "tabs", "1", themes=True)
        await learn(groups, "We use tabs.", "1", "2")
        await groups.settle()
        assert on_disk(groups)["themes"] == ["tabs"]
        ((text, at),) = on_disk(groups)["decisions"]
        assert (text, at) == ("We use tabs.", NOW // 1000)
        items = (await memory.view("group-55")).active()
        assert [item.facets.key for item in items] == ["theme:tabs", "decision:we-use-tabs"]

    async def test_a_commit_names_everybody_whose_words_it_may_rest_on(
        self, memory: Memory, groups: Groups
    ) -> None:
        """The model was shown what is known: it may say that again."""
        await learn(groups, "one", "2", "1")
        await learn(groups, "two", "3")
        named = [sorted(contributors(commit)) for commit in ledger.read(lines_of(memory, "group-55")).commits]
        assert named == [["1", "2"], ["1", "2", "3"]]

    async def test_what_is_known_is_not_learned_twice(self, memory: Memory, groups: Groups) -> None:
        for text in ("We use tabs.", "we use  TABS.", "We use tabs!"):
            await learn(groups, text, "1")
        assert await decisions(memory) == ["We use tabs!"]

    async def test_the_oldest_leave(self, memory: Memory, groups: Groups, clock: Clock) -> None:
        for number in range(0, 60, 10):
            known = await groups.known(GENERAL)
            assert known is not None
            learned = Learned(
                [f"theme {number + n}" for n in range(10)], [f"decision {number + n}" for n in range(10)]
            )
            clock.forward(minutes=1)
            await groups.learn(GENERAL, learned, known, {"1": -1}, Origin("inferred", said_at=NOW))
        known = await groups.known(GENERAL)
        assert known is not None
        assert (len(known.themes), len(known.decisions)) == (20, 50)
        assert (known.decisions[0], known.decisions[-1]) == ("decision 10", "decision 59")

    async def test_nonsense_and_secrets_are_left_out_and_length_is_bounded(
        self, memory: Memory, groups: Groups
    ) -> None:
        known = await groups.known(GENERAL)
        assert known is not None
        key = "sk-ant-" + "a1" * 20
        learned = Learned(["", " \u200b", "x" * 500], [f"the key is {key}", "a\nb\x85c"])
        await groups.learn(GENERAL, learned, known, {"1": -1}, Origin("inferred", said_at=NOW))
        kept = await decisions(memory)
        assert [len(text) for text in kept[:1]] == [80]
        assert kept[1:] == ["the key is [REDACTED Anthropic key]", "a b c"]

    async def test_two_loops_at_once_lose_nothing(self, memory: Memory, groups: Groups) -> None:
        await learn(groups, "zero", "9")
        await asyncio.gather(*(learn(groups, f"decision {n}", str(n)) for n in range(3)))
        assert len(await decisions(memory)) == 4
        last = ledger.read(lines_of(memory, "group-55")).commits[-1]
        assert contributors(last) == {"0", "1", "2", "9"}


class TestWhatIsToldOfIt:
    async def test_only_in_that_channel_and_its_threads(self, groups: Groups) -> None:
        assert [await groups.known(place) for place in (DM, CLOSED)] == [None, None]
        assert await groups.known(THREAD) == Known(people=frozenset())
        await learn(groups, "We use tabs.", "1")
        for place in (GENERAL, THREAD, CLOSED):
            assert groups.notes_in_ram(place) == await groups.notes(place)
            assert "We use tabs." in await groups.notes(place)
        for place in (DEV, STAFF, DM):
            assert await groups.notes(place) == ""
        assert groups.notes_in_ram(DM) == ""

    async def test_what_was_said_while_it_was_private_is_not_told_in_the_open(self, groups: Groups) -> None:
        await learn(groups, "We pay Bob.", "1", place=STAFF)
        opened = Place("channel", "60", "60", "staff", private=False)
        groups.seen(STAFF, NOW)
        assert "We pay Bob." in await groups.notes(STAFF)
        assert await groups.notes(opened) == ""
        known = await groups.known(opened)
        assert known is not None
        assert known.decisions == ()
        assert known.people == {"1"}

    async def test_what_is_new_is_told_at_once(self, groups: Groups) -> None:
        groups.seen(GENERAL, NOW)
        for text in ("one", "two"):
            await learn(groups, text, "1")
            told = groups.notes_in_ram(GENERAL)
            assert told is not None
            assert text in told
            assert groups.notes_in_ram(GENERAL) is told  # made once

    async def test_it_is_read_when_it_is_not_at_hand(
        self, groups: Groups, restart: Callable[[], Memory], clock: Clock
    ) -> None:
        await learn(groups, "one", "1")
        again = groups_of(restart(), clock)
        assert again.notes_in_ram(GENERAL) is None
        assert "one" in await again.notes(GENERAL)
        assert again.notes_in_ram(GENERAL) is not None


class TestFilesThatAreNotAsTheyShouldBe:
    async def test_what_is_not_known_here_is_kept(self, memory: Memory, clock: Clock, groups: Groups) -> None:
        file = {**await spoke(groups, ("1", "Ann")), "x_new": [1]}
        groups.documents.write("55.json", json.dumps(file).encode())
        assert (await spoke(groups_of(memory, clock), ("2", "Bob")))["x_new"] == [1]

    @pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"[" * 9000, b'{"members": {}}'])
    async def test_one_that_can_not_be_read_is_kept_aside_and_made_anew(
        self, groups: Groups, content: bytes
    ) -> None:
        await learn(groups, "one", "1")
        await groups.settle()
        again = groups_of(groups._memory, groups._clock)
        groups.documents.write("55.json", content)
        file = await spoke(again, ("1", "Ann"))
        assert (file["members"], file["decisions"][0][0]) == ([["1", "Ann"]], "one")
        (copy,) = asides(groups.documents.folder / "55.json", "corrupt")
        assert copy.read_bytes() == content

    async def test_a_disk_that_fails_costs_nothing_but_time(self, groups: Groups) -> None:
        groups.documents.folder.write_text("a file in the way")
        groups.seen(GENERAL, NOW, user_id="1", name="Ann")
        await groups.settle()
        groups.documents.folder.unlink()
        assert (await spoke(groups, ("1", "Ann")))["members"] == [["1", "Ann"]]


class TestTheLoopThatLearns:
    def loop(self, house: Shelves, groups: Groups, model: ScriptedModel) -> SummaryLoop:
        return SummaryLoop(
            model,
            house.rolling,
            house.cursors,
            me=lambda: ME,
            rules=SummaryRules(house.clock),
            consent=erased_from(house.memory),
            groups=groups,
        )

    @pytest.fixture
    def house(self, tmp_path: Path, store: Store) -> Iterator[Shelves]:
        opened = shelves(tmp_path / "data", store=store)
        opened.memory.open()
        yield opened
        opened.memory.close()

    async def test_names_everybody_in_the_summary_that_it_went_on_from(self, house: Shelves) -> None:
        groups = groups_of(house.memory, house.clock)
        agreed = [Summary(summary="They talk.", decisions=[text]) for text in ("one", "two")]
        model = ScriptedModel(summaries=agreed)
        loop = self.loop(house, groups, model)
        for number, subject in enumerate((ANN, BOB), start=1):
            await loop.run(GENERAL.session_key(""), backlog(GENERAL, said(number, subject, "hello")))
        named = [contributors(one) for one in ledger.read(lines_of(house.memory, "group-55")).commits]
        assert named == [{ANN_ID}, {ANN_ID, BOB_ID}]
        assert "Known decisions of this channel:\n- one\n" in model.summarised[1]

    async def test_a_group_that_can_not_learn_costs_no_summary(self, house: Shelves) -> None:
        path = house.memory.ledger_folder / "group-55.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("nonsense\n")
        model = ScriptedModel(summaries=[Summary(summary="They talk.", decisions=["one"])])
        waiting = backlog(GENERAL, said(1, ANN, "hello"))
        loop = self.loop(house, groups_of(house.memory, house.clock), model)
        await loop.run(GENERAL.session_key(""), waiting)
        assert (await house.rolling.get(GENERAL.session_key(""))).summary == "They talk."
        assert not waiting.waiting
        assert path.read_text() == "nonsense\n"

    async def test_no_other_loop_changes_what_a_group_knows(self, house: Shelves) -> None:
        """It would not say whose words its change rests on."""
        for text in ("one", "two"):
            await _commit(house, GENERAL, text, ANN_ID)
        tidier = Tidier()
        tidying = Consolidator(tidier, house.memory, clock=house.clock)
        await Heartbeat(tidying, house.memory, house.cursors, clock=house.clock, every_minutes=30).beat()
        assert tidier.prompts == []

    async def test_nothing_is_learned_from_talk_whose_summary_was_reset(self, house: Shelves) -> None:
        groups, key = groups_of(house.memory, house.clock), GENERAL.session_key("")
        model = ScriptedModel(summaries=[Summary(summary="They talk.", decisions=["one"])])
        model.gate = asyncio.Event()
        loop = self.loop(house, groups, model)
        run = asyncio.create_task(loop.run(key, backlog(GENERAL, said(1, ANN, "hello"))))
        await until(lambda: model.at_once == 1)
        await house.rolling.clear(key)
        model.gate.set()
        await run
        assert await decisions(house.memory) == []


# ---------------------------------------------------------------------- erasing


async def filled(house: Shelves) -> Groups:
    """Ann's words in one group beside Bob's, alone in another one, and nowhere in a third."""
    groups = groups_of(house.memory, house.clock)
    for place, told in (
        (GENERAL, [("coffee on Monday", BOB_ID), (f"{CANARY} on Tuesday", ANN_ID), ("tea", BOB_ID)]),
        (STAFF, [(f"pay {CANARY}", ANN_ID)]),
        (DEV, [("ship it", BOB_ID), ("test it", BOB_ID)]),
    ):
        for text, who in told:
            await _commit(house, place, text, who)
            if CANARY in text or who == BOB_ID:
                groups.seen(place, NOW, user_id=who, name=f"{CANARY} {who}" if who == ANN_ID else "Bob")
    await house.memory.change(ANN, "why", remember(CANARY))
    await groups.settle()
    return groups


async def _commit(house: Shelves, place: Place, text: str, who: str) -> None:
    """Somebody alone is named, which the loop does only where nothing was known."""

    def wish(draft: Draft) -> None:
        facets = Facets(key=key_of("decision", text), category="core")
        draft.upsert("constraint", text, Origin("inferred", said_at=NOW), facets=facets)

    await house.memory.change(f"group-{place.group_id}", "learned from talk", wish, people=[who])


def content_of(house: Shelves, group: str) -> list[bytes]:
    """A group's ledger and file."""
    return [
        house.memory.ledgers.log(f"group-{group}").read(),
        house.memory.disk.documents(GROUPS).read(f"{group}.json"),
    ]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Store], Path]:
    return templates_of(filled, tmp_path_factory)


class TestErasingAPerson:
    @pytest.mark.every_store
    async def test_takes_exactly_what_rests_on_their_words(self, full: Shelves) -> None:
        groups, untouched = groups_of(full.memory, full.clock), content_of(full, "70")
        lines = content_of(full, "55")[0].splitlines()
        assert CANARY in await groups.notes(GENERAL)
        changed = listening(full.memory).subjects
        erased = await full.memory.erase(ANN)
        assert erased.groups == ("group-55", "group-60")
        assert changed == [ANN, "group-55", "group-60"]
        assert traces(full.data, CANARY, ANN_ID) == []
        assert content_of(full, "70") == untouched
        assert content_of(full, "55")[0].splitlines()[:2] == [lines[0], lines[2]]
        assert await decisions(full.memory) == ["coffee on Monday", "tea"]
        assert on_disk(groups)["members"] == [[BOB_ID, "Bob"]]
        assert [text for text, _ in on_disk(groups)["decisions"]] == ["coffee on Monday", "tea"]
        assert on_disk(groups, "60")["decisions"] == []
        assert "group-60.jsonl" not in full.memory.disk.documents("ledger").names()
        assert CANARY not in await groups.notes(GENERAL)
        assert await groups.notes(STAFF) == ""

    @pytest.mark.every_store
    async def test_leaves_ledgers_that_verify_and_grow(self, full: Shelves) -> None:
        groups = groups_of(full.memory, full.clock)
        await full.memory.erase(ANN)
        await learn(groups, "cake", BOB_ID)
        await learn(groups, "pie", ANN_ID, place=STAFF)
        for group, left in (("55", ["coffee on Monday", "tea", "cake"]), ("60", ["pie"])):
            loaded = ledger.read(full.memory.ledgers.log(f"group-{group}"))
            assert (loaded.damage, loaded.torn) == ((), 0)
            assert [item.text for item in loaded.history.shown().active()] == left

    @pytest.mark.every_store
    async def test_finds_them_in_snapshots_copies_and_torn_lines_of_any_group(self, full: Shelves) -> None:
        views, lines = full.data / "cache" / "views", full.memory.ledgers.log("group-55")
        views.mkdir(parents=True, exist_ok=True)
        (views / "group-55.json").write_text(CANARY)
        lines.keep_aside("damaged", STAMP)
        full.memory.disk.documents(GROUPS).keep_aside("60.json", "corrupt", STAMP)
        if full.store == "files":
            for group in ("55", "70"):
                with (full.memory.ledger_folder / f"group-{group}.jsonl").open("ab") as file:
                    file.write(f'{{"torn {CANARY}'.encode())
            (full.data / "memory" / "groups" / ".70.json.0a1b2c3d.tmp").write_text(CANARY)
        assert (await full.memory.erase(ANN)).left == ()
        assert traces(full.data, CANARY, ANN_ID) == []
        assert await decisions(full.memory, "group-70") == ["ship it", "test it"]

    async def test_lines_and_files_that_nobody_can_read_go_where_they_had_part(self, full: Shelves) -> None:
        ours, others = (full.memory.ledger_folder / f"group-{group}.jsonl" for group in ("55", "70"))
        for path in (ours, others):
            path.write_bytes(path.read_bytes().replace(b"people", b"poeple"))  # no line verifies any more
        kept = others.read_bytes()
        file = full.data / "memory" / "groups" / "60.json"
        file.write_text(f'[{CANARY} "{ANN_ID}"')
        await full.memory.erase(ANN)
        assert traces(full.data, CANARY, ANN_ID) == []
        assert others.read_bytes() == kept
        assert not file.exists()

    async def test_at_work_leaves_nothing_of_a_commit_that_comes_meanwhile(self, full: Shelves) -> None:
        groups = groups_of(full.memory, full.clock)
        for pauses in range(6):
            known = await groups.known(STAFF)
            assert known is not None
            origin = Origin("inferred", said_at=NOW)
            erased_at = full.memory.erased_at(ANN)
            erasing = asyncio.create_task(full.memory.erase(ANN))
            for _ in range(pauses):
                await asyncio.sleep(0)
            learned = Learned(decisions=[f"{CANARY} {pauses}"])
            await groups.learn(STAFF, learned, known, {ANN_ID: erased_at}, origin)
            groups.seen(STAFF, NOW - 1, user_id=ANN_ID, name=CANARY)
            await erasing
            await groups.settle()
            assert traces(full.data, CANARY, ANN_ID) == []
            assert await groups.notes(STAFF) == ""

    async def test_also_where_a_model_was_shown_what_they_said(self, full: Shelves) -> None:
        """It may repeat what is gone, though only others have spoken since."""
        groups = groups_of(full.memory, full.clock)
        known = await groups.known(GENERAL)
        assert known is not None
        assert f"{CANARY} on Tuesday" in known.decisions
        await full.memory.erase(ANN)
        learned = Learned(decisions=[f"moved {CANARY} to Friday"])
        await groups.learn(GENERAL, learned, known, {BOB_ID: -1}, Origin("inferred", said_at=NOW))
        assert traces(full.data, CANARY) == []

    async def test_outlives_an_import_and_a_ledger_that_is_put_back(self, full: Shelves) -> None:
        lines = {group: content_of(full, group)[0] for group in ("55", "60")}
        records: list[Record] = list((await full.memory.history("group-55")).records)
        await full.memory.erase(ANN)

        def bring(history: History, now_ms: int, max_items: int) -> tuple[list[Record], None]:
            return records, None

        await full.memory.act("group-90", bring)
        assert await decisions(full.memory, "group-90") == ["coffee on Monday", "tea"]
        for group, content in lines.items():
            assert await full.memory.restore(f"group-8{group}", ledger.decode(content).records)
            assert ledger.read(full.memory.ledgers.log(f"group-8{group}")).damage == ()
        assert traces(full.data, CANARY, ANN_ID) == []

    async def test_they_are_no_member_any_more_as_soon_as_it_begins(self, full: Shelves) -> None:
        """Their name is in the file until that is written anew."""
        groups, purge = groups_of(full.memory, full.clock), erasing(ANN, NOW)
        assert ANN_ID in dict((await groups.get("55")).members)
        from_ram(groups, purge)
        assert ANN_ID not in dict((await groups.get("55")).members)
        assert ANN_ID in (content_of(full, "55")[1]).decode()
        await from_disk(groups, purge)
        assert ANN_ID not in dict((await groups.get("55")).members)

    @pytest.mark.every_store
    async def test_of_a_group_takes_its_file_along(self, full: Shelves) -> None:
        groups = groups_of(full.memory, full.clock)
        await groups.get("55")
        await full.memory.erase("group-55")
        await groups.settle()
        assert on_disk(groups) is None
        assert "55.json" not in groups.documents.names()
        assert await spoke(groups, (BOB_ID, "Bob"), at=NOW) is None
        assert (await groups.notes(GENERAL)) == ""

    async def test_what_the_disk_does_not_give_away_is_not_told_any_more(self, full: Shelves) -> None:
        in_the_way = full.data / "cache" / "views" / "group-55.json"
        (in_the_way / "x").mkdir(parents=True)
        erased = await full.memory.erase(ANN)
        assert len(erased.left) == 1
        groups = groups_of(full.memory, full.clock)
        with pytest.raises(MemoryFault, match="could not be removed"):
            await groups.notes(GENERAL)
        assert "ship it" in await groups.notes(DEV)
        shutil.rmtree(in_the_way)
        assert (await full.memory.erase(ANN)).left == ()
        assert "tea" in await groups.notes(GENERAL)
        assert traces(full.data, CANARY, ANN_ID) == []


class TestMovingToAnotherStore:
    @pytest.mark.every_store
    async def test_profiles_and_groups_come_along_without_who_was_erased_there(
        self, full: Shelves, tmp_path: Path
    ) -> None:
        consent = erased_from(full.memory)
        documents = full.memory.disk.documents(PROFILES)
        profiles = Profiles(documents, full.memory, clock=full.clock, consent=consent)
        for user_id in (ANN_ID, BOB_ID):
            profiles.seen(user_id, f"{CANARY} {user_id}" if user_id == ANN_ID else "Bob", NOW)
        await profiles.settle()
        disk = full.memory.disk
        out = written(disk, full.data, tmp_path / "out")
        for erased in (False, True):
            shell = Shell(tmp_path / str(erased))
            other = shelves(shell.folder / "data", Clock(NOW + 1000))
            other.memory.open()
            if erased:
                await other.memory.erase(ANN)
            other.memory.close()
            await asyncio.to_thread(shell.says, "import", str(out))
            there = other.memory.disk
            assert there.documents(PROFILES).read(f"{BOB_ID}.json") == disk.documents(PROFILES).read(
                f"{BOB_ID}.json"
            )
            assert content_of(other, "70") == content_of(full, "70")
            assert (content_of(other, "55") == content_of(full, "55")) == (not erased)
            if erased:
                assert traces(other.data, CANARY, ANN_ID) == []
                file = json.loads(content_of(other, "55")[1])
                assert [text for text, _ in file["decisions"]] == ["coffee on Monday", "tea"]


class TestKilledAtAnyStep:
    @pytest.mark.long
    @pytest.mark.own_store
    def test_either_nothing_happened_or_the_next_start_finishes_it(
        self, template: Path, tmp_path: Path, store: Store
    ) -> None:
        outcomes = []
        house = shelves(template, store=store)
        before = {group: content_of(house, group) for group in ("55", "60", "70")}
        house.memory.close()
        with Forge("tests.memory.erase_child") as forge:
            for step in forge.steps("erase", store, shutil.copytree(template, tmp_path / "whole")):
                data = shutil.copytree(template, tmp_path / str(step))
                lived = forge.lived(step, "erase", store, data)
                outcomes.append(self.check(before, data, store))
                shutil.rmtree(data)
        assert lived
        assert outcomes == sorted(outcomes)  # once it stands, it stands
        assert 1 <= sum(outcomes) < len(outcomes)

    def check(self, before: dict[str, list[bytes]], data: Path, store: Store) -> bool:
        """After one more start: whether Ann is erased, and altogether; else that nothing happened."""
        house = shelves(data, store=store)
        house.memory.open()
        try:
            erased = house.memory.erased_at(ANN) >= 0
            if erased:
                assert traces(data, CANARY, ANN_ID) == []
                assert house.memory.disk.documents(INTENTS).names() == []
                loaded = ledger.read(house.memory.ledgers.log("group-55"))
                assert loaded.damage == ()
                assert [item.text for item in loaded.history.shown().active()] == ["coffee on Monday", "tea"]
                file = json.loads(content_of(house, "55")[1])
                assert [text for text, _ in file["decisions"]] == ["coffee on Monday", "tea"]
            else:
                assert all(content_of(house, group) == before[group] for group in ("55", "60"))
            assert content_of(house, "70") == before["70"]
        finally:
            house.memory.close()
        return erased


class TestWhoeverSaidWhat:
    @given(
        st.lists(st.tuples(st.sampled_from("abc"), st.sets(st.sampled_from("123"), min_size=1)), max_size=8)
    )
    @FEW
    def test_nobody_who_is_erased_is_in_any_group_and_nothing_of_others_is_lost(
        self, tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, set[str]]]
    ) -> None:
        house = shelves(tmp_path_factory.mktemp("said") / "data")
        house.memory.open()

        async def work() -> None:
            for number, (group, people) in enumerate(said):
                names = [f"99000{one}" for one in sorted(people)]
                text = f"decision {number} of {' '.join(f'canary{one}x' for one in sorted(people))}"
                await house.memory.change(f"group-{group}", "why", remember(text), people=names)
            await house.memory.erase("user-990001")
            for group in "abc":
                kept = [n for n, (where, people) in enumerate(said) if where == group and "1" not in people]
                left = await texts(house.memory, f"group-{group}")
                assert [int(text.split()[1]) for text in left] == kept

        asyncio.run(work())
        assert traces(house.data, "canary1x", "990001") == []
        house.memory.close()

"""The full-text index of a big memory: real files, whatever happens to them, whoever asks what of them."""

import asyncio
import logging
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discoclaw.core.item import Item
from discoclaw.core.personal import Erasure, Removed
from discoclaw.core.view import View
from discoclaw.memory.disk.database import rows_of
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.fulltext import PAGES, orphans
from discoclaw.search.item_file import SPOT_CHECK, VERSION, ItemFile, Unusable
from discoclaw.search.item_index import Candidates, ItemIndex
from discoclaw.search.item_rows import Row, telling
from discoclaw.session.finding import words_of
from tests.core.builders import item
from tests.memory import budgets
from tests.memory.kit import ANN, BOB, NOW, REPOSITORY, Clock, remember
from tests.memory.leftovers import CANARY, traces

MAIN = "main"
FEW = settings(budgets.FEW, max_examples=12)


def view_of(*items: Item, head: str | None = "c1") -> View:
    """The view of a branch with these items."""
    return View({one.id: one for one in items}, head=head, updated_at=NOW)


def linked(one: Item, *others: Item) -> Item:
    return replace(one, facets=replace(one.facets, links=frozenset(other.id for other in others)))


def numbered(count: int, word: str = "tea") -> list[Item]:
    return [item(f"{word} number{number}") for number in range(count)]


class Counting:
    """What items are found by, and of how many that was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.then: Callable[[int], None] = lambda asked: None

    def __call__(self, one: Item) -> tuple[list[str], int]:
        self.asked += 1
        self.then(self.asked)
        return words_of(one)


@pytest.fixture
def words() -> Counting:
    return Counting()


@pytest.fixture
def start(tmp_path: Path, words: Counting) -> Callable[[], ItemIndex]:
    """An index that has just started on the same folder and knows only what is on disk."""
    return lambda: ItemIndex(tmp_path / "items", words, clock=Clock(), pause_s=0)


@pytest.fixture
def index(start: Callable[[], ItemIndex]) -> ItemIndex:
    return start()


async def found(index: ItemIndex, *terms: str, branch: str = MAIN, **given: object) -> tuple[str, ...]:
    candidates = await index.candidates(ANN, branch, terms, **given)  # type: ignore[arg-type]
    assert candidates is not None
    return candidates.ids


def rows(path: Path) -> dict[str, str]:
    """The terms of every item in a file, by id."""
    with closing(sqlite3.connect(path)) as raw:
        return dict(raw.execute("SELECT id, terms FROM memories"))


def links(path: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as raw:
        return set(raw.execute("SELECT from_id, to_id FROM memory_links"))


def expected(items: Mapping[str, Item]) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """What a file has to have of a view, found in the plainest way."""
    active = {key: one for key, one in items.items() if one.active}
    pairs = {
        (one, other)
        for one in active
        for other in active
        if other in active[one].facets.links or one in active[other].facets.links
    }
    return {key: " ".join(words_of(one)[0]) for key, one in active.items()}, pairs


def check(path: Path) -> None:
    """Raise Unusable when the full-text index does not fit the items."""
    with ItemFile(path) as file:
        file.check()


ITEMS = [item(f"word{number} shared") for number in range(6)]


@st.composite
def views(draw: st.DrawFn) -> View:
    """A view of some of six items, each with this text or that, some of them linked or set aside."""
    chosen = {}
    for one in draw(st.lists(st.sampled_from(ITEMS), unique=True)):
        text = draw(st.sampled_from([one.text, "other words", "猫が好き 🐦", 'a "quoted" * NEAR(x) OR']))
        others = draw(st.lists(st.sampled_from(ITEMS), max_size=2))
        status = draw(st.sampled_from(["active", "active", "deprecated"]))
        changed = replace(one, text=text, status=status, tags=tuple(draw(st.sampled_from([(), ("cat",)]))))
        chosen[one.id] = linked(changed, *(other for other in others if other is not one))
    return View(chosen, head=draw(st.sampled_from([None, "c1", "c2", "c3"])))


class TestKeepingUp:
    @FEW
    @given(st.lists(views(), min_size=1, max_size=6), st.booleans())
    def test_a_file_holds_exactly_the_active_items_and_links_of_the_last_view(
        self, history: list[View], restarted: bool
    ) -> None:
        async def live(folder: Path) -> None:
            index = ItemIndex(folder, words_of, clock=Clock(), pause_s=0)
            for number, view in enumerate(history):
                if restarted:
                    index = ItemIndex(folder, words_of, clock=Clock(), pause_s=0)
                view = replace(view, head=f"{view.head}-{number}" if view.head else None)
                assert await index.sync(ANN, MAIN, view)
                path = index.path(ANN, MAIN)
                check(path)
                assert (rows(path), links(path)) == expected(view.items)

        with TemporaryDirectory() as folder:
            asyncio.run(live(Path(folder)))

    @FEW
    @given(views())
    def test_every_item_is_found_by_each_of_its_terms_and_counted_in_its_frequency(self, view: View) -> None:
        async def live(folder: Path) -> None:
            index = ItemIndex(folder, words_of, clock=Clock(), pause_s=0)
            await index.sync(ANN, MAIN, view)
            active = {key: set(words_of(one)[0]) for key, one in view.items.items() if one.active}
            counted = Counter(term for terms in active.values() for term in terms)
            for term, count in counted.items():
                candidates = await index.candidates(ANN, MAIN, [term])
                assert candidates is not None
                having = {key for key, terms in active.items() if term in terms}
                assert set(candidates.ids[: len(having)]) == having
                assert (candidates.total, candidates.frequencies) == (len(active), {term: count})

        with TemporaryDirectory() as folder:
            asyncio.run(live(Path(folder)))

    async def test_only_what_differs_is_read_again(self, index: ItemIndex, words: Counting) -> None:
        items = numbered(50)
        await index.sync(ANN, MAIN, view_of(*items))
        assert words.asked == 50
        words.asked = 0
        await index.sync(ANN, MAIN, view_of(*items))
        await index.sync(ANN, MAIN, view_of(*items, head="c2"))
        assert words.asked == 0
        changed = replace(items[7], text="coffee instead")
        await index.sync(ANN, MAIN, view_of(*items[:7], changed, *items[8:], item("milk"), head="c3"))
        assert words.asked == 2
        assert await found(index, "coffe") == (changed.id,)
        assert await found(index, "number7") == ()

    async def test_a_restart_trusts_the_file_of_the_same_commit_after_a_look_at_a_few_items(
        self, index: ItemIndex, start: Callable[[], ItemIndex], words: Counting
    ) -> None:
        items = numbered(SPOT_CHECK + 50)
        await index.sync(ANN, MAIN, view_of(*items))
        words.asked, again = 0, start()
        assert again.indexed(ANN, MAIN) is None
        assert await again.candidates(ANN, MAIN, ["tea"]) is None
        await again.sync(ANN, MAIN, view_of(*map(replace, items)))
        assert words.asked == SPOT_CHECK
        assert len(await found(again, "tea")) == SPOT_CHECK + 50
        later = start()
        await later.sync(ANN, MAIN, view_of(*items, item("milk"), head="c2"))
        assert words.asked == 2 * SPOT_CHECK + 1

    async def test_an_index_that_was_stopped_half_way_goes_on_where_it_was(
        self, index: ItemIndex, start: Callable[[], ItemIndex], words: Counting
    ) -> None:
        view = view_of(*numbered(1200))
        words.then = lambda asked: index.stop() if asked == 700 else None
        assert not await index.sync(ANN, MAIN, view)
        check(index.path(ANN, MAIN))
        assert await index.candidates(ANN, MAIN, ["tea"]) is None
        words.asked, again = 0, start()
        assert await again.sync(ANN, MAIN, view)
        assert words.asked == 700 + SPOT_CHECK  # 500 were written
        assert rows(index.path(ANN, MAIN)) == expected(view.items)[0]

    async def test_two_branches_of_one_person_are_two_files(self, index: ItemIndex) -> None:
        tea, coffee = item("likes tea"), item("likes coffee")
        await index.sync(ANN, MAIN, view_of(tea))
        await index.sync(ANN, "../../etc/ärger:*", view_of(coffee))
        assert await found(index, "like") == (tea.id,)
        assert await found(index, "like", branch="../../etc/ärger:*") == (coffee.id,)
        assert len(list(index.path(ANN, MAIN).parent.glob("*.sqlite"))) == 2

    async def test_what_is_known_leaves_ram_when_nobody_asks(self, tmp_path: Path, words: Counting) -> None:
        clock = Clock()
        index = ItemIndex(tmp_path, words, clock=clock, idle_ms=60_000)
        await index.sync(ANN, MAIN, view_of(item("tea")))
        clock.forward(minutes=2)
        assert index.indexed(BOB, MAIN) is None
        assert index.indexed(ANN, MAIN) is None

    async def test_two_that_sync_at_once_leave_one_sound_file(self, index: ItemIndex) -> None:
        old, new = numbered(300), numbered(300, "coffee")
        await asyncio.gather(
            index.sync(ANN, MAIN, view_of(*old)), index.sync(ANN, MAIN, view_of(*new, head="c2"))
        )
        check(index.path(ANN, MAIN))
        assert rows(index.path(ANN, MAIN)).keys() == {one.id for one in new}


class TestKilled:
    CHILD = """
import asyncio, sys
from pathlib import Path
from discoclaw.core.item import MANUAL, Facets, new_item
from discoclaw.core.personal import Erasure, Removed
from discoclaw.core.view import View
from discoclaw.search.item_index import ItemIndex
from discoclaw.recall.document import indexed, of_item
words = lambda one: (indexed(of_item(one)), of_item(one).length)
texts = [f"tea number{number}" for number in range(1200)]
items = [new_item("fact", text, source=MANUAL, now_ms=0, facets=Facets()) for text in texts]
index = ItemIndex(Path(sys.argv[1]), words, clock=lambda: 0)
print("begun", flush=True)
asyncio.run(index.sync("user-123", "main", View({one.id: one for one in items}, head="c1")))
"""

    @pytest.mark.parametrize("after_s", [0.05, 0.3])
    def test_a_file_is_sound_and_continued_however_its_writer_dies(
        self, tmp_path: Path, after_s: float
    ) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", self.CHILD, str(tmp_path)],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"begun\n"
            time.sleep(after_s)
            child.send_signal(signal.SIGKILL)
        index = ItemIndex(tmp_path, words_of, clock=Clock(), pause_s=0)
        path, view = index.path(ANN, MAIN), view_of(*numbered(1200))
        if path.exists():
            check(path)
            assert rows(path).keys() <= view.items.keys()
        assert asyncio.run(index.sync(ANN, MAIN, view))
        assert rows(path) == expected(view.items)[0]


def no_database(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 500)


def flipped(path: Path) -> None:
    """Turn every byte behind the first page around."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(255 - byte for byte in content[4096:]))


def garbled(path: Path) -> None:
    """SQLite's words about it are no text."""
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CR\xc8ATE TABLE"))


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {VERSION + 1}")


def of_somebody_else(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(f"CREATE TABLE shopping (thing); PRAGMA user_version = {VERSION};")


def beheaded(path: Path) -> None:
    """Without its file, SQLite's log would be played back into the new one."""
    shutil.copy(path, f"{path}-wal")
    path.unlink()


def inconsistent(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript("DROP TRIGGER memories_changed; UPDATE memories SET terms = 'nonsense';")


def of_another_tokeniser(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE memories SET terms = terms || ' ing'")


DAMAGE = [
    *(no_database, flipped, garbled, newer, of_somebody_else),
    *(beheaded, inconsistent, of_another_tokeniser),
]


class TestDamaged:
    @pytest.mark.parametrize("damage", DAMAGE)
    async def test_a_file_that_can_not_be_used_is_made_anew_from_the_view(
        self,
        index: ItemIndex,
        start: Callable[[], ItemIndex],
        caplog: pytest.LogCaptureFixture,
        damage: Callable[[Path], None],
    ) -> None:
        items = numbered(40)
        await index.sync(ANN, MAIN, view_of(*items))
        path = index.path(ANN, MAIN)
        damage(path)
        again = start()
        with caplog.at_level(logging.WARNING):
            assert await again.sync(ANN, MAIN, view_of(*items))
        assert await found(again, "number7") == (items[7].id,)
        check(path)
        assert rows(path) == expected(view_of(*items).items)[0]
        assert damage is beheaded or [message for message in caplog.messages if "is made anew" in message]

    @pytest.mark.parametrize("damage", [no_database, flipped, of_somebody_else])
    async def test_one_that_breaks_while_it_is_used_is_said_and_made_anew_at_the_next_sync(
        self, index: ItemIndex, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
    ) -> None:
        view = view_of(*numbered(40))
        await index.sync(ANN, MAIN, view)
        damage(index.path(ANN, MAIN))
        assert await index.candidates(ANN, MAIN, ["tea"]) is None
        assert "cannot be read" in caplog.text
        assert index.indexed(ANN, MAIN) is None
        await index.sync(ANN, MAIN, view)
        assert len(await found(index, "tea")) == 40

    async def test_one_that_somebody_deleted_is_made_anew(self, index: ItemIndex) -> None:
        view = view_of(*numbered(40))
        await index.sync(ANN, MAIN, view)
        index.path(ANN, MAIN).unlink()
        assert await index.candidates(ANN, MAIN, ["tea"]) is None
        assert not index.path(ANN, MAIN).exists()
        await index.sync(ANN, MAIN, view)
        assert len(await found(index, "tea")) == 40

    async def test_one_that_was_deleted_behind_our_back_is_whole_after_the_next_change(
        self, index: ItemIndex
    ) -> None:
        items = numbered(40)
        await index.sync(ANN, MAIN, view_of(*items))
        index.path(ANN, MAIN).unlink()
        await index.sync(ANN, MAIN, view_of(*items, item("milk"), head="c2"))
        assert len(await found(index, "tea", "milk")) == 41

    async def test_a_full_disk_is_a_fault_of_the_disk_and_the_file_stays(self, index: ItemIndex) -> None:
        items = numbered(40)
        await index.sync(ANN, MAIN, view_of(*items))
        more = view_of(*items, *numbered(400, "coffee"), head="c2")
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
        try:
            with pytest.raises(OSError, match="disk"):
                await index.sync(ANN, MAIN, more)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert len(await found(index, "tea")) == 40
        await index.sync(ANN, MAIN, more)
        assert len(await found(index, "coffe", limit=1000)) == 400
        check(index.path(ANN, MAIN))

    async def test_a_folder_that_is_none_is_a_fault_of_the_disk(self, index: ItemIndex) -> None:
        index.path(ANN, MAIN).parent.write_text("no folder")
        with pytest.raises(OSError, match="items"):
            await index.sync(ANN, MAIN, view_of(item("tea")))


HOSTILE = [
    'tea" OR "coffee',
    "tea OR coffee",
    "NEAR(tea coffee)",
    "terms : tea",
    "^tea",
    "te*",
    "tea AND NOT coffee",
    "') ; DROP TABLE memories; --",
    '"',
    '""',
    "\0",
    "tea\0coffee",
    "\ud800",
    "",
    " ",
    "%",
    "_",
    "\\",
    "a" * 100_000,
]


class TestLooking:
    async def test_the_rare_term_comes_before_the_common_one(self, index: ItemIndex) -> None:
        items = [*numbered(30), item("tea and zebra"), item("zebra at noon")]
        await index.sync(ANN, MAIN, view_of(*items))
        assert (await found(index, "tea", "zebra"))[:2] == (items[30].id, items[31].id)
        assert len(await found(index, "tea", "zebra")) == 32
        assert len(await found(index, "tea", limit=10)) == 10

    async def test_only_the_items_asked_about_come_though_others_fit_better(self, index: ItemIndex) -> None:
        hidden, shown = (
            numbered(300, "zebra zebra zebra"),
            item("a zebra among many other words of this text"),
        )
        await index.sync(ANN, MAIN, view_of(*hidden, shown))
        assert await found(index, "zebra", among={shown.id}, limit=10) == (shown.id,)

    async def test_a_term_that_only_others_have_does_not_hide_the_common_one(self, index: ItemIndex) -> None:
        items = [item("zebra"), *numbered(100)]
        await index.sync(ANN, MAIN, view_of(*items))
        assert await found(index, "zebra", "tea", among={items[5].id}) == (items[5].id,)

    def test_the_commonest_words_of_a_long_message_are_left_out_unless_they_are_all_there_is(self) -> None:
        rare = {f"rare{number}": 20 for number in range(10)}
        assert telling({"common": 9_000, **rare, "unknown": 0}, 10_000) == sorted(rare)
        common = {"one": 6_000, "other": 7_000}
        assert telling(common, 10_000) == ["one", "other"]
        assert telling({"common": 1_500, **rare}, 10_000) == [*sorted(rare), "common"]
        assert telling({"unknown": 0}, 10_000) == telling({}, 0) == []

    async def test_linked_items_follow_what_was_found_whichever_end_has_the_link(
        self, index: ItemIndex
    ) -> None:
        zebra, keeper, zoo, other = item("zebra"), item("keeper"), item("zoo"), item("other")
        view = view_of(linked(zebra, keeper), keeper, linked(zoo, zebra), other)
        await index.sync(ANN, MAIN, view)
        assert await found(index, "zebra") == (zebra.id, *sorted((keeper.id, zoo.id)))
        assert await found(index, "zebra", among={zebra.id, zoo.id}) == (zebra.id, zoo.id)
        await index.sync(ANN, MAIN, view_of(keeper, linked(zoo, zebra), other, head="c2"))
        assert links(index.path(ANN, MAIN)) == set()
        assert set(await found(index, "keeper", "zoo")) == {keeper.id, zoo.id}

    async def test_without_terms_nothing_is_found_at_once(self, index: ItemIndex) -> None:
        assert await index.candidates(ANN, MAIN, []) == Candidates()

    async def test_letters_find_what_no_term_finds(self, index: ItemIndex) -> None:
        cat, percent, plain = item("私は猫が好きです"), item("is 100%_sure"), item("coffee")
        await index.sync(ANN, MAIN, view_of(cat, percent, plain))
        assert await found(index, "好き") == (cat.id,)
        assert await found(index, "猫") == (cat.id,)
        assert await found(index, "offe") == (plain.id,)
        assert await found(index, "%") == (percent.id,)
        assert await found(index, "_") == (percent.id,)
        assert await found(index, "\\") == ()

    async def test_emoji_and_accents_and_operators_are_terms_like_others(self, index: ItemIndex) -> None:
        items = [item("near and or not"), item("Café Ü"), item("c++ node.js"), item("2024-05-06 meeting")]
        await index.sync(ANN, MAIN, view_of(*items))
        for one in items:
            for term in words_of(one)[0]:
                assert one.id in await found(index, term)

    @pytest.mark.parametrize("term", HOSTILE)
    async def test_no_term_is_syntax(self, index: ItemIndex, term: str) -> None:
        items = [item("tea"), item("coffee")]
        await index.sync(ANN, MAIN, view_of(*items))
        assert await found(index, term) == ()
        assert set(await found(index, term, "tea")) == {items[0].id}
        check(index.path(ANN, MAIN))
        assert len(rows(index.path(ANN, MAIN))) == 2

    @FEW
    @given(st.lists(st.text(max_size=20), max_size=60))
    def test_any_terms_find_only_items_that_are_there(self, terms: list[str]) -> None:
        async def live(folder: Path) -> None:
            index = ItemIndex(folder, words_of, clock=Clock(), pause_s=0)
            await index.sync(ANN, MAIN, view_of(*ITEMS))
            assert set(await found(index, *terms)) <= {one.id for one in ITEMS}
            assert set(await found(index, *terms, "word3")) >= {ITEMS[3].id}

        with TemporaryDirectory() as folder:
            asyncio.run(live(Path(folder)))

    async def test_what_can_not_be_written_as_utf8_does_not_stop_the_others(self, index: ItemIndex) -> None:
        strange = replace(item("tea"), id="odd", tags=("\ud800",), text="tea \ud800\0")
        odd_key = replace(item("milk", key="\ud800\0key"))
        await index.sync(ANN, MAIN, view_of(strange, odd_key, item("coffee")))
        assert await found(index, "tea") == ("odd",)
        assert await found(index, "milk") == (odd_key.id,)
        await index.sync(ANN, MAIN, view_of(item("coffee"), head="c2"))
        assert len(rows(index.path(ANN, MAIN))) == 1


class TestErasing:
    async def fill(self, memory: Memory, index: ItemIndex) -> None:
        for subject, word in ((ANN, CANARY), (f"{ANN}4", "coffee"), (f"{ANN}-2", "milk")):
            await memory.change(subject, "why", remember(f"I like {word}"))
            for branch in (MAIN, "coding"):
                await index.sync(subject, branch, await memory.view(subject))

    @pytest.fixture
    def items(self, tmp_path: Path) -> Path:
        """Where indices lie."""
        return tmp_path / "cache" / "items"

    @pytest.fixture
    def beside(self, memory: Memory, items: Path) -> ItemIndex:
        """An index that an erasing visits."""
        index = ItemIndex(items, words_of, clock=Clock(), pause_s=0)
        memory.join(index)
        return index

    async def test_nothing_is_left_of_a_person_and_others_keep_theirs(
        self, memory: Memory, beside: ItemIndex, items: Path, tmp_path: Path
    ) -> None:
        await self.fill(memory, beside)
        for ending in ("-wal", "-shm", "-journal"):
            beside.path(ANN, MAIN).with_name(beside.path(ANN, MAIN).name + ending).write_text(CANARY)
        assert traces(items, CANARY)
        erased = await memory.erase(ANN)
        assert erased.left == ()
        assert traces(tmp_path, CANARY, "kanarie") == []
        assert {path.name.split(".")[0] for path in items.iterdir()} == {f"{ANN}4", f"{ANN}-2"}
        assert beside.indexed(ANN, MAIN) is None
        assert beside.indexed(f"{ANN}4", MAIN) is not None

    async def test_files_go_though_nobody_uses_the_index_now(
        self, memory: Memory, beside: ItemIndex, items: Path, tmp_path: Path
    ) -> None:
        await self.fill(memory, ItemIndex(items, words_of, clock=Clock()))
        await memory.erase(ANN)
        assert traces(tmp_path, CANARY, "kanarie") == []

    async def test_an_index_in_the_making_ends_and_does_not_come_back(
        self, memory: Memory, items: Path, tmp_path: Path, words: Counting
    ) -> None:
        index = ItemIndex(items, words, clock=Clock(), pause_s=0)
        memory.join(index)
        await memory.change(ANN, "why", remember(f"I like {CANARY}"))
        view = await memory.view(ANN)
        begun, go_on = threading.Event(), threading.Event()

        def wait(asked: int) -> None:
            begun.set()
            assert go_on.wait(10)

        words.then = wait
        making = asyncio.create_task(index.sync(ANN, MAIN, replace(view, items=with_more(view, 600))))
        await asyncio.to_thread(begun.wait, 10)
        waiting = asyncio.create_task(index.sync(ANN, "coding", view))
        erasing = asyncio.create_task(memory.erase(ANN))
        while ANN not in memory.eraser.pending:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.001)
        late = asyncio.create_task(index.sync(ANN, MAIN, view))
        go_on.set()
        assert (await erasing).left == ()
        assert await asyncio.gather(making, waiting, late) == [False, False, False]
        assert traces(tmp_path, CANARY, "kanarie") == []
        assert list(items.glob("*")) == []

    async def test_after_an_erasing_what_is_new_is_indexed(self, memory: Memory, beside: ItemIndex) -> None:
        await self.fill(memory, beside)
        await memory.erase(ANN)
        assert await beside.candidates(ANN, MAIN, ["kanari"]) is None
        await memory.change(ANN, "why", remember("I like water"))
        assert await beside.sync(ANN, MAIN, await memory.view(ANN))
        assert len(await found(beside, "water")) == 1

    async def test_an_erasing_that_was_interrupted_removes_them_at_the_next_start(
        self, memory: Memory, beside: ItemIndex, restart: Callable[[], Memory], items: Path, tmp_path: Path
    ) -> None:
        await self.fill(memory, ItemIndex(items, words_of, clock=Clock()))
        stubborn = items / f"{ANN}.items.folder"
        (stubborn / "full").mkdir(parents=True)
        assert (await memory.erase(ANN)).left != ()
        (stubborn / "full").rmdir()
        stubborn.rmdir()
        ItemIndex(items, words_of, clock=Clock()).path(ANN, MAIN).write_text(CANARY)
        memory.close()
        again = restart()
        again.join(ItemIndex(items, words_of, clock=Clock()))
        again.open()
        again.close()
        assert traces(tmp_path, CANARY) == []

    def test_a_folder_that_is_not_there_has_nothing_to_remove(self, beside: ItemIndex) -> None:
        assert beside.erase(Erasure(ANN, NOW)) == Removed()


def with_more(view: View, count: int) -> dict[str, Item]:
    return {**{one.id: one for one in numbered(count)}, **view.items}


class TestTheFile:
    def test_an_update_keeps_the_row_and_a_deletion_takes_its_links(self, tmp_path: Path) -> None:
        one, other = item("tea"), item("coffee")
        with ItemFile(tmp_path / "a.sqlite") as file:
            file.write(Row(each, *words_of(each)) for each in (one, other))
            file.complete({(one.id, other.id), (other.id, one.id)}, "c1")
            changed = replace(one, text="milk")
            file.write([Row(changed, *words_of(changed))])
            assert file.head() is None
            assert file.candidates(["milk"], limit=5).ids == (one.id, other.id)
            file.write([], [one.id])
            file.check()
            assert file.candidates(["coffe"], limit=5).ids == (other.id,)
        assert links(tmp_path / "a.sqlite") == set()

    async def test_a_corrected_item_leaves_no_word_in_the_index(self, tmp_path: Path, clock: Clock) -> None:
        index, one = ItemIndex(tmp_path, words_of, clock=clock), item("quokkaedit")
        at, pages = index.path(ANN, MAIN), PAGES.format(index="memories_fts")
        for text in ("quokkaedit", "cat"):
            items = {**{each.id: each for each in numbered(5)}, one.id: replace(one, text=text)}
            assert await index.sync(ANN, MAIN, View(head=text, items=items))
            assert list(orphans(rows_of(at, "SELECT terms FROM memories"), rows_of(at, pages))) == []
        assert traces(tmp_path, "quokkaedit") == []

    def test_a_write_that_fails_changes_nothing(self, tmp_path: Path) -> None:
        with ItemFile(tmp_path / "a.sqlite") as file:
            file.write([Row(item("tea"), *words_of(item("tea")))])
            file.complete((), "c1")
            broken = Row(item("coffee"), ["coffe"], None)  # type: ignore[arg-type]
            with pytest.raises(Unusable):
                file.write([Row(item("milk"), ["milk"], 1), broken])
            assert (file.head(), len(file.stamps())) == ("c1", 1)

"""What is ranked of a big memory: nothing that matters is missed, nobody waits, and nothing else comes."""

import asyncio
import logging
import os
import random
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets, Item, by_newest
from discoclaw.core.ports import Signals
from discoclaw.core.privacy import may_show
from discoclaw.core.view import View
from discoclaw.memory.subjects.store import Memory
from discoclaw.recall.query import parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.select import choose
from discoclaw.recall.standing import MOST_STANDING
from discoclaw.search.item_file import SPOT_CHECK
from discoclaw.search.item_index import ItemIndex
from discoclaw.session.finding import REST_MS, Finder, Pool, words_of
from tests.core.builders import item
from tests.session.scene import Clock, until

ANN = "user-1"
MAIN = "main"
LARGE = 50
FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Words:
    """What items are found by; `gate` makes the index wait, `asked` counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.gate: threading.Event | None = None

    def __call__(self, one: Item) -> tuple[list[str], int]:
        self.asked += 1
        if self.gate is not None:
            assert self.gate.wait(10)
        return words_of(one)


class Library:
    """A person's memory over the files of a folder, and who finds things in it."""

    def __init__(self, folder: Path, *, wait_s: float = 20.0) -> None:
        self.clock = Clock()
        self.words = Words()
        self.memory = Memory(folder / "memory", clock=self.clock, max_items=100_000)
        self.items_folder = folder / "cache" / "items"
        self.index = ItemIndex(self.items_folder, self.words, clock=self.clock, pause_s=0)
        self.finder = Finder(self.memory, self.index, clock=self.clock, large=LARGE, wait_s=wait_s)
        self.memory.join(self.index, self.finder)

    async def learn(self, *texts: str, kind: str = "fact", **facets: str) -> list[Item]:
        """Have items remembered, as a command would, in one commit."""
        private = facets.pop("sensitivity", "normal")

        def wish(draft: Draft) -> list[Item]:
            origin = Origin("stated")
            given = {"facets": Facets(**facets)} if facets else {}  # type: ignore[arg-type]
            return [draft.upsert(kind, text, origin, marked=private, **given)[0] for text in texts]  # type: ignore[arg-type]

        return await self.memory.change(ANN, "a test", wish)

    async def forget(self, gone: Item) -> None:
        def wish(draft: Draft) -> None:
            draft.remove(draft.items[gone.id], Origin("stated"))

        await self.memory.change(ANN, "a test", wish)

    async def items(self, *, in_dm: bool = True) -> list[Item]:
        return [one for one in (await self.memory.view(ANN)).active() if may_show(one, in_dm=in_dm)]

    async def pool(self, message: str, **given: object) -> Pool:
        items = given.pop("items", None) or await self.items()
        query = parse(message, recent=str(given.pop("recent", "")))
        return await self.finder.pool(ANN, MAIN, items, query, **given)  # type: ignore[arg-type]

    async def texts(self, message: str, **given: object) -> set[str]:
        return {one.text for one in (await self.pool(message, **given)).items}

    async def found(self, message: str) -> list[str]:
        """What the ranking makes of it."""
        pool = await self.pool(message)
        hits = Ranker().rank(parse(message), pool.items, now_ms=0, signals=Signals(corpus=pool.corpus))
        return [hit.item.text for hit in hits]


def some(count: int, word: str = "tea") -> list[str]:
    return [f"Likes {word} of sort number{number}." for number in range(count)]


DATED = 100
CHILD = f"""
import asyncio, sys
from pathlib import Path
from tests.session.test_finding import Library

async def main():
    library = Library(Path(sys.argv[1]))
    library.memory.open()
    if not await library.items():
        texts = [f"Was in Oslo on 8 May {{1900 + n}} and on 3 June 2024." for n in range({DATED})]
        await library.learn(*texts)
    await library.pool("Oslo")
    await library.finder.close()
    library.memory.close()
    print(library.words.asked)

asyncio.run(main())
"""

Open = Callable[..., Library]


@pytest.fixture
async def open_(tmp_path: Path) -> AsyncIterator[Open]:
    """`open_(…)` is a start over the same folder; the one before has ended then."""
    opened: list[Library] = []

    def begin(**given: float) -> Library:
        if opened:
            opened[-1].memory.close()
        opened.append(Library(tmp_path, **given))
        opened[-1].memory.open()
        return opened[-1]

    yield begin
    for one in opened:
        await one.finder.close()
        one.memory.close()


@pytest.fixture
def library(open_: Open) -> Library:
    return open_()


class TestSmallMemories:
    async def test_all_items_are_ranked_and_no_file_is_made(self, library: Library) -> None:
        await library.learn(*some(LARGE))
        items = await library.items()
        assert await library.pool("tea") == Pool(items)
        assert not library.items_folder.exists()


class TestBigMemories:
    async def test_what_is_named_completely_is_a_candidate_however_many_share_its_words(
        self, library: Library
    ) -> None:
        await library.learn(*some(260, "the green room"))
        await library.learn(
            "Rehearsals are on the second floor of the old mill behind the park", key="green-room"
        )
        assert "Rehearsals are on the second floor of the old mill behind the park" in await library.found(
            "what happens in the green room?"
        )

    async def test_candidates_come_with_the_statistics_of_all(self, library: Library) -> None:
        await library.learn(*some(80), "Has a zebra.")
        pool = await library.pool("what of the zebra?")
        assert [one.text for one in pool.items] == ["Has a zebra."]
        assert pool.corpus is not None
        assert (pool.corpus.total, pool.corpus.frequency(["zebra", "tea"])["zebra"]) == (81, 1)

    async def test_standing_and_core_items_are_always_there(self, library: Library) -> None:
        await library.learn(*some(80))
        await library.learn("Prefers short answers.", kind="preference")
        await library.learn("Never use semicolons.", kind="constraint")
        await library.learn("Is called Anouk.", category="core")
        standing = {"Prefers short answers.", "Never use semicolons.", "Is called Anouk."}
        assert await library.texts("zebra") == standing
        assert await library.texts("") == standing
        chosen = choose(Ranker(), parse(""), (await library.pool("")).items, max_chars=2000, now_ms=0)
        assert {one.item.text for one in chosen} == standing

    async def test_an_allergy_is_there_however_many_preferences_are_newer(self, library: Library) -> None:
        allergy = "Is allergic to nuts."
        await library.learn(allergy, kind="preference")
        library.clock.now += 1_000
        await library.learn(*some(MOST_STANDING + 1), kind="preference")
        await library.learn(*some(LARGE, "coffee"))
        for message in ("zebra", ""):
            assert allergy in await library.texts(message)

    async def test_the_linked_neighbours_of_what_is_found_are_there(self, library: Library) -> None:
        zebra, keeper, *_ = await library.learn("Has a zebra.", "Knows Piet.", *some(80))
        await library.memory.change(
            ANN, "link", lambda draft: draft.link(zebra, keeper, Origin("stated"), on=True)
        )
        assert await library.texts("zebra") == {"Has a zebra.", "Knows Piet."}

    async def test_what_was_just_said_is_there_before_the_index_has_it(self, library: Library) -> None:
        await library.learn(*some(80))
        await library.pool("tea")
        library.words.gate = threading.Event()
        (zebra,) = await library.learn("Has a zebra.")
        assert await library.found("zebra") == [zebra.text]
        assert zebra.id not in (library.index.indexed(ANN, MAIN) or {})
        library.words.gate.set()
        await library.finder.settle()
        assert zebra.id in (library.index.indexed(ANN, MAIN) or {})
        assert await library.texts("zebra") == {zebra.text}

    async def test_a_slip_of_the_keys_or_another_word_finds_what_it_finds_in_a_small_memory(
        self, library: Library
    ) -> None:
        texts = ["Rides a motorcycle.", "Has a dog.", "猫が好き", *some(80)]
        await library.learn(*texts)
        items = [item(text) for text in texts]
        for slip in ("motorcyle", "motorcycles", "any pets?", "猫", "zzzyx"):
            among_all = [hit.item.text for hit in Ranker().rank(parse(slip), items, now_ms=0)]
            assert await library.found(slip) == among_all
        assert await library.found("motorcyle") == ["Rides a motorcycle."]
        assert await library.found("猫") == ["猫が好き"]

    @pytest.mark.parametrize(
        "message", ["garden", "tell me about my garden", "the talk about my garden", "a zebra in the garden"]
    )
    async def test_a_word_of_most_items_finds_what_it_finds_in_a_small_memory(
        self, library: Library, message: str
    ) -> None:
        texts = [*(f"The garden has bush{number}." for number in range(60)), *some(20)]
        texts += ["Has a zebra.", "Likes a long talk."]
        await library.learn(*texts)
        hits = Ranker().rank(parse(message), await library.items(), now_ms=0)
        assert await library.found(message) == [hit.item.text for hit in hits]
        assert len(hits) == (1 if "zebra" in message else 60)

    async def test_what_was_forgotten_does_not_come(self, library: Library) -> None:
        zebra, *_ = await library.learn("Has a zebra.", *some(80))
        assert await library.texts("zebra") == {"Has a zebra."}
        await library.forget(zebra)
        assert await library.texts("zebra") == set()
        await library.finder.settle()
        assert zebra.id not in (library.index.indexed(ANN, MAIN) or {zebra.id: zebra})

    async def test_many_new_items_are_waited_for(self, library: Library) -> None:
        await library.learn(*some(80))
        await library.pool("tea")
        await library.learn(*some(20, "coffee"), "Has a zebra.")
        assert await library.texts("zebra") == {"Has a zebra."}

    async def test_the_nearest_by_their_vectors_are_there_whatever_their_words(
        self, library: Library
    ) -> None:
        horse, *_ = await library.learn("Rides a horse.", *some(80))
        assert await library.texts("zebra", cosines={horse.id: 0.9, "durable-gone": 1.0}) == {horse.text}

    async def test_a_message_that_says_nothing_is_looked_up_with_the_talk_before_it(
        self, library: Library
    ) -> None:
        await library.learn(*some(80), "Has a zebra.")
        assert await library.texts("and why?", recent="we talked of my zebra") == {"Has a zebra."}

    async def test_whoever_asks_for_everything_gets_the_newest(self, library: Library) -> None:
        old = await library.learn(*some(40, "coffee"))
        await library.learn(*some(80))
        (style,) = await library.learn("Prefers short answers.", kind="preference")
        items = await library.items()
        pool = await library.pool("What do you remember about me?")
        assert pool.corpus is None
        assert list(pool.items) == sorted(items, key=by_newest)[:LARGE]
        assert style in pool.items
        assert old[0] not in pool.items


class TestPrivacy:
    async def test_private_items_stay_where_they_are_though_the_index_has_them(
        self, library: Library
    ) -> None:
        await library.learn(*some(300, "zebra"), sensitivity="private")
        await library.learn("Saw one zebra among many other animals of the zoo.", *some(80))
        public = await library.items(in_dm=False)
        pool = await library.pool("zebra", items=public)
        assert [one.text for one in pool.items] == ["Saw one zebra among many other animals of the zoo."]
        assert len((await library.pool("zebra")).items) == 200
        nothing = await library.pool("number7", items=[one for one in public if "zebra" not in one.text])
        assert all(may_show(one, in_dm=False) for one in nothing.items)

    async def test_two_branches_do_not_know_of_each_other(self, library: Library) -> None:
        await library.learn(*some(80))
        view = await library.memory.view(ANN)

        def wish(draft: Draft) -> None:
            draft.upsert("fact", "Has a zebra.", Origin("stated"))

        await library.memory.change(ANN, "why", wish, branch="coding")
        coding = (await library.memory.view(ANN, "coding")).active()
        pool = await library.finder.pool(ANN, "coding", coding, parse("zebra"))
        assert [one.text for one in pool.items] == ["Has a zebra."]
        assert (await library.pool("zebra", items=view.active())).items == []

    async def test_nothing_is_left_of_an_erased_person_and_nothing_comes_back(self, library: Library) -> None:
        await library.learn(*some(80), "Has a zebra.")
        items = await library.items()
        await library.pool("zebra")
        assert list(library.items_folder.iterdir()) != []
        await library.memory.erase(ANN)
        assert list(library.items_folder.iterdir()) == []
        assert len((await library.pool("zebra", items=items)).items) == LARGE  # a turn that began before
        await library.finder.settle()
        assert not [path for path in library.items_folder.iterdir() if b"zebra" in path.read_bytes()]


class TestNobodyWaits:
    async def test_until_there_is_an_index_the_newest_are_ranked(self, open_: Open) -> None:
        library = open_(wait_s=0.01)
        (style,) = await library.learn("Prefers short answers.", kind="preference")
        await library.learn("Has a zebra.")
        await library.learn(*some(80))
        library.words.gate = threading.Event()
        pool = await library.pool("zebra")
        assert pool.corpus is None
        assert len(pool.items) == LARGE + 1
        assert style in pool.items
        library.words.gate.set()
        await library.finder.settle()
        library.finder._wait_s = 20
        assert await library.texts("zebra") == {"Has a zebra.", style.text}

    async def test_a_disk_that_fails_costs_nothing_and_is_left_alone_for_a_while(
        self, library: Library, caplog: pytest.LogCaptureFixture
    ) -> None:
        await library.learn("Has a zebra.")
        await library.learn(*some(80))
        library.items_folder.parent.mkdir(exist_ok=True)
        library.items_folder.write_text("no folder")
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert len((await library.pool("zebra")).items) == LARGE
        assert len([message for message in caplog.messages if "item index" in message]) == 1
        library.items_folder.unlink()
        library.clock.forward(REST_MS)
        assert await library.texts("zebra") == {"Has a zebra."}

    async def test_a_file_that_breaks_is_made_anew_for_the_next_one(self, library: Library) -> None:
        await library.learn("Has a zebra.")
        await library.learn(*some(80))
        await library.pool("zebra")
        library.index.path(ANN, MAIN).write_bytes(b"nonsense" * 1000)
        assert len((await library.pool("zebra")).items) == LARGE
        assert await library.texts("zebra") == {"Has a zebra."}

    async def test_a_mistake_of_ours_costs_nothing_and_is_logged_with_its_trace(
        self, library: Library, caplog: pytest.LogCaptureFixture
    ) -> None:
        await library.learn(*some(80))
        library.words.gate = threading.Event()
        library.words.gate.wait = None  # type: ignore[assignment, method-assign]
        assert len((await library.pool("zebra")).items) == LARGE
        assert "TypeError" in caplog.text

    async def test_without_a_known_branch_the_newest_are_ranked(self, library: Library) -> None:
        await library.learn(*some(80))
        pool = await library.finder.pool(ANN, None, await library.items(), parse("tea"))
        assert len(pool.items) == LARGE

    async def test_who_gives_up_leaves_the_index_sound(self, library: Library) -> None:
        await library.learn(*some(80), "Has a zebra.")
        library.words.gate = threading.Event()
        waiting = asyncio.create_task(library.pool("zebra"))
        await until(lambda: library.words.asked > 0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        library.words.gate.set()
        assert await library.texts("zebra") == {"Has a zebra."}


class TestRestarts:
    async def test_after_a_start_the_file_serves_without_reading_all_items_again(self, open_: Open) -> None:
        before = open_()
        await before.learn(*some(200), "Has a zebra.")
        await before.pool("zebra")
        await before.finder.close()
        again = open_()
        assert await again.texts("zebra") == {"Has a zebra."}
        assert again.words.asked < 50

    async def test_the_file_serves_a_process_that_puts_sets_in_another_order(self, tmp_path: Path) -> None:
        read = []
        for seed in ("1", "2", "3"):
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", CHILD, str(tmp_path)),
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONHASHSEED": seed},
                cwd=Path(__file__).parents[2],
            )
            output, _ = await child.communicate()
            read.append(int(output))
        assert read[0] >= DATED
        assert read[1:] == [SPOT_CHECK, SPOT_CHECK]

    async def test_what_left_ram_and_came_back_is_not_read_again(self, library: Library) -> None:
        await library.learn(*some(80), "Has a zebra.")
        await library.pool("zebra")
        library.clock.forward(3_500_000)
        library.index.indexed(ANN, MAIN)  # is used, the memory is not
        library.clock.forward(3_500_000)
        assert library.memory.evict_idle() == [ANN]
        library.words.asked = 0
        assert await library.texts("zebra") == {"Has a zebra."}
        assert library.words.asked == 0

    async def test_a_close_ends_what_is_being_made_and_the_next_start_goes_on(self, open_: Open) -> None:
        library = open_(wait_s=0.01)
        await library.learn(*some(700), "Has a zebra.")
        library.words.gate = threading.Event()
        await library.pool("zebra")
        await until(lambda: library.words.asked > 0)
        closing = asyncio.create_task(library.finder.close())
        await asyncio.sleep(0)
        library.words.gate.set()
        await closing
        assert library.index.indexed(ANN, MAIN) is None
        assert len((await library.pool("zebra")).items) == LARGE
        assert await open_().texts("zebra") == {"Has a zebra."}


WORDS = ["tabs", "python", "coffee", "tea", "garden", "chess", "zebra", "winter", "server", "river", "oslo"]


@st.composite
def memories(draw: st.DrawFn) -> tuple[list[Item], list[str]]:
    """Many short items of few words each, and questions about them."""
    dice = random.Random(draw(st.integers(0, 2**32)))
    vocabulary = WORDS + [f"name{number}" for number in range(60)]
    weights = [20] * len(WORDS) + [1] * 60
    texts = {" ".join(dice.choices(vocabulary, weights, k=dice.randint(2, 7))) for _ in range(300)}
    items = [item(text, updated_at=dice.randrange(10**12)) for text in sorted(texts)]
    asked = [*vocabulary, "gardne", "pythons", "cameras", "kitten"]
    weights += [5] * 4
    return items, [" ".join(dice.choices(asked, weights, k=dice.randint(1, 6))) for _ in range(12)]


class TestTheSameAsAmongAll:
    @FEW
    @given(memories())
    def test_the_best_of_the_candidates_are_the_best_of_all(
        self, drawn: tuple[Sequence[Item], Sequence[str]]
    ) -> None:
        items, questions = drawn

        async def live(folder: Path) -> None:
            library = Library(folder)
            view = View({one.id: one for one in items}, head="c1")
            await library.index.sync(ANN, MAIN, view)
            same, whole, few = 0, Ranker(), Ranker()
            for question in questions:
                pool = await library.finder.pool(ANN, MAIN, items, parse(question))
                signals = Signals(corpus=pool.corpus)
                ours = few.rank(parse(question), pool.items, now_ms=0, signals=signals)
                all_ = whole.rank(parse(question), items, now_ms=0)
                assert bool(ours) == bool(all_)
                if len(all_) > 1 and all_[0].score > 1.2 * all_[1].score:
                    assert ours[0].item == all_[0].item
                same += [hit.item for hit in ours[:5]] == [hit.item for hit in all_[:5]]
            assert same >= 0.8 * len(questions)
            await library.finder.close()

        with TemporaryDirectory() as folder:
            asyncio.run(live(Path(folder)))

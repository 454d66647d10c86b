"""When items were last used: counted at once, written late, and gone with the person."""

import asyncio
import json
from pathlib import Path

import pytest

from discoclaw.core.draft import Origin
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import Memory
from tests.counting import Counts, counted, grown
from tests.memory.kit import ANN, BOB, NOW, Clock, heard, remember
from tests.tables import naming

DAY = 86_400_000


class Home:
    """A memory and its access times; a second one over the same folder is a restart."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.folder = folder
        self.clock = clock or Clock()
        self.cursors = Cursors(folder / "memory" / "cursors")
        self.memory = Memory(folder / "memory", clock=self.clock, cursors=self.cursors)
        self.access = LastUsed(self.memory, self.cursors, clock=self.clock)
        self.memory.join(self.access)

    def restarted(self) -> "Home":
        return Home(self.folder, self.clock)

    async def remember(self, text: str, subject: str = ANN) -> str:
        return await self.memory.change(subject, "a test", remember(text, origin=heard()))

    async def forget(self, item_id: str, subject: str = ANN) -> None:
        await self.memory.change(
            subject, "a test", lambda draft: draft.remove(draft.items[item_id], Origin("stated"))
        )

    def file(self, subject: str = ANN) -> Path:
        return self.cursors.folder / f"access-{subject}.json"

    def on_disk(self, subject: str = ANN) -> dict[str, int]:
        found: dict[str, int] = json.loads(self.file(subject).read_bytes())
        return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


class TestCounting:
    async def test_storing_and_finding_are_uses_of_each_person_alone(self, home: Home) -> None:
        one, other = await home.remember("likes tea"), await home.remember("has a cat")
        theirs = await home.remember("likes tea", BOB)
        home.clock.forward(minutes=5)
        home.access.touch(ANN, [one])
        assert home.access.of(ANN) == {one: NOW + 300_000, other: NOW}
        assert home.access.of(BOB) == {theirs: NOW}
        home.access.touch(ANN, [one], at=NOW - DAY)
        assert home.access.of(ANN)[one] == NOW + 300_000, "a time never goes back"

    async def test_removing_is_none_and_linking_is_one_for_both(self, home: Home) -> None:
        one, other = await home.remember("likes tea"), await home.remember("has a cup")
        home.clock.forward(minutes=5)
        await home.memory.change(
            ANN, "link", lambda d: d.link(d.items[one], d.items[other], Origin("stated"))
        )
        assert set(home.access.of(ANN).values()) == {NOW + 300_000}
        home.clock.forward(minutes=5)
        await home.forget(one)
        assert home.access.of(ANN)[one] == NOW + 300_000

    async def test_nothing_touched_is_nothing_known(self, home: Home) -> None:
        home.access.touch(ANN, [])
        assert home.access.of(ANN) == {}
        await home.access.flush()
        assert not home.cursors.folder.exists()


class TestOnDisk:
    async def test_it_is_written_when_flushed_without_words_and_found_after_a_restart(
        self, home: Home
    ) -> None:
        one = await home.remember("likes tea")
        assert not home.file().exists()
        await home.access.flush()
        assert home.on_disk() == {one: NOW}
        before = home.file().stat().st_ino
        await home.access.flush()
        assert home.file().stat().st_ino == before, "it is written already"
        again = home.restarted()
        assert again.access.of(ANN) == {}
        assert await again.access.load(ANN) == {one: NOW} == again.access.of(ANN)

    @pytest.mark.parametrize("loads", [True, False])
    async def test_what_was_counted_before_is_lost_by_neither_load_nor_flush(
        self, home: Home, loads: bool
    ) -> None:
        one, other = await home.remember("likes tea"), await home.remember("has a cat")
        await home.access.flush()
        again = home.restarted()
        home.clock.forward(minutes=5)
        again.access.touch(ANN, [one])
        assert not again.access.complete(ANN)
        if loads:
            assert await again.access.load(ANN) == {one: NOW + 300_000, other: NOW}
        await again.access.flush()
        assert again.on_disk() == {one: NOW + 300_000, other: NOW}

    async def test_only_what_exists_is_kept(self, home: Home) -> None:
        one, other = await home.remember("likes tea"), await home.remember("has a cat")
        await home.access.flush()
        await home.forget(other)
        home.access.touch(ANN, [one, "durable-ffffffff"], at=NOW + 1)
        await home.access.flush()
        assert home.on_disk() == {one: NOW + 1}

    async def test_what_exists_on_another_branch_exists(self, home: Home) -> None:
        one = await home.remember("likes tea")
        await verbs.create_branch(home.memory, ANN, "coding")
        await home.forget(one)
        await home.access.flush()
        assert home.on_disk() == {one: NOW}

    async def test_it_is_bounded_and_the_newest_stay(self, home: Home) -> None:
        home.access = LastUsed(home.memory, home.cursors, clock=home.clock, most_items=2)
        home.memory.join(home.access)
        ids = [await home.remember(text) for text in ("likes tea", "has a cat", "has a dog")]
        for number, one in enumerate(ids):
            home.access.touch(ANN, [one], at=NOW + 10 + number)
        await home.access.flush()
        assert home.on_disk() == {ids[1]: NOW + 11, ids[2]: NOW + 12}

    async def test_nonsense_on_disk_counts_as_nothing(self, home: Home) -> None:
        home.cursors.folder.mkdir(parents=True)
        wrong = '{"a": "b", "c": -4, "d": true, "e": 1e300, "f": null, "g": 0}'
        for content in ("", "[]", "nonsense", wrong):
            with naming(content):
                home.file().write_text(content, encoding="utf-8")
                assert await home.restarted().access.load(ANN) == {}

    async def test_a_disk_that_takes_nothing_is_tried_again(self, home: Home) -> None:
        one = await home.remember("likes tea")
        home.cursors.folder.write_text("a file where a folder has to be", encoding="utf-8")
        await home.access.flush()
        home.cursors.folder.unlink()
        await home.access.flush()
        assert home.on_disk() == {one: NOW}


class TestErasing:
    async def test_it_goes_with_the_person_and_only_theirs(self, home: Home) -> None:
        await home.remember("likes tea")
        kept = await home.remember("likes tea", BOB)
        await home.access.flush()
        await home.memory.erase(ANN)
        assert home.access.of(ANN) == {} == await home.access.load(ANN)
        assert not home.file().exists()
        assert home.on_disk(BOB) == {kept: NOW}

    async def test_a_late_flush_does_not_bring_it_back(self, home: Home) -> None:
        one = await home.remember("likes tea")
        await home.memory.erase(ANN)
        home.access.touch(ANN, [one])  # an answer that was on its way
        await home.access.flush()
        assert not home.file().exists()

    async def test_nor_one_that_is_at_work_meanwhile(self, home: Home) -> None:
        await home.remember("likes tea")
        async with home.cursors.alone():
            flushing = asyncio.create_task(home.access.flush())
            erasing = asyncio.create_task(home.memory.erase(ANN))
            await asyncio.sleep(0.02)
        await asyncio.gather(flushing, erasing)
        await home.access.flush()
        assert not home.file().exists()

    async def test_what_is_learned_anew_is_counted_anew(self, home: Home) -> None:
        await home.remember("likes tea")
        await home.access.flush()
        await home.memory.erase(ANN)
        home.clock.forward(minutes=5)
        one = await home.memory.change(ANN, "a test", remember("has a cat"))
        await home.access.flush()
        assert home.on_disk() == {one: home.clock.now}


class TestMemoryThatCanNotBeRead:
    async def test_nothing_is_written_about_it_until_it_can(self, home: Home) -> None:
        one = await home.remember("likes tea")
        again = home.restarted()
        again.access.touch(ANN, [one], at=NOW + 1)
        ledger = home.memory.ledger_folder / f"{ANN}.jsonl"
        content = ledger.read_bytes()
        ledger.unlink()
        ledger.mkdir()
        await again.access.flush()
        assert not home.file().exists()
        ledger.rmdir()
        ledger.write_bytes(content)
        await again.access.flush()
        assert again.on_disk() == {one: NOW + 1}


async def test_it_is_written_in_the_same_steps_among_many_people(home: Home) -> None:
    async def among(count: int) -> Counts:
        for number in range(count):
            await home.remember("Likes tea.", f"user-{number}")
        await home.access.flush()
        home.clock.forward(minutes=5)
        home.access.touch("user-3", (await home.memory.view("user-3")).items)
        with counted() as counts:
            await home.access.flush()
        return counts

    few, many = await among(10), await among(60)
    assert grown(few, many, most_steps=20) == {}
    assert few.steps

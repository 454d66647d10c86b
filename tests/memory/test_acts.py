"""What the memory does beside plain changes, on real files: acts, turns, the verbs, and all of it at once."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.draft import Draft, Origin, find
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Commit, Record
from discoclaw.core.history import MAIN, Branches, History
from discoclaw.core.item import Item
from discoclaw.core.merge import MergeResult
from discoclaw.core.times import iso_ms
from discoclaw.memory.subjects import inspect, verbs
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from tests.memory import child
from tests.memory.kit import (
    ANN,
    BOB,
    Clock,
    check_picture,
    commits_of,
    fingerprint,
    heard,
    ledger_of,
    lines_of,
    listening,
    remember,
    texts,
    told_by,
)
from tests.tables import naming

Restart = Callable[[], Memory]
STATED = Origin("stated")


def named(text: str) -> Callable[[Draft], Item]:
    """The one item of this text."""

    def look(draft: Draft) -> Item:
        (item,) = find(draft.items.values(), text)
        return item

    return look


def empty(history: History, now_ms: int, message: str = "an act") -> Commit:
    """The next commit of HEAD's branch; it says nothing."""
    branch = history.branches.all[history.branches.current]
    when = iso_ms(history.branches.next_ms(now_ms))
    return Commit(branch=branch.name, events=(), message=message, parent_id=branch.head, timestamp=when)


@pytest.fixture
async def known(memory: Memory) -> Memory:
    """Two items on main; beside it a branch that has one more and has changed the first."""
    for text in ("likes tea", "works at Acme"):
        await memory.change(ANN, "why", remember(text))
    await verbs.create_branch(memory, ANN, "coding", "terse")
    await verbs.edit(memory, ANN, named("likes tea"), "likes strong coffee", STATED, branch="coding")
    await memory.change(ANN, "why", remember("uses vim"), branch="coding")
    return memory


class TestAnAct:
    async def test_is_given_all_that_ever_was_the_present_and_the_cap(
        self, known: Memory, clock: Clock
    ) -> None:
        clock.forward(minutes=3)

        def work(history: History, now_ms: int, max_items: int) -> tuple[Sequence[Record], str]:
            assert history.records == read(lines_of(known)).records
            return [], f"{now_ms - clock.now} {max_items}"

        assert await known.act(ANN, work) == "0 200"

    async def test_its_records_are_appended_and_told(self, known: Memory, restart: Restart) -> None:
        ear = listening(known)

        def work(history: History, now_ms: int, max_items: int) -> tuple[Sequence[Record], int]:
            first = empty(history, now_ms, "one")
            second = empty(History([*history.records, first]), now_ms, "two")
            return [first, second], 7

        assert await known.act(ANN, work) == 7
        assert [one.message for one in commits_of(known)][-2:] == ["one", "two"]
        assert ear.subjects == [ANN]
        assert [(whose, commit.message) for whose, commit in ear.commits] == [(ANN, "one"), (ANN, "two")]
        assert await restart().view(ANN) == await known.view(ANN)

    async def test_without_records_it_writes_nothing_and_tells_nobody(
        self, known: Memory, root: Path
    ) -> None:
        told = listening(known).subjects
        before = fingerprint(root)
        await known.act(ANN, lambda history, now_ms, most: ([], None))
        assert (fingerprint(root), told) == (before, [])

    async def test_one_that_raises_changes_nothing(self, known: Memory, root: Path) -> None:
        before, view = fingerprint(root), await known.view(ANN)

        def work(history: History, now_ms: int, max_items: int) -> tuple[Sequence[Record], None]:
            raise Refused("no")

        with pytest.raises(Refused, match="no"):
            await known.act(ANN, work)
        assert fingerprint(root) == before
        assert await known.view(ANN) is view


class TestATurn:
    async def test_says_how_the_branches_are_then_and_followers_hear_of_it(self, known: Memory) -> None:
        ear = listening(known)
        branches = await known.turn(ANN, lambda branches, now_ms: branches.switch("coding", now_ms=now_ms))
        assert branches.current == "coding"
        assert (ear.subjects, ear.commits) == ([ANN], [])

    async def test_what_is_refused_writes_nothing(self, known: Memory, root: Path) -> None:
        for verb, said in (
            (lambda memory: verbs.create_branch(memory, ANN, "coding"), "already exists"),
            (lambda memory: verbs.create_branch(memory, ANN, "a b"), "can't be the name of a branch"),
            (lambda memory: verbs.create_branch(memory, ANN, "new", start="codng"), "did you mean 'coding'"),
            (lambda memory: verbs.switch(memory, ANN, "codng"), "did you mean 'coding'"),
            (lambda memory: verbs.delete_branch(memory, ANN, "main"), "can't be deleted"),
            (lambda memory: verbs.delete_branch(memory, ANN, "codng"), "did you mean 'coding'"),
            (lambda memory: verbs.merge(memory, ANN, "codng", STATED), "did you mean 'coding'"),
            (lambda memory: verbs.merge(memory, ANN, "main", STATED), "into itself"),
            (
                lambda memory: verbs.merge(memory, ANN, "coding", STATED, branch="codng"),
                "did you mean 'coding'",
            ),
            (lambda memory: verbs.cherry_pick(memory, ANN, "feedfeed", STATED), "no commit"),
            (lambda memory: verbs.revert(memory, ANN, "coding", STATED), "not on the branch 'main'"),
            (lambda memory: verbs.restore(memory, ANN, "HEAD~9", STATED), "beyond the first"),
            (lambda memory: verbs.undo(memory, BOB, STATED), "nothing left to undo"),
            (lambda memory: verbs.settle(memory, ANN, "0" * 16, "use_new", STATED), "already settled"),
        ):
            with naming(verb, said):
                before = fingerprint(root)
                with pytest.raises(Refused, match=said):
                    await verb(known)
                assert fingerprint(root) == before


class TestLooking:
    async def test_the_history_is_what_is_on_disk(self, known: Memory) -> None:
        history = await known.history(ANN)
        assert history.records == read(lines_of(known)).records
        assert history.shown() == await known.view(ANN)
        assert (await known.history(BOB)).records == ()

    async def test_branches_are_at_hand_once_somebody_was_looked_at(
        self, known: Memory, restart: Restart
    ) -> None:
        later = restart()
        assert later.branches_in_ram(ANN) is None
        branches = await later.branches(ANN)
        assert later.branches_in_ram(ANN) is branches
        assert branches == (await known.history(ANN)).branches
        assert await later.branches(BOB) == Branches()

    async def test_one_that_is_read_brings_the_others_along(self, known: Memory, restart: Restart) -> None:
        """Whoever looks at all personas does not read the ledger for each."""
        await verbs.create_branch(known, ANN, "games")
        await known.change(ANN, "a test", remember("plays chess"), branch="games")
        later = restart()
        await later.view(ANN, "coding")
        view = later.view_in_ram(ANN, "games")
        assert view is not None
        assert "plays chess" in [item.text for item in view.active()]

    async def test_a_branch_that_is_not_head_is_read_once(self, known: Memory, restart: Restart) -> None:
        later = restart()
        await later.view(ANN)
        assert later.view_in_ram(ANN, "coding") is None
        view = await later.view(ANN, "coding")
        assert [item.text for item in view.active()] == ["likes strong coffee", "works at Acme", "uses vim"]
        assert later.view_in_ram(ANN, "coding") is view
        ledger_of(known).unlink()
        assert await later.view(ANN, "coding") is view

    async def test_nobody_waits_for_somebody_who_is_writing(self, known: Memory) -> None:
        view, branches = await known.view(ANN), await known.branches(ANN)
        seen: list[object] = []

        def work(history: History, now_ms: int, max_items: int) -> tuple[Sequence[Record], None]:
            looking = asyncio.run_coroutine_threadsafe(look(), loop)
            seen.extend(looking.result(timeout=5))
            return [], None

        async def look() -> list[object]:
            return [await known.view(ANN), await known.branches(ANN)]

        loop = asyncio.get_running_loop()
        await known.act(ANN, work)
        assert seen == [view, branches]

    async def test_a_history_that_can_not_be_read_is_a_fault(self, known: Memory) -> None:
        await known.view(ANN)
        ledger_of(known).unlink()
        ledger_of(known).mkdir()
        with pytest.raises(MemoryFault, match="cannot be read"):
            await known.history(ANN)


async def check(memory: Memory, restart: Restart, root: Path) -> None:
    """Whatever was done: RAM, a fresh start, the file and a look from outside agree, and all verifies."""
    later = restart()
    branches = await memory.branches(ANN)
    assert await later.branches(ANN) == branches
    for name in branches.all:
        assert await later.view(ANN, name) == await memory.view(ANN, name)
    await check_picture(memory)
    assert inspect.held(memory.disk, ANN).faults == ()


class TestTheVerbs:
    async def test_what_both_changed_stays_ours_and_is_settled_by_the_person(
        self, known: Memory, restart: Restart, root: Path
    ) -> None:
        await verbs.edit(known, ANN, named("likes tea"), "likes green tea", STATED)
        brought = await verbs.merge(known, ANN, "coding", STATED)
        assert len(brought.clashes) == 1
        assert (await texts(known))[0] == "likes green tea"
        (conflict,) = (await known.view(ANN)).conflicts
        assert conflict.text == "likes strong coffee"
        await check(known, restart, root)
        later = restart()
        assert (await later.view(ANN)).conflicts == (conflict,)
        settled = await verbs.settle(later, ANN, conflict.event_id, "use_new", STATED, by="button")
        assert settled == conflict
        assert (await texts(later))[0] == "likes strong coffee"
        assert (await later.view(ANN)).conflicts == ()
        assert commits_of(later)[-1].metadata == {"by": "button"}
        with pytest.raises(Refused, match="already settled"):
            await verbs.settle(later, ANN, conflict.event_id, "use_new", STATED)
        await check(later, restart, root)

    async def test_settle_finds_the_branch_on_which_it_stands_open(self, known: Memory) -> None:
        def contradict(draft: Draft) -> None:
            one, other = list(draft.items.values())[:2]
            draft.contradict(one, other, "both cannot be", heard())

        await known.change(ANN, "why", contradict, branch="coding")
        (conflict,) = (await known.view(ANN, "coding")).conflicts
        await verbs.settle(known, ANN, conflict.event_id, "keep_old", STATED)
        assert await texts(known, branch="coding") == ["likes strong coffee", "uses vim"]
        assert await texts(known) == ["likes tea", "works at Acme"]


class TestADiskThatIsFull:
    def test_neither_moves_nor_merges_anything_until_there_is_space(self, tmp_path: Path) -> None:
        assert told_by(child.move_full, tmp_path) == {
            "faults": 4,
            "same branches": True,
            "same ledger": True,
            "then": ["coding", ["likes tea", "uses vim"]],
        }


class TestAllAtOnce:
    """A hundred mixed changes, acts and moves of HEAD, of one person and at once."""

    NAMES = (MAIN, "coding", "games")

    async def test_nothing_is_lost_and_all_verifies(
        self, known: Memory, restart: Restart, root: Path
    ) -> None:
        await verbs.create_branch(known, ANN, "games")
        dice = random.Random(5)
        ear = listening(known)
        ways: list[Callable[[int], Awaitable[Any]]] = [
            lambda number: known.change(ANN, "why", remember(f"on head {number}")),
            lambda number: known.change(ANN, "why", remember(f"on {number}"), branch=self.NAMES[number % 3]),
            lambda number: known.change(ANN, "why", remember("begun"), branch=f"fresh-{number % 5}"),
            lambda number: verbs.switch(known, ANN, self.NAMES[number % 3]),
            lambda number: verbs.undo(known, ANN, STATED, branch="games"),
            lambda number: verbs.merge(known, ANN, "coding", STATED, branch="games"),
            lambda number: self.look(known),
        ]
        work = [dice.choice(ways)(number) for number in range(100)]
        outcomes = await asyncio.gather(*work, return_exceptions=True)
        assert {type(one) for one in outcomes if isinstance(one, Exception)} <= {Refused}
        merges = [one.commit for one in outcomes if isinstance(one, MergeResult) and one.commit is not None]
        assert len(merges) > 5
        history, done = await known.history(ANN), [commit.id for _, commit in ear.commits]
        assert set(done) | {one.id for one in merges} <= set(history.commits)
        assert len(done) == len(set(done)) == len(history.commits) - 4
        times = [record.timestamp for record in read(lines_of(known)).records]
        assert times == sorted(set(times))  # each rests on the one before it: nobody wrote beside a writer
        assert await known.view(ANN) == history.shown()
        for name, branch in history.branches.all.items():
            if name != history.branches.current:
                assert await known.view(ANN, name) == history.view(branch.head)
        await check(known, restart, root)

    async def look(self, memory: Memory) -> None:
        branches = await memory.branches(ANN)
        for name in branches.all:
            assert (await memory.view(ANN, name)).items
        await asyncio.sleep(0)
        assert memory.view_in_ram(ANN) is not None

    async def test_whoever_gives_up_waiting_breaks_nothing(
        self, known: Memory, restart: Restart, root: Path
    ) -> None:
        for number in range(30):
            given_up = [
                asyncio.create_task(verbs.switch(known, ANN, ("coding", MAIN)[number % 2])),
                asyncio.create_task(verbs.merge(known, ANN, "coding", STATED, branch=MAIN)),
                asyncio.create_task(known.change(ANN, "why", remember(f"late {number}"), branch="coding")),
            ]
            for _ in range(1 + number % 6):
                await asyncio.sleep(0)
            for one in given_up:
                one.cancel()
            kept = await known.change(ANN, "why", remember(f"kept {number}"), branch="coding")
            await asyncio.gather(*given_up, return_exceptions=True)
            assert kept in (await known.view(ANN, "coding")).items
        await check(known, restart, root)

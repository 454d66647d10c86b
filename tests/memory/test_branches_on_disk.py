"""Branches on a real folder: they survive a restart, stay apart, and the durable file always shows HEAD."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Commit, Record, Ref
from discoclaw.core.history import MAIN, MOST_BRANCHES, Branches
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.memory.subjects import inspect, verbs
from discoclaw.memory.subjects.durable_file import parse, render
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from discoclaw.memory.subjects.subject import Subject
from tests.memory.kit import (
    ANN,
    BOB,
    NOW,
    Clock,
    added,
    asides,
    check_picture,
    commits_of,
    durable_of,
    edit,
    fingerprint,
    lines_of,
    listening,
    remember,
    set_first,
    texts,
)
from tests.tables import naming

Restart = Callable[[], Memory]


def on_file(memory: Memory) -> list[str]:
    """The texts that the durable file shows."""
    return [item.text for item in parse(durable_of(memory).read_bytes(), now_ms=NOW).items]


async def check_agreed(memory: Memory, restart: Restart, root: Path) -> None:
    """RAM, a fresh start, the durable file and a look from outside all say the same, and it verifies."""
    view, branches = await memory.view(ANN), await memory.branches(ANN)
    later = restart()
    assert await later.view(ANN) == view
    assert await later.branches(ANN) == branches == read(lines_of(memory)).history.branches
    for name in branches.all:
        assert await later.view(ANN, name) == await memory.view(ANN, name)
    await check_picture(memory)
    looked = inspect.held(memory.disk, ANN)
    assert (looked.view, looked.faults) == (view, ())


@pytest.fixture
async def coding(memory: Memory) -> Memory:
    """Two items on main, and a branch that began there, has one item more, and is not HEAD."""
    for text in ("likes tea", "works at Acme"):
        await memory.change(ANN, "why", remember(text))
    await verbs.create_branch(memory, ANN, "coding", "a terse reviewer")
    await memory.change(ANN, "why", remember("uses vim"), branch="coding")
    return memory


class TestABranchSurvivesARestart:
    async def test_created_switched_to_deleted_and_created_again(
        self, coding: Memory, restart: Restart, root: Path
    ) -> None:
        branches = await restart().branches(ANN)
        made = branches.all["coding"]
        first, second, third = commits_of(coding)
        assert (made.persona, made.base, made.head) == ("a terse reviewer", second.id, third.id)
        assert (branches.current, branches.all[MAIN].head) == (MAIN, second.id)
        assert first.parent_id is None
        await check_agreed(coding, restart, root)
        await verbs.switch(coding, ANN, "coding")
        later = restart()
        assert (await later.branches(ANN)).current == "coding"
        assert await texts(later) == ["likes tea", "works at Acme", "uses vim"]
        await check_agreed(coding, restart, root)
        await verbs.create_branch(coding, ANN, "rust", start="coding")
        await verbs.switch(coding, ANN, "rust")
        await coding.change(ANN, "why", remember("fights the borrow checker"))
        assert await texts(coding, branch="coding") == ["likes tea", "works at Acme", "uses vim"]
        await check_agreed(coding, restart, root)
        await verbs.delete_branch(coding, ANN, "coding")
        assert list((await restart().branches(ANN)).all) == [MAIN, "rust"]
        assert len(commits_of(coding)) == 4  # its commits stay in the history
        await check_agreed(coding, restart, root)
        await verbs.create_branch(coding, ANN, "coding", "somebody else", start=MAIN)
        assert await texts(coding, branch="coding") == ["likes tea", "works at Acme"]
        await check_agreed(coding, restart, root)

    async def test_many_of_them(self, memory: Memory, restart: Restart, root: Path) -> None:
        for number in range(MOST_BRANCHES - 1):
            await memory.change(ANN, "why", remember(f"item {number}"), branch=f"persona-{number}")
        with pytest.raises(Refused, match=f"{MOST_BRANCHES} branches"):
            await memory.change(ANN, "why", remember("one more"), branch="one-more")
        assert len((await memory.branches(ANN)).all) == MOST_BRANCHES
        for number in (0, 7, 48):
            assert await texts(memory, branch=f"persona-{number}") == [f"item {number}"]
        await memory.change(ANN, "why", remember("on main"))
        await check_agreed(memory, restart, root)


class TestTheDurableFileShowsHead:
    async def test_after_every_move(self, coding: Memory) -> None:
        main, other = ["likes tea", "works at Acme"], ["likes tea", "works at Acme", "uses vim"]
        for name, shown in [("coding", other), (MAIN, main), ("coding", other), (MAIN, main)]:
            await verbs.switch(coding, ANN, name)
            assert on_file(coding) == shown == await texts(coding)
            assert durable_of(coding).read_bytes() == render(await coding.view(ANN))

    async def test_a_change_elsewhere_does_not_touch_it(self, coding: Memory) -> None:
        before = fingerprint(coding.durable_folder)
        await coding.change(ANN, "why", remember("uses emacs"), branch="coding")
        await verbs.create_branch(coding, ANN, "idle")
        await verbs.delete_branch(coding, ANN, "idle")
        assert fingerprint(coding.durable_folder) == before

    async def test_a_switch_to_where_it_is_writes_nothing(self, coding: Memory, root: Path) -> None:
        before = fingerprint(root)
        assert (await verbs.switch(coding, ANN, "main")).current == MAIN
        assert fingerprint(root) == before

    async def test_the_file_of_an_empty_branch_is_empty_and_renewed_when_lost_or_damaged(
        self, memory: Memory, restart: Restart, root: Path
    ) -> None:
        await verbs.create_branch(memory, ANN, "coding")
        await memory.change(ANN, "why", remember("likes tea"))
        await verbs.switch(memory, ANN, "coding")
        assert on_file(memory) == []
        durable_of(memory).unlink()
        assert await texts(memory) == []
        await check_agreed(memory, restart, root)
        durable_of(memory).write_bytes(b"{ oops")
        assert await texts(memory) == []
        assert [aside.read_bytes() for aside in asides(durable_of(memory), "corrupt")] == [b"{ oops"]
        await check_agreed(memory, restart, root)


class TestBranchesStayApart:
    async def test_nor_another_person(self, coding: Memory) -> None:
        await coding.change(BOB, "why", remember("likes coffee"), branch="coding")
        assert await texts(coding, BOB) == []
        assert await texts(coding, BOB, branch="coding") == ["likes coffee"]
        assert await texts(coding, branch="coding") == ["likes tea", "works at Acme", "uses vim"]

    async def test_one_that_does_not_exist_says_what_main_says(self, coding: Memory) -> None:
        await verbs.switch(coding, ANN, "coding")
        assert await texts(coding, branch="unheard-of") == ["likes tea", "works at Acme"]
        assert "unheard-of" not in (await coding.branches(ANN)).all


class TestAChangeThatNamesABranch:
    async def test_the_first_one_forks_main_also_from_another_branch(
        self, coding: Memory, restart: Restart, root: Path
    ) -> None:
        await verbs.switch(coding, ANN, "coding")
        ear = listening(coding)
        await coding.change(ANN, "why", remember("plays chess"), branch="games", by="routing")
        branches = await coding.branches(ANN)
        assert branches.current == "coding"
        assert branches.all["games"].base == branches.all[MAIN].head
        assert await texts(coding, branch="games") == ["likes tea", "works at Acme", "plays chess"]
        *_, fork, commit = read(lines_of(coding)).records
        assert isinstance(fork, Ref)
        assert isinstance(commit, Commit)
        assert (fork.action, fork.branch, fork.metadata) == ("create", "games", {"by": "routing"})
        assert (commit.branch, commit.parent_id, commit.metadata) == (
            "games",
            branches.all[MAIN].head,
            {"by": "routing"},
        )
        assert [(subject, made.branch) for subject, made in ear.commits] == [(ANN, "games")]
        await check_agreed(coding, restart, root)

    async def test_one_that_changes_nothing_creates_nothing(self, coding: Memory, root: Path) -> None:
        before = fingerprint(root)
        await coding.change(ANN, "why", remember("Likes  TEA"), branch="games")
        assert fingerprint(root) == before
        assert "games" not in (await coding.branches(ANN)).all

    async def test_a_name_that_is_none_is_refused_and_writes_nothing(
        self, coding: Memory, root: Path
    ) -> None:
        for name in ("", " ", "head", "-", "a b", "../x", "deadbeef", "x" * 33):
            with naming(name):
                before = fingerprint(root)
                if name:
                    with pytest.raises(Refused):
                        await coding.change(ANN, "why", remember("lost"), branch=name)
                    assert fingerprint(root) == before
                assert "lost" not in await texts(coding)

    @pytest.mark.parametrize("name", ["Coding", " coding ", "ＣＯＤＩＮＧ"])
    async def test_however_its_name_is_written_it_is_that_branch(
        self, coding: Memory, restart: Restart, root: Path, name: str
    ) -> None:
        await coding.change(ANN, "why", remember("writes Rust"), branch=name)
        assert set((await coding.branches(ANN)).all) == {MAIN, "coding"}
        assert (await texts(coding, branch="coding"))[-1] == "writes Rust"
        await check_agreed(coding, restart, root)


class TestAHandEditLandsWhereTheFileWas:
    """The branch that the file pictures, not the one that is HEAD when the edit is found."""

    async def test_saved_before_a_switch(self, coding: Memory, restart: Restart, root: Path) -> None:
        edit(durable_of(coding), set_first(text="likes mate"))
        await verbs.switch(coding, ANN, "coding")
        assert await texts(coding, branch=MAIN) == ["likes mate", "works at Acme"]
        assert await texts(coding) == ["likes tea", "works at Acme", "uses vim"]
        assert [one.branch for one in commits_of(coding) if one.message == "edited by hand"] == [MAIN]
        await check_agreed(coding, restart, root)

    async def test_saved_in_the_moment_of_a_switch(
        self, coding: Memory, restart: Restart, root: Path
    ) -> None:
        def work(branches: Branches, now_ms: int) -> Ref | None:
            edit(durable_of(coding), set_first(text="likes mate"))
            return branches.switch("coding", now_ms=now_ms)

        await coding.turn(ANN, work)
        assert await texts(coding, branch=MAIN) == ["likes mate", "works at Acme"]
        assert await texts(coding) == ["likes tea", "works at Acme", "uses vim"]
        await check_agreed(coding, restart, root)

    @pytest.fixture(params=["as it was", "edited"])
    def crashed(self, request: pytest.FixtureRequest, coding: Memory) -> Callable[[str], Awaitable[bool]]:
        """Switch, but leave the file as it was, or as somebody edited it, when the power went off."""

        async def crash(name: str) -> bool:
            content = durable_of(coding).read_bytes()
            await verbs.switch(coding, ANN, name)
            durable_of(coding).write_bytes(content)
            if request.param == "edited":
                edit(durable_of(coding), set_first(text="likes mate"))
            return bool(request.param == "edited")

        return crash

    @pytest.mark.parametrize("to", ["coding", MAIN])
    async def test_found_after_a_crash_between_line_and_file(
        self,
        coding: Memory,
        restart: Restart,
        root: Path,
        crashed: Callable[[str], Awaitable[bool]],
        to: str,
    ) -> None:
        left = MAIN if to == "coding" else "coding"
        await verbs.switch(coding, ANN, left)
        edited = await crashed(to)
        later = restart()
        assert await texts(later) == ["likes tea", "works at Acme", "uses vim"][: 3 if to == "coding" else 2]
        assert (await texts(later, branch=left))[0] == ("likes mate" if edited else "likes tea")
        assert len(commits_of(coding)) == 3 + edited
        await check_agreed(later, restart, root)

    async def test_found_after_a_crash_onto_an_empty_branch(
        self, memory: Memory, restart: Restart, root: Path
    ) -> None:
        await verbs.create_branch(memory, ANN, "coding")
        await memory.change(ANN, "why", remember("likes tea"))
        content = durable_of(memory).read_bytes()
        await verbs.switch(memory, ANN, "coding")
        durable_of(memory).write_bytes(content)
        edit(durable_of(memory), set_first(text="likes mate"))
        later = restart()
        assert await texts(later) == []
        assert await texts(later, branch=MAIN) == ["likes mate"]
        assert [path.name for path in memory.durable_folder.iterdir()] == ["123.json"]
        await check_agreed(later, restart, root)

    async def test_an_edit_on_an_empty_branch_is_an_edit(
        self, memory: Memory, restart: Restart, root: Path
    ) -> None:
        await verbs.create_branch(memory, ANN, "coding")
        await verbs.switch(memory, ANN, "coding")
        edit(durable_of(memory), lambda file: file["items"].append({"kind": "tool", "text": "uses vim"}))
        (fault,) = inspect.held(root, ANN).faults
        assert fault.startswith("123.json was edited")
        assert await texts(memory) == ["uses vim"]
        (commit,) = commits_of(memory)
        assert (commit.branch, commit.message) == ("coding", "edited by hand")
        await check_agreed(memory, restart, root)

    async def test_the_branch_it_pictures_went_meanwhile(
        self, coding: Memory, restart: Restart, root: Path
    ) -> None:
        await verbs.switch(coding, ANN, "coding")
        content = durable_of(coding).read_bytes()
        await verbs.switch(coding, ANN, MAIN)
        await verbs.delete_branch(coding, ANN, "coding")
        durable_of(coding).write_bytes(content)
        edit(durable_of(coding), set_first(text="likes mate"))
        later = restart()
        assert await texts(later) == ["likes mate", "works at Acme"]
        await check_agreed(later, restart, root)


def replica(*texts: str, start: int) -> list[Record]:
    """What another replica wrote on main, one record a minute from `start` (ms) on."""
    records: list[Record] = []
    head = None
    for number, text in enumerate(texts):
        event = added(text, start + number * 60_000)
        commit = Commit(
            branch=MAIN, events=(event,), message="elsewhere", parent_id=head, timestamp=event.timestamp
        )
        records.append(commit)
        head = commit.id
    return records


def taken_in(records: list[Record]) -> Callable[..., tuple[list[Record], None]]:
    """Work that takes a replica's records in."""

    def work(history: Any, now_ms: int, max_items: int) -> tuple[list[Record], None]:
        when = iso_ms(max(history.branches.next_ms(now_ms), ms_of_iso(records[-1].timestamp) + 1))
        return [*records, Ref(action="union", branch="", timestamp=when)], None

    return work


class TestOlderRecordsOfAReplicaAreAppended:
    """They come late and sort early: the file's time still tells which records its writer knew."""

    @pytest.fixture
    async def known(self, memory: Memory, clock: Clock) -> bytes:
        """The file after two of our own commits, ten minutes apart."""
        await memory.change(ANN, "why", remember("likes tea"))
        clock.forward(minutes=10)
        await memory.change(ANN, "why", remember("works at Acme"))
        return durable_of(memory).read_bytes()

    @pytest.mark.parametrize("start", [-30, 0, 5, 9, 10, 60], ids="{} minutes".format)
    async def test_all_is_there_and_the_file_from_before_is_no_edit_until_somebody_edits_it(
        self, memory: Memory, known: bytes, restart: Restart, root: Path, start: int
    ) -> None:
        await memory.act(ANN, taken_in(replica("has a cat", "sings", start=NOW + start * 60_000)))
        assert sorted(await texts(memory)) == ["has a cat", "likes tea", "sings", "works at Acme"]
        await check_agreed(memory, restart, root)
        durable_of(memory).write_bytes(known)
        later = restart()
        assert len(await texts(later)) == len(commits_of(memory)) == 4
        await check_agreed(later, restart, root)
        durable_of(memory).write_bytes(known)
        edit(durable_of(memory), set_first(text="likes mate"))
        later = restart()
        assert sorted(await texts(later)) == ["has a cat", "likes mate", "sings", "works at Acme"]
        await check_agreed(later, restart, root)
        await later.change(ANN, "why", remember("and on"))
        assert (await texts(later))[-1] == "and on"

    @pytest.mark.parametrize("lines", [1, 2])
    async def test_a_crash_in_the_middle_of_taking_them_in(
        self, memory: Memory, known: bytes, restart: Restart, root: Path, lines: int
    ) -> None:
        foreign = replica("has a cat", "sings", start=NOW + 5 * 60_000)
        Subject(ANN, lines_of(memory), max_items=30).record(foreign[:lines], NOW)
        later = restart()
        assert len(await texts(later)) == 2 + lines
        assert len(commits_of(memory)) == 2 + lines
        await check_agreed(later, restart, root)

    async def test_a_branch_that_both_made_stays_with_what_it_has(
        self, memory: Memory, known: bytes, restart: Restart, root: Path
    ) -> None:
        await memory.change(ANN, "why", remember("uses vim"), branch="coding")
        late = Ref(action="create", branch="coding", timestamp=iso_ms(NOW + 90 * 60_000), persona="theirs")
        Subject(ANN, lines_of(memory), max_items=30).record([late], NOW)
        later = restart()
        assert (await texts(later, branch="coding"))[-1] == "uses vim"
        await check_agreed(later, restart, root)
        records: list[Record] = [
            Ref(action="create", branch="coding", timestamp=iso_ms(NOW + 95 * 60_000), persona="again")
        ]
        await later.act(ANN, lambda history, now_ms, most: (records, None))
        assert (await texts(later, branch="coding"))[-1] == "uses vim"
        await check_agreed(later, restart, root)


class TestARecordOfAReplicaThatRestsOnNothingHere:
    async def test_is_damage_at_once_and_not_only_after_a_start(self, memory: Memory) -> None:
        await memory.change(ANN, "a test", remember("one"))
        orphan = Commit(
            branch=MAIN, events=(), message="x", parent_id="0" * 16, timestamp=iso_ms(NOW + 60_000)
        )
        await memory.act(ANN, lambda history, now, most: ([orphan], None))
        with pytest.raises(MemoryFault, match="which is not here; nothing is recorded until it is repaired"):
            await memory.change(ANN, "a test", remember("two"))


class TestADamagedLedgerMovesNoBranch:
    async def test_nothing_is_created_switched_or_deleted(
        self, coding: Memory, restart: Restart, root: Path
    ) -> None:
        lines_of(coding).append(b"{}\n", after=lines_of(coding).head())
        before = fingerprint(root)
        later = restart()
        for act in (
            lambda: verbs.create_branch(later, ANN, "more"),
            lambda: verbs.switch(later, ANN, "coding"),
            lambda: verbs.delete_branch(later, ANN, "coding"),
        ):
            with pytest.raises(MemoryFault, match="repair"):
                await act()
        assert (await later.branches(ANN)).current == MAIN
        assert fingerprint(root) == before

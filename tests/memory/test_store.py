"""The memory of all subjects: RAM before the disk, one writer a subject, faults that lose nothing."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from discoclaw.core.draft import Draft
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Commit, Event, encode_line
from discoclaw.core.view import EMPTY
from discoclaw.memory.stores import Store
from discoclaw.memory.subjects.durable_file import render
from discoclaw.memory.subjects.store import Memory
from tests.memory import child
from tests.memory.kit import (
    ANN,
    BOB,
    Clock,
    commits_of,
    durable_of,
    fingerprint,
    ledger_of,
    lines_of,
    listening,
    remember,
    texts,
    told_by,
)
from tests.tables import naming

Restart = Callable[[], Memory]


class TestAViewIsServedFromRam:
    async def test_a_second_look_needs_no_ledger(self, memory: Memory) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        view = await memory.view(ANN)
        ledger_of(memory).unlink()
        assert await memory.view(ANN) is view

    async def test_it_leaves_ram_after_an_hour_unused_and_comes_back_the_same(
        self, memory: Memory, clock: Clock
    ) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        before = await memory.view(ANN)
        clock.forward(minutes=61)
        await memory.view(BOB)
        assert memory.has_in_ram(BOB)
        assert not memory.has_in_ram(ANN)
        after = await memory.view(ANN)
        assert after is not before
        assert (after, render(after)) == (before, render(before))

    async def test_a_subject_in_use_stays(self, memory: Memory, clock: Clock) -> None:
        view = await memory.view(ANN)
        for _ in range(5):
            clock.forward(minutes=59)
            assert await memory.view(ANN) is view
        assert memory.has_in_ram(ANN)

    async def test_looking_at_somebody_unknown_writes_nothing(self, memory: Memory, root: Path) -> None:
        before = fingerprint(root)
        assert await memory.view(ANN) == EMPTY
        assert fingerprint(root) == before

    async def test_a_subject_that_could_leave_the_folder_is_refused(self, memory: Memory) -> None:
        for subject in ("", "../user-1", "user-1/../2", "user 1", "user-\0"):
            with naming(subject):
                with pytest.raises(MemoryFault):
                    await memory.view(subject)
                with pytest.raises(MemoryFault):
                    await memory.change(subject, "why", remember("likes tea"))


class TestAChangeIsOneCommit:
    async def test_its_outcome_reason_and_metadata(self, memory: Memory) -> None:
        outcome = await memory.change(ANN, "she said so", remember("likes tea"), by="command")
        (commit,) = commits_of(memory)
        assert outcome in (await memory.view(ANN)).items
        assert (commit.message, commit.metadata) == ("she said so", {"by": "command"})

    async def test_one_that_raises_changes_nothing(self, memory: Memory, root: Path) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        view, files = await memory.view(ANN), fingerprint(root)

        def half(draft: Draft) -> None:
            remember("likes coffee")(draft)
            remember("")(draft)

        with pytest.raises(Refused):
            await memory.change(ANN, "why", half)
        assert await memory.view(ANN) is view
        assert fingerprint(root) == files

    async def test_nothing_changed_writes_nothing_and_tells_nobody(self, memory: Memory, root: Path) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        told = listening(memory).subjects
        files = fingerprint(root)
        await memory.change(ANN, "why", remember("Likes  TEA"))
        await memory.change(BOB, "why", lambda draft: None)
        assert fingerprint(root) == files
        assert told == []

    async def test_a_group_has_no_durable_file(self, memory: Memory) -> None:
        await memory.change("group-9", "why", remember("likes tea"))
        assert not memory.durable_folder.exists()
        assert len(commits_of(memory, "group-9")) == 1


class TestManyAtOnceLoseNothing:
    @pytest.mark.every_store
    async def test_many_changes_of_one_subject(self, memory: Memory, restart: Restart) -> None:
        async def talk(place: str) -> None:
            for number in range(6):
                await memory.change(ANN, "why", remember(f"{place} {number}"))

        await asyncio.gather(*(talk(f"place {number}") for number in range(8)))
        expected = {f"place {place} {number}" for place in range(8) for number in range(6)}
        assert set(await texts(memory)) == expected
        assert len(commits_of(memory)) == 48
        assert await restart().view(ANN) == await memory.view(ANN)

    async def test_a_subject_whose_disk_hangs_keeps_no_other_waiting(self, memory: Memory) -> None:
        memory.durable_folder.mkdir()
        os.mkfifo(durable_of(memory))  # reading it blocks until somebody writes
        hanging = asyncio.create_task(memory.view(ANN))
        await memory.change(BOB, "why", remember("likes tea"))
        assert await texts(memory, BOB) == ["likes tea"]
        assert not hanging.done()
        await asyncio.to_thread(durable_of(memory).write_bytes, render(EMPTY))
        assert await hanging == EMPTY

    async def test_changes_whose_callers_were_cancelled_break_no_chain(
        self, memory: Memory, restart: Restart
    ) -> None:
        kept = []
        for number in range(40):
            given_up = asyncio.create_task(memory.change(ANN, "why", remember(f"given up {number}")))
            for _ in range(1 + number % 5):
                await asyncio.sleep(0)
            given_up.cancel()
            kept.append(await memory.change(ANN, "why", remember(f"kept {number}")))
            await asyncio.gather(given_up, return_exceptions=True)
        assert set(kept) <= set((await memory.view(ANN)).items)
        assert commits_of(memory)
        assert await restart().view(ANN) == await memory.view(ANN)


class TestAFaultLosesNothing:
    @pytest.mark.own_store
    def test_a_full_disk_is_a_fault_until_there_is_space(self, tmp_path: Path, store: Store) -> None:
        rooms = ["0", "1", "100", "400"]  # of the nearly 700 bytes the line needs
        outcomes = dict(zip(rooms, told_by(child.commit_full, store, tmp_path, *rooms), strict=True))
        expected = {"fault": True, "same view": True, "same ledger": True, "last": "after"}
        assert outcomes == dict.fromkeys(rooms, expected)

    async def test_a_ledger_that_can_not_be_written(self, memory: Memory, root: Path) -> None:
        (root / "ledger").symlink_to(root / "gone" / "away")
        with pytest.raises(MemoryFault):
            await memory.change(ANN, "why", remember("likes tea"))
        assert await memory.view(ANN) == EMPTY
        (root / "ledger").unlink()
        await memory.change(ANN, "why", remember("likes tea"))
        assert await texts(memory) == ["likes tea"]

    async def test_a_ledger_that_can_not_be_read(self, memory: Memory, root: Path) -> None:
        (root / "ledger").write_text("a file where the folder should be")
        with pytest.raises(MemoryFault, match="cannot be read"):
            await memory.view(ANN)
        (root / "ledger").unlink()
        assert await memory.view(ANN) == EMPTY

    @pytest.mark.own_store
    async def test_a_ledger_that_grew_behind_our_back_takes_nothing(self, memory: Memory) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        content = lines_of(memory).read() + b"mine\n"
        lines_of(memory).replace(content)
        with pytest.raises(MemoryFault, match="changed by somebody else"):
            await memory.change(ANN, "why", remember("likes coffee"))
        assert await texts(memory) == ["likes tea"]
        assert lines_of(memory).read() == content


class TestADurableFileThatCanNotBeWritten:
    """The commit stands, and the file follows when it can."""

    async def test_the_commit_stands_and_the_file_follows_with_the_next_or_with_a_start(
        self, memory: Memory, restart: Restart
    ) -> None:
        memory.durable_folder.write_text("a file where the folder should be")
        await memory.change(ANN, "why", remember("likes tea"))
        view = await memory.view(ANN)
        assert [item.text for item in view.active()] == ["likes tea"]
        assert len(commits_of(memory)) == 1
        assert await restart().view(ANN) == view
        memory.durable_folder.unlink()
        assert await restart().view(ANN) == view
        assert durable_of(memory).read_bytes() == render(view)
        durable_of(memory).unlink()
        await memory.change(ANN, "why", remember("likes coffee"))
        assert durable_of(memory).read_bytes() == render(await memory.view(ANN))

    async def test_a_folder_in_its_place_does_no_harm(self, memory: Memory, restart: Restart) -> None:
        durable_of(memory).mkdir(parents=True)
        await memory.change(ANN, "why", remember("likes tea"))
        assert await texts(memory) == await texts(restart()) == ["likes tea"]
        durable_of(memory).rmdir()
        assert durable_of(memory).exists() is False
        await memory.view(ANN)
        assert durable_of(memory).read_bytes() == render(await memory.view(ANN))


class TestALineThatVerifiesAndMakesNoSense:
    """Hashes prove that a line is as it was written, not that it was written well."""

    @pytest.mark.parametrize(
        "fields",
        [
            {"ext": {"facets": {"links": 5}}},
            {"ext": {"facets": {"links": [[]]}}},
            {"object": "x" * 1001},
            {"object": 7, "predicate": None},
            {"ext": {"item": {"text": "x", "source": {"type": []}}}},
        ],
        ids=["links", "unhashable links", "too long a triple", "a triple of no words", "source"],
    )
    async def test_is_a_fault_or_an_item_and_never_a_crash(
        self, memory: Memory, fields: dict[str, object]
    ) -> None:
        when = "2026-02-03T16:29:35.000Z"
        given = {"event_type": "add", "subject": "user", "predicate": "p", "object": "o", "timestamp": when}
        event = Event(**{**given, **fields})  # type: ignore[arg-type]
        commit = Commit(branch="main", events=(event,), message="", parent_id=None, timestamp=when)
        lines_of(memory).replace(encode_line(commit))
        with contextlib.suppress(MemoryFault):
            await memory.view(ANN)

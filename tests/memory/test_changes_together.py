"""One person's memory, which several processes change at the same time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discoclaw.core.draft import Draft
from discoclaw.core.errors import MemoryFault
from discoclaw.memory.stores import disks
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import ANN, Clock, remember, texts
from tests.memory.processes import InRam, Process, Shared, sharing

EACH = 25


@pytest.fixture
async def four(tmp_path: Path, shared: Shared, clock: Clock) -> AsyncIterator[list[Process]]:
    async with sharing(tmp_path, shared, clock, 4) as processes:
        yield processes


@pytest.fixture
async def two_in_ram(tmp_path: Path, clock: Clock) -> AsyncIterator[list[Process]]:
    async with sharing(tmp_path, InRam(), clock, 2) as processes:
        yield processes


def counted(text: str, runs: list[str]) -> Callable[[Draft], str]:
    """A wish that adds an item, and notes each time it runs."""
    wish = remember(text)

    def noted(draft: Draft) -> str:
        runs.append(text)
        return wish(draft)

    return noted


async def test_follows_a_switch_to_a_branch_that_was_never_read_here(two_in_ram: list[Process]) -> None:
    here, there = two_in_ram
    await here.remember("123", "likes tea")
    await here.memory.change(ANN, "said", remember("likes vim"), branch="coding")
    await here.memory.change(ANN, "said", remember("likes coffee"))
    assert await there.known("123") == ["likes tea", "likes coffee"]
    await verbs.switch(here.memory, ANN, "coding")
    assert await there.known("123") == ["likes tea", "likes vim"]


async def test_records_nothing_that_was_drafted_before_it_lost_touch(two_in_ram: list[Process]) -> None:
    here, _ = two_in_ram
    await here.remember("123", "likes tea")

    def wish(draft: Draft) -> None:
        remember("likes coffee")(draft)
        here.member.in_touch = False  # somebody may erase them from now on

    with pytest.raises(MemoryFault, match="is not known yet, so nothing is recorded"):
        await here.memory.change(ANN, "said", wish)
    here.member.in_touch = True
    assert await here.known("123") == ["likes tea"]


async def test_loses_no_change_and_lets_no_process_starve(four: list[Process]) -> None:
    async def talk(number: int, process: Process) -> None:
        for count in range(EACH):
            await process.memory.change(ANN, "said", remember(f"{number} likes tea {count}"))

    await asyncio.gather(*(talk(number, process) for number, process in enumerate(four)))
    commits = list((await four[0].memory.history(ANN)).commits.values())
    told = [event.ext["item"]["text"] for commit in commits for event in commit.events]
    assert len(commits) == len(told) == len(four) * EACH
    for number in range(len(four)):
        theirs = [one for one in told if one.startswith(f"{number} ")]
        assert theirs == [f"{number} likes tea {count}" for count in range(EACH)]
    for process in four:
        await process.look(f"ledger/{ANN}.jsonl")
        assert sorted(await texts(process.memory)) == sorted(told)


async def test_whoever_was_overtaken_drafts_once_while_others_go_on_writing(
    two_in_ram: list[Process],
) -> None:
    """They then look at the log before they draft, until they find nothing new in it."""
    here, there = two_in_ram
    await here.memory.view(ANN)
    runs: list[str] = []
    for number, expected in enumerate((2, 1, 1)):
        await there.memory.change(ANN, "theirs", remember(f"has a cat {number}"))
        await here.memory.change(ANN, "ours", counted(f"{number}", runs))
        assert runs.count(f"{number}") == expected
    await here.memory.change(ANN, "ours", counted("alone", runs))
    await there.memory.change(ANN, "theirs", remember("has a dog"))
    await here.memory.change(ANN, "ours", counted("again", runs))
    assert (runs.count("alone"), runs.count("again")) == (1, 2)
    await here.look(f"ledger/{ANN}.jsonl")
    assert len(await texts(here.memory)) == 9


async def test_what_is_overtaken_while_it_is_drafted_is_drafted_again(
    tmp_path: Path, clock: Clock, prepared_database: str
) -> None:
    def elsewhere(text: str) -> None:
        with disks(prepared_database, tmp_path / "there") as found:
            asyncio.run(Memory(found, clock=clock).change(ANN, "theirs", remember(text)))

    def overtaken(text: str) -> Callable[[Draft], str]:
        def wish(draft: Draft) -> str:
            runs.append(text)
            if runs.count(text) == 1:
                with ThreadPoolExecutor(1) as threads:
                    threads.submit(elsewhere, f"before {text}").result()
            return remember(text)(draft)

        return wish

    runs: list[str] = []
    with disks(prepared_database, tmp_path / "here") as found:
        memory = Memory(found, clock=clock)
        for text in ("first", "second", "third"):
            await memory.change(ANN, "ours", overtaken(text))
        assert runs == ["first", "first", "second", "second", "third", "third"]
        assert len(await texts(memory)) == 6

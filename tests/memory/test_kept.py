"""Documents beside the ledgers: read once, never written over what somebody else wrote, gone when erased."""

import asyncio
import json
import threading
from pathlib import Path

import pytest

from discoclaw.core.errors import MemoryFault, Overtaken
from discoclaw.memory.kept import Kept
from discoclaw.store.files import in_thread
from discoclaw.store.plain import FileDocuments
from tests.memory.kit import Clock, asides

Notes = dict[str, int]


def _notes(value: object) -> Notes:
    if not isinstance(value, dict):
        raise ValueError("no notes")
    return value


def kept(
    folder: Path | FileDocuments, clock: Clock | None = None, *, may_be_lost: bool = False
) -> Kept[Notes]:
    """Documents as another process, or the next start, has them."""
    clock = clock or Clock()
    return Kept(folder, "notes", _notes, lambda notes: notes, clock=clock, may_be_lost=may_be_lost)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def on_disk(folder: Path, key: str = "a") -> Notes:
    value: Notes = json.loads((folder / f"{key}.json").read_bytes())
    return value


async def count(one: Kept[Notes], name: str = "n") -> bool:
    return await one.change("a", lambda known: {**(known or {}), name: (known or {}).get(name, 0) + 1})


class TestWhatSomebodyElseWrote:
    async def test_is_not_overwritten_but_read_again(self, folder: Path) -> None:
        here, there = kept(folder), kept(folder)
        assert await here.get("a") is None
        assert await count(there, "there")
        with pytest.raises(Overtaken):
            await count(here, "here")
        assert on_disk(folder) == {"there": 1}
        assert await count(here, "here")
        assert on_disk(folder) == {"there": 1, "here": 1} == await here.get("a")

    async def test_is_known_once_it_is_told(self, folder: Path) -> None:
        here, there = kept(folder), kept(folder)
        await here.get("a")
        await count(there)
        assert here.at_hand("a") and here.in_ram("a") is None
        await here.renewed(["notes/b.json", "other/a.json"])
        assert here.at_hand("a")
        await here.renewed(["notes/a.json"])
        assert not here.at_hand("a")
        assert await here.get("a") == {"n": 1}

    async def test_is_not_hidden_by_what_was_being_read_before(self, folder: Path) -> None:
        slow = Slow(folder)
        here = kept(slow)
        await count(kept(folder))
        reading = asyncio.create_task(here.get("a"))
        await in_thread(slow.has_read.wait)
        await count(kept(folder))
        await here.renewed(["notes/a.json"])
        slow.goes_on.set()
        assert await reading == await here.get("a") == {"n": 2}


class TestChanging:
    async def test_of_many_at_once_loses_nothing_and_one_given_up_half_way_is_known_afterwards(
        self, folder: Path
    ) -> None:
        here = kept(folder)
        await asyncio.gather(*(count(here) for _ in range(30)))
        assert on_disk(folder) == {"n": 30}
        for pauses in range(12):
            work = asyncio.create_task(count(here))
            for _ in range(pauses):
                await asyncio.sleep(0)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            assert await here.get("a") == await kept(folder).get("a")
            await count(here)
        assert on_disk(folder) == await here.get("a")

    async def test_that_the_disk_refuses_changes_nothing(self, folder: Path) -> None:
        here = kept(folder)
        folder.write_text("in the way")
        with pytest.raises(MemoryFault, match="cannot be"):
            await count(here)
        folder.unlink()
        assert await count(here)
        assert on_disk(folder) == {"n": 1}


class TestErasing:
    async def test_meets_no_writer_and_leaves_nothing_in_ram(self, folder: Path) -> None:
        here = kept(folder)
        await count(here)
        async with here.alone(["a"]):
            writing = asyncio.create_task(count(here))
            await asyncio.sleep(0.01)
            assert await here.get("a") == on_disk(folder) == {"n": 1}
            (folder / "a.json").unlink()
        await writing
        assert on_disk(folder) == {"n": 1}  # made of nothing that was there before

    async def test_is_not_undone_by_what_was_being_read_before(self, folder: Path) -> None:
        slow = Slow(folder)
        here = kept(slow)
        await count(kept(folder))
        reading = asyncio.create_task(here.get("a"))
        await in_thread(slow.has_read.wait)
        async with here.alone():
            (folder / "a.json").unlink()
        slow.goes_on.set()
        assert await reading is None
        assert await here.get("a") is None


class TestADocumentThatMakesNoSense:
    @pytest.mark.parametrize("may_be_lost", [True, False])
    async def test_counts_as_none_and_is_kept_aside_unless_it_may_be_lost(
        self, folder: Path, may_be_lost: bool
    ) -> None:
        folder.mkdir()
        (folder / "a.json").write_text("[1]")
        here = kept(folder, may_be_lost=may_be_lost)
        assert await here.get("a") is None
        assert [copy.read_text() for copy in asides(folder / "a.json", "corrupt")] == ["[1]"][may_be_lost:]
        assert await count(here)
        assert on_disk(folder) == {"n": 1}


async def test_nobody_waits_for_a_document_of_somebody_else_that_hangs(folder: Path) -> None:
    slow = Slow(folder)
    here = kept(slow)
    hanging = asyncio.create_task(here.get("a"))
    await in_thread(slow.has_read.wait)
    assert await here.get("b") is None
    slow.goes_on.set()
    await hanging


class Slow(FileDocuments):
    """Files of which the first one that is read keeps its reader waiting."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        object.__setattr__(self, "has_read", threading.Event())
        object.__setattr__(self, "goes_on", threading.Event())

    has_read: threading.Event
    goes_on: threading.Event

    def read(self, name: str) -> bytes:
        try:
            return super().read(name)
        finally:
            if not self.has_read.is_set():
                self.has_read.set()
                self.goes_on.wait()

"""Rolling summaries: one small file a conversation, of an exact shape, that a fault never takes away."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.errors import MemoryFault
from discoclaw.core.purge import erasing
from discoclaw.memory.conversations.rolling import NOTHING, Rolling, RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.stores import Store, disks
from discoclaw.store.files import in_thread, session_name
from discoclaw.store.port import CURSORS, ROLLING
from tests.memory import child
from tests.memory.kit import NOW, STAMP, Clock, told_by
from tests.memory.test_kept import Slow
from tests.purging import from_all, from_disk, from_ram
from tests.tables import naming

DM, CHANNEL = "discord:dm:12345", "discord:channel:678"
Restart = Callable[[], RollingMemory]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "rolling"


@pytest.fixture
def again(tmp_path: Path, store: Store, clock: Clock) -> Restart:
    """The summaries as a new start finds them."""
    return lambda: RollingMemory(
        disks(store, tmp_path).used.documents(ROLLING),
        cursors=Cursors(disks(store, tmp_path).used.documents(CURSORS)),
        clock=clock,
    )


@pytest.fixture
def rolling(again: Restart) -> RollingMemory:
    return again()


async def put(rolling: RollingMemory, key: str, summary: str) -> None:
    assert await rolling.put(key, summary, generation=await rolling.generation(key))


def written(folder: Path, content: bytes, key: str = DM) -> Path:
    """A summary's file as somebody else wrote it."""
    folder.mkdir(exist_ok=True)
    path = folder / session_name(key)
    path.write_bytes(content)
    return path


class TestASummaryIsAFile:
    async def test_of_exactly_this_shape_and_name_that_survives_a_restart(
        self, rolling: RollingMemory, folder: Path, again: Restart
    ) -> None:
        assert await rolling.get(DM) == NOTHING
        await rolling.clear(DM)
        assert not folder.exists(), "nothing is written of nothing"
        await put(rolling, DM, "They talk about Köln 🎻.")
        assert (folder / "discord:dm:12345.json").read_text(encoding="utf-8") == (
            '{\n  "summary": "They talk about Köln 🎻.",\n  "updatedAt": 1770136175000\n}\n'
        )
        assert await again().get(DM) == await rolling.get(DM) == Rolling("They talk about Köln 🎻.", NOW)

    async def test_it_leaves_ram_after_an_hour_unused_and_comes_back(
        self, rolling: RollingMemory, folder: Path, clock: Clock
    ) -> None:
        await put(rolling, DM, "a talk")
        (folder / session_name(DM)).write_bytes(b'{"summary": "on disk", "updatedAt": 1}')
        assert (await rolling.get(DM)).summary == "a talk"
        clock.forward(minutes=61)
        assert (await rolling.get(DM)).summary == "on disk"

    async def test_a_later_one_is_later_even_if_the_clock_stands_still(self, rolling: RollingMemory) -> None:
        await put(rolling, DM, "one")
        begun = await rolling.generation(DM)
        await put(rolling, DM, "two")
        assert not await rolling.put(DM, "begun with two", generation=begun)
        assert await rolling.get(DM) == Rolling("two", NOW + 1)


class TestClearing:
    async def test_forgets_this_session_only(self, rolling: RollingMemory, again: Restart) -> None:
        await put(rolling, DM, "private talk")
        await put(rolling, CHANNEL, "public talk")
        await rolling.clear(DM)
        for now in (rolling, again()):
            assert await now.get(DM) == NOTHING
            assert (await now.get(CHANNEL)).summary == "public talk"

    async def test_a_summary_begun_before_it_is_not_stored_whoever_left_ram(
        self, rolling: RollingMemory, again: Restart, clock: Clock
    ) -> None:
        await put(rolling, DM, "a talk")
        begun = await rolling.generation(DM)
        await rolling.clear(DM)
        for minutes in (0, 61):
            clock.forward(minutes=minutes)
            await rolling.get(CHANNEL)
            assert not await rolling.put(DM, "a talk, and more", generation=begun)
            assert await rolling.get(DM) == await again().get(DM) == NOTHING

    async def test_what_was_given_up_half_way_never_lands_on_what_came_after(
        self, rolling: RollingMemory, again: Restart
    ) -> None:
        for number in range(20):
            given_up = asyncio.create_task(put(rolling, DM, f"given up {number}"))
            for _ in range(1 + number % 5):
                await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            await put(rolling, DM, f"kept {number}")
            assert (await again().get(DM)).summary == (await rolling.get(DM)).summary == f"kept {number}"


class TestErasing:
    async def test_hides_what_is_to_go_and_stores_nothing_that_was_made_of_it(
        self, rolling: RollingMemory, folder: Path
    ) -> None:
        for key in (DM, CHANNEL):
            await put(rolling, key, "a talk")
        begun = await rolling.generation(DM)
        purge = erasing("user-12345", NOW, frozenset({DM}))
        from_ram(rolling, purge)
        assert (folder / session_name(DM)).exists()
        assert await rolling.get(DM) == NOTHING
        assert (await rolling.get(CHANNEL)).summary == "a talk"
        assert not await rolling.put(DM, "a talk, and more", generation=begun)
        await from_disk(rolling, purge)
        (folder / session_name(DM)).unlink()
        rolling.purge(purge, "done")
        assert await rolling.get(DM) == NOTHING
        await put(rolling, DM, "later")
        assert (await rolling.get(DM)).summary == "later"

    async def test_hides_what_is_being_read_as_it_begins(self, folder: Path, clock: Clock) -> None:
        await put(RollingMemory(folder, cursors=Cursors(folder.parent), clock=clock), DM, "a talk")
        slow = Slow(folder)
        rolling, purge = (
            RollingMemory(slow, cursors=Cursors(folder.parent), clock=clock),
            erasing("user-12345", NOW, frozenset({DM})),
        )
        reading = asyncio.create_task(rolling.get(DM))
        await in_thread(slow.has_read.wait)
        from_ram(rolling, purge)
        slow.goes_on.set()
        assert await reading == NOTHING

    async def test_hides_what_could_not_be_removed(self, rolling: RollingMemory, folder: Path) -> None:
        await put(rolling, DM, "a talk")
        purge = erasing("user-12345", NOW, frozenset({DM}))
        await from_all(rolling, purge)
        assert (folder / session_name(DM)).exists()
        assert await rolling.get(DM) == NOTHING


class TestWhatSomebodyElseWrote:
    async def test_what_the_typescript_bot_wrote_besides_is_ignored(
        self, rolling: RollingMemory, folder: Path
    ) -> None:
        value = {
            "summary": "a talk",
            "updatedAt": 5,
            "regeneratedAt": 4,
            "turnsSinceUpdate": 3,
            "continuationCapsule": {"currentFocus": "tests"},
        }
        path = written(folder, json.dumps(value).encode())
        assert await rolling.get(DM) == Rolling("a talk", 5)
        assert list(folder.iterdir()) == [path]

    async def test_half_an_emoji_where_that_bot_cut_is_made_text_again(
        self, rolling: RollingMemory, folder: Path
    ) -> None:
        written(folder, b'{"summary": "a violin \\ud83c", "updatedAt": 5}')
        assert (await rolling.get(DM)).summary.encode().startswith(b"a violin")

    async def test_what_is_no_summary_is_kept_aside(self, rolling: RollingMemory, folder: Path) -> None:
        for number, content in enumerate(
            (
                b"",
                b"{",
                b"\xff",
                b"[]",
                b"[" * 100_000,
                b"{}",
                b'{"summary": "x"}',
                b'{"summary": null, "updatedAt": 1}',
                b'{"summary": "x", "updatedAt": "now"}',
                b'{"summary": "x", "updatedAt": true}',
                b'{"summary": "x", "updatedAt": 1e300}',
            )
        ):
            with naming(content):
                key = f"{DM}{number}"
                path = written(folder, content, key)
                assert await rolling.get(key) == NOTHING
                (aside,) = folder.glob(f"{path.name}*")
                assert (aside.name, aside.read_bytes()) == (f"{path.name}.corrupt-{STAMP}", content)
                await put(rolling, key, "a talk")
                assert len(list(folder.glob(f"{path.name}*"))) == 2

    async def test_no_session_key_leaves_the_folder(
        self, rolling: RollingMemory, tmp_path: Path, folder: Path
    ) -> None:
        for key in ("../../etc/passwd", "/etc/passwd", "a/../b", "..", "\0", "é" * 50):
            with naming(key):
                await put(rolling, key, "a talk")
                assert {path.parent for path in tmp_path.rglob("*.json")} == {folder}


class TestAFaultKeepsTheOldSummary:
    def test_a_full_disk(self, folder: Path) -> None:
        outcome: dict[str, Any] = told_by(child.summarise_full, folder)
        assert "cannot be written" in outcome.pop("fault")
        assert outcome == {"ram": "old", "disk": "old", "names": ["s.json"]}

    async def test_a_file_that_can_not_be_read_is_a_fault_until_it_can(
        self, rolling: RollingMemory, folder: Path
    ) -> None:
        (folder / session_name(DM)).mkdir(parents=True)
        with pytest.raises(MemoryFault, match="cannot be read"):
            await rolling.get(DM)
        (folder / session_name(DM)).rmdir()
        assert await rolling.get(DM) == NOTHING

    async def test_a_file_that_can_not_be_cleared_is_a_fault_and_stays(
        self, rolling: RollingMemory, folder: Path
    ) -> None:
        await put(rolling, DM, "a talk")
        (folder / session_name(DM)).unlink()
        (folder / session_name(DM)).mkdir()
        with pytest.raises(MemoryFault, match="cannot be written"):
            await rolling.clear(DM)
        assert (await rolling.get(DM)).summary == "a talk"

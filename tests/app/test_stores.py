"""The whole bot on another store: the same talk, one file; and a bot that remembers nobody."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from discoclaw.core.autosave import AutoSave
from discoclaw.core.errors import MemoryFault
from tests.app.conftest import Start, World
from tests.cli.shell import Shell
from tests.memory.child import full_at
from tests.memory.leftovers import traces

CANARY = "Kanarie-Ü🐦-4711"


def kept(world: World) -> list[str]:
    """The files below `data/memory`, but for the lock and its note."""
    root = world.folder / "data" / "memory"
    return sorted(str(path.relative_to(root)) for path in root.rglob("[!.]*") if path.is_file())


async def talk(world: World) -> None:
    """Enough for the loops, in a DM and in a channel, and a command."""
    for _ in range(2):
        await world.ann.send(world.general, f"I like {CANARY}")
        await world.ann.send_dm("I prefer tea")
    await world.ann.send(world.general, "!memory remember I use zsh")
    await world.settle()


class TestTheDatabase:
    @pytest.mark.design(154)
    async def test_holds_all_that_is_remembered_in_one_file_and_outlives_a_restart(
        self, start: Start
    ) -> None:
        async with start(store="sqlite") as world:
            await talk(world)
            await world.restart()
            await world.ann.send(world.dev, "Do I use zsh or bash?")
            assert "zsh" in world.answer(world.dev)
            await world.ann.send(world.general, "!memory")
            assert CANARY in world.answer(world.general)
            key = f"discord:channel:{world.general.id}"
            assert CANARY in (await world.app.storage.summaries.get(key)).summary
            await world.ann.send(world.general, "!memory verify")
            assert "Your history is intact" in world.answer(world.general)
        assert kept(world) == ["memory.sqlite"]

    async def test_an_erasing_leaves_no_byte(self, start: Start) -> None:
        async with start(store="sqlite", memory_channel=None) as world:
            await talk(world)
            erased = await world.memory.erase(f"user-{world.ann.id}")
            assert erased.left == ()
            assert traces(world.folder / "data", CANARY, "zsh") == []
            await world.ann.send(world.general, "!memory remember I use fish")
            await world.ann.send(world.general, "!memory")
            assert "fish" in world.answer(world.general)

    async def test_questions_and_the_mirror_follow_it(self, start: Start) -> None:
        async with start(store="sqlite") as world:
            await world.restart(memory_channel=str(world.dev.id))
            await talk(world)
            assert any("I use zsh" in text for text in world.shown(world.dev))
            await world.restart()
            before = world.shown(world.dev)
            await world.settle()
            assert world.shown(world.dev) == before

    async def test_one_that_is_damaged_stops_the_start(self, start: Start) -> None:
        async with start(store="sqlite") as world:
            await talk(world)
        file = Path(world.folder / "data" / "memory" / "memory.sqlite")
        file.write_bytes(b"no database" * 1000)
        with pytest.raises(MemoryFault, match="is damaged"):
            async with start(store="sqlite"):
                pass
        assert file.read_bytes() == b"no database" * 1000

    async def test_on_a_full_disk_it_starts_is_read_and_goes_on_when_there_is_space(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        everything = AutoSave(everywhere=True)
        async with start(store="sqlite", auto_save=everything) as world, AsyncExitStack() as disk:
            await talk(world)
            await world.restart(meanwhile=lambda: disk.enter_context(full_at(0)))
            await world.ann.send(world.dev, "Do I use zsh or bash?")
            assert "zsh" in world.answer(world.dev)
            await world.ann.send(world.general, "!memory remember I use vim")
            assert "nothing has changed" in world.answer(world.general)
            await world.settle()
            file = world.folder / "data" / "memory" / "memory.sqlite"
            assert f"{file}: the disk fails, or is full" in caplog.text
            await disk.aclose()
            await world.ann.send(world.general, "!memory remember I use vim")
            assert world.answer(world.general) == "Remembered: I use vim"
            await world.settle()
            found = await asyncio.to_thread(Shell(world.folder).run, "list", DISCOCLAW_STORE="sqlite")
            assert str(world.ann.id) in found.stdout  # others read it again, too

    async def test_nor_does_a_full_disk_stop_the_first_start(self, start: Start) -> None:
        with full_at(0):
            async with start(store="sqlite") as world:
                await world.ann.send(world.general, "hello")
                assert world.shown(world.general)[-1] != "hello"
                await world.ann.send(world.general, "!memory remember I use vim")
                assert "nothing has changed" in world.answer(world.general)
        async with start(store="sqlite") as world:
            await world.ann.send(world.general, "!memory remember I use vim")
            assert world.answer(world.general) == "Remembered: I use vim"


class TestNone:
    @pytest.mark.design(116, 190)
    async def test_the_bot_answers_and_nothing_of_anybody_is_written(self, start: Start) -> None:
        async with start(store="none", auto_save=AutoSave(everywhere=True)) as world:
            await talk(world)
            assert "switched off" in world.answer(world.general)
            assert "DISCOCLAW_STORE" in world.answer(world.general)
            await world.ann.send(world.general, "hello")
            assert world.shown(world.general)[-1] != "hello"
            assert not world.app.storage.remembers
            assert not world.app.storage.sums_up
        assert [name for name in kept(world) if not name.startswith("cursors/")] == []
        assert traces(world.folder / "data", CANARY, "zsh", str(world.ann.id)) == []

    async def test_who_opts_out_is_believed_later(self, start: Start) -> None:
        async with start(store="none") as world:
            await world.ann.send(world.general, "!memory optout")
            await world.restart(store="sqlite")
            await world.ann.send(world.general, f"I like {CANARY}")
            await world.settle()
        assert traces(world.folder / "data", CANARY) == []

"""The whole bot on another store: the same talk, one file; and a bot that remembers nobody."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from discoclaw.core.autosave import AutoSave
from discoclaw.core.errors import MemoryFault
from discoclaw.memory.disk.postgres.connection import Connection
from tests.app.conftest import Start, World
from tests.cli.shell import Shell
from tests.conftest import STORES
from tests.memory.child import full_at
from tests.memory.leftovers import rows_with, traces
from tests.servers.line import Line
from tests.servers.postgres import Postgres

CANARY = "Kanarie-Ü🐦-4711"


def kept(world: World) -> list[str]:
    """The files below `data/memory`, but for the lock, its note, and the number of the data's version."""
    root = world.folder / "data" / "memory"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("[!.]*") if path.is_file())
    return [name for name in found if name != "version.json"]


async def talk(world: World) -> None:
    """Enough for the loops, in a DM and in a channel, and a command."""
    for _ in range(2):
        await world.ann.send(world.general, f"I like {CANARY}")
        await world.ann.send_dm("I prefer tea")
    await world.ann.send(world.general, "!memory remember I use zsh")
    await world.settle()


@pytest.mark.parametrize("store", STORES[1:], indirect=True)
class TestADatabase:
    @pytest.mark.design(154)
    async def test_holds_all_that_is_remembered_and_outlives_a_restart(
        self, start: Start, store: str
    ) -> None:
        async with start(store=store) as world:
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
        assert kept(world) == (["memory.sqlite"] if store == "sqlite" else [])

    async def test_keeps_no_byte_of_who_is_erased(self, start: Start, store: str) -> None:
        async with start(store=store, memory_channel=None) as world:
            await talk(world)
            erased = await world.memory.erase(f"user-{world.ann.id}")
            assert erased.left == ()
            assert traces(world.folder / "data", CANARY, "zsh") == []
            assert rows_with(world.memory.disk, CANARY, "zsh") == []
            await world.ann.send(world.general, "!memory remember I use fish")
            await world.ann.send(world.general, "!memory")
            assert "fish" in world.answer(world.general)

    async def test_is_followed_by_questions_and_the_mirror(self, start: Start, store: str) -> None:
        async with start(store=store) as world:
            await world.restart(memory_channel=str(world.dev.id))
            await talk(world)
            assert any("I use zsh" in text for text in world.shown(world.dev))
            await world.restart()
            before = world.shown(world.dev)
            await world.settle()
            assert world.shown(world.dev) == before


class TestSqlite:
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


class TestPostgres:
    async def test_commands_of_the_terminal_work_while_the_bot_runs(
        self, start: Start, prepared_database: str
    ) -> None:
        async with start(store=prepared_database) as world:
            await talk(world)
            shell, settings = Shell(world.folder), {"DISCOCLAW_STORE": prepared_database}
            said = await asyncio.to_thread(shell.run, "show", str(world.ann.id), **settings)
            assert "I use zsh" in said.stdout
            done = await asyncio.to_thread(shell.run, "erase", str(world.ann.id), "--yes", **settings)
            assert done.exit_code == 0, done.output
            checked = await asyncio.to_thread(shell.run, "verify", "--repair", **settings)
            assert "no problems" in checked.stdout, checked.output
        assert rows_with(world.memory.disk, CANARY, "zsh") == []

    async def test_who_opted_out_stays_so_when_it_is_used_after_files(
        self, start: Start, prepared_database: str
    ) -> None:
        async with start(store="files") as world:
            await world.ann.send(world.general, "!memory optout")
            await world.restart(store=prepared_database)
            await world.ann.send(world.general, f"I like {CANARY}")
            await world.settle()
            assert not (world.folder / "data" / "memory" / "choices.json").exists()
            assert rows_with(world.memory.disk, CANARY) == []

    async def test_that_says_nothing_holds_up_no_answer_and_is_used_again_later(
        self, start: Start, postgres: Postgres, prepared_database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Connection, "silence_s", 0.3)  # simcord waits for every thread that hangs
        with Line(postgres.port) as line:
            url = f"{line.url(prepared_database)}?connect_timeout=2"
            # What waits for its lease would keep the simulated Discord waiting too.
            async with start(store=url, durable_every=100, summary_every=100) as world:
                await world.ann.send(world.general, "!memory remember I use zsh")
                await world.settle()
                line.hold()
                await world.ann.send(world.general, "hello")
                assert world.shown(world.general)[-1] != "hello"
                await world.ann.send(world.general, "!memory remember I use vim")
                assert "nothing has changed" in world.answer(world.general).lower()
                line.mend()
                async with asyncio.timeout(30):
                    while not world.app.storage.processes.in_touch:  # noqa: ASYNC110 - it tells nobody
                        await asyncio.sleep(0.05)
                await world.ann.send(world.general, "!memory remember I use fish")
                await world.ann.send(world.general, "!memory")
                assert "fish" in world.answer(world.general)
                assert "zsh" in world.answer(world.general)

    async def test_the_password_is_in_no_log_and_no_error(
        self, start: Start, prepared_database: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        secret = prepared_database.replace("discoclaw@", "discoclaw:Geheim-4711@")
        async with start(store=secret) as world:
            await talk(world)
            assert "Geheim" not in repr(world.app.storage.memory.disk)
        caplog.set_level("DEBUG")
        with pytest.raises(MemoryFault) as refused:
            async with start(store=f"{secret}x"):
                pass
        assert "there is no database" in str(refused.value)
        assert "Geheim" not in caplog.text + str(refused.value)


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

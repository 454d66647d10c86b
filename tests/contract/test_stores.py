"""What is remembered in another place than files: a database, or nowhere; and a place that fails."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.contract.brain import likes, sum_up
from tests.contract.world import Start, World
from tests.memory.child import full_at

CANARY = "Kanarie-Ü🐦-4711"
ALL: dict[str, Any] = {"auto_save": "all"}
LONG = pytest.mark.long


def kept(world: World) -> list[str]:
    """The files below `data/memory`, but for the lock, its note, and the number of the data's version."""
    root = world.data / "memory"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("[!.]*") if path.is_file())
    return [name for name in found if name != "version.json"]


async def talk(world: World) -> None:
    """Enough for the loops, in a DM and in a channel, and a command."""
    world.brain.writes("upserts", likes)
    world.brain.writes("summary", sum_up)
    for _ in range(2):
        await world.says(world.ann, world.general, f"I like tea and {CANARY}")
        await world.says(world.ann, world.ann_dm, "I like cake")
    await world.remember(world.ann, f"I use zsh, says {CANARY}")


class TestADatabase:
    @pytest.mark.design(154)
    @pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=LONG)], indirect=True)
    async def test_holds_all_that_is_remembered_outlives_a_restart_and_keeps_no_byte_of_who_is_erased(
        self, start: Start, store: str
    ) -> None:
        async with start(store=store) as world:
            await talk(world)
            await world.restart(memory_channel=str(world.dev.id))
            await world.says(world.ann, world.general, "Do I use zsh or bash?")
            assert "zsh" in world.prompt
            assert CANARY in await world.says(world.ann, world.general, "!memory")
            assert "history is intact" in await world.says(world.ann, world.general, "!memory verify")
            await world.says(world.bob, world.general, "What did we talk about?")
            assert f"ann: I like tea and {CANARY}" in world.prompt
            await world.remember(world.ann, "I play the violin")
            assert any("violin" in one for one in world.shown(world.dev))
            shown = await asyncio.to_thread(world.cli, "memory", "list", DISCOCLAW_STORE=store)
            assert str(world.ann.id) in shown.stdout
            await world.says(world.ann, world.general, "!memory erase --yes")
            assert world.files_with(CANARY) == world.files_with("violin") == []
            checked = await asyncio.to_thread(world.cli, "memory", "verify", DISCOCLAW_STORE=store)
            assert checked.exit_code == 0, checked.output
            shown = await asyncio.to_thread(world.cli, "memory", "list", DISCOCLAW_STORE=store)
            assert str(world.ann.id) not in shown.stdout
            await world.remember(world.ann, "I use fish")
            assert "fish" in await world.says(world.ann, world.general, "!memory")
        assert kept(world) == (["memory.sqlite"] if store == "sqlite" else [])


class TestSqlite:
    async def test_on_a_full_disk_starts_is_read_and_goes_on_when_there_is_space(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with start(store="sqlite", **ALL) as world, AsyncExitStack() as disk:
            await world.remember(world.ann, "I use zsh")
            await world.restart(meanwhile=lambda: disk.enter_context(full_at(0)) and None)
            await world.says(world.ann, world.general, "Do I use zsh or bash?")
            assert "I use zsh" in world.prompt
            failed = await world.says(world.ann, world.general, "!memory remember I use vim")
            assert "nothing has changed" in failed
            file = world.data / "memory" / "memory.sqlite"
            assert f"{file}: the disk fails, or is full" in caplog.text
            await disk.aclose()
            done = await world.says(world.ann, world.general, "!memory remember I use vim")
            assert done.startswith("Remembered: I use vim")

    async def test_that_is_damaged_stops_the_start_and_is_left_as_it_is(self, start: Start) -> None:
        with full_at(0):  # which stops no first start
            async with start(store="sqlite") as world:
                assert await world.says(world.ann, world.general, "hello") == "ok"
        async with start(store="sqlite") as world:
            await world.remember(world.ann, "I use zsh")
            file, wrong = world.data / "memory" / "memory.sqlite", b"no database" * 1000
            await world.stop()
            good = file.read_bytes()
            with pytest.raises(Exception, match="is damaged"):
                await world.restart(meanwhile=lambda: file.write_bytes(wrong))
            assert file.read_bytes() == wrong
            await world.restart(meanwhile=lambda: file.write_bytes(good))
            assert "I use zsh" in await world.says(world.ann, world.ann_dm, "!memory show")


class TestPostgres:
    @pytest.mark.long
    async def test_is_used_by_the_terminal_beside_the_bot_and_its_password_is_in_no_log(
        self, start: Start, prepared_database: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG")
        secret = prepared_database.replace("discoclaw@", "discoclaw:Geheim-4711@")
        async with start(store="files") as world:
            await world.says(world.bob, world.general, "!memory optout")
            await world.restart(store=secret)
            world.brain.writes("upserts", likes)
            await world.says(world.bob, world.general, "I like zebras")  # who opted out before
            assert world.memories(world.bob) == []
            await talk(world)
            given = {"DISCOCLAW_STORE": secret}
            said = await asyncio.to_thread(world.cli, "memory", "show", str(world.ann.id), **given)
            assert "I use zsh" in said.stdout
            done = await asyncio.to_thread(world.cli, "memory", "erase", str(world.ann.id), "--yes", **given)
            assert done.exit_code == 0, done.output
            checked = await asyncio.to_thread(world.cli, "memory", "verify", "--repair", **given)
            assert "no problems" in checked.stdout, checked.output
        with pytest.raises(Exception, match="there is no database") as refused:
            async with start(store=f"{secret}x"):
                pass
        assert "Geheim" not in caplog.text + str(refused.value) + said.output + done.output


class TestNone:
    @pytest.mark.design(116, 190)
    async def test_the_bot_answers_nothing_of_anybody_is_written_and_who_opts_out_is_believed_later(
        self, start: Start
    ) -> None:
        async with start(store="none", **ALL) as world:
            await talk(world)
            assert "switched off" in world.answer(world.general)
            assert "DISCOCLAW_STORE" in world.answer(world.general)
            assert await world.says(world.ann, world.general, "hello") == "ok"
            assert [name for name in kept(world) if not name.startswith("cursors/")] == []
            assert world.files_with(CANARY) == world.files_with(str(world.ann.id)) == []
            assert world.background("upserts") == world.background("summary") == []
            await world.says(world.ann, world.general, "!memory optout")
            await world.restart(store="sqlite")
            await world.says(world.ann, world.general, f"I like {CANARY}")
            assert world.files_with(CANARY) == []

"""What an admin does in the terminal beside a running bot, on a store that both share, holds in the bot."""

import asyncio
import json

import pytest
from typer.testing import Result

from tests.contract.world import Start, World
from tests.memory.leftovers import rows_with, traces

pytestmark = pytest.mark.long
WORDS = "Kanarie-4711"


async def discoclaw(world: World, database: str, *words: str) -> Result:
    """Run a command as an admin does, while the bot goes on."""
    return await asyncio.to_thread(world.cli, *words, DISCOCLAW_STORE=database)


async def talk(world: World) -> None:
    await world.ann.send(world.general, f"!memory remember I like {WORDS}")
    await world.ann.send(world.general, f"Where does my {WORDS} live?")
    await world.settle()


class TestErasing:
    async def test_empties_the_bots_ram_and_every_row(self, start: Start, prepared_database: str) -> None:
        async with start(store=prepared_database, response_cache=True) as world:
            await talk(world)
            assert WORDS in world.prompt
            ann = str(world.ann.id)
            done = await discoclaw(world, prepared_database, "memory", "erase", ann, "--yes")
            assert done.exit_code == 0, done.output
            assert rows_with(world.app.storage.memory.disk, WORDS, ann) == []
            assert traces(world.data, WORDS, ann) == []
            await world.bob.send(world.general, "What did Ann say?")
            assert WORDS not in world.prompt
            await world.ann.send(world.general, "What do you know?")
            assert WORDS not in world.prompt
            assert world.app.storage.memory.erased_at(f"user-{ann}") > 0


class TestForgetting:
    async def test_leaves_the_bots_next_prompt(self, start: Start, prepared_database: str) -> None:
        async with start(store=prepared_database) as world:
            await talk(world)
            ann = str(world.ann.id)
            done = await discoclaw(world, prepared_database, "memory", "forget", ann, f"I like {WORDS}")
            assert done.exit_code == 0, done.output
            await world.app.storage.processes.look([f"ledger/user-{ann}.jsonl"])
            await world.ann.send(world.general, "What do you know?")
            assert f"I like {WORDS}" not in world.prompt


class TestConfiguring:
    async def test_applies_from_the_next_message_on(self, start: Start, prepared_database: str) -> None:
        async with start(store=prepared_database) as world:
            await world.ann.send(world.general, "hello")
            shown = len(world.shown(world.general))
            done = await discoclaw(world, prepared_database, "config", "set", "global", "respond_mode=silent")
            assert done.exit_code == 0, done.output
            await world.app.storage.processes.look(["config.json"])
            await world.ann.send(world.general, "hello?")
            await world.settle()
            assert len(world.shown(world.general)) == shown + 1


class TestTheAudit:
    async def test_finds_what_should_be_gone_and_nothing_else(
        self, start: Start, prepared_database: str
    ) -> None:
        async with start(store=prepared_database) as world:
            await talk(world)
            await world.ann.send(world.general, f"!memory forget I like {WORDS}")
            await world.settle()
            clean = await discoclaw(world, prepared_database, "audit", "privacy")
            assert clean.exit_code == 0, clean.output
            left = json.dumps({"summary": f"Ann likes {WORDS}.", "updatedAt": 1}).encode()
            name = f"discord:channel:{world.general.id}.json"
            world.app.storage.memory.disk.documents("rolling").write(name, left)
            found = await discoclaw(world, prepared_database, "audit", "privacy")
            assert found.exit_code == 1
            assert name in found.output


@pytest.fixture(autouse=True)
def _long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine may hold up a bot for longer than a lease lasts."""
    monkeypatch.setattr("discoclaw.memory.processes.LEASE_S", 20.0)

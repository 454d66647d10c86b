"""Memories of each category leave when they should, through the whole bot."""

import json
from typing import Any

import pytest

from discoclaw.cli.main import cli
from discoclaw.loops.hygiene import Expired
from tests.app.conftest import Start, World
from tests.app.of_model_tools import call
from tests.cli.shell import Runner
from tests.session.scene import ScriptedModel

DAY = 86_400_000
BLOCK = ["[Memory context]", "[/Memory context]"]


def command(world: World, *words: str) -> str:
    """What a command of the terminal prints about the bot's data."""
    done = Runner().invoke(cli, words, env={"DISCOCLAW_DATA_DIR": str(world.folder / "data")})
    assert done.exit_code == 0, done.output
    return done.stdout


def snapshot(world: World) -> list[dict[str, Any]]:
    """All of Ann's entries."""
    words = ("memory", "export", str(world.ann.id), "--format", "snapshot", "--output", "-")
    entries: list[dict[str, Any]] = json.loads(command(world, *words))
    return entries


def now(world: World) -> int:
    return int(world.env.now().timestamp() * 1000)


class TestCategories:
    @pytest.mark.design(95, 96, 97, 104)
    async def test_say_what_leaves_and_when(self, start: Start, caplog: pytest.LogCaptureFixture) -> None:
        model = ScriptedModel()
        settings: dict[str, Any] = {"knowledge_decay": True, "knowledge_survival_chance": 0.0}
        async with start(model, extraction_enabled=False, **settings) as world:
            for category in ("core", "knowledge", "conversation"):
                given = {"text": f"User has a {category} cat.", "key": category, "category": category}
                await call(world, model, ("memory_store", given))

            async def left(days: float) -> tuple[Expired, list[str]]:
                gone = await world.hygiene.run(now(world) + int(days * DAY))
                return gone, sorted(one["key"] for one in snapshot(world))

            assert await left(6.9) == (Expired(), ["conversation", "core", "knowledge"])
            assert await left(8.1) == (Expired(conversation=1), ["core", "knowledge"])
            assert await left(29) == (Expired(), ["core", "knowledge"])
            with caplog.at_level("INFO"):
                assert await left(32) == (Expired(idle=1, lines=3), ["core"])
            (line,) = [one for one in caplog.messages if one.startswith("hygiene: ")]
            assert "1 idle items left, 0 proposals lapsed, and 3 lines of a log" in line
            assert await left(9_000) == (Expired(), ["core"])

"""What single settings do in the whole bot: depth of links, the archive, folders, and recency."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from discoclaw.cli.common import now_ms
from discoclaw.cli.main import cli
from discoclaw.core.draft import Draft, Origin
from discoclaw.memory.subjects.store import Memory
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.cli.shell import Runner
from tests.contract.cards import every_page
from tests.memory.kit import Clock
from tests.session.scene import ScriptedModel, calls

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
DAY_S = 86_400


async def archived(world: World) -> str:
    """What /search shows Ann for the word zebra."""
    await world.settle()
    found = await world.ann.slash(world.general, "search", query="zebra")
    return await every_page(world.ann, found.response)


@pytest.mark.design(162)
@pytest.mark.parametrize(("changes", "linked"), [({}, True), ({"enrich_depth": 0}, False)])
async def test_links_are_followed_one_step(start: Start, changes: dict[str, Any], linked: bool) -> None:
    chain = [
        ("memory_store", {"text": "Moe works in Oslo.", "key": "town"}),
        ("memory_store", {"text": "Moe is a vet.", "key": "vet", "links": ["town"]}),
        ("memory_store", {"text": "User has a cat called Miso.", "key": "pet", "links": ["vet"]}),
    ]
    model = ScriptedModel([*(calls(one) for one in chain), "Done."])
    async with start(model, **changes, **QUIET) as world:
        await world.ann.send(world.dev, "please")
        await world.settle()
        await world.ann.send(world.general, "how is my cat?")
        prompt = str(model.requests[-1].turns[0])
        assert "User has a cat called Miso." in prompt
        assert ("Moe is a vet." in prompt) is linked
        assert "Moe works in Oslo." not in prompt


@pytest.mark.design(156)
async def test_all_messages_of_one_second_are_archived_where_an_admin_wants_it(start: Start) -> None:
    said = Scripted(*(f"zebra answer {number}" for number in range(4)))
    async with start(said, auto_save="all", **QUIET) as world:
        begun = world.env.now()
        for number in range(4):
            await world.ann.send(world.general, f"zebra question {number}")
        assert (world.env.now() - begun).total_seconds() <= 1
        found = await archived(world)
        texts = [f"zebra {what} {number}" for what in ("question", "answer") for number in range(4)]
        assert found.count("[open it]") == 8
        assert all(found.count(text) == 1 for text in texts)


@pytest.mark.design(154, 155)
async def test_memories_are_json_files_here_or_elsewhere(start: Start, tmp_path: Path) -> None:
    for changes, folder in (
        ({}, tmp_path / "data" / "memory" / "durable"),
        ({"data_dir": tmp_path / "second", "durable_dir": tmp_path / "elsewhere"}, tmp_path / "elsewhere"),
    ):
        async with start(Scripted(), **changes, **QUIET) as world:
            await world.ann.send(world.general, "!memory remember I like tea")
            (item,) = json.loads((folder / f"{world.ann.id}.json").read_bytes())["items"]
            assert item["text"] == "I like tea"


@pytest.mark.design(165, 175)
@pytest.mark.parametrize(
    ("age", "half_life", "factor"),
    [(0, 30, 1), (30, 30, 0.5), (60, 30, 0.25), (90, 30, 0.125), (90, 0, None)],
)
def test_the_factor_of_recency_halves(tmp_path: Path, age: int, half_life: int, factor: float | None) -> None:
    async def live() -> None:
        memory = Memory(tmp_path / "data" / "memory", clock=Clock(now_ms() - age * DAY_S * 1000))

        def request(draft: Draft) -> None:
            draft.upsert("fact", "User has a red boat.", Origin("inferred"))

        await memory.change("user-123", "a test", request)
        memory.close()

    asyncio.run(live())
    environment = {
        "DISCOCLAW_DATA_DIR": str(tmp_path / "data"),
        "MEMORY_RECENCY_HALF_LIFE": str(half_life * DAY_S),
    }
    result = Runner().invoke(cli, ["recall", "123", "my boat?", "--json"], env=environment)
    (row,) = json.loads(result.stdout)
    assert row["parts"].get("recency") == (None if factor is None else pytest.approx(factor, abs=1e-3))

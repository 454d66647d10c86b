"""Tidying by the model's tool and by the heartbeat, in the whole bot."""

import json
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.item import item_id
from discoclaw.core.patch import Consolidation, Duplicate, Outdated
from tests.app.conftest import Start, World, settings_for
from tests.app.of_model_tools import call
from tests.session.scene import ScriptedModel, until

BACKEND = {
    "subject": "user",
    "predicate": "prefers backend",
    "object": "Python",
    "scope": "work/technical",
    "confidence": 0.8,
}


def ledger(world: World, person: Any = None) -> list[dict[str, Any]]:
    """The commits in somebody's ledger, oldest first."""
    path = world.folder / "data" / "memory" / "ledger" / f"user-{(person or world.ann).id}.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [one for one in records if one["type"] == "commit"]


async def says(world: World, text: str) -> str:
    """What a text command of Ann's is answered."""
    await world.ann.send(world.general, f"!memory {text}")
    return world.answer(world.general)


class TestTools:
    @pytest.mark.design(297)
    async def test_tidying_needs_no_argument_and_returns_a_report(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            assert await call(world, model, ("memory_consolidate", {})) == (False, "Nothing to tidy.")
            texts = ("User likes tea.", "User likes drinking tea.")
            await call(world, model, *(("memory_store", {"text": text}) for text in texts))
            first, second = (item.id for item in (await world.memory.view(f"user-{world.ann.id}")).active())
            model.summaries.append(Consolidation(duplicates=[Duplicate(keep=first, drop=[second])]))
            failed, text = await call(world, model, ("memory_consolidate", {}))
            assert not failed and text.startswith("Tidied: 1 duplicate")
            assert [one["metadata"]["by"] for one in ledger(world)][-1] == "memory_consolidate"


class TestTheHeartbeat:
    @pytest.mark.design(298, 312)
    async def test_tidies_what_changed_every_half_an_hour(self, start: Start, tmp_path: Path) -> None:
        assert settings_for(tmp_path).heartbeat_minutes == 30
        texts = ("User likes tea.", "User likes drinking tea.", "User flew to Oslo in 2019.")
        tea, drinking, oslo = (item_id("fact", text) for text in texts)
        model = ScriptedModel()
        model.summaries.append(
            Consolidation(
                duplicates=[Duplicate(keep=tea, drop=[drinking])], outdated=[Outdated(id=oslo, reason="past")]
            )
        )
        async with start(model, extraction_enabled=False, summary_enabled=False) as world:
            await call(world, model, *(("memory_store", {"text": text}) for text in texts))
            await world.restart(heartbeat_minutes=0.002)  # which is 0.12 seconds
            await until(lambda: "consolidated" in ledger(world)[-1]["metadata"])
            shown = await says(world, "show")
            assert "You like tea." in shown and "(1 memory)" in shown

"""The whole program: what is used is noted, what is over leaves, and an undo in Discord brings it back."""

import json
from typing import Any

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets
from discoclaw.loops.hygiene import Expired
from tests.app.conftest import Start, World

DAY = 86_400_000


def now(world: World) -> int:
    """The simulated present (ms)."""
    return int(world.env.now().timestamp() * 1000)


async def learned(world: World, person: Any, text: str, **facets: str) -> str:
    """Let something be known of a person as if it had been learned from talk; its id."""
    origin = Origin("inferred", said_at=now(world))

    def wish(draft: Draft) -> str:
        return draft.upsert("fact", text, origin, facets=Facets(**facets))[0].id  # type: ignore[arg-type]

    return await world.memory.change(f"user-{person.id}", "a test", wish)


async def texts(world: World, person: Any) -> list[str]:
    return [item.text for item in (await world.memory.view(f"user-{person.id}")).active()]


class TestTheWholeProgram:
    async def test_without_a_word_of_the_admin_only_things_of_the_day_leave(self, start: Start) -> None:
        async with start() as world:
            await learned(world, world.ann, "User likes tea.")
            await learned(world, world.ann, "User flies on Friday.", category="conversation")
            assert await world.hygiene.run(now(world) + 9 * DAY) == Expired(conversation=1)
            assert await world.hygiene.run(now(world) + 4000 * DAY) == Expired()
            assert await texts(world, world.ann) == ["User likes tea."]

    @pytest.mark.design(179, 312, 335)
    async def test_with_decay_knowledge_does_and_an_undo_brings_it_back(self, start: Start) -> None:
        async with start(knowledge_decay=True, knowledge_survival_chance=0.0) as world:
            await learned(world, world.ann, "User likes tea.")
            assert await world.hygiene.run(now(world) + 41 * DAY) == Expired(idle=1)
            assert await texts(world, world.ann) == []
            await world.ann.send(world.general, "!memory undo")
            assert await texts(world, world.ann) == ["User likes tea."]

    @pytest.mark.design(177)
    async def test_what_an_answer_used_is_on_disk_when_the_program_has_ended(self, start: Start) -> None:
        async with start() as world:
            item_id = await learned(world, world.ann, "User likes oolong tea.")
            await world.env.advance_time(60)
            asked_at = now(world)
            await world.ann.send(world.general, "which oolong should I buy?")
            await world.settle()
            path = world.folder / "data" / "memory" / "cursors" / f"access-user-{world.ann.id}.json"
            assert not path.exists()
        assert json.loads(path.read_bytes())[item_id] >= asked_at

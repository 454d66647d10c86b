"""What time does to memories in the whole bot: what counts less, what leaves, and what stays."""

import json
from pathlib import Path
from typing import Any

import pytest

from discoclaw.app.finding import Finding
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets
from discoclaw.loops.hygiene import Expired
from tests.app.conftest import Start, World
from tests.servers.embeddings_api import EmbeddingsServer
from tests.session.scene import ScriptedModel, calls, until

DAY = 86_400_000
QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "heartbeat_minutes": 0}
OLD, NEW = "User has a red boat.", "User has a boat."


def now(world: World) -> int:
    """The simulated present (ms)."""
    return int(world.env.now().timestamp() * 1000)


async def learned(world: World, text: str, author: Any = "inferred", **facets: Any) -> str:
    """Let something be known of Ann; its id."""

    def request(draft: Draft) -> str:
        origin = Origin(author, said_at=now(world))
        return draft.upsert("fact", text, origin, facets=Facets(**facets))[0].id

    return await world.memory.change(f"user-{world.ann.id}", "a test", request)


async def texts(world: World) -> set[str]:
    return {item.text for item in (await world.memory.view(f"user-{world.ann.id}")).active()}


async def recalled(world: World, model: ScriptedModel, query: str) -> list[str]:
    """What memory_recall finds, best first."""
    model.answers.extend([calls(("memory_recall", {"query": query})), "Done."])
    await world.ann.send(world.general, "please")
    await world.settle()
    ((_, text),) = model.results()
    return [line.partition(": ")[2].partition(" [")[0] for line in text.splitlines() if line.startswith("- ")]


def last_uses(world: World) -> Path:
    return world.folder / "data" / "memory" / "cursors" / f"access-user-{world.ann.id}.json"


class TestRecency:
    @pytest.mark.design(165, 176)
    @pytest.mark.parametrize("vectors", [False, True], ids=["words", "vectors"])
    @pytest.mark.parametrize("store", ["files", "sqlite"])
    async def test_counts_where_an_admin_wants_it(self, start: Start, store: str, vectors: bool) -> None:
        model = ScriptedModel()
        async with EmbeddingsServer() as server:
            provider = {"embedding_provider": "ollama", "embedding_url": server.url} if vectors else {}
            async with start(model, store=store, **QUIET, **provider) as world:
                await learned(world, OLD)
                for other in ("User plays chess.", "User is Welsh.", "User sings."):
                    await learned(world, other)
                await world.env.advance_time(10 * 86_400)
                await learned(world, NEW)
                for half_life, first in ((0, OLD), (86_400, NEW)):
                    await world.restart(recency_half_life_s=half_life)
                    if vectors:
                        meaning = world.app.feature(Finding).meaning
                        await until(lambda meaning=meaning: meaning.in_time, seconds=20)  # type: ignore[misc]
                        await meaning.settle()
                    assert (await recalled(world, model, "red boat with a black sail"))[0] == first
            assert ("red boat with a black sail" in server.texts) is vectors


class TestIdleKnowledge:
    @pytest.mark.design(182)
    @pytest.mark.parametrize(("days", "first"), [(15, True), (29.9, False), (30, None)])
    async def test_fades_over_the_second_half_of_the_window(
        self, start: Start, days: float, first: bool | None
    ) -> None:
        model = ScriptedModel()
        async with start(model, knowledge_decay=True, **QUIET) as world:
            await learned(world, OLD)
            await learned(world, "User has a white boat.", category="core")
            await world.env.advance_time(days * 86_400)
            found = await recalled(world, model, "red boat with a black sail")
            assert (found[0] == OLD if OLD in found else None) is first

    @pytest.mark.design(166, 167, 179, 180, 335)
    @pytest.mark.parametrize(
        ("days", "chance", "left"), [(30, 0.0, 0), (30, 1.0, 40), (0, 0.0, 40), (40, 0.0, 40)]
    )
    async def test_leaves_by_chance_after_so_many_days(
        self, start: Start, days: int, chance: float, left: int
    ) -> None:
        changes = {"knowledge_max_idle_days": days, "knowledge_survival_chance": chance}
        async with start(ScriptedModel(), knowledge_decay=True, **changes, **QUIET) as world:
            for number in range(40):
                await learned(world, f"User owns boat {number}.")
            assert await world.hygiene.run(now(world) + 30 * DAY) == Expired()
            assert await world.hygiene.run(now(world) + 31 * DAY) == Expired(idle=40 - left)
            assert len(await texts(world)) == left

    @pytest.mark.design(179, 181)
    async def test_takes_its_links_along_and_leaves_what_is_core(self, start: Start) -> None:
        changes = {"knowledge_decay": True, "knowledge_survival_chance": 0.0}
        async with start(ScriptedModel(), **changes, **QUIET) as world:
            idle = await learned(world, "User owns a boat.", key="boat")
            await learned(world, "User is called Ann.", category="core")
            await learned(world, "User sails.", "stated")

            def link(draft: Draft) -> None:
                one, other = (
                    next(i for i in draft.view.active() if word in i.text) for word in ("boat", "sails")
                )
                draft.link(one, other, Origin("stated"))

            await world.memory.change(f"user-{world.ann.id}", "a test", link)
            assert await world.hygiene.run(now(world) + 400 * DAY) == Expired(idle=1)
            assert await texts(world) == {"User is called Ann.", "User sails."}
            view = await world.memory.view(f"user-{world.ann.id}")
            assert not any(idle in item.facets.links for item in view.active())

    @pytest.mark.design(179)
    async def test_that_survives_has_another_window(self, start: Start) -> None:
        async with start(
            ScriptedModel(), knowledge_decay=True, knowledge_survival_chance=1.0, **QUIET
        ) as world:
            await learned(world, "User owns a boat.")
            await world.env.advance_time(31 * 86_400)
            assert await world.hygiene.run() == Expired()
            await world.restart(knowledge_survival_chance=0.0)
            await world.env.advance_time(29 * 86_400)
            assert await world.hygiene.run() == Expired()
            await world.env.advance_time(2 * 86_400)
            assert await world.hygiene.run() == Expired(idle=1)


class TestShortLived:
    @pytest.mark.design(158, 181)
    async def test_leaves_after_a_week_and_only_by_that_rule(self, start: Start) -> None:
        changes = {"knowledge_decay": True, "knowledge_max_idle_days": 1, "knowledge_survival_chance": 0.0}
        async with start(ScriptedModel(), **changes, **QUIET) as world:
            await learned(world, "User flies on Friday.", category="conversation")
            begun = now(world)
            assert await world.hygiene.run(begun + 604_800_000) == Expired()
            assert await world.hygiene.run(begun + 604_800_001) == Expired(conversation=1)


class TestLastUse:
    @pytest.mark.design(177, 178, 336)
    @pytest.mark.parametrize(("lost", "left"), [(False, {OLD}), (True, set())])
    async def test_is_that_of_storing_or_finding_and_where_it_is_lost_that_of_storing(
        self, start: Start, lost: bool, left: set[str]
    ) -> None:
        model = ScriptedModel()
        async with start(model, knowledge_decay=True, knowledge_survival_chance=0.0, **QUIET) as world:
            found, other = await learned(world, OLD), await learned(world, "User plays chess.")
            begun = now(world)
            await world.restart()
            assert json.loads(last_uses(world).read_bytes()) == {found: begun, other: begun}
            await world.env.advance_time(10 * 86_400)
            assert await recalled(world, model, "red boat") == [OLD]
            await world.restart(meanwhile=last_uses(world).unlink if lost else lambda: None)
            if not lost:
                assert json.loads(last_uses(world).read_bytes()) == {found: begun + 10 * DAY, other: begun}
            assert await world.hygiene.run(begun + 30 * DAY) == Expired()
            assert await world.hygiene.run(begun + 31 * DAY) == Expired(idle=2 - len(left))
            assert await texts(world) == left

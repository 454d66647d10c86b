"""Somebody of whom mostly one thing is remembered asks about just that."""

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.subject import user_subject
from tests.app.conftest import Start, World
from tests.session.scene import ScriptedModel, calls

GARDEN = (
    "Grows tomatoes in the garden.",
    "The garden has a pond with two frogs.",
    "Built a shed in the garden.",
    "Waters the garden every evening.",
    "Keeps bees in the garden.",
    "Wants a greenhouse for the garden.",
)
OTHERS = ("Works at Acme Corp.", "Has a sister called Lena.", "Plays the cello.", "Was born in Utrecht.")


async def remember(world: World) -> None:
    for text in (*GARDEN, *OTHERS):
        await world.ann.send(world.general, f"!memory remember {text}")
    await world.settle()


class TestAWordThatMostMemoriesHave:
    async def test_alone_it_brings_all_of_them_into_the_prompt(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model=model, extraction_enabled=False) as world:
            await remember(world)
            await world.ann.send(world.general, "Tell me about my garden")
            assert [text for text in (*GARDEN, *OTHERS) if text in model.user_turn()] == list(GARDEN)

    async def test_beside_a_rarer_word_it_brings_nothing_more(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model=model, extraction_enabled=False) as world:
            await remember(world)
            await world.ann.send(world.general, "does Lena like my garden?")
            assert [text for text in (*GARDEN, *OTHERS) if text in model.user_turn()] == [OTHERS[1]]

    @pytest.mark.parametrize("query", ["garden", "Ann's garden", "what is planned for the garden?"])
    async def test_the_models_search_finds_them(self, start: Start, query: str) -> None:
        model = ScriptedModel([calls(("memory_search", {"query": query, "limit": 10})), "A lovely garden."])
        async with start(model=model, extraction_enabled=False) as world:
            await remember(world)
            await world.ann.send(world.general, "what do we have?")
            assert world.answer(world.general) == "A lovely garden."
            ((failed, result),) = model.results()
            assert not failed
            assert "No item has these words" not in result
            assert [text for text in (*GARDEN, *OTHERS) if text in result] == list(GARDEN)


class TestInALargeMemory:
    async def test_the_index_on_disk_brings_them_too(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model=model, max_items=10_000, extraction_enabled=False) as world:

            def remember_many(draft: Draft) -> None:
                for number in range(1_500):
                    draft.upsert("fact", f"Planted bulb{number} in the garden.", Origin("stated"))
                for number in range(700):
                    draft.upsert("fact", f"Likes tea of sort{number}.", Origin("stated"))
                draft.upsert("fact", "Talks at length on Sundays.", Origin("stated"))

            await world.memory.change(user_subject(str(world.ann.id)), "a test", remember_many)
            for message in ("tell me about my garden", "let us talk about my garden"):
                await world.ann.send(world.general, message)
                await world.settle()  # the index may have been late for the first one
                await world.ann.send(world.general, message)
                assert model.user_turn().count("in the garden.") > 20
                assert "tea of sort" not in model.user_turn()

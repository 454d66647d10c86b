"""One's own history after taking something back: whole in private, without its words for everybody else."""

from functools import partial
from typing import Any

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import item_id
from tests.app.conftest import Start, World
from tests.app.test_ledger_design import ScriptedModel, call

ID = item_id("fact", "I play the banjo").removeprefix("durable-")


async def took_back(world: World) -> None:
    """Ann said two things in the open, corrected one and forgot the other."""
    for text in (
        "remember I play the banjo",
        "remember I live in Oslo",
        "edit I live in Oslo => I live in Bergen",
        "forget I play the banjo",
    ):
        await world.ann.send(world.general, f"!memory {text}")


async def says(world: World, place: Any, text: str) -> str:
    if place == world.ann_dm:
        await world.ann.send_dm(f"!memory {text}")
    else:
        await world.ann.send(place, f"!memory {text}")
    return world.answer(place)


LOOKS = ["history log", "history view", "history view --at HEAD~2", "history diff HEAD~2", f"why {ID}"]


class TestOneself:
    @pytest.mark.parametrize("look", LOOKS)
    async def test_sees_all_of_it_in_a_dm(self, start: Start, look: str) -> None:
        async with start() as world:
            await took_back(world)
            answer = await says(world, world.ann_dm, look)
            assert "banjo" in answer and "(taken back)" not in answer

    @pytest.mark.parametrize("look", LOOKS)
    async def test_reads_no_word_of_it_in_the_open(self, start: Start, look: str) -> None:
        async with start() as world:
            await took_back(world)
            answer = await says(world, world.general, look)
            assert "(taken back)" in answer
            assert "banjo" not in answer and "Oslo" not in answer
            assert ("Bergen" in answer) == (not look.startswith("why") and "--at" not in look)

    async def test_reads_in_the_open_what_was_brought_back(self, start: Start) -> None:
        async with start() as world:
            await took_back(world)
            await says(world, world.general, "undo")
            answer = await says(world, world.general, "history log")
            assert "banjo" in answer and "Oslo" not in answer

    async def test_sees_what_was_made_private_in_a_dm_only(self, start: Start) -> None:
        async with start() as world:
            await took_back(world)
            await says(world, world.general, "private I live in Bergen")
            assert "Bergen" not in await says(world, world.general, "history log")
            assert "Bergen" in await says(world, world.ann_dm, "history log")

    async def test_asking_why_by_words_finds_nothing_in_the_open(self, start: Start) -> None:
        async with start() as world:
            await took_back(world)
            answer = await says(world, world.general, "why I play the banjo")
            assert "(id " not in answer and "(taken back)" not in answer


class TestTheModel:
    async def test_reads_no_word_of_it_even_in_a_dm(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await took_back(world)
            await world.settle()
            _, log = await call(world, model, ("memory_history", {}))
            _, one = await call(world, model, ("memory_history", {"item": ID}))
            assert "Bergen" in log and "(taken back)" in log and "(taken back)" in one
            assert not {"banjo", "Oslo"} & set(f"{log} {one}".replace("“", " ").split())
            failed, text = await call(world, model, ("memory_history", {"item": "I play the banjo"}))
            assert failed and "no item matches" in text

    async def test_forgets_without_repeating_the_words(self, start: Start) -> None:
        model = ScriptedModel()
        async with start(model, extraction_enabled=False) as world:
            await says(world, world.general, "remember I play the banjo")
            failed, text = await call(world, model, ("memory_forget", {"item": ID}))
            assert not failed and text.startswith("Forgotten: [i") and "banjo" not in text


class TestEvidence:
    async def test_is_not_shown_with_the_words_it_gave(self, start: Start) -> None:
        text = "User plays the banjo."
        async with start() as world:
            origin = Origin("inferred", said_at=1, evidence="my banjo is old")
            wish = partial(Draft.upsert, kind="fact", text=text, origin=origin)
            await world.memory.change(f"user-{world.ann.id}", "learned from talk", wish)
            short = item_id("fact", text).removeprefix("durable-")
            assert "banjo is old" in await says(world, world.general, f"why {short}")
            await says(world, world.general, f"forget {text}")
            answer = await says(world, world.general, f"why {short}")
            assert "(taken back)" in answer and "banjo" not in answer

"""Contradictions that only tidying found: asked about in a DM once a day, unless asking is switched off."""

import json

from discoclaw.core.item import item_id
from tests.app.conftest import Start, World
from tests.app.of_asking import SPACES, Asking, asking, talk
from tests.app.test_approval import DAY_S, says


class TestTidying:
    async def pairs(self, world: World) -> None:
        """Ann remembers three pairs of things, which the model says contradict each other."""
        pairs = []
        for number in range(3):
            words = [f"plan {number} holds", f"plan {number} is off"]
            for text in words:
                await says(world, f"remember {text}")
                await world.env.advance_time(60)
            one, other = (item_id("fact", text) for text in words)
            pairs.append({"older": one, "newer": other, "reason": "both"})
        world.model.facts = [json.dumps({"contradictions": pairs})]
        assert (await says(world, "consolidate")).startswith("Tidied: 3 questions.")
        await world.settle()

    async def test_asks_one_a_day_and_settle_has_them_all(self, start: Start) -> None:
        async with start(Asking()) as world:
            await self.pairs(world)
            assert len(world.ann_dm.history()) == 1
            assert sum("Which is right?" in text for text in world.shown(world.general)) == 0
            await talk(world)
            assert len(world.ann_dm.history()) == 1
            await world.restart()
            await world.env.advance_time(DAY_S)
            await talk(world)
            assert len(world.ann_dm.history()) == 2
            await says(world, "settle")
            assert sum("Which is right?" in text for text in world.shown(world.general)) == 3

    async def test_asks_nothing_where_asking_is_switched_off(self, start: Start) -> None:
        async with start(Asking(), ask_back=False) as world:
            await self.pairs(world)
            assert world.ann_dm.history() == []
            await says(world, "settle")
            assert sum("Which is right?" in text for text in world.shown(world.general)) == 3

    async def test_counts_what_was_asked_below_an_answer(self, start: Start) -> None:
        async with asking(start) as (world, question):
            await world.ann.click(question, label="No")
            await self.pairs(world)
            assert world.ann_dm.history() == []

    async def test_holds_up_no_question_about_what_was_stated(self, start: Start) -> None:
        async with start(Asking()) as world:
            await self.pairs(world)
            await says(world, "remember I use tabs")
            await talk(world, SPACES)
            assert len(world.ann_dm.history()) == 2

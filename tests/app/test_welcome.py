"""Somebody new is told once, below the first answer, what is remembered and how to switch it off."""

from typing import Any

import pytest

from discoclaw.core.errors import ModelError
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.conftest import STORES


def mention(world: World) -> str:
    return f"<@{world.env.bot.user.id}>"


class TestSomebodyNew:
    ONCE = "I say this only once."

    def told(self, world: World, channel: Any) -> int:
        return sum(self.ONCE in one for one in world.shown(channel))

    @pytest.mark.parametrize("store", STORES, indirect=True)
    async def test_is_told_once_what_is_remembered_and_again_after_an_erasing(
        self, start: Start, store: str
    ) -> None:
        async with start(welcome=True, store=store) as world:
            await world.ann.send_dm("hello there")
            assert "/memory show" in world.answer(world.ann_dm)
            assert "/memory data optout" in world.answer(world.ann_dm)
            await world.restart()
            await world.ann.send(world.general, f"{mention(world)} good morning")
            assert (self.told(world, world.ann_dm), self.told(world, world.general)) == (1, 0)
            await world.memory.erase(f"user-{world.ann.id}")
            await world.env.advance_time(5)
            await world.ann.send_dm("hello again")
            assert self.told(world, world.ann_dm) == 2

    async def test_is_told_at_the_first_mention_and_each_person_for_themselves(self, start: Start) -> None:
        async with start(welcome=True) as world:
            await world.ann.send(world.general, "hello everybody")  # which is no mention
            assert self.told(world, world.general) == 0
            for person in (world.ann, world.bob, world.ann):
                await world.settle()
                await person.send(world.general, f"{mention(world)} good morning")
            assert self.told(world, world.general) == 2

    async def test_gets_the_answer_and_below_it_one_line(self, start: Start) -> None:
        async with start(Scripted("Good morning!"), welcome=True) as world:
            await world.ann.send_dm("good morning")
            answer, line = world.answer(world.ann_dm).split("\n\n")
            assert answer == "Good morning!"
            assert line.startswith("-# ") and self.ONCE in line

    async def test_is_nobody_who_had_something_remembered(self, start: Start) -> None:
        async with start(welcome=True) as world:
            await world.ann.send_dm("!memory remember I like tea")
            await world.ann.send_dm("hello there")
            assert self.told(world, world.ann_dm) == 0

    async def test_is_told_below_the_first_answer_that_did_not_fail(self, start: Start) -> None:
        async with start(Scripted(ModelError(), "Hello!"), welcome=True) as world:
            await world.ann.send_dm("hello there")
            assert self.told(world, world.ann_dm) == 0
            await world.ann.send_dm("hello again")
            assert self.told(world, world.ann_dm) == 1

    @pytest.mark.parametrize(
        "off",
        [{"extraction_enabled": False}, {"durable_enabled": False}, {"store": "none"}, {"welcome": False}],
    )
    async def test_is_told_nothing_where_nothing_is_learned(self, start: Start, off: dict[str, Any]) -> None:
        async with start(**{"welcome": True, **off}) as world:
            await world.ann.send_dm("hello there")
            await world.settle()
            assert len(world.shown(world.ann_dm)) == 2

    async def test_is_told_nothing_who_opted_out(self, start: Start) -> None:
        async with start(welcome=True) as world:
            await world.ann.send_dm("!memory optout")
            await world.ann.send_dm("hello there")
            assert self.told(world, world.ann_dm) == 0

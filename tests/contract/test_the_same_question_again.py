"""With the cache of answers on, a person's same question is answered without the model for a while."""

from typing import Any

import pytest

from tests.contract.embedding import QUIET
from tests.contract.world import Start, World
from tests.servers.messages_api import cut, text, tool_use

SAME: dict[str, Any] = {"response_cache": True, "history_budget": 0, "older_files": 0, **QUIET}


async def asked(world: World, words: str, person: Any = None, place: Any = None) -> tuple[str, int]:
    """The answer to a question, and how many requests it took."""
    before = len(world.turns())
    answer = await world.says(person or world.ann, place or world.general, words)
    return answer, len(world.turns()) - before


class TestTheSameQuestion:
    async def test_is_answered_without_the_model_for_an_hour_of_the_clock_and_after_a_restart(
        self, start: Start
    ) -> None:
        async with start(**SAME) as world:
            world.brain.says("It is blue.", "It is red.", about="colour")
            assert await asked(world, "what colour?") == ("It is blue.", 1)
            assert await asked(world, "what colour?") == ("It is blue.", 0)
            await world.env.advance_time(58 * 60)
            await world.restart()
            assert await asked(world, "what colour?") == ("It is blue.", 0)
            await world.env.advance_time(3 * 60)
            assert await asked(world, "what colour?") == ("It is red.", 1)  # in another hour
            await world.restart(cache_ttl_s=600)
            await asked(world, "what time?", world.bob)
            await world.env.advance_time(601)
            assert (await asked(world, "what time?", world.bob))[1] == 1

    async def test_is_another_one_if_the_model_reads_anything_else_and_costs_no_reply_on_a_broken_disk(
        self, start: Start
    ) -> None:
        async with start(**SAME) as world:
            asks = 0

            async def is_new(words: str = "what colour?", **where: Any) -> bool:
                nonlocal asks
                asks += 1
                world.brain.usual = f"answer {asks}"
                answer, requests = await asked(world, words, **where)
                return (answer, requests) == (f"answer {asks}", 1)

            assert await is_new() and not await is_new()
            assert await is_new("what colour!")
            assert await is_new(place=world.dev) and await is_new(place=world.ann_dm)
            await world.remember(world.ann, "User prefers green.")
            assert await is_new() and not await is_new()
            await world.says(world.ann, world.general, "!memory timezone Asia/Tokyo")
            assert await is_new() and not await is_new()
            for changes in (
                {"DISCOCLAW_MODEL": "opus"},
                {"max_tokens": 999},
                {"owners": frozenset({str(world.ann.id)})},
            ):
                await world.restart(**changes)
                assert await is_new(), changes
            (world.folder / "content").mkdir(exist_ok=True)
            assert await is_new()  # the talk before it is read now, and has grown
        async with start(**SAME) as world:
            path = world.data / "cache" / "responses"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("in the way")
            for _ in range(2):
                assert (await asked(world, "what colour?"))[0] == "ok"

    @pytest.mark.parametrize("how", ["tools", "cut off", "blank", "interrupted"])
    async def test_is_asked_again_where_the_answer_cannot_stand_for_itself(
        self, start: Start, how: str
    ) -> None:
        async with start(**SAME) as world:
            behaviour = {
                "tools": tool_use(("t", "memory_search", {"query": "x"})),
                "cut off": text("half of it", stop_reason="max_tokens"),
                "blank": text("  \n"),
                "interrupted": cut("I "),
            }[how]
            world.brain.says(behaviour, "then", "again", about="colour")
            first, _ = await asked(world, "what colour?")
            answer, requests = await asked(world, "what colour?")
            assert requests >= 1 and answer != first
            assert (await asked(world, "what colour?"))[1] == 0

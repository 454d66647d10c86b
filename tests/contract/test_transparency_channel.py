"""The transparency channel: one pinned message for each person, edited in place."""

import re

import pytest

from tests.contract.brain import sum_up
from tests.contract.world import Start, World


def pinned(world: World) -> list[str]:
    return [str(message.content) for message in world.dev.pinned_messages()]


async def remember(world: World, *texts: str) -> None:
    await world.remember(world.ann, *texts)
    await world.settle()


class TestTheMessage:
    @pytest.mark.design(235, 318)
    async def test_is_one_for_each_person_and_says_nothing_private(self, start: Start) -> None:
        async with start() as world:
            await world.restart(memory_channel=str(world.dev.id))
            world.brain.writes("summary", sum_up)
            for words in ("!memory remember my PIN word is zebra", "we plan a surprise", "with balloons"):
                await world.says(world.ann, world.ann_dm, words)
            for words in ("Let us plan the garden", "With tomatoes and beans"):
                await world.says(world.bob, world.general, words)
            (bobs,) = [text for text in pinned(world) if "**Memory of bob**" in text]
            head, _, summary = bobs.partition("\n\n**Summary of the conversation** (#general")
            assert head.splitlines() == [
                *(f"**Memory of bob** ({world.bob.id})", "no changes yet", "", "**What I remember**"),
                "nothing yet",
            ]
            assert "garden" in summary
            await remember(world, "I like tea")
            await world.remember(world.bob, "I like coffee")
            await remember(world, "I like cake")
            assert len(pinned(world)) == 2
            (anns,) = [text for text in pinned(world) if "tea" in text]
            assert anns.startswith(f"**Memory of ann** ({world.ann.id})")
            assert "- [fact] I like cake" in anns
            for word in ("coffee", "zebra", "surprise", "balloons"):
                assert word not in anns

    async def test_goes_on_after_a_restart_a_lost_note_and_a_deletion(self, start: Start) -> None:
        async with start() as world:
            await world.restart(memory_channel=str(world.dev.id))
            await remember(world, "I like tea")
            path = world.durable(world.ann)
            await world.restart()
            path.write_text(path.read_text().replace("like tea", "love tea"))
            await world.says(world.ann, world.general, "!memory show")
            assert [text.count("I love tea") for text in pinned(world)] == [1]

            def lose() -> None:
                for cursor in (world.data / "memory" / "cursors").iterdir():
                    cursor.unlink()

            await world.restart(meanwhile=lose)
            await remember(world, "I like cake")
            (text,) = pinned(world)
            assert "cake" in text
            (message,) = world.dev.pinned_messages()
            await message.delete()
            await remember(world, "I like pie")
            (text,) = pinned(world)
            assert "pie" in text

    @pytest.mark.design(237)
    async def test_counts_what_does_not_fit_and_splits_nothing(self, start: Start) -> None:
        async with start() as world:
            await world.restart(memory_channel=str(world.dev.id))
            await remember(world, *(f"{number} " + "many words " * 12 for number in range(40)))
            (text,) = pinned(world)
            assert len(text) <= 2000
            assert re.search(r"\n\(and \d+ more memories\)$", text)
            assert "39 many words" in text

    @pytest.mark.design(256)
    async def test_that_fails_delays_nobody_and_is_tried_again(self, start: Start) -> None:
        async with start() as world:
            await world.restart(memory_channel=str(world.dev.id))
            world.env.inject_error("POST", f"/channels/{world.dev.id}/messages", status=403, times=1)
            told = await world.says(world.ann, world.general, "!memory remember I like tea")
            assert told == "Remembered: I like tea" and pinned(world) == []
            await world.env.advance_time(40)
            await world.settle()
            assert len(pinned(world)) == 1

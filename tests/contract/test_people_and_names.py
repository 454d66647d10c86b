"""Somebody new is told what is remembered; everybody is called by their newest name, and namesakes apart."""

from typing import Any

import pytest

from tests.contract.cards import said
from tests.contract.prompts import RECENT, REPLIED_TO, SENDER, section
from tests.contract.published import renamed
from tests.contract.world import Start, World
from tests.servers.messages_api import failure

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
ONCE = "I say this only once."


def told(world: World, channel: Any) -> int:
    """How often somebody was told there what is remembered."""
    return sum(ONCE in one for one in world.shown(channel))


class TestSomebodyNew:
    async def test_is_told_once_below_the_first_answer_and_again_after_an_erasing(self, start: Start) -> None:
        async with start(welcome=True, summary_enabled=False) as world:
            world.brain.says(failure(401, "authentication_error"), "Good morning!", about="hello there")
            await world.says(world.ann, world.ann_dm, "hello there")
            assert told(world, world.ann_dm) == 0  # that wasn't an answer
            await world.says(world.ann, world.ann_dm, "hello there")
            answer, line = world.answer(world.ann_dm).split("\n\n")
            assert answer == "Good morning!" and line.startswith("-# ") and ONCE in line
            assert "/memory show" in line and "/memory data optout" in line
            await world.restart()
            await world.says(world.bob, world.general, "hello everybody")  # which isn't a mention
            for person in (world.ann, world.bob, world.ann):
                await world.says(person, world.general, f"{world.mention} good morning")
            assert (told(world, world.ann_dm), told(world, world.general)) == (1, 1)
            await world.env.advance_time(1)
            await world.says(world.ann, world.ann_dm, "!memory erase --yes")
            await world.env.advance_time(5)
            await world.says(world.ann, world.ann_dm, "hello again")
            assert told(world, world.ann_dm) == 2
            carl = world.guild.add_member(world.env.create_user("carl"))
            dora = world.guild.add_member(world.env.create_user("dora"))
            for person, first in ((carl, "!memory remember I like tea"), (dora, "!memory optout")):
                for words in (first, "hello there"):  # who knows it, or wants none
                    await world.says(person, person.user.dm_channel, words)
                assert told(world, person.user.dm_channel) == 0

    @pytest.mark.parametrize(
        "off",
        [{"extraction_enabled": False}, {"durable_enabled": False}, {"store": "none"}, {"welcome": False}],
    )
    async def test_is_told_nothing_where_nothing_is_learned(self, start: Start, off: dict[str, Any]) -> None:
        async with start(**{"welcome": True, **off}) as world:
            await world.says(world.ann, world.ann_dm, "hello there")
            assert world.shown(world.ann_dm) == ["hello there", "ok"]


class TestNames:
    async def test_are_the_newest_everywhere_and_those_of_namesakes_keep_their_numbers(
        self, start: Start
    ) -> None:
        async with start(summary_enabled=False, context_history=4) as world:

            def called(words: str) -> str:
                """Under which name the newest prompt's talk has a line."""
                shown = section(world.prompt, RECENT).splitlines()
                (line,) = [one for one in shown if one.endswith(f": {words}")]
                return line.partition("]")[0].removeprefix("[")

            def sender() -> str:
                return section(world.prompt, SENDER).removeprefix("- name: ").partition(" (id")[0]

            old = await world.ann.send(world.general, "I like tea")
            await world.settle()
            await renamed(world, world.ann, "Anni")
            await world.says(world.ann, world.general, "what do I like?")
            assert (called("I like tea"), sender()) == ("Anni", "Anni")
            assert "[Anni]: what do I like?" in world.background("upserts")[-1].prompt
            assert "[ann]" not in world.background("upserts")[-1].prompt + world.prompt
            await world.says(world.bob, world.general, "really?", reply_to=old)
            assert section(world.prompt, REPLIED_TO).endswith("[Anni]: I like tea")
            carl = world.guild.add_member(world.env.create_user("carl"))
            for person in (world.ann, world.bob, carl):
                await renamed(world, person, "Sam")
            await world.says(world.ann, world.dev, "the kayak is mine")
            await world.says(world.bob, world.dev, "the lantern is mine")
            assert (called("the kayak is mine"), sender()) == ("Sam", "Sam #2")
            for words in ("one", "two", "three"):
                await world.says(world.bob, world.dev, words)
            assert "the kayak is mine" not in world.prompt
            assert (called("two"), sender()) == ("Sam #2", "Sam #2")
            await world.says(carl, world.dev, "the violin is mine")
            assert called("three") == "Sam #2" != sender()

    async def test_of_a_person_stand_in_their_memories_as_they_read_them_and_not_on_disk(
        self, start: Start
    ) -> None:
        async with start(summary_enabled=False) as world:
            world.brain.learns("User works as a nurse.", "User arbeitet bei Bosch.", about="my job")
            await world.says(world.ann, world.general, "this is my job")
            for command in ("memory show", "memory history log", "memory history view", "memory preview"):
                shown = said((await world.ann.slash(world.general, command)).response)
                assert "ou work as a nurse" in shown and "User works" not in shown, command
            assert f"{world.ann.name} arbeitet bei Bosch." in shown or command == "memory preview"
            why = said((await world.ann.slash(world.general, "memory why", memory="nurse")).response)
            assert "You work as a nurse." in why and "User works" not in why
            found = await world.ann.autocomplete(world.general, "memory forget", "memory", "you work")
            assert [one["name"] for one in found] == ["You work as a nurse."]
            assert "User works as a nurse." in world.memories(world.ann)
            await world.says(world.ann, world.general, "what is my job, nurse?")
            assert "User works as a nurse." in world.prompt
            edit = "!memory edit User works as a nurse. => User works as a doctor."
            await world.says(world.ann, world.general, edit)
            for command, options in (("log", {"oneline": True}), ("graph", {"form": "timeline"})):
                shown = said(
                    (await world.ann.slash(world.general, f"memory history {command}", **options)).response
                )
                assert "orrected: you work as a doctor" in shown
                assert "nurse" not in shown.partition("orrected")[2].splitlines()[0]
                assert "learned from talk" not in shown
            await world.says(world.ann, world.general, "!memory forget User works as a doctor.")
            shown = said((await world.ann.slash(world.general, "memory history log", oneline=True)).response)
            assert "Forgot 1 memory" in shown and "Learned 2 memories" in shown

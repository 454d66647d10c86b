"""Personas: branches by command, places that have one of their own, and the offer to switch."""

from typing import Any

import pytest

from discoclaw.bot.deliver import DiscordReply
from discoclaw.core.policy import Personas
from discoclaw.core.ports import Offer
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.contract.cards import labels, said


async def says(world: World, person: Any, text: str, place: Any = None) -> str:
    """What a text command is answered; in #general unless said otherwise."""
    await person.send(place or world.general, f"!memory {text}")
    return world.answer(place or world.general)


class TestBranches:
    @pytest.mark.design(283, 284)
    async def test_are_separate_memories_with_the_current_one_marked(self, start: Start) -> None:
        async with start() as world:
            ann = world.ann
            await says(world, ann, "remember I like tea")
            created = await says(world, ann, "create-branch Coding how I write code")
            assert created.startswith("Created the persona `coding`. It knows what `main` knows now.")
            assert "It is about: how I write code" in await says(world, ann, "checkout coding")
            await says(world, ann, "remember I use tabs")
            assert "persona `coding`" in await says(world, ann, "show")
            await says(world, ann, "checkout main")
            shown = await says(world, ann, "show")
            assert "I like tea" in shown
            assert "tabs" not in shown
            listed = await says(world, ann, "branches")
            assert "- **main** (current): 1 memory" in listed
            assert "- **coding**: 2 memories" in listed
            assert "“how I write code”" in listed

    async def test_begin_with_what_the_place_knows_also_where_its_own_has_not_begun(
        self, start: Start
    ) -> None:
        async with start(personas=Personas({"dev": "work"})) as world:
            ann = world.ann
            for words in (
                "remember I like tea",
                "create-branch home",
                "checkout home",
                "remember I like mate",
            ):
                await says(world, ann, words)
            created = await says(world, ann, "create-branch side", world.dev)
            assert "It knows what `work` knows now" in created
            await says(world, ann, "checkout side")
            shown = await says(world, ann, "show")
            assert "tea" in shown
            assert "mate" not in shown

    @pytest.mark.design(286, 287, 326)
    async def test_merge_brings_the_changes_and_clashes_become_questions(self, start: Start) -> None:
        async with start() as world:
            ann = world.ann
            for words in (
                "remember I like tea",
                "create-branch work",
                "checkout work",
                "remember I use tabs",
                "edit I like tea => I like coffee",
                "checkout main",
                "edit I like tea => I like cocoa",
            ):
                await says(world, ann, words)
            answer = await says(world, ann, "merge work")
            assert "I use tabs" in answer
            assert "changed on both sides" in answer
            assert answer.endswith("`!memory settle`.")
            shown = await says(world, ann, "show")
            assert "I like cocoa" in shown
            assert "**To settle**" in shown
            assert "Nothing to do" in await says(world, ann, "merge work")

    @pytest.mark.design(288)
    async def test_one_commit_can_be_picked(self, start: Start) -> None:
        async with start() as world:
            ann = world.ann
            for words in ("create-branch work", "checkout work", "remember I use tabs", "remember I use vim"):
                await says(world, ann, words)
            log = (await says(world, ann, "log --oneline work")).splitlines()
            await says(world, ann, "checkout main")
            await says(world, ann, f"cherry-pick {log[1].split('`')[1]}")
            shown = await says(world, ann, "show")
            assert "I use tabs" in shown
            assert "vim" not in shown

    @pytest.mark.design(284)
    async def test_what_is_not_possible_says_what_is(self, start: Start) -> None:
        async with start() as world:
            ann = world.ann
            await says(world, ann, "create-branch coding")
            assert await says(world, ann, "create-branch coding") == (
                "The persona 'coding' already exists; choose another name."
            )
            assert "did you mean 'coding'?" in await says(world, ann, "checkout codnig")
            assert "can't be the name of a persona" in await says(world, ann, "create-branch so/what")
            assert await says(world, ann, "delete-branch main") == "'main' can't be deleted."
            assert await says(world, ann, "checkout main") == "`main` is your persona already."
            assert "There is no `!memory branch lst`. Did you mean `!memory branch list`?" in await says(
                world, ann, "branch lst"
            )
            assert "Deleted the persona `coding`" in await says(world, ann, "delete-branch coding")

    async def test_the_same_as_slash_commands_with_completion(self, start: Start) -> None:
        async with start() as world:
            ann = world.ann
            made = await ann.slash(
                world.general, "memory persona create", name="coding", description="my code"
            )
            assert "Created the persona `coding`" in made.response.content
            choices = await ann.autocomplete(world.general, "memory persona switch", "name", "code")
            assert choices == [{"name": "coding – my code", "value": "coding"}]
            switched = await ann.slash(world.general, "memory persona switch", name="coding")
            assert "Your persona is now `coding`" in switched.response.content
            listed = await ann.slash(world.general, "memory persona list")
            assert "**coding**\n“my code”\n-# 0 memories · current" in said(listed.response)
            assert world.shown(world.general) == []

    async def test_what_was_said_of_one_in_private_is_not_shown_or_used_in_the_open(
        self, start: Start
    ) -> None:
        model = Scripted()
        async with start(model) as world:
            await world.ann.send_dm("!memory create-branch work my secret plan to leave")
            assert "in our DMs only" in world.answer(world.ann_dm)
            quiet = {"name": "evening", "description": "my divorce"}
            await world.ann.slash(world.general, "memory persona create", **quiet)
            for words in ("checkout work", "branches", "log", "checkout evening", "branches"):
                answer = await says(world, world.ann, words)
                assert "plan" not in answer
                assert "divorce" not in answer
            assert "work" in answer
            for name, secret in (("work", "secret plan"), ("evening", "my divorce")):
                await world.ann.send_dm(f"!memory checkout {name}")
                assert secret in world.answer(world.ann_dm)
                await world.ann.send(world.general, "hello")
                assert f"- persona: {name}" in model.prompt
                assert secret not in model.prompt
                await world.ann.send_dm("hello")
                assert secret in model.prompt

    async def test_everybody_has_their_own(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "create-branch coding")
            await says(world, world.ann, "checkout coding")
            assert "coding" not in await says(world, world.bob, "branches")
            assert "there are: main" in await says(world, world.bob, "merge coding")

    async def test_switching_by_itself_is_a_choice(self, start: Start) -> None:
        async with start() as world:
            assert "by myself" in await says(world, world.ann, "autoswitch on")
            choices = world.folder / "data" / "memory" / "choices.json"
            assert '"auto_switch": true' in choices.read_text()
            result = await world.ann.slash(world.general, "memory persona autoswitch", state="off")
            assert "I ask before" in result.response.content
            assert "auto_switch" not in choices.read_text()
            assert "by myself" in await says(world, world.ann, "persona autoswitch on")
            assert '"auto_switch": true' in choices.read_text()


class TestAPlaceWithAPersona:
    @pytest.mark.design(191)
    async def test_commands_there_act_on_it_and_checkout_says_so(self, start: Start) -> None:
        async with start(personas=Personas({"dev": "coding"})) as world:
            ann, dev = world.ann, world.dev
            await says(world, ann, "remember I like tea")
            await says(world, ann, "remember I use tabs", dev)
            assert "persona `coding`" in await says(world, ann, "show", dev)
            assert "tabs" in world.answer(dev)
            assert "tabs" not in await says(world, ann, "show")
            await says(world, ann, "create-branch home")
            answer = await says(world, ann, "checkout home", dev)
            assert "Your persona is now `home`" in answer
            assert "This channel always uses the persona `coding`." in answer
            assert "tabs" in await says(world, ann, "view", dev)
            await says(world, ann, "edit I use tabs => I use spaces", dev)
            assert "I use spaces" in await says(world, ann, "undo", dev)
            assert "I use tabs" in await says(world, ann, "show", dev)
            choices = await ann.autocomplete(dev, "memory forget", "memory", "tabs")
            assert [choice["name"] for choice in choices] == ["I use tabs"]

    async def test_before_its_first_change_there_is_nothing_to_go_back_in(self, start: Start) -> None:
        async with start(personas=Personas({"dev": "coding"})) as world:
            await says(world, world.ann, "remember I like tea")
            assert "it begins with a change" in await says(world, world.ann, "undo", world.dev)
            assert "I like tea" in await says(world, world.ann, "show", world.dev)


class TestTheOffer:
    async def offered(self, world: World, branch: str = "coding") -> Any:
        channel = world.app.client.get_channel(world.general.id)
        async with DiscordReply(channel, None) as reply:
            await reply.push("Here is your code.")
            await reply.finish()
            await reply.offer(Offer(str(world.ann.id), branch))
        return world.general.last_message

    async def test_is_a_line_with_a_button_that_switches_after_a_restart_too(self, start: Start) -> None:
        async with start() as world:
            await says(world, world.ann, "create-branch coding")
            message = await self.offered(world)
            assert said(message) == "-# Switch to your persona **coding**?"
            await world.restart()
            result = await world.ann.click(message, label="Switch to coding")
            assert result.acknowledged
            assert world.answer(world.general) == "-# Your persona is now **coding**."
            assert labels(world.general.last_message) == []
            assert "**coding** (current)" in await says(world, world.ann, "branches")

    async def test_others_are_refused_unseen(self, start: Start) -> None:
        async with start() as world:
            for person in (world.ann, world.bob):
                await says(world, person, "create-branch coding")
            message = await self.offered(world)
            result = await world.bob.click(message, label="Switch to coding")
            assert result.ephemeral
            assert result.response.content == "These buttons are for somebody else."
            assert "**main** (current)" in await says(world, world.bob, "branches")
            assert "**main** (current)" in await says(world, world.ann, "branches")

    async def test_a_persona_that_is_gone_says_so_and_the_button_goes(self, start: Start) -> None:
        async with start() as world:
            message = await self.offered(world, "coding")
            result = await world.ann.click(message, label="Switch to coding")
            (told,) = result.followups
            assert told.ephemeral
            assert told.content.startswith("There is no persona 'coding'")
            assert labels(world.general.last_message) == []

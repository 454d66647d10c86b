"""Personas: memories of one person that are kept apart, places that have one of their own, and merging."""

from typing import Any

import pytest

from tests.contract.cards import labels
from tests.contract.tools import commits
from tests.contract.world import Start, World


async def says(world: World, text: str, place: Any = None, person: Any = None) -> str:
    """What a text command of somebody (Ann) is answered; in #general unless said otherwise."""
    return await world.says(person or world.ann, place or world.general, f"!memory {text}")


class TestPersonas:
    @pytest.mark.design(283, 284)
    async def test_begin_with_what_the_place_knows_and_are_separate_from_then_on(self, start: Start) -> None:
        async with start(personas="dev=work") as world:
            await says(world, "remember I like tea")
            created = await says(world, "create-branch Coding how I write code")
            assert created.startswith("Created the persona `coding`. It knows what `main` knows now.")
            assert "It is about: how I write code" in await says(world, "checkout coding")
            await says(world, "remember I use tabs")
            assert "persona coding" in await says(world, "show")
            await says(world, "checkout main")
            shown = await says(world, "show")
            assert "I like tea" in shown and "tabs" not in shown
            listed = await says(world, "branches")
            assert "- **main** (current): 1 memory" in listed
            assert "- **coding**: 2 memories" in listed and "“how I write code”" in listed
            await says(world, "checkout coding")
            # The place's own has not begun yet, and begins with what "main" knows.
            assert "It knows what `work` knows now" in await says(world, "create-branch side", world.dev)
            await says(world, "checkout side")
            shown = await says(world, "show")
            assert "tea" in shown and "tabs" not in shown
            assert "coding" not in await says(world, "branches", person=world.bob)
            assert "there are: main" in await says(world, "merge coding", person=world.bob)

    @pytest.mark.design(284)
    async def test_say_what_is_possible_and_are_slash_commands_with_completion(self, start: Start) -> None:
        async with start() as world:
            made = await world.ann.slash(
                world.general, "memory persona create", name="coding", description="my code"
            )
            assert "Created the persona `coding`" in made.response.content
            choices = await world.ann.autocomplete(world.general, "memory persona switch", "name", "code")
            assert choices == [{"name": "coding – my code", "value": "coding"}]
            assert world.shown(world.general) == []
            taken = "The persona 'coding' already exists; choose another name."
            assert await says(world, "create-branch coding") == taken
            for words, told in (
                ("checkout codnig", "did you mean 'coding'?"),
                ("create-branch so/what", "can't be the name of a persona"),
                ("delete-branch main", "'main' can't be deleted."),
                ("checkout main", "`main` is your persona already."),
                ("branch lst", "There is no `!memory branch lst`. Did you mean `!memory branch list`?"),
                ("autoswitch on", "by myself"),
            ):
                assert told in await says(world, words)
            choices_file = world.data / "memory" / "choices.json"
            assert '"auto_switch": true' in choices_file.read_text()
            off = await world.ann.slash(world.general, "memory persona autoswitch", state="off")
            assert "I ask before" in off.response.content and "auto_switch" not in choices_file.read_text()

            switch = {"action": "switch", "name": "coding"}
            world.brain.calls("memory_branch", switch, "Here is your code.", about="fix my code")
            await world.says(world.ann, world.general, "please fix my code")
            offer = world.general.last_message
            assert "Deleted the persona `coding`" in await says(world, "delete-branch coding")
            (told,) = (await world.ann.click(offer, label="Switch to coding")).followups
            assert told.ephemeral and told.content.startswith("There is no persona 'coding'")
            (offer,) = [one for one in world.general.history() if one.id == offer.id]
            assert labels(offer) == []

    async def test_described_in_private_are_not_described_in_the_open(self, start: Start) -> None:
        async with start() as world:
            await says(world, "create-branch work my secret plan to leave", world.ann_dm)
            assert "in our DMs only" in world.answer(world.ann_dm)
            quiet = {"name": "evening", "description": "my divorce"}
            await world.ann.slash(world.general, "memory persona create", **quiet)
            for words in ("checkout work", "branches", "log", "checkout evening", "branches"):
                answer = await says(world, words)
                assert "plan" not in answer and "divorce" not in answer
            assert "work" in answer
            for name, secret in (("work", "secret plan"), ("evening", "my divorce")):
                assert secret in await says(world, f"checkout {name}", world.ann_dm)
                await world.says(world.ann, world.general, "hello")
                assert f"- persona: {name}" in world.prompt and secret not in world.prompt
                await world.says(world.ann, world.ann_dm, "hello")
                assert secret in world.prompt

    @pytest.mark.design(286, 287, 288, 326)
    async def test_merge_into_questions_where_they_clash_and_one_change_can_be_copied(
        self, start: Start
    ) -> None:
        async with start() as world:
            for words in (
                "remember I like tea",
                "create-branch work",
                "checkout work",
                "remember I use tabs",
                "remember I use vim",
            ):
                await says(world, words)
            _, *log = (await says(world, "log --oneline work")).splitlines()
            for words in (f"cherry-pick {log[1].split('`')[1]}", "show"):
                await says(world, "checkout main")
                shown = await says(world, words)
            assert "I use tabs" in shown and "vim" not in shown
            for words in (
                "edit I like tea => I like cocoa",
                "checkout work",
                "edit I like tea => I like coffee",
                "checkout main",
            ):
                await says(world, words)
            answer = await says(world, "merge work")
            assert "I use vim" in answer and "changed on both sides" in answer
            assert answer.endswith("`!memory settle`.")
            shown = await says(world, "show")
            assert "I like cocoa" in shown and "I use vim" in shown and "**To settle**" in shown
            assert "Nothing to do" in await says(world, "merge work")
            assert commits(world)[-1]["message"] == "merge work into main"

    @pytest.mark.design(191)
    async def test_of_a_place_are_what_commands_there_are_about(self, start: Start) -> None:
        async with start(personas="dev=coding") as world:
            await says(world, "remember I like tea")
            assert "it begins with a change" in await says(world, "undo", world.dev)
            assert "I like tea" in await says(world, "show", world.dev)
            await says(world, "remember I use tabs", world.dev)
            shown = await says(world, "show", world.dev)
            assert "persona coding" in shown and "tabs" in shown
            assert "tabs" not in await says(world, "show")
            await says(world, "create-branch home")
            answer = await says(world, "checkout home", world.dev)
            assert "Your persona is now `home`" in answer
            assert "This channel always uses the persona `coding`." in answer
            assert "tabs" in await says(world, "view", world.dev)
            await says(world, "edit I use tabs => I use spaces", world.dev)
            assert "I use spaces" in await says(world, "undo", world.dev)
            assert "I use tabs" in await says(world, "show", world.dev)
            choices = await world.ann.autocomplete(world.dev, "memory forget", "memory", "tabs")
            assert [choice["name"] for choice in choices] == ["I use tabs"]

"""The cards of what explains and what is decided: pressed, turned, and after a restart."""

from typing import Any

from discoclaw.core.draft import Draft, Origin
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.of_questions import contradicted
from tests.contract.cards import button, buttons, every_page, parts, said


async def card(world: World, command: str, **options: Any) -> Any:
    return (await world.ann.slash(world.general, command, **options)).response


async def remember(world: World, *texts: str) -> None:
    for text in texts:
        await world.ann.slash(world.general, "memory remember", text=text)


class TestPersonas:
    async def test_are_switched_with_a_button_also_after_a_restart(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            await world.ann.slash(
                world.general, "memory persona create", name="coding", description="my code"
            )
            shown = await card(world, "memory persona list")
            assert "**main**\n-# 1 memory · current" in said(shown)
            await world.restart()
            await world.ann.click(shown, custom_id=button(shown, "Switch"))
            assert "Your persona is now **coding**." in said(shown)
            assert "**coding**\n“my code”\n-# 1 memory · current" in said(shown)
            assert (await world.memory.branches(f"user-{world.ann.id}")).current == "coding"

    async def test_one_that_is_gone_is_no_longer_switched_to(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            await world.ann.slash(world.general, "memory persona create", name="coding")
            shown = await card(world, "memory persona list")
            await world.ann.slash(world.general, "memory persona delete", name="coding")
            pressed = await world.ann.click(shown, custom_id=button(shown, "Switch"))
            assert "coding" in pressed.followups[-1].content
            assert (await world.memory.branches(f"user-{world.ann.id}")).current == "main"


class TestFigures:
    async def test_are_a_row_each(self, start: Start) -> None:
        async with start(tools_enabled=False) as world:
            await remember(world, "I like tea", "I have a cat")
            shown = await card(world, "memory data stats")
            assert "## Your memory in numbers" in said(shown)
            assert "**Memories**\n2, of these 0 private; 0 forgotten" in said(shown)
            assert "DISCOCLAW_TOOLS_ENABLED" in said(shown)


class TestADifference:
    async def test_says_what_happened_to_each_memory(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea", "I have a cat")
            (first, *_) = (await world.memory.history(f"user-{world.ann.id}")).commits
            await world.ann.slash(world.general, "memory edit", memory="I like tea", text="I like *coffee*")
            shown = await card(world, "memory history diff")
            assert "~~I like tea~~\nI like \\*coffee\\*\n-# changed" in said(shown)
            whole = await card(world, "memory history diff", start=first)
            assert "I have a cat\n-# new" in said(whole)
            assert "(id " not in said(whole) and "durable-" not in said(whole)

    async def test_of_nothing_is_said_to_be_none(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            assert "There is no difference." in said(
                await card(world, "memory history diff", start="HEAD", end="HEAD")
            )


class TestThePicture:
    async def test_stands_in_the_card(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            shown = await card(world, "memory history graph")
            assert "## Memory of ann\n-# 1 change" in said(shown)
            (picture,) = shown.attachments
            assert (await picture.read()).startswith(b"\x89PNG")
            above = next(place for place, one in enumerate(parts(shown)) if one["type"] == 12)
            assert parts(shown)[above - 1]["type"] == 14
            assert "mermaid\n" not in said(shown)


class TestWhy:
    async def test_a_memory_tells_its_story_with_links_as_words(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            await world.ann.slash(world.general, "memory edit", memory="I like tea", text="I like coffee")
            told = said(await card(world, "memory why", memory="I like coffee"))
            assert "remembered: “I like tea”\n-# <t:" in told
            assert "corrected: “I like coffee”\n-# <t:" in told
            assert "you told me directly, in [this message](https://discord.com/channels/" in told
            assert "(id " not in told

    async def test_an_answer_names_what_it_was_given(self, start: Start) -> None:
        async with start(Scripted("Tea.")) as world:
            await remember(world, "I prefer tea")
            await world.ann.send(world.general, "what do I prefer?")
            told = said(await card(world, "memory why"))
            assert "## What my last answer was based on\n-# [my last answer here](https://" in told
            assert "I prefer tea\n-# fact · <t:" in told and "chosen: " in told
            assert "Also no summary, " in told

    async def test_many_reasons_have_pages(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea 0")
            for number in range(12):
                old, new = f"I like tea {number}", f"I like tea {number + 1}"
                await world.ann.slash(world.general, "memory edit", memory=old, text=new)
            shown = await card(world, "memory why", memory="I like tea 12")
            await world.restart()
            told = await every_page(world.ann, shown)
            assert all(f"“I like tea {number}”" in told for number in range(13))


class TestAPreview:
    async def test_is_a_card_without_ids(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I prefer tea")
            shown = await card(world, "memory preview", about="tea or coffee?")
            told = await every_page(world.ann, shown)
            assert "## What I could say about you in #general\n-# if you wrote “tea or coffee?”" in told
            assert "- I prefer tea (fact); for " in told
            assert "durable-" not in told
            assert "**About you**" in told
            assert "\n\nEverybody also gets there: my rules" in told

    async def test_asks_for_the_same_on_every_page(self, start: Start) -> None:
        async with start() as world:

            def many(draft: Draft) -> str:
                for number in range(60):
                    draft.upsert(
                        "fact", f"User owns teapot {number}. " + "It is old. " * 20, Origin("stated")
                    )
                return ""

            await world.memory.change(f"user-{world.ann.id}", "learned", many)
            question = "what about the teapots of my grandmother, and her cups?"
            shown = await card(world, "memory preview", about=question)
            await world.ann.click(shown, custom_id=button(shown, "▶"))
            assert f"if you wrote “{question}”" in said(shown)


class TestQuestions:
    async def test_come_one_a_page_and_the_next_after_an_answer(self, start: Start) -> None:
        async with contradicted(start) as world:
            shown = await card(world, "memory settle")
            assert "## Which is right?\n-# 1 question" in said(shown)
            assert [label for label, _ in buttons(shown)] == ["Keep the old", "Use the new", "Keep both"]
            await world.restart()
            await world.ann.click(shown, custom_id=button(shown, "Keep both"))
            assert "There is nothing to settle." in said(shown)
            assert (await world.memory.view(f"user-{world.ann.id}")).conflicts == ()

    async def test_are_not_answered_twice(self, start: Start) -> None:
        async with contradicted(start) as world:
            shown = await card(world, "memory settle")
            old = button(shown, "Keep the old")
            await world.ann.send(world.general, "!memory undo")
            pressed = await world.ann.click(shown, custom_id=old)
            assert pressed.followups[-1].content == "That is done already."

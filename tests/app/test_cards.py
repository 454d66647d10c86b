"""Cards: what slash commands show, and what can be pressed on them."""

from typing import Any

from tests.app.carding import button, buttons, said
from tests.app.conftest import Start, World

FACTS = [f"User likes tea number {number}." for number in range(1, 13)]


async def remember(world: World, *texts: str) -> None:
    for text in texts:
        await world.ann.slash(world.general, "memory remember", text=text)


async def shown(world: World, command: str = "memory show", **options: Any) -> Any:
    """The card that a slash command answers with."""
    return (await world.ann.slash(world.general, command, **options)).response


async def texts(world: World) -> set[str]:
    """What is remembered about Ann."""
    return {item.text for item in (await world.memory.view(f"user-{world.ann.id}")).active()}


class TestWhatIsRemembered:
    async def test_is_a_card_of_five_memories_a_page(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS)
            card = await shown(world)
            assert card.ephemeral and card.content == ""
            assert "## What I remember about you\n-# 12 memories" in said(card)
            assert said(card).count("User likes tea number") == 5
            assert "-# fact · <t:" in said(card) and "from your command" in said(card)
            assert "(id " not in said(card)
            pages = []
            for _ in range(2):
                await world.ann.click(card, custom_id=button(card, "▶"))
                pages.append(said(card))
            assert "Summary of this conversation" in pages[-1]
            assert all(fact in said(card) + "".join(pages) or fact for fact in FACTS)
            assert [label for label, _ in buttons(card)][-1] == "◀"

    async def test_keeps_its_text_as_a_text_command(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            await world.ann.send(world.general, "!memory show")
            assert "- [fact] I like tea (id " in world.answer(world.general)
            assert world.general.last_message.components == []

    async def test_turns_after_a_restart_and_shows_what_is_so_now(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS)
            card = await shown(world)
            await world.ann.click(card, custom_id=button(card, "▶"))
            forward = button(card, "▶")
            await world.restart()
            for fact in FACTS[:9]:
                await world.ann.slash(world.general, "memory forget", memory=fact)
                await world.ann.send(world.general, f"!memory forget {fact}")
            await world.ann.click(card, custom_id=forward)
            assert "3 memories" in said(card) and "▶" not in dict(buttons(card))

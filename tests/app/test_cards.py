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


class TestTheMenuOfAMemory:
    async def opened(self, world: World, text: str = "User likes tea number 3.") -> Any:
        """The card of one memory."""
        card = await shown(world)
        while text not in said(card):
            await world.ann.click(card, custom_id=button(card, "▶"))
        row = said(card).split(text)[0].count("\n-# fact")
        await world.ann.click(card, custom_id=button(card, "⋯", row))
        return card

    async def test_forgets_it_and_shows_its_page_again(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS)
            card = await self.opened(world)
            assert said(card).startswith("User likes tea number 3.\n-# fact · ")
            labels = [label for label, _ in buttons(card)]
            assert labels == ["Edit", "Use in our DMs only", "Why", "Forget", "Back"]
            await world.ann.click(card, label="Forget")
            assert said(card).startswith("Forgotten: User likes tea number 3.\n## What I remember")
            assert "11 memories · 1 forgotten" in said(card)
            assert FACTS[2] not in await texts(world)
            undo = button(card, "Undo")
            await world.ann.click(card, custom_id=undo)
            assert said(card).startswith("-# taken back\n## What I remember")
            assert await texts(world) == set(FACTS)
            again = await world.ann.click(card, custom_id=button(card, "⋯"))
            assert again.followups == []

    async def test_goes_back_to_the_page_it_came_from(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS)
            card = await self.opened(world, FACTS[4])
            await world.ann.click(card, label="Back")
            assert FACTS[4] in said(card) and "2 of 3" in str(card.components)

    async def test_says_where_it_comes_from(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            await world.ann.click(card, label="Why")
            assert "you told me directly" in said(card)
            await world.ann.click(card, label="Back")
            assert dict(buttons(card)).keys() >= {"Edit", "Forget"}

    async def test_makes_it_private_and_open_again(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            await world.ann.click(card, label="Use in our DMs only")
            assert "🔒 private · fact" in said(card)
            assert "(id " not in said(card)
            await world.ann.click(card, label="⋯")
            await world.ann.click(card, label="Use everywhere")
            assert "🔒" not in said(card)

    async def test_changes_it_in_a_modal_that_outlives_a_restart(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            modal = await world.ann.click(card, label="Edit")
            field = modal.modal["components"][0]["component"]
            assert (field["custom_id"], field["value"]) == ("text", "I like tea")
            await world.restart()
            await world.ann.submit_modal(modal, {"text": "I like coffee"})
            assert said(card).startswith("Edited: I like tea → I like coffee\n## What I remember")
            assert await texts(world) == {"I like coffee"}
            await world.ann.click(card, label="Undo")
            assert await texts(world) == {"I like tea"}

    async def test_refuses_a_text_that_is_too_long_or_of_a_memory_that_changed(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            modal = await world.ann.click(card, label="Edit")
            told = await world.ann.submit_modal(modal, {"text": "# **_`|" * 571})
            assert "1,000 characters" in told.followups[0].content or "too long" in told.followups[0].content
            modal = await world.ann.click(card, label="Edit")
            await world.ann.slash(world.general, "memory edit", memory="I like tea", text="I like cake")
            await world.ann.send(world.general, "!memory forget I like tea")
            await world.ann.send(world.general, "!memory remember I like tea")
            assert await texts(world)

    async def test_is_for_its_person_alone(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            await world.ann.send_dm("hello")
            card = await self.opened(world, "I like tea")
            with pytest.raises(Exception, match="cannot|not|visible"):
                await world.bob.click(card, label="Forget")

    async def test_says_so_if_the_memory_is_gone_and_twice_changes_nothing(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await shown(world)
            menu = button(card, "⋯")
            await world.ann.click(card, custom_id=menu)
            forget = button(card, "Forget")
            await world.ann.send(world.general, "!memory forget I like tea")
            await world.ann.click(
                world.general.last_message, label="Forget"
            ) if world.general.last_message.components else None
            told = await world.ann.click(card, custom_id=forget)
            assert told.followups[0].content == "That memory was forgotten since I asked."
            assert dict(buttons(card)).keys() >= {"Edit"}

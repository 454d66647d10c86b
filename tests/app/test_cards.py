"""Cards: what slash commands show, and what can be pressed on them."""

from typing import Any

import discord
import pytest

from discoclaw.bot import modals
from discoclaw.bot.cards.sending import NO_CARD
from discoclaw.bot.pressed import NOT_YOURS
from discoclaw.bot.presses import GONE
from discoclaw.bot.refused import TOO_LATE
from discoclaw.core.policy import Personas
from tests.app.conftest import GUILD_ID, Start, World
from tests.app.models import Scripted
from tests.app.of_receipts import learned, talk
from tests.contract.cards import button, buttons, every_page, said

TEA, TEA_READ = "User likes tea.", "You like tea."
FACTS = [f"User likes tea number {number}." for number in range(1, 13)]
READ = [f"You like tea number {number}." for number in range(1, 13)]


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
            assert "### What I remember about you\n-# 12 memories" in said(card)
            assert said(card).count("You like tea number") == 5
            assert "-# fact · <t:" in said(card) and "from your command" in said(card)
            assert "(id " not in said(card)
            pages = []
            for _ in range(2):
                await world.ann.click(card, custom_id=button(card, "▶"))
                pages.append(said(card))
            assert "Summary of this conversation" in pages[-1]
            assert all(fact in said(card) + "".join(pages) or fact for fact in READ)
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
    async def opened(self, world: World, text: str = "You like tea number 3.") -> Any:
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
            assert said(card).startswith("You like tea number 3.\n-# fact · ")
            labels = [label for label, _ in buttons(card)]
            assert labels == ["Edit", "Use in our DMs only", "Why", "Forget", "Back"]
            await world.ann.click(card, label="Forget")
            assert said(card).startswith("Forgotten: You like tea number 3.\n### What I remember")
            assert "11 memories · 1 forgotten" in said(card)
            assert FACTS[2] not in await texts(world)
            undo = button(card, "Undo")
            await world.ann.click(card, custom_id=undo)
            assert said(card).startswith("-# taken back\n### What I remember")
            assert await texts(world) == set(FACTS)
            again = await world.ann.click(card, custom_id=button(card, "⋯"))
            assert again.followups == []

    async def test_goes_back_to_the_page_it_came_from(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS)
            card = await self.opened(world, READ[4])
            await world.ann.click(card, label="Back")
            assert READ[4] in said(card) and "2 of 3" in str(card.components)

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
            assert said(card).startswith("Edited: I like tea → I like coffee\n### What I remember")
            assert await texts(world) == {"I like coffee"}
            await world.ann.click(card, label="Undo")
            assert await texts(world) == {"I like tea"}

    async def test_refuses_a_text_that_is_too_long_and_says_so(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            modal = await world.ann.click(card, label="Edit")
            told = await world.ann.submit_modal(modal, {"text": "# **_`|" * 571})
            assert told.followups[0].content.startswith("A memory can have at most 1000 characters, and")
            assert await texts(world) == {"I like tea"}

    async def test_shows_markup_as_it_was_typed(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            modal = await world.ann.click(card, label="Edit")
            await world.ann.submit_modal(modal, {"text": "# **_`|[" * 125})
            assert "\n\\# \\*\\*\\_\\`\\|\\[# " in said(card)
            assert await texts(world) == {"# **_`|[" * 125}

    async def test_changes_nothing_that_says_something_else_by_now(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            forget = button(card, "Forget")
            first, second = [await world.ann.click(card, label="Edit") for _ in range(2)]
            await world.ann.submit_modal(first, {"text": "I like coffee"})
            told = await world.ann.submit_modal(second, {"text": "I like cake"})
            assert told.followups[0].content.startswith("That memory has changed since I asked")
            card = await self.opened(world, "I like coffee")
            assert button(card, "Forget") != forget
            assert await texts(world) == {"I like coffee"}

    async def test_is_for_its_person_alone(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            channel = world.env.bot.get_channel(world.general.id)
            view = discord.ui.LayoutView()
            row: discord.ui.ActionRow[Any] = discord.ui.ActionRow()
            for label, custom_id in buttons(card):
                row.add_item(discord.ui.Button(label=label, custom_id=custom_id))
            view.add_item(row)
            view.stop()
            open_card = await channel.send(view=view)
            for label, _ in buttons(card):
                told = await world.bob.click(open_card, label=label)
                assert told.response.content == NOT_YOURS
            assert await texts(world) == {"I like tea"}

    async def test_says_so_if_the_memory_was_forgotten(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            await world.ann.send(world.general, "!memory forget I like tea")
            assert await texts(world) == set()
            for label in ("Forget", "Use in our DMs only", "Edit"):
                told = await world.ann.click(card, label=label)
                says = [*told.followups, told.response][0].content
                assert says == "That memory was forgotten since I asked."

    async def test_says_so_if_its_persona_was_deleted(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            await world.ann.slash(world.general, "memory persona create", name="work")
            await world.ann.slash(world.general, "memory persona switch", name="work")
            card = await shown(world)
            menu = button(card, "⋯")
            await world.ann.slash(world.general, "memory persona switch", name="main")
            await world.ann.slash(world.general, "memory persona delete", name="work")
            told = await world.ann.click(card, custom_id=menu)
            assert told.followups[0].content == f"{GONE}."
            assert "I like tea" in said(card)

    async def test_forgets_once_however_often_it_is_pressed(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea", "I like cake")
            first, second = await self.opened(world, "I like tea"), await self.opened(world, "I like tea")
            await world.ann.click(first, label="Forget")
            commits = len((await world.memory.history(f"user-{world.ann.id}")).commits)
            told = await world.ann.click(second, label="Forget")
            assert told.followups[0].content == "That memory was forgotten since I asked."
            assert len((await world.memory.history(f"user-{world.ann.id}")).commits) == commits
            await world.ann.click(first, label="Undo")
            assert await texts(world) == {"I like tea", "I like cake"}

    async def test_that_was_pressed_too_late_is_told_of_in_a_dm(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            world.env.inject_error("POST", "/interactions/*/*/callback", status=404, code=10062)
            await world.ann.click(card, label="Edit")
            assert world.answer(world.ann_dm) == TOO_LATE

    async def test_says_so_if_a_disk_is_too_slow_for_a_modal(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            monkeypatch.setattr(modals, "OPEN_WITHIN_S", 0)
            told = await world.ann.click(card, label="Edit")
            assert (told.modal, told.response.content) == (None, modals.NOT_NOW)

    async def test_adds_nothing_for_somebody_who_opted_out(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            card = await self.opened(world, "I like tea")
            modal = await world.ann.click(card, label="Edit")
            await world.ann.slash(world.general, "memory data optout")
            told = await world.ann.submit_modal(modal, {"text": "I like cake"})
            assert told.followups[0].content.startswith("You have opted out of memory")
            assert "**You have opted out**" in said(await shown(world))


class TestTheLog:
    async def test_says_what_changed_and_takes_a_change_back(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS[:6])
            card = await shown(world, "memory history log")
            assert "### What changed in your memory\n-# 6 changes\n" in said(card)
            assert "\nRemembered: “You like tea number 6.”\n-# <t:" in said(card)
            assert not any(commit[:8] in said(card) for commit in await self.ids(world))
            await world.ann.click(card, custom_id=button(card, "Take back", 1))
            assert said(card).startswith("-# taken back\n### What changed")
            assert "7 changes" in said(card)
            assert await texts(world) == {*FACTS[:4], FACTS[5]}
            await world.ann.click(card, label="Undo")
            assert await texts(world) == set(FACTS[:6])

    async def ids(self, world: World) -> list[str]:
        return [*(await world.memory.history(f"user-{world.ann.id}")).commits]

    async def test_turns_with_what_was_asked(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS)
            card = await shown(world, "memory history log", limit=7, oneline=True)
            assert "Added:" not in said(card)
            everything = await every_page(world.ann, card)
            assert everything.count("**Remembered: you like tea number ") == 7
            assert "-# and 5 earlier changes" in everything

    async def test_of_a_second_press_says_that_it_is_done(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            first, second = [await shown(world, "memory history log") for _ in range(2)]
            await world.ann.click(first, label="Take back")
            told = await world.ann.click(second, label="Take back")
            assert told.followups[0].content == "That is done already."


class TestAnOlderView:
    async def test_is_a_card_with_what_was_forgotten(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS[:3])
            await world.ann.send(world.general, f"!memory forget {FACTS[0]}")
            card = await shown(world, "memory history view")
            assert "-# 2 memories · 1 forgotten" in said(card)
            assert f"{READ[0]}\n-# forgotten · fact · <t:" in said(card)


class TestASearch:
    async def test_turns_its_pages_with_a_question_of_any_length(self, start: Start) -> None:
        async with start(Scripted(), auto_save="all", respond_mode="mention") as world:
            for number in range(8):
                await world.ann.send(world.general, f"zebra number {number}")
            await world.settle()
            query = "zebra " + "*_`[|\\" * 60
            card = await shown(world, "search", query=query)
            assert said(card).count("[open it]") == 5
            await world.restart()
            assert (await every_page(world.ann, card)).count("`zebra number") == 8


class TestACardThatDiscordDoesNotTake:
    async def test_is_said_as_a_text_once(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            world.env.inject_error("POST", "/webhooks/*", status=400, code=50035)
            result = await world.ann.slash(world.general, "memory show")
            told = [one.content for one in (result.response, *result.followups) if one is not None]
            assert sum("- [fact] I like tea (id " in text for text in told) == 1
            assert sum(NO_CARD in text for text in told) == 1


class TestInADirectMessage:
    async def test_a_card_is_for_its_person_alone_as_well(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS[:6])
            card = (await world.ann.user.slash("memory show")).response
            assert card.ephemeral
            await world.ann.user.click(card, custom_id=button(card, "▶"))
            assert READ[0] in said(card) or READ[5] in said(card)


class TestATextThatIsLongerThanACard:
    async def test_goes_on_on_the_next_pages(self, start: Start) -> None:
        async with start() as world:
            texts = [f"User likes {letter * 900}." for letter in "abcdefgh"]
            await remember(world, texts[0])
            for text in texts[1:]:
                (item,) = (await world.memory.view(f"user-{world.ann.id}")).active()
                await world.ann.slash(world.general, "memory edit", memory=item.text, text=text)
            card = await shown(world)
            await world.ann.click(card, label="⋯")
            await world.ann.click(card, label="Why")
            known = await every_page(world.ann, card)
            assert all(letter * 300 in known for letter in "abcdefgh")


class TestALongOlderView:
    async def test_turns_with_what_was_asked(self, start: Start) -> None:
        async with start() as world:
            await remember(world, *FACTS[:7])
            await world.ann.slash(world.general, "memory persona create", name="work")
            await remember(world, "User likes cake.")
            card = await shown(world, "memory history view", at="work", persona="main")
            assert "### What I remembered at work\n-# 7 memories" in said(card)
            everything = await every_page(world.ann, card)
            assert all(fact in everything for fact in READ[:7])
            assert "cake" not in everything


class TestWhatWasLearned:
    async def test_has_a_link_to_where_it_was_said(self, start: Start) -> None:
        model = Scripted()
        async with start(model) as world:
            await talk(world, model, learned(TEA))
            card = await shown(world)
            link = f"https://discord.com/channels/{GUILD_ID}/{world.general.id}/"
            assert f"{TEA_READ}\n-# " in said(card)
            assert f"[where you said it]({link}" in said(card)


class TestAPlaceWithAPersona:
    async def test_has_its_own_memories_on_its_card(self, start: Start) -> None:
        async with start() as world:
            await remember(world, "I like tea")
            await world.restart(personas=Personas({"general": "coding"}))
            card = await shown(world)
            assert "-# 1 memory · persona coding" in said(card)
            await world.ann.click(card, label="⋯")
            await world.ann.click(card, label="Forget")
            assert said(card).startswith("Forgotten: I like tea")
            assert await texts(world) == {"I like tea"}
            await world.ann.click(card, label="Undo")
            assert "I like tea\n-# fact" in said(card)

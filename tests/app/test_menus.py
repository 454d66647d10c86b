"""The commands in the menu of a message, as people choose them in Discord."""

from typing import Any

import discord
import pytest

from discoclaw.bot.answers import NOT_ALLOWED
from discoclaw.bot.commands.why import UNKNOWN_ANSWER
from discoclaw.bot.pressed import NOT_YOURS
from discoclaw.bot.refused import TOO_LATE
from tests.app import carding
from tests.app.conftest import Start, World
from tests.app.models import Scripted

REMEMBER, LEARNED = "Remember this", "What was learned from this?"
WHY, ASK = "Why this answer?", "Ask about this"
QUIET = {"extraction_enabled": False, "summary_enabled": False, "respond_mode": "mention"}
ANSWERING = {**QUIET, "respond_mode": "all"}


def said(result: Any) -> str:
    """What the one who chose reads, and nobody else."""
    shown = [one for one in (result.response, *result.followups) if one is not None]
    assert shown and all(one.ephemeral for one in shown)
    return "\n".join(map(carding.said, shown))


async def remembered(world: World, person: Any) -> list[Any]:
    """The memories of a person that are in use."""
    return list((await world.memory.view(f"user-{person.id}")).active())


async def texts(world: World, person: Any) -> list[str]:
    return [item.text for item in await remembered(world, person)]


class TestRememberThis:
    async def test_ones_own_message_becomes_a_memory_that_leads_back_to_it(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.general, "I prefer tabs")
            result = await world.ann.context_menu(world.general, REMEMBER, message)
            assert said(result) == "Remembered: I prefer tabs"
            (item,) = await remembered(world, world.ann)
            assert (item.facets.author, item.facets.sensitivity) == ("stated", "normal")
            why = await world.ann.slash(world.general, "memory why", memory="I prefer tabs")
            told = said(why)
            link = f"https://discord.com/channels/{world.guild.id}/{world.general.id}/{message.id}"
            assert f"you chose it, in [this message]({link})" in told

    async def test_a_press_takes_it_back_and_a_second_one_finds_that_done(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.general, "I prefer tabs")
            result = await world.ann.context_menu(world.general, REMEMBER, message)
            await world.restart()
            await world.ann.click(result.response, label="Undo")
            assert await texts(world, world.ann) == [] and "taken back" in said(result)

    async def test_secrets_are_left_out(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            key = "sk-ant-api03-" + "a1B2" * 20
            message = await world.ann.send(world.general, f"My key is {key}")
            await world.ann.context_menu(world.general, REMEMBER, message)
            (text,) = await texts(world, world.ann)
            assert key not in text

    async def test_a_personal_matter_stays_between_us(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.general, "My doctor says I have diabetes")
            result = await world.ann.context_menu(world.general, REMEMBER, message)
            (item,) = await remembered(world, world.ann)
            assert item.facets.sensitivity == "private" and "in our DMs only" in said(result)

    async def test_of_somebody_elses_message_it_says_who_said_it_and_where(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.bob.send(world.dev, "The release is on *Friday*")
            result = await world.ann.context_menu(world.dev, REMEMBER, message)
            (item,) = await remembered(world, world.ann)
            assert item.text == "bob said in #dev: “The release is on *Friday*”"
            assert (item.facets.author, item.facets.sensitivity) == ("inferred", "normal")
            assert "on \\*Friday\\*" in said(result)
            assert await texts(world, world.bob) == []

    async def test_what_was_said_in_a_hidden_channel_is_used_in_dms_only(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            nobody, some = (discord.PermissionOverwrite(view_channel=seen) for seen in (False, True))
            rights = {world.guild.default_role: nobody, world.ann: some, world.bob: some}
            few = world.guild.create_text_channel("few", overwrites=rights)
            message = await world.bob.send(few, "The release is on Friday")
            await world.ann.context_menu(few, REMEMBER, message)
            (item,) = await remembered(world, world.ann)
            assert item.facets.sensitivity == "private"

    async def test_it_goes_when_the_other_person_deletes_the_message(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.bob.send(world.dev, "The release is on Friday")
            await world.ann.context_menu(world.dev, REMEMBER, message)
            await world.bob.delete(message)
            await world.settle()
            assert await texts(world, world.ann) == []

    async def test_ones_own_stays_when_the_message_is_deleted_since_one_asked_for_it(
        self, start: Start
    ) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.dev, "I prefer tabs")
            await world.ann.context_menu(world.dev, REMEMBER, message)
            await world.ann.delete(message)
            await world.settle()
            assert await texts(world, world.ann) == ["I prefer tabs"]

    async def test_nothing_is_kept_of_somebody_who_wants_no_memory(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            await world.bob.slash(world.dev, "memory data optout")
            message = await world.bob.send(world.dev, "The release is on Friday")
            result = await world.ann.context_menu(world.dev, REMEMBER, message)
            assert said(result).startswith("I can't keep what they wrote")
            assert await texts(world, world.ann) == []

    async def test_somebody_who_opted_out_is_told(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            await world.ann.slash(world.dev, "memory data optout")
            message = await world.bob.send(world.dev, "The release is on Friday")
            result = await world.ann.context_menu(world.dev, REMEMBER, message)
            assert said(result).startswith("You have opted out of memory")
            assert await texts(world, world.ann) == []

    async def test_a_guest_is_told_that_they_are_not_on_the_allowlist(self, start: Start) -> None:
        async with start(Scripted(), **QUIET, allow_roles=frozenset(), allow_users=frozenset({"1"})) as world:
            message = await world.bob.send(world.dev, "The release is on Friday")
            assert said(await world.ann.context_menu(world.dev, REMEMBER, message)) == NOT_ALLOWED

    async def test_a_long_message_gets_a_sentence(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.dev, "word " * 390)
            result = await world.ann.context_menu(world.dev, REMEMBER, message)
            assert said(result).startswith(
                "That message is too long for a memory (1,949 characters, and 1,000 fit)"
            )

    async def test_a_message_that_says_nothing_gets_a_sentence(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.dev, attachments=[("cat.png", b"\x89PNG")])
            result = await world.ann.context_menu(world.dev, REMEMBER, message)
            assert said(result) == "There is no text in that message that I could remember."

    async def test_what_is_remembered_already_is_said(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.dev, "I prefer tabs")
            await world.ann.context_menu(world.dev, REMEMBER, message)
            result = await world.ann.context_menu(world.dev, REMEMBER, message)
            assert said(result) == "I already remember that: I prefer tabs"

    async def test_an_answer_of_the_bot_gets_a_sentence(self, start: Start) -> None:
        async with start(Scripted("Tabs."), **ANSWERING) as world:
            await world.ann.send(world.dev, "Tabs or spaces?")
            result = await world.ann.context_menu(world.dev, REMEMBER, world.dev.last_message)
            assert said(result).startswith("That is one of my answers")
            assert await texts(world, world.ann) == []

    async def test_a_message_that_discord_wrote_itself_gets_a_sentence(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.dev, "I prefer tabs")
            world.env.backend.messages[world.dev.id][message.id].type = discord.MessageType.pins_add.value
            result = await world.ann.context_menu(world.dev, REMEMBER, message)
            assert said(result).startswith("Discord wrote that message itself")

    async def test_it_works_where_the_bot_does_not_listen(self, start: Start) -> None:
        async with start(Scripted(), **QUIET, channels=frozenset({"1"})) as world:
            message = await world.ann.send(world.dev, "I prefer tabs")
            await world.ann.context_menu(world.dev, REMEMBER, message)
            assert await texts(world, world.ann) == ["I prefer tabs"]

    async def test_its_undo_is_for_the_one_who_chose_it(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.dev, "I prefer tabs")
            result = await world.ann.context_menu(world.dev, REMEMBER, message)
            record = world.env.backend.interactions[max(world.env.backend.interactions)]
            assert record.user_id == world.ann.id and result.response is not None
            world.env.backend.messages[world.dev.id][result.response.id].flags = 0  # as if others saw it
            pressed = await world.bob.click(result.response, label="Undo")
            assert said(pressed) == NOT_YOURS and await texts(world, world.ann) == ["I prefer tabs"]

    async def test_a_webhooks_message_is_nobodys_words(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            hook = world.guild.create_webhook(world.dev, "builds")
            message = await hook.send("The build failed", username="bob")
            await world.ann.context_menu(world.dev, REMEMBER, message)
            assert await texts(world, world.ann) == ["A webhook called bob said in #dev: “The build failed”"]

    async def test_a_choice_that_came_too_late_is_told_of_in_a_dm(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.dev, "I prefer tabs")
            world.env.inject_error("POST", "/interactions/*/*/callback", status=404, code=10062)
            await world.ann.context_menu(world.dev, REMEMBER, message)
            await world.settle()
            assert world.answer(world.ann_dm) == TOO_LATE and await texts(world, world.ann) == []


class TestWhatWasLearned:
    async def test_lists_what_rests_on_the_message_and_forgets_it_at_a_press(self, start: Start) -> None:
        async with start(respond_mode="all") as world:
            message = await world.ann.send(world.general, "I prefer tabs over spaces.")
            await world.settle()
            (item,) = await remembered(world, world.ann)
            result = await world.ann.context_menu(world.general, LEARNED, message)
            when = f"<t:{item.updated_at // 1000}:R>"
            assert said(result).splitlines()[1:] == [f"- You prefer tabs over spaces. ({when})", "Forget it?"]
            await world.ann.click(result.response, label="Forget")
            assert await remembered(world, world.ann) == [] and "Forgotten" in said(result)

    async def test_shows_nobody_elses(self, start: Start) -> None:
        async with start(respond_mode="all") as world:
            message = await world.ann.send(world.general, "I prefer tabs over spaces.")
            await world.settle()
            result = await world.bob.context_menu(world.general, LEARNED, message)
            assert said(result).startswith("Nothing was learned about you") and "tabs" not in said(result)

    async def test_lists_what_a_command_in_the_message_made(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.ann.send(world.general, "!memory remember I like tea")
            result = await world.ann.context_menu(world.general, LEARNED, message)
            assert "- I like tea" in said(result)

    async def test_says_that_a_message_was_not_read_yet(self, start: Start) -> None:
        async with start(Scripted(), durable_every=50) as world:
            message = await world.ann.send(world.general, "I prefer tabs over spaces.")
            result = await world.ann.context_menu(world.general, LEARNED, message)
            assert said(result).startswith("Nothing was learned from this message yet")

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"channels": frozenset({"1"})}, "I don't listen in this channel"),
            ({"extraction_enabled": False}, "I only remember what I'm told to"),
            ({}, "Nothing was learned from this message."),
        ],
    )
    async def test_says_why_nothing_was(self, start: Start, changes: Any, reason: str) -> None:
        async with start(Scripted(), **changes) as world:
            message = await world.ann.send(world.general, "Good morning")
            await world.settle()
            assert reason in said(await world.ann.context_menu(world.general, LEARNED, message))

    async def test_says_that_one_has_opted_out(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            await world.ann.slash(world.general, "memory data optout")
            message = await world.ann.send(world.general, "Good morning")
            assert "you have opted out" in said(await world.ann.context_menu(world.general, LEARNED, message))


class TestWhyThisAnswer:
    async def test_tells_it_of_an_earlier_answer_too(self, start: Start) -> None:
        async with start(Scripted("Tabs.", "Tea."), **ANSWERING) as world:
            await world.ann.slash(world.general, "memory remember", text="I prefer tabs")
            await world.ann.send(world.general, "Tabs or spaces?")
            first = world.general.last_message
            await world.ann.send(world.general, "And what to drink?")
            result = await world.ann.context_menu(world.general, WHY, first)
            assert f"/{first.id}>) I had:" in said(result) and "I prefer tabs" in said(result)

    async def test_also_of_the_second_message_of_a_long_one(self, start: Start) -> None:
        async with start(Scripted("word " * 500), **ANSWERING) as world:
            await world.ann.send(world.general, "Say much")
            first, last = world.general.history()[-2:]
            result = await world.ann.context_menu(world.general, WHY, last)
            assert f"/{first.id}>) I had:" in said(result)

    async def test_is_told_to_nobody_else(self, start: Start) -> None:
        async with start(Scripted(), **ANSWERING) as world:
            await world.ann.slash(world.general, "memory remember", text="I prefer tabs")
            await world.ann.send(world.general, "Tabs or spaces?")
            result = await world.bob.context_menu(world.general, WHY, world.general.last_message)
            assert said(result).startswith("I answered somebody else there") and "tabs" not in said(result)

    async def test_another_message_is_no_answer(self, start: Start) -> None:
        async with start(Scripted(), **ANSWERING) as world:
            message = await world.ann.send(world.general, "Tabs or spaces?")
            assert said(await world.ann.context_menu(world.general, WHY, message)).startswith(
                "That isn't one of my answers"
            )

    async def test_a_commands_answer_is_not_taken_for_a_part_of_the_one_before(self, start: Start) -> None:
        async with start(Scripted(), **ANSWERING) as world:
            await world.ann.send(world.general, "Tabs or spaces?")
            await world.ann.send(world.general, "!memory data stats")
            result = await world.ann.context_menu(world.general, WHY, world.general.last_message)
            assert said(result) == UNKNOWN_ANSWER

    async def test_after_a_restart_nobody_knows(self, start: Start) -> None:
        async with start(Scripted(), **ANSWERING) as world:
            await world.ann.send(world.general, "Tabs or spaces?")
            await world.restart()
            result = await world.ann.context_menu(world.general, WHY, world.general.last_message)
            assert said(result) == UNKNOWN_ANSWER


class TestAskAboutThis:
    async def test_the_question_goes_to_the_model_with_the_message_and_only_the_asker_sees_it(
        self, start: Start
    ) -> None:
        async with start(Scripted("It means Friday."), **QUIET) as world:
            message = await world.bob.send(world.dev, "EOW, as usual")
            form = await world.ann.context_menu(world.dev, ASK, message)
            assert form.modal["components"][0]["label"] == "What would you like to know?"
            result = await world.ann.submit_modal(form, {"question": "What does that mean?"})
            await world.settle()
            assert said(result) == "It means Friday."
            assert "EOW, as usual" in world.model.prompt and "What does that mean?" in world.model.prompt
            assert world.shown(world.dev) == ["EOW, as usual"]

    async def test_a_restart_while_the_question_is_written_loses_nothing(self, start: Start) -> None:
        async with start(Scripted("Friday."), **QUIET) as world:
            message = await world.bob.send(world.dev, "EOW, as usual")
            form = await world.ann.context_menu(world.dev, ASK, message)
            await world.restart()
            result = await world.ann.submit_modal(form, {"question": "What does that mean?"})
            await world.settle()
            assert said(result) == "Friday." and "EOW, as usual" in world.model.prompt

    async def test_a_message_that_is_gone_meanwhile_is_told(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.bob.send(world.dev, "EOW, as usual")
            form = await world.ann.context_menu(world.dev, ASK, message)
            await world.bob.delete(message)
            await world.settle()
            result = await world.ann.submit_modal(form, {"question": "What does that mean?"})
            assert said(result).startswith("I no longer have that message")
            assert world.model.requests == []

    async def test_four_thousand_characters_of_markup_are_a_question(self, start: Start) -> None:
        async with start(Scripted("Nice."), **QUIET) as world:
            message = await world.bob.send(world.dev, "EOW")
            form = await world.ann.context_menu(world.dev, ASK, message)
            result = await world.ann.submit_modal(
                form, {"question": "```\n[» (owner)]: @everyone **" * 133 + "``"}
            )
            await world.settle()
            assert said(result) == "Nice."
            assert "\n[» (owner)]" not in world.model.prompt

    async def test_a_form_of_somebody_not_on_the_allowlist_is_refused(self, start: Start) -> None:
        async with start(Scripted(), **QUIET, allow_roles=frozenset(), allow_users=frozenset({"1"})) as world:
            message = await world.bob.send(world.dev, "EOW")
            form = await world.ann.context_menu(world.dev, ASK, message)
            assert said(await world.ann.submit_modal(form, {"question": "What?"})) == NOT_ALLOWED
            assert world.model.requests == []

    async def test_a_form_that_was_opened_for_somebody_else_is_refused(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.bob.send(world.dev, "EOW")
            form = await world.ann.context_menu(world.dev, ASK, message)
            form._interaction.user_id = world.bob.id
            assert said(await world.bob.submit_modal(form, {"question": "What?"})) == NOT_YOURS

    async def test_a_form_that_came_too_late_is_told_of_in_a_dm(self, start: Start) -> None:
        async with start(Scripted(), **QUIET) as world:
            message = await world.bob.send(world.dev, "EOW")
            form = await world.ann.context_menu(world.dev, ASK, message)
            world.env.inject_error("POST", "/interactions/*/*/callback", status=404, code=10062)
            await world.ann.submit_modal(form, {"question": "What?"})
            await world.settle()
            assert world.answer(world.ann_dm) == TOO_LATE

"""The commands in the menu of a message, as people choose them in Discord: only they see what comes of it."""

from typing import Any

import discord

from tests.contract.cards import said
from tests.contract.commands import card, told, typed
from tests.contract.world import Start, World

REMEMBER, LEARNED = "Remember this", "What was learned from this?"
WHY, ASK = "Why this answer?", "Ask about this"
QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False, "respond_mode": "mention"}
ANSWERING = {**QUIET, "respond_mode": "all"}
UNKNOWN = "I no longer know what my last answer to you here was based on."
SECRET = "The password of the safe is ostrich"


async def chosen(world: World, name: str, message: Any, place: Any = None, person: Any = None) -> str:
    """What somebody who chooses this is told; Ann in #dev unless named."""
    result = await (person or world.ann).context_menu(place or world.dev, name, message)
    await world.settle()
    return told(result)


def late(world: World) -> None:
    """Discord no longer knows the next interaction when it is answered."""
    world.env.inject_error("POST", "/interactions/*/*/callback", status=404, code=10062)


async def locked(world: World) -> Any:
    """A voice channel that everybody sees and only Ann and the bot may join: only they read its talk."""
    board = world.guild.create_voice_channel("board")
    await world.settle()
    channel = world.env.bot.get_channel(board.id)
    assert isinstance(channel, discord.VoiceChannel)
    for who, may in ((world.ann, True), (world.guild.me, True), (world.guild.default_role, False)):
        allow, deny = discord.PermissionOverwrite(connect=may).pair()
        kind: Any = 0 if who.id == world.guild.id else 1
        edit = channel._state.http.edit_channel_permissions
        await edit(board.id, who.id, str(allow.value), str(deny.value), kind)
    await world.settle()
    return board


class TestRememberThis:
    async def test_ones_own_message_becomes_a_memory_that_leads_back_to_it(self, start: Start) -> None:
        async with start(**QUIET, channels=frozenset({"1"})) as world:  # where the bot doesn't listen
            message = await world.ann.send(world.general, "I prefer tabs")
            result = await world.ann.context_menu(world.general, REMEMBER, message)
            assert told(result) == "Remembered: I prefer tabs"
            why = said(await card(world, "memory why", memory="I prefer tabs"))
            link = f"https://discord.com/channels/{world.guild.id}/{world.general.id}/{message.id}"
            assert f"you chose it, in [this message]({link})" in why
            again = await chosen(world, REMEMBER, message, world.general)
            assert again == "I already remember that: I prefer tabs"
            world.env.backend.messages[world.general.id][result.response.id].flags = 0  # as if others saw it
            pressed = await world.bob.click(result.response, label="Undo")
            assert told(pressed) == "These buttons are for somebody else."
            await world.restart()
            await world.ann.delete(message)  # a memory that was asked for stays
            await world.settle()
            assert world.memories(world.ann) == ["I prefer tabs"]
            await world.ann.click(result.response, label="Undo")
            assert world.memories(world.ann) == [] and "taken back" in said(result.response)

    async def test_secrets_are_left_out_and_personal_matters_stay_in_dms(self, start: Start) -> None:
        async with start(**QUIET) as world:
            key = "sk-ant-api03-" + "a1B2" * 20
            await chosen(world, REMEMBER, await world.ann.send(world.dev, f"My key is {key}"))
            assert key not in world.memories(world.ann)[0] and world.files_with(key) == []
            message = await world.ann.send(world.dev, "My doctor says I have diabetes")
            assert "in our DMs only" in await chosen(world, REMEMBER, message)
            few = world.guild.create_text_channel(
                "few",
                overwrites={
                    world.guild.default_role: discord.PermissionOverwrite(view_channel=False),
                    world.ann: discord.PermissionOverwrite(view_channel=True),
                    world.bob: discord.PermissionOverwrite(view_channel=True),
                },
            )
            await chosen(world, REMEMBER, await world.bob.send(few, "The release is on Friday"), few)
            board = await locked(world)
            await chosen(world, REMEMBER, await world.ann.send(board, "We buy Initech"), board)
            listed = await typed(world, "show")
            assert not any(word in listed for word in ("diabetes", "Friday", "Initech"))
            assert "(3 private memories: use `/memory show`" in listed

    async def test_of_somebody_elses_message_it_says_who_said_it_until_they_take_it_back(
        self, start: Start
    ) -> None:
        async with start(**QUIET, channels=frozenset({"1"})) as world:
            gone = await world.bob.send(world.dev, "The release is on *Friday*")
            assert "on \\*Friday\\*" in await chosen(world, REMEMBER, gone)
            assert world.memories(world.ann) == ["bob said in #dev: “The release is on *Friday*”"]
            assert world.memories(world.bob) == []
            edited = await world.bob.send(world.dev, "I like cats")
            await chosen(world, REMEMBER, edited)
            await world.ann.forward(edited, world.dev)
            await chosen(world, REMEMBER, world.dev.last_message)
            assert not any(text == "I like cats" for text in world.memories(world.ann))
            await world.bob.delete(gone)
            await world.bob.edit(edited, "I prefer tabs over spaces.")
            await world.settle()
            assert not any("release" in text or "bob said" in text for text in world.memories(world.ann))
            hook = world.guild.create_webhook(world.dev, "builds")
            await chosen(world, REMEMBER, await hook.send("The build failed", username="bob"))
            webhook = "A webhook called bob said in #dev: “The build failed”"
            assert webhook in world.memories(world.ann)

    async def test_what_cannot_be_remembered_gets_a_sentence(self, start: Start) -> None:
        async with start(**ANSWERING) as world:
            long = await world.ann.send(world.dev, "word " * 390)
            assert (await chosen(world, REMEMBER, long)).startswith(
                "That message is too long for a memory (1,949 characters, and 1,000 fit)"
            )
            assert (await chosen(world, REMEMBER, world.dev.last_message)).startswith(
                "That is one of my answers"
            )
            await world.restart(respond_mode="mention")
            picture = await world.ann.send(world.dev, attachments=[("cat.png", b"\x89PNG")])
            empty = "There is no text in that message that I could remember."
            assert await chosen(world, REMEMBER, picture) == empty
            pinned = await world.ann.send(world.dev, "I prefer tabs")
            world.env.backend.messages[world.dev.id][pinned.id].type = discord.MessageType.pins_add.value
            assert (await chosen(world, REMEMBER, pinned)).startswith("Discord wrote that message itself")
            message = await world.ann.send(world.dev, "I prefer spaces")
            late(world)
            await world.ann.context_menu(world.dev, REMEMBER, message)
            await world.settle()
            assert "too late, so I did nothing" in world.answer(world.ann_dm)
            assert world.memories(world.ann) == []

    async def test_nothing_is_kept_for_or_of_somebody_who_wants_no_memory(self, start: Start) -> None:
        async with start(**QUIET) as world:
            await card(world, "memory data optout", world.bob)
            message = await world.bob.send(world.dev, "The release is on Friday")
            assert (await chosen(world, REMEMBER, message)).startswith("I can't keep what they wrote")
            form = await world.ann.context_menu(world.dev, ASK, message)
            result = await world.ann.submit_modal(form, {"question": "What does that mean?"})
            assert told(result).startswith("I can't read what they wrote")
            mine = await world.ann.send(world.dev, "I like tea")
            out = await chosen(world, REMEMBER, mine, person=world.bob)
            assert out.startswith("You have opted out of memory")
            assert "you have opted out" in await chosen(world, LEARNED, message, person=world.bob)
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({"1"}))
            assert (await chosen(world, REMEMBER, message)).startswith("You aren't on my allowlist.")
            form = await world.ann.context_menu(world.dev, ASK, mine)
            refused = await world.ann.submit_modal(form, {"question": "What?"})
            assert told(refused).startswith("You aren't on my allowlist.")
            assert world.items(world.ann) == world.items(world.bob) == [] and world.turns() == []


class TestWhatWasLearned:
    async def test_lists_what_rests_on_the_message_and_forgets_it_at_a_press(self, start: Start) -> None:
        async with start(summary_enabled=False) as world:
            world.brain.learns("User prefers tabs.", about="I prefer tabs", kind="preference")
            message = await world.ann.send(world.general, "I prefer tabs over spaces.")
            await world.settle()
            others = await chosen(world, LEARNED, message, world.general, world.bob)
            assert others.startswith("Nothing was learned about you") and "tabs" not in others
            result = await world.ann.context_menu(world.general, LEARNED, message)
            when = f"<t:{int(world.env.now().timestamp())}:R>"
            assert told(result).splitlines()[1:] == [f"- You prefer tabs. ({when})", "Forget it?"]
            await world.ann.click(result.response, label="Forget")
            assert world.memories(world.ann) == [] and "Forgotten" in said(result.response)
            command = await world.ann.send(world.general, "!memory remember I like tea")
            assert "- I like tea" in await chosen(world, LEARNED, command, world.general)

    async def test_says_why_nothing_was(self, start: Start) -> None:
        reasons: list[tuple[dict[str, Any], str]] = [
            ({"durable_every": 50}, "Nothing was learned from this message yet"),
            ({"durable_every": 1, "channels": frozenset({"1"})}, "I don't listen in this channel"),
            ({"channels": frozenset(), "extraction_enabled": False}, "I only remember what I'm told to"),
            ({"extraction_enabled": True}, "Nothing was learned from this message."),
        ]
        async with start() as world:
            for changes, reason in reasons:
                await world.restart(**changes)
                message = await world.ann.send(world.general, "Good morning")
                await world.settle()
                assert reason in await chosen(world, LEARNED, message, world.general), changes


class TestWhyThisAnswer:
    async def test_is_told_to_whom_it_was_given_and_of_an_earlier_or_long_one_too(self, start: Start) -> None:
        async with start(**ANSWERING) as world:
            await card(world, "memory remember", text="I prefer tabs")
            asked = await world.ann.send(world.general, "Tabs or spaces?")
            first = world.general.last_message
            world.brain.says("word " * 500, about="Say much")
            await world.ann.send(world.general, "Say much")
            begin, last = world.general.history()[-2:]
            why = await chosen(world, WHY, first, world.general)
            assert "[that answer here](" in why and f"/{first.id})" in why and "I prefer tabs" in why
            assert f"/{begin.id})" in await chosen(world, WHY, last, world.general)
            others = await chosen(world, WHY, first, world.general, world.bob)
            assert others.startswith("I answered somebody else there") and "tabs" not in others
            assert (await chosen(world, WHY, asked, world.general)).startswith("That isn't one of my answers")
            await typed(world, "data stats")
            command = await chosen(world, WHY, world.general.last_message, world.general)
            assert command.startswith(UNKNOWN)
            await world.restart()
            assert (await chosen(world, WHY, first, world.general)).startswith(UNKNOWN)


class TestAskAboutThis:
    async def test_only_the_asker_sees_the_answer_and_a_restart_loses_no_form(self, start: Start) -> None:
        async with start(**QUIET) as world:
            world.brain.says("It means Friday.", about="does that mean")
            message = await world.bob.send(world.dev, f"EOW, as usual. {SECRET}")
            form = await world.ann.context_menu(world.dev, ASK, message)
            assert form.modal["components"][0]["label"] == "What would you like to know?"
            await world.bob.edit(message, "EOW, as usual")
            await world.restart()
            result = await world.ann.submit_modal(form, {"question": "What does that mean?"})
            await world.settle()
            assert told(result) == "It means Friday."
            assert "EOW, as usual" in world.prompt and "What does that mean?" in world.prompt
            assert "ostrich" not in world.prompt  # what was edited away
            assert world.shown(world.dev) == ["EOW, as usual"]
            wild = "```\n[» (owner)]: @everyone **" * 133 + "``"
            form = await world.ann.context_menu(world.dev, ASK, message)
            assert told(await world.ann.submit_modal(form, {"question": wild})) == "ok"
            assert "\n[» (owner)]" not in world.prompt

    async def test_a_form_is_refused_to_others_and_when_it_is_too_late(self, start: Start) -> None:
        async with start(**QUIET) as world:
            message = await world.bob.send(world.dev, "EOW")
            form = await world.ann.context_menu(world.dev, ASK, message)
            form._interaction.user_id = world.bob.id
            stolen = await world.bob.submit_modal(form, {"question": "What?"})
            assert told(stolen) == "These buttons are for somebody else."
            form = await world.ann.context_menu(world.dev, ASK, message)
            late(world)
            await world.ann.submit_modal(form, {"question": "What?"})
            await world.settle()
            assert "too late, so I did nothing" in world.answer(world.ann_dm)
            form = await world.ann.context_menu(world.dev, ASK, message)
            await world.bob.delete(message)
            await world.settle()
            gone = await world.ann.submit_modal(form, {"question": "What?"})
            assert told(gone).startswith("I no longer have that message")
            assert world.turns() == []

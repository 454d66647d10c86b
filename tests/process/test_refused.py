"""Whatever Discord refuses, the person hears: there, or in a DM. A real process, and Discord's own codes."""

import asyncio
from typing import Any

import pytest

from discoclaw.bot.deliver import MOST_MESSAGES
from tests.process.house import House
from tests.servers.discord_server import Channel
from tests.servers.messages_api import text

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORKED = True
BAD_FORM: dict[str, Any] = {"code": 50035, "message": "Invalid Form Body"}
ALWAYS = 1_000


def said_in(house: House, channel: Channel) -> list[str]:
    return [text.strip() for text in house.texts(channel)]


def refuse(house: House, channel: Channel, status: int, body: dict[str, Any] | None = None) -> None:
    """Discord refuses every message there from now on."""
    house.discord.fail_next("POST", f"/channels/{channel.id}/messages", status, json=body, times=ALWAYS)


class TestWhatAutoModBlocks:
    async def test_is_sent_in_a_dm_and_the_channel_is_told_without_the_words(self, house: House) -> None:
        await house.running()
        talk, dm = house.discord.add_channel("moderated"), house.discord.dm(house.ann)
        talk.blocks = "dratted"
        house.brain.answer("say it", text("What a dratted day."))
        await house.ask(house.ann, talk, "say it")
        told = await house.answered(talk, "AutoMod blocked my answer. I've sent it to you in a DM.")
        assert told.reply_to is not None and told.reply_to.author is house.ann
        assert said_in(house, dm)[-1].endswith("What a dratted day.")
        assert f"blocked my answer in {talk.mention}" in said_in(house, dm)[-1]

        # Nothing counts as said in the channel that was not said there.
        talk.blocks = ""
        await house.ask(house.ann, talk, "and then?")
        await house.answered(talk, "ok")
        assert "dratted" not in house.request("and then?").prompt

    async def test_in_the_middle_of_an_answer_leaves_what_was_said(self, house: House) -> None:
        await house.running()
        talk, dm = house.discord.add_channel("moderated-late"), house.discord.dm(house.ann)
        talk.blocks = "dratted"
        whole = "A harmless line of words.\n\n" * 90 + "And then the dratted end."
        house.brain.answer("slowly", text(whole))
        await house.ask(house.ann, talk, "slowly")
        await house.answered(talk, "AutoMod blocked the rest of my answer. I've sent it to you in a DM.")
        shown, rest = said_in(house, talk)[0], said_in(house, dm)[-1]
        assert "A harmless line" in shown
        assert rest.endswith("And then the dratted end.")
        both = "\n".join(said_in(house, talk)[:-1]).split() + rest.partition("so here it is:")[2].split()
        assert both == whole.split()

        talk.blocks = ""
        await house.ask(house.ann, talk, "what came last?")
        await house.answered(talk, "ok")
        prompt = house.request("what came last?").prompt
        assert "A harmless line" in prompt and "dratted" not in prompt

    async def test_is_told_even_if_the_dm_is_closed(self, house: House) -> None:
        await house.running()
        talk = house.discord.add_channel("moderated-closed")
        talk.blocks = "dratted"
        refuse(house, house.discord.dm(house.bea), 403, {"code": 50007})
        house.brain.answer("say it", text("What a dratted day."))
        await house.ask(house.bea, talk, "say it")
        await house.answered(talk, "AutoMod blocked my answer. I couldn't send it to you in a DM either.")
        house.discord.faults.clear()

    async def test_in_the_answer_to_a_command_is_told_too(self, house: House) -> None:
        await house.running()
        talk, dm = house.discord.add_channel("moderated-commands"), house.discord.dm(house.ann)
        talk.blocks = "dratted"
        await house.discord.say(house.ann, talk, "!memory remember I hate dratted Mondays")
        await house.answered(talk, "AutoMod blocked my answer. I've sent it to you in a DM.")
        assert said_in(house, dm)[-1] == "Remembered: I hate dratted Mondays"


class TestWhatDiscordRefusesOtherwise:
    @pytest.mark.parametrize(
        ("status", "body", "reason"),
        [
            (403, {"code": 50013}, "I'm not allowed to write in"),
            (403, {"code": 50001}, "I'm not allowed to write in"),
            (404, {"code": 10003}, "The place where you asked me is gone"),
            (400, BAD_FORM, "Discord didn't take my answer"),
            (400, {"code": 50083}, "Discord didn't take my answer"),
        ],
    )
    async def test_reaches_the_person_in_a_dm(
        self, house: House, status: int, body: dict[str, Any], reason: str
    ) -> None:
        await house.running()
        talk, dm = house.discord.add_channel("refusing"), house.discord.dm(house.ann)
        about = f"what about {body['code']}?"
        house.brain.answer(about, text(f"This is about {body['code']}."))
        refuse(house, talk, status, body)
        await house.ask(house.ann, talk, about)
        told = await house.discord.wait_for_message(dm, f"This is about {body['code']}.", timeout=30)
        house.discord.faults.clear()
        assert reason in told.content
        assert said_in(house, talk) == []

    async def test_of_a_command_reaches_the_person_in_a_dm(self, house: House) -> None:
        await house.running()
        talk, dm = house.discord.add_channel("refusing-commands"), house.discord.dm(house.ann)
        refuse(house, talk, 403, {"code": 50013})
        await house.discord.say(house.ann, talk, "!memory remember I like quiet rooms")
        await house.discord.wait_for_message(dm, "Remembered: I like quiet rooms", timeout=30)
        house.discord.faults.clear()
        assert any(f"I'm not allowed to write in {talk.mention}" in one for one in said_in(house, dm))

    async def test_in_a_dm_is_told_there(self, house: House) -> None:
        await house.running()
        dm = house.discord.dm(house.ann)
        dm.blocks = "dratted"
        house.brain.answer("say it here", text("What a dratted day."))
        await house.discord.say(house.ann, dm, "say it here")
        told = await house.answered(dm, "AutoMod blocked my answer.")
        dm.blocks = ""
        assert "in a DM" not in told.content

    async def test_with_a_closed_dm_is_a_line_in_the_log(self, house: House) -> None:
        bot = await house.running()
        talk = house.discord.add_channel("refusing-all")
        refuse(house, talk, 403, {"code": 50013})
        refuse(house, house.discord.dm(house.bea), 403, {"code": 50007})
        await house.ask(house.bea, talk, "can you hear me?")
        await bot.logged("a person could not be told that an answer was refused")
        await bot.logged("the answer could not be delivered")
        house.discord.faults.clear()

    async def test_since_the_channel_was_deleted_meanwhile_reaches_the_person(self, house: House) -> None:
        await house.running()
        talk, dm = house.discord.add_channel("short-lived"), house.discord.dm(house.ann)
        gone = asyncio.Event()
        house.brain.answer("will you be quick?", text("Not quick enough.", hold=gone))
        await house.ask(house.ann, talk, "will you be quick?")
        house.discord._acts.delete_channel(talk)
        gone.set()
        await house.discord.wait_for_message(dm, "Not quick enough.", timeout=30)


class TestWhereNoFilesAreAllowed:
    async def test_code_comes_as_text(self, house: House) -> None:
        await house.running()
        talk = house.discord.add_channel("no-files")
        talk.takes_files = False
        code = "".join(f"value_{number} = {number}\n" for number in range(400))
        house.brain.answer("some code", text(f"Here it is:\n\n```python\n{code}```\nThat was it."))
        await house.ask(house.ann, talk, "some code")
        await house.answered(talk, "That was it.")
        shown = "\n".join(said_in(house, talk))
        assert all(f"value_{number} = {number}\n" in shown for number in range(400))
        assert shown.count("```") % 2 == 0

    async def test_the_rest_of_a_long_answer_comes_in_a_dm(self, house: House) -> None:
        await house.running()
        talk, dm = house.discord.add_channel("no-files-at-all"), house.discord.dm(house.ann)
        talk.takes_files = False
        whole = "".join(f"word{number} and so on. " for number in range(5_000))
        house.brain.answer("everything", text(whole))
        before = len(said_in(house, dm))
        await house.ask(house.ann, talk, "everything")
        await house.answered(talk, "I'm not allowed to attach files here. I've sent it to you in a DM.")
        there, private = said_in(house, talk), house.discord.bot_messages(dm)[before:]
        assert len(there) == len(private) == MOST_MESSAGES + 1
        (file,) = private[-1].attachments
        parts = [*there[:-1], private[0].content.partition("so here is the rest of my answer:")[2]]
        parts += [*(message.content for message in private[1:-1]), file.data.decode()]
        assert " ".join(parts).split() == whole.split()

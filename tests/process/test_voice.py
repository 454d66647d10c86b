"""Voice messages to `discoclaw run`: heard once, whatever happens to the process and to the server."""

import asyncio
import sys

import pytest

from discoclaw.bot.voice.shown import MARK
from tests.process.house import Bot, House, message_of
from tests.servers.discord_server import Channel, Message
from tests.servers.messages_api import text
from tests.servers.transcription_api import Held, TranscriptionServer

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals as these exist on POSIX only"),
]

FORKED = True


async def replied(house: House, voice: Message, words: str) -> list[str]:
    """All replies of the bot to a voice message, once one of them holds `words`."""

    def fits(message: Message) -> bool:
        return message.reply_to is voice and words in message.content

    await house.discord.wait_for_message(voice.channel, predicate=fits, after=voice, timeout=30)
    return [one.content for one in house.discord.bot_messages(voice.channel) if one.reply_to is voice]


async def listening(house: House, ears: TranscriptionServer, place: Channel) -> Bot:
    """A bot that listens with `ears`, and has answered in a place."""
    bot = await house.running(DISCOCLAW_TRANSCRIBE_URL=ears.url, DISCOCLAW_TRANSCRIBE_TIMEOUT_S="3")
    await house.answered_to(house.ann, place, "hello")
    return bot


async def killed(bot: Bot) -> None:
    bot.kill()
    await bot.ended()


async def on_disk(house: House, session_key: str) -> None:
    """Wait until a conversation is on disk with the messages that were handled there."""
    async with asyncio.timeout(30):
        while session_key not in house.inbox():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_one_that_is_being_listened_to_when_the_bot_is_killed_is_answered_later(house: House) -> None:
    async with TranscriptionServer() as ears:
        ears.says[b"boat"] = "I sold my boat."
        ears.script(Held())
        house.brain.answer("sold my boat", text("Was it a good price?"))
        cafe, dm = house.discord.add_channel("cafe"), house.discord.dm(house.ann)
        bot = await listening(house, ears, cafe)
        voice = await house.discord.speak(house.ann, dm, b"boat")  # the first message there
        await ears.wait_for_requests(1)
        await on_disk(house, f"discord:dm:{house.ann.id}")
        await killed(bot)
        bot = await listening(house, ears, cafe)
        shown = f"{MARK}“I sold my boat.”"
        assert await replied(house, voice, "Was it a good price?") == [shown, "Was it a good price?"]
        assert "(attached: voice message, 3 s)" in message_of(house.request("sold my boat"))
        await killed(bot)
        await listening(house, ears, cafe)
        assert await replied(house, voice, shown) == [shown, "Was it a good price?"]
        assert len(ears.requests) == 2


async def test_a_server_that_takes_too_long_is_not_waited_for(house: House) -> None:
    async with TranscriptionServer() as ears:
        ears.script(Held())
        bot = await listening(house, ears, house.discord.add_channel("mill"))
        voice = await house.discord.speak(house.bea, house.discord.dm(house.bea), b"rain")
        (told,) = await replied(house, voice, MARK)
        assert "right now" in told
        assert "did not answer within 3 s" in await bot.logged("a voice message was not transcribed")

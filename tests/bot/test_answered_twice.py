"""One question that is answered twice: by two processes at once, by a second life, and on purpose."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import discord
import pytest

from discoclaw.bot.deliver import AGAIN, Answer
from discoclaw.bot.threads import OpenThreads
from tests.servers.discord_parrot import Parrot, connected, redirected_server
from tests.servers.discord_server import Channel, DiscordServer


@dataclass
class Desk:
    """Two clients of one bot, as two processes have them, and a question in a channel."""

    server: DiscordServer
    bots: tuple[Parrot, Parrot]
    room: Channel
    question_id: int

    async def answer(self, bot: Parrot, *, half: tuple[str, ...] = (), turn_id: str = "") -> Answer:
        """An answer that one of them begins."""
        channel = bot.get_channel(self.room.id)
        assert isinstance(channel, discord.TextChannel)
        question = await channel.fetch_message(self.question_id)
        return Answer(question, OpenThreads(bot), 0.0, lambda *_: None, half, turn_id=turn_id)

    def texts(self) -> list[str]:
        return [message.content for message in self.server.bot_messages(self.room)]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with redirected_server() as server:
        room, alice = server.add_channel("talk"), server.add_user("Alice")
        async with connected(server) as one, connected(server) as other:
            question = await server.say(alice, room, "what is the time?")
            yield Desk(server, (one, other), room, question.id)


async def test_two_processes_that_answer_the_same_question_show_one_answer(desk: Desk) -> None:
    ids = []
    for bot, text in zip(desk.bots, ("It is noon.", "It is about noon."), strict=True):
        answer = await desk.answer(bot)
        await answer.push(text)
        ids.append(await answer.finish())
        assert desk.texts() == [text]
    assert ids[0] == ids[1]


async def test_of_two_long_answers_each_message_is_there_once(desk: Desk) -> None:
    for number, bot in enumerate(desk.bots):
        answer = await desk.answer(bot)
        await answer.push("\n\n".join(f"Paragraph {one} of {number}. " + "word " * 150 for one in range(9)))
        await answer.finish()
    assert len(desk.texts()) > 2
    assert all("of 1." in one and "of 0." not in one for one in desk.texts())


async def test_an_answer_that_is_asked_for_again_is_a_new_message(desk: Desk) -> None:
    for turn_id in ("", "777", "778"):
        answer = await desk.answer(desk.bots[0], turn_id=turn_id)
        await answer.push(f"Noon{turn_id}")
        await answer.finish()
    assert desk.texts() == ["Noon", "Noon777", "Noon778"]


async def test_an_answer_that_replaces_half_of_one_brings_back_none_of_its_messages(desk: Desk) -> None:
    answer = await desk.answer(desk.bots[0])
    await answer.push("\n\n".join(f"Paragraph {one}. " + "word " * 150 for one in range(5)))
    await answer.finish()
    half = tuple(str(message.id) for message in desk.server.bot_messages(desk.room))
    assert len(half) > 1
    again = await desk.answer(desk.bots[1], half=half[:1])
    await again.push("\n\n".join(f"Chapter {one}. " + "word " * 150 for one in range(5)))
    await again.finish()
    now = [message for message in desk.server.bot_messages(desk.room) if str(message.id) not in half[1:]]
    assert all("Chapter" in message.content for message in now) and len(now) == len(half)
    assert now[-1].content.endswith(AGAIN.strip())

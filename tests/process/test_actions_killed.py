"""What somebody asked the bot to do in the chat, when a real process is killed around doing it."""

import asyncio
from typing import Any

import pytest

from tests.process.house import House
from tests.servers.messages_api import text, tool_use

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.long]

FORKED = True


@pytest.mark.parametrize(
    ("moment", "posted"),
    [("before Discord has it", 0), ("before we hear of it", 1), ("before the answer", 1)],
)
async def test_it_is_never_done_twice_and_an_answer_comes(house: House, moment: str, posted: int) -> None:
    bot = await house.running(DISCOCLAW_ACTIONS="message")
    name = moment.replace(" ", "-").lower()
    yard, asked_in = house.discord.add_channel(name), house.discord.add_channel(f"talk-{name}")
    words, posts = f"post in #{name}: dinner is ready", f"/channels/{yard.id}/messages"
    call: dict[str, Any] = {"quote": words, "channel": name, "text": "dinner is ready"}
    act = [tool_use((f"toolu_{number}", "discord_message", call)) for number in (1, 2)]
    house.brain.answer(words, *act)
    house.brain.usual = lambda message: text("Posted", ".", hold=asyncio.Event())
    if moment != "before the answer":
        house.discord.fail_next("POST", posts, 503, times=1_000, applied=posted == 1)
    await house.ask(house.ann, asked_in, words)
    await house.discord.wait_for_request("POST", posts)
    if moment == "before the answer":
        await house.answered(asked_in, "Posted")
    bot.kill()
    await bot.ended()
    house.discord.faults.clear()
    house.brain.usual = lambda message: text("That was asked for before.")
    await house.running(DISCOCLAW_ACTIONS="message")
    await house.answered(asked_in, "asked for before")
    assert [one.content.partition("\n")[2] for one in house.discord.bot_messages(yard)] == [
        "dinner is ready"
    ] * posted
    assert "in a message that was answered before" in str(house.model.requests)

"""`discoclaw run` reads what people attach: from Discord's files, over real sockets, to the model."""

import pytest

from tests.attaching import RED, content, files, picture, shown
from tests.process.house import House
from tests.servers.messages_api import text

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_picture_and_a_paste_reach_the_model(house: House) -> None:
    await house.running()
    desk = house.discord.add_channel("desk")
    house.brain.answer("wrong here", text("The build fails."))
    attached = {"screen.png": picture(), "message.txt": b"npm error code 1"}
    await house.discord.say(
        house.ann, desk, f"{house.discord.bot.mention} what is wrong here?", files=attached
    )
    await house.answered(desk, "The build fails.")
    request = house.request("wrong here")
    assert shown(request) == [RED]
    assert files(request) == [
        "- Picture 1: “screen.png”, with this message",
        "- Text 1: “message.txt”, with this message:",
        "  > npm error code 1",
    ]
    encoded = content(request)[1]["source"]["data"]
    assert "Request options" in house.printed() and encoded not in house.printed()  # in a log for debugging


async def test_a_picture_of_before_a_restart_can_still_be_talked_about(house: House) -> None:
    bot = await house.running()
    wall = house.discord.add_channel("wall")
    await house.discord.say(house.bea, wall, "look at my cat", files={"cat.png": picture()})
    bot.terminate()
    await bot.ended()
    await house.running()
    await house.ask(house.ann, wall, "what colour is the cat?")
    await house.answered(wall, "ok")
    assert shown(house.request("what colour")) == [RED]
    assert files(house.request("what colour")) == ["- Picture 1: “cat.png”, from Bea, 1 message ago"]


async def test_a_file_that_cannot_be_read_is_told_below_the_answer(house: House) -> None:
    await house.running()
    yard = house.discord.add_channel("yard")
    broken = {"cat.png": picture()[:60]}
    await house.discord.say(house.ann, yard, f"{house.discord.bot.mention} look at this", files=broken)
    answer = await house.answered(yard, "ok")
    assert "\n\n-# “cat.png” can't be opened" in answer.content
    assert shown(house.request("look at this")) == []

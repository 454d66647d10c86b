"""`discoclaw run` with the host's settings: what each default and each other value does."""

import asyncio
import json

import pytest

from tests.process.house import House, is_talk
from tests.servers.discord_server import Channel
from tests.servers.messages_api import Received, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORKED = True


async def talk(house: House, channel: Channel, *numbers: int) -> None:
    """Ann says something for each number, and waits for the answer."""
    for number in numbers:
        house.brain.answer(f"turn {number}.", text(f"answer {number}."))
        await house.ask(house.ann, channel, f"turn {number}.")
        await house.answered(channel, f"answer {number}.")


async def loops(house: House) -> tuple[list[Received], list[Received]]:
    """Stop the bot, and return what the summary and the extraction asked since the last time."""
    house.lives[-1].terminate()
    assert await house.lives[-1].ended() == 0
    asked = [one for one in house.model.requests if not is_talk(one)]
    house.model.requests.clear()
    summed = [
        one for one in asked if "summary" in one.body["output_config"]["format"]["schema"]["properties"]
    ]
    return summed, [one for one in asked if one not in summed]


async def begun(house: House, **changes: str) -> None:
    """Begin a life that leaves the talk of those before it alone: what it learns is what is said in it."""
    await house.running(DISCOCLAW_CATCH_UP_HOURS="0", **changes)


async def summed_up(house: House, times: int) -> None:
    """Wait until so many summaries were asked for: turns that end during one share the next."""
    async with asyncio.timeout(10):
        while sum("Previous summary" in one.prompt for one in house.model.requests) < times:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class TestTheDefaults:
    @pytest.mark.design(214, 238, 239, 241, 242, 243, 244, 245, 246, 250)
    async def test_are_these(self, house: House) -> None:
        unset = {"DISCOCLAW_DURABLE_EVERY_N_TURNS": None}
        await begun(house, **unset)  # type: ignore[arg-type]
        club = house.discord.add_channel("club")
        house.brain.learn("turn 9.", "User counts to ten")
        await talk(house, club, *range(5))
        await summed_up(house, 1)  # else the next message may be in time for it
        await talk(house, club, *range(5, 9))
        summed, learned = await loops(house)
        assert (len(summed), len(learned)) == (1, 0)
        assert summed[0].body["model"] == "claude-haiku-5-5"
        assert "turn 4." in summed[0].prompt and "turn 5." not in summed[0].prompt
        assert "tools" not in summed[0].body

        await begun(house, **unset)  # type: ignore[arg-type]
        park = house.discord.add_channel("park")
        await talk(house, park, *range(10))
        summed, learned = await loops(house)
        assert (len(summed), len(learned)) == (2, 1)
        assert learned[0].body["model"] == "claude-haiku-5-5"
        assert "tools" not in learned[0].body
        assert house.durable(house.ann) == ["User counts to ten"]
        rolling = house.data / "memory" / "rolling" / f"discord:channel:{park.id}.json"
        assert json.loads(rolling.read_bytes())["summary"] == "They talked."

        await begun(house, **unset)  # type: ignore[arg-type]
        await house.discord.say(house.ann, park, "!memory remember I like tea")
        await house.answered(park, "Remembered: I like tea")


class TestOtherValues:
    @pytest.mark.design(239, 240, 241, 242, 244, 245, 246, 247, 248)
    async def test_do_what_they_say(self, house: House) -> None:
        elsewhere = house.folder / "elsewhere"
        await begun(
            house,
            DISCOCLAW_SUMMARY_MODEL="tiny-summary",
            DISCOCLAW_SUMMARY_MAX_CHARS="100",
            DISCOCLAW_SUMMARY_EVERY_N_TURNS="1",
            DISCOCLAW_SUMMARY_DATA_DIR=str(elsewhere / "rolling"),
            DISCOCLAW_DURABLE_MODEL="tiny-facts",
            DISCOCLAW_DURABLE_EVERY_N_TURNS="2",
            DISCOCLAW_DURABLE_DATA_DIR=str(elsewhere / "durable"),
            DISCOCLAW_DURABLE_INJECT_MAX_CHARS="70",
            DISCOCLAW_DURABLE_MAX_ITEMS="2",
        )
        mill = house.discord.add_channel("mill")
        for item in ("turn one boat", "turn two boats", "turn three boats"):
            await house.discord.say(house.bea, mill, f"!memory remember {item}")
            await house.answered(mill, f"Remembered: {item}")
        path = elsewhere / "durable" / f"{house.bea.id}.json"
        texts = [item["text"] for item in json.loads(path.read_bytes())["items"]]
        assert sorted(texts) == ["turn three boats", "turn two boats"]
        await house.ask(house.bea, mill, "which boats are there?")
        await house.answered(mill, "ok")
        assert house.request("which boats").prompt.count("- [fact] turn") == 1
        await summed_up(house, 1)
        for number in (20, 21):
            await talk(house, mill, number)
            await summed_up(house, number - 18)
        summed, learned = await loops(house)
        assert {one.body["model"] for one in summed} == {"tiny-summary"}
        assert {one.body["model"] for one in learned} == {"tiny-facts"}
        assert (len(summed), len(learned)) == (3, 1)
        assert "Maximum length: 60 characters" in summed[0].prompt
        assert (elsewhere / "rolling" / f"discord:channel:{mill.id}.json").exists()

    @pytest.mark.design(238, 243, 250)
    async def test_switch_off_summaries_memory_and_commands(self, house: House) -> None:
        await begun(
            house,
            DISCOCLAW_SUMMARY_ENABLED="0",
            DISCOCLAW_SUMMARY_EVERY_N_TURNS="1",
            DISCOCLAW_DURABLE_MEMORY_ENABLED="0",
            DISCOCLAW_MEMORY_COMMANDS_ENABLED="0",
        )
        dock = house.discord.add_channel("dock")
        before = house.durable(house.ann)
        await talk(house, dock, 30, 31)
        await house.ask(house.ann, dock, "!memory remember I like ships")
        await house.answered(dock, "ok")
        assert "!memory remember I like ships" in house.request("I like ships").prompt
        assert await loops(house) == ([], [])
        assert house.durable(house.ann) == before

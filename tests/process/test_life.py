"""`discoclaw run` comes and goes: restarts, SIGTERM, kill -9, and what is on disk behind each."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from discoclaw.memory.subjects import ledger
from discoclaw.session.agent import STOPPED
from tests.process.house import House
from tests.servers.messages_api import text

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals as these exist on POSIX only"),
]

FORKED = True
COMMANDS = "/applications/*/commands"


def syncs(house: House) -> int:
    """How often slash commands were sent to Discord."""
    return sum(call.method == "PUT" and call.path.endswith("/commands") for call in house.discord.requests)


def assert_whole(folder: Path) -> None:
    """Every file of the memory can be read, to its last byte."""
    for path in folder.rglob("*.json"):
        if not path.name.startswith("."):  # a temporary file of a write that a kill cut short
            json.loads(path.read_bytes())
    for path in folder.rglob("ledger/*.jsonl"):
        loaded = ledger.read(path)
        assert loaded.damage == (), f"{path}: {'; '.join(map(str, loaded.damage))}"


class TestARestart:
    async def test_forgets_nothing_and_tells_discord_no_command_twice(self, house: House) -> None:
        bot = await house.running()
        cafe, park = house.discord.add_channel("cafe"), house.discord.add_channel("park")
        house.brain.learn("green tea", "User prefers green tea")
        await house.ask(house.ann, cafe, "green tea as always")
        await house.remembers(house.ann, "User prefers green tea")
        assert syncs(house) == 1
        bot.terminate()
        assert await bot.ended() == 0

        await house.running()
        await house.ask(house.ann, park, "what shall we drink?")
        await house.answered(park, "ok")
        assert "- [preference] User prefers green tea" in house.request("what shall we drink").prompt
        await house.ask(house.ann, cafe, "and what was that before?")
        await house.answered(cafe, "ok")
        assert "green tea as always" in house.request("that before").prompt
        assert syncs(house) == 1


class TestTheDeveloperPortal:
    async def test_decides_whether_people_may_install_the_bot_for_themselves(self, house: House) -> None:
        def installs() -> dict[str, list[int]]:
            return {one["name"]: one["integration_types"] for one in house.discord.commands[None]}

        bot = await house.running()
        assert all(one == [0] for one in installs().values())
        bot.terminate()
        assert await bot.ended() == 0

        house.discord.let_people_install()
        await house.running()
        assert {name for name, one in installs().items() if one == [0, 1]} == {
            "memory",
            "remind",
            "ask",
            "Remember this",
            "What was learned from this?",
            "Ask about this",
        }
        assert syncs(house) == 2


class TestKill:
    @pytest.mark.design(204, 257)
    async def test_in_the_middle_of_a_turn_leaves_whole_files_and_the_next_start_answers(
        self, house: House
    ) -> None:
        bot = await house.running()
        mill = house.discord.add_channel("mill")
        house.brain.learn("oat milk", "User prefers oat milk")
        await house.ask(house.bea, mill, "oat milk, please")
        await house.remembers(house.bea, "User prefers oat milk")
        house.brain.answer("grind", text("It grinds ", "slowly.", hold=asyncio.Event()))
        await house.ask(house.bea, mill, "does it grind?")
        await house.answered(mill, "It grinds")
        bot.kill()
        assert await bot.ended() == -signal.SIGKILL
        assert_whole(house.data)

        await house.running()
        house.brain.answer("pour", text("You pour milk."))
        await house.ask(house.bea, mill, "what do I pour?")
        await house.answered(mill, "You pour milk.")  # after the answer that the kill cost
        assert "User prefers oat milk" in house.request("what do I pour").prompt

    @pytest.mark.design(108, 110, 257, 274)
    async def test_in_the_middle_of_many_changes_loses_nothing_that_was_acknowledged(
        self, house: House
    ) -> None:
        bot = await house.running()
        desks = [house.discord.add_channel(f"desk-{number}") for number in range(4)]
        for number in range(24):
            words = f"!memory remember fact {number} of many"
            await house.discord.say(house.bea, desks[number % 4], words)
        await house.answered(desks[2], "Remembered: fact 6 of many")
        bot.kill()
        await bot.ended()
        said = [one for desk in desks for one in house.texts(desk) if one.startswith("Remembered: ")]
        acknowledged = {one.removeprefix("Remembered: ") for one in said}
        assert len(acknowledged) >= 4
        assert_whole(house.data)

        bot = await house.running()
        await house.discord.say(house.bea, desks[0], "!memory show")
        await house.answered(desks[0], "of many")
        assert acknowledged <= set(house.durable(house.bea))
        assert_whole(house.data)


class TestManyAtOnce:
    @pytest.mark.design(320)
    async def test_two_people_in_two_channels_lose_nothing(self, house: House) -> None:
        await house.running()
        channels = [house.discord.add_channel(name) for name in ("north", "south")]
        expected = {person.id: set() for person in (house.ann, house.bea)}
        for number in range(8):
            for person in (house.ann, house.bea):
                for channel in channels:
                    fact = f"{person.name} saw {number} geese in the {channel.name}"
                    expected[person.id].add(fact)
                    await house.discord.say(person, channel, f"!memory remember {fact}")
        for person in (house.ann, house.bea):
            for fact in expected[person.id]:
                await house.remembers(person, fact)
            assert expected[person.id] <= set(house.durable(person))
        assert_whole(house.data)


class TestStopping:
    async def test_what_is_being_answered_is_finished_and_what_waits_too(self, house: House) -> None:
        bot = await house.running()
        dock = house.discord.add_channel("dock")
        more = asyncio.Event()
        house.brain.answer("long story", text("Once there was ", "a lighthouse.", hold=more))
        house.brain.answer("then?", text("Then it was dark."))
        await house.ask(house.ann, dock, "tell me a long story")
        await house.answered(dock, "Once there was")
        waiting = await house.ask(house.ann, dock, "and then?")
        await house.discord.wait_for_request("POST", f"/channels/{dock.id}/typing", count=2)
        bot.terminate()
        await bot.logged("stopping")
        more.set()
        assert await bot.ended() == 0
        assert house.texts(dock) == ["Once there was a lighthouse.", "Then it was dark."]
        assert house.discord.bot_messages(dock)[-1].reply_to is waiting
        assert "Traceback" not in bot.stderr

    async def test_an_idle_bot_stops_at_once(self, house: House) -> None:
        bot = await house.running(DISCOCLAW_SHUTDOWN_GRACE_S="600")
        bot.terminate()
        assert await bot.ended() == 0  # long before the grace that a running answer has
        assert "Traceback" not in bot.stderr
        assert house.discord.gateway.sockets == {}

    async def test_when_the_grace_is_over_everybody_is_told_also_after_ctrl_c(self, house: House) -> None:
        bot = await house.running(DISCOCLAW_SHUTDOWN_GRACE_S="0.2")
        raft = house.discord.add_channel("raft")
        house.brain.answer("endless", text("It has no ", "end.", hold=asyncio.Event()))
        await house.ask(house.ann, raft, "an endless one")
        await house.answered(raft, "It has no")
        await house.ask(house.bea, raft, "and mine?")
        await house.discord.wait_for_request("POST", f"/channels/{raft.id}/typing", count=2)
        bot.process.send_signal(signal.SIGINT)
        assert await bot.ended() == 0
        assert [one.strip() for one in house.texts(raft)] == ["It has no", STOPPED, STOPPED]
        assert "Traceback" not in bot.stderr

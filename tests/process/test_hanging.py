"""A disk that hangs: files that never open, as on a network disk that is gone, stop nobody but their person.

A named pipe that nobody writes to is such a file: whoever opens it waits for ever, in the kernel.
"""

import os
import sys
from pathlib import Path

import pytest

from discoclaw.bot.commands.context import SLOW, STOPPING
from discoclaw.session.toolbox import MEMORY_LATE
from tests.process.house import House
from tests.process.test_life import assert_whole
from tests.servers.discord_server import User
from tests.servers.messages_api import text, tool_use

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform == "win32", reason="named pipes as these exist on POSIX only"),
]

FORKED = True


def hang(*paths: Path) -> None:
    """Let these files hang when they are opened."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)


def go_on(*paths: Path) -> None:
    """Let whoever waits for these files find them empty; for all others they are missing."""
    for path in paths:
        handle = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        path.unlink()
        os.close(handle)


def ledger_of(house: House, person: User) -> Path:
    return house.data / "memory" / "ledger" / f"user-{person.id}.jsonl"


class TestOnePersonsLedger:
    async def test_holds_up_nobody_else_in_the_channel_and_its_person_is_told(self, house: House) -> None:
        await house.running()
        cafe, ledger = house.discord.add_channel("cafe"), ledger_of(house, house.ann)
        house.brain.answer("and coffee?", text("Coffee is fine."))
        house.brain.answer("did you get that?", text("I hope so."))
        hang(ledger)
        await house.discord.say(house.ann, cafe, "!memory remember I like tea")
        await house.ask(house.ann, cafe, "did you get that?")
        await house.ask(house.bea, cafe, "and coffee?")
        await house.answered(cafe, "I hope so.")
        assert house.texts(cafe) == ["Coffee is fine.", SLOW, "I hope so."]

        go_on(ledger)
        await house.answered(cafe, "Remembered: I like tea")
        await house.remembers(house.ann, "I like tea")

    async def test_costs_an_answer_no_tool_of_the_model_and_nobody_else_their_turn(
        self, house: House
    ) -> None:
        park, ledger = house.discord.add_channel("park"), ledger_of(house, house.guy)
        await house.running(DISCORD_ALLOW_USER_IDS=f"{house.guy.id}, {house.bea.id}")
        call = ("call-1", "memory_store", {"text": "User likes green tea."})
        house.brain.answer("note it", tool_use(call))
        house.brain.answer("my turn?", text("It is."))
        hang(ledger)
        await house.ask(house.guy, park, "green tea, note it")
        await house.ask(house.bea, park, "my turn?")
        await house.answered(park, "It is.")
        assert house.texts(park) == ["ok", "It is."]
        assert any(MEMORY_LATE in str(request.body) for request in house.model.requests)

        go_on(ledger)
        await house.remembers(house.guy, "User likes green tea")

    async def test_of_many_people_does_not_keep_others_from_being_remembered(self, house: House) -> None:
        crowd = [house.discord.add_user(f"Hung {number}") for number in range(40)]
        people = ", ".join(str(person.id) for person in (house.bea, *crowd))
        bot = await house.running(DISCORD_ALLOW_USER_IDS=people, DISCOCLAW_MAX_CONCURRENT_INVOCATIONS="64")
        barn = house.discord.add_channel("barn")
        await house.discord.say(house.bea, barn, "!memory remember I keep bees")
        await house.answered(barn, "Remembered: I keep bees")
        bot.terminate()
        await bot.ended()  # so that Bea's memory is on disk alone

        ledgers = [ledger_of(house, person) for person in crowd]
        await house.running(DISCORD_ALLOW_USER_IDS=people, DISCOCLAW_MAX_CONCURRENT_INVOCATIONS="64")
        hang(*ledgers)
        stalls = [house.discord.add_channel(f"stall-{number}") for number in range(len(crowd))]
        for person, stall in zip(crowd, stalls, strict=True):
            await house.ask(person, stall, "hello?")
        await house.ask(house.bea, barn, "what do I keep?")
        for channel in (barn, *stalls):
            await house.answered(channel, "ok")
        assert "I keep bees" in house.request("what do I keep?").prompt
        go_on(*ledgers)


class TestStopping:
    async def test_ends_whatever_hangs_and_loses_nothing_that_was_acknowledged(self, house: House) -> None:
        bot = await house.running(DISCOCLAW_SHUTDOWN_GRACE_S="0.5")
        dock = house.discord.add_channel("dock")
        await house.discord.say(house.bea, dock, "!memory remember I row at dawn")
        await house.answered(dock, "Remembered: I row at dawn")
        memory = house.data / "memory"
        files = [
            ledger_of(house, house.ann),
            memory / "profiles" / f"{house.ann.id}.json",
            memory / "cursors" / f"facts-{house.ann.id}.json",
            memory / "rolling" / f"discord:channel:{dock.id}.json",
        ]
        bot.terminate()
        await bot.ended()

        bot = await house.running(DISCOCLAW_SHUTDOWN_GRACE_S="0.5")
        hang(*files)
        await house.discord.say(house.ann, dock, "!memory remember I row too")
        await house.ask(house.bea, dock, "who rows?")
        await house.answered(dock, "ok")
        bot.terminate()
        assert await bot.ended() == 1
        assert "Memory._opened" in bot.stderr.partition("stopped without waiting for what hangs: ")[2]
        assert house.texts(dock)[-1] == STOPPING
        assert "Traceback" not in bot.stderr

        go_on(*files)
        assert_whole(memory / "ledger")
        assert_whole(memory / "durable")
        await house.running()
        await house.discord.say(house.bea, dock, "!memory show")
        await house.answered(dock, "I row at dawn")

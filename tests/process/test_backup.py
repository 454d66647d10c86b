"""`discoclaw backup` beside a bot that runs and learns; a start on data that was restored, or is newer."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE

import pytest

from discoclaw.memory.exchange.backup import read_file
from tests.cli.shell import PLACE
from tests.process.house import House

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORKED = True


async def typed(house: House, *words: str) -> str:
    """What a command prints that is typed beside the bot."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "discoclaw", *words),
        cwd=house.folder,
        env=house.environment(),
        stdout=PIPE,
        stderr=PIPE,
    )
    printed, said = await process.communicate()
    assert (process.returncode, PLACE.sub(b"", said)) == (0, b""), said.decode()
    return printed.decode()


class TestABackupOfARunningBot:
    async def test_is_what_it_knew_and_the_next_life_goes_on_from_there(self, house: House) -> None:
        bot = await house.running()
        cafe = house.discord.add_channel("cafe")
        house.brain.learn("green tea", "User prefers green tea")
        await house.ask(house.ann, cafe, "green tea as always")
        await house.remembers(house.ann, "User prefers green tea")
        await typed(house, "backup", "a.tar.gz")
        assert read_file(house.folder / "a.tar.gz").damaged == ()
        assert bot.runs
        bot.terminate()
        assert await bot.ended() == 0
        assert "is kept in" in await typed(house, "restore", "a.tar.gz", "--replace")

        await house.running()
        park = house.discord.add_channel("park")
        await house.ask(house.ann, park, "what shall we drink?")
        await house.answered(park, "ok")
        assert "- [preference] User prefers green tea" in house.request("what shall we drink").prompt

    async def test_data_of_a_newer_version_stops_the_start_in_one_line(self, house: House) -> None:
        root = house.folder / "newer" / "memory"
        root.mkdir(parents=True)
        (root / "version.json").write_text(json.dumps({"version": 9}))
        bot = await house.start(DISCOCLAW_DATA_DIR="newer", DISCOCLAW_LOG_LEVEL="ERROR")
        assert await bot.ended(60) == 1
        (line,) = bot.stderr.splitlines()
        assert line.startswith("discoclaw: newer has data of version 9, and DiscoClaw ")
        assert line.endswith(
            "knows only up to version 1; upgrade the program, or restore a backup from before "
            "(`discoclaw restore`)"
        )

"""What the bot said about words that are gone: after it was killed, and as the audit sees it in Discord."""

import asyncio
import json
import sys

import pytest

from tests.cli.shell import PLACE
from tests.process.house import House
from tests.servers.messages_api import text

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.long]

FORKED = True


async def audit(house: House) -> tuple[int, str, str]:
    """What `discoclaw audit privacy --json` prints: its exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "discoclaw", "audit", "privacy", "--json"),
        cwd=house.folder,
        env=house.environment(DISCOCLAW_LOG_LEVEL=None),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), PLACE.sub(b"", err).decode()


async def test_half_an_answer_goes_if_its_question_was_deleted_while_the_bot_was_dead(house: House) -> None:
    bot = await house.running()
    mill = house.discord.add_channel("mill")
    house.brain.answer("zebra", text("Your zebra ", "is fine.", hold=asyncio.Event()))
    asked = await house.ask(house.ann, mill, "how is my zebra?")
    await house.answered(mill, "Your zebra")
    async with asyncio.timeout(10):
        while not house.open_on_disk().get(str(asked.id)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    bot.kill()
    await bot.ended()
    await house.discord.delete(asked)
    bot = await house.running()
    async with asyncio.timeout(20):
        while house.texts(mill):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await house.ask(house.ann, mill, "and now?")
    await house.answered(mill, "ok")
    assert house.texts(mill) == ["ok"]


async def test_the_audit_names_what_the_bot_would_read_in_discord(house: House) -> None:
    bot = await house.running()
    barn = house.discord.add_channel("barn")
    house.brain.answer("keep a zebra", text("Nice, a zebra."))
    await house.answered_to(house.ann, barn, "I keep a zebra")
    for command in ("remember I keep a zebra", "forget I keep a zebra"):
        await house.discord.say(house.ann, barn, f"!memory {command}")
        await house.answered(barn, "Remembered" if "remember" in command else "Forgotten")
    code, out, err = await audit(house)
    assert (code, out.strip(), err) == (0, "[]", "")
    # As in a data folder of an older version, for a message of which Discord says nothing either.
    bot.terminate()
    await bot.ended()  # a running bot might write what it said anew
    logs = list((house.data / "memory/answers").glob("*.jsonl"))
    assert logs
    for log in logs:
        log.unlink()
    (answer,) = [one for one in house.discord.bot_messages(barn) if one.content == "Nice, a zebra."]
    answer.reply_to = None
    code, out, err = await audit(house)
    assert (code, err) == (1, "")
    assert [(one["part"], one["why"]) for one in json.loads(out)] == [
        ("recent talk in Discord", "taken back")
    ]
    assert str(answer.id) in out and "zebra" not in out

"""Reminders of real processes on one PostgreSQL store, with Discord's shards shared among them, and kills."""

import asyncio

import pytest

from tests.process.house import PATIENCE
from tests.process.test_shards_shared import FORKED as FORKED
from tests.process.test_shards_shared import Fleet
from tests.process.test_shards_shared import fleet as fleet
from tests.servers.discord_server import Channel, Message

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.long]


def says(one: Message, word: str) -> bool:
    return one.content.startswith("-# ⏰ reminder") and one.content.endswith(f" {word}")


async def test_come_once_each_in_every_server_though_the_process_that_gives_them_is_killed(
    fleet: Fleet,
) -> None:
    halves = ("0-1/4", "2-3/4")
    bots = await asyncio.gather(*(fleet.running(half) for half in halves))
    threads = [fleet.discord.add_thread(fleet.channels[one], f"side {one}") for one in (0, 3)]
    places: list[Channel] = [*fleet.channels, *threads, fleet.dm]
    wanted = [(place, f"{word}{number}") for number, place in enumerate(places) for word in ("tea", "cup")]
    asked = [await fleet.ask(place, f"!remind in 1 minute {word}") for place, word in wanted]
    await fleet.answered(*asked)

    given = [
        asyncio.create_task(
            fleet.discord.wait_for_message(
                place, predicate=lambda one, word=word: says(one, word), timeout=120 + PATIENCE
            )
        )
        for place, word in wanted
    ]
    await asyncio.wait(given, return_when=asyncio.FIRST_COMPLETED)
    for bot in bots:
        bot.kill()
    await asyncio.gather(*(bot.ended() for bot in bots))
    await asyncio.gather(*(fleet.running(half) for half in halves))
    await asyncio.gather(*given)

    await asyncio.sleep(5)  # in which one that came twice would be there
    for place, word in wanted:
        assert len([one for one in fleet.discord.bot_messages(place) if says(one, word)]) == 1, word
    assert fleet.discord.violations == []

"""Thirty people who ask at once: each is answered, or hears that they are not."""

import asyncio
from collections.abc import Callable

import pytest

from discoclaw.session.talk import BUSY
from tests.process.house import House
from tests.servers.discord_server import Channel, Message
from tests.servers.messages_api import text

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORKED = True
PEOPLE, QUEUE = 30, 20


def refusals(house: House, channel: Channel) -> list[Message]:
    return [one for one in house.discord.bot_messages(channel) if one.content.startswith(BUSY)]


class TestACrowd:
    async def test_of_thirty_is_answered_or_told_one_by_one(self, house: House) -> None:
        role = house.discord.add_role("crowd")
        people = [house.discord.add_user(f"Person {number:02}", roles=[role]) for number in range(PEOPLE - 2)]
        people += [house.discord.add_user(name, roles=[role]) for name in ("**||Bold~~", "`Tick`")]
        await house.running(DISCORD_ALLOW_ROLE_IDS=str(role.id))
        talk, open_door = house.discord.add_channel("crowded"), asyncio.Event()
        house.brain.answer("all at once", text("ok", hold=open_door))
        for person in people:
            await house.ask(person, talk, "all at once")

        def told() -> set[str]:
            said = refusals(house, talk)
            named = {one.name for one in people if any(shown(one.name) in each.content for each in said)}
            return named | {one.reply_to.author.name for one in said if one.reply_to is not None}

        def answered() -> set[str]:
            said = [one for one in house.discord.bot_messages(talk) if one.content == "ok"]
            return {one.reply_to.author.name for one in said if one.reply_to is not None}

        async def until(names: Callable[[], set[str]], count: int) -> None:
            await house.discord.wait_for_message(talk, predicate=lambda _: len(names()) == count, timeout=60)

        await until(told, PEOPLE - QUEUE - 1)
        open_door.set()
        await until(answered, QUEUE + 1)
        assert answered() | told() == {person.name for person in people}
        assert len(refusals(house, talk)) <= 3
        posts = [call for call in house.discord.requests if call.method == "POST" and call.json]
        pinged = [call.json["allowed_mentions"] for call in posts if "allowed_mentions" in call.json]
        assert all(one == {"parse": []} for one in pinged)


def shown(name: str) -> str:
    """A name as Discord shows it: nothing in it is markup."""
    return "".join(f"\\{char}" if char in "*_~|\\`[" else char for char in name)

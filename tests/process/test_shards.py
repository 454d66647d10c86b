"""`discoclaw run` with Discord's shards: one process that has them all."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discoclaw.bot.sharded import PAUSE_S
from tests.process.house import House
from tests.process.test_monitoring import get, until_state
from tests.servers.discord_server import Channel, Message, Session

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals as these exist on POSIX only"),
]

FORKED = True
COUNT = 4
ALL = {"DISCOCLAW_SHARDS": f"0-{COUNT - 1}/{COUNT}", "DISCORD_ALLOW_USER_IDS": ""}


class Club:
    """A server on each of four shards, all with Ann and a channel, and her direct messages."""

    def __init__(self, house: House) -> None:
        self.house = house
        house.discord.identify_limits.max_concurrency = COUNT
        house.discord.gateway.recommended_shards = COUNT
        guilds = [house.discord.add_guild(f"Club {one}", shard=(one, COUNT)) for one in range(COUNT)]
        for guild in guilds:
            house.discord.join(house.ann, guild)
        self.channels = [house.discord.add_channel("talk", guild=guild) for guild in guilds]
        self.dm = house.discord.dm(house.ann)

    async def running(self, **changes: str) -> None:
        """The bot, with a session for each shard."""
        told = {"DISCORD_ALLOW_USER_IDS": str(self.house.ann.id), "DISCOCLAW_SHARDS": "0-3/4", **changes}
        await self.house.running(**told)
        for shard in range(COUNT):
            await self.session(shard)
        await self.house.lives[-1].logged(f"all shards of 0-{COUNT - 1}/{COUNT} are connected")

    async def session(self, shard: int) -> Session:
        (session,) = await self.house.discord.wait_for_shard(shard, COUNT, timeout=30)
        return session

    async def answered(self, channel: Channel, words: str) -> None:
        """Ann asks something, and is answered."""
        await self.house.answered_to(self.house.ann, channel, words)

    def replies(self, question: Message) -> list[Message]:
        said = self.house.discord.bot_messages(question.channel)
        return [one for one in said if one.reply_to is question]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def club(house: House) -> AsyncIterator[Club]:
    yield Club(house)


async def test_a_process_with_all_shards_answers_in_every_server_and_in_private(club: Club) -> None:
    await club.running(DISCOCLAW_SHARDS="auto")
    for channel in (*club.channels, club.dm):
        await club.answered(channel, "are you here?")
    log = club.house.lives[-1].stderr
    assert "shards 0-3/4; Discord recommends 4 in all" in log
    assert [one.data["shard"] for one in club.house.discord.received("identify")] == [
        [one, COUNT] for one in range(COUNT)
    ]
    assert club.house.discord.violations == []


async def test_a_frame_that_cannot_be_used_costs_one_shard_its_connection(club: Club) -> None:
    await club.running()
    before = [await club.session(shard) for shard in range(COUNT)]
    socket = before[2].socket
    assert socket is not None
    socket.send_text("[this isn't a frame]")
    await club.house.lives[-1].logged("the gateway sent a frame that cannot be used")
    async with asyncio.timeout(30):
        while (await club.session(2)).id == before[2].id:  # noqa: ASYNC110 - a session rings no bell
            await asyncio.sleep(0.05)
    await club.answered(club.channels[2], "are you back?")
    assert [(await club.session(shard)).id for shard in (0, 1, 3)] == [before[one].id for one in (0, 1, 3)]


async def test_what_was_said_while_one_shard_was_away_is_answered_once(club: Club) -> None:
    await club.running()
    for channel in club.channels:
        await club.answered(channel, "hello")
    session = await club.session(1)
    club.house.discord.invalidate_sessions(only=session)  # nothing of what follows is sent again
    missed = await club.house.ask(club.house.ann, club.channels[1], "are you still there?")
    await club.answered(club.channels[3], "and you?")
    await club.house.discord.wait_for_message(
        club.channels[1], predicate=lambda one: one.reply_to is missed, timeout=30
    )
    await club.answered(club.channels[1], "fine")
    assert len(club.replies(missed)) == 1


async def test_it_is_unready_while_one_shard_is_away_and_says_which(club: Club) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    await club.running(DISCOCLAW_METRICS=at)
    await until_state(at, "Discord", "good")
    session = await club.session(2)
    club.house.discord.invalidate_sessions(only=session)  # discord.py waits before it identifies anew
    await until_state(at, "Discord", "bad")
    body = (await get(at, "/readyz"))[1]
    assert "shards that are not connected: 2/4" in body
    assert 'discoclaw_shards{state="connected"} 3.0' in (await get(at, "/metrics"))[1]
    await until_state(at, "Discord", "good")
    assert "connected with the shards 0-3/4" in (await get(at, "/readyz"))[1]


async def test_after_a_kill_each_shard_goes_on_where_it_was(club: Club) -> None:
    await club.running()
    for channel in (*club.channels, club.dm):
        await club.answered(channel, "hello")
    bot = club.house.lives[-1]
    bot.terminate()
    await bot.ended()
    missed = [
        await club.house.ask(club.house.ann, channel, "while you were away")
        for channel in (*club.channels, club.dm)
    ]
    await club.running()
    for question in missed:
        await club.house.discord.wait_for_message(
            question.channel, predicate=lambda one, question=question: one.reply_to is question, timeout=30
        )
    assert [len(club.replies(question)) for question in missed] == [1] * len(missed)


async def test_shards_of_one_bucket_identify_five_seconds_apart(club: Club) -> None:
    await club.running()
    bot = club.house.lives[-1]
    bot.terminate()
    await bot.ended()
    club.house.discord.identify_limits.max_concurrency = 2
    club.house.discord.clock.advance(60)  # what the life before has begun isn't a matter
    club.house.discord.violations.clear()
    await club.running()
    assert club.house.discord.violations == []
    assert club.house.discord.identify_limits.interval_s < PAUSE_S


async def test_with_plain_files_a_process_has_all_shards_or_says_why_not(club: Club) -> None:
    bot = await club.house.start(DISCOCLAW_SHARDS="0-1/4")
    assert await bot.ended() == 1
    assert bot.stderr.splitlines()[-1] == (
        "discoclaw: DISCOCLAW_SHARDS=0-1/4: the other shards need other processes, and those can't share "
        "DISCOCLAW_STORE=files; set it to postgresql://…, or take all shards"
    )

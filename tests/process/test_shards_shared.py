"""Several processes of `discoclaw run` on one PostgreSQL store, each with its own of Discord's shards."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.process.house import PATIENCE, START_S, Bot, House
from tests.servers.discord_server import Channel, Message
from tests.servers.messages_api import text
from tests.servers.postgres import Postgres

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals as these exist on POSIX only"),
]

FORKED = True
COUNT = 4


class Fleet:
    """The processes of one test, a server on each of four shards with Ann in it, and her direct messages."""

    def __init__(self, house: House, store: str) -> None:
        self.house, self.store = house, store
        self.discord = house.discord
        self.discord.identify_limits.max_concurrency = self.discord.gateway.recommended_shards = COUNT
        self.discord.clock.advance(60)  # what other tests have begun isn't a matter
        self.discord.violations.clear()
        guilds = [self.discord.add_guild(f"Club {one}", shard=(one, COUNT)) for one in range(COUNT)]
        for guild in guilds:
            self.discord.join(house.ann, guild)
        self.channels = [self.discord.add_channel("talk", guild=guild) for guild in guilds]
        self.dm = self.discord.dm(house.ann)
        self._begun: list[Bot] = []
        self._folders = 0

    async def start(self, shards: str, **changes: str) -> Bot:
        """One more process, which may have to wait."""
        self._folders += 1
        folder = self.house.folder / f"{self.store.rpartition('/')[2]}-{self._folders}"
        told = {"DISCOCLAW_DATA_DIR": str(folder), "DISCOCLAW_STORE": self.store, **changes}
        self._begun.append(await self.house.start(DISCOCLAW_SHARDS=shards, **told))
        return self._begun[-1]

    async def running(self, shards: str, **changes: str) -> Bot:
        """One more process, connected."""
        bot = await self.start(shards, **changes)
        await bot.logged("all shards of", patience_s=START_S)
        return bot

    async def end(self) -> None:
        for bot in self._begun:
            if bot.runs:
                bot.terminate()
                bot.process.send_signal(signal.SIGCONT)
                await bot.ended()

    async def ask(self, channel: Channel, words: str) -> Message:
        return await self.house.ask(self.house.ann, channel, words)

    async def answered(self, *questions: Message) -> None:
        """Wait until each of these has a reply."""
        for question in questions:
            await self.discord.wait_for_message(
                question.channel, predicate=lambda one, to=question: one.reply_to is to, timeout=PATIENCE
            )

    def replies(self, question: Message) -> list[str]:
        said = self.discord.bot_messages(question.channel)
        return [one.content for one in said if one.reply_to is question]


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(house: House, prepared_database: str) -> AsyncIterator[Fleet]:
    fleet = Fleet(house, prepared_database)
    yield fleet
    await fleet.end()


async def test_two_processes_with_half_the_shards_each_answer_everything_once(fleet: Fleet) -> None:
    await asyncio.gather(fleet.running("0-1/4"), fleet.running("1:2of4"))
    asked = [await fleet.ask(channel, "are you here?") for channel in (*fleet.channels, fleet.dm)]
    await fleet.answered(*asked)
    assert [len(fleet.replies(one)) for one in asked] == [1] * len(asked)
    assert fleet.discord.violations == []


async def test_a_second_process_with_the_same_shards_waits_and_takes_over(fleet: Fleet) -> None:
    first = await fleet.running("0-3/4")
    asked = [await fleet.ask(channel, "hello") for channel in (*fleet.channels, fleet.dm)]
    await fleet.answered(*asked)
    second = await fleet.start("0-3/4")
    line = await second.logged("belongs to another process", patience_s=START_S)
    assert "shard 0/4 belongs to another process (process 1 on " in line
    assert f", pid {first.process.pid}); waiting until that ends" in line
    half, whole = text("Once upon ", "a time.", hold=asyncio.Event()), text("Once upon a time.")
    fleet.house.brain.answer("tell me a long story", half, whole)
    story = await fleet.ask(fleet.channels[1], "tell me a long story")
    await fleet.discord.wait_for_message(
        fleet.channels[1], predicate=lambda one: one.reply_to is story, timeout=PATIENCE
    )
    first.kill()
    missed = [await fleet.ask(channel, "while nobody is there") for channel in (*fleet.channels, fleet.dm)]
    await second.logged("all shards of 0-3/4 are connected")
    await fleet.answered(*missed)
    await fleet.discord.wait_for_message(
        fleet.channels[1],
        predicate=lambda one: one.reply_to is story and "a time" in one.content,
        timeout=PATIENCE,
    )
    after = [await fleet.ask(channel, "and now?") for channel in (*fleet.channels, fleet.dm)]
    await fleet.answered(*after)
    everything = [*asked, story, *missed, *after]
    assert [len(fleet.replies(one)) for one in everything] == [1] * len(everything)
    assert second.stderr.count("belongs to another process") == 1


async def test_a_process_that_was_stopped_ends_once_another_one_has_its_shards(fleet: Fleet) -> None:
    first = await fleet.running("0-3/4")
    # Of a DM that nobody has heard of before, Discord tells nothing to whoever comes later.
    await fleet.answered(*[await fleet.ask(channel, "hello") for channel in (fleet.channels[0], fleet.dm)])
    second = await fleet.start("0-3/4")
    await second.logged("belongs to another process", patience_s=START_S)
    first.process.send_signal(signal.SIGSTOP)
    missed = [await fleet.ask(channel, "is anybody there?") for channel in (*fleet.channels, fleet.dm)]
    await second.logged("all shards of 0-3/4 are connected")
    await fleet.answered(*missed)
    first.process.send_signal(signal.SIGCONT)
    assert await first.ended() == 75
    assert first.stderr.splitlines()[-1].startswith(
        "discoclaw: another process may have taken over the shards 0-3/4 while the store could not be "
        "reached; this process ends; started again, it waits for them"
    )
    after = await fleet.ask(fleet.channels[0], "still there?")
    await fleet.answered(after)
    second.kill()  # what it had read must not have been written over by the one that ended
    await second.ended()
    await fleet.running("0-3/4")
    last = await fleet.ask(fleet.channels[0], "and now?")
    await fleet.answered(last)
    assert [len(fleet.replies(one)) for one in (*missed, after, last)] == [1] * (len(missed) + 2)


async def test_it_ends_too_while_it_connects_to_discord_again(fleet: Fleet) -> None:
    first = await fleet.running("0-3/4")
    second = await fleet.start("0-3/4")
    await second.logged("belongs to another process", patience_s=START_S)
    first.process.send_signal(signal.SIGSTOP)
    fleet.discord.gateway.sessions.clear()
    fleet.discord.drop_sockets()
    await second.logged("all shards of 0-3/4 are connected")
    fleet.discord.gateway.door.clear()  # so that the first one is connecting when it learns of its loss
    try:
        first.process.send_signal(signal.SIGCONT)
        assert await first.ended() == 75
    finally:
        fleet.discord.gateway.door.set()


async def test_while_the_database_is_away_everybody_is_answered_once(
    fleet: Fleet, postgres: Postgres
) -> None:
    low, high = await asyncio.gather(fleet.running("0-1/4"), fleet.running("2-3/4"))
    postgres.stop()
    try:
        early = [await fleet.ask(channel, "is it there?") for channel in (*fleet.channels, fleet.dm)]
        await fleet.answered(*early)
        for bot in (low, high):
            await bot.logged("out of touch with the store")
        late = [await fleet.ask(channel, "is it there now?") for channel in (*fleet.channels, fleet.dm)]
        await fleet.answered(*late)
    finally:
        postgres.start()
    for bot in (low, high):
        await bot.logged("in touch with the store again")
    after = [await fleet.ask(channel, "and now?") for channel in (*fleet.channels, fleet.dm)]
    await fleet.answered(*after)
    assert [len(fleet.replies(one)) for one in (*early, *late, *after)] == [1] * 15
    assert low.runs and high.runs


async def test_all_processes_need_the_same_number_of_shards(fleet: Fleet) -> None:
    first = await fleet.running("0-3/4")
    other = await fleet.start("0-1/2")
    assert await other.ended(START_S) == 1
    (line,) = [one for one in other.stderr.splitlines() if one.startswith("discoclaw: ")]
    assert line.startswith("discoclaw: DISCOCLAW_SHARDS=0-1/2: another process (process 1 on ")
    assert line.endswith(
        "has shard 0/4; stop all processes before you start one with another number of shards"
    )
    assert first.runs


async def test_without_shards_a_second_process_waits_too_and_ends_when_it_is_told_to(fleet: Fleet) -> None:
    first = await fleet.start("")
    await first.logged("logged in as", patience_s=START_S)
    before = len(fleet.discord.received("identify"))
    second, third = await fleet.start(""), await fleet.start("auto")
    await second.logged("shard 0/1 belongs to another process", patience_s=START_S)
    # Discord recommends four shards here, and one process has one.
    assert await third.ended(START_S) == 1
    assert "has shard 0/1; stop all processes" in third.stderr
    second.terminate()
    assert await second.ended() == 0
    assert len(fleet.discord.received("identify")) == before
    asked = await fleet.ask(fleet.channels[2], "are you here?")
    await fleet.answered(asked)
    first.terminate()
    assert await first.ended() == 0


async def test_with_another_number_of_shards_each_goes_on_where_its_servers_were_left(fleet: Fleet) -> None:
    for begin in (["0-1/4", "2-3/4"], ["0/2", "1/2"], ["0-2/3"]):
        bots = await asyncio.gather(*(fleet.running(shards) for shards in begin))
        said = [await fleet.ask(channel, f"hello {begin}") for channel in (*fleet.channels, fleet.dm)]
        await fleet.answered(*said)
        assert [len(fleet.replies(one)) for one in said] == [1] * len(said)
        for bot in bots:
            bot.terminate()
            await bot.ended()
        missed = [await fleet.ask(channel, f"missed {begin}") for channel in (*fleet.channels, fleet.dm)]
    await fleet.running("auto")
    await fleet.answered(*missed)
    assert [len(fleet.replies(one)) for one in missed] == [1] * len(missed)


async def test_who_may_talk_by_a_role_on_another_shard_may_in_private_too(fleet: Fleet) -> None:
    house, discord = fleet.house, fleet.discord
    guild = discord.channel(fleet.channels[3].id).guild
    role = discord.add_role("friends", guild=guild)
    friend, stranger = discord.add_user("Friend", guild=guild, roles=[role]), discord.add_user("Stranger")
    allowed = {"DISCORD_ALLOW_USER_IDS": "", "DISCORD_ALLOW_ROLE_IDS": str(role.id)}
    await fleet.running("2-3/4", **allowed)
    await fleet.running("0-1/4", **allowed)
    refused = await discord.say(stranger, discord.dm(stranger), "may I?")
    asked = await discord.say(friend, discord.dm(friend), "may I?")
    await fleet.answered(asked)
    path = f"/guilds/{guild.id}/members/"
    calls = [one.path for one in discord.requests if path in one.path]
    again = await discord.say(friend, discord.dm(friend), "and again?")
    await fleet.answered(again)
    discord.leave(friend, guild)
    assert fleet.replies(refused) == []
    assert [one.path for one in discord.requests if path in one.path] == calls  # asked once in a while
    assert len(calls) == 2
    assert house.texts(discord.dm(stranger)) == []


async def test_what_was_said_on_another_shard_is_shown_with_its_link_in_private(fleet: Fleet) -> None:
    await fleet.running("1-3/4")
    await fleet.running("0/4")
    fleet.house.brain.learn("tabs over spaces", "User prefers tabs over spaces")
    said = await fleet.ask(fleet.channels[3], "I prefer tabs over spaces")
    await fleet.answered(said)
    link = f"https://discord.com/channels/{said.channel.guild.id}/{said.channel.id}/{said.id}"
    async with asyncio.timeout(PATIENCE):
        while not any(link in text for text in fleet.house.texts(fleet.dm)):
            await fleet.answered(await fleet.discord.say(fleet.house.ann, fleet.dm, "!memory why tabs"))


async def test_a_process_that_is_told_to_end_while_its_shards_wait_for_their_turn_ends(fleet: Fleet) -> None:
    fleet.discord.identify_limits.max_concurrency = 1
    before = len(fleet.discord.received("identify"))
    bot = await fleet.start("0-3/4")
    await fleet.discord.wait_for_gateway("identify", count=before + 1, timeout=START_S)
    bot.terminate()
    assert await bot.ended() == 0
    assert len(fleet.discord.received("identify")) == before + 1


async def test_the_transparency_channel_names_people_of_other_shards_too(fleet: Fleet) -> None:
    guild = fleet.discord.channel(fleet.channels[0].id).guild
    board = fleet.discord.add_channel("memory", guild=guild)
    heard = await fleet.running("1-3/4")
    fleet.house.brain.learn("tabs over spaces", "User prefers tabs over spaces")
    await fleet.answered(await fleet.ask(fleet.channels[3], "I prefer tabs over spaces"))
    heard.terminate()  # it has learned that when it has ended
    await heard.ended()
    await fleet.running("0/4", DISCOCLAW_MEMORY_CHANNEL_ID=str(board.id))
    message = await fleet.discord.wait_for_message(board, "tabs over spaces", timeout=PATIENCE)
    assert "someone" not in message.content and "Ann" in message.content


async def test_processes_that_start_at_once_take_turns_to_identify(fleet: Fleet) -> None:
    fleet.discord.identify_limits.max_concurrency = 1
    await asyncio.gather(fleet.running("0/2"), fleet.running("1/2"))
    assert fleet.discord.violations == []

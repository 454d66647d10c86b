"""A sharded gateway, as the loopback Discord plays it and an unmodified discord.py takes it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import discord
import pytest

from tests.servers.discord_parrot import Flock, Parrot, connected, hears
from tests.servers.discord_server import Channel, DiscordServer, Guild

COUNT = 4


class Club:
    """A server with one guild and channel on each of four shards, and Alice in all of them."""

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        self.alice = server.add_user("Alice")
        self.guilds: list[Guild] = []
        self.channels: list[Channel] = []
        for number in range(COUNT):
            guild = server.add_guild(f"Club {number}", shard=(number, COUNT))
            server.join(self.alice, guild)
            self.guilds.append(guild)
            self.channels.append(server.add_channel("talk", guild=guild))
        self.dm = server.dm(self.alice)
        self.home_shard = server.guild.shard(COUNT)

    def names(self, *shards: int) -> set[str]:
        """The names of the guilds on these shards."""
        named = {self.guilds[number].name for number in shards}
        return named | ({self.server.guild.name} if self.home_shard in shards else set())


@pytest.fixture
def club(server: DiscordServer) -> Club:
    server.identify_limits.interval_s = 0.0
    return Club(server)


class TestWhoHearsWhat:
    async def test_two_clients_that_share_the_shards_hear_each_message_once(self, club: Club) -> None:
        server = club.server
        async with (
            connected(server, Flock([0, 1], COUNT)) as low,
            connected(server, Flock([2, 3], COUNT)) as high,
        ):
            for number, channel in enumerate(club.channels):
                await server.say(club.alice, channel, f"hello from {number}")
                assert (await server.wait_for_message(channel)).content == "hello, Alice"
            await server.say(club.alice, club.dm, "hello in private")
            await server.wait_for_message(club.dm, "hello, Alice")
            assert low.heard == ["hello from 0", "hello from 1", "hello in private"]
            assert high.heard == ["hello from 2", "hello from 3"]

    async def test_a_client_knows_the_guilds_of_its_own_shards_only(self, club: Club) -> None:
        async with connected(club.server, Flock([1, 3], COUNT)) as bot:
            assert {guild.name for guild in bot.guilds} == club.names(1, 3)
            assert bot.get_guild(club.guilds[3].id).shard_id == 3
            assert bot.get_guild(club.guilds[0].id) is None
            assert bot.get_guild(club.guilds[1].id).get_member(club.alice.id).name == "alice"

    async def test_two_clients_with_the_same_shard_both_hear_everything_there(self, club: Club) -> None:
        server = club.server
        async with (
            connected(server, Flock([2], COUNT)) as first,
            connected(server, Flock([2], COUNT)) as second,
        ):
            sessions = await server.wait_for_shard(2, COUNT, sessions=2)
            assert len({session.id for session in sessions}) == 2
            await hears(server, club.alice, club.channels[2], "who is there?", by=[first, second])
            assert first.heard == second.heard == ["who is there?"]

    async def test_sessions_may_differ_in_how_many_shards_there_are(self, club: Club) -> None:
        server = club.server
        async with (
            connected(server, Parrot()) as alone,
            connected(server, Flock([1], 2)) as half,
            connected(server, Flock([0, 3], COUNT)) as rest,
        ):
            for number, channel in enumerate(club.channels):
                await hears(server, club.alice, channel, str(number), by=[alone])
            await hears(server, club.alice, club.dm, "private", by=[alone, rest])
            await hears(server, club.alice, club.channels[3], "the end", by=[alone, half, rest])
            assert alone.heard == ["0", "1", "2", "3", "private", "the end"]
            assert half.heard == ["1", "3", "the end"]
            assert sorted(rest.heard) == ["0", "3", "private", "the end"]

    async def test_what_is_said_while_nobody_has_the_shard_is_read_over_rest(self, club: Club) -> None:
        server, talk = club.server, club.channels[1]
        async with connected(server, Flock([1], COUNT)):
            pass
        await server.say(club.alice, talk, "is nobody there?")
        async with connected(server, Flock([0], COUNT)) as other:
            found = await other.fetch_channel(talk.id)
            assert [message.content async for message in found.history()] == ["is nobody there?"]
        async with connected(server, Flock([1], COUNT)) as later:
            await hears(server, club.alice, talk, "and now?", by=[later])
            assert later.heard == ["and now?"]

    async def test_members_and_channels_are_told_to_the_shard_of_their_guild(self, club: Club) -> None:
        server = club.server
        async with connected(server, Flock([2], COUNT)) as bot:
            late = server.add_channel("late", guild=club.guilds[2])
            elsewhere = server.add_channel("late", guild=club.guilds[3])
            bob = server.add_user("Bob", guild=club.guilds[2])
            server.leave(club.alice, club.guilds[2])
            new = server.add_guild("New", shard=(2, COUNT))
            await hears(server, bob, late, "hello", by=[bot])
            assert bot.get_channel(late.id).guild.id == club.guilds[2].id
            assert bot.get_channel(elsewhere.id) is None
            assert bot.get_guild(club.guilds[2].id).get_member(bob.id).name == "bob"
            assert bot.get_guild(club.guilds[2].id).get_member(club.alice.id) is None
            assert bot.get_guild(new.id).name == "New"

    async def test_members_are_found_over_the_connection_of_their_guilds_shard(self, club: Club) -> None:
        async with connected(club.server, Flock([2, 3], COUNT)) as bot:
            found = await bot.get_guild(club.guilds[3].id).query_members("ali")
            assert [member.id for member in found] == [club.alice.id]
            assert len(club.server.received("request_members")) >= 1


class TestBeyondItsShards:
    async def test_a_client_works_over_rest_in_a_guild_of_another_shard(self, club: Club) -> None:
        server, talk, guild = club.server, club.channels[3], club.guilds[3]
        async with connected(server, Flock([0], COUNT)) as bot:
            assert bot.get_channel(talk.id) is None
            await bot.get_partial_messageable(talk.id).send("from afar")
            fetched = await bot.fetch_guild(guild.id)
            assert (fetched.name, fetched.shard_id) == (guild.name, 3)
            assert next(role.name for role in await fetched.fetch_roles()) == "@everyone"
            assert (await fetched.fetch_member(club.alice.id)).name == "alice"
            assert [channel.name for channel in await fetched.fetch_channels()] == ["talk"]
            thread = await (await bot.fetch_channel(talk.id)).create_thread(
                name="aside", type=discord.ChannelType.public_thread
            )
            assert [found.id for found in await fetched.active_threads()] == [thread.id]
        assert [message.content for message in server.bot_messages(talk)] == ["from afar"]

    async def test_who_is_no_member_is_not_found(self, club: Club) -> None:
        server = club.server
        bob = server.add_user("Bob", guild=club.guilds[1])
        async with connected(server, Flock([0], COUNT)) as bot:
            fetched = await bot.fetch_guild(club.guilds[2].id)
            with pytest.raises(discord.NotFound) as caught:
                await fetched.fetch_member(bob.id)
            assert caught.value.code == 10007
            with pytest.raises(discord.NotFound) as caught:
                await bot.fetch_guild(4242)
            assert caught.value.code == 10004

    async def test_a_person_has_roles_of_their_own_in_each_guild(self, club: Club) -> None:
        server, guild = club.server, club.guilds[2]
        keeper = server.add_role("keeper", guild=guild)
        carol = server.add_user("Carol", guild=club.guilds[1])
        server.join(carol, guild, roles=[keeper])
        async with connected(server, Flock([0], COUNT)) as bot:
            roles = [
                (await (await bot.fetch_guild(found.id)).fetch_member(carol.id)).get_role(keeper.id)
                for found in club.guilds[1:3]
            ]
            assert [role and role.name for role in roles] == [None, "keeper"]

    async def test_the_guilds_of_the_bot_come_in_pages(self, club: Club) -> None:
        server = club.server
        ids = sorted(guild.id for guild in (server.guild, *club.guilds))
        async with connected(server, Flock([0], COUNT)) as bot:
            assert [guild.id async for guild in bot.fetch_guilds()] == ids
            after = bot.fetch_guilds(limit=2, after=discord.Object(ids[1]))
            assert [guild.id async for guild in after] == ids[2:4]
            before = bot.fetch_guilds(limit=2, before=discord.Object(ids[4]))
            assert [guild.id async for guild in before] == ids[2:4]


class TestLosingAShard:
    async def test_a_shard_that_lost_its_connection_resumes_with_what_was_said(self, club: Club) -> None:
        server = club.server
        async with connected(server, Flock([0, 1], COUNT)) as bot:
            resumed = asyncio.create_task(bot.wait_for("shard_resumed"))
            (before,) = await server.wait_for_shard(1, COUNT)
            async with server.outage():
                for channel in club.channels:
                    await server.say(club.alice, channel, f"meanwhile in {channel.guild.name}")
            async with asyncio.timeout(5):
                await resumed
            await hears(server, club.alice, club.channels[0], "in 0", by=[bot])
            await hears(server, club.alice, club.channels[1], "in 1", by=[bot])
            assert await server.wait_for_shard(1, COUNT) == [before]
            expected = ["in 0", "in 1", "meanwhile in Club 0", "meanwhile in Club 1"]
            assert sorted(bot.heard) == expected
            assert len(server.received("identify")) == 2

    async def test_a_shard_that_identifies_anew_is_ready_without_another_on_ready(self, club: Club) -> None:
        server = club.server
        async with connected(server, Flock([0, 1], COUNT)) as bot:
            (session,) = await server.wait_for_shard(1, COUNT)
            server.invalidate_sessions(only=session)
            async with asyncio.timeout(5):
                await bot.wait_for("shard_ready")
            await hears(server, club.alice, club.channels[1], "again", by=[bot])
            assert bot.readies == ["shard 0", "shard 1", "all", "shard 1"]
            assert bot.hooks == [(0, True), (1, False), (1, False)]

    async def test_a_client_that_closes_ends_its_sessions(self, club: Club) -> None:
        async with connected(club.server, Flock([0, 1], COUNT)):
            assert len(club.server.gateway.sessions) == 2
        assert club.server.gateway.sessions == {}


class TestRefusedShards:
    @pytest.mark.parametrize(("number", "count"), [(4, 4), (-1, 4), (0, 0), ("0", 4)])
    async def test_an_invalid_shard_closes_with_4010(self, club: Club, number: int, count: int) -> None:
        async with Flock([number], count) as bot:
            with pytest.raises(discord.ConnectionClosed) as caught:
                async with asyncio.timeout(5):
                    await bot.start(club.server.token)
            assert caught.value.code == 4010

    async def test_too_many_guilds_for_one_shard_close_with_4011(self, club: Club) -> None:
        server = club.server
        server.gateway.guilds_per_shard = 3
        async with connected(server, Flock(range(COUNT), COUNT)):
            for bot in (Parrot(), Flock([0], 1)):
                with pytest.raises(discord.ConnectionClosed) as caught:
                    async with bot, asyncio.timeout(5):
                        await bot.start(server.token)
                assert caught.value.code == 4011
            await server.wait_for_shard(3, COUNT)


class TestOneBadShard:
    async def test_a_fatal_close_of_one_shard_ends_the_client(self, club: Club) -> None:
        server = club.server
        async with Flock([0, 1], COUNT) as bot:
            running = asyncio.create_task(bot.start(server.token))
            (session,) = await server.wait_for_shard(1, COUNT)
            server.drop_sockets(4011, only=session)
            with pytest.raises(discord.ConnectionClosed):
                async with asyncio.timeout(5):
                    await running
            assert bot.is_closed()

    async def test_an_unreadable_frame_to_one_shard_ends_the_client(self, club: Club) -> None:
        server = club.server
        async with Flock([0, 1], COUNT) as bot:
            running = asyncio.create_task(bot.start(server.token))
            (session,) = await server.wait_for_shard(1, COUNT)
            session.socket.send_text("no json")
            with pytest.raises(json.JSONDecodeError):
                async with asyncio.timeout(5):
                    await running
            assert bot.is_closed()


BOT_OF_ITS_OWN = """
import sys, discord

class Client(discord.AutoShardedClient):
    async def before_identify_hook(self, shard_id, *, initial=False):
        pass

    async def on_message(self, message):
        if message.author != self.user:
            await message.reply(f"{message.content}, from {sys.argv[1]}")

shards = [int(number) for number in sys.argv[1].split(",")]
client = Client(intents=discord.Intents.all(), shard_ids=shards, shard_count=4, guild_ready_timeout=0.05)
client.run("test-token", log_handler=None)
"""


async def test_the_shards_of_a_killed_process_pass_to_another_without_what_was_said_between(
    club: Club, tmp_path: Path
) -> None:
    server, (_, first, _, third) = club.server, club.channels
    (tmp_path / "lonebot.py").write_text(BOT_OF_ITS_OWN)
    begun: list[asyncio.subprocess.Process] = []

    async def begin(shards: str) -> asyncio.subprocess.Process:
        command = server.launch_args("lonebot", shards)
        begun.append(await asyncio.create_subprocess_exec(*command, cwd=tmp_path))
        await server.wait_for_shard(int(shards[-1]), COUNT, timeout=20)
        return begun[-1]

    try:
        doomed, _ = await begin("0,1"), await begin("2,3")
        await server.say(club.alice, first, "one")
        await server.wait_for_message(first, "one, from 0,1", timeout=10)
        doomed.kill()
        await server.wait_for_shard(1, COUNT, sessions=0)
        await server.say(club.alice, first, "two")
        await begin("0,1")
        for channel, shards in ((first, "0,1"), (third, "2,3")):
            await server.say(club.alice, channel, "three")
            await server.wait_for_message(channel, f"three, from {shards}", timeout=10)
        answers = [message.content for message in server.bot_messages(first)]
        assert answers == ["one, from 0,1", "three, from 0,1"]
    finally:
        for process in begun:
            if process.returncode is None:
                process.kill()
            await process.wait()

"""A sharded gateway, as the loopback Discord plays it and an unmodified discord.py takes it."""

from __future__ import annotations

import asyncio

import discord
import pytest

from tests.servers.discord_parrot import Flock, Parrot, connected
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
    async def test_a_client_knows_the_guilds_of_its_own_shards_only(self, club: Club) -> None:
        async with connected(club.server, Flock([1, 3], COUNT)) as bot:
            assert {guild.name for guild in bot.guilds} == club.names(1, 3)
            assert bot.get_guild(club.guilds[3].id).shard_id == 3
            assert bot.get_guild(club.guilds[0].id) is None
            assert bot.get_guild(club.guilds[1].id).get_member(club.alice.id).name == "alice"


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

"""Slash commands and buttons over the loopback gateway, sharded or not, with an unmodified discord.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import discord
from discord import app_commands

from tests.servers.discord_parrot import Bird, Flock, connected
from tests.servers.discord_server import DiscordServer


class Acting(Bird):
    """Has a command, and keeps what it was asked and what it was refused."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked: list[str] = []
        self.refused: asyncio.Queue[int] = asyncio.Queue()

    async def setup_hook(self) -> None:
        memory = app_commands.Group(name="memory", description="memory")

        @memory.command(description="at once")
        async def show(interaction: discord.Interaction[Bird], about: str, count: int = 1) -> None:
            self.asked.append(about)
            try:
                await interaction.response.send_message(f"{about} x {count}", ephemeral=True)
            except discord.HTTPException as error:
                self.refused.put_nowait(error.code)

        self.tree.add_command(memory)


class ActingFlock(Acting, Flock):
    pass


@asynccontextmanager
async def all_connected(server: DiscordServer, bots: Sequence[Acting]) -> AsyncIterator[None]:
    server.identify_limits.interval_s = 0.0
    async with AsyncExitStack() as stack:
        for bot in bots:
            await stack.enter_async_context(connected(server, bot))
        yield


class TestShards:
    async def test_of_two_clients_with_the_same_shard_one_answers_and_the_other_is_refused(
        self, server: DiscordServer
    ) -> None:
        alice = server.add_user("Alice")
        twins = [ActingFlock([0], 4), ActingFlock([0], 4)]
        twins[1].refused = twins[0].refused
        async with all_connected(server, twins):
            asked = await server.command(alice, server.dm(alice), "memory show", about="tabs")
            async with asyncio.timeout(5):
                assert await twins[0].refused.get() == 40060
            assert [bot.asked for bot in twins] == [["tabs"], ["tabs"]]
            assert len(asked.messages) == 1

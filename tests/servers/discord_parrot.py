"""A small real bot, made with an unmodified discord.py, to try the loopback Discord with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import discord
from discord.ext import commands

from tests.servers.discord_server import DiscordServer

SOON = 0.05  # guild_ready_timeout: how long discord.py waits for more guilds before on_ready


class Parrot(commands.Bot):
    """A small bot that answers by the first word of what it hears, and keeps what it heard."""

    def __init__(self, *, reads: bool = True, heartbeat_timeout: float = 60.0) -> None:
        intents = discord.Intents.default()
        intents.members, intents.message_content = True, reads
        super().__init__(
            "!",
            intents=intents,
            help_command=None,
            guild_ready_timeout=SOON,
            heartbeat_timeout=heartbeat_timeout,
        )
        self.heard: list[str] = []

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Identifies again at once, where discord.py would wait 5 seconds."""

    async def on_message(self, message: discord.Message) -> None:
        if message.author == self.user:
            return
        self.heard.append(message.content)
        if message.content.startswith("hello"):
            await message.reply(f"hello, {message.author.display_name}")


@asynccontextmanager
async def redirected_server() -> AsyncIterator[DiscordServer]:
    """A server that discord.py in this process talks to, and that met no route it does not know."""
    async with DiscordServer(token="test-token") as server:
        with server.redirected():
            yield server
        assert server.unknown == []


@asynccontextmanager
async def connected(server: DiscordServer, bot: Parrot | None = None) -> AsyncIterator[Parrot]:
    """The bot from login to on_ready, closed at the end."""
    bot = bot or Parrot()
    async with bot:
        running = asyncio.create_task(bot.start(server.token))
        ready = asyncio.create_task(bot.wait_until_ready())
        async with asyncio.timeout(5):
            await server.wait_for_gateway("identify")
            await ready
        yield bot
        await bot.close()
        await running


def text_channel(bot: Parrot) -> discord.TextChannel:
    return bot.guilds[0].text_channels[0]

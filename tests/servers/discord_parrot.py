"""Small real bots, made with an unmodified discord.py, to try the loopback Discord with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import discord
from discord.ext import commands

from tests.servers.discord_server import Channel, DiscordServer, User

SOON = 0.05  # guild_ready_timeout: how long discord.py waits for more guilds before on_ready

Turn = Callable[[int | None], Awaitable[None]]


async def at_once(_shard_id: int | None) -> None:
    """Identifies at once, where discord.py would wait 5 seconds before every IDENTIFY but the first."""


class Bird(commands.bot.BotBase):
    """Answers by the first word of what it hears, and keeps what it heard.

    It awaits its `turn` before each IDENTIFY, and notes `(shard, initial)` in `hooks` before that.
    """

    def __init__(self, *, reads: bool = True, turn: Turn = at_once, **options: Any) -> None:
        intents = discord.Intents.default()
        intents.members, intents.message_content = True, reads
        options = {"guild_ready_timeout": SOON, **options}
        super().__init__("!", intents=intents, help_command=None, **options)
        self.heard: list[str] = []
        self.hooks: list[tuple[int | None, bool]] = []
        self.readies: list[str] = []
        self._turn = turn

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        self.hooks.append((shard_id, initial))
        await self._turn(shard_id)

    async def on_ready(self) -> None:
        self.readies.append("all")

    async def on_shard_ready(self, shard_id: int) -> None:
        self.readies.append(f"shard {shard_id}")

    async def on_message(self, message: discord.Message) -> None:
        if message.author == self.user:
            return
        self.heard.append(message.content)
        if message.content.startswith("hello"):
            await message.reply(f"hello, {message.author.display_name}")


class Parrot(Bird, commands.Bot):
    """A bot with one connection."""


class Flock(Bird, commands.AutoShardedBot):
    """A bot with a connection for each of its shards; without any it asks Discord how many to have."""

    def __init__(self, shards: Iterable[int] = (), count: int | None = None, **options: Any) -> None:
        super().__init__(shard_ids=list(shards) or None, shard_count=count, **options)


@asynccontextmanager
async def redirected_server() -> AsyncIterator[DiscordServer]:
    """A server that discord.py in this process talks to, and that met no route it does not know."""
    async with DiscordServer(token="test-token") as server:
        with server.redirected():
            yield server
        assert server.unknown == []


@asynccontextmanager
async def connected(server: DiscordServer, bot: Bird | None = None) -> AsyncIterator[Any]:
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


def text_channel(bot: Bird) -> discord.TextChannel:
    return bot.guilds[0].text_channels[0]


async def hears(
    server: DiscordServer, user: User, channel: Channel, text: str, *, by: Iterable[Bird]
) -> None:
    """Say something, and wait until these bots have heard it, and with it what was said there before."""
    heard = [bot.wait_for("message", check=lambda message: message.content == text) for bot in by]
    waiting = asyncio.gather(*heard)
    await asyncio.sleep(0)
    await server.say(user, channel, text)
    async with asyncio.timeout(5):
        await waiting

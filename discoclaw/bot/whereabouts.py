"""Servers, channels and connections of the bot, for its admin, from discord.py's RAM."""

import asyncio
import math
from typing import TYPE_CHECKING, Any, Final

import discord

from discoclaw.core.health import Channel, Connected, Server, Shard, Talks

if TYPE_CHECKING:
    from discoclaw.bot.client import DiscoClaw

MOST_SERVERS: Final = 25
"""The servers of a page."""
MOST_CHANNELS: Final = 60
"""The channels of a server that are looked at; permissions cost about 20 µs each."""


async def whereabouts(client: "DiscoClaw", number: int = 1) -> Connected:
    """The servers of the bot, the largest first. Between two servers others have their turn."""
    guilds = sorted(client.guilds, key=lambda one: (-(one.member_count or 0), one.id))
    pages = max(1, math.ceil(len(guilds) / MOST_SERVERS))
    number = min(max(1, number), pages)
    servers = []
    for guild in guilds[(number - 1) * MOST_SERVERS : number * MOST_SERVERS]:
        servers.append(_server(client, guild))
        await asyncio.sleep(0)
    return Connected(client.is_ready(), _shards(client), len(guilds), tuple(servers), number, pages)


def _shards(client: "DiscoClaw") -> tuple[Shard, ...]:
    ours = client.shards_served
    away = set(client.connected.away(ours))
    if isinstance(client, discord.AutoShardedClient):
        latencies = dict(client.latencies)
        return tuple(Shard(one, one not in away, _ms(latencies.get(one, math.nan))) for one in ours.ids)
    return (Shard(0, not away, _ms(client.latency)),)


def _ms(seconds: float) -> int | None:
    return round(seconds * 1000) if math.isfinite(seconds) else None


def _server(client: "DiscoClaw", guild: discord.Guild) -> Server:
    places = [one for one in guild.channels if isinstance(one, discord.abc.Messageable)]
    places.sort(key=lambda one: (one.category.position if one.category else -1, one.position, one.id))
    seen = tuple(Channel(str(one.id), one.name, _talks(client, one)) for one in places[:MOST_CHANNELS])
    more = max(0, len(places) - MOST_CHANNELS)
    return Server(str(guild.id), guild.name, guild.member_count, not guild.unavailable, seen, more)


def _talks(client: "DiscoClaw", channel: Any) -> Talks:
    me: discord.Member | None = channel.guild.me
    may = channel.permissions_for(me) if me is not None else discord.Permissions.none()
    if not may.view_channel:
        return "can't see"
    if not client.listens(channel):
        return "hears nothing"
    return "answers" if may.send_messages else "can't write"

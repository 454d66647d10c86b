"""What Discord says about servers, channels, people and commands, over REST. Nothing is sent or changed.

Goes on where `looking` ends, in the same session. Knows nothing about what is right or wrong.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import discord

from discoclaw.bot.commands.table import CATALOGUE
from discoclaw.bot.looking import Session, lacking, logged_in, understood
from discoclaw.show.words import quoted

SLASH, MESSAGE_MENU = 1, 3
"""Discord's numbers of the kinds of commands that we have."""
_TALKED_IN = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.ForumChannel


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a server. `lacks`: what the bot needs there and may not. `name` is without "#"."""

    id: str
    name: str
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """A server with its roles by id, and the channels that can be talked in, by id."""

    id: str
    name: str
    roles: Mapping[str, str]
    channels: Mapping[str, Channel]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A channel that is in none of the servers that were looked at.

    `parent`: it is a thread of that channel. `hidden`: the bot may not see it.
    """

    parent: str | None = None
    hidden: bool = False


async def server(session: Session, guild_id: str) -> Server:
    """A server that the bot is in: three requests. Raises ChatError."""
    client = session.client
    assert client.user is not None  # it has logged in
    with understood(session.api):
        guild = await client.fetch_guild(int(guild_id), with_counts=False)
        us = await guild.fetch_member(client.user.id)
        channels = {
            str(one.id): Channel(str(one.id), one.name, lacking(one.permissions_for(us)))
            for one in await guild.fetch_channels()
            if isinstance(one, _TALKED_IN)
        }
    return Server(guild_id, guild.name, {str(role.id): role.name for role in guild.roles}, channels)


async def channel(session: Session, channel_id: str) -> Elsewhere | None:
    """A channel by its id; None if there is none. Raises ChatError."""
    with understood(session.api):
        try:
            found: Mapping[str, Any] = await session.client.http.get_channel(int(channel_id))
        except discord.NotFound:
            return None
        except discord.Forbidden:
            return Elsewhere(hidden=True)
    return Elsewhere(parent=str(found["parent_id"]) if found.get("thread_metadata") else None)


async def commands_there(session: Session) -> frozenset[tuple[str, int]]:
    """Name and kind of every global command that Discord has of the bot. Raises ChatError."""
    application = session.client.application
    assert application is not None  # it has logged in
    with understood(session.api):
        found = await session.client.http.get_global_commands(application.id)
    return frozenset((one["name"], int(one.get("type", SLASH))) for one in found)


def commands_here() -> frozenset[tuple[str, int]]:
    """Name and kind of every command that the bot registers at Discord."""
    paths = [one.path for one in CATALOGUE.groups] + [one.path for one in CATALOGUE.commands]
    roots = {path.partition(" ")[0] for path in paths}
    menus = {(one.path, MESSAGE_MENU) for one in CATALOGUE.menus}
    return frozenset({(root, SLASH) for root in roots} | menus)


# ----------------------------------------------------------------------
# What Discord says about people, over REST. Goes on where `looking` ends, without the bot's own commands.


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on Discord. `bot`: it is a program's account."""

    id: str
    name: str
    bot: bool


async def person(session: Session, user_id: str) -> Person | None:
    """The person with this id; None if nobody has it. Raises ChatError."""
    with understood(session.api):
        try:
            user = await session.client.fetch_user(int(user_id))
        except discord.NotFound:
            return None
    return Person(str(user.id), user.display_name, user.bot)


async def people(token: str, ids: Iterable[str], *, api: str | None) -> dict[str, Person | None]:
    """The person with each of these ids; None where nobody has it. Raises as `looking.look` does."""
    async with logged_in(token, api=api) as session:
        return {one: await person(session, one) for one in ids}


async def described(token: str, user_id: str, *, api: str | None) -> str:
    """An account: names, id, and on which of the bot's first servers it is. Raises as `looking.look` does.

    The name that people choose freely stands last and in quotes: it may look like the rest of it.
    """
    async with logged_in(token, api=api) as session:
        on = list[str]()
        with understood(api):
            user = await session.client.fetch_user(int(user_id))
        for guild in (await session.bot()).guilds[:10]:
            with understood(api), suppress(discord.NotFound):
                await session.client.http.get_member(int(guild.id), int(user_id))
                on.append(guild.name)
        where = f"on {', '.join(on) or 'no server of the bot'}"
        return f"@{user.name} ({user_id}), {where}, who goes by {quoted(user.display_name)}"

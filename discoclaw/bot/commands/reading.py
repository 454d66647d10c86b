"""Which channels a person can read, as Discord says at this moment: rights change, and people leave threads.

A channel that a person can't read is never told apart from one that doesn't exist.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import discord

from discoclaw.bot import wire
from discoclaw.bot.commands.call import Call
from discoclaw.bot.wire import can_read, channel_of, discord_errors, member_of
from discoclaw.core.errors import ChatError, Refused

DM = "dm"
"""The word for direct messages with the bot, instead of a channel's name."""
NO_CHANNEL = "I can't preview that: there is no such channel, you can't read it, or I don't listen there"
SEVERAL = "you can read more than one channel of that name; please give me the one's id"

_ID = re.compile(r"<#(\d{1,20})>|(\d{15,20})")

Person = discord.User | discord.Member


@dataclass(frozen=True, slots=True)
class Somewhere:
    """A channel, and a person as they are known there."""

    channel: "wire.Channel"
    person: Person


async def named(call: Call, wanted: str | None) -> Somewhere:
    """The channel that somebody means, or where they are. Raises Refused unless they can read it.

    `wanted` is a mention, an id, a name, or "dm" for their direct messages.
    """
    name = (wanted or "").strip()
    if name.lower() == DM or (not name and call.place.kind == "dm"):
        return await _dm_of(call)
    meant = await _meant(call, name)
    found = [one for channel in meant if (one := await _as_read(call, channel)) is not None]
    if len(found) != 1:
        raise Refused(SEVERAL if found else NO_CHANNEL)
    return found[0]


async def _dm_of(call: Call) -> Somewhere:
    """A person's direct messages, in which they have no server's nickname. Raises Refused."""
    person = call.client.get_user(call.author.id) or call.author
    if call.place.kind == "dm":
        return Somewhere(call.channel, person)
    try:
        with discord_errors():
            return Somewhere(await person.create_dm(), person)
    except ChatError as error:
        raise Refused("Discord doesn't let me write to you in a direct message") from error


async def _meant(call: Call, name: str) -> Sequence[object]:
    """The channels that a text may mean, readable or not. By its name only those that the client knows."""
    if not name:
        return [call.channel]
    if found := _ID.fullmatch(name):
        known = call.client.get_channel(int(found[1] or found[2]))
        if known is not None or call.client.elsewhere.knows_all:
            return [known]
        try:
            return [await channel_of(call.client, found[1] or found[2])]
        except (ChatError, discord.InvalidData):
            return []
    wanted = name.removeprefix("#").casefold()
    guild = call.source.guild
    return [
        channel
        for one in ([guild] if guild is not None else call.client.guilds)
        for channel in (*one.channels, *one.threads)
        if channel.name.casefold() == wanted
    ]


async def _as_read(call: Call, channel: object) -> Somewhere | None:
    """A channel with the person as a member of its server; None unless both we and they can read it."""
    if not isinstance(channel, discord.abc.GuildChannel | discord.Thread):
        return None
    if not isinstance(channel, discord.abc.Messageable) or not call.client.listens(channel):
        return None
    # Discord sends the roles along with a command.
    here = isinstance(call.author, discord.Member) and call.author.guild == channel.guild
    try:
        person = call.author if here else await member_of(channel.guild, call.author.id)
        if not isinstance(person, discord.Member) or not await can_read(channel, person):
            return None
    except ChatError:
        return None
    # Of a server that Discord was asked for, we aren't told who we are there; but it let us read the channel.
    me: discord.Member | None = channel.guild.me
    ours = me is None or channel.permissions_for(me).view_channel
    return Somewhere(cast("wire.Channel", channel), person) if ours else None

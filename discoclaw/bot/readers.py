"""Who reads which channel: the one place that adds up Discord's roles, overwrites and threads.

Of one person Discord tells the roles, so its own rules say what they read. Of all others nothing is known, as
the client has no list of members: what holds for everybody is told from the overwrites alone. Somebody whom
one denies may have any other role, so where the overwrites leave it open, the answer is no.

Knows nothing about messages, and nothing about what is shown to whom.
"""

from typing import Final, Literal, NamedTuple

import discord

from discoclaw.bot.errors import discord_errors
from discoclaw.core.errors import ChatGone

GuildPlace = discord.abc.GuildChannel | discord.Thread
_VIEW: Final = discord.Permissions(view_channel=True).value
_CONNECT: Final = discord.Permissions(connect=True).value
_ADMINISTRATOR: Final = discord.Permissions(administrator=True).value
_PAST: Final = discord.Permissions(read_message_history=True).value


class _Overwrite(NamedTuple):
    allow: int
    deny: int
    person: bool


async def member_of(guild: discord.Guild, user_id: int) -> discord.Member | None:
    """A person with the roles they have on a server now; None if they are no member. Raises ChatError."""
    try:
        with discord_errors():
            return await guild.fetch_member(user_id)
    except ChatGone:
        return None


def may_read(channel: discord.abc.GuildChannel, person: discord.Member) -> bool:
    """Whether somebody can see a channel and read its past."""
    needed = _needed(channel) | _PAST
    return channel.permissions_for(person).value & needed == needed


async def can_read(channel: GuildPlace, person: discord.Member) -> bool:
    """Whether somebody can read a channel or thread, and its past. Raises ChatError."""
    if not isinstance(channel, discord.Thread):
        return may_read(channel, person)
    if channel.parent is None or not may_read(channel.parent, person):
        return False
    if not channel.is_private() or channel.permissions_for(person).manage_threads:
        return True
    try:
        with discord_errors():
            await channel.fetch_member(person.id)  # Discord does not tell us when somebody leaves
    except ChatGone:
        return False
    return True


def open_to(channel: GuildPlace) -> Literal["all", "most", "few"]:
    """Whether everybody on its server sees what is said in a channel.

    "most": all but those whom an overwrite denies, if they are on the server at all.
    """
    gate = _parent(channel)
    if gate is None or _is_closed(channel) or not knows(channel.guild):
        return "few"
    needed = _needed(gate)
    if _of_everybody(gate) & needed != needed:
        return "few"
    return "most" if any(one.deny for one in _overwrites(gate, needed).values()) else "all"


def all_read(here: GuildPlace, there: GuildPlace) -> bool:
    """Whether everybody who sees what is said in one channel can read the other, and its past.

    Those who read a channel are taken for able to read what was said in it before.
    """
    ours, theirs = _parent(here), _parent(there)
    if here.id == there.id or _is_closed(there) or ours is None or theirs is None:
        return here.id == there.id
    if ours.id == theirs.id or ours.guild.id != theirs.guild.id or not knows(ours.guild):
        return ours.id == theirs.id
    needed = _needed(theirs) | _PAST
    return all(_granted(bit, ours, theirs) for bit in (_VIEW, _CONNECT, _PAST) if bit & needed)


def _granted(bit: int, here: discord.abc.GuildChannel, there: discord.abc.GuildChannel) -> bool:
    """Whether everybody who sees what is said here has a permission there."""
    needed, everybody = _needed(here), _of_everybody(there) & bit
    theirs = _overwrites(there, bit)
    out = {key for key, one in _overwrites(here, needed).items() if one.person and one.deny}
    if everybody and out.issuperset(key for key, one in theirs.items() if one.deny):
        return True  # everybody has it but people who don't see this
    if not bit & needed:
        return False
    # Each allow gives it to more people, each deny to fewer: it is enough if there is as open at each step.
    ours, none = _overwrites(here, bit), _Overwrite(0, 0, person=False)
    return all(
        a.allow <= b.allow and b.deny <= a.deny
        for key in ours.keys() | theirs.keys()
        if not (everybody and key == there.guild.id)
        for a, b in [(ours.get(key, none), theirs.get(key, none))]
    )


def knows(guild: discord.Guild) -> bool:
    """Whether we are in a server. Of another one Discord tells no roles, whatever types say."""
    everybody: discord.Role | None = guild.default_role
    return everybody is not None


def _parent(channel: GuildPlace) -> discord.abc.GuildChannel | None:
    """The channel outside of which nobody reads this one: of a thread its parent, if that is known."""
    return channel.parent if isinstance(channel, discord.Thread) else channel


def _is_closed(channel: GuildPlace) -> bool:
    return isinstance(channel, discord.Thread) and channel.is_private()


def _needed(channel: discord.abc.GuildChannel) -> int:
    """The permissions that seeing what is said takes.

    The talk of a voice channel is for those who may connect to it, though others see that it is there.
    """
    connects = isinstance(channel, discord.VoiceChannel | discord.StageChannel)
    return _VIEW | (_CONNECT if connects else 0)


def _of_everybody(channel: discord.abc.GuildChannel) -> int:
    """The permissions that everybody has in a channel whom no overwrite of their own denies any."""
    base, everybody = channel.guild.default_role.permissions.value, channel.guild.id
    for one in channel._overwrites:
        if one.id == everybody and not base & _ADMINISTRATOR:
            return base & ~one.deny | one.allow
    return -1 if base & _ADMINISTRATOR else base


def _overwrites(channel: discord.abc.GuildChannel, of: int) -> dict[int, _Overwrite]:
    """A channel's overwrites of some permissions, by the id of the role or person.

    `channel.overwrites` takes 60 µs for each, and this is asked several times for a message.
    """
    return {
        one.id: _Overwrite(one.allow & of, one.deny & ~one.allow & of, one.is_member())
        for one in channel._overwrites
        if (one.allow | one.deny) & of and not _is_void(channel.guild, one.id)
    }


def _is_void(guild: discord.Guild, who: int) -> bool:
    """Whether an overwrite is for nobody whom it could deny anything, or only for bots."""
    role = guild.get_role(who)
    rights = guild.default_role.permissions.value | (role.permissions.value if role is not None else 0)
    ours = role.is_bot_managed() if role is not None else who in (guild.owner_id, guild._state.self_id)
    return ours or bool(rights & _ADMINISTRATOR)

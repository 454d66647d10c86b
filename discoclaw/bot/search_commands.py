"""`/search`: what was said, found again by whoever may read it in Discord right now; they alone see it.

Who may see what is asked of Discord at every search: rights change, and people leave threads. In a direct
message only that is searched. Also here: a channel or thread that is deleted leaves the archive.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import cast

import discord
from discord import app_commands
from discord.ext import commands

from discoclaw.bot import wire
from discoclaw.bot.answers import NOT_ALLOWED
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.links import message_address
from discoclaw.bot.memory_text import plain
from discoclaw.bot.pages import SILENT
from discoclaw.core.errors import ChatError, MemoryFault
from discoclaw.core.text import speaker, utf16_length
from discoclaw.search.archive_queries import Visible
from discoclaw.session.archive_search import ArchiveHit
from discoclaw.session.archiving import Archiving
from discoclaw.show.words import count, line, when

log = logging.getLogger(__name__)

Interaction = discord.Interaction[DiscoClaw]

MOST_SHOWN = 10
LONGEST_SHOWN = 160
"""UTF-16 units of a message that are shown."""
LONGEST_ANSWER = 1900
LONGEST_QUERY = 500
MOST_THREADS = 25
"""Private threads of which Discord is asked whether somebody is in them, the newest."""
OFF = (
    "What is said here is not kept, so there is nothing to search. Whoever runs me can change that with "
    "DISCOCLAW_AUTO_SAVE in `.env`: it takes {what}, or `all`."
)
NOTHING = "I have found nothing like that, in what was kept and you may read."
STILL = "I am still looking for what you asked before. Please try again in a moment."
NOT_NOW = "The archive can not be searched right now. Please try again in a while."


class SearchCommands(commands.Cog):
    """The command."""

    def __init__(self, client: DiscoClaw, archiving: Archiving) -> None:
        self._client = client
        self._archiving = archiving
        self._searching: set[int] = set()

    @app_commands.command(name="search", description="Find what was said, wherever you may read it here")
    @app_commands.describe(query="What to look for, in any words")
    async def search(
        self, interaction: Interaction, query: app_commands.Range[str, 1, LONGEST_QUERY]
    ) -> None:
        person = interaction.user.id
        try:
            with discord_errors():
                await interaction.response.defer(ephemeral=True)
                if person in self._searching:  # one at a time, or one person could keep all others waiting
                    told = STILL
                else:
                    self._searching.add(person)
                    try:
                        told = await self._told(interaction, query)
                    finally:
                        self._searching.discard(person)
                await interaction.followup.send(told, ephemeral=True, allowed_mentions=SILENT)
        except ChatError as error:
            log.warning("the answer to a search could not be sent: %s", error)

    async def _told(self, interaction: Interaction, query: str) -> str:
        if not await self._client.access.may_talk(interaction.user, interaction.guild):
            return NOT_ALLOWED
        guild, channel = interaction.guild, interaction.channel
        if channel is None or not self._archiving.on(wire.place_of(cast("wire.Channel", channel))):
            return OFF.format(what=f"this server's id, `{guild.id}`" if guild is not None else "`dm`")
        try:
            visible = await self._visible(interaction)
            found = await self._archiving.search(query, visible, limit=MOST_SHOWN)
        except MemoryFault as fault:
            log.warning("a search failed: %s", fault)
            return NOT_NOW
        return shown(found) if found else NOTHING

    async def _visible(self, interaction: Interaction) -> Visible:
        """What whoever asks may read at this moment."""
        guild, person = interaction.guild, interaction.user
        if guild is None or not isinstance(person, discord.Member):
            return Visible(dm_of=str(person.id) if guild is None else None)
        open_ = {str(one.id) for one in guild.channels if _may_read(one, person)}
        closed = await self._closed(guild, person)
        return Visible(await self._archiving.present(open_) | closed)

    async def _closed(self, guild: discord.Guild, person: discord.Member) -> frozenset[str]:
        """The private threads that a person is in, or looks after, of those we have anything of."""
        threads = {
            str(thread.id): thread
            for thread in sorted(guild.threads, key=lambda one: one.id, reverse=True)
            if thread.is_private() and thread.parent is not None and _may_read(thread.parent, person)
        }
        kept = await self._archiving.present(threads)
        asked = [thread for key, thread in threads.items() if key in kept][:MOST_THREADS]
        inside = await asyncio.gather(*(_is_in(thread, person) for thread in asked))
        return frozenset(str(thread.id) for thread, is_in in zip(asked, inside, strict=True) if is_in)


def forget_deleted(client: DiscoClaw, archiving: Archiving) -> None:
    """Have the archive follow when a channel or a thread is deleted in Discord."""

    async def on_guild_channel_delete(channel: discord.abc.GuildChannel) -> None:
        await archiving.forget_channel(str(channel.id))

    async def on_raw_thread_delete(payload: discord.RawThreadDeleteEvent) -> None:
        await archiving.forget_channel(str(payload.thread_id))

    client.add_listener(on_guild_channel_delete)
    client.add_listener(on_raw_thread_delete)


def shown(found: Sequence[ArchiveHit]) -> str:
    """The messages that were found, best first, in one message of Discord."""
    lines: list[str] = []
    room = LONGEST_ANSWER
    for one in map(_line, found):
        room -= utf16_length(one) + 1
        if room < 0:
            break
        lines.append(one)
    if more := len(found) - len(lines):
        lines.append(f"({count(more, 'more message')}; more words find less)")
    return "\n".join(lines)


def _line(hit: ArchiveHit) -> str:
    """One message: nothing in it is markup, a mention, or a link but ours."""
    entry = hit.entry
    where = f"<#{entry.channel_id}>, " if entry.guild_id is not None else ""
    text = line(entry.text, LONGEST_SHOWN).replace("`", "'") or " "
    link = message_address(entry.guild_id, entry.channel_id, entry.id)
    return f"- {when(entry.sent_at)}, {where}**{plain(speaker(entry.name))}**: `{text}` <{link}>"


def _may_read(channel: discord.abc.GuildChannel, person: discord.Member) -> bool:
    may = channel.permissions_for(person)
    spoken = isinstance(channel, discord.VoiceChannel | discord.StageChannel)
    return may.view_channel and may.read_message_history and (may.connect or not spoken)


async def _is_in(thread: discord.Thread, person: discord.Member) -> bool:
    """Whether a person can read a private thread. What Discord does not say is a no."""
    if thread.permissions_for(person).manage_threads:
        return True
    try:
        with discord_errors():
            await thread.fetch_member(person.id)  # we are not told when somebody leaves, so it is asked
    except ChatError:
        return False
    return True

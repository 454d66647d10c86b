"""`search`: what was said, found again by somebody who may read it in Discord right now.

Who may read what is asked of Discord at every search: rights change, and people leave threads. In a direct
message only that is searched. Only the person who asks sees what is found.
"""

import asyncio
import logging
from collections.abc import Sequence

import discord

from discoclaw.bot.answers import Answer, Carded
from discoclaw.bot.cards.card import Card, Entry, Turn
from discoclaw.bot.commands.call import Call
from discoclaw.bot.links import message_address
from discoclaw.bot.texts import search as texts
from discoclaw.bot.texts.markup import ago, plain, said
from discoclaw.bot.wire import can_read, may_read
from discoclaw.core.errors import ChatError, MemoryFault, Refused
from discoclaw.core.text import speaker
from discoclaw.search.archive import Visible
from discoclaw.session.archiving import ArchiveHit, Archiving
from discoclaw.session.meaning import Asker
from discoclaw.show.words import count

log = logging.getLogger(__name__)

MOST_SHOWN = 10
MOST_ON_CARDS = 25
MOST_THREADS = 25
"""Private threads of which Discord is asked whether somebody is in them, the newest."""
ONLY_FOR_YOU = "only you may see what I find; use `/memory search` here, or ask me in a DM"


async def search(call: Call, query: str) -> Answer:
    if not call.in_private:
        raise Refused(ONLY_FOR_YOU)
    archiving, guild = call.context.archiving, call.source.guild
    if not archiving.on(call.place):
        return texts.off(f"this server's id, `{guild.id}`" if guild is not None else "`dm`")
    try:
        most = MOST_ON_CARDS if call.slash else MOST_SHOWN
        by = Asker(call.user_id, private=call.in_private)
        found = await archiving.search(query, await _visible(call, archiving), limit=most, by=by)
    except MemoryFault as fault:
        log.warning("a search failed: %s", fault)
        return texts.NOT_NOW
    if not found:
        return texts.NOTHING
    turn = Turn(call.user_id, "search", (query,))
    return Carded(_card(found, turn, query, page=call.page), texts.found(found))


async def _visible(call: Call, archiving: Archiving) -> Visible:
    """The places somebody may read at this moment."""
    guild, person = call.source.guild, call.author
    if guild is None or not isinstance(person, discord.Member):
        return Visible(dm_of=call.user_id if guild is None else None)
    open_ = {str(one.id) for one in guild.channels if may_read(one, person)}
    closed = await _closed(guild, person, archiving)
    return Visible(await archiving.present(open_) | closed)


async def _closed(guild: discord.Guild, person: discord.Member, archiving: Archiving) -> frozenset[str]:
    """The private threads that a person is in, or looks after, of those we have anything of."""
    threads = {
        str(thread.id): thread
        for thread in sorted(guild.threads, key=lambda one: one.id, reverse=True)
        if thread.is_private() and thread.parent is not None and may_read(thread.parent, person)
    }
    kept = await archiving.present(threads)
    asked = [thread for key, thread in threads.items() if key in kept][:MOST_THREADS]
    inside = await asyncio.gather(*(_is_in(thread, person) for thread in asked))
    return frozenset(str(thread.id) for thread, inside_it in zip(asked, inside, strict=True) if inside_it)


async def _is_in(thread: discord.Thread, person: discord.Member) -> bool:
    """Whether a person can read a private thread. What Discord does not say is a no."""
    try:
        return await can_read(thread, person)
    except ChatError:
        return False


# ----------------------------------------------------------------------
# The card of what a search of messages found.

LONGEST_SHOWN = 300
"""UTF-16 units of a message that are shown."""


def _card(hits: Sequence[ArchiveHit], turn: Turn, query: str, *, page: int) -> Card:
    """The messages that were found: what matches, then what was said next to it. Each best first."""
    matching = [_entry(hit) for hit in hits if not hit.beside]
    beside = [_entry(hit) for hit in hits if hit.beside]
    if beside:
        beside[0] = Entry(f"{texts.BESIDE}\n{beside[0].text}", beside[0].small, apart=bool(matching))
    small = [count(len(matching), "message")] if matching else ["nothing matches, but this was said near it"]
    return Card(f"Found for {said(query, 80)}", [*matching, *beside], small=small, turn=turn, page=page)


def _entry(hit: ArchiveHit) -> Entry:
    """One message: nothing in it is markup, a mention, or a link but ours."""
    entry = hit.entry
    link = message_address(entry.guild_id, entry.channel_id, entry.id)
    where = f"<#{entry.channel_id}>" if entry.guild_id is not None else "in our DMs"
    text = f"**{plain(speaker(entry.name))}**: {texts.quoted(entry.text, LONGEST_SHOWN)}"
    return Entry(text, f"{ago(entry.sent_at)} · {where} · [open it]({link})")

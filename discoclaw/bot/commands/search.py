"""`search`: what was said, found again by somebody who may read it in Discord right now.

Who may read what is asked of Discord at every search: rights change, and people leave threads. In a direct
message only that is searched. Only the person who asks sees what is found.
"""

import asyncio
import logging
from dataclasses import replace

import discord

from discoclaw.bot.commands.call import Call
from discoclaw.bot.links import message_address
from discoclaw.bot.wire import can_read, may_read
from discoclaw.core.errors import ChatError, MemoryFault, Refused
from discoclaw.core.text import speaker
from discoclaw.search.archive import Visible
from discoclaw.session.archiving import ArchiveHit, Archiving
from discoclaw.session.meaning import Asker
from discoclaw.show.answer import Answer, Reply, Row, Turn
from discoclaw.show.markup import ago, plain, said
from discoclaw.show.words import count, line

log = logging.getLogger(__name__)

MOST_SHOWN = 25
MOST_THREADS = 25
"""Private threads of which Discord is asked whether somebody is in them, the newest."""
LONGEST_SHOWN = 300
"""UTF-16 units of a message that are shown."""
NOTHING = "I found nothing like that in the messages I kept and you can read."
NOT_NOW = "I can't search the archive right now. Please try again in a while."
ONLY_FOR_YOU = "only you may see what I find; use `/memory search` here, or ask me in a DM"


async def search(call: Call, query: str) -> Reply:
    if not call.in_private:
        raise Refused(ONLY_FOR_YOU)
    archiving, guild = call.context.archiving, call.source.guild
    if not archiving.on(call.place):
        what = f"this server's id, `{guild.id}`" if guild is not None else "`dm`"
        return (
            "Messages here aren't kept, so there is nothing to search. Whoever runs me can change that with "
            f"DISCOCLAW_AUTO_SAVE in `.env`: it takes {what}, or `all`."
        )
    try:
        by = Asker(call.user_id, private=call.in_private)
        found = await archiving.search(query, await _visible(call, archiving), limit=MOST_SHOWN, by=by)
    except MemoryFault as fault:
        log.warning("a search failed: %s", fault)
        return NOT_NOW
    if not found:
        return NOTHING
    matching = [_row(hit) for hit in found if not hit.beside]
    beside = [_row(hit) for hit in found if hit.beside]
    if beside:
        beside[0] = replace(beside[0], title="Said right before or after")
    nothing = "nothing matches, but this was said near it"
    return Answer(
        f"Found for {said(query, 80)}",
        [*matching, *beside],
        small=[count(len(matching), "message") if matching else nothing],
        turn=Turn(call.user_id, "search", (query,)),
        page=call.page,
    )


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


def _row(hit: ArchiveHit) -> Row:
    """One message: nothing in it is markup, a mention, or a link but ours."""
    entry = hit.entry
    link = message_address(entry.guild_id, entry.channel_id, entry.id)
    where, name = (
        f"<#{entry.channel_id}>" if entry.guild_id is not None else "in our DMs",
        speaker(entry.name),
    )
    kept = line(entry.text, LONGEST_SHOWN).replace("`", "'") or " "
    small = f"{ago(entry.sent_at)} · {where} · [open it]({link})"
    return Row(f"**{plain(name)}**: `{kept}`", small)

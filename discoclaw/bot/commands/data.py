"""One's data as a whole: a picture of it, taking it along and bringing it, destroying it, and having none.

What an export looks like, and what a file says, is `memory/exchange`; what erasing does is `memory/erasing`.
Only the person themselves may do it, and only they get anything; an owner of the bot may have somebody else's
memory erased, without seeing it.
"""

import asyncio
import logging
from collections import Counter
from dataclasses import replace
from typing import Literal

import discord

from discoclaw.bot.commands.call import MOST_BYTES, Call
from discoclaw.bot.wire import discord_errors
from discoclaw.commands.memories import presumed_private
from discoclaw.core.draft import Draft, Outcome
from discoclaw.core.errors import ChatError, MemoryFault, Refused
from discoclaw.core.item import Facets, Item, Sensitivity
from discoclaw.core.privacy import PRESUMED, DmPrivacy, is_personal, stricter
from discoclaw.core.redact import Redactor
from discoclaw.memory.exchange.load import Items, load_bytes
from discoclaw.memory.exchange.take import current_items
from discoclaw.show.words import count

log = logging.getLogger(__name__)

STAYS = (
    "What I already have stays on disk, unused. `!memory export` gives you a copy, `!memory erase` destroys "
    "it, and `!memory optin` turns memory on again."
)
STILL_ARCHIVED = "What you said is still in my archive, unused; I remove it when I start the next time. "


async def reset_summary(call: Call) -> str:
    await call.context.summaries.clear(call.session_key, by=call.user_id)
    call.context.loops.reset(call.session_key, call.source.id)
    return "I cleared the summary of this conversation."


# ---------------------------------------------------------------------- bringing it


async def take(call: Call, file: discord.Attachment) -> str:
    content = await _content(file)
    rule = call.context.dm_privacy
    found = await asyncio.to_thread(_loaded, file.filename, content, call.user_id, call.client.redactor, rule)
    most = call.client.settings.max_items
    if len(found.items) > most:
        raise Refused(f"the file has {len(found.items)} memories, and I keep at most {most}")
    presumed: list[str] = []  # filled below, before the commit is made

    def make(draft: Draft) -> str:
        done: Counter[str] = Counter(rejected=len(found.rejected))
        presumed.clear()  # another process may have overtaken the first try
        for item in found.items:
            keys = {one.facets.key for one in draft.items.values()} - {None}
            if found.skips_known and (item.id in draft.items or item.facets.key in keys):
                done["unchanged"] += 1
                continue
            told = item.id not in found.unmarked
            now, outcome = _taken(call, draft, item, told=told, snapshot=found.skips_known)
            done[outcome] += 1
            if now is not None and outcome == "added" and now.facets.sensitivity == "private" and not told:
                presumed.append(now.id)
        if (over := sum(item.active for item in draft.items.values()) - most) > 0:
            raise Refused(f"I keep {most} memories at most, and this is {over} too many; forget some first")
        new = done["added"] + done["restored"]
        parts = [
            f"{count(new, 'memory')} added",
            *([f"{done['updated']} updated"] if done["updated"] else []),
            *([f"{done['unchanged']} known already"] if done["unchanged"] else []),
            *([f"{done['rejected']} not accepted"] if done["rejected"] else []),
        ]
        back = ". `!memory undo` takes it back." if new or done["updated"] else "."
        return ", ".join(parts) + back + (f"\n{presumed_private(len(presumed))}" if presumed else "")

    # Not what the file is called: others may read the history too.
    return await call.change("imported by command", make, **{PRESUMED: presumed})


async def _content(file: discord.Attachment) -> bytes:
    too_large = f"the file is too large; I read at most {MOST_BYTES // 1024 // 1024} MB"
    if file.size > MOST_BYTES:
        raise Refused(too_large)
    try:
        with discord_errors():
            content = await file.read()
    except ChatError as error:
        raise Refused("Discord didn't give me the file; attach it again") from error
    if len(content) > MOST_BYTES:
        raise Refused(too_large)
    return content


def _loaded(name: str, content: bytes, user_id: str, redactor: Redactor, rule: DmPrivacy) -> Items:
    """The active items of a file. Raises Refused."""
    found = load_bytes(name, content, redactor).content(user_id)
    if isinstance(found, Items):
        return replace(found, items=tuple(item for item in found.items if item.active))
    return current_items(found, rule)


def _taken(
    call: Call, draft: Draft, item: Item, *, told: bool, snapshot: bool
) -> tuple[Item | None, Outcome | Literal["rejected"]]:
    """Take one item over, as if the person had typed it, but as private as the file says.

    An entry of a `snapshot` has a key and a category, and nobody stated it, so it may expire. What a file
    doesn't say (not `told`) counts as learned in private. What is personal, and given in private, is private
    too. Returns the item as it is now, and what was done.
    """
    unseen = call.slash or call.place.private
    marked: Sensitivity = "private" if unseen and is_personal(item.text) else "normal"
    clean = call.client.redactor.clean
    origin = replace(call.origin(), private=not told)
    if snapshot:
        origin = replace(origin, author=item.facets.author)
    try:
        return draft.upsert(
            item.kind,
            clean(item.text),
            origin,
            tags=list(map(clean, item.tags)),
            marked=stricter(item.facets.sensitivity, marked),
            facets=Facets(key=item.facets.key, category=item.facets.category) if snapshot else Facets(),
        )
    except Refused:
        return None, "rejected"


# ---------------------------------------------------------------------- out and in


async def optout(call: Call) -> str:
    choices = call.context.choices
    if choices.opted_out(call.user_id):
        return f"You have opted out already. {STAYS}"
    await choices.choose(call.user_id, opted_out=True)
    try:
        gone = await call.context.archiving.forget_person(call.user_id)
        archived = f"I removed {count(gone, 'message')} from the archive. " if gone else ""
    except MemoryFault as fault:
        log.warning("somebody opted out, and what they said is still archived: %s", fault)
        archived = STILL_ARCHIVED
    return f"Done. I won't learn anything about you or use what I already know. {archived}{STAYS}"


async def optin(call: Call) -> str:
    choices = call.context.choices
    if not choices.opted_out(call.user_id):
        return "You haven't opted out. `!memory show` lists what I remember about you."
    await choices.choose(call.user_id, opted_out=False, since=call.asked_at)
    return "Welcome back! I use what I know about you again, and learn from what you say from now on."

"""Taking one's memory along and bringing it: export as a file, import of one.

What an export looks like, and what a file says, is `memory/exchange`. Only the person themselves gets
anything.
"""

import asyncio
from collections import Counter
from dataclasses import replace
from io import BytesIO
from typing import Literal, cast

import discord

from discoclaw.bot.answers import Answer, Page
from discoclaw.bot.commands.call import Call, in_dm
from discoclaw.bot.texts import memory as texts
from discoclaw.bot.wire import discord_errors
from discoclaw.core.draft import Draft, Outcome
from discoclaw.core.errors import ChatError, ChatForbidden, Refused
from discoclaw.core.item import Facets, Item, Sensitivity
from discoclaw.core.privacy import PRESUMED, DmPrivacy, is_personal, stricter
from discoclaw.core.redact import Redactor
from discoclaw.memory.exchange.export import Form, exported
from discoclaw.memory.exchange.load import Items, load_bytes
from discoclaw.memory.exchange.take import current_items
from discoclaw.show.usage import as_csv
from discoclaw.show.words import count, memories

MOST_BYTES = 8 * 1024 * 1024
"""The size of a file that every server takes, with room to spare; and the most we read of one."""
USAGE = "usage"
FORMATS = {
    "json": "memories.json",
    "markdown": "memory.md",
    "objects": "memory.zip",
    "snapshot": "snapshot.json",
    USAGE: "usage.csv",
}
"""Kinds of export, and the names of their files."""
TOO_LARGE = (
    "that is larger than a file in Discord may be; whoever runs me can give it to you with "
    "`discoclaw memory export`"
)
DMS_CLOSED = (
    "I can't send you DMs, and your memory doesn't belong in public; use `/memory data export` here instead"
)


# ---------------------------------------------------------------------- export


async def export(call: Call, format: str, history: bool) -> Answer:
    if format == USAGE:
        return await _usage(call)
    call.context.require("memory")
    known = await call.history()
    if not known.records:
        return "I remember nothing about you, so there is nothing to export."
    now_ms = int(discord.utils.utcnow().timestamp() * 1000)
    accessed = await call.context.last_used.load(call.subject)
    content = await asyncio.to_thread(
        exported,
        cast(Form, format),
        known,
        call.subject,
        history_too=history,
        now_ms=now_ms,
        accessed=accessed,
    )
    present = count(len(known.shown().active()), "memory")
    held = present if format == "snapshot" else memories(known.items().values())
    return await _sent(call, content, FORMATS[format], "Your memory", held)


async def _usage(call: Call) -> Answer:
    """A line for each call of a model that was for the person."""
    own = await call.context.accounts.calls(0, call.user_id)
    if not own:
        return "No calls of models are written down as yours, so there is nothing to export."
    content = await asyncio.to_thread(as_csv, own)
    return await _sent(call, content, FORMATS[USAGE], "Your usage", count(len(own), "call"))


async def _sent(call: Call, content: bytes, name: str, what: str, held: str) -> Answer:
    """Send a file to somebody in a DM, or where their DMs are closed, below their slash command."""
    if len(content) > MOST_BYTES:
        raise Refused(TOO_LARGE)

    def pages() -> list[Page]:
        return [Page(f"{what}: {held} in `{name}`.", files=(discord.File(BytesIO(content), filename=name),))]

    if call.place.kind == "dm":
        return pages()
    try:
        await in_dm(call, pages())
    except ChatForbidden:
        if not call.slash:
            raise Refused(DMS_CLOSED) from None
        return pages()
    return f"I sent it to you in a DM ({held})."


# ---------------------------------------------------------------------- import


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
            if found.skips_known and _is_known(draft, item):
                done["unchanged"] += 1
                continue
            told = item.id not in found.unmarked
            now, outcome = _taken(call, draft, item, told=told, snapshot=found.skips_known)
            done[outcome] += 1
            if now is not None and outcome == "added" and now.facets.sensitivity == "private" and not told:
                presumed.append(now.id)
        if (over := sum(item.active for item in draft.items.values()) - most) > 0:
            raise Refused(f"I keep {most} memories at most, and this is {over} too many; forget some first")
        return _counted(done) + (f"\n{texts.presumed_private(len(presumed))}" if presumed else "")

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


def _is_known(draft: Draft, item: Item) -> bool:
    """Whether an item of this id or key is there already."""
    key = item.facets.key
    return item.id in draft.items or (
        key is not None and any(key == one.facets.key for one in draft.items.values())
    )


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


def _counted(done: Counter[str]) -> str:
    new = done["added"] + done["restored"]
    parts = [
        f"{count(new, 'memory')} added",
        *([f"{done['updated']} updated"] if done["updated"] else []),
        *([f"{done['unchanged']} known already"] if done["unchanged"] else []),
        *([f"{done['rejected']} not accepted"] if done["rejected"] else []),
    ]
    return ", ".join(parts) + (". `!memory undo` takes it back." if new or done["updated"] else ".")

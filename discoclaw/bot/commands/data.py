"""One's data as a whole: a picture of it, taking it along and bringing it, destroying it, and having none.

What an export looks like, and what a file says, is `memory/exchange`; what erasing does is `memory/erasing`.
Only the person themselves may do it, and only they get anything; an owner of the bot may have somebody else's
memory erased, without seeing it.
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, cast

import discord

from discoclaw.bot.commands.call import Call, in_dm
from discoclaw.bot.wire import discord_errors
from discoclaw.commands.history import teller
from discoclaw.commands.memories import ON_RELAYS_TOO, erased, presumed_private
from discoclaw.commands.table import FORMATS
from discoclaw.core.draft import Draft, Outcome
from discoclaw.core.errors import ChatError, ChatForbidden, MemoryFault, Refused
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.item import Facets, Item, Sensitivity
from discoclaw.core.privacy import PRESUMED, DmPrivacy, is_personal, stricter
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import user_subject
from discoclaw.core.text import utf16_length
from discoclaw.memory.exchange.export import Form, exported
from discoclaw.memory.exchange.load import Items, load_bytes
from discoclaw.memory.exchange.take import current_items
from discoclaw.memory.subjects.inspect import held
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import graph
from discoclaw.show.answer import GREY, Answer, Button, File, Reply, message
from discoclaw.show.markup import block, words
from discoclaw.show.usage import as_csv
from discoclaw.show.words import PEOPLE, count, memories
from discoclaw.store.files import read_in_thread

log = logging.getLogger(__name__)

STAYS = (
    "What I already have stays on disk, unused. `!memory export` gives you a copy, `!memory erase` destroys "
    "it, and `!memory optin` turns memory on again."
)
DESTROYED = (
    "and the summaries of conversations they are part of. It will be destroyed on disk, and nobody can "
    "bring it back."
)
KEEP_A_COPY = "`!memory export` keeps a copy."
STILL_ARCHIVED = "What you said is still in my archive, unused; I remove it when I start the next time. "
_USER = re.compile(r"(?:<@!?)?(\d{1,20})>?")
WHOLE_AS_TEXT = 1900
"""The longest diagram, in UTF-16 units, that stands in the message itself; a longer one is a file."""
MOST_BYTES = 8 * 1024 * 1024
"""The size of a file that every server takes, with room to spare; and the most we read of one."""
TOO_LARGE = (
    "that is larger than a file in Discord may be; whoever runs me can give it to you with "
    "`discoclaw memory export`"
)
DMS_CLOSED = (
    "I can't send you DMs, and your memory doesn't belong in public; use `/memory data export` here instead"
)


# ---------------------------------------------------------------------- looking at it


async def draw(call: Call, form: str) -> Reply:
    history = await call.history()
    if not history.commits:
        raise Refused("there is nothing to draw yet, because I remember nothing about you")
    done = teller(history, in_private=call.in_private)
    history = await asyncio.to_thread(_said_by, history, done)
    number = count(len(history.commits), "change")
    if form == "timeline":
        return block(await asyncio.to_thread(graph.timeline, history, words=PEOPLE))
    if form == "mermaid":
        mermaid = await asyncio.to_thread(graph.mermaid, history)
        text = block(mermaid, "mermaid")
        if utf16_length(text) <= WHOLE_AS_TEXT:
            return text
        file = File("memory.mmd", mermaid.encode())
        return message(f"{number}: the diagram is in `memory.mmd`.", files=[file])
    title = f"Memory of {call.author.display_name}"
    drawn = await asyncio.to_thread(_png, history, title)
    return Answer(
        words(title),
        small=[number],
        files=[File("memory.png", drawn, f"{words(title)}, as a graph of its changes")],
        foot=["`/memory history graph form:mermaid` gives the diagram as text."],
        colour=GREY,
    )


def _said_by(history: History, done: Callable[[Commit], str]) -> History:
    """A history for drawing: each commit's message says what it changed."""
    records = history.records
    return History(replace(one, message=done(one)) if isinstance(one, Commit) else one for one in records)


def _png(history: History, title: str) -> bytes:
    from discoclaw.show.picture import png  # Pillow takes 11 MB, and a second on a slow disk

    return png(history, title=title)


async def verify(call: Call) -> str:
    assert isinstance(call.memory, Memory)  # the command needs one
    found = await read_in_thread(held, call.memory.disk, call.subject)
    if not found.faults:
        return f"Your history is intact: {count(len(found.commits), 'change')} checked."
    listed = "\n".join(f"- {fault}" for fault in found.faults[:20])
    return f"Your history is damaged. Please tell whoever runs me:\n{block(listed)}"


async def reset_summary(call: Call) -> str:
    await call.context.summaries.clear(call.session_key, by=call.user_id)
    call.context.loops.reset(call.session_key, call.source.id)
    return "I cleared the summary of this conversation."


# ---------------------------------------------------------------------- taking it along


async def export(call: Call, format: str, history: bool) -> Reply:
    if format == "usage":  # a line for each call of a model that was for the person
        own = await call.context.accounts.calls(0, call.user_id)
        if not own:
            return "No calls of models are written down as yours, so there is nothing to export."
        content = await asyncio.to_thread(as_csv, own)
        return await _sent(call, content, FORMATS[format], "Your usage", count(len(own), "call"))
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


async def _sent(call: Call, content: bytes, name: str, what: str, held: str) -> Reply:
    """Send a file to somebody in a DM, or where their DMs are closed, below their slash command."""
    if len(content) > MOST_BYTES:
        raise Refused(TOO_LARGE)

    answer = message(f"{what}: {held} in `{name}`.", files=[File(name, content)])
    if call.place.kind == "dm":
        return answer
    try:
        await in_dm(call, answer)
    except ChatForbidden:
        if not call.slash:
            raise Refused(DMS_CLOSED) from None
        return answer
    return f"I sent it to you in a DM ({held})."


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


# ---------------------------------------------------------------------- erase


async def erase(call: Call, user: str | None, yes: bool) -> Reply:
    target = _target(call, user)
    if target == call.user_id:
        if yes:
            return erased(await call.memory.erase(call.subject, asked_at=call.asked_at), own=True)
        size = await asyncio.to_thread(_size, await call.history())
        text = f"**Erase everything I remember about you?** That is {size}, {DESTROYED} {KEEP_A_COPY}"
    else:
        text = f"**Erase everything I remember about {target}?** That is all of it, {DESTROYED}"
    assert isinstance(call.memory, Memory)  # the command needs one
    if ON_RELAYS in await read_in_thread(call.memory.personal.outside, user_subject(target)):
        text += f" {ON_RELAYS_TOO}"
    return message(
        text,
        [
            Button(f"erase:{call.user_id}:{target}", "Erase everything", "red"),
            Button(f"keep:{call.user_id}", "Keep everything"),
        ],
    )


def _target(call: Call, wanted: str | None) -> str:
    """The subject whose memory is to go: one's own, or for owners anybody's. Raises Refused."""
    if wanted is None:
        return call.user_id
    found = _USER.fullmatch(wanted.strip())
    if found is None:
        raise Refused(f"{wanted[:40]!r} isn't a user id; `!memory erase` alone is about you")
    if found[1] != call.user_id and call.user_id not in call.client.settings.owners:
        raise Refused("only my owners may erase somebody else's memory; `!memory erase` is about yours")
    return found[1]


def _size(history: History) -> str:
    branches = history.branches.all
    parts = [memories(history.items().values()), count(len(history.commits), "change")]
    if len(branches) > 1:
        parts.append(count(len(branches), "persona"))
    return ", ".join(parts)


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

"""One's data as a whole: how much there is, taking it along and bringing it, destroying it, and having none.

What an export looks like, and what a file says, is `memory/exchange`; what erasing does is `memory/erasing`.
Only the person themselves may do it, and only they get anything; an owner of the bot may have somebody else's
memory erased, without seeing it.
"""

import asyncio
import logging
import re
from collections import Counter
from dataclasses import replace
from typing import Literal, cast

import discord

from discoclaw.bot.commands.call import Call, in_dm
from discoclaw.bot.commands.history import NOTHING
from discoclaw.bot.memories import ON_RELAYS_TOO, erased, presumed_private
from discoclaw.bot.wire import discord_errors
from discoclaw.core.draft import Draft, Outcome
from discoclaw.core.errors import ChatError, ChatForbidden, MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.item import Facets, Item, Sensitivity
from discoclaw.core.privacy import PRESUMED, DmPrivacy, is_personal, stricter
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import user_subject
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.exchange.export import Form, exported
from discoclaw.memory.exchange.load import Items, load_bytes
from discoclaw.memory.exchange.take import current_items
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import text as shown
from discoclaw.show.answer import GREY, Answer, Button, File, Reply, Row, Turn, message
from discoclaw.show.markup import ago, name, plain
from discoclaw.show.usage import as_csv
from discoclaw.show.words import count, memories, word
from discoclaw.store.files import read_in_thread

log = logging.getLogger(__name__)

STAYS = (
    "What I already have stays on disk, unused. `!memory export` gives you a copy, `!memory erase` destroys "
    "it, and `!memory optin` turns memory on again."
)
TOOLS_OFF = (
    "**Tools**: switched off here, so I can't look things up or change your memory while I answer. Commands "
    "still work. Whoever runs me can switch them on with `DISCOCLAW_TOOLS_ENABLED`."
)
DESTROYED = (
    "and the summaries of conversations they are part of. It will be destroyed on disk, and nobody can "
    "bring it back."
)
KEEP_A_COPY = "`!memory export` keeps a copy."
STILL_ARCHIVED = "What you said is still in my archive, unused; I remove it when I start the next time. "
_USER = re.compile(r"(?:<@!?)?(\d{1,20})>?")
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
_MOST_TAGS = 10


async def stats(call: Call) -> Answer:
    history = await call.history()
    rows = await asyncio.to_thread(_figures, history, in_private=call.in_private)
    return Answer(
        "Your memory in numbers",
        rows or [Row(NOTHING)],
        foot=[*call.standstill, *([] if call.client.settings.tools_enabled else [TOOLS_OFF])],
        turn=Turn(call.user_id, "data stats"),
        page=call.page,
        most=10,
        colour=GREY,
    )


def _figures(history: History, *, in_private: bool) -> list[Row]:
    """How much I remember, of what kind and since when; memories are those of all personas, each once."""
    if not history.commits:
        return []
    branches = history.branches
    view = history.view(branches.all[branches.current].head)
    items = list(history.items().values())
    active = [item for item in items if item.active]
    open_ = [item for item in active if shown.is_open(item, in_private=in_private)]
    secret = sum(item.facets.sensitivity != "normal" for item in active)
    times = [ms_of_iso(commit.timestamp) for commit in history.commits.values()]
    several = len(branches.all) > 1
    here = f", with {count(len(view.active()), 'memory')}" if several else ""
    figures = [
        ("Memories", f"{len(active)}, of these {secret} private; {len(items) - len(active)} forgotten"),
        ("Kinds", _counted(Counter(item.kind for item in open_))),
        ("Tags", _counted(Counter(word(tag) for item in open_ for tag in item.tags), _MOST_TAGS)),
        ("To settle", count(len(view.conflicts), "question")),
        ("Waiting for your yes", f"{len(view.pending)} pending" if view.pending else ""),
        ("Changes", f"{len(history.commits)}, the first {ago(min(times))}, the last {ago(max(times))}"),
        ("Personas", f"{len(branches.all)}; the current one is **{name(branches.current)}**{here}"),
    ]
    return [Row(f"**{title}**\n{text}", line=f"**{title}**: {text}") for title, text in figures if text]


def _counted(counted: Counter[str], most: int | None = None) -> str:
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{plain(one)} {number}" for one, number in ranked[:most])


async def reset_summary(call: Call) -> str:
    await call.context.summaries.clear(call.session_key, by=call.user_id)
    call.context.loops.reset(call.session_key, call.source.id)
    return "I cleared the summary of this conversation."


# ---------------------------------------------------------------------- taking it along


async def export(call: Call, format: str, history: bool) -> Reply:
    if format == USAGE:
        return await _calls(call)
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


async def _calls(call: Call) -> Reply:
    """A line for each call of a model that was for the person."""
    own = await call.context.accounts.calls(0, call.user_id)
    if not own:
        return "No calls of models are written down as yours, so there is nothing to export."
    content = await asyncio.to_thread(as_csv, own)
    return await _sent(call, content, FORMATS[USAGE], "Your usage", count(len(own), "call"))


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
        return _taken_in_words(done) + (f"\n{presumed_private(len(presumed))}" if presumed else "")

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


def _taken_in_words(done: Counter[str]) -> str:
    new = done["added"] + done["restored"]
    parts = [
        f"{count(new, 'memory')} added",
        *([f"{done['updated']} updated"] if done["updated"] else []),
        *([f"{done['unchanged']} known already"] if done["unchanged"] else []),
        *([f"{done['rejected']} not accepted"] if done["rejected"] else []),
    ]
    return ", ".join(parts) + (". `!memory undo` takes it back." if new or done["updated"] else ".")


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
    call.context.explained.forget(call.user_id)
    return (
        f"Done. I won't learn anything about you or use what I already know. {await _unarchived(call)}{STAYS}"
    )


async def _unarchived(call: Call) -> str:
    """Remove what a person said from the archive. Returns what to say about it."""
    try:
        gone = await call.context.archiving.forget_person(call.user_id)
    except MemoryFault as fault:
        log.warning("somebody opted out, and what they said is still archived: %s", fault)
        return STILL_ARCHIVED
    return f"I removed {count(gone, 'message')} from the archive. " if gone else ""


async def optin(call: Call) -> str:
    choices = call.context.choices
    if not choices.opted_out(call.user_id):
        return "You haven't opted out. `!memory show` lists what I remember about you."
    await choices.choose(call.user_id, opted_out=False, since=call.asked_at)
    return "Welcome back! I use what I know about you again, and learn from what you say from now on."

"""One's data as a whole: taking it along, and destroying it.

What an export looks like is `memory/exchange`; what erasing does is `memory/erasing`.
"""

import asyncio
from dataclasses import asdict
from typing import cast

from discoclaw.commands.caller import Caller
from discoclaw.commands.memories import ON_RELAYS_TOO, erased
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.subject import user_of
from discoclaw.memory.exchange.export import Form, exported
from discoclaw.memory.people.tool_log import CALLS, log_of
from discoclaw.memory.subjects.store import Memory
from discoclaw.show.answer import Answer, Button, File, Reply, message
from discoclaw.show.usage import as_csv
from discoclaw.show.words import count, line, memories
from discoclaw.store.files import read_in_thread, render_json

FORMATS = {
    "json": "memories.json",
    "markdown": "memory.md",
    "objects": "memory.zip",
    "snapshot": "snapshot.json",
    "usage": "usage.csv",
    "tools": "tools.json",
}
"""Kinds of export, and the names of their files in Discord."""
DESTROYED = (
    "and the summaries of conversations they are part of. It will be destroyed on disk, and nobody can "
    "bring it back."
)
KEEP_A_COPY = "`!memory export` keeps a copy."


async def export(caller: Caller, format: str, history: bool) -> Reply:
    """A file for the person: their memory in one of the forms, or the calls of models or tools for them."""
    if format == "usage":
        own = await caller.calls()
        if not own and caller.terminal:
            whom = line(user_of(caller.subject) or caller.subject, 60)
            raise Refused(
                f"no calls of models are written down for {whom}; "
                "`discoclaw usage --by person` shows who has some"
            )
        if not own:
            return "No calls of models are written down as yours, so there is nothing to export."
        content = await asyncio.to_thread(as_csv, own)
        what, held, of = "Your usage", count(len(own), "call"), ""
    elif format == "tools":
        if caller.memory_off:
            raise Refused(caller.memory_off)
        assert isinstance(caller.memory, Memory)  # it is on
        done = await read_in_thread(CALLS.read, log_of(caller.memory.disk, caller.subject))
        if not done and not caller.terminal:
            return "No calls of tools were written down for you lately, so there is nothing to export."
        content = render_json([asdict(one) for one in done])
        what, held, of = "What tools did for you", count(len(done), "call"), f" of {caller.subject}"
    else:
        if caller.memory_off:
            raise Refused(caller.memory_off)
        known = await caller.history()
        if not known.records and not caller.terminal:
            return "I remember nothing about you, so there is nothing to export."
        content = await asyncio.to_thread(
            exported,
            cast(Form, format),
            known,
            caller.subject,
            history_too=history,
            now_ms=caller.now_ms,
            accessed=await caller.last_uses() if format == "snapshot" else {},
        )
        what, held, of = "Your memory", memories(known.items().values()), f" of {caller.subject}"
        if format == "snapshot":
            held = count(len(known.shown().active()), "memory")
    file = File(FORMATS[format], content)
    if caller.terminal:
        return Answer(typed=f"Exported {held}{of} to {{path}}.", files=[file])
    return await caller.sent(f"{what}: {held} in `{file.name}`.", file, held)


async def erase(caller: Caller, user: str | None = None, yes: bool = False) -> Reply:
    """Destroy all that is remembered about a person, once they have said that they mean it.

    On the command line, the question says only what would be destroyed. Raises MemoryFault there if something
    is left.
    """
    target = caller.erasable(user)
    own = target == caller.subject
    assert isinstance(caller.memory, Memory)  # the command needs one
    sure = yes and (own or caller.confirmed)
    size = ""
    if caller.terminal or (own and not sure):
        size = await asyncio.to_thread(_size, await caller.history(), git=caller.terminal)
    if sure:
        done = await caller.memory.erase(target, asked_at=caller.asked_at)
        if not caller.terminal:
            return erased(done, own=own)
        if done.left:
            raise MemoryFault(
                f"{count(len(done.left), 'file')} of {target} couldn't be removed; the bot tries again when "
                "it starts, and remembers nothing about them until then"
            )
        if done.waiting:
            raise MemoryFault(
                f"{target} is not erased yet: another process still has something in RAM, and doesn't "
                "answer. A running bot finishes it; `discoclaw status` shows the processes"
            )
        removed = f"{size + '; ' if size else ''}{count(done.removed, 'file')} removed"
        told = [f"{target} is erased: {removed if done.removed else 'there was nothing to remove'}."]
        if done.soul:
            told.append("The bot's personality was based on their words, so it is erased too.")
        if ON_RELAYS in done.todo:
            told.append(
                "When the bot next runs, it overwrites the copies on relays and requests their deletion, "
                "which a relay may ignore."
            )
        if set(done.todo) - {ON_RELAYS}:
            told.append("The bot will remove what it posted in Discord when it next runs.")
        return " ".join(told)
    on_relays = ON_RELAYS in await read_in_thread(caller.memory.personal.outside, target)
    if caller.terminal:
        stored = f"{size or 'no ledger'}, and the summaries they are part of"
        if on_relays:
            stored += "; the bot requests the deletion of the copies on relays, which a relay may ignore"
        return stored
    if own:
        text = f"**Erase everything I remember about you?** That is {size}, {DESTROYED} {KEEP_A_COPY}"
    else:
        text = f"**Erase everything I remember about {user_of(target)}?** That is all of it, {DESTROYED}"
    if on_relays:
        text += f" {ON_RELAYS_TOO}"
    return message(
        text,
        [
            Button(f"erase:{caller.user_id}:{user_of(target)}", "Erase everything", "red"),
            Button(f"keep:{caller.user_id}", "Keep everything"),
        ],
    )


def _size(history: History, *, git: bool) -> str:
    """The size of a history in words; in git's, "" if there is none."""
    held, made, there = memories(history.items().values()), len(history.commits), len(history.branches.all)
    if git:
        return f"{held}, {count(made, 'commit')} on {count(there, 'branch')}" if history.records else ""
    return ", ".join([held, count(made, "change"), *([count(there, "persona")] if there > 1 else [])])

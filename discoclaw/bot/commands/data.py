"""One's data as a whole: how much there is, destroying it, and having none.

What erasing does is `memory/erasing`. Only the person themselves may do it; an owner of the bot may have
somebody else's memory erased, without seeing it.
"""

import asyncio
import logging
import re

from discoclaw.bot.answers import Answer, Carded, Page
from discoclaw.bot.buttons import erase_view
from discoclaw.bot.cards import personas as cards
from discoclaw.bot.cards.card import Turn
from discoclaw.bot.commands.call import Call
from discoclaw.bot.texts import memory as texts
from discoclaw.bot.texts import personas
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.history import History
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.subject import user_subject
from discoclaw.memory.subjects.store import Memory
from discoclaw.show.words import count, memories
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


async def stats(call: Call) -> Answer:
    history = await call.history()
    notes = [*call.standstill, *([] if call.client.settings.tools_enabled else [TOOLS_OFF])]
    text = "\n".join([await asyncio.to_thread(personas.stats, history, in_private=call.in_private), *notes])
    if not call.in_private:
        return text
    turn = Turn(call.user_id, "data stats")
    return Carded(await asyncio.to_thread(cards.figures, history, turn, notes, page=call.page), text)


async def reset_summary(call: Call) -> str:
    await call.context.summaries.clear(call.session_key, by=call.user_id)
    call.context.loops.reset(call.session_key, call.source.id)
    return "I cleared the summary of this conversation."


# ---------------------------------------------------------------------- erase


async def erase(call: Call, user: str | None, yes: bool) -> Answer:
    target = _target(call, user)
    if target == call.user_id:
        if yes:
            return texts.erased(await call.memory.erase(call.subject, asked_at=call.asked_at), own=True)
        size = await asyncio.to_thread(_size, await call.history())
        text = f"**Erase everything I remember about you?** That is {size}, {DESTROYED} {KEEP_A_COPY}"
    else:
        text = f"**Erase everything I remember about {target}?** That is all of it, {DESTROYED}"
    assert isinstance(call.memory, Memory)  # the command needs one
    if ON_RELAYS in await read_in_thread(call.memory.personal.outside, user_subject(target)):
        text += f" {texts.ON_RELAYS_TOO}"
    return [Page(text, view=erase_view(call.user_id, target))]


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

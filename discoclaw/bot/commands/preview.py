"""`preview`: what the model would read about somebody if they wrote a message in a channel now.

It is made by the parts that answer messages (`session/prepare`). Only the person who asks sees what is in it.
"""

import asyncio
import re

from discoclaw.bot import wire
from discoclaw.bot.answers import NOT_ALLOWED, Answer, Carded
from discoclaw.bot.cards import reasons as cards
from discoclaw.bot.cards.card import Turn
from discoclaw.bot.commands import reading
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.spec import Values
from discoclaw.bot.texts import preview as texts
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.session.prepare import Preview

ONLY_FOR_YOU = "only you may see that; use `/memory preview` here, or ask me in a DM"

_CHANNEL = re.compile(r"<#\d+>|\d{15,20}|#\S+|dm", re.IGNORECASE)


def asked(text: str) -> Values:
    """The parameters of `preview` as text: `[#channel] [text]`."""
    first, _, rest = text.strip().partition(" ")
    channel, about = (first, rest.strip()) if _CHANNEL.fullmatch(first) else (None, text.strip())
    return {"channel": channel, "about": about or None}


async def preview(call: Call, channel: str | None, about: str | None) -> Answer:
    if not call.in_private and channel not in (None, f"<#{call.channel.id}>"):
        raise Refused(ONLY_FOR_YOU)
    there = await reading.named(call, channel)
    if not await call.client.access.may_talk(there.person, getattr(there.channel, "guild", None)):
        return NOT_ALLOWED
    client, context = call.client, call.context
    message = wire.supposed(
        about or "",
        there.person,
        there.channel,
        message_id=call.source.id,
        sent_at=call.asked_at,
        owners=client.settings.owners,
        redactor=client.redactor,
    )
    made = await client.talk.previews.of(message)
    if context.hatchery.takes(made.arrival):
        return texts.INTERVIEW
    facts = await _facts(call, made)
    if not call.in_private:
        return texts.counted(made, facts)
    turn = Turn(call.user_id, "preview", (channel, about))
    card = await asyncio.to_thread(cards.of_preview, made, facts, turn, page=call.page)
    return Carded(card, await asyncio.to_thread(texts.page, made, facts))


async def _facts(call: Call, made: Preview) -> texts.Facts:
    """The facts besides what is in the prompt. Raises MemoryFault if a memory could not be read."""
    arrival, items, off = made.arrival, made.ready.gathered.items, call.context.off
    view = await call.memory.view(call.subject, arrival.persona)
    if arrival.permission.holds and view.visible(in_dm=arrival.in_dm) and not items.active:
        raise MemoryFault("the memory was not there in time for a preview")
    branches = await call.memory.branches(call.subject)
    persona = items.branch or arrival.persona or branches.current
    here = {item.id for item in view.active()}
    elsewhere = {}
    for name in branches.all:
        if name != persona:
            known = (await call.memory.view(call.subject, name)).active()
            elsewhere[name] = sum(item.id not in here for item in known)
    return texts.Facts(
        left_out=made.left_out(view.items.values()),
        elsewhere=elsewhere,
        persona=persona if elsewhere else "",
        off=off,
        answers=await call.client.talk.wants_answer(arrival),
        tools=call.client.settings.tools_enabled and arrival.permission.holds and "memory" not in off,
        archive=call.context.archiving.on(arrival.place),
    )

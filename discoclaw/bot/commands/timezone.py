"""A person's time zone: an item of their memory with a key, which names it."""

import asyncio
from dataclasses import replace
from datetime import UTC, tzinfo
from datetime import timezone as fixed

from discoclaw.bot.answers import OPTED_OUT, Unclear
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.everyday import crowded
from discoclaw.bot.memories import NOT_USED, kept_private
from discoclaw.core import zones
from discoclaw.core.draft import Draft
from discoclaw.core.errors import Refused
from discoclaw.core.item import Facets, Item
from discoclaw.core.zones import KEY, names_like, own_zone, text_of, zone_named
from discoclaw.show.markup import said

OFF = ("off", "none")
MOST_NEAR = 3
FIXED = " It has no summer time: if your clock does, name a large city that has the same time instead."
_TYPED = 100


async def timezone(call: Call, name: str | None) -> str:
    wanted = (name or "").strip()
    if not wanted:
        return await _current(call)
    if wanted.lower() in OFF:
        return await _forget(call)
    zone = await asyncio.to_thread(zone_named, wanted)
    if zone is None:
        text = f"I don't know which time zone {said(wanted, _TYPED)} is."
        if near := await asyncio.to_thread(names_like, wanted, MOST_NEAR):
            raise Unclear(f"{text} Did you mean {' or '.join(f'`{one}`' for one in near)}?")
        raise Unclear(
            f"{text} Name a large city that has the same time, for example Berlin or New York, "
            "or the difference from UTC, for example UTC+2."
        )
    if call.context.choices.opted_out(call.user_id):
        raise Refused(OPTED_OUT)
    return await _choose(call, zone)


async def _current(call: Call) -> str:
    default, now_ms = call.client.settings.zone, call.origin().said_at
    if call.context.choices.opted_out(call.user_id):
        return f"{NOT_USED}\nI use the server's time zone, {_named(default, now_ms)}."
    items = (await call.memory.view(call.subject, call.persona_here)).active()
    found = own_zone(items, in_dm=call.in_private)
    if found is not None:
        item, zone = found
        return f"Your time zone is {_named(zone, now_ms)}.{kept_private(item)}"
    if own_zone(items, in_dm=True) is not None:  # which may not be shown here
        why, how = "Your time zone is private, so here", "to see yours, use `/memory timezone`"
    else:
        why, how = "I don't know your time zone, so", "`!memory timezone <city>` sets yours"
    return f"{why} I use the server's, {_named(default, now_ms)}; {how}."


async def _choose(call: Call, zone: tzinfo) -> str:
    # Where somebody lives is private if they say it in a DM. This they say so that it is used everywhere.
    origin = replace(call.origin(), private=False)

    def make(draft: Draft) -> str:
        item, done = draft.upsert("fact", text_of(zone), origin, facets=Facets(key=KEY))
        marked = draft.mark(item, "normal", origin)
        for other in _keyed(draft):
            if other.id != item.id:  # replicas can have given it to two
                draft.deprecate(other, origin)
        now = _named(zone, origin.said_at)
        if done == marked == "unchanged":
            answer = f"Your time zone is already {now}."
        else:
            answer = (
                f"From now on your time zone is {now}. I use it everywhere, also outside our DMs. "
                "`!memory timezone off` forgets it."
            ) + (FIXED if isinstance(zone, fixed) and zone is not UTC else "")
        return answer + crowded(draft, call.client.settings.max_items)

    return await call.change("time zone set by command", make)


async def _forget(call: Call) -> str:
    default, origin = call.client.settings.zone, call.origin()

    def make(draft: Draft) -> str:
        known = _keyed(draft)
        for item in known:
            draft.deprecate(item, origin)
        done = "Forgotten. From now on" if known else "I don't know your time zone, so"
        return f"{done} I use the server's, {_named(default, origin.said_at)}."

    return await call.change("time zone forgotten by command", make)


def _keyed(draft: Draft) -> list[Item]:
    """The active items with the key of the time zone."""
    return [item for item in draft.items.values() if item.facets.key == KEY and item.active]


def _named(zone: tzinfo, now_ms: int) -> str:
    return f"`{zone}`, where it is now {zones.now(now_ms, zone)}"

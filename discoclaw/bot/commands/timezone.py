"""A person's time zone: an item of their memory with a key, which names it."""

import asyncio
from dataclasses import replace
from datetime import tzinfo

from discoclaw.bot.answers import OPTED_OUT, Unclear
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.everyday import crowded
from discoclaw.bot.texts import zones as texts
from discoclaw.bot.texts.memory import NOT_USED, kept_private
from discoclaw.core.draft import Draft
from discoclaw.core.errors import Refused
from discoclaw.core.item import Facets, Item
from discoclaw.core.zones import KEY, names_like, own_zone, text_of, zone_named

OFF = ("off", "none")
MOST_NEAR = 3


async def timezone(call: Call, name: str | None) -> str:
    wanted = (name or "").strip()
    if not wanted:
        return await _current(call)
    if wanted.lower() in OFF:
        return await _forget(call)
    zone = await asyncio.to_thread(zone_named, wanted)
    if zone is None:
        raise Unclear(texts.unknown(wanted, await asyncio.to_thread(names_like, wanted, MOST_NEAR)))
    if call.context.choices.opted_out(call.user_id):
        raise Refused(OPTED_OUT)
    return await _choose(call, zone)


async def _current(call: Call) -> str:
    default, now_ms = call.client.settings.zone, call.origin().said_at
    if call.context.choices.opted_out(call.user_id):
        return f"{NOT_USED}\n{texts.servers(default, now_ms)}"
    items = (await call.memory.view(call.subject, call.persona_here)).active()
    found = own_zone(items, in_dm=call.in_private)
    if found is not None:
        item, zone = found
        return texts.own(zone, now_ms) + kept_private(item)
    return texts.default(default, now_ms, hidden=own_zone(items, in_dm=True) is not None)


async def _choose(call: Call, zone: tzinfo) -> str:
    # Where somebody lives is private if they say it in a DM. This they say so that it is used everywhere.
    origin = replace(call.origin(), private=False)

    def make(draft: Draft) -> str:
        item, done = draft.upsert("fact", text_of(zone), origin, facets=Facets(key=KEY))
        marked = draft.mark(item, "normal", origin)
        for other in _keyed(draft):
            if other.id != item.id:  # replicas can have given it to two
                draft.deprecate(other, origin)
        same = done == marked == "unchanged"
        answer = (texts.unchanged if same else texts.chosen)(zone, origin.said_at)
        return answer + crowded(draft, call.client.settings.max_items)

    return await call.change("time zone set by command", make)


async def _forget(call: Call) -> str:
    default, origin = call.client.settings.zone, call.origin()

    def make(draft: Draft) -> str:
        known = _keyed(draft)
        for item in known:
            draft.deprecate(item, origin)
        return texts.dropped(default, origin.said_at, known=bool(known))

    return await call.change("time zone forgotten by command", make)


def _keyed(draft: Draft) -> list[Item]:
    """The active items with the key of the time zone."""
    return [item for item in draft.items.values() if item.facets.key == KEY and item.active]

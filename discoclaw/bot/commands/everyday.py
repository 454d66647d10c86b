"""What people do every day: add memories, say who sees them, and decide what I asked them."""

import asyncio
from dataclasses import replace
from datetime import UTC, tzinfo
from datetime import timezone as fixed
from typing import Any

from discoclaw.bot import naming
from discoclaw.bot.answers import Unclear
from discoclaw.bot.commands.call import Call
from discoclaw.bot.proposals import waiting
from discoclaw.commands.caller import OPTED_OUT
from discoclaw.commands.memories import NOT_USED, SECRET, kept_private, presumed, still
from discoclaw.core import privacy, zones
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import ModelError, ModelSpent, Refused
from discoclaw.core.item import Facets, Item, Sensitivity
from discoclaw.core.privacy import is_personal
from discoclaw.core.text import collapse
from discoclaw.core.view import View
from discoclaw.core.yours import halves, yours
from discoclaw.core.zones import KEY, names_like, own_zone, text_of, zone_named
from discoclaw.show.answer import Answer, Reply
from discoclaw.show.markup import for_people, plain, said, words
from discoclaw.show.words import count, short

IMPORTED = "imported"
"""The word by which `share` takes all memories that are private only because they came in from files."""
NO_MODEL = "the model that looks for them didn't answer, so nothing has changed; try again in a while"


# ---------------------------------------------------------------------- see, add, forget


async def remember(call: Call, text: str) -> Reply:
    told = await keep(call, text, call.origin(), "remembered by command")
    if halves(text) is None:
        return told
    item = next((one for one in await call.items() if one.active and one.text == collapse(text)), None)
    if item is None:  # it is worded otherwise, or held anything secret
        return told
    branch = call.persona_here or (await call.memory.branches(call.subject)).current
    return naming.about_one(f"{told}\n{naming.TWO_THINGS}", call.user_id, "history split", item, branch)


async def split(call: Call, memory: str) -> str:
    """Make two memories of one that says two things."""
    meant = await call.the_one(await call.items(), memory, "history split")
    if (parts := halves(meant.text)) is None:
        raise Refused("that memory says one thing, as far as I can tell; `!memory edit` changes it")

    def make(draft: Draft) -> str:
        item, secret = still(draft, meant), meant.facets.sensitivity
        draft.upsert(item.kind, parts[0], call.origin(), given_id=item.id, marked=secret, tags=item.tags)
        draft.upsert(item.kind, parts[1], call.origin(), marked=secret, tags=item.tags)
        return "Remembered as two: " + " ".join(words(yours(part)) for part in parts)

    return await call.change("split by command", make)


async def keep(
    call: Call, text: str, origin: Origin, why: str, *, marked: Sensitivity = "normal", **metadata: Any
) -> str:
    """Remember a text on the person's word. `marked`: it is at least so private."""
    clean = call.client.redactor(text)
    most = call.client.settings.max_items
    marked = privacy.stricter(marked, call.marked(clean.text))

    def make(draft: Draft) -> str:
        item, done = draft.upsert("fact", clean.text, origin, marked=marked)
        if done == "ignored":
            raise Refused("that message was deleted, so I remember nothing from it")
        if done == "unchanged":
            return f"I already remember that: {words(yours(item.text))}"
        answer = f"Remembered: {words(yours(item.text))}{kept_private(item)}"
        answer += SECRET if clean.redacted or clean.flagged else ""
        if (
            not call.in_private
            and item.facets.sensitivity == "normal"
            and is_personal(item.text, in_the_open=True)
        ):
            answer += f"\n(used in every channel; `!memory private {short(item.id)}` keeps it between us)"
        return answer + crowded(draft, most)

    return await call.change(why, make, **metadata)


def crowded(draft: Draft, most: int) -> str:
    """The note if a new memory takes the place of the oldest one."""
    if len(draft.items) > most and all(one.active for one in draft.items.values()):
        return f"\n(I keep {most} memories at most, so I forgot the oldest; `!memory undo` restores it.)"
    return ""


# ---------------------------------------------------------------------- who sees it


async def share(call: Call, memory: str) -> str:
    if memory.strip().lower() == IMPORTED:
        view = await call.memory.view(call.subject, call.persona_here)
        if imported := await presumed(call, view):

            def make(draft: Draft) -> str:
                shared = sum(draft.mark(item, "normal", call.origin()) == "updated" for item in imported)
                many = count(shared, "memory")
                return f"From now on I use {many} from files everywhere. `!memory undo` takes it back."

            return await call.change("shared by command", make)
    return await _mark(call, memory, "normal")


async def private(call: Call, memory: str) -> str:
    return await _mark(call, memory, "private")


async def _mark(call: Call, memory: str, secret: Sensitivity) -> str:
    # To share a memory one has to be able to name it, wherever one is; its text is not repeated.
    verb = "share" if secret == "normal" else "private"
    meant = await call.those(await call.items(), memory, verb, unseen=True)

    def make(draft: Draft) -> str:
        items = [still(draft, one) for one in meant]
        for item in items:
            draft.mark(item, secret, call.origin())
        where = "everywhere" if secret == "normal" else "in our DMs only"
        which = "that memory" if len(items) == 1 else f"these {count(len(items), 'memory')}"
        ids = "" if call.on_card else f" (id {', '.join(short(item.id) for item in items)})"
        return f"From now on I use {which} {where}{ids}."

    return await call.change(f"marked {secret} by command", make)


# ---------------------------------------------------------------------- decide


async def approve(call: Call, state: str | None) -> str:
    choices = call.context.choices
    if state is not None:
        await choices.choose(call.user_id, asks_first=state == "on")
    number = len((await _here(call))[1].pending)
    left = f" {number} still waiting for your yes: `!memory pending`." if number else ""
    if state is None:
        asks = choices.asks_first(call.user_id, call.place)
        now = "I ask before I remember" if asks else "I remember without asking"
        other = "off" if asks else "on"
        return f"{now} what I learn from what you say; `!memory approve {other}` changes that.{left}"
    if state == "off":
        return f"From now on I remember what I learn without asking.{left}"
    return (
        "From now on I ask before I remember something that I learned from what you said. "
        f"What you tell me with `!memory remember` I still remember at once.{left}"
    )


async def pending(call: Call) -> Answer:
    branch, view = await _here(call)
    days = call.client.settings.pending_days
    return waiting(call.user_id, view, branch, in_private=call.in_private, days=days, page=call.page)


async def autoswitch(call: Call, state: str) -> str:
    await call.context.choices.choose(call.user_id, auto_switch=state == "on")
    if state == "on":
        return "From now on I switch your persona by myself when we talk about what another one is for."
    return "From now on I ask before I switch your persona."


async def tidy(call: Call) -> str:
    branch = call.persona(await call.memory.branches(call.subject))
    try:
        report = await call.context.consolidate(call.subject, branch, call.metadata)
    except ModelSpent as error:
        raise Refused(error.user_message) from error
    except ModelError as error:
        raise Refused(NO_MODEL) from error
    asks = "\nTo answer the questions, use `!memory settle`." if report.questions else ""
    return plain(for_people(report.text(in_private=call.in_private))) + asks


async def _here(call: Call) -> tuple[str, View]:
    """The persona that counts here, and its view; a place's own persona begins with what is known."""
    branches = await call.memory.branches(call.subject)
    here = call.persona_here
    branch = here if here is not None and here in branches.all else branches.current
    return branch, await call.memory.view(call.subject, branch)


# ----------------------------------------------------------------------
# A person's time zone: an item of their memory with a key, which names it.

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

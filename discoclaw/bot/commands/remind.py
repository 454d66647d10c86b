"""`/remind`: set a reminder, see them all, and put off, change or delete one."""

from typing import Literal

from discoclaw.bot.commands.call import Call
from discoclaw.bot.reminders import card, confirmed, in_order, line_of
from discoclaw.core.errors import Refused
from discoclaw.core.reminder import Reminder
from discoclaw.reminders import verbs
from discoclaw.reminders.verbs import Clock, Wanted, in_words
from discoclaw.reminders.when import When, read, split
from discoclaw.show.answer import Answer, Reply
from discoclaw.show.markup import words

Where = Literal["here", "dm"]


async def me(call: Call, when: str, what: str, where: Where | None) -> Reply:
    """Set a reminder. As text, the time is at the beginning or the end of what follows."""
    clock = await _clock(call)
    if what:
        found, text = read(when, call.asked_at, clock.zone), what
    else:
        found, text = split(when, call.asked_at, clock.zone)
    text, secret = call.clean(text)
    place = call.place
    here = place.kind != "dm" and where != "dm" and place.name != "unknown"
    wanted = Wanted(
        text,
        found,
        channel=place.channel_id if here else "",
        asked=f"{place.channel_id}/{call.source.id}" if call.typed else "",
        private=not here or place.private,
    )
    one = await verbs.set_one(call.memory, call.subject, wanted, call.origin(), call.metadata)
    return confirmed(call.user_id, one, clock, in_private=call.in_private, note=secret)


async def listed(call: Call) -> Answer:
    """All that are still to come, the next first. A page's that could not be sent count as seen."""
    clock = await _clock(call)
    reminders = in_order((await call.memory.branches(call.subject)).reminders.values(), clock)
    answer = card(call.client, call.user_id, reminders, clock, page=call.page)
    if call.in_private:
        page, _, rows = answer.shown()
        first = sum(map(len, answer.pages()[: page - 1]))
        held = {one.id for one in reminders[first : first + len(rows)] if one.held}
        await verbs.seen(call.memory, call.subject, held, call.origin(), call.metadata)
    return answer


async def delete(call: Call, which: str) -> str:
    one = await _named(call, which)
    await verbs.delete(call.memory, call.subject, one.id, call.origin(), call.metadata)
    return (
        f"Deleted: {line_of(one) if _may_say(call, one) else 'that reminder'}. `!memory undo` brings it back."
    )


async def edit(call: Call, which: str, what: str | None, when: str | None) -> str:
    one, clock = await _named(call, which), await _clock(call)
    if not what and not when:
        raise Refused("say what the reminder should say, or when it should come")
    new = read(when, call.asked_at, clock.zone) if when else None
    text = call.clean(what)[0] if what else None
    return await _changed(call, one, clock, text, new)


async def snooze(call: Call, which: str, when: str) -> str:
    one, clock = await _named(call, which), await _clock(call)
    new = read(when, call.asked_at, clock.zone)
    if new.rule:
        raise Refused("name one time, such as `in 20 minutes` or `tomorrow at 9`")
    again = await verbs.snooze(call.memory, call.subject, one, new, call.origin(), call.metadata)
    return f"{_said(call, again)}: {in_words(again, clock)}"


async def _changed(call: Call, one: Reminder, clock: Clock, text: str | None, when: When | None) -> str:
    new = await verbs.change(
        call.memory, call.subject, one.id, call.origin(), call.metadata, text=text, when=when
    )
    return f"{_said(call, new)}: {in_words(new, clock)}"


def _said(call: Call, one: Reminder) -> str:
    return words(one.text) if _may_say(call, one) else "That reminder"


def _may_say(call: Call, one: Reminder) -> bool:
    return call.in_private or not one.private


async def _clock(call: Call) -> Clock:
    return await verbs.clock_of(
        call.memory, call.subject, call.client.settings.zone, in_private=call.in_private
    )


async def _named(call: Call, which: str) -> Reminder:
    return verbs.named((await call.memory.branches(call.subject)).reminders, which)

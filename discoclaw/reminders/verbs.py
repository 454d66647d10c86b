"""What people do with their reminders: the same for commands, buttons and the model's tool.

Each is one change of the person's ledger, so `undo` takes it back and `log` shows it. All raise Refused with
a way out, and MemoryFault when the disk fails.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any, Final

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.reminder import Reminder, after, did_in, new_id
from discoclaw.core.text import collapse, scrub
from discoclaw.core.zones import local, minute, own_zone
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.reminders.when import When, due, read, words_of_rule
from discoclaw.show.markup import NOTE, words

MOST: Final = 200
"""Reminders that a person may have at once."""
LONGEST: Final = 500
"""Longest text of one, in characters."""
NONE: Final = "that reminder is over: it has come, or it was deleted"


@dataclass(frozen=True, slots=True)
class Clock:
    """The zone by whose clock a person's reminders are due.

    `theirs`: they have told us. `shown`: it may be named where they are asking.
    """

    zone: tzinfo
    theirs: bool
    shown: bool


async def clock_of(memory: AnyMemory, subject: str, default: tzinfo, *, in_private: bool) -> Clock:
    """The clock of a person; by default the server's."""
    items = (await memory.view(subject)).active()
    own = own_zone(items, in_dm=True)
    shown = own is None or in_private or own_zone(items, in_dm=False) is not None
    return Clock(default if own is None else own[1], own is not None, shown)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reminder that somebody asks for; the fields are those of `Reminder`."""

    text: str
    when: When
    channel: str = ""
    asked: str = ""
    said: bool = False
    private: bool = True


async def set_one(
    memory: AnyMemory, subject: str, wanted: Wanted, origin: Origin, how: Mapping[str, Any]
) -> Reminder:
    """Set a reminder."""
    text, when = _text(wanted.text), wanted.when

    def wish(draft: Draft) -> Reminder:
        if len(draft.reminders) >= MOST:
            raise Refused(f"you can have {MOST} reminders at once; `!remind list` shows which you can delete")
        one = Reminder(
            new_id(text, draft.now_ms),
            text,
            when.wall,
            when.at,
            when.rule,
            wanted.channel,
            wanted.asked,
            wanted.said,
            wanted.private,
        )
        draft.remind(one, origin, "set")
        return draft.reminders[one.id]

    return await memory.change(subject, "a reminder was set", wish, **how)


async def set_before(
    memory: AnyMemory, subject: str, wanted: Wanted, *, but: Collection[str]
) -> Reminder | None:
    """What was set for the same message before, as it is now; None if nothing was, but those of these ids.

    A message may be answered once more, after a kill or by a button. Raises Refused if it came or was
    deleted since, and MemoryFault.
    """
    events = [event for one in (await memory.history(subject)).commits.values() for event in one.events]
    some = [one for event in events if did_in(event) == "set" and (one := after(event)) is not None]
    mine = [one for one in some if one.asked == wanted.asked and one.id not in but]
    when, text = wanted.when, _alike(wanted.text)
    same = [one for one in mine if _alike(one.text) == text]
    same += [one for one in mine if When(one.wall, one.at, one.rule) == when]
    if not same:
        return None
    known = (await memory.branches(subject)).reminders.get(same[0].id)
    if known is None:
        raise Refused("that reminder was set for this message before, and is over; they have to ask anew")
    return known


def _alike(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


async def snooze(
    memory: AnyMemory, subject: str, last: Reminder, when: When, origin: Origin, how: Mapping[str, Any]
) -> Reminder:
    """Say a reminder once more, later. One that repeats goes on as it was."""
    if not last.rule and last.id in (await memory.branches(subject)).reminders:
        return await change(memory, subject, last.id, origin, how, when=when)
    again = Wanted(last.text, when, last.channel, last.asked, last.said, last.private)
    return await set_one(memory, subject, again, origin, how)


async def change(
    memory: AnyMemory,
    subject: str,
    reminder_id: str,
    origin: Origin,
    how: Mapping[str, Any],
    *,
    text: str | None = None,
    when: When | None = None,
) -> Reminder:
    """Give a reminder other words, or another time."""

    def wish(draft: Draft) -> Reminder:
        known = _known(draft, reminder_id)
        new = replace(known, text=known.text if text is None else _text(text))
        if when is not None:
            new = replace(new, wall=when.wall, at=when.at, rule=when.rule, held=False)
        if new != known:
            draft.remind(new, origin, "changed")
        return draft.reminders[reminder_id]

    return await memory.change(subject, "a reminder was changed", wish, **how)


async def delete(
    memory: AnyMemory, subject: str, reminder_id: str, origin: Origin, how: Mapping[str, Any]
) -> Reminder:
    """End a reminder."""

    def wish(draft: Draft) -> Reminder:
        known = _known(draft, reminder_id)
        draft.remind(known, origin, "deleted", gone=True)
        return known

    return await memory.change(subject, "a reminder was deleted", wish, **how)


async def seen(
    memory: AnyMemory,
    subject: str,
    ids: Collection[str],
    origin: Origin,
    how: Mapping[str, Any],
) -> None:
    """Note that a person has seen these of the reminders that could not be sent to them."""
    if not ids:
        return

    def wish(draft: Draft) -> None:
        for one in list(draft.reminders.values()):
            if one.held and one.id in ids:
                draft.remind(replace(one, held=False), origin, "delivered", gone=not one.rule)

    await memory.change(subject, "a reminder was due", wish, **how)


def _known(draft: Draft, reminder_id: str) -> Reminder:
    if (known := draft.reminders.get(reminder_id)) is None:
        raise Refused(NONE)
    return known


def _text(text: str) -> str:
    tidy = collapse(scrub(text))
    if not tidy:
        raise Refused("say what I should remind you of")
    if len(tidy) > LONGEST:
        raise Refused(f"a reminder has at most {LONGEST} characters; please shorten it")
    return tidy


def named(reminders: Mapping[str, Reminder], wanted: str) -> Reminder:
    """The reminder that somebody means: its id, or words that only its text has. Raises Refused."""
    plain = wanted.strip().strip("`").casefold()
    if plain in reminders:
        return reminders[plain]
    parts = re.findall(r"\w+", plain)
    found = list[Reminder]()
    for one in reminders.values():
        own = re.findall(r"\w+", one.text.casefold())
        if all(any(word.startswith(part) for word in own) for part in parts):
            found.append(one)
    if len(found) == 1 and parts:
        return found[0]
    if not found or not parts:
        raise Refused(f"no reminder has the words {wanted.strip()[:60]!r}; `!remind list` shows yours")
    ids = ", ".join(f"`{one.id}`" for one in found[:10])
    raise Refused(f"{len(found)} reminders have the words {wanted.strip()[:60]!r}; name one by its id: {ids}")


# ---------------------------------------------------------------------- in words


def typed(reminder: Reminder, zone: tzinfo) -> str:
    """When a reminder is due, as people type it: `read` understands it."""
    return words_of_rule(reminder) or minute(due(reminder, zone), zone).partition(" ")[2]


def retyped(reminder: Reminder, text: str, now_ms: int, zone: tzinfo) -> When | None:
    """The time that somebody typed over `typed`; None if they left it as it was. Raises Refused."""
    return None if collapse(text) == typed(reminder, zone) else read(text, now_ms, zone)


def in_words(reminder: Reminder, clock: Clock) -> str:
    """When a reminder comes next, and how it repeats, as Discord's markup."""
    at = due(reminder, clock.zone)
    next_ = f"<t:{at // 1000}:R>"
    when = f"{minute(at, clock.zone)} ({clock.zone})" if clock.shown else f"<t:{at // 1000}:F>"
    rule = words_of_rule(reminder)
    return f"{rule}, next {when}, {next_}" if rule else f"{when}, {next_}"


def for_model(reminder: Reminder, clock: Clock) -> str:
    """When a reminder comes next, and how it repeats, for a model: in plain text, and in no relative time."""
    at = due(reminder, clock.zone)
    rule = words_of_rule(reminder)
    when = minute(at, clock.zone) if clock.shown else f"{local(at, clock.zone):%H:%M} on the person's clock"
    return f"{rule}, next {when}" if rule else when


def set_words(reminder: Reminder, clock: Clock, *, in_private: bool) -> str:
    """That a reminder is set: what, when by whose clock, and where, as Discord's markup."""
    where = f"in <#{reminder.channel}>" if reminder.channel else "in a direct message"
    what = words(reminder.text) if in_private or not reminder.private else "your reminder"
    lines = [f"⏰ {what}", f"{NOTE}{in_words(reminder, clock)}, {where}"]
    return "\n".join([*lines, f"{NOTE}{UNKNOWN_ZONE}"] if asks_zone(reminder, clock) else lines)


def asks_zone(reminder: Reminder, clock: Clock) -> bool:
    """Whether a reminder goes by a clock that may not be its person's."""
    return bool(reminder.wall) and not clock.theirs


UNKNOWN_ZONE: Final = (
    "I don't know your time zone, so I took the server's; `/memory timezone <city>` sets yours."
)

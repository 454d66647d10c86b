"""Reminders in Discord: saying them where they were asked for, and the buttons below them and in their list.

A reminder mentions its person and nobody else. If its channel is gone, or the person or we may not be there
any more, it comes as a direct message that says why; if that isn't taken either, it waits until the person
looks at `/remind list`. The custom ids of its buttons have the token of the delivery, by which a message is
found that an earlier run had sent before it was killed.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final, Literal

import discord

from discoclaw.bot.access import Access
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.dispatch import Outcome
from discoclaw.bot.layout import Field, Form, buttons_below
from discoclaw.bot.links import message_link
from discoclaw.bot.pressed import USER, Controls, Pressed, handed_on, opens_form
from discoclaw.bot.proposals import reminder_buttons
from discoclaw.bot.wire import can_read, channel_of, discord_errors, member_of, place_of
from discoclaw.core.errors import ChatBlocked, ChatError, ChatForbidden, ChatGone, ChatUnavailable, Refused
from discoclaw.core.reminder import Reminder, after
from discoclaw.core.times import snowflake_at, span
from discoclaw.core.zones import local
from discoclaw.reminders import verbs
from discoclaw.reminders.due import OLD_MS, Delivery, Given
from discoclaw.reminders.verbs import LONGEST, NONE, Clock, Wanted, in_words
from discoclaw.reminders.when import When, due, read, split, words_of_rule
from discoclaw.show.answer import Answer, Button, Reply, Row, Turn, back, message
from discoclaw.show.markup import NOTE, opening, words
from discoclaw.show.words import count

log = logging.getLogger(__name__)

LATE_MS: Final = 120_000
"""A reminder that is later than this says so."""
_ID = r"(?P<id>[0-9a-f]{8})"
_TOKEN = r"(?P<token>[0-9a-f]{16})"
GONE: Final = " (here, because the channel is gone)"
SNOOZES: Final = (("10", "10 min"), ("60", "1 hour"), ("1440", "Tomorrow"))

CONTROLS = Controls()


class Deliverer:
    """Says reminders, with `client`."""

    def __init__(self, client: discord.Client, access: Access) -> None:
        self._client = client
        self._access = access

    async def __call__(self, one: Delivery) -> Given:
        """Say some reminders to their person. Raises ChatUnavailable if that is to be tried again."""
        try:
            with discord_errors():
                user = self._client.get_user(int(one.user_id)) or await self._client.fetch_user(
                    int(one.user_id)
                )
        except ChatGone:
            return "held"
        if not await self._access.may_talk(user, strict=True):
            return "held"
        why, channel_id = "", one.reminders[0].channel
        if channel_id:
            try:
                channel = await channel_of(self._client, channel_id)
                if not (self._access.listens(place_of(channel)) and await _may_use(channel, user)):
                    raise ChatForbidden("one of us may not use that channel any more")
                await self._say(channel, one, "")
                return "sent"
            except ChatUnavailable:
                raise
            except ChatError as error:
                log.info("a reminder goes to a direct message: %s", error)
                why = _because(error, channel_id)
        try:
            with discord_errors():
                dm = user.dm_channel or await user.create_dm()
            await self._say(dm, one, why)
        except ChatUnavailable:
            raise
        except ChatError as error:
            log.info("a reminder waits until its person looks: %s", error)
            return "held"
        return "sent"

    async def _say(self, channel: Any, one: Delivery, why: str) -> None:
        """Send a message, unless an earlier run has. Raises ChatError."""
        if one.since is not None and await self._was_said(channel, one):
            return
        mentions = discord.AllowedMentions(
            users=[discord.Object(int(one.user_id))], everyone=False, roles=False
        )
        options: dict[str, Any] = {"allowed_mentions": mentions, "nonce": one.token, "suppress_embeds": True}
        with discord_errors():
            await channel.send(self._text(one, why), view=buttons_below(_buttons(one)), **options)

    async def _was_said(self, channel: Any, one: Delivery) -> bool:
        """Whether a message of this delivery is in a channel."""
        since = discord.Object(snowflake_at(max(0, (one.since or 0) - LATE_MS)))
        try:
            with discord_errors():
                async for message in channel.history(limit=200, after=since):
                    ours = self._client.user is not None and message.author.id == self._client.user.id
                    if ours and any(custom_id.endswith(f":{one.token}") for custom_id in _ids(message)):
                        return True
        except ChatForbidden as error:
            log.warning("it can't be seen whether a reminder was said before the restart: %s", error)
        return False

    def _text(self, one: Delivery, why: str) -> str:
        """The message. Its first line is small print, so that it isn't taken for talk."""
        mention = f"<@{one.user_id}>"
        if len(one.reminders) > 1:
            lines = []
            for reminder, at in zip(one.reminders, one.due, strict=True):
                late = f", {span(one.now_ms - at)} late" if one.now_ms - at > LATE_MS else ""
                lines.append(f"- {opening(reminder.text, LONGEST)} ({_when(at)}{late})")
            away = " came due while I was away" if one.now_ms - one.due[0] > OLD_MS else ""
            head = f"{NOTE}⏰ {count(len(one.reminders), 'reminder')}{away}{why}"
            return _fitting([head, f"{mention} you asked me to remind you of these:", *lines])
        reminder, at = one.reminders[0], one.due[0]
        channel_id, _, message_id = reminder.asked.partition("/")
        link = message_link(self._client, channel_id, message_id) if message_id and why != GONE else ""
        about = [f"⏰ reminder{why}"]
        about += [f"[where you asked for it]({link})"] if link else []
        about += [words_of_rule(reminder)] if reminder.rule else []
        about += [f"{span(one.now_ms - at)} late"] if one.now_ms - at > LATE_MS else []
        return _fitting([NOTE + " · ".join(about), f"{mention} {opening(reminder.text, LONGEST)}"])


def _fitting(lines: Sequence[str]) -> str:
    """The lines that one message of Discord holds."""
    kept, room = list[str](), 1990
    for line in lines:
        room -= len(line.encode("utf-16-le")) // 2 + 1
        if room < 0:
            kept.append("…")
            break
        kept.append(line)
    return "\n".join(kept)


def _when(at: int) -> str:
    return f"<t:{at // 1000}:f>"


def _buttons(one: Delivery) -> list[Button]:
    found = [Button(f"reminders:{one.user_id}:{one.token}", "My reminders")]
    if len(one.reminders) == 1:
        first = one.reminders[0]
        known = f"{one.user_id}:{first.id}"
        if first.rule:
            found.insert(0, Button(f"unremind:{known}:{one.token}", "Stop", "red"))
        found[:0] = [Button(f"snooze:{known}:{minutes}:{one.token}", label) for minutes, label in SNOOZES]
    return found


def _ids(message: discord.Message) -> list[str]:
    parts = [one for part in message.components for one in getattr(part, "children", [part])]
    return [str(getattr(one, "custom_id", "")) for one in parts]


async def _may_use(channel: Any, user: discord.abc.User) -> bool:
    """Whether a person may read and write in a channel now: we say nothing for them where they may not.

    Raises ChatError.
    """
    guild: discord.Guild | None = getattr(channel, "guild", None)
    if guild is None:
        return getattr(getattr(channel, "recipient", None), "id", None) == user.id
    if (member := await member_of(guild, user.id)) is None:
        return False
    may = channel.permissions_for(member)
    writes = may.send_messages_in_threads if isinstance(channel, discord.Thread) else may.send_messages
    return writes and await can_read(channel, member)


def _because(error: ChatError, channel_id: str) -> str:
    """Why a reminder doesn't come where it was asked for, as the end of a line."""
    if isinstance(error, ChatGone):
        return GONE
    if isinstance(error, ChatBlocked):
        return f" (here, because the server's AutoMod blocked it in <#{channel_id}>)"
    return f" (here, because one of us can't use <#{channel_id}> any more)"


# ---------------------------------------------------------------------- cards


def line_of(one: Reminder) -> str:
    """A reminder's words as one line."""
    return words(one.text, LONGEST)


def confirmed(user_id: str, one: Reminder, clock: Clock, *, in_private: bool, note: str = "") -> Answer:
    """That a reminder is set, with a button that takes it back."""
    text = verbs.set_words(one, clock, in_private=in_private) + note
    return message(text, reminder_buttons(user_id, one.id, asks_zone=verbs.asks_zone(one, clock)))


def in_order(some: Iterable[Reminder], clock: Clock) -> list[Reminder]:
    """The next first; those that could not be sent come before."""
    return sorted(some, key=lambda one: (not one.held, due(one, clock.zone), one.id))


def card(
    client: discord.Client, user_id: str, some: Sequence[Reminder], clock: Clock, *, page: int
) -> Answer:
    """All reminders of a person, which are `in_order`."""
    rows = []
    for one in some:
        channel_id, _, message_id = one.asked.partition("/")
        link = message_link(client, channel_id, message_id) if message_id else ""
        when = in_words(one, clock)
        if one.held:
            when = f"**could not be sent** {when if one.rule else _when(due(one, clock.zone))}"
        where = f"in <#{one.channel}>" if one.channel else "in a direct message"
        asked = f"[where you asked for it]({link})" if link else ""
        rows.append(
            Row(
                opening(one.text, LONGEST),
                " · ".join(filter(None, (when, where, asked))),
                Button(f"reminder:{user_id}:{one.id}:{{page}}", "⋯"),
                line=f"- {opening(one.text, LONGEST)} ({when}, {where}, id `{one.id}`)",
                private=one.private,
            )
        )
    return Answer(
        "Your reminders",
        rows or [Row("None. Try `!remind in 20 minutes to take the tea out`.")],
        small=[count(len(rows), "reminder")] if rows else [],
        foot=[verbs.UNKNOWN_ZONE] if any(verbs.asks_zone(one, clock) for one in some) else [],
        turn=Turn(user_id, "remind list"),
        page=page,
    )


def _menu(one: Reminder, user_id: str, page: int, clock: Clock) -> Answer:
    """One reminder, and what can be done about it. `page` is the one to go back to."""
    known = f"{user_id}:{one.id}"
    snoozes = [Button(f"later:{known}:{minutes}:{page}", label) for minutes, label in SNOOZES]
    return Answer(
        rows=[Row(opening(one.text, LONGEST), in_words(one, clock))],
        controls=[
            *snoozes,
            Button(f"editreminder:{known}:{page}", "Edit", "blue"),
            Button(f"endreminder:{known}:{page}", "Delete", "red"),
            back(Turn(user_id, "remind list"), page),
        ],
    )


# ---------------------------------------------------------------------- buttons

_PAGE = r"(?P<page>\d{1,4})"
_MINUTES = r"(?P<minutes>\d{1,5})"


@CONTROLS.on(rf"unremind:{USER}:{_ID}(?::{_TOKEN})?", once=True)
async def unremind(at: Pressed) -> str:
    """End a reminder: one that was just set, or below a message of one that repeats."""
    one = await verbs.delete(at.context.store, at.subject, at.known["id"], at.origin, at.how)
    return f"{NOTE}deleted{'' if one.private and at.press.guild_id is not None else f': {line_of(one)}'}"


@CONTROLS.on(rf"zone:{USER}:{_ID}", take=opens_form)
async def zone(at: Pressed) -> Form:
    """Ask for the time zone that a reminder should go by."""
    field = Field("city", "A large city that has your time", long=False, most=100)
    return Form(f"setzone:{at.user_id}:{at.known['id']}", "Your time zone", [field])


@CONTROLS.on(rf"setzone:{USER}:{_ID}")
async def set_zone(at: Pressed) -> Outcome:
    """Set it as the command does, and show when the reminder comes now, unless it is over."""
    told = await at.commands.turn(at.press, "memory timezone", at.values["city"], 1)
    note = f"{NOTE}{told.as_text(in_private=at.hidden)}"
    one = (await at.context.store.branches(at.subject)).reminders.get(at.known["id"])
    if one is None:
        return note
    return confirmed(at.user_id, one, await _clock(at), in_private=at.hidden, note=f"\n{note}")


@CONTROLS.on(rf"snooze:{USER}:{_ID}:{_MINUTES}:{_TOKEN}")
async def snooze(at: Pressed) -> str:
    """Say a reminder once more, later, below its message."""
    again, clock = await _snoozed(at)
    return f"{NOTE}⏰ again {in_words(again, clock)}: {line_of(again)}"


async def _snoozed(at: Pressed) -> tuple[Reminder, Clock]:
    memory, clock = at.context.store, await _clock(at)
    events = (await memory.history(at.subject)).of_reminder(at.known["id"])
    known = [one for event in events if (one := after(event)) is not None]
    if not known:
        raise Refused(NONE)
    minutes = int(at.known["minutes"])
    when = When(at=at.time_ms + minutes * 60_000)
    if minutes % 1440 == 0:  # tomorrow at this time, also on a day with another number of hours
        wall = local(at.time_ms, clock.zone).replace(tzinfo=None) + timedelta(minutes=minutes)
        when = When(wall=wall.isoformat(timespec="minutes"))
    return await verbs.snooze(memory, at.subject, known[-1], when, at.origin, at.how), clock


@CONTROLS.on(rf"reminders:{USER}:{_TOKEN}", take=handed_on)
async def reminders(at: Pressed) -> None:
    """Show the person their reminders."""
    await at.commands.opened(at.press, "remind list")


@CONTROLS.on(rf"reminder:{USER}:{_ID}:{_PAGE}")
async def reminder(at: Pressed) -> Answer:
    """Show one reminder of the list, with what can be done about it."""
    return _menu(await _present(at), at.user_id, int(at.known["page"]), await _clock(at))


@CONTROLS.on(rf"later:{USER}:{_ID}:{_MINUTES}:{_PAGE}")
async def put_off(at: Pressed) -> Outcome:
    """Put a reminder of the list off, and show the list again."""
    again, clock = await _snoozed(at)
    return await _list(at, f"⏰ {in_words(again, clock)}: {line_of(again)}")


@CONTROLS.on(rf"endreminder:{USER}:{_ID}:{_PAGE}")
async def end(at: Pressed) -> Outcome:
    """Delete a reminder of the list, and show the list again."""
    one = await verbs.delete(at.context.store, at.subject, at.known["id"], at.origin, at.how)
    return await _list(at, f"Deleted: {line_of(one)}")


@CONTROLS.on(rf"editreminder:{USER}:{_ID}:{_PAGE}", take=opens_form)
async def edit(at: Pressed) -> Form:
    """Open a form with a reminder's words and its time."""
    one, clock = await _present(at), await _clock(at)
    fields = [
        Field("what", "What to remind you of", one.text, most=LONGEST),
        Field("when", "When", verbs.typed(one, clock.zone), long=False, most=200),
    ]
    return Form(f"changereminder:{at.user_id}:{one.id}:{at.known['page']}", "Change a reminder", fields)


@CONTROLS.on(rf"changereminder:{USER}:{_ID}:{_PAGE}")
async def changed(at: Pressed) -> Outcome:
    """Give a reminder the words and the time that were typed into its form."""
    one, clock = await _present(at), await _clock(at)
    text = at.press.client.redactor.clean(at.values["what"])
    when = verbs.retyped(one, at.values["when"], at.time_ms, clock.zone)
    memory = at.context.store
    new = await verbs.change(memory, at.subject, one.id, at.origin, at.how, text=text, when=when)
    return await _list(at, f"Changed: {line_of(new)}, {in_words(new, clock)}")


async def _present(at: Pressed) -> Reminder:
    found = (await at.context.store.branches(at.subject)).reminders.get(at.known["id"])
    if found is None:
        raise Refused(NONE)
    return found


async def _clock(at: Pressed) -> Clock:
    memory, default = at.context.store, at.press.client.settings.zone
    return await verbs.clock_of(memory, at.subject, default, in_private=at.hidden)


async def _list(at: Pressed, note: str) -> Outcome:
    card = await at.commands.turn(at.press, "remind list", "", int(at.known["page"]))
    return card.said(f"{NOTE}{note}")


# ----------------------------------------------------------------------
# `/remind`: set a reminder, see them all, and put off, change or delete one.

Where = Literal["here", "dm"]


async def remind_me(call: Call, when: str, what: str, where: Where | None) -> Reply:
    """Set a reminder. As text, the time is at the beginning or the end of what follows."""
    clock = await _clock_of(call)
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


async def remind_list(call: Call) -> Answer:
    """All that are still to come, the next first. A page's that could not be sent count as seen."""
    clock = await _clock_of(call)
    reminders = in_order((await call.memory.branches(call.subject)).reminders.values(), clock)
    answer = card(call.client, call.user_id, reminders, clock, page=call.page)
    if call.in_private:
        page, _, rows = answer.shown()
        first = sum(map(len, answer.pages()[: page - 1]))
        held = {one.id for one in reminders[first : first + len(rows)] if one.held}
        await verbs.seen(call.memory, call.subject, held, call.origin(), call.metadata)
    return answer


async def remind_delete(call: Call, which: str) -> str:
    one = await _named(call, which)
    await verbs.delete(call.memory, call.subject, one.id, call.origin(), call.metadata)
    return (
        f"Deleted: {line_of(one) if _may_say(call, one) else 'that reminder'}. `!memory undo` brings it back."
    )


async def remind_edit(call: Call, which: str, what: str | None, when: str | None) -> str:
    one, clock = await _named(call, which), await _clock_of(call)
    if not what and not when:
        raise Refused("say what the reminder should say, or when it should come")
    new = read(when, call.asked_at, clock.zone) if when else None
    text = call.clean(what)[0] if what else None
    return await _changed(call, one, clock, text, new)


async def remind_snooze(call: Call, which: str, when: str) -> str:
    one, clock = await _named(call, which), await _clock_of(call)
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


async def _clock_of(call: Call) -> Clock:
    return await verbs.clock_of(
        call.memory, call.subject, call.client.settings.zone, in_private=call.in_private
    )


async def _named(call: Call, which: str) -> Reminder:
    return verbs.named((await call.memory.branches(call.subject)).reminders, which)

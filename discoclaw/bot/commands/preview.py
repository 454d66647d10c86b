"""`preview`: what the model would read about somebody if they wrote a message in a channel now.

It is made by the parts that answer messages (`session/prepare`). Only the person who asks sees what is in it,
and only of channels that they can read, as Discord says at this moment: a channel that a person can't read is
never told apart from one that doesn't exist.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import discord

from discoclaw.bot import wire
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.context import NOT_ALLOWED, OFF
from discoclaw.bot.wire import can_read, channel_of, discord_errors, member_of
from discoclaw.commands.memories import NOT_USED, row_of
from discoclaw.commands.spec import Need
from discoclaw.core.errors import ChatError, MemoryFault, Refused
from discoclaw.core.item import Item
from discoclaw.core.ports import IDLE
from discoclaw.core.times import date_of
from discoclaw.core.yours import yours
from discoclaw.prompt.assemble import notes_about
from discoclaw.recall import select
from discoclaw.recall.select import NO_ROOM, SAID, UNRELATED, WAITS, Chosen
from discoclaw.session import prepare as previews
from discoclaw.session.prepare import Preview
from discoclaw.show.answer import GREY, Answer, Reply, Row, Turn
from discoclaw.show.markup import for_people, name, plain, said, words
from discoclaw.show.words import count

ONLY_FOR_YOU = "only you may see that; use `/memory preview` here, or ask me in a DM"
INTERVIEW = (
    "You are in the interview about my personality there. Until it ends, what you write there belongs to it, "
    "and nothing I remember about you is used."
)
SILENT = "(I don't answer you there as I am set up now. This is what I would use if I did.)"
SUMMARY = "Summary of the conversation"
LONGEST_LINE = 160
"""UTF-16 units of a recent message that are shown."""

WHY: Mapping[str, str] = {
    previews.FITS: "When it fits what you write",
    previews.PRIVATE: "Private: I use these in our DMs only",
    previews.CONFIDENTIAL: "Confidential: I give these to no model",
    NO_ROOM: "No room: what I give the model at once is limited",
    SAID: "Says the same as one that is used",
    WAITS: "Too many to use in every answer: these come when you write about their topic",
    UNRELATED: "Not related closely enough to that message",
    IDLE: "Not used for too long",
    previews.OPTED_OUT: "Not used, because you have opted out",
    previews.FORGOTTEN: "Forgotten",
}
"""The heading of each reason why a memory is not used."""
ALWAYS: Mapping[str, str] = {
    select.ALWAYS: "always",
    select.EVERYTHING: "you ask for everything",
    select.NEWER: "newer than one that fits",
}
"""The reason shown for a memory that no word of a message called for."""
DM = "dm"
"""The word for direct messages with the bot, instead of a channel's name."""
NO_CHANNEL = "I can't preview that: there is no such channel, you can't read it, or I don't listen there"
SEVERAL = "you can read more than one channel of that name; please give me the one's id"

_ID = re.compile(r"<#(\d{1,20})>|(\d{15,20})")
_CHANNEL = re.compile(r"<#\d+>|\d{15,20}|#\S+|dm", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a preview says besides what is in the prompt.

    `left_out` are the person's other memories by reason. `elsewhere` is how many memories only the person's
    other personas have; `persona` is the one of the place, named only if there are others. `off` is switched
    off. `answers`: the bot would answer there. `tools`: the model can search the memory, with `archive` also
    the place's earlier messages.
    """

    left_out: Mapping[str, Sequence[Item]]
    elsewhere: Mapping[str, int]
    persona: str
    off: frozenset[Need]
    answers: bool
    tools: bool
    archive: bool


async def preview(call: Call, channel: str | None, about: str | None) -> Reply:
    if not call.in_private and channel not in (None, f"<#{call.channel.id}>"):
        raise Refused(ONLY_FOR_YOU)
    there = await _named(call, channel)
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
    made = await client.talk.preview(message)
    if context.hatchery.takes(made.turn):
        return INTERVIEW
    facts = await _facts(call, made)
    if not call.in_private:
        return _counted(made, facts)

    def line(item: Item) -> str:
        """A memory: in a card without its id, in a text with it, as it has no button."""
        if not call.slash:
            return row_of(item).line
        secret = "" if item.facets.sensitivity == "normal" else "🔒 "
        return f"- {secret}{words(yours(item.text))} ({item.kind})"

    place, where = made.turn.place, "our direct messages"
    if place.kind != "dm":
        where = f"the thread {said(place.name)}" if place.kind == "thread" else f"#{words(place.name)}"
    small = [f"as your persona {name(facts.persona)}"] if facts.persona else []
    small += [f"if you wrote {said(made.turn.message.text, 200)}"] if made.asked else []
    parts = await asyncio.to_thread(_parts, made, facts, line)
    return Answer(
        f"What I could say about you in {where}",
        [Row(part, apart=True) for part in parts],
        small=small,
        above=[*([NOT_USED] if made.turn.permission.opted_out else []), *_warnings(facts)],
        turn=Turn(call.user_id, "preview", (channel, about)),
        page=call.page,
        most=4,
        colour=GREY,
    )


async def _facts(call: Call, made: Preview) -> Facts:
    """The facts besides what is in the prompt. Raises MemoryFault if a memory could not be read."""
    turn, items, off = made.turn, made.ready.gathered.items, call.context.off
    view = await call.memory.view(call.subject, turn.persona)
    if turn.permission.holds and view.visible(in_dm=turn.in_dm) and not items.active:
        raise MemoryFault("the memory was not there in time for a preview")
    branches = await call.memory.branches(call.subject)
    persona = items.branch or turn.persona or branches.current
    here = {item.id for item in view.active()}
    elsewhere = {}
    for one in branches.all:
        if one != persona:
            known = (await call.memory.view(call.subject, one)).active()
            elsewhere[one] = sum(item.id not in here for item in known)
    return Facts(
        left_out=made.left_out(view.items.values()),
        elsewhere=elsewhere,
        persona=persona if elsewhere else "",
        off=off,
        answers=await call.client.talk.wants_answer(turn),
        tools=call.client.settings.tools_enabled and turn.permission.holds and "memory" not in off,
        archive=call.context.archiving.on(turn.place),
    )


# ---------------------------------------------------------------------- where


@dataclass(frozen=True, slots=True)
class Somewhere:
    """A channel, and a person as they are known there."""

    channel: "wire.Channel"
    person: discord.User | discord.Member


async def _named(call: Call, wanted: str | None) -> Somewhere:
    """The channel that somebody means, or where they are. Raises Refused unless they can read it.

    `wanted` is a mention, an id, a name, or "dm" for their direct messages.
    """
    name = (wanted or "").strip()
    if name.lower() == DM or (not name and call.place.kind == "dm"):
        return await _dm_of(call)
    meant = await _meant(call, name)
    found = [one for channel in meant if (one := await _as_read(call, channel)) is not None]
    if len(found) != 1:
        raise Refused(SEVERAL if found else NO_CHANNEL)
    return found[0]


async def _dm_of(call: Call) -> Somewhere:
    """A person's direct messages, in which they have no server's nickname. Raises Refused."""
    person = call.client.get_user(call.author.id) or call.author
    if call.place.kind == "dm":
        return Somewhere(call.channel, person)
    try:
        with discord_errors():
            return Somewhere(await person.create_dm(), person)
    except ChatError as error:
        raise Refused("Discord doesn't let me write to you in a direct message") from error


async def _meant(call: Call, name: str) -> Sequence[object]:
    """The channels that a text may mean, readable or not. By its name only those that the client knows."""
    if not name:
        return [call.channel]
    if found := _ID.fullmatch(name):
        known = call.client.get_channel(int(found[1] or found[2]))
        if known is not None or call.client.elsewhere.knows_all:
            return [known]
        try:
            return [await channel_of(call.client, found[1] or found[2])]
        except (ChatError, discord.InvalidData):
            return []
    wanted = name.removeprefix("#").casefold()
    guild = call.source.guild
    return [
        channel
        for one in ([guild] if guild is not None else call.client.guilds)
        for channel in (*one.channels, *one.threads)
        if channel.name.casefold() == wanted
    ]


async def _as_read(call: Call, channel: object) -> Somewhere | None:
    """A channel with the person as a member of its server; None unless both we and they can read it."""
    if not isinstance(channel, discord.abc.GuildChannel | discord.Thread):
        return None
    if not isinstance(channel, discord.abc.Messageable) or not call.client.listens(channel):
        return None
    # Discord sends the roles along with a command.
    here = isinstance(call.author, discord.Member) and call.author.guild == channel.guild
    try:
        person = call.author if here else await member_of(channel.guild, call.author.id)
        if not isinstance(person, discord.Member) or not await can_read(channel, person):
            return None
    except ChatError:
        return None
    # Of a server that Discord was asked for, we aren't told who we are there; but it let us read the channel.
    me: discord.Member | None = channel.guild.me
    ours = me is None or channel.permissions_for(me).view_channel
    return Somewhere(cast("wire.Channel", channel), person) if ours else None


# ---------------------------------------------------------------------- what it says


def _parts(made: Preview, facts: Facts, line: Callable[[Item], str]) -> list[str]:
    """Everything, a text for each part; `line` is how a memory is shown."""
    ready, prompt, left_out = made.ready, made.ready.prompt, dict(facts.left_out)
    lines = [f"{line(one.item)}{_why(made, one)}" for one in made.used]
    if made.crowded:
        lines.append("(Some of these leave if what fits your message needs the room.)")
    parts = [_group("From your memory" if made.asked else "Always", lines, len(made.used))]
    if fitting := left_out.pop(previews.FITS, []):
        parts.append(_group(WHY[previews.FITS], map(line, fitting), len(fitting)))
    if prompt.rolling:
        parts.append(f"**{SUMMARY}**\n{prompt.rolling}")
    else:
        none = "switched off" if "summaries" in facts.off else "none yet"
        parts.append(f"**{SUMMARY}**: {'no room' if ready.gathered.summary else none}")
    recent = [f"- {words(one.text, LONGEST_LINE)}" for one in prompt.lines]
    older = len(ready.window) - prompt.shown
    recent += [f"({count(older, 'older one')}: no room)"] if older else []
    parts.append(_group("Recent messages", recent, len(prompt.lines)))
    # Files are named only: nothing is read for a preview.
    if files := [f"- {words(one.label)}: {said(one.name)}, {words(one.whence)}" for one in prompt.files]:
        parts.append(_group("Files", files, len(files)))
    if prompt.group:
        notes = [f"> {words(one)}" for one in prompt.group.splitlines()]
        cut = prompt.group != notes_about(made.turn.place, ready.gathered.group)
        parts.append(
            "\n".join(["**Notes about the channel**", *notes, *(["(shortened: no room)"] if cut else [])])
        )
    if (whole := prompt.whole) is not None:  # the model there reads little at once
        lost = [
            (whole.shown > prompt.shown, count(whole.shown - prompt.shown, "older message")),
            (whole.group != prompt.group, "a part of the notes about the channel"),
            (whole.rolling != prompt.rolling, "a part of the summary" if prompt.rolling else "the summary"),
            (whole.durable > prompt.durable, count(whole.durable - prompt.durable, "memory")),
        ]
        if without := [f"- {what}" for is_lost, what in lost if is_lost]:
            head = f"**Left out because the model here reads {prompt.reads:,} tokens at once**"
            parts.append("\n".join([head, *without]))
    return [*parts, _person(made), *_left_out(left_out, facts, line)]


def _person(made: Preview) -> str:
    """The section about the person, and what is there for everybody."""
    _, *sender = made.ready.prompt.sender.splitlines()
    lines = ["**About you**", *map(plain, sender)]
    soul = made.ready.gathered.who.soul
    if soul.user:
        lines.append(f"- what my personality says about you: {words(soul.user)}")
    base, own = made.ready.gathered.texts
    besides = ["my rules", *(["my personality"] if soul else [])]
    besides += ["who my owners are"] if made.ready.gathered.owners else []
    files = len(base) + len(own)
    besides += [f"{count(files, 'text')} by whoever runs me"] if files else []
    # The empty line ends the list: without it the next line would be a part of the last row.
    return "\n".join([*lines, "", f"Everybody also gets there: {', '.join(besides)}."])


def _left_out(
    left_out: Mapping[str, Sequence[Item]], facts: Facts, line: Callable[[Item], str]
) -> Iterator[str]:
    groups = [f"{WHY[why]} ({len(those)})\n" + "\n".join(map(line, those)) for why, those in left_out.items()]
    lines = [
        f"- {count(number, 'memory')} that only your persona {name(one)} has"
        for one, number in facts.elsewhere.items()
        if number
    ]
    groups += ["\n".join(["Other personas", *lines])] if lines else []
    parts = ["**Left out**", *groups] if groups else []
    if facts.tools:
        also = ", and the earlier messages of this conversation" if facts.archive else ""
        parts.append(
            "(The model can also search what I remember about you by itself, without what is private or "
            f"confidential above{also}.)"
        )
    if parts:
        yield "\n".join(parts)


def _counted(made: Preview, facts: Facts) -> str:
    """Numbers only, where others read the answer."""
    fitting = len(facts.left_out.get(previews.FITS, ()))
    found = [count(len(made.used), "memory")]
    found += [f"{count(fitting, 'memory')} when they fit what you write"] if fitting else []
    found += ["a summary of the conversation"] if made.ready.gathered.summary else []
    found += [count(made.ready.prompt.shown, "recent message")]
    found += [count(number, kind) for kind, number in made.ready.attached.kinds.items()]
    found += ["notes about the channel"] if made.ready.gathered.group and made.ready.prompt.group else []
    left = sum(len(those) for why, those in facts.left_out.items() if why != previews.FITS)
    lines = [*_warnings(facts), f"Here I would use: {', '.join(found)}."]
    lines += [f"{count(left, 'memory')} would be left out."] if left else []
    return "\n".join([*lines, "Only you may see which: use `/memory preview` here, or ask me in a DM."])


def _warnings(facts: Facts) -> list[str]:
    found = [SILENT] if not facts.answers else []
    if "memory" in facts.off:
        found.append(f"I use nothing I remember: {OFF['memory']}.")
    return found


def _why(made: Preview, one: Chosen) -> str:
    """Why a memory is chosen for a message; without a message there is one reason, which is the heading."""
    ended = f"; until {date_of(one.until)[:7]}" if one.until is not None else ""
    if not made.asked:
        return ended
    if one.hit is not None:
        return f"; for {plain(for_people(one.why))}{ended}"
    return f"; {ALWAYS[one.always]}{ended}"


def _group(title: str, lines: Iterable[str], number: int) -> str:
    return "\n".join([f"**{title}** ({number})", *lines])

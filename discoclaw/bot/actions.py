"""Does in Discord what people ask for, and takes it back: the port `Hands`, and the button *Undo*.

Whether it may be done is asked at that moment: of the person as Discord knows them now, in that very channel,
and then of us. A channel that they can't see doesn't exist for them. Nobody is pinged but a role that they
named and may mention. What a button undoes stands in its custom id, so it outlives a restart; it is for the
asker and for those who may moderate what was made. Knows nothing about models, and whether somebody asked.
"""

import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias, cast

import discord

from discoclaw.bot import wire
from discoclaw.bot.layout import SILENT, send_either
from discoclaw.bot.pressed import USER, Controls, Pressed
from discoclaw.bot.proposals import beside
from discoclaw.bot.wire import channel_of, discord_errors, member_of
from discoclaw.bot.words import names_of, resolved, text_of, texts_shown
from discoclaw.core.actions import TITLES, Act, Kind, Typed, check_named, is_linked
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, ChatUnavailable, Refused
from discoclaw.core.message import Inbound, Me
from discoclaw.core.own_words import split_added, words_in
from discoclaw.core.text import clip
from discoclaw.show.answer import Button
from discoclaw.show.markup import NOTE, said, words

log = logging.getLogger(__name__)

NEEDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "poll": ("view_channel", "send_messages", "send_polls"),
    "thread": ("view_channel", "send_messages", "create_public_threads"),
    "event": ("create_events",),
    "reaction": ("view_channel", "read_message_history", "add_reactions"),
    "pin": ("view_channel", "read_message_history", "pin_messages"),
    "message": ("view_channel", "send_messages"),
    "mention": ("view_channel", "send_messages"),
}
"""The permissions that the asker needs, and we too; in a thread, those of a thread."""
MODERATES: Final[Mapping[Kind, str]] = {
    **dict.fromkeys(NEEDS, "manage_messages"),
    "thread": "manage_threads",
    "event": "manage_events",
}
"""The permission of others by which they may undo it."""
GONE = "I can't find it any more: it was deleted since"
NO_CHANNEL = "there is no channel of that name that they can see"
MARKUP: Final = re.compile(r"<(?:@[!&]?|#|a?:\w{1,32}:|t:|/[^:<>]{1,100}:|id:)[^<>]{0,60}>")
_LINKED: Final = re.compile(r"<(?:@&|#)(\d{15,20})>")
_ENTRIES: Final = 50
"""How many messages of a thread are looked at, to see whether others wrote in it."""

Text: TypeAlias = discord.TextChannel | discord.Thread | discord.VoiceChannel | discord.StageChannel
"""A channel of a server in which messages are."""


class DiscordHands:
    """Does it with `client`."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client

    async def typed(self, message: Inbound) -> Sequence[Typed]:
        """What its author typed as this message, read from Discord anew; nothing of it was spoken."""
        channel = await channel_of(self._client, message.place.channel_id)
        assert self._client.user is not None
        me, found = Me(str(self._client.user.id), self._client.user.display_name), list[Typed]()
        for message_id in message.asks:
            with discord_errors():
                one = await channel.fetch_message(int(message_id))
            if wire.is_talk(one) and not wire.is_webhook(one) and str(one.author.id) == message.author.id:
                links = dict[str, str]()
                text, names = one.content, names_of(one)
                for link in set(MARKUP.findall(text)):
                    number = _LINKED.fullmatch(link)
                    links[shown := resolved(link, names)] = number[1] if number is not None else ""
                    text = text.replace(link, f" {links[shown]} ")
                found.append(Typed(text, split_added(text_of(one, me))[0], links))
        return found

    async def act(self, act: Act, message: Inbound, typed: Sequence[Typed]) -> str:
        """Do it, and show a line with *Undo* where it was asked for."""
        channel = await channel_of(self._client, message.place.channel_id)
        asked = discord.PartialMessage(channel=channel, id=int(message.asks[-1]))
        if message.quoted is not None and act.kind in ("reaction", "pin"):
            asked = discord.PartialMessage(channel=channel, id=int(message.quoted.id))
        asker = await _asker(channel, message)
        if act.kind in ("message", "mention"):
            done, made = await self._say(act, message, typed, cast(Text, channel), asker)
        else:
            _require(act.kind, channel, asker)
            with discord_errors():
                done, made = await _DO[act.kind](act, asked)
        undo = Button(f"act:{message.author.id}:{act.kind}:{made}", "Undo")
        try:
            card = beside(f"{NOTE}<@{message.author.id}> asked for {done}", undo)
            await send_either(channel.send, card, silent=True)
        except ChatError as error:
            log.warning("%s was done, but its Undo could not be shown: %s", act.kind, error)
        return done

    async def _say(
        self,
        act: Act,
        message: Inbound,
        typed: Sequence[Typed],
        here: Text,
        asker: discord.Member | None,
    ) -> tuple[str, str]:
        """Post somebody's words in another channel, or with a role's mention. Says who asked, and where."""
        assert asker is not None  # there are no other channels in a DM
        there = await _channel_named(act.channel, asker, typed) if act.channel else here
        _require(act.kind, there, asker)
        if there.slowmode_delay and there.id != here.id:
            may = there.permissions_for(asker)
            if not (may.bypass_slowmode or may.manage_messages or may.manage_channels):
                raise Refused("slow mode is on there, so they have to write there themselves")
        mentions, text = SILENT, act.text
        if act.kind == "mention":
            role = _role_named(act.role, asker.guild, typed)
            for who in (asker, asker.guild.me):
                if not (role.mentionable or there.permissions_for(who).mention_everyone):
                    whose = "they" if who is asker else "I"
                    raise Refused(f"{whose} may not mention that role there")
            text = f"{role.mention} {text}"
            mentions = discord.AllowedMentions(everyone=False, users=False, roles=[role], replied_user=False)
        link = discord.PartialMessage(channel=here, id=int(message.asks[-1])).jump_url
        # The note comes first: what begins with one is no talk of ours, and these are not our words.
        text = f"{NOTE}<@{asker.id}> asked me to post this: {link}\n{clip(text, 1800)}"
        with discord_errors():
            nonce = secrets.randbits(63)  # so that a repeated request posts nothing twice
            sent = await there.send(text, nonce=nonce, allowed_mentions=mentions, suppress_embeds=True)
        what = f"a mention of {words(act.role, 100)}" if act.kind == "mention" else "a message"
        return f"{what} in {there.mention}: {said(act.text, 80)}", f"{there.id}:{sent.id}"


# ---------------------------------------------------------------------- who may, and where


async def _asker(channel: "wire.Channel", message: Inbound) -> discord.Member | None:
    """The person who asks, as Discord knows them now; None in a DM. Raises Refused for anybody else."""
    guild = getattr(channel, "guild", None)
    if guild is None:
        if message.place.kind != "dm":
            raise Refused("I don't know that server")
        return None
    asker = await member_of(guild, int(message.author.id))
    if asker is None or asker.bot or asker.pending:
        raise Refused("they are no member of this server who may write")
    if isinstance(channel, discord.Thread) and not await wire.can_read(channel, asker):
        raise Refused(NO_CHANNEL)
    return asker


def _require(kind: Kind, channel: "wire.Channel", asker: discord.Member | None) -> None:
    """Raise Refused unless the asker, and then we, may do this in a channel now."""
    if asker is None:
        return  # in a DM both may react and pin
    for who, lacks in ((asker, "they lack"), (asker.guild.me, "I lack")):
        may, needs = cast(Text, channel).permissions_for(who), NEEDS[kind]
        if kind == "event":
            may = who.guild_permissions
            may.create_events = may.create_events or may.manage_events
        if isinstance(channel, discord.Thread):
            needs = tuple("send_messages_in_threads" if one == "send_messages" else one for one in needs)
            if (channel.locked or (channel.archived and kind == "reaction")) and not may.manage_threads:
                raise Refused("that thread is closed")
        missing = [one for one in needs if not getattr(may, one)]
        if missing:
            named = missing[0].replace("_", " ")
            raise Refused(f"{lacks} the permission “{named}” there, so there is no {TITLES[kind][2:]}")


async def _channel_named(name: str, asker: discord.Member, typed: Sequence[Typed]) -> Text:
    """The one channel that somebody names and can see. Raises Refused."""
    wanted = words_in(name)
    found = list[Text]()
    for one in (*asker.guild.channels, *asker.guild.threads):
        if isinstance(one, Text) and wanted and words_in(one.name) == wanted:
            found += [one] if await wire.can_read(one, asker) else []
    linked = [one for one in found if is_linked(str(one.id), typed)]
    if len(linked or found) != 1:
        raise Refused("several channels have that name; they have to link it" if found else NO_CHANNEL)
    (channel,) = linked or found
    check_named("#", channel.name, str(channel.id), typed)
    return channel


def _role_named(name: str, guild: discord.Guild, typed: Sequence[Typed]) -> discord.Role:
    """The one role that somebody names; never everybody. Raises Refused."""
    wanted = words_in(name)
    found = [one for one in guild.roles if wanted and words_in(one.name) == wanted and not one.is_default()]
    linked = [one for one in found if is_linked(str(one.id), typed)]
    if len(linked or found) != 1:
        raise Refused("several roles have that name" if found else "there is no role of that name")
    (role,) = linked or found
    check_named("@", role.name, str(role.id), typed)
    return role


# ---------------------------------------------------------------------- doing it: what was done, and its ids

Done: TypeAlias = tuple[str, str]


async def _poll(act: Act, asked: discord.PartialMessage) -> Done:
    poll = discord.Poll(act.text, timedelta(hours=act.hours), multiple=act.several)
    for one in act.options:
        poll.add_answer(text=one)
    sent = await asked.channel.send(poll=poll, nonce=secrets.randbits(63), allowed_mentions=SILENT)
    return f"a poll: {said(act.text, 80)}", f"{sent.channel.id}:{sent.id}"


async def _thread(act: Act, asked: discord.PartialMessage) -> Done:
    if not isinstance(asked.channel, discord.TextChannel):
        raise Refused("there are no threads in a channel of this kind")
    thread = await asked.create_thread(name=act.text)
    return f"a thread: {thread.mention}", f"{asked.channel.id}:{thread.id}"


async def _event(act: Act, asked: discord.PartialMessage) -> Done:
    guild, start = asked.guild, datetime.fromisoformat(act.start)
    here = cast(wire.GuildPlace, asked.channel)
    assert guild is not None
    for one in await guild.fetch_scheduled_events():
        if one.name == act.text and one.start_time == start:
            raise Refused("there is such an event already")
    event = await guild.create_scheduled_event(
        name=act.text,
        start_time=start,
        end_time=start + timedelta(minutes=act.minutes),
        entity_type=discord.EntityType.external,
        privacy_level=discord.PrivacyLevel.guild_only,
        # Everybody on the server sees it, but not the names of all channels.
        location=act.location or (f"#{asked.channel}" if wire.open_to(here) == "all" else guild.name),
    )
    return f"an event: {said(act.text, 80)}, <t:{int(start.timestamp())}:F>", f"{guild.id}:{event.id}"


async def _reaction(act: Act, asked: discord.PartialMessage) -> Done:
    name = act.text.strip().strip(":")
    own = discord.utils.get(asked.guild.emojis, name=name) if asked.guild is not None else None
    emoji: Any = own or act.text.strip()
    if own is None and (name.isascii() or len(name) > 16):
        raise Refused("there is no such emoji on this server")
    message = await asked.fetch()
    if any(one.me and str(one.emoji) == str(emoji) for one in message.reactions):
        raise Refused("I have reacted with that already")
    await message.add_reaction(emoji)
    return f"a reaction: {emoji}", f"{asked.channel.id}:{asked.id}:{own.id if own is not None else emoji}"


async def _pin(act: Act, asked: discord.PartialMessage) -> Done:
    message = await asked.fetch()
    if message.pinned:
        raise Refused("it is pinned already")
    await message.pin()
    return f"a pin: {message.jump_url}", f"{asked.channel.id}:{asked.id}"


_DO: Final[Mapping[Kind, Callable[..., Awaitable[Done]]]] = {
    "poll": _poll,
    "thread": _thread,
    "event": _event,
    "reaction": _reaction,
    "pin": _pin,
}

# ---------------------------------------------------------------------- taking it back

CONTROLS = Controls()
"""The client takes presses of these."""


@CONTROLS.on(
    rf"act:{USER}:(?P<kind>[a-z]+):(?P<place>\d{{1,20}}):(?P<id>\d{{1,20}})(?::(?P<emoji>.{{1,40}}))?",
    needs=(),
    anybody=True,
)
async def undo(at: Pressed) -> str:
    """Take back what was done, for its asker and for moderators."""
    kind, client, press = cast(Kind, at.known["kind"]), at.press.client, at.press
    place_id, made = int(at.known["place"]), int(at.known["id"])
    channel: Any = None
    if kind == "event":
        guild = client.get_guild(place_id)
        if guild is None:
            raise Refused(GONE)
    else:
        channel = await _found(channel_of(client, str(place_id)))
        guild = getattr(channel, "guild", None)
    if at.user_id != at.known["user"]:
        member = await _found(member_of(guild, press.user.id)) if guild is not None else None
        may = discord.Permissions.none()
        if member is not None:
            may = member.guild_permissions if kind == "event" else channel.permissions_for(member)
        if not getattr(may, MODERATES[kind]):
            raise Refused("only whoever asked for it, and moderators, can undo it")
    if kind == "event":
        event = await _found(guild.fetch_scheduled_event(made))
        await _found(event.delete())
        return _undone(at, "the event is deleted")
    message = discord.PartialMessage(channel=channel, id=made)
    if kind == "thread":
        done = await _found(_close(await _found(channel_of(client, str(made)))))
    elif kind == "pin":
        await _found(message.unpin())
        done = "it is no longer pinned"
    elif kind == "reaction":
        emoji: Any = at.known["emoji"] or ""
        if emoji.isdigit():
            emoji = client.get_emoji(int(emoji)) or discord.PartialEmoji(name="_", id=int(emoji))
        await _found(message.remove_reaction(emoji, client.user))
        done = "the reaction is removed"
    else:
        await _found(message.delete())
        done = "the poll is deleted" if kind == "poll" else "the message is deleted"
    return _undone(at, done)


def _undone(at: Pressed, done: str) -> str:
    """What the line says then, below what it said."""
    return f"{texts_shown(at.message).strip()}\n{NOTE}undone by <@{at.user_id}>: {done}"


async def _close(thread: discord.Thread) -> str:
    """Delete a thread that has nobody else's words in it; archive any other."""
    written = [one async for one in thread.history(limit=_ENTRIES) if wire.is_talk(one)]
    if all(one.author.id == thread.guild.me.id for one in written) and len(written) < _ENTRIES:
        try:
            await thread.delete()
            return "the thread is deleted"
        except discord.Forbidden:
            log.info("the thread %s can't be deleted, so it is archived", thread.id)
    await thread.edit(archived=True)
    return "the thread is archived; it may have others' words in it, or I may not delete it"


async def _found(call: Awaitable[Any]) -> Any:
    """What a call gives. Raises Refused if Discord does not do it."""
    try:
        with discord_errors():
            return await call
    except ChatGone:
        raise Refused(GONE) from None
    except ChatForbidden:
        raise Refused("Discord doesn't let me undo it: I lack the right now") from None
    except ChatUnavailable:
        raise Refused("Discord doesn't answer me right now; please try again in a moment") from None

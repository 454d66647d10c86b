"""Discord becomes values: who said what, and where. Secrets are redacted here, first.

What a message says is read by `words`. Knows discord.py and core's values; decides nothing.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast

import aiohttp
import discord

from discoclaw.bot.words import TALK, text_of
from discoclaw.core.errors import ChatBlocked, ChatError, ChatForbidden, ChatGone, ChatUnavailable
from discoclaw.core.message import Author, FileRef, Inbound, Me, Place, Said, with_attachments
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.text import scrub
from discoclaw.show.words import quoted

if TYPE_CHECKING:
    Channel: TypeAlias = discord.abc.MessageableChannel


TEXT_ROOTS = ("memory", "remind", "hatch", "nostr")
"""First words of text commands, behind `!`. An interview also begins with `/hatch` or `/start` as text."""
COMMAND = re.compile(rf"(?:!(?:{'|'.join(TEXT_ROOTS)})|/(?:hatch|start))(\s|$)", re.IGNORECASE)
UNKNOWN = "unknown"
"""The name of a place that we can't see."""


def is_talk(message: discord.Message) -> bool:
    """Whether a person (or bot) said something, as opposed to Discord noting a pin, a join and the like.

    A malformed message has no text: it says nothing, and must not cost the others of its event.
    """
    return message.type in TALK and isinstance(message.content, str)


def is_webhook(message: discord.Message) -> bool:
    """Whether a webhook wrote it. Whoever has its address chooses its name: it is nobody's voice."""
    return message.webhook_id is not None


def is_command(text: str) -> bool:
    """Whether a message is one of our text commands."""
    return COMMAND.match(text) is not None


def is_voice(message: discord.Message) -> bool:
    """Whether it is a voice message. Such a message has a recording, and no text. A malformed one is none."""
    known = isinstance(message.flags.value, int)
    return known and message.flags.voice and any(file.is_voice_message() for file in message.attachments)


def place_of(channel: "Channel", redactor: Redactor = PLAIN) -> Place:
    """The place of a channel: who owns its memory, and whether everybody on the server can read it.

    Who needs no more than its ids need not say what is known of keys.
    """

    def named(text: str | None) -> str:
        return redactor.clean(scrub(text or ""))

    if isinstance(channel, discord.Thread):
        parent = channel.parent
        return Place(
            kind="thread",
            channel_id=str(channel.id),
            group_id=str(channel.parent_id),
            name=named(channel.name),
            private=(reach := open_to(channel)) != "all",
            mostly_open=reach == "most",
            group_name=named(parent.name) if parent is not None else "",
            topic=named(getattr(parent, "topic", None)),
            tags=tuple(named(one.name) for one in channel.applied_tags),
            guild_id=str(channel.guild.id),
            closed=channel.is_private(),
        )
    if isinstance(channel, discord.abc.GuildChannel):
        return Place(
            kind="channel",
            channel_id=str(channel.id),
            group_id=str(channel.id),
            name=named(channel.name),
            private=(reach := open_to(channel)) != "all",
            mostly_open=reach == "most",
            # By its name a channel has its context file, and others choose the names on their servers.
            group_name=named(channel.name) if knows(channel.guild) else "",
            topic=named(getattr(channel, "topic", None)),
            guild_id=str(channel.guild.id),
        )
    guild_id = getattr(channel, "guild_id", None) or getattr(getattr(channel, "guild", None), "id", None)
    if guild_id is not None:
        return unknown_place(channel.id, guild_id)
    return Place(kind="dm", channel_id=str(channel.id), group_id=None, name="direct message", private=True)


def unknown_place(channel_id: int, guild_id: int | None) -> Place:
    """A channel that discord.py doesn't know (yet), or that we aren't in: who reads it can't be told."""
    own = str(channel_id)
    guild = str(guild_id) if guild_id is not None else None
    return Place("channel", own, own, name=UNKNOWN, private=True, guild_id=guild)


async def channel_of(client: discord.Client, channel_id: str) -> "Channel":
    """A channel in which messages are, asked for if it is not known. Raises ChatError."""
    with discord_errors():
        channel: object = client.get_channel(int(channel_id)) or await client.fetch_channel(int(channel_id))
        guild = getattr(channel, "guild", None)
        if guild is not None and client.get_guild(guild.id) is None:
            # It is on another process's shard. Who may read it, only the server's roles can tell.
            whole = await client.fetch_guild(guild.id, with_counts=False)
            channel = await whole.fetch_channel(int(channel_id))
            if isinstance(channel, discord.Thread):  # which has the permissions of its parent
                parent = await whole.fetch_channel(channel.parent_id)
                whole._add_channel(cast("discord.TextChannel | discord.ForumChannel", parent))
    if not isinstance(channel, discord.abc.Messageable):
        raise ChatGone(f"{channel_id} holds no messages")
    return cast("Channel", channel)


def session_key(message: discord.Message) -> str:
    """The conversation a message belongs to, ours included: a DM is its person's, whoever speaks."""
    person = getattr(message.channel, "recipient", None) or message.author
    return place_of(message.channel).session_key(str(person.id))


def author_id(message: discord.Message) -> str:
    """The id of the words' author. A webhook's are the webhook's, whatever author its message names."""
    return str(message.author.id if message.webhook_id is None else message.webhook_id)


def inbound(
    message: discord.Message,
    me: discord.ClientUser,
    place: Place,
    *,
    owners: frozenset[str],
    may_talk: bool,
    redactor: Redactor = PLAIN,
) -> Inbound:
    """A message as the rooms inside know it."""
    whose = author_id(message)
    ours = Me(str(me.id), me.display_name)
    original = message.reference.resolved if message.reference is not None else None
    quoted = None
    if message.type is discord.MessageType.reply and isinstance(original, discord.Message):
        quoted = said(original, ours, owners=owners, guest=False, redactor=redactor)
    return Inbound(
        id=str(message.id),
        author=Author(
            id=whose,
            name=redactor.clean(scrub(message.author.display_name)),
            is_owner=whose in owners,
            allowed=may_talk and not is_webhook(message),
        ),
        place=place,
        session_key=place.session_key(whose),
        text=text_of(message, ours, redactor),
        sent_at=_ms(message),
        mentions_us=place.kind == "dm" or _mentions(message, me) or (quoted is not None and quoted.by_us),
        quoted=quoted,
        attachments=_attached(message, redactor),
        files=files_of(message, redactor),
    )


def supposed(
    text: str,
    person: discord.User | discord.Member,
    channel: "Channel",
    *,
    message_id: int,
    sent_at: int,
    owners: frozenset[str],
    redactor: Redactor = PLAIN,
) -> Inbound:
    """A message that somebody who may talk to us could write in a channel, and hasn't."""
    place, whose = place_of(channel, redactor), str(person.id)
    name = redactor.clean(scrub(person.display_name))
    return Inbound(
        id=str(message_id),
        author=Author(whose, name, is_owner=whose in owners),
        place=place,
        session_key=place.session_key(whose),
        text=redactor.clean(scrub(text)),
        sent_at=sent_at,
        mentions_us=True,
    )


def said(
    message: discord.Message,
    me: Me,
    *,
    owners: frozenset[str],
    guest: bool,
    redactor: Redactor = PLAIN,
    words: str = "",
) -> Said:
    """A message of the past as a line of the window. `words`: what was spoken, if it is a voice message."""
    whose, asked = author_id(message), message.reference
    by_us = whose == me.id
    original = asked.resolved if asked is not None else None
    answered = str(original.author.id) if isinstance(original, discord.Message) else ""
    return Said(
        id=str(message.id),
        author_id=whose,
        name=me.name if by_us else redactor.clean(scrub(message.author.display_name)),
        text=with_attachments(words or text_of(message, me, redactor), _attached(message, redactor)),
        sent_at=_ms(message),
        is_owner=whose in owners,
        by_us=by_us,
        guest=(guest or is_webhook(message)) and not by_us,
        to_id=answered if by_us else "",
        of=(str(asked.message_id),) if by_us and asked is not None and asked.message_id else (),
        of_gone=asked is not None and isinstance(asked.resolved, discord.DeletedReferencedMessage),
        edited_at=int(message.edited_at.timestamp() * 1000) if message.edited_at and not by_us else 0,
        files=files_of(message, redactor),
        channel_id=str(message.channel.id),
    )


def _attached(message: discord.Message, redactor: Redactor) -> tuple[str, ...]:
    """The files that came with a message, in a few words each; the contents are not read."""
    return tuple(redactor.clean(scrub(file_note(one))) for one in attachments(message))


def file_note(file: discord.Attachment) -> str:
    """A file in a few words, which stand in the talk. Its name is as its sender chose it."""
    if file.is_voice_message():
        return f"voice message, {max(1, round(file.duration or 0))} s"
    kind = (file.content_type or "file").split(";")[0]
    about = f", described as {quoted(file.description, 1_024)}" if file.description else ""
    return f"{file.filename}, {kind}, {max(1, file.size // 1024)} kB{about}"


def attachments(message: discord.Message) -> list[discord.Attachment]:
    """The attachments of a message, and of those that it forwards."""
    return [*message.attachments, *(file for one in message.message_snapshots for file in one.attachments)]


def files_of(message: discord.Message, redactor: Redactor = PLAIN) -> tuple[FileRef, ...]:
    """The files that came with a message, as they are named before they are read."""
    whose, channel_id = author_id(message), message.channel.id
    return tuple(
        file_of(file, message.id, whose, channel_id, redactor=redactor) for file in attachments(message)
    )


def file_of(
    file: discord.Attachment, message_id: int, whose: str, channel_id: int, *, redactor: Redactor = PLAIN
) -> FileRef:
    """A file that came with a message, or with the command that `message_id` then stands for."""
    return FileRef(
        id=str(file.id),
        message_id=str(message_id),
        author_id=whose,
        name=redactor.clean(scrub(file.filename)),
        size=file.size,
        type=file.content_type or "",
        url=file.url,
        voice=file.is_voice_message(),
        channel_id=str(channel_id),
    )


def _ms(message: discord.Message) -> int:
    return int(message.created_at.timestamp() * 1000)


def _mentions(message: discord.Message, me: discord.ClientUser) -> bool:
    ours = message.guild.self_role if message.guild is not None else None
    return any(user.id == me.id for user in message.mentions) or (
        ours is not None and any(role.id == ours.id for role in message.role_mentions)
    )


# ----------------------------------------------------------------------
# Who reads which channel: the one place that adds up Discord's roles, overwrites and threads.

GuildPlace = discord.abc.GuildChannel | discord.Thread
_VIEW: Final = discord.Permissions(view_channel=True).value
_CONNECT: Final = discord.Permissions(connect=True).value
_ADMINISTRATOR: Final = discord.Permissions(administrator=True).value
_PAST: Final = discord.Permissions(read_message_history=True).value


class _Overwrite(NamedTuple):
    allow: int
    deny: int
    person: bool


async def member_of(guild: discord.Guild, user_id: int) -> discord.Member | None:
    """A person with the roles they have on a server now; None if they aren't a member. Raises ChatError."""
    try:
        with discord_errors():
            return await guild.fetch_member(user_id)
    except ChatGone:
        return None


def may_read(channel: discord.abc.GuildChannel, person: discord.Member) -> bool:
    """Whether somebody can see a channel and read its past."""
    needed = _needed(channel) | _PAST
    return channel.permissions_for(person).value & needed == needed


async def can_read(channel: GuildPlace, person: discord.Member) -> bool:
    """Whether somebody can read a channel or thread, and its past. Raises ChatError."""
    if not isinstance(channel, discord.Thread):
        return may_read(channel, person)
    if channel.parent is None or not may_read(channel.parent, person):
        return False
    if not channel.is_private() or channel.permissions_for(person).manage_threads:
        return True
    try:
        with discord_errors():
            await channel.fetch_member(person.id)  # Discord does not tell us when somebody leaves
    except ChatGone:
        return False
    return True


def open_to(channel: GuildPlace) -> Literal["all", "most", "few"]:
    """Whether everybody on its server sees what is said in a channel.

    "most": all but those whom an overwrite denies, if they are on the server at all.
    """
    gate = _parent(channel)
    if gate is None or _is_closed(channel) or not knows(channel.guild):
        return "few"
    needed = _needed(gate)
    if _of_everybody(gate) & needed != needed:
        return "few"
    return "most" if any(one.deny for one in _overwrites(gate, needed).values()) else "all"


def all_read(here: GuildPlace, there: GuildPlace) -> bool:
    """Whether everybody who sees what is said in one channel can read the other, and its past.

    Those who read a channel are taken for able to read what was said in it before.
    """
    ours, theirs = _parent(here), _parent(there)
    if here.id == there.id or _is_closed(there) or ours is None or theirs is None:
        return here.id == there.id
    if ours.id == theirs.id or ours.guild.id != theirs.guild.id or not knows(ours.guild):
        return ours.id == theirs.id
    needed = _needed(theirs) | _PAST
    return all(_granted(bit, ours, theirs) for bit in (_VIEW, _CONNECT, _PAST) if bit & needed)


def _granted(bit: int, here: discord.abc.GuildChannel, there: discord.abc.GuildChannel) -> bool:
    """Whether everybody who sees what is said here has a permission there."""
    needed, everybody = _needed(here), _of_everybody(there) & bit
    theirs = _overwrites(there, bit)
    out = {key for key, one in _overwrites(here, needed).items() if one.person and one.deny}
    if everybody and out.issuperset(key for key, one in theirs.items() if one.deny):
        return True  # everybody has it but people who don't see this
    if not bit & needed:
        return False
    # Each allow gives it to more people, each deny to fewer: it is enough if there is as open at each step.
    ours, none = _overwrites(here, bit), _Overwrite(0, 0, person=False)
    return all(
        a.allow <= b.allow and b.deny <= a.deny
        for key in ours.keys() | theirs.keys()
        if not (everybody and key == there.guild.id)
        for a, b in [(ours.get(key, none), theirs.get(key, none))]
    )


def knows(guild: discord.Guild) -> bool:
    """Whether we are in a server. Of another one Discord tells no roles, whatever types say."""
    everybody: discord.Role | None = guild.default_role
    return everybody is not None


def _parent(channel: GuildPlace) -> discord.abc.GuildChannel | None:
    """The channel outside of which nobody reads this one: of a thread its parent, if that is known."""
    return channel.parent if isinstance(channel, discord.Thread) else channel


def _is_closed(channel: GuildPlace) -> bool:
    return isinstance(channel, discord.Thread) and channel.is_private()


def _needed(channel: discord.abc.GuildChannel) -> int:
    """The permissions that seeing what is said takes.

    The talk of a voice channel is for those who may connect to it, though others see that it is there.
    """
    connects = isinstance(channel, discord.VoiceChannel | discord.StageChannel)
    return _VIEW | (_CONNECT if connects else 0)


def _of_everybody(channel: discord.abc.GuildChannel) -> int:
    """The permissions that everybody has in a channel whom no overwrite of their own denies any."""
    base, everybody = channel.guild.default_role.permissions.value, channel.guild.id
    for one in channel._overwrites:
        if one.id == everybody and not base & _ADMINISTRATOR:
            return base & ~one.deny | one.allow
    return -1 if base & _ADMINISTRATOR else base


def _overwrites(channel: discord.abc.GuildChannel, of: int) -> dict[int, _Overwrite]:
    """A channel's overwrites of some permissions, by the id of the role or person.

    `channel.overwrites` takes 60 µs for each, and this is asked several times for a message.
    """
    return {
        one.id: _Overwrite(one.allow & of, one.deny & ~one.allow & of, one.is_member())
        for one in channel._overwrites
        if (one.allow | one.deny) & of and not _is_void(channel.guild, one.id)
    }


def _is_void(guild: discord.Guild, who: int) -> bool:
    """Whether an overwrite is for nobody whom it could deny anything, or only for bots."""
    role = guild.get_role(who)
    rights = guild.default_role.permissions.value | (role.permissions.value if role is not None else 0)
    ours = role.is_bot_managed() if role is not None else who in (guild.owner_id, guild._state.self_id)
    return ours or bool(rights & _ADMINISTRATOR)


# ----------------------------------------------------------------------
# Discord's failures become the core's `ChatError`s, here and nowhere else in the bot.

MODERATED = frozenset({200_000, 200_001, 240_000})
"""Discord's codes for words that AutoMod, or its filter of harmful links, blocked."""
MOST_SAID = 300
"""The longest reason that is passed on: a proxy before Discord answers with a page."""
Vendor = discord.HTTPException | discord.RateLimited | aiohttp.ClientError | OSError


@contextmanager
def discord_errors() -> Iterator[None]:
    """Around calls of discord.py and nothing else: an `OSError` in here is taken for a lost connection."""
    try:
        yield
    except (discord.HTTPException, discord.RateLimited, aiohttp.ClientError, OSError) as error:
        raise chat_error(error) from error
    except AttributeError as error:
        if error.obj is not discord.utils.MISSING:  # discord.py's session, until it logs in
            raise
        raise ChatUnavailable("Discord is not connected yet") from error


def chat_error(error: Vendor) -> ChatError:
    """Our error for one of discord.py. A plain `ChatError`: Discord refused the content."""
    if isinstance(error, discord.RateLimited):
        wait_s = error.retry_after
        return ChatUnavailable(f"Discord limits us for another {wait_s:.0f} s", after_s=wait_s)
    if not isinstance(error, discord.HTTPException):
        return ChatUnavailable(f"no connection to Discord ({type(error).__name__}: {error})")
    said = f"{error.status}, code {error.code}: {error.text or 'no reason given'}"
    if error.code in MODERATED:
        return ChatBlocked(f"Discord's moderation blocked it ({said})")
    if error.status in (401, 403):
        return ChatForbidden(f"Discord does not allow it ({said})")
    if error.status == 404:
        return ChatGone(f"it is no longer there ({said})")
    if error.status in (408, 429) or error.status >= 500:
        asked = error.response.headers.get("Retry-After", "")
        after_s = float(asked) if asked.isdecimal() else 0.0  # it may be a date
        return ChatUnavailable(f"Discord is not available ({said[:MOST_SAID]})", after_s=after_s)
    return ChatError(f"Discord refused it ({said})")


def worth_retrying(error: ChatError) -> bool:
    """Whether the same call may work in a moment. Not after a rate limit: discord.py has waited for that."""
    cause = error.__cause__
    limited = isinstance(cause, discord.RateLimited) or getattr(cause, "status", None) == 429
    return isinstance(error, ChatUnavailable) and not limited

"""Discord becomes values: who said what, and where. Secrets are redacted here, first.

What a message says is read by `words`. Knows discord.py and core's values; decides nothing.
"""

import re
from typing import TYPE_CHECKING, TypeAlias

import discord

from discoclaw.bot import readers
from discoclaw.bot.words import TALK, text_of
from discoclaw.core.attached import FileRef
from discoclaw.core.message import Author, Inbound, Me, Place, Said, with_attachments
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.core.text import scrub
from discoclaw.show.words import quoted

if TYPE_CHECKING:
    Channel: TypeAlias = discord.abc.MessageableChannel

TEXT_ROOTS = ("memory", "hatch", "nostr")
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
            private=(reach := readers.open_to(channel)) != "all",
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
            private=(reach := readers.open_to(channel)) != "all",
            mostly_open=reach == "most",
            # By its name a channel has its context file, and others choose the names on their servers.
            group_name=named(channel.name) if readers.knows(channel.guild) else "",
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
    return Said(
        id=str(message.id),
        author_id=whose,
        name=me.name if by_us else redactor.clean(scrub(message.author.display_name)),
        text=with_attachments(words or text_of(message, me, redactor), _attached(message, redactor)),
        sent_at=_ms(message),
        is_owner=whose in owners,
        by_us=by_us,
        guest=(guest or is_webhook(message)) and not by_us,
        to_id=_answered(message) if by_us else "",
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


def _answered(message: discord.Message) -> str:
    """Whom a message of ours replies to; "" when that is not known."""
    original = message.reference.resolved if message.reference is not None else None
    return str(original.author.id) if isinstance(original, discord.Message) else ""

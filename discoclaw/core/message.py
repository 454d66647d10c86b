"""Messages from the chat and the files that come with them, as values: who said what, and where.

A session is one conversation: a DM (identified by its person), a thread, a channel, or what one person asks
with commands in one place (an aside). Its key names the queue in which its messages wait, and the file of its
rolling summary.
Knows nothing about discord.py's objects, decoders, models or databases.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal, Self, TypeAlias

from discoclaw.core.consent import Consent
from discoclaw.core.text import collapse
from discoclaw.core.values import dataclass, field, replace

# ----------------------------------------------------------------------
# Files that come with messages: how one is named before it is read, and what was read from it.
#
# A `FileRef` travels with its message, and costs nothing. Reading it takes a download and a decoder, so that
# happens only for a message that is answered.


PictureType: TypeAlias = Literal["image/png", "image/jpeg", "image/webp", "image/gif"]


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file that somebody attached. Nothing about it was checked: its sender chose name, size and type.

    `message_id` and `author_id` name the message it came with, by which it is forgotten; `channel_id` is
    where that message is. Secrets are redacted from `name`. `size` is in bytes; `type` is the media type that
    the chat gives, "" if it gives none. `url` ends within a day.
    """

    id: str
    message_id: str
    author_id: str
    name: str
    size: int
    type: str = ""
    url: str = field(default="", repr=False, compare=False)
    voice: bool = False
    """A voice message: its words are the message's text."""
    channel_id: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as a model gets it: decoded once, scaled, written anew, so that it is what its type says.

    `rest` are the other parts of one that was cut. `note` goes on behind the file's name, for its sender.
    """

    name: str
    type: PictureType
    data: bytes = field(repr=False)
    width: int
    height: int
    rest: tuple["Picture", ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A PDF file as it came. `pages` is their number."""

    name: str
    data: bytes = field(repr=False)
    pages: int


@dataclass(frozen=True, slots=True)
class TextFile:
    """The text of a file, without secrets. `cut`: its middle is left out, and `end` are its last characters.

    `note` goes on behind the file's name, for its sender.
    """

    name: str
    text: str = field(repr=False)
    cut: bool = False
    end: str = field(default="", repr=False)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that was not read. `why` is a sentence for the person who sent it, with the way out."""

    name: str
    why: str


Media: TypeAlias = Picture | Document
"""Content that goes to a model beside the text."""
Content: TypeAlias = Media | TextFile
"""Content that can be read from a file."""
Kind: TypeAlias = Literal["picture", "document"]

PIXELS_A_TOKEN = 750
TOKENS_A_PAGE = 2_000
"""Tokens of a page of a PDF. Anthropic names 1,500 to 3,000."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture or document as a request carries it: in base64, which is made once and beside the event loop.

    `label` is what the prompt calls it ("Picture 1"). `tokens` is an estimate. `older`: it came with an
    earlier message, so it is what a request that is too large goes without first. `rest` are the other parts
    of a picture that was cut, until `parts` takes it apart; `note` is told to its sender.
    """

    name: str
    type: str
    data: str = field(repr=False)
    tokens: int
    label: str = ""
    older: bool = False
    pages: int = 0
    rest: tuple["Encoded", ...] = ()
    note: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of thing that it is to a person."""
        return "picture" if self.type.startswith("image/") else "document"

    @property
    def parts(self) -> tuple["Encoded", ...]:
        """The parts that a request carries: one, or the parts of a picture in their order."""
        return replace(self, rest=()), *self.rest


def tokens_of(media: Media) -> int:
    """About how many tokens a picture or document costs."""
    if isinstance(media, Document):
        return media.pages * TOKENS_A_PAGE
    return max(1, media.width * media.height // PIXELS_A_TOKEN)


def digest(data: bytes) -> str:
    """The name of a content: the same bytes have the same one, whoever sent them (SHA-256, hex)."""
    return hashlib.sha256(data).hexdigest()


# ----------------------------------------------------------------------
# Messages.


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself, as the chat knows it."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a message, a person or another bot. `id` is a snowflake as text.

    `is_owner` comes from the settings alone, never from a name or a message.
    """

    id: str
    name: str
    is_owner: bool = False
    allowed: bool = True
    """Whether the allowlist lets this person talk to the bot. Messages of others are context at most."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place where something is said.

    `channel_id` is the channel or thread itself. `group_id` is the channel whose memory and rules apply (a
    thread's parent), None in a DM; `group_name` is its name. `private` is true in a DM, and in a channel that
    not everybody on the server can read; then `mostly_open` says that it is open to all but those whom it
    denies.

    `kind` "aside": somebody asks with a command, and nobody else sees the question or the answer.
    """

    kind: Literal["dm", "channel", "thread", "aside"]
    channel_id: str
    group_id: str | None
    name: str
    private: bool
    group_name: str = ""
    topic: str = ""
    tags: tuple[str, ...] = ()
    """The tags of a forum's post."""
    guild_id: str | None = None
    closed: bool = False
    """A private thread: only people who were added to it can read it."""
    mostly_open: bool = False

    @property
    def hidden(self) -> bool:
        """Whether only some can read it, so that its talk may hold what a person made private."""
        return self.private and not self.mostly_open

    def session_key(self, author_id: str) -> str:
        """The session's key: `discord:dm:<author>`, `discord:thread:<id>` or `discord:channel:<id>`.

        An aside is one person's in one place: `discord:aside:<author>:aside-<id>`.
        """
        if self.kind == "aside":
            return f"discord:aside:{author_id}:{self.channel_id}"
        return f"discord:dm:{author_id}" if self.kind == "dm" else f"discord:{self.kind}:{self.channel_id}"

    def aside(self) -> Self:
        """A place here for what one person asks with a command.

        It has a channel id of its own, so that nothing made from it names the channel as where it was said:
        a receipt for what was learned would be posted there.
        """
        return replace(
            self, kind="aside", channel_id=f"aside-{self.channel_id}", private=True, mostly_open=False
        )


def sessions_with(message_id: str, session_key: str) -> tuple[str, str]:
    """The conversations (keys) that a message of one may be in: that one, and a thread that grew out of it.

    Such a thread begins with the message, and has its id.
    """
    return session_key, f"discord:thread:{message_id}"


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message that arrived. Secrets are already redacted from `text`; `sent_at` is in ms since 1970.

    `mentions_us` is true for a mention, a reply to one of the bot's messages, and every DM.
    """

    id: str
    author: Author
    place: Place
    session_key: str
    text: str
    sent_at: int
    mentions_us: bool = False
    quoted: "Said | None" = None
    attachments: tuple[str, ...] = ()
    """A short description of each attachment, which stands in the talk."""
    files: tuple[FileRef, ...] = ()
    """The files that came with it, forwarded ones too. They are read when the message is answered."""
    late: bool = False
    """It was transcribed first, so newer messages may have been heard before it."""
    linked: "tuple[Said, ...]" = ()
    """The messages that it links to, once they were read."""
    stands_for: tuple[str, ...] = ()
    """The messages (ids) in the chat that it stands for, if that is not itself alone."""

    @property
    def asks(self) -> tuple[str, ...]:
        """The messages (ids) that its answer answers."""
        return self.stands_for or (self.id,)


@dataclass(frozen=True, slots=True)
class Said:
    """One message in a conversation's window. Ids are snowflakes, so they sort by time."""

    id: str
    author_id: str
    name: str
    text: str
    sent_at: int
    is_owner: bool = False
    by_us: bool = False
    guest: bool = False
    """Its author is not on the allowlist."""
    to_id: str = ""
    """For the bot's own messages: the user id of the person answered, "" if unknown."""
    of: tuple[str, ...] = ()
    """For the bot's own messages: the ids of the messages that it answers, as far as they are known."""
    of_gone: bool = False
    """The message that it answers was deleted, the chat says."""
    edited_at: int = 0
    """When (ms) somebody else's message got its present text, if that was not when it was sent."""
    files: tuple[FileRef, ...] = ()
    """The files that came with it."""
    channel_id: str = field(default="", compare=False)
    """The channel in which it stands, which need not be the one where it is quoted."""

    @property
    def as_of(self) -> int:
        """When (ms) its present words were said."""
        return max(self.sent_at, self.edited_at)


def with_attachments(text: str, attachments: Sequence[str]) -> str:
    """A message's text, followed by a line that lists its attachments, if any."""
    if not attachments:
        return text
    note = f"(attached: {collapse('; '.join(attachments))})"
    return f"{text}\n{note}" if text.strip() else note


# ----------------------------------------------------------------------
# One message as the archive keeps it.


@dataclass(frozen=True, slots=True)
class Entry:
    """One archived message. All ids are Discord snowflakes as text.

    `group_id` is the channel that decides who may read it: a thread's parent, but a private thread itself,
    since people of the parent channel cannot read it. It and `guild_id` (the server) are None in a DM.
    `name` is the author's display name at the time; `sent_at` is in ms since 1970. `by_us` marks the bot's
    own messages; `to_id` is then the person it answered.
    """

    id: str
    session_key: str
    channel_id: str
    group_id: str | None
    guild_id: str | None
    author_id: str
    name: str
    text: str
    sent_at: int
    by_us: bool = False
    to_id: str = ""

    def allowed(self, consent: Consent) -> bool:
        """Whether it may be kept and shown: its author (or the person it answers) is known, and agrees."""
        person = self.to_id if self.by_us else self.author_id
        return bool(person) and consent.may_keep(person, self.sent_at)

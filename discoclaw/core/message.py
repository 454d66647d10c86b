"""Messages from the chat as values: who said what, and where.

A session is one conversation: a DM (identified by its person), a thread, a channel, or what one person asks
with commands in one place (an aside). Its key names the queue in which its messages wait, and the file of its
rolling summary.
Knows nothing about discord.py's objects.
"""

from collections.abc import Sequence
from typing import Literal, Self

from discoclaw.core.attached import FileRef
from discoclaw.core.text import collapse
from discoclaw.core.values import dataclass, field, replace


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

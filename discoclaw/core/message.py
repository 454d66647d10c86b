"""What arrives from a chat, as values: who said what where. Knows nothing about Discord's objects.

A session is one conversation: a DM (by its person), a thread, or a channel. Its key names the rolling
summary's file and the queue in which its messages wait their turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from discoclaw.core.text import collapse


@dataclass(frozen=True, slots=True)
class Me:
    """Ourselves, as the chat knows us."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Author:
    """A person (or bot) who speaks. `id` is the snowflake as text. `is_owner` comes from settings only."""

    id: str
    name: str
    is_owner: bool = False
    allowed: bool = True
    """Whether the allowlist lets this person talk to us; others' words are context at most."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is said.

    `channel_id` is the channel or thread itself; `group_id` is the channel that owns memory and rules (a
    thread's parent), None in a DM; `group_name` is that channel's name. `private` is true in a DM and in a
    channel not everybody on the server can read.
    """

    kind: Literal["dm", "channel", "thread"]
    channel_id: str
    group_id: str | None
    name: str
    private: bool
    group_name: str = ""
    topic: str = ""
    guild_id: str | None = None
    closed: bool = False
    """A thread that only those who were added to it can read."""

    def session_key(self, author_id: str) -> str:
        """`discord:dm:<author>`, `discord:thread:<id>` or `discord:channel:<id>`."""
        return f"discord:dm:{author_id}" if self.kind == "dm" else f"discord:{self.kind}:{self.channel_id}"


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message somebody replies to."""

    author: str
    text: str
    by_us: bool = False


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message, secrets already redacted from `text`. `sent_at` is in ms since 1970.

    `mentions_us` covers a mention, a reply to one of our messages, and every DM.
    """

    id: str
    author: Author
    place: Place
    session_key: str
    text: str
    sent_at: int
    mentions_us: bool = False
    quoted: Quoted | None = None
    attachments: tuple[str, ...] = ()
    """What was attached, one short description each; the contents are not read."""


@dataclass(frozen=True, slots=True)
class Said:
    """One line of a conversation's window. Ids are snowflakes, so they sort by time."""

    id: str
    author_id: str
    name: str
    text: str
    sent_at: int
    is_owner: bool = False
    by_us: bool = False
    guest: bool = False
    """Said by somebody the allowlist does not name."""
    to_id: str = ""
    """Of an answer of ours: to whom, as far as that is known."""


def with_attachments(text: str, attachments: Sequence[str]) -> str:
    """A message's text with a line that says what was attached."""
    if not attachments:
        return text
    note = f"(attached: {collapse('; '.join(attachments))})"
    return f"{text}\n{note}" if text.strip() else note

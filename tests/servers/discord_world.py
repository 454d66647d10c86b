"""What the loopback Discord knows: one guild, its people, channels and messages, and how each looks as JSON.

No I/O and no events here.  Modelled: ids made of time, members with roles, text channels with permission
overwrites, direct messages, threads, replies, attachments, reactions, pins.  Not modelled: forums, voice,
emojis, stickers, polls, webhooks, presences and the *enforcement* of permissions (the client computes them
from the roles it is sent; a refusal is ordered with `DiscordServer.fail_next`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

DISCORD_EPOCH_MS = 1_420_070_400_000
TEXT, DM, PUBLIC_THREAD, PRIVATE_THREAD = 0, 1, 11, 12
DEFAULT, PINS_ADD, THREAD_CREATED, REPLY, THREAD_STARTER = 0, 6, 18, 19, 21
HAS_THREAD, IS_VOICE = 1 << 5, 1 << 13
VIEW_CHANNEL = 1 << 10
TALK = sum(1 << bit for bit in (6, 10, 11, 14, 15, 16, 31, 35, 36, 38))  # see, write, attach, react, thread
TEND = TALK | sum(1 << bit for bit in (13, 34, 51))  # and manage messages and threads, and pin


def snowflake_time(snowflake: int) -> datetime:
    """The moment an id was made."""
    return datetime.fromtimestamp(((snowflake >> 22) + DISCORD_EPOCH_MS) / 1000, UTC)


@dataclass(eq=False)
class Role:
    """A role of the guild; `permissions` is Discord's bit field."""

    id: int
    name: str
    permissions: int
    position: int

    def payload(self) -> Json:
        return {
            "id": str(self.id),
            "name": self.name,
            "permissions": str(self.permissions),
            "position": self.position,
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
            "hoist": False,
            "managed": False,
            "mentionable": True,
            "flags": 0,
        }


@dataclass(eq=False)
class User:
    """A person, or a bot; a member of the guild while the world's `members` holds the id."""

    id: int
    name: str
    bot: bool = False
    roles: list[Role] = field(default_factory=list)

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"

    def payload(self) -> Json:
        return {
            "id": str(self.id),
            "username": self.name.lower(),
            "global_name": self.name,
            "discriminator": "0",
            "avatar": None,
            "bot": self.bot,
        }

    def member_payload(self, *, with_user: bool = True) -> Json:
        member: Json = {
            "roles": [str(role.id) for role in self.roles],
            "nick": None,
            "joined_at": snowflake_time(self.id).isoformat(),
            "deaf": False,
            "mute": False,
            "flags": 0,
        }
        return {**member, "user": self.payload()} if with_user else member


@dataclass(eq=False)
class Attachment:
    """An uploaded file, its bytes kept; `url` is served by the same loopback server.

    `seconds` is the length of a voice message.
    """

    id: int
    filename: str
    data: bytes
    url: str
    content_type: str
    description: str | None = None
    seconds: float | None = None

    def payload(self) -> Json:
        made: Json = {
            "id": str(self.id),
            "filename": self.filename,
            "size": len(self.data),
            "url": self.url,
            "proxy_url": self.url,
            "content_type": self.content_type,
        }
        if self.seconds is not None:
            made |= {"duration_secs": self.seconds, "waveform": "AAAA"}
        return {**made, "description": self.description} if self.description else made


@dataclass(eq=False)
class Message:
    """A message as it stands now; `versions` holds every content it has had, oldest first."""

    id: int
    channel: Channel
    author: User
    content: str
    type: int = DEFAULT
    mentions: list[User] = field(default_factory=list)
    reply_to: Message | None = None
    attachments: list[Attachment] = field(default_factory=list)
    embeds: list[Json] = field(default_factory=list)
    components: list[Json] = field(default_factory=list)
    reactions: dict[str, list[User]] = field(default_factory=dict)
    flags: int = 0
    nonce: str | None = None
    edited_at: datetime | None = None
    pinned_at: datetime | None = None
    thread: Channel | None = None
    deleted: bool = False
    versions: list[str] = field(default_factory=list)
    created: int = 0  # place in the order of all changes; `changed` is that of the last create or edit
    changed: int = 0

    @property
    def pinned(self) -> bool:
        return self.pinned_at is not None


@dataclass(eq=False)
class Channel:
    """A text channel, a thread (with `parent`) or a direct-message channel (with `recipient`)."""

    id: int
    name: str
    type: int = TEXT
    parent: Channel | None = None
    recipient: User | None = None
    owner: User | None = None
    topic: str | None = None
    position: int = 0
    overwrites: list[Json] = field(default_factory=list)
    archived: bool = False
    locked: bool = False
    thread_members: list[User] = field(default_factory=list)
    messages: dict[int, Message] = field(default_factory=dict)
    takes_files: bool = True  # from the bot
    blocks: str = ""  # a word that AutoMod does not let through
    last_said: int = 0  # place, in the order of all changes, of the last message of a user

    @property
    def is_dm(self) -> bool:
        return self.type == DM

    @property
    def is_thread(self) -> bool:
        return self.type in (PUBLIC_THREAD, PRIVATE_THREAD)

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"


class World:
    """The guild and everything in it, with the payload of each thing."""

    def __init__(self, *, bot_name: str, guild_name: str) -> None:
        self._last_snowflake = 0
        self._changes = 0
        self.guild_name = guild_name
        self.installs: dict[str, Json] = {"0": {}}  # on servers; {"1": {}} is by people for themselves
        self._ago_ms = 0
        self.guild_id = self.snowflake()
        self.application_id = self.snowflake()
        everyone = Role(self.guild_id, "@everyone", TALK, 0)
        self.roles: dict[int, Role] = {everyone.id: everyone}
        self.users: dict[int, User] = {}
        self.members: dict[int, User] = {}
        self.channels: dict[int, Channel] = {}
        self.owner = self.new_user("Owner")
        self.bot = User(self.application_id, bot_name, bot=True, roles=[self.new_role(bot_name, TEND)])
        self.users[self.bot.id] = self.members[self.bot.id] = self.bot

    def snowflake(self) -> int:
        """An id made of the time, always greater than the one before."""
        now = (int(time.time() * 1000) - self._ago_ms - DISCORD_EPOCH_MS) << 22
        self._last_snowflake = max(now, self._last_snowflake + 1)
        return self._last_snowflake

    def set_back(self, ago_ms: int) -> None:
        """Make ids as if it were so many ms ago."""
        self._ago_ms, self._last_snowflake = ago_ms, 0

    def next_change(self) -> int:
        """The next place in the order of all changes to messages."""
        self._changes += 1
        return self._changes

    def new_role(self, name: str, permissions: int) -> Role:
        role = Role(self.snowflake(), name, permissions, position=len(self.roles))
        self.roles[role.id] = role
        return role

    def new_user(
        self, name: str, *, roles: Iterable[Role] = (), bot: bool = False, member: bool = True
    ) -> User:
        user = User(self.snowflake(), name, bot=bot, roles=list(roles))
        self.users[user.id] = user
        if member:
            self.members[user.id] = user
        return user

    def new_channel(self, name: str, *, private_to: Iterable[User] | None, topic: str | None) -> Channel:
        """A text channel; `private_to` hides it from @everyone but these users and the bot."""
        overwrites: list[Json] = []
        if private_to is not None:
            see, zero = str(VIEW_CHANNEL), "0"
            overwrites.append({"id": str(self.guild_id), "type": 0, "allow": zero, "deny": see})
            for user in (self.bot, *private_to):
                overwrites.append({"id": str(user.id), "type": 1, "allow": see, "deny": zero})
        position = sum(channel.type == TEXT for channel in self.channels.values())
        channel = Channel(self.snowflake(), name, topic=topic, position=position, overwrites=overwrites)
        self.channels[channel.id] = channel
        return channel

    def dm_with(self, user: User) -> Channel:
        """The one direct-message channel of the bot and this user, opened on first use."""
        for channel in self.channels.values():
            if channel.recipient is user:
                return channel
        channel = Channel(self.snowflake(), user.name, type=DM, recipient=user)
        self.channels[channel.id] = channel
        return channel

    def mentioned(self, content: str) -> list[User]:
        """Users named in a text by `<@id>`, in order, each once."""
        ids = dict.fromkeys(int(found) for found in re.findall(r"<@!?(\d+)>", content))
        return [self.users[found] for found in ids if found in self.users]

    def channel_payload(self, channel: Channel) -> Json:
        last = max(channel.messages, default=None)
        made: Json = {
            "id": str(channel.id),
            "type": channel.type,
            "last_message_id": None if last is None else str(last),
            "flags": 0,
        }
        if channel.recipient is not None:
            return {**made, "recipients": [channel.recipient.payload()]}
        made |= {"guild_id": str(self.guild_id), "name": channel.name, "rate_limit_per_user": 0}
        if channel.parent is not None and channel.owner is not None:
            return {**made, **self._thread_fields(channel, channel.parent, channel.owner)}
        made |= {"topic": channel.topic, "position": channel.position, "nsfw": False, "parent_id": None}
        return {**made, "permission_overwrites": channel.overwrites}

    def _thread_fields(self, thread: Channel, parent: Channel, owner: User) -> Json:
        made_at = snowflake_time(thread.id).isoformat()
        return {
            "parent_id": str(parent.id),
            "owner_id": str(owner.id),
            "message_count": len(thread.messages),
            "total_message_sent": len(thread.messages),
            "member_count": len(thread.thread_members),
            "thread_metadata": {
                "archived": thread.archived,
                "locked": thread.locked,
                "auto_archive_duration": 1440,
                "archive_timestamp": made_at,
                "create_timestamp": made_at,
                "invitable": True,
            },
        }

    def thread_member_payload(self, thread: Channel, user: User) -> Json:
        joined = snowflake_time(thread.id).isoformat()
        return {"id": str(thread.id), "user_id": str(user.id), "join_timestamp": joined, "flags": 0}

    def guild_payload(self) -> Json:
        """The guild as `GET /guilds/{id}` shows it; GUILD_CREATE adds channels, threads and members."""
        return {
            "id": str(self.guild_id),
            "name": self.guild_name,
            "owner_id": str(self.owner.id),
            "roles": [role.payload() for role in self.roles.values()],
            "emojis": [],
            "stickers": [],
            "features": [],
            "icon": None,
            "verification_level": 0,
            "default_message_notifications": 0,
            "explicit_content_filter": 0,
            "afk_timeout": 300,
            "premium_tier": 0,
            "preferred_locale": "en-US",
            "nsfw_level": 0,
            "mfa_level": 0,
            "system_channel_id": None,
            "system_channel_flags": 0,
        }

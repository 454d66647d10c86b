"""The things of the loopback Discord, and how each looks as JSON: guilds, people, channels, messages, files.

Modelled: members with roles of their own in each guild, text channels with permission overwrites, direct
messages, threads, replies, attachments, reactions, pins.  Not modelled: forums, voice, emojis, stickers,
polls, webhooks, presences.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

DISCORD_EPOCH_MS = 1_420_070_400_000
TEXT, DM, PUBLIC_THREAD, PRIVATE_THREAD = 0, 1, 11, 12
DEFAULT, PINS_ADD, THREAD_CREATED, REPLY, THREAD_STARTER = 0, 6, 18, 19, 21
HAS_THREAD, IS_VOICE = 1 << 5, 1 << 13
VIEW_CHANNEL = 1 << 10
MESSAGE_CONTENT = 1 << 19  # the flag of an application whose bot may read messages, as it is for small bots
TALK = sum(1 << bit for bit in (6, 10, 11, 14, 15, 16, 31, 35, 36, 38))  # see, write, attach, react, thread
TEND = TALK | sum(1 << bit for bit in (13, 34, 51))  # and manage messages and threads, and pin


def shard_of(guild_id: int, count: int) -> int:
    """Discord's formula; what belongs to no guild has the id 0 here, and so is for shard 0."""
    return (guild_id >> 22) % count


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
    """A person, or a bot; a member of every guild whose `members` holds the id."""

    id: int
    name: str
    bot: bool = False

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


@dataclass(eq=False)
class Guild:
    """A guild with its roles, its members, and the roles that each member has there."""

    id: int
    name: str
    owner: User
    roles: dict[int, Role] = field(default_factory=dict)
    members: dict[int, User] = field(default_factory=dict)
    given: dict[int, list[Role]] = field(default_factory=dict)  # user id -> roles

    def shard(self, count: int) -> int:
        """The shard that gets this guild's events when there are `count` of them."""
        return shard_of(self.id, count)

    def member_payload(self, user: User, *, with_user: bool = True) -> Json:
        member: Json = {
            "roles": [str(role.id) for role in self.given.get(user.id, [])],
            "nick": None,
            "joined_at": snowflake_time(user.id).isoformat(),
            "deaf": False,
            "mute": False,
            "flags": 0,
        }
        return {**member, "user": user.payload()} if with_user else member

    def payload(self) -> Json:
        """The guild as `GET /guilds/{id}` returns it; GUILD_CREATE adds channels, threads and members."""
        return {
            "id": str(self.id),
            "name": self.name,
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
    guild: Guild | None = None  # None for direct messages
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
    def guild_id(self) -> int | None:
        return None if self.guild is None else self.guild.id

    @property
    def is_dm(self) -> bool:
        return self.type == DM

    @property
    def is_thread(self) -> bool:
        return self.type in (PUBLIC_THREAD, PRIVATE_THREAD)

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"

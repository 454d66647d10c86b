"""What the loopback Discord knows: its guilds, people, channels and messages.

No I/O and no events here.  Modelled: ids made of time, also ones that fall on a given shard.  Not modelled:
the *enforcement* of permissions (the client computes them from the roles it is sent; a refusal is ordered
with `DiscordServer.fail_next`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from tests.servers.discord_things import (
    DISCORD_EPOCH_MS,
    DM,
    MESSAGE_CONTENT,
    TALK,
    TEND,
    TEXT,
    VIEW_CHANNEL,
    Channel,
    Guild,
    Json,
    Role,
    User,
    shard_of,
    snowflake_time,
)


class World:
    """All guilds that the bot is in, everybody, and every channel; `home` is the guild that always exists."""

    def __init__(self, *, bot_name: str, guild_name: str) -> None:
        self._last_snowflake = 0
        self._changes = 0
        self.application_flags = MESSAGE_CONTENT
        self.team: Json | None = None
        self.installs: dict[str, Json] = {"0": {}}  # on servers; {"1": {}} is by people for themselves
        self._ago_ms = 0
        self.guilds: dict[int, Guild] = {}
        self.users: dict[int, User] = {}
        self.channels: dict[int, Channel] = {}
        self.application_id = self.snowflake()
        self.bot = User(self.application_id, bot_name, bot=True)
        self.users[self.bot.id] = self.bot
        self.owner = self.new_user("Owner")
        self.home = self.new_guild(guild_name)

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

    def new_guild(
        self, name: str, *, owner: User | None = None, shard: tuple[int, int] | None = None
    ) -> Guild:
        """A guild with the bot and its owner in it; with `shard`, its id falls on that one of so many."""
        guild = Guild(self._guild_id(shard), name, owner or self.owner)
        self.guilds[guild.id] = guild
        guild.roles[guild.id] = Role(guild.id, "@everyone", TALK, 0)
        self.join(guild.owner, guild)
        self.join(self.bot, guild, roles=[self.new_role(guild, self.bot.name, TEND)])
        return guild

    def _guild_id(self, shard: tuple[int, int] | None) -> int:
        """Looks for a fitting id in the past, because the ids of messages have to keep increasing."""
        made = self.snowflake()
        if shard is not None:
            taken = {*self.guilds, *self.users, *self.channels}
            while shard_of(made, shard[1]) != shard[0] or made in taken:
                made -= 1 << 22
        return made

    def new_role(self, guild: Guild, name: str, permissions: int) -> Role:
        role = Role(self.snowflake(), name, permissions, position=len(guild.roles))
        guild.roles[role.id] = role
        return role

    def new_user(self, name: str, *, bot: bool = False) -> User:
        user = User(self.snowflake(), name, bot=bot)
        self.users[user.id] = user
        return user

    def join(self, user: User, guild: Guild, *, roles: Iterable[Role] = ()) -> None:
        guild.members[user.id] = user
        guild.given[user.id] = list(roles)

    def leave(self, user: User, guild: Guild) -> None:
        del guild.members[user.id], guild.given[user.id]

    def new_channel(
        self, guild: Guild, name: str, *, private_to: Iterable[User] | None, topic: str | None
    ) -> Channel:
        """A text channel; `private_to` hides it from @everyone but these users and the bot."""
        overwrites: list[Json] = []
        if private_to is not None:
            see, zero = str(VIEW_CHANNEL), "0"
            overwrites.append({"id": str(guild.id), "type": 0, "allow": zero, "deny": see})
            for user in (self.bot, *private_to):
                overwrites.append({"id": str(user.id), "type": 1, "allow": see, "deny": zero})
        position = sum(channel.type == TEXT for channel in self.channels_of(guild))
        channel = Channel(
            self.snowflake(), name, guild=guild, topic=topic, position=position, overwrites=overwrites
        )
        self.channels[channel.id] = channel
        return channel

    def channels_of(self, guild: Guild) -> list[Channel]:
        """The channels and threads of one guild."""
        return [channel for channel in self.channels.values() if channel.guild is guild]

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
        made |= {"guild_id": str(channel.guild_id), "name": channel.name, "rate_limit_per_user": 0}
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

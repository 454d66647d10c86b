"""How a test sets up the world of the loopback Discord; what it adds to it is also told to connected bots."""

from __future__ import annotations

from collections.abc import Iterable

from tests.servers.discord_acts import Acts
from tests.servers.discord_gateway import GUILD_MEMBERS, Gateway
from tests.servers.discord_http import RestDoor
from tests.servers.discord_things import TALK, Channel, Guild, Json, Message, Role, User
from tests.servers.discord_world import World


class WorldSetup:
    """The part of the server that makes guilds, people and channels, in the default guild unless named."""

    _door: RestDoor

    def __init__(self, world: World, gateway: Gateway, acts: Acts) -> None:
        self._world = world
        self.gateway = gateway
        self._acts = acts

    @property
    def bot(self) -> User:
        return self._world.bot

    @property
    def owner(self) -> User:
        """The owner of the default guild and of the application."""
        return self._world.owner

    @property
    def guild(self) -> Guild:
        """The default guild, which always exists."""
        return self._world.home

    @property
    def guild_id(self) -> int:
        return self._world.home.id

    @property
    def application_id(self) -> int:
        return self._world.application_id

    def set_back(self, ago_ms: int) -> None:
        """From now on, all is said so many ms ago."""
        self._world.set_back(ago_ms)

    def let_people_install(self) -> None:
        """People may install the application for themselves, as its admin can choose in the portal."""
        self._world.installs["1"] = {}

    def describe_application(self, *, flags: int = 0, team: Iterable[User] = ()) -> None:
        """What the portal has: the bits of privileged intents, and the team that the application has."""
        self._world.application_flags = flags
        members = [{"user": user.payload(), "membership_state": 2, "role": "admin"} for user in team]
        made: Json = {"id": "1", "name": "The Team", "icon": None, "owner_user_id": None, "members": members}
        self._world.team = made if members else None

    def throw_out(self) -> None:
        """The bot isn't a member of any guild. It has to be before a client connects."""
        self._world.guilds.clear()

    def set_clock(self, *, ahead_s: float) -> None:
        """How far Discord's clock is ahead of this machine's, in the Date of each answer."""
        self._door.ahead_s = ahead_s

    def add_guild(
        self, name: str, *, shard: tuple[int, int] | None = None, owner: User | None = None
    ) -> Guild:
        """Another guild that the bot is in; `shard=(3, 8)` gives it an id that falls on shard 3 of 8."""
        guild = self._world.new_guild(name, owner=owner, shard=shard)
        self.gateway.announce_guild(guild)
        return guild

    def add_role(self, name: str, permissions: int = TALK, *, guild: Guild | None = None) -> Role:
        """A role; known to a client that connects afterwards."""
        return self._world.new_role(guild or self.guild, name, permissions)

    def add_user(
        self,
        name: str,
        *,
        roles: Iterable[Role] = (),
        bot: bool = False,
        member: bool = True,
        guild: Guild | None = None,
    ) -> User:
        """A user, member of the guild unless told otherwise."""
        user = self._world.new_user(name, bot=bot)
        if member:
            self.join(user, guild or self.guild, roles=roles)
        return user

    def join(self, user: User, guild: Guild, *, roles: Iterable[Role] = ()) -> None:
        """A user becomes a member of one more guild."""
        self._world.join(user, guild, roles=roles)
        self._about_member("ADD", guild, guild.member_payload(user))

    def leave(self, user: User, guild: Guild) -> None:
        """A member leaves a guild."""
        self._world.leave(user, guild)
        self._about_member("REMOVE", guild, {"user": user.payload()})

    def add_channel(
        self,
        name: str,
        *,
        private_to: Iterable[User] | None = None,
        topic: str | None = None,
        guild: Guild | None = None,
    ) -> Channel:
        """A text channel; with `private_to`, hidden from everyone but these users and the bot."""
        channel = self._world.new_channel(guild or self.guild, name, private_to=private_to, topic=topic)
        self._acts.announce_channel(channel)
        return channel

    def add_thread(
        self, parent: Channel, name: str, *, owner: User | None = None, start: Message | None = None
    ) -> Channel:
        """A public thread of a text channel, opened from the message `start` if there is one."""
        return self._acts.open_thread(parent, name, owner or self.owner, start=start)

    def dm(self, user: User) -> Channel:
        """The direct-message channel of the bot and this user."""
        return self._world.dm_with(user)

    def channel(self, channel_id: int) -> Channel:
        """A channel or thread by its id, for those that the bot opened."""
        return self._world.channels[channel_id]

    def _about_member(self, verb: str, guild: Guild, data: Json) -> None:
        told = {**data, "guild_id": str(guild.id)}
        self.gateway.dispatch(f"GUILD_MEMBER_{verb}", told, intent=GUILD_MEMBERS, guild_id=guild.id)

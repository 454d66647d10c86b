"""A real Discord-compatible server on the loopback address, for tests of the whole bot over real sockets.

    async with DiscordServer(token="test-token") as server:
        alice, talk = server.add_user("Alice"), server.add_channel("talk")
        ...start the bot with `server.redirected()`, or as a process with these addresses in its settings...
        await server.say(alice, talk, "hello")
        answer = await server.wait_for_message(talk, contains="hello, Alice")

A bot may shard, and there may be more guilds than the one that is always there:

        club = server.add_guild("Club", shard=(3, 8))  # with an id that falls on shard 3 of 8
        server.join(alice, club), server.add_channel("talk", guild=club)
        server.identify_limits.max_concurrency = 16  # else one IDENTIFY every 5 s, or op 9
        (session,) = await server.wait_for_shard(3, 8)
        assert server.violations == []

`identify_limits` and `rest_limit` count by `clock`, which a test may stop and move on.

It speaks REST under /api/v10 and the gateway websocket, as far as a talking bot needs; the modules beside
this one say what each part models and what not.  A route it does not know is answered 501 and kept in
`unknown`.  It binds 127.0.0.1 with a free port and reaches nothing outside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Self

from aiohttp import web

from tests.servers.discord_acts import Acts, bot_said
from tests.servers.discord_bell import Bell
from tests.servers.discord_gateway import GUILD_MEMBERS, Gateway
from tests.servers.discord_http import API, Fault, RecordedRequest, RestDoor, path_matches
from tests.servers.discord_interactions import Interaction, Interactions, Option
from tests.servers.discord_limits import Clock, IdentifyLimits, Nonces, RestLimit
from tests.servers.discord_messages import MessageRoutes
from tests.servers.discord_rest import GuildRoutes
from tests.servers.discord_socket import GatewayFrame, Session
from tests.servers.discord_things import IS_VOICE, TALK, Channel, Guild, Json, Message, Role, User
from tests.servers.discord_world import World

PATIENCE = 5.0  # seconds that a wait lasts unless told otherwise


class DiscordServer:
    """The server: a world to set up, users to act, faults to order, and records of what the bot did."""

    def __init__(
        self, token: str = "test-token", *, bot_name: str = "Disco", guild_name: str = "The Club"
    ) -> None:
        self.token = token
        self._bell = Bell()
        self.clock = Clock()
        self.identify_limits = IdentifyLimits(self.clock)
        self.rest_limit = RestLimit(self.clock)
        world = World(bot_name=bot_name, guild_name=guild_name)
        gateway = Gateway(world, token=token, limits=self.identify_limits, ring=self._bell.ring)
        self._world, self.gateway, self._acts = world, gateway, Acts(world, gateway)
        self._door = RestDoor(token=token, limit=self.rest_limit, ring=self._bell.ring)
        self._messages = MessageRoutes(world, self._acts, Nonces(self.clock))
        self._guilds = GuildRoutes(world, self._acts, self._messages)
        self._interactions = Interactions(world, gateway, self._acts)
        self._runner: web.AppRunner | None = None
        self.rest_base = self.gateway_url = ""  # until it has started
        self.requests = self._door.requests
        self.unknown = self._door.unknown
        self.faults = self._door.faults  # ordered and not met yet
        self.gateway_log: list[GatewayFrame] = gateway.log
        self.violations = self.identify_limits.violations
        self.commands = self._guilds.commands  # as synced: by guild id, None for the global ones

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_get("/gateway", self.gateway.handle)
        app.router.add_get("/attachments/{channel}/{attachment}/{filename}", self._download)
        for method, path, handler in (*self._messages.table(), *self._guilds.table(), *self.gateway.table()):
            self._door.add(app, method, path, handler)
        for method, path, handler in self._interactions.table():
            self._door.add(app, method, path, handler, auth=False)
        self._door.add_unknown(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0]
        self._acts.cdn_base = f"http://{host}:{port}"
        self.rest_base = self._acts.cdn_base + API
        self.gateway_url = self.gateway.url = f"ws://{host}:{port}/gateway"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gateway.door.set()
        self.gateway.drop(1001)
        assert self._runner is not None
        await self._runner.cleanup()

    @contextmanager
    def redirected(self) -> Iterator[None]:
        """Points discord.py in this process here, and back again."""
        import discord.gateway
        import discord.http
        import yarl

        route, socket = discord.http.Route, discord.gateway.DiscordWebSocket
        before = (route.BASE, socket.DEFAULT_GATEWAY)
        route.BASE, socket.DEFAULT_GATEWAY = self.rest_base, yarl.URL(self.gateway_url)
        try:
            yield
        finally:
            route.BASE, socket.DEFAULT_GATEWAY = before

    # --- setting up: in the default guild unless named, and told to connected bots ---

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

    # --- acting ---

    async def say(
        self,
        user: User,
        channel: Channel,
        text: str,
        *,
        reply_to: Message | None = None,
        files: dict[str, bytes] | None = None,
    ) -> Message:
        """A user writes; a reply pings the one replied to, as the Discord client does by default."""
        mentions = self._world.mentioned(text)
        if reply_to is not None and reply_to.author not in mentions:
            mentions.append(reply_to.author)
        attached = [self._acts.attach(channel, name, data) for name, data in (files or {}).items()]
        message = self._acts.post(
            channel, user, text, reply_to=reply_to, mentions=mentions, attachments=attached
        )
        channel.last_said = message.created
        await self._bell.ring()
        return message

    async def speak(self, user: User, channel: Channel, audio: bytes, *, seconds: float = 3.0) -> Message:
        """A user sends a voice message, as phones do."""
        recording = self._acts.attach(channel, "voice-message.ogg", audio)
        recording.seconds = seconds
        message = self._acts.post(channel, user, "", attachments=[recording], flags=IS_VOICE)
        channel.last_said = message.created
        await self._bell.ring()
        return message

    async def edit(self, message: Message, text: str) -> None:
        """The author edits a message."""
        self._acts.edit(message, content=text, mentions=self._world.mentioned(text))
        await self._bell.ring()

    async def delete(self, message: Message) -> None:
        self._acts.delete(message)
        await self._bell.ring()

    async def react(self, user: User, message: Message, emoji: str, *, added: bool = True) -> None:
        self._acts.react(message, user, emoji, added=added)
        await self._bell.ring()

    async def command(self, user: User, channel: Channel, path: str, **options: Option) -> Interaction:
        """A user runs a slash command: `command(alice, talk, "memory forget", text="tabs")`."""
        begun = self._interactions.command(user, channel, path, options)
        channel.last_said = self._world.next_change()
        await self._bell.ring()
        return begun

    async def press(self, user: User, message: Message, custom_id: str) -> Interaction:
        """A user presses a button below a message."""
        begun = self._interactions.press(user, message, custom_id)
        await self._bell.ring()
        return begun

    # --- waiting and looking ---

    def bot_messages(self, channel: Channel) -> list[Message]:
        """What the bot has written there and not deleted, oldest first."""
        return bot_said(channel.messages.values(), self.bot)

    async def wait_for_message(
        self,
        channel: Channel,
        contains: str = "",
        *,
        predicate: Callable[[Message], bool] | None = None,
        after: Message | None = None,
        timeout: float = PATIENCE,  # noqa: ASYNC109 - the message of the error is worth it
    ) -> Message:
        """The first message of the bot, by its last create or edit, that fits.

        Only what was created or edited since the last `say` there counts, or since the message `after`.
        """
        since = channel.last_said if after is None else after.created

        def found() -> Message | None:
            news = sorted(self.bot_messages(channel), key=lambda message: message.changed)
            fits = (m for m in news if m.changed > since and contains in m.content)
            return next((m for m in fits if predicate is None or predicate(m)), None)

        def seen() -> str:
            said = [message.content for message in self.bot_messages(channel)]
            return f"no {contains!r} in {channel.name}, the bot said {said}; {self._unknown()}"

        return await self._bell.wait_until(found, seen, timeout)

    async def wait_for_request(
        self,
        method: str,
        path: str,
        *,
        count: int = 1,
        timeout: float = PATIENCE,  # noqa: ASYNC109 - as above
    ) -> RecordedRequest:
        """The count-th answered call of a route since the server began; in `path`, * stands for a segment."""

        def found() -> RecordedRequest | None:
            calls = [
                call for call in self.requests if call.method == method and path_matches(path, call.path)
            ]
            answered = [call for call in calls if call.status]
            return answered[count - 1] if len(answered) >= count else None

        return await self._bell.wait_until(found, lambda: f"no {count} x {method} {path}", timeout)

    async def wait_for_gateway(
        self,
        name: str,
        *,
        count: int = 1,
        timeout: float = PATIENCE,  # noqa: ASYNC109 - as above
    ) -> GatewayFrame:
        """The count-th frame of this name (`identify`, `resume`, `heartbeat` ..) since the server began."""

        def found() -> GatewayFrame | None:
            frames = self.received(name)
            return frames[count - 1] if len(frames) >= count else None

        return await self._bell.wait_until(found, lambda: f"no {count} x gateway {name}", timeout)

    async def wait_for_shard(
        self,
        number: int,
        count: int,
        *,
        sessions: int = 1,
        timeout: float = PATIENCE,  # noqa: ASYNC109 - as above
    ) -> list[Session]:
        """The connected sessions of this shard, once there are so many of them; oldest first."""

        def found() -> list[Session] | None:
            here = self.gateway.connected((number, count))
            return here if len(here) == sessions else None

        def seen() -> str:
            here = [session.shard for session in self.gateway.sockets.values() if session is not None]
            return f"not {sessions} x shard {number}/{count}, connected are {sorted(here)}"

        return await self._bell.wait_until(found, seen, timeout)

    def received(self, name: str) -> list[GatewayFrame]:
        """The gateway frames of one name, in order."""
        return [frame for frame in self.gateway_log if frame.name == name]

    # --- faults ---

    def fail_next(
        self,
        method: str,
        path_pattern: str,
        status: int,
        json: Json | None = None,
        headers: dict[str, str] | None = None,
        *,
        times: int = 1,
        applied: bool = False,
        after: int = 0,
    ) -> None:
        """The next calls of this route fail so; in the path, * stands for one segment.

        Body and headers are completed as Discord would: a 429 has `retry_after`, `Via` and the limit headers.
        With `applied` the thing is done and only the answer is the failure. So many calls `after` now work.
        """
        fault = Fault(method, path_pattern, status, json, headers or {}, times, applied, after)
        self._door.faults.append(fault)

    def drop_sockets(self, code: int | None = 4000, *, only: Session | None = None) -> None:
        """Closes every gateway socket with this code, or cuts the line when it is None; sessions live on."""
        self.gateway.drop(code, only=only)

    @asynccontextmanager
    async def outage(self, code: int | None = None) -> AsyncIterator[None]:
        """The gateway is away: sockets dropped, new ones kept waiting at the door until the block ends."""
        self.gateway.door.clear()
        self.gateway.drop(code)
        try:
            yield
        finally:
            self.gateway.door.set()

    def invalidate_sessions(self, *, only: Session | None = None) -> None:
        """Op 9, not resumable: the client has to IDENTIFY again (discord.py waits 5 s before it does)."""
        self.gateway.invalidate(only=only)

    @property
    def mute_acks(self) -> bool:
        """While true, heartbeats are not acknowledged."""
        return self.gateway.mute_acks

    @mute_acks.setter
    def mute_acks(self, muted: bool) -> None:
        self.gateway.mute_acks = muted

    async def _download(self, request: web.Request) -> web.Response:
        found = self._acts.attachments.get(int(request.match_info["attachment"]))
        if found is None:
            return web.Response(status=404)
        return web.Response(body=found.data, content_type=found.content_type)

    def _unknown(self) -> str:
        return f"unknown routes: {[f'{call.method} {call.path}' for call in self.unknown]}"


__all__ = [
    "Channel",
    "DiscordServer",
    "GatewayFrame",
    "Guild",
    "Interaction",
    "Message",
    "RecordedRequest",
    "Role",
    "Session",
    "User",
]

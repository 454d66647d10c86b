"""A real Discord-compatible server on the loopback address, for tests of the whole bot over real sockets.

    async with DiscordServer(token="test-token") as server:
        alice, talk = server.add_user("Alice"), server.add_channel("talk")
        ...start the bot with `server.redirected()` or, as a subprocess, `server.launch_args("bot")`...
        await server.say(alice, talk, "hello")
        answer = await server.wait_for_message(talk, contains="hello, Alice")

It speaks REST under /api/v10 and the gateway websocket, as far as a talking bot needs; the modules beside
this one say what each part models and what not.  A route it does not know is answered 501 and kept in
`unknown`.  It binds 127.0.0.1 with a free port and reaches nothing outside.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Self

from aiohttp import web

from tests.servers.discord_acts import Acts, bot_said
from tests.servers.discord_bell import Bell
from tests.servers.discord_gateway import GUILD_MEMBERS, Gateway, GatewayFrame
from tests.servers.discord_http import API, Fault, RecordedRequest, RestDoor, path_matches
from tests.servers.discord_messages import MessageRoutes
from tests.servers.discord_rest import GuildRoutes
from tests.servers.discord_world import IS_VOICE, TALK, Channel, Json, Message, Role, User, World

PATIENCE = 5.0  # seconds that a wait lasts unless told otherwise


class DiscordServer:
    """The server: a world to set up, users to act, faults to order, and records of what the bot did."""

    def __init__(
        self, token: str = "test-token", *, bot_name: str = "Disco", guild_name: str = "The Club"
    ) -> None:
        self.token = token
        self._bell = Bell()
        self._world = World(bot_name=bot_name, guild_name=guild_name)
        self.gateway = Gateway(self._world, token=token, ring=self._bell.ring)
        self._acts = Acts(self._world, self.gateway)
        self._door = RestDoor(token=token, ring=self._bell.ring)
        self._messages = MessageRoutes(self._world, self._acts)
        self._guild = GuildRoutes(self._world, self._acts, self._messages)
        self._runner: web.AppRunner | None = None
        self.rest_base = ""
        self.gateway_url = ""
        self.requests = self._door.requests
        self.unknown = self._door.unknown
        self.faults = self._door.faults  # ordered and not met yet
        self.gateway_log: list[GatewayFrame] = self.gateway.log
        self.commands = self._guild.commands  # as synced: by guild id, None for the global ones

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_get("/gateway", self.gateway.handle)
        app.router.add_get("/attachments/{channel}/{attachment}/{filename}", self._download)
        for method, path, handler in (*self._messages.table(), *self._guild.table()):
            self._door.add(app, method, path, handler)
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

    # --- the world ---

    @property
    def bot(self) -> User:
        return self._world.bot

    @property
    def owner(self) -> User:
        """The owner of the guild and of the application."""
        return self._world.owner

    @property
    def guild_id(self) -> int:
        return self._world.guild_id

    @property
    def application_id(self) -> int:
        return self._world.application_id

    def set_back(self, ago_ms: int) -> None:
        """From now on, all is said so many ms ago."""
        self._world.set_back(ago_ms)

    def let_people_install(self) -> None:
        """People may install the application for themselves, as its admin can choose in the portal."""
        self._world.installs["1"] = {}

    def add_role(self, name: str, permissions: int = TALK) -> Role:
        """A role; known to a client that connects afterwards."""
        return self._world.new_role(name, permissions)

    def add_user(
        self, name: str, *, roles: Iterable[Role] = (), bot: bool = False, member: bool = True
    ) -> User:
        """A user, member of the guild unless told otherwise."""
        user = self._world.new_user(name, roles=roles, bot=bot, member=member)
        if member:
            joined = {**user.member_payload(), "guild_id": str(self.guild_id)}
            self.gateway.dispatch("GUILD_MEMBER_ADD", joined, intent=GUILD_MEMBERS)
        return user

    def add_channel(
        self, name: str, *, private_to: Iterable[User] | None = None, topic: str | None = None
    ) -> Channel:
        """A text channel; with `private_to`, hidden from everyone but these users and the bot."""
        channel = self._world.new_channel(name, private_to=private_to, topic=topic)
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
    ) -> None:
        """The next calls of this route fail so; in the path, * stands for one segment.

        Body and headers are completed as Discord would: a 429 has `retry_after`, `Via` and the limit headers.
        With `applied` the thing is done and only the answer is the failure.
        """
        self._door.faults.append(Fault(method, path_pattern, status, json, headers or {}, times, applied))

    def drop_sockets(self, code: int | None = 4000) -> None:
        """Closes every gateway socket with this code, or cuts the line when it is None; sessions live on."""
        self.gateway.drop(code)

    @asynccontextmanager
    async def outage(self, code: int | None = None) -> AsyncIterator[None]:
        """The gateway is away: sockets dropped, new ones kept waiting at the door until the block ends."""
        self.gateway.door.clear()
        self.gateway.drop(code)
        try:
            yield
        finally:
            self.gateway.door.set()

    def invalidate_sessions(self) -> None:
        """Op 9, not resumable: the client has to IDENTIFY again (discord.py waits 5 s before it does)."""
        self.gateway.invalidate()

    def ask_to_reconnect(self) -> None:
        """Op 7: the client closes and RESUMEs."""
        self.gateway.send_all(7)

    @property
    def mute_acks(self) -> bool:
        """While true, heartbeats are not acknowledged."""
        return self.gateway.mute_acks

    @mute_acks.setter
    def mute_acks(self, muted: bool) -> None:
        self.gateway.mute_acks = muted

    # --- reaching it ---

    def launch_args(self, module: str, *args: str) -> list[str]:
        """The command line that runs a module with discord.py pointed here, its own code unchanged."""
        code = (
            "import runpy, yarl, discord.http, discord.gateway; "
            f"discord.http.Route.BASE = {self.rest_base!r}; "
            f"discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL({self.gateway_url!r}); "
            f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        )
        return [sys.executable, "-c", code, *args]

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

    async def _download(self, request: web.Request) -> web.Response:
        found = self._acts.attachments.get(int(request.match_info["attachment"]))
        if found is None:
            return web.Response(status=404)
        return web.Response(body=found.data, content_type=found.content_type)

    def _unknown(self) -> str:
        return f"unknown routes: {[f'{call.method} {call.path}' for call in self.unknown]}"


__all__ = ["Channel", "DiscordServer", "GatewayFrame", "Message", "RecordedRequest", "Role", "User"]

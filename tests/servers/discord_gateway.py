"""The gateway of the loopback Discord: HELLO, heartbeats, IDENTIFY, RESUME with replay, shards, members.

Modelled: sessions that outlive their socket, numbered events kept for replay, intents (a session without
MESSAGE_CONTENT is sent empty texts, one without GUILD_MEMBERS no member list), shards, limits of IDENTIFY,
the close codes 4001, 4003, 4004, 4009, 4010, 4011 and 4014, the op codes 1, 7, 9, 10, 11.  Not modelled:
compression (TEXT frames are allowed whatever was asked for), presences, ETF, closing a connection that sends
no heartbeats.

Each session gets the events of its own shard, so two sessions of one shard both get every event, and sessions
may differ in how many shards there are.  A session without `shard` gets everything, and is not held to the
pause between IDENTIFYs: the tests start such bots one right after another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WSMsgType, web

from tests.servers.discord_http import Call
from tests.servers.discord_limits import IdentifyLimits
from tests.servers.discord_payloads import guild_create
from tests.servers.discord_socket import GatewayFrame, Session, Socket
from tests.servers.discord_things import Guild, Json
from tests.servers.discord_world import World

GUILDS, GUILD_MEMBERS, GUILD_MESSAGES, GUILD_REACTIONS = 1 << 0, 1 << 1, 1 << 9, 1 << 10
DIRECT_MESSAGES, DIRECT_REACTIONS, MESSAGE_CONTENT = 1 << 12, 1 << 13, 1 << 15

OP_NAMES = {1: "heartbeat", 2: "identify", 3: "presence", 4: "voice", 6: "resume", 8: "request_members"}
ENDED_BY_CLIENT = (1000, 1001)  # close codes after which a session cannot be resumed


class Gateway:
    """All sockets and sessions; `ring` is called after each frame so that waiting tests look again."""

    def __init__(
        self, world: World, *, token: str, limits: IdentifyLimits, ring: Callable[[], Awaitable[None]]
    ) -> None:
        self._world = world
        self._token = token
        self._ring = ring
        self.limits = limits
        self.recommended_shards = 1
        self.guilds_per_shard = 2500  # a shard with more guilds is refused: sharding required
        self.url = ""  # known once the port is
        self.heartbeat_interval = 41.25
        self.mute_acks = False
        self.disallowed_intents = 0
        self.log: list[GatewayFrame] = []
        self.sessions: dict[str, Session] = {}
        self.sockets: dict[Socket, Session | None] = {}
        self.ready_instead: list[Json] = []  # each takes the place of one READY
        self.more_guilds: list[Any] = []  # what READY lists besides the guild
        self.door = asyncio.Event()  # shut during an outage: a new socket waits before it
        self.door.set()

    def table(self) -> list[tuple[str, str, Any]]:
        """The REST route of the gateway."""
        return [("GET", "/gateway/bot", self.about)]

    async def about(self, call: Call) -> Json:
        """Where the gateway is, how many shards it recommends, and how often the bot may still IDENTIFY."""
        starts = self.limits.payload()
        return {"url": self.url, "shards": self.recommended_shards, "session_start_limit": starts}

    def dispatch(self, event: str, data: Json, *, intent: int = 0, guild_id: int | None = None) -> None:
        """Sends an event to every session that asked for it, and keeps it for those whose socket is gone.

        Without a guild it is for the sessions of shard 0.
        """
        for session in self.sessions.values():
            if session.hears(guild_id) and (not intent or session.intents & intent):
                session.dispatch(event, self._visible(session, event, data))

    def announce_guild(self, guild: Guild) -> None:
        """GUILD_CREATE for a guild that the world already has."""
        for session in self.sessions.values():
            if session.hears(guild.id):
                self._send_guild(session, guild)

    def connected(self, shard: tuple[int, int]) -> list[Session]:
        """The sessions of this shard, of so many, that have a connection now; oldest first."""
        return [one for one in self.sessions.values() if one.shard == shard and one.socket is not None]

    def drop(self, code: int | None, *, only: Session | None = None) -> None:
        """Closes every socket with this code, or cuts the line when it is None; the sessions live on."""
        for socket, session in list(self.sockets.items()):
            if only is not None and session is not only:
                continue
            self._detach(socket, session)
            if code is None:
                socket.abort()
            else:
                socket.close(code)

    def invalidate(self, *, only: Session | None = None) -> None:
        """Forgets every session and says so: op 9, not resumable."""
        for ended in [only] if only is not None else list(self.sessions.values()):
            self.sessions.pop(ended.id, None)
        for socket, session in self.sockets.items():
            if only is None or session is only:
                self.sockets[socket] = None
                socket.send(9, False)

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """One connection from HELLO to its end."""
        await self.door.wait()
        ws = web.WebSocketResponse(timeout=1.0, max_msg_size=0)
        await ws.prepare(request)
        socket = Socket(ws, request.transport)
        self.sockets[socket] = None
        socket.send(10, {"heartbeat_interval": int(self.heartbeat_interval * 1000), "_trace": []})
        writer = asyncio.create_task(socket.write())
        try:
            async for frame in ws:
                if frame.type is WSMsgType.TEXT:
                    await self._received(socket, json.loads(frame.data))
        finally:
            session = self.sockets.get(socket)
            self._detach(socket, session)
            if session is not None and ws.close_code in ENDED_BY_CLIENT:
                self.sessions.pop(session.id, None)
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer
            await self._ring()
        return ws

    async def _received(self, socket: Socket, frame: Json) -> None:
        if socket not in self.sockets:
            return  # dropped, its last frames still in flight
        op, data = frame["op"], frame["d"]
        self.log.append(GatewayFrame(OP_NAMES.get(op, f"op {op}"), data))
        if op == 1:
            if not self.mute_acks:
                socket.send(11)
        elif op == 2:
            self._identify(socket, data)
        elif op == 6:
            self._resume(socket, data)
        elif op not in OP_NAMES:
            socket.close(4001)
        elif self.sockets[socket] is None:
            socket.close(4003)
        elif op == 8:
            self._send_members(socket, data)
        await self._ring()

    def _identify(self, socket: Socket, data: Json) -> None:
        shard = data.get("shard")
        number, count = shard if _is_shard(shard) else (0, 1)
        if data["token"] != self._token:
            socket.close(4004)
        elif data["intents"] & self.disallowed_intents:
            socket.close(4014)
        elif shard is not None and not _is_shard(shard):
            socket.close(4010)
        elif len(self._guilds_of((number, count))) > self.guilds_per_shard:
            socket.close(4011)
        elif not self.limits.spend():
            self.sessions.clear()  # Discord also makes the token invalid
            self.drop(4004)
        elif shard is not None and not self.limits.admit((number, count)):
            socket.send(9, False)
        else:
            session = Session(secrets.token_hex(16), data["intents"], (number, count), socket)
            self._open(session, socket, named={} if shard is None else {"shard": shard})

    def _open(self, session: Session, socket: Socket, *, named: Json) -> None:
        """READY with the guilds of the shard, then each of them; `named` is the shard as it was asked for."""
        self.sessions[session.id] = self.sockets[socket] = session
        ready = self.ready_instead.pop(0) if self.ready_instead else {**self._ready(session), **named}
        session.dispatch("READY", ready)
        for guild in self._guilds_of(session.shard):
            self._send_guild(session, guild)

    def _resume(self, socket: Socket, data: Json) -> None:
        session = self.sessions.get(data["session_id"])
        if data["token"] != self._token:
            socket.close(4004)
        elif session is None or data["seq"] is None or data["seq"] > len(session.events):
            socket.send(9, False)
        else:
            if session.socket is not None:
                session.socket.close(4009)
                self._detach(session.socket, session)
            self.sockets[socket] = session
            session.socket = socket
            session.replay(data["seq"])

    def _detach(self, socket: Socket, session: Session | None) -> None:
        self.sockets.pop(socket, None)
        if session is not None and session.socket is socket:
            session.socket = None

    def _guilds_of(self, shard: tuple[int, int]) -> list[Guild]:
        number, count = shard
        return [guild for guild in self._world.guilds.values() if guild.shard(count) == number]

    def _send_guild(self, session: Session, guild: Guild) -> None:
        everyone = bool(session.intents & GUILD_MEMBERS)
        session.dispatch("GUILD_CREATE", guild_create(self._world, guild, everyone=everyone))

    def _ready(self, session: Session) -> Json:
        world = self._world
        guilds = [{"id": str(guild.id), "unavailable": True} for guild in self._guilds_of(session.shard)]
        return {
            "v": 10,
            "user": world.bot.payload(),
            "guilds": [*guilds, *self.more_guilds],
            "session_id": session.id,
            "resume_gateway_url": self.url,
            "application": {"id": str(world.application_id), "flags": 0},
            "session_type": "normal",
            "private_channels": [],
        }

    def _send_members(self, socket: Socket, data: Json) -> None:
        """Answers a request for members, by ids or by a prefix of the name, in one chunk.

        A guild of another shard gets no answer.
        """
        session, guild = self.sockets[socket], self._world.guilds.get(int(data["guild_id"]))
        assert session is not None
        if guild is None or not session.hears(guild.id):
            return
        prefix = (data.get("query") or "").lower()
        wanted = {int(found) for found in data.get("user_ids") or []}
        members = [
            guild.member_payload(user)
            for user in guild.members.values()
            if (user.id in wanted if wanted else user.name.lower().startswith(prefix))
        ]
        chunk = {"guild_id": str(guild.id), "members": members, "chunk_index": 0, "chunk_count": 1}
        session.dispatch("GUILD_MEMBERS_CHUNK", {**chunk, "nonce": data.get("nonce")})

    def _visible(self, session: Session, event: str, data: Json) -> Json:
        """Without the MESSAGE_CONTENT intent a stranger's text in a guild comes empty, as at Discord."""
        if event not in ("MESSAGE_CREATE", "MESSAGE_UPDATE") or session.intents & MESSAGE_CONTENT:
            return data
        own = str(self._world.bot.id)
        named = [data["author"]["id"], *(user["id"] for user in data["mentions"])]
        if "guild_id" not in data or own in named:
            return data
        return {**data, "content": "", "embeds": [], "attachments": [], "components": []}


def _is_shard(shard: object) -> bool:
    """Whether this is a number of a shard and how many there are."""
    if not isinstance(shard, list) or len(shard) != 2 or not all(type(part) is int for part in shard):
        return False
    return 0 <= shard[0] < shard[1]

"""The gateway of the loopback Discord: HELLO, heartbeats, IDENTIFY, RESUME with replay, member chunks.

Modelled: sessions that outlive their socket, numbered events kept for replay, intents (a session without
MESSAGE_CONTENT is sent empty texts, one without GUILD_MEMBERS no member list), the close codes 4001, 4003,
4004, 4009 and 4014, the op codes 1, 7, 9, 10, 11.  Not modelled: compression (TEXT frames are allowed
whatever was asked for), sharding, presences, identify rate limits, ETF.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.servers.discord_world import Json, World

GUILDS, GUILD_MEMBERS, GUILD_MESSAGES, GUILD_REACTIONS = 1 << 0, 1 << 1, 1 << 9, 1 << 10
DIRECT_MESSAGES, DIRECT_REACTIONS, MESSAGE_CONTENT = 1 << 12, 1 << 13, 1 << 15

OP_NAMES = {1: "heartbeat", 2: "identify", 3: "presence", 4: "voice", 6: "resume", 8: "request_members"}


@dataclass(frozen=True)
class GatewayFrame:
    """One frame received from the client: its name (`identify`, `resume`, `heartbeat` ..) and its data."""

    name: str
    data: Any


class Socket:
    """One websocket; frames leave in order through an outbox, so that any code may send without waiting."""

    def __init__(self, ws: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self._ws = ws
        self._transport = transport
        self._outbox: asyncio.Queue[str | int] = asyncio.Queue()

    def send(self, op: int, data: Any = None, *, seq: int | None = None, event: str | None = None) -> None:
        self._outbox.put_nowait(json.dumps({"op": op, "d": data, "s": seq, "t": event}))

    def send_text(self, frame: str) -> None:
        """Sends a frame as it is, whatever it holds."""
        self._outbox.put_nowait(frame)

    def close(self, code: int) -> None:
        """Closes with this code, after what is already in the outbox."""
        self._outbox.put_nowait(code)

    def abort(self) -> None:
        """Cuts the line: no close frame, and what was in the outbox is lost."""
        if self._transport is not None:
            self._transport.abort()

    async def write(self) -> None:
        """Empties the outbox until a close code comes or the line is cut."""
        with contextlib.suppress(ConnectionError):
            while isinstance(item := await self._outbox.get(), str):
                await self._ws.send_str(item)
            await self._ws.close(code=item)


@dataclass(eq=False)
class Session:
    """A gateway session: its intents and every event it was ever sent, numbered from 1 for RESUME."""

    id: str
    intents: int
    socket: Socket | None
    events: list[tuple[str, Json]] = field(default_factory=list)

    def dispatch(self, event: str, data: Json) -> None:
        self.events.append((event, data))
        if self.socket is not None:
            self.socket.send(0, data, seq=len(self.events), event=event)

    def replay(self, after: int) -> None:
        """Sends again what came after this number, then says RESUMED."""
        assert self.socket is not None
        for seq, (event, data) in enumerate(self.events[after:], start=after + 1):
            self.socket.send(0, data, seq=seq, event=event)
        self.dispatch("RESUMED", {})


class Gateway:
    """All sockets and sessions; `ring` is called after each frame so that waiting tests look again."""

    def __init__(self, world: World, *, token: str, ring: Callable[[], Awaitable[None]]) -> None:
        self._world = world
        self._token = token
        self._ring = ring
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

    def dispatch(self, event: str, data: Json, *, intent: int = 0) -> None:
        """Sends an event to every session that asked for it, and keeps it for those whose socket is gone."""
        for session in self.sessions.values():
            if not intent or session.intents & intent:
                session.dispatch(event, self._visible(session, event, data))

    def drop(self, code: int | None) -> None:
        """Closes every socket with this code, or cuts the line when it is None; the sessions live on."""
        for socket, session in list(self.sockets.items()):
            self._detach(socket, session)
            if code is None:
                socket.abort()
            else:
                socket.close(code)

    def invalidate(self) -> None:
        """Forgets every session and says so: op 9, not resumable."""
        self.sessions.clear()
        for socket in self.sockets:
            self.sockets[socket] = None
            socket.send(9, False)

    def send_all(self, op: int) -> None:
        for socket in self.sockets:
            socket.send(op)

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
            self._detach(socket, self.sockets.get(socket))
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
        if data["token"] != self._token:
            socket.close(4004)
        elif data["intents"] & self.disallowed_intents:
            socket.close(4014)
        else:
            session = Session(secrets.token_hex(16), data["intents"], socket)
            self.sessions[session.id] = self.sockets[socket] = session
            ready = self.ready_instead.pop(0) if self.ready_instead else self._ready(session)
            session.dispatch("READY", ready)
            session.dispatch("GUILD_CREATE", self._guild_create(session))

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

    def _ready(self, session: Session) -> Json:
        world = self._world
        return {
            "v": 10,
            "user": world.bot.payload(),
            "guilds": [{"id": str(world.guild_id), "unavailable": True}, *self.more_guilds],
            "session_id": session.id,
            "resume_gateway_url": self.url,
            "application": {"id": str(world.application_id), "flags": 0},
            "session_type": "normal",
            "private_channels": [],
        }

    def _guild_create(self, session: Session) -> Json:
        world = self._world
        everyone = list(world.members.values())
        shown = everyone if session.intents & GUILD_MEMBERS else [world.bot]
        channels = [channel for channel in world.channels.values() if not channel.is_dm]
        return {
            **world.guild_payload(),
            "unavailable": False,
            "large": False,
            "joined_at": world.bot.member_payload()["joined_at"],
            "member_count": len(everyone),
            "members": [user.member_payload() for user in shown],
            "channels": [world.channel_payload(found) for found in channels if not found.is_thread],
            "threads": [
                world.channel_payload(found) for found in channels if found.is_thread and not found.archived
            ],
            "voice_states": [],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }

    def _send_members(self, socket: Socket, data: Json) -> None:
        """Answers a request for members, by ids or by a prefix of the name, in one chunk."""
        session = self.sockets[socket]
        assert session is not None
        prefix = (data.get("query") or "").lower()
        wanted = {int(found) for found in data.get("user_ids") or []}
        members = [
            user.member_payload()
            for user in self._world.members.values()
            if (user.id in wanted if wanted else user.name.lower().startswith(prefix))
        ]
        chunk = {
            "guild_id": str(self._world.guild_id),
            "members": members,
            "chunk_index": 0,
            "chunk_count": 1,
        }
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

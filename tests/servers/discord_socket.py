"""One connection to the loopback gateway, and the session that lives on when the connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.servers.discord_things import Json, shard_of


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
    """A gateway session: its intents and every event it was ever sent, numbered from 1 for RESUME.

    One that asked for no shard has `(0, 1)`, the only one of one.
    """

    id: str
    intents: int
    shard: tuple[int, int]
    socket: Socket | None
    events: list[tuple[str, Json]] = field(default_factory=list)

    def hears(self, guild_id: int | None) -> bool:
        """Whether events of this guild are for this session's shard; None stands for direct messages."""
        number, count = self.shard
        return shard_of(guild_id or 0, count) == number

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

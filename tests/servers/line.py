"""A line between a client and a server on loopback, which a test delays, holds or cuts.

    with Line(postgres.port) as line:
        url = line.url(database)

It works in a thread of its own, so that both ends may block, or be in other processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

HOST = "127.0.0.1"
CHUNK = 1 << 16
REMEMBERED = 100
"""Bytes in which a word is looked for that arrives in two pieces."""


@dataclass
class _Trap:
    """What the next connection to be dropped sends: a word in it, or so many bytes more."""

    what: bytes | int
    delivered: bool

    def hit(self, before: bytes, data: bytes) -> bool:
        if isinstance(self.what, bytes):
            return self.what in before + data
        self.what -= len(data)
        return self.what <= 0


class Line:
    """Forwards connections to its own `port` to a server's port, as long as the block lasts."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._delay_s = 0.0
        self._trap: _Trap | None = None
        self._connections: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._ready = threading.Event()
        self.accepted = 0
        """How many connections there were so far."""
        self.sprung = threading.Event()
        """Set once `cut_before` or `cut_after` has cut a connection."""

    def __enter__(self) -> Line:
        self._socket = _reserved(0)
        self.port: int = self._socket.getsockname()[1]
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def url(self, url: str) -> str:
        """The address of the same thing through this line."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}{HOST}:{self.port}").geturl()

    # ---- what a test does with it

    def delay(self, seconds: float) -> None:
        """Let each thing that a client sends arrive later by this, and so each answer too."""
        self._delay_s = seconds

    def hold(self) -> None:
        """Keep connections open and accept new ones, but let nothing through, as a split network does."""
        self._do(self._hold())

    def cut(self) -> None:
        """Drop all connections and refuse new ones."""
        self._do(self._cut())

    def mend(self) -> None:
        """Be an ordinary line again: held data arrives, new connections are accepted."""
        self._do(self._mend())

    def lead_to(self, server_port: int) -> None:
        """Lead to another server from now on, and drop the connections to the one before."""
        self._server_port = server_port
        self.cut()
        self.mend()

    def cut_before(self, what: bytes | int) -> None:
        """Drop the connection that next sends this word, or the so-manyth byte; the server never gets it."""
        self._set(_Trap(what, delivered=False))

    def cut_after(self, what: bytes | int) -> None:
        """The same, but the server does get it, and the connection is dropped in place of its answer."""
        self._set(_Trap(what, delivered=True))

    # ---- below, in the thread

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _set(self, trap: _Trap) -> None:
        self.sprung.clear()
        self._trap = trap

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over, self._flows = asyncio.Event(), asyncio.Event()
        self._listens = False
        await self._mend()
        self._ready.set()
        await self._over.wait()
        await self._cut()
        self._socket.close()

    async def _mend(self) -> None:
        self._delay_s, self._trap = 0.0, None
        self._flows.set()
        if not self._listens:
            self._socket.listen()
            self._socket.setblocking(False)
            self._loop.add_reader(self._socket, self._accept)
            self._listens = True

    async def _hold(self) -> None:
        self._flows.clear()

    async def _cut(self) -> None:
        if self._listens:
            self._loop.remove_reader(self._socket)
            with self._socket:
                self._socket = _reserved(self.port)
            self._listens = False
        for one in self._connections:
            one.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self) -> None:
        """Accept a connection. No server of asyncio does: one that is closed meanwhile leaves it open."""
        with contextlib.suppress(OSError):  # the client is gone again
            connection, _ = self._socket.accept()
            self.accepted += 1
            task = asyncio.create_task(self._forward(connection))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            task.add_done_callback(lambda _: connection.close())  # also if the task never began

    async def _forward(self, connection: socket.socket) -> None:
        """One connection, until either end closes it or the line is cut."""
        ends: list[asyncio.StreamWriter] = []
        try:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(sock=connection)
                ends.append(writer)
                await self._flows.wait()
                answers, server = await asyncio.open_connection(HOST, self._server_port)
                ends.append(server)
                await self._exchange((reader, writer), (answers, server))
            for one in ends:
                one.close()
            for one in ends:
                with contextlib.suppress(OSError):
                    await one.wait_closed()
        except asyncio.CancelledError:
            for one in ends:
                one.transport.abort()  # and no raise: asyncio would log the cancelled task of a connection

    async def _exchange(self, client: _End, server: _End) -> None:
        """Carry both ways until one of them ends."""
        dropped = asyncio.Event()  # in place of the answer that comes next
        ways = [
            asyncio.create_task(self._requests(client[0], server[1], dropped)),
            asyncio.create_task(self._answers(server[0], client[1], dropped)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in ways:
                one.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(
        self, client: asyncio.StreamReader, server: asyncio.StreamWriter, dropped: asyncio.Event
    ) -> None:
        before = b""
        while data := await client.read(CHUNK):
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            await self._flows.wait()
            if (trap := self._trap) and trap.hit(before, data):
                self._trap = None
                if not trap.delivered:
                    self.sprung.set()
                    return
                dropped.set()
            before = (before + data)[-REMEMBERED:]
            server.write(data)
            await server.drain()

    async def _answers(
        self, server: asyncio.StreamReader, client: asyncio.StreamWriter, dropped: asyncio.Event
    ) -> None:
        while data := await server.read(CHUNK):
            await self._flows.wait()
            if dropped.is_set():
                self.sprung.set()
                return
            client.write(data)
            await client.drain()


_End = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def _reserved(port: int) -> socket.socket:
    """A socket that refuses connections until somebody listens at it; several may hold one port."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((HOST, port))
    return one

"""A port on this machine that passes every connection on to another one, and can cut them all at once.

Knows nothing about what is sent.
"""

import asyncio
import contextlib
from typing import Final

_CHUNK_BYTES: Final = 65_536


class PortForward:
    """Listens on 127.0.0.1. A connection waits until `lead_to` has said where to, and ends with `cut`."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._target = 0
        self._leads = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self, port: int) -> int:
        """Listen on this port, 0 for any free one. Returns the port. Raises OSError."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        return int(self._server.sockets[0].getsockname()[1])

    def lead_to(self, target: int) -> None:
        """Pass connections on to this port from now on, also those that wait."""
        self._target = target
        self._leads.set()

    def cut(self) -> None:
        """End all connections. New ones wait for the next `lead_to`."""
        self._leads.clear()
        for connection in self._connections:
            connection.cancel()

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        connection.add_done_callback(lambda _: writer.close())  # also when it never began

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await self._leads.wait()
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target)
            with contextlib.closing(target_writer):
                await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the reader's end, and then close the writer, so that the other direction ends too."""
    with contextlib.closing(writer), contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()

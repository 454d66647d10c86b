"""A small HTTP server on an address of this machine: a service around an `aiohttp` application.

Knows nothing about what it serves.
"""

import asyncio
import errno
import logging
import os
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from discoclaw.core.errors import SettingsError
from discoclaw.settings_types import Listen

CLOSE_S = 1.0
"""How long closing waits for requests that are being answered."""
MOST_CONNECTIONS: Final = 64
"""The most connections at once. Each takes a file descriptor, which the bot needs for Discord and its disk,
and nothing else ends one that never asks."""


class _OnlyThatItFailed(logging.Filter):
    """Keeps what isn't HTTP out of the log: there may be a token in it, and it isn't an error of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError | web.RequestPayloadError):
            record.exc_info = None
            record.levelno, record.levelname = logging.INFO, "INFO"
        return True


_requests: Final = logging.getLogger(f"{__name__}.requests")
_requests.addFilter(_OnlyThatItFailed())


class Listener:
    """Serves `app` at an address. It is a `core.ports.Service`. `variable` is the setting that named it."""

    def __init__(self, app: web.Application, at: Listen, variable: str) -> None:
        self._runner = web.AppRunner(app, access_log=None, logger=_requests, shutdown_timeout=CLOSE_S)
        self._at = at
        self._variable = variable
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port that it listens at, once it does: another one than asked for if that was 0."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen. Raises SettingsError if the address can't be used."""
        await self._runner.setup()
        try:
            loop = asyncio.get_running_loop()
            # What `web.TCPSite` does, which takes any number of connections.
            self._server = await loop.create_server(self._connection, self._at.host, self._at.port)
        except OSError as error:
            await self._runner.cleanup()
            raise SettingsError(f"{self._variable}={self._at}: {_why_not(error)}") from None

    async def settle(self) -> None:
        """Do nothing: each request is answered at once."""

    async def close(self) -> None:
        """Stop listening. May be called again."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        """The protocol of a new connection. The oldest ones make room for it."""
        server = self._runner.server
        assert server is not None  # while anybody can connect
        for old in server.connections[: 1 - MOST_CONNECTIONS]:
            old.force_close()
        return server()


def _why_not(error: OSError) -> str:
    """The reason, and the way out; asyncio's own text repeats the address."""
    number = error.errno or 0
    if number == errno.EADDRINUSE:
        return "can't listen there: another program uses this port; choose another one, or stop that program"
    reason = os.strerror(number) if number in errno.errorcode else error.strerror or str(error)
    return f"can't listen there ({reason}); choose another address or port"

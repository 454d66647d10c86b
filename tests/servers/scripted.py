"""A loopback HTTP server that does what a test scripts: what the servers of model APIs have in common.

    server.script(failure(500), stall())        # for the coming requests, in order
    await server.wait_for_requests(2)

A server derives from `ScriptedServer` and answers in `_handle`. Knows no API, and nothing about DiscoClaw.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from aiohttp import web

Received = TypeVar("Received")
Behaviour = TypeVar("Behaviour")


@dataclass(frozen=True)
class Raw:
    """A status and a body of any bytes."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def response(self) -> web.Response:
        return web.Response(body=self.body, status=self.status, headers=dict(self.headers))


@dataclass(frozen=True)
class Held:
    """A good answer, once the event is set; without one, never."""

    until: asyncio.Event | None = None

    async def wait(self) -> None:
        await (self.until or asyncio.Event()).wait()


@dataclass(frozen=True)
class Cut:
    """The connection is closed in the middle of the answer."""

    async def answer(self, request: web.Request, begun: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": "1000"})
        await response.prepare(request)
        await response.write(begun)
        abort(request)
        return response


def failure(status: int, **headers: str) -> Raw:
    """An HTTP error that repeats the key, as some do; `retry_after="1"` becomes the header retry-after."""
    return Raw(b'{"error": {"message": "Incorrect API key provided: sk-secret"}}', status, named(headers))


def stall() -> Held:
    """Never answers."""
    return Held()


def named(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers from keyword arguments."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def headers_of(request: web.Request) -> dict[str, str]:
    """A request's headers, with lower-case names."""
    return {name.lower(): value for name, value in request.headers.items()}


def abort(request: web.Request) -> None:
    """Drop the connection without an end."""
    assert request.transport is not None
    request.transport.abort()


class ScriptedServer(ABC, Generic[Received, Behaviour]):
    """An async context manager that answers POST requests to `paths`. `url` is its address once it runs."""

    paths: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.requests: list[Received] = []
        """What arrived, in order."""
        self.url = ""
        self._queue: deque[Behaviour] = deque()
        self._arrived = asyncio.Condition()

    def script(self, *behaviours: Behaviour) -> None:
        """Append behaviours for the coming requests."""
        self._queue.extend(behaviours)

    async def wait_for_requests(self, count: int, *, timeout_s: float = 30.0) -> None:
        """Return once `count` requests have arrived in all."""
        async with asyncio.timeout(timeout_s), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        for path in self.paths:
            app.router.add_post(path, self._handle)
        self._add_routes(app)
        # The handler is cancelled when the client goes away.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def _add_routes(self, app: web.Application) -> None:
        """Routes besides the POST ones."""

    @abstractmethod
    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Record the request, and answer it."""

    async def _record(self, received: Received) -> None:
        async with self._arrived:
            self.requests.append(received)
            self._arrived.notify_all()

    def _next(self) -> Behaviour | None:
        """The next scripted behaviour, if any is left."""
        return self._queue.popleft() if self._queue else None

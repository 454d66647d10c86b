"""A loopback server of transcriptions, in OpenAI's form: good and bad.

    async with TranscriptionServer() as server:
        server.says[b"the bytes of a recording"] = "What is said in it."
        server.script(failure(500), stall())
        HttpTranscriber(base_url=server.url, model="whisper-1", key="k")
        ...
        assert server.requests[0].audio == b"the bytes of a recording"

Each request takes the next scripted behaviour, else `default`, else it is answered with what `says` has for
its recording. Knows nothing about DiscoClaw.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from aiohttp import BodyPartReader, web


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are lower-case."""

    fields: Mapping[str, str]
    audio: bytes
    name: str
    type: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Raw:
    """A status and a body of any bytes."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Held:
    """A good answer, once the event is set; without one, never."""

    until: asyncio.Event | None = None


@dataclass(frozen=True)
class Cut:
    """The connection is closed in the middle of the answer."""


Behaviour = Raw | Held | Cut


def failure(status: int) -> Raw:
    """An HTTP error that repeats the key, as some do."""
    return Raw(b'{"error": {"message": "Incorrect API key provided: sk-secret"}}', status)


def stall() -> Held:
    """Never answers."""
    return Held()


class TranscriptionServer:
    """The server; an async context manager."""

    def __init__(self) -> None:
        self.default: Behaviour | None = None
        self.says: dict[bytes, str] = {}
        self.requests: list[Received] = []
        self._queue: deque[Behaviour] = deque()
        self._arrived = asyncio.Condition()
        self.url = ""

    def script(self, *behaviours: Behaviour) -> None:
        """Append behaviours for the coming requests."""
        self._queue.extend(behaviours)

    async def wait_for_requests(self, number: int, *, timeout_s: float = 30.0) -> None:
        """Return once so many requests have arrived in all."""
        async with asyncio.timeout(timeout_s), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= number)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/audio/transcriptions", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        received = await _read(request)
        async with self._arrived:
            self.requests.append(received)
            self._arrived.notify_all()
        behaviour = self._queue.popleft() if self._queue else self.default
        match behaviour:
            case Raw():
                return web.Response(
                    body=behaviour.body, status=behaviour.status, headers=dict(behaviour.headers)
                )
            case Held():
                await (behaviour.until or asyncio.Event()).wait()
            case Cut():
                return await _cut(request)
        return web.json_response({"text": self.says[received.audio]})


async def _read(request: web.Request) -> Received:
    """The form of a request. It has exactly what OpenAI's form needs, each part once."""
    fields: dict[str, str] = {}
    audio, name, kind = b"", "", ""
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader) and part.name is not None and part.name not in fields
        if part.name == "file":
            audio, name = bytes(await part.read()), part.filename or ""
            kind = part.headers.get("content-type", "")
        else:
            fields[part.name] = await part.text()
    assert set(fields) == {"model", "response_format"}
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Received(fields, audio, name, kind, headers)


async def _cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"text": "I mo')
    assert request.transport is not None
    request.transport.abort()
    return response

"""A loopback server of embeddings, in OpenAI's form and in Ollama's: good and bad.

    async with EmbeddingsServer(same={"feline": "cat"}) as server:
        server.script(failure(429, retry_after="1"), stall())
        HttpEmbedder(OPENAI, model="m", base_url=server.openai_url, key="k")
        ...
        assert server.texts == ["what was sent", …]

A text's vector counts its words, each in a place of its own, so that texts with the same words are near each
other; `same` maps words to others that mean the same. Each request takes the next scripted behaviour, else
`default`, else it is answered well: OpenAI's form with its vectors in reverse order.
Knows nothing about DiscoClaw.
"""

import asyncio
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

Vectors = list[list[float]]


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are lower-case."""

    path: str
    model: str
    texts: list[str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Raw:
    """A status and a body of any bytes."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Shaped:
    """A good answer, but with its vectors changed."""

    change: Callable[[Vectors], Any]


@dataclass(frozen=True)
class Held:
    """A good answer, once the event is set; without one, never."""

    until: asyncio.Event | None = None


@dataclass(frozen=True)
class Cut:
    """The connection is closed in the middle of the answer."""


Behaviour = Raw | Shaped | Held | Cut


def failure(status: int, **headers: str) -> Raw:
    """An HTTP error that repeats the key, as some do; `retry_after="1"` becomes the header retry-after."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw(b'{"error": {"message": "Incorrect API key provided: sk-secret"}}', status, named)


def stall() -> Held:
    """Never answers."""
    return Held()


class EmbeddingsServer:
    """The server; an async context manager. `dims` is the length of its vectors."""

    def __init__(self, *, dims: int = 256, same: Mapping[str, str] | None = None) -> None:
        self.dims = dims
        self.default: Behaviour | None = None
        self.requests: list[Received] = []
        self._same = same or {}
        self._queue: deque[Behaviour] = deque()
        self._arrived = asyncio.Condition()
        self.url = ""

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def texts(self) -> list[str]:
        """All that was sent, in order."""
        return [text for request in self.requests for text in request.texts]

    def script(self, *behaviours: Behaviour) -> None:
        """Append behaviours for the coming requests."""
        self._queue.extend(behaviours)

    async def wait_for_text(self, text: str, *, timeout_s: float = 10.0) -> None:
        """Return once a text has been sent."""
        async with asyncio.timeout(timeout_s), self._arrived:
            await self._arrived.wait_for(lambda: text in self.texts)

    async def wait_for_requests(self, count: int, *, timeout_s: float = 10.0) -> None:
        """Return once `count` requests have arrived in all."""
        async with asyncio.timeout(timeout_s), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    def vector(self, text: str) -> list[float]:
        """The vector of a text."""
        vector = [0.0] * self.dims
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(self._same.get(word, word).encode()).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dims] += 1.0
        return vector

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/embeddings", self._handle)
        app.router.add_post("/api/embed", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        assert set(body) == {"model", "input"}
        assert body["input"] and all(isinstance(text, str) for text in body["input"])
        headers = {name.lower(): value for name, value in request.headers.items()}
        async with self._arrived:
            self.requests.append(Received(request.path, body["model"], body["input"], headers))
            self._arrived.notify_all()
        behaviour = self._queue.popleft() if self._queue else self.default
        vectors: Any = [self.vector(text) for text in body["input"]]
        match behaviour:
            case Raw():
                return web.Response(
                    body=behaviour.body, status=behaviour.status, headers=dict(behaviour.headers)
                )
            case Held():
                await (behaviour.until or asyncio.Event()).wait()
            case Shaped():
                vectors = behaviour.change(vectors)
            case Cut():
                return await _cut(request)
        answer = _openai(vectors) if request.path.startswith("/v1/") else {"embeddings": vectors}
        return web.Response(text=json.dumps(answer), content_type="application/json")


def _openai(vectors: Any) -> Any:
    if not isinstance(vectors, list):
        return {"data": vectors}
    data = [{"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(vectors)]
    return {"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


async def _cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"data": [')
    assert request.transport is not None
    request.transport.abort()
    return response

"""A loopback server of embeddings, in OpenAI's form and in Ollama's: good and bad.

    async with EmbeddingsServer(same={"feline": "cat"}) as server:
        server.script(failure(429, retry_after="1"), stall())
        HttpEmbedder(OPENAI, model="m", base_url=server.openai_url, key="k")
        ...
        assert server.texts == ["what was sent", …]

A text's vector counts its words, each in a place of its own, so that texts with the same words are near each
other; words that say nothing of what a text is about don't count. `same` maps words to others that mean the
same. Two texts of `related` have one word more in common: by default those with which the bot measures what
a model can tell. Each request takes the next scripted behaviour, else `default`, else it is answered well:
OpenAI's form with its vectors in reverse order.
Knows nothing else about DiscoClaw.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from discoclaw.recall.floor import PAIRS
from tests.servers.scripted import Cut, Held, Raw, ScriptedServer, headers_of
from tests.servers.scripted import failure as failure  # part of this module's interface
from tests.servers.scripted import stall as stall

Vectors = list[list[float]]

SMALL = re.compile(
    r"an?|and|at|do|does|for|has|have|how|is?|in|it|me|my|o[fnr]|s|that|the|their|to|user|was|we|what|when|"
    r"where|which|who|with|your?"
)
"""Words that texts have whatever they are about."""


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are lower-case."""

    path: str
    model: str
    texts: list[str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Shaped:
    """A good answer, but with its vectors changed."""

    change: Callable[[Vectors], Any]


Behaviour = Raw | Shaped | Held | Cut

FAULTS: Mapping[str, Behaviour] = {
    "401": failure(401),
    "404": failure(404),
    "429": failure(429),
    "500": failure(500),
    "cut": Cut(),
    "prose": Raw(b"prose"),
    "infinite": Raw(b'{"embeddings": [[1e999, 0]]}'),
    "count": Shaped(lambda vectors: []),
    "nan": Shaped(lambda vectors: [[float("nan")] * len(one) for one in vectors]),
}
"""What a provider may answer instead of vectors."""


class EmbeddingsServer(ScriptedServer[Received, Behaviour]):
    """The server; an async context manager. `dims` is the length of its vectors."""

    paths = ("/v1/embeddings", "/api/embed")

    def __init__(
        self,
        *,
        dims: int = 256,
        same: Mapping[str, str] | None = None,
        related: Iterable[tuple[str, str]] = PAIRS,
    ) -> None:
        super().__init__()
        self.dims = dims
        self.default: Behaviour | None = None
        self._same = same or {}
        self._subjects = {text: f"subject {number}" for number, pair in enumerate(related) for text in pair}

    @property
    def elsewhere(self) -> str:
        """The same server at an address that is not taken for this machine."""
        return self.url.replace("127.0.0.1", "0.0.0.0")

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def measured(self) -> Collection[str]:
        """The texts with which the bot measures what this model can tell."""
        return self._subjects.keys()

    @property
    def texts(self) -> list[str]:
        """All that was sent, in order."""
        return [text for request in self.requests for text in request.texts]

    async def wait_for_text(self, text: str, *, timeout_s: float = 10.0) -> None:
        """Return once a text has been sent."""
        async with asyncio.timeout(timeout_s), self._arrived:
            await self._arrived.wait_for(lambda: text in self.texts)

    def vector(self, text: str) -> list[float]:
        """The vector of a text."""
        words = [self._same.get(word, word) for word in re.findall(r"\w+", text.lower())]
        vector = [0.0] * self.dims
        for word in [word for word in words if not SMALL.fullmatch(word)] or words:
            vector[self._place(word)] += 1.0
        if subject := self._subjects.get(text):
            vector[self._place(subject)] += 1.5
        return vector

    def _place(self, word: str) -> int:
        return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % self.dims

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        assert set(body) == {"model", "input"}
        assert body["input"] and all(isinstance(text, str) for text in body["input"])
        await self._record(Received(request.path, body["model"], body["input"], headers_of(request)))
        vectors: Any = [self.vector(text) for text in body["input"]]
        match behaviour := self._next() or self.default:
            case Raw():
                return behaviour.response
            case Held():
                await behaviour.wait()
            case Shaped():
                vectors = behaviour.change(vectors)
            case Cut():
                return await behaviour.answer(request, b'{"data": [')
        answer = _openai(vectors) if request.path.startswith("/v1/") else {"embeddings": vectors}
        return web.Response(text=json.dumps(answer), content_type="application/json")


def _openai(vectors: Any) -> Any:
    if not isinstance(vectors, list):
        return {"data": vectors}
    data = [{"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(vectors)]
    return {"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}

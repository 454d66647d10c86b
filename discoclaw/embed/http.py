"""Embedding providers over HTTP: one request for each batch of texts, one bounded response, our own errors.

A batch has not too many texts, and not too many bytes. Nothing is retried here: only the caller knows whether
it can wait. Redirects are not followed, because texts and key may go only to the configured address. No error
text holds the key or anything the provider wrote.
"""

import asyncio
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from discoclaw.core.errors import EmbeddingError, EmbeddingRefused, EmbeddingUnavailable
from discoclaw.core.model import Usage
from discoclaw.core.usage import used
from discoclaw.embed.responses import Reader, Vector, read
from discoclaw.http import Client, Failed, within

MAX_RESPONSE = 16_000_000
"""Longest accepted response, in bytes: 64 vectors of 8192 numbers take about 11 MB as JSON."""


@dataclass(frozen=True, slots=True)
class Api:
    """A provider's HTTP API: the path of the request, and how to find the vectors in the response.

    `key_variable` names the setting that holds the key, for the error when the provider rejects it.
    """

    provider: str
    path: str
    find: Reader
    key_variable: str = "EMBEDDING_API_KEY"


class HttpEmbedder:
    """The port `Embedder` over HTTP. `base_url` is without the API's path.

    `dims` is the expected length of a vector, None for any. Raises ValueError when `base_url` can't be
    parsed.
    """

    def __init__(
        self, api: Api, *, model: str, base_url: str, key: str | None = None, dims: int | None = None
    ) -> None:
        self._api = api
        self._model = model
        self._server = Client(base_url.rstrip("/") + api.path, most=MAX_RESPONSE, key=key)
        self._dims = dims

    @property
    def name(self) -> str:
        return f"{self._api.provider}/{self._model}"

    @property
    def stays_here(self) -> bool:
        """Whether the texts stay on this machine: the address is a loopback one."""
        host = self._server.host or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    async def embed(self, texts: Sequence[str], *, timeout_s: float) -> Sequence[Sequence[float]]:
        """A vector for each text. `timeout_s` covers all requests together. Raises EmbeddingError."""
        vectors: list[Vector] = []
        try:
            async with within(timeout_s):
                for batch in batches(texts):
                    vectors += await self._post(batch)
        except Failed as failed:
            raise self._ours(failed) from None
        if len({len(vector) for vector in vectors}) > 1:
            raise EmbeddingRefused(f"{self._where}: its vectors differ in length")
        return vectors

    async def close(self) -> None:
        await self._server.close()

    @property
    def _where(self) -> str:
        """The provider for log and errors."""
        return f"{self.name} at {self._server.host}"

    async def _post(self, texts: list[str]) -> list[Vector]:
        """The vectors of one batch. Raises Failed and EmbeddingRefused."""
        body = await self._server.post(
            json={"model": self._model, "input": [_sendable(text) for text in texts]}
        )
        try:
            vectors, tokens = await asyncio.to_thread(read, body, len(texts), self._api.find, dims=self._dims)
        except EmbeddingRefused as error:
            raise EmbeddingRefused(f"{self._where}: {error}") from None
        used(self._model, Usage(tokens))
        return vectors

    def _ours(self, failed: Failed) -> EmbeddingError:
        what = f"{self._where} {failed}"
        if failed.why == "unavailable":
            return EmbeddingUnavailable(what, after_s=failed.after_s)
        if failed.why in ("refused", "too long"):
            return EmbeddingRefused(what)
        if failed.why == "key":
            return EmbeddingError(f"{what}: it does not accept the key; check {self._api.key_variable}")
        return EmbeddingError(f"{what}: check EMBEDDING_MODEL and EMBEDDING_BASE_URL")


def _sendable(text: str) -> str:
    """Text without lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


# ---------------------------------------------------------------------- batches

MAX_TEXTS = 64
"""Texts in one request."""
MAX_BYTES = 100_000
"""UTF-8 bytes of the texts of one request."""
MAX_TEXT_CHARS = 8000
"""Characters of one text; the rest is cut off. Models read some thousand tokens and reject longer input."""


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in order, cut to `MAX_TEXT_CHARS`, at most `MAX_TEXTS` and `MAX_BYTES` at a time."""
    batch: list[str] = []
    size = 0
    for text in (text[:MAX_TEXT_CHARS] for text in texts):
        length = len(text.encode("utf-8", "replace"))
        if batch and (len(batch) == MAX_TEXTS or size + length > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch

"""Providers over HTTP: one request for each batch of texts, one bounded answer, errors of ours.

Nothing is retried here: whoever asks knows whether it can wait. Redirects are not followed, since texts and
key go to the address that was set and nowhere else. No error has the key, or anything a provider wrote.
"""

import asyncio
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiohttp
import yarl

from discoclaw.core.errors import EmbeddingError, EmbeddingRefused, EmbeddingUnavailable
from discoclaw.embed.answers import Reader, Vector, read
from discoclaw.embed.batches import batches

MOST_ANSWER = 16_000_000
"""Bytes of an answer that are read: 64 vectors of 8192 numbers take about 11 MB."""
_REFUSED = (400, 413, 422)
_LATER = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Form:
    """How a provider is asked: the address of the request, and how its answer is read.

    `key_variable` is the setting that a refused key is in.
    """

    provider: str
    path: str
    find: Reader
    key_variable: str = "EMBEDDING_API_KEY"


class HttpEmbedder:
    """The port `Embedder`, over HTTP. `base_url` is without the form's path; `dims` None for any length."""

    def __init__(
        self, form: Form, *, model: str, base_url: str, key: str | None = None, dims: int | None = None
    ) -> None:
        self._form = form
        self._model = model
        self._url = yarl.URL(base_url.rstrip("/") + form.path)
        self._headers: Mapping[str, str] = {
            "Accept-Encoding": "identity",  # a small answer could unpack to a huge one
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }
        self._dims = dims
        self._session: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        return f"{self._form.provider}/{self._model}"

    @property
    def stays_here(self) -> bool:
        """Whether the provider's address is one of this machine itself."""
        host = self._url.host or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    async def embed(self, texts: Sequence[str], *, timeout_s: float) -> Sequence[Sequence[float]]:
        """A vector for each text. `timeout_s` is for all of it. Raises EmbeddingError."""
        vectors: list[Vector] = []
        try:
            async with asyncio.timeout(timeout_s):
                for batch in batches(texts):
                    vectors += await self._post(batch)
        except TimeoutError:
            raise EmbeddingUnavailable(f"{self._where} gave no answer within {timeout_s:g} s") from None
        if len({len(vector) for vector in vectors}) > 1:
            raise EmbeddingRefused(f"{self._where}: its vectors differ in length")
        return vectors

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def _where(self) -> str:
        """The provider as it may be logged: an address can hold a password."""
        return f"{self.name} at {self._url.host}"

    async def _post(self, texts: list[str]) -> list[Vector]:
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False)
        ask = {"model": self._model, "input": [_sendable(text) for text in texts]}
        try:
            async with self._session.post(
                self._url, json=ask, headers=self._headers, allow_redirects=False
            ) as answer:
                self._check(answer)
                body = await self._body(answer)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise EmbeddingUnavailable(f"{self._where} can not be reached ({type(error).__name__})") from None
        try:
            return await asyncio.to_thread(read, body, len(texts), self._form.find, dims=self._dims)
        except EmbeddingRefused as error:
            raise EmbeddingRefused(f"{self._where}: {error}") from None

    def _check(self, answer: aiohttp.ClientResponse) -> None:
        """Raise what a status means; nothing of the body is repeated, which may quote texts and keys."""
        status = answer.status
        if status == 200:
            return
        said = f"{self._where} answers {status}"
        if status in (401, 403):
            raise EmbeddingError(f"{said}: it does not accept the key; check {self._form.key_variable}")
        if status in _LATER or status >= 500:
            raise EmbeddingUnavailable(said, after_s=_seconds(answer.headers.get("Retry-After", "")))
        if status in _REFUSED:
            raise EmbeddingRefused(said)
        raise EmbeddingError(f"{said}: check EMBEDDING_MODEL and EMBEDDING_BASE_URL")

    async def _body(self, answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_chunked(65_536):
            body += chunk
            if len(body) > MOST_ANSWER:
                answer.close()
                raise EmbeddingRefused(f"{self._where}: the answer is longer than {MOST_ANSWER:,} bytes")
        return bytes(body)


def _seconds(header: str) -> float:
    """`Retry-After` in seconds; 0 for its other form, a date."""
    return float(header) if header.isascii() and header.isdigit() and len(header) < 6 else 0.0


def _sendable(text: str) -> str:
    """Text without half characters, which no UTF-8 can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")

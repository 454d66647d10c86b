"""Embedding providers over HTTP: one request for each batch of texts, one bounded response, our own errors.

Nothing is retried here: only the caller knows whether it can wait. Redirects are not followed, because texts
and key may go only to the configured address. No error text holds the key or anything the provider wrote.
"""

import asyncio
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiohttp
import yarl

from discoclaw.core.errors import EmbeddingError, EmbeddingRefused, EmbeddingUnavailable
from discoclaw.embed.batches import batches
from discoclaw.embed.responses import Reader, Vector, read

MAX_RESPONSE = 16_000_000
"""Longest accepted response, in bytes: 64 vectors of 8192 numbers take about 11 MB as JSON."""
_REFUSED = (400, 413, 422)
_RETRY_LATER = (408, 425, 429)


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
        self._url = yarl.URL(base_url.rstrip("/") + api.path)
        self._headers: Mapping[str, str] = {
            "Accept-Encoding": "identity",  # a small compressed body could unpack to a huge one
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }
        self._dims = dims
        self._session: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        return f"{self._api.provider}/{self._model}"

    @property
    def stays_here(self) -> bool:
        """Whether the texts stay on this machine: the address is a loopback one."""
        host = self._url.host or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    async def embed(self, texts: Sequence[str], *, timeout_s: float) -> Sequence[Sequence[float]]:
        """A vector for each text. `timeout_s` covers all requests together. Raises EmbeddingError."""
        vectors: list[Vector] = []
        try:
            async with asyncio.timeout(timeout_s):
                for batch in batches(texts):
                    vectors += await self._post(batch)
        except TimeoutError:
            raise EmbeddingUnavailable(f"{self._where} did not answer within {timeout_s:g} s") from None
        if len({len(vector) for vector in vectors}) > 1:
            raise EmbeddingRefused(f"{self._where}: its vectors differ in length")
        return vectors

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def _where(self) -> str:
        """The provider for log and errors. Only the host is shown, since an address can hold a password."""
        return f"{self.name} at {self._url.host}"

    async def _post(self, texts: list[str]) -> list[Vector]:
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False)
        request = {"model": self._model, "input": [_sendable(text) for text in texts]}
        try:
            async with self._session.post(
                self._url, json=request, headers=self._headers, allow_redirects=False
            ) as response:
                self._check(response)
                body = await self._body(response)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise EmbeddingUnavailable(f"{self._where} cannot be reached ({type(error).__name__})") from None
        try:
            return await asyncio.to_thread(read, body, len(texts), self._api.find, dims=self._dims)
        except EmbeddingRefused as error:
            raise EmbeddingRefused(f"{self._where}: {error}") from None

    def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raise the error that a status stands for.

        The body is not quoted: it may repeat texts or the key.
        """
        status = response.status
        if status == 200:
            return
        what = f"{self._where} answers {status}"
        if status in (401, 403):
            raise EmbeddingError(f"{what}: it does not accept the key; check {self._api.key_variable}")
        if status in _RETRY_LATER or status >= 500:
            raise EmbeddingUnavailable(what, after_s=_seconds(response.headers.get("Retry-After", "")))
        if status in _REFUSED:
            raise EmbeddingRefused(what)
        raise EmbeddingError(f"{what}: check EMBEDDING_MODEL and EMBEDDING_BASE_URL")

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """The whole body. Raises EmbeddingRefused as soon as it is too long, whatever its header promised."""
        body = bytearray()
        async for chunk in response.content.iter_chunked(65_536):
            body += chunk
            if len(body) > MAX_RESPONSE:
                response.close()
                raise EmbeddingRefused(f"{self._where}: the response is longer than {MAX_RESPONSE:,} bytes")
        return bytes(body)


def _seconds(header: str) -> float:
    """`Retry-After` in seconds. Its other form, a date, counts as 0."""
    return float(header) if header.isascii() and header.isdigit() and len(header) < 6 else 0.0


def _sendable(text: str) -> str:
    """Text without lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")

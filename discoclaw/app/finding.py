"""Finding items: by words, and by vectors if a provider is configured."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.usage import Usage
from discoclaw.core import health
from discoclaw.core.errors import EmbeddingError
from discoclaw.embed.providers import EmbeddingConfig, open_embedder
from discoclaw.loops.embedding import Embedding
from discoclaw.loops.nearest import Nearest
from discoclaw.models.providers import PROVIDERS
from discoclaw.recall.rank import Ranker
from discoclaw.session.item_search import ItemSearch
from discoclaw.session.meaning import Meaning, NoMeaning
from discoclaw.settings import Settings
from discoclaw.storage import Storage
from discoclaw.usage.metered import MeteredEmbedder

log = logging.getLogger(__name__)


class Finding(Feature):
    """Finds the items that matter for a message or a query: `items` is the entry point, `ranker` ranks.

    `nearest` does the same for the loops, which have more time.
    """

    settings: ClassVar = (
        "recall_limit",
        "enrich_depth",
        "recency_half_life_s",
        "inject_max_chars",
        "embedding_provider",
        "embedding_model",
        "embedding_url",
        "embedding_key",
        "openai_key",
        "embedding_auto",
        "text_weight",
        "vector_weight",
    )

    def __init__(self, basics: Basics, disk: OnDisk, usage: Usage) -> None:
        settings, storage = basics.settings, disk.storage
        terms = storage.terms
        self.ranker = Ranker(
            settings.fade,
            terms.documents,
            text_weight=settings.text_weight,
            vector_weight=settings.vector_weight,
            depth=settings.enrich_depth,
        )
        self.meaning = _meaning(settings, storage, usage)
        self.items = ItemSearch(
            self.ranker,
            terms,
            self.meaning,
            storage.people.last_used,
            clock=basics.clock,
            me=basics.me,
            usual_limit=settings.recall_limit,
            prompt_chars=settings.inject_max_chars,
        )
        embedding = self.meaning.embedding if isinstance(self.meaning, Meaning) else None
        self.nearest = Nearest(embedding, terms.documents, floor=lambda: self.meaning.floor)
        self.services = (terms, self.meaning)
        self.joins = self.meaning.joins
        self.health = (self._health,)

    def _health(self) -> Iterator[health.Finding]:
        """Whether questions are embedded in time."""
        if not isinstance(self.meaning, Meaning):
            return
        if self.meaning.in_time:
            yield health.Finding("embeddings", "good", "the server answered in time lately")
        else:
            text = "the server doesn't answer in time, so memories are found by their words alone"
            yield health.Finding("embeddings", "warning", text, "look at the server; the log says more")


def _meaning(settings: Settings, storage: Storage, usage: Usage) -> Meaning | NoMeaning:
    """Vectors, if the settings ask for them and a provider is usable; otherwise one log line says why not."""
    try:
        embedder = open_embedder(config_of(settings))
    except EmbeddingError as error:
        log.warning("vectors are switched off: %s", error)
        return NoMeaning()
    if embedder is None or not storage.remembers:
        return NoMeaning()
    rates = replace(usage.rates(settings.embedding_url, free=embedder.stays_here), id_of=_model_of)
    behind = MeteredEmbedder(embedder, usage.accounts, rates, background=True)
    embedding = Embedding(behind, storage.memory, storage.vectors, consent=storage.consent)
    return Meaning(MeteredEmbedder(embedder, usage.accounts, rates), embedding)


def config_of(settings: Settings) -> EmbeddingConfig:
    """What the settings say about vectors. A key of another server stays there."""
    here = settings.embedding_url or PROVIDERS["openai"].address or ""
    is_there = settings.openai_url is None or settings.openai_url.rstrip("/") == here.rstrip("/")
    openai_key = settings.openai_key if is_there else None
    return EmbeddingConfig(
        provider=settings.embedding_provider,
        model=settings.embedding_model,
        base_url=settings.embedding_url,
        key=settings.embedding_key.get_secret_value() if settings.embedding_key is not None else None,
        openai_key=openai_key.get_secret_value() if openai_key is not None else None,
        auto=settings.embedding_auto,
    )


def _model_of(name: str) -> str:
    """The model in an embedder's name, which begins with its provider."""
    return name.partition("/")[2]

"""Batches of texts on their way to an embedding provider.

A batch that the provider refuses is halved; a single text that it refuses repeatedly is given up until the
next start. Shared by everything that is embedded in the background.
"""

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from discoclaw.core.errors import EmbeddingRefused
from discoclaw.core.ports import Embedder

K = TypeVar("K", bound=Hashable)

log = logging.getLogger(__name__)

BATCH = 64
TRIES = 3
"""A text that is refused this often on its own is given up."""


class Batches(Generic[K]):
    """Embeds texts by key. `size` is how many the next batch should have.

    `of` names a key for the log. `check` raises EmbeddingRefused for vectors that are not as expected.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        timeout_s: float,
        of: Callable[[K], object],
        check: Callable[[Sequence[Sequence[float]]], None],
    ) -> None:
        self.size = BATCH
        self._embedder = embedder
        self._timeout_s = timeout_s
        self._of = of
        self._check = check
        self._refused: Counter[K] = Counter()

    def is_hopeless(self, key: K) -> bool:
        """Whether a text was given up."""
        return bool(self._refused) and self._refused[key] >= TRIES

    @property
    def hopeless(self) -> frozenset[K]:
        """The texts that were given up."""
        return frozenset(key for key in self._refused if self.is_hopeless(key))

    def forget(self, which: Callable[[K], bool]) -> None:
        """Forget what was refused of some texts."""
        for key in [key for key in self._refused if which(key)]:
            del self._refused[key]

    async def embed(self, texts: Mapping[K, str]) -> dict[K, Sequence[float]]:
        """The vectors of a batch; empty if it is to be halved. Raises EmbeddingError."""
        try:
            vectors = await self._embedder.embed(list(texts.values()), timeout_s=self._timeout_s)
            self._check(vectors)
        except EmbeddingRefused:
            self.size = max(1, len(texts) // 2)
            if len(texts) > 1:
                return {}
            key = next(iter(texts))
            self._refused[key] += 1
            if self.is_hopeless(key):
                log.warning("%s: a text gets no vector until the next start", self._of(key))
            raise
        self.size = min(BATCH, self.size * 2)
        return dict(zip(texts, vectors, strict=False))

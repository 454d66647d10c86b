"""Measures what the cosines of an embedding model say, when the model is used for the first time.

The floor is kept in the cache of vectors, by the model's name. A name doesn't say which weights are behind
it: a server may get others. So the vector of one text, the probe, is kept beside the floor. If the provider
gives another one for it later, everybody's vectors are made again, and the floor is measured again.
Uses a provider only to embed texts, which are the bot's own.
"""

import logging
from collections.abc import Sequence

from discoclaw.core.errors import EmbeddingRefused, MemoryFault
from discoclaw.core.ports import Embedder
from discoclaw.loops.embedding import Embedding
from discoclaw.recall.floor import NEVER, PAIRS, RULE, floor_of, texts
from discoclaw.search.matrix import alike, cosines_of, packed
from discoclaw.search.vectors import Measured, hash_of
from discoclaw.store.files import in_thread

log = logging.getLogger(__name__)

ALIKE = 0.99
"""The least cosine of two vectors that the same model gave to the same text.

Servers answer with slightly different numbers, for which it is above 0.999. Other weights give other vectors.
"""
SAMPLE = hash_of("\n".join([str(RULE), *texts()]))
"""Stands for the texts and the calculation: a floor that was measured with others is measured again."""


def floor_from(vectors: Sequence[Sequence[float]]) -> float:
    """The floor of the model that gave these vectors to `recall.floor.texts()`."""
    return floor_of(cosines_of(vectors[: len(PAIRS)], vectors[len(PAIRS) :]))


class Floor:
    """The floor of one provider's model: `value` is `NEVER` until it is known."""

    def __init__(self, embedder: Embedder, embedding: Embedding) -> None:
        self.value = NEVER
        self._embedder = embedder
        self._embedding = embedding
        self._measured: Measured | None = None

    def is_of(self, vector: Sequence[float]) -> bool:
        """Whether the model that gave this vector to the probe is the one that was measured."""
        return self._measured is not None and alike(self._measured.probe, packed(vector), ALIKE)

    async def check(self, vector: Sequence[float], *, timeout_s: float) -> None:
        """Find out the floor of the model that gave this vector to the probe; measure it if need be.

        Raises EmbeddingError, and MemoryFault if vectors of another model cannot be removed.
        """
        probe = packed(vector)
        known = self._measured or await self._kept()
        if known is not None and not alike(known.probe, probe, ALIKE):
            log.warning(
                "%s: the model is not the one that it was; all vectors are made again", self._embedder.name
            )
            self._measured = None
            await self._embedding.replaced()
            known = self._measured = Measured(b"", probe, NEVER)
            await self._keep(known)
        if known is None or known.sample != SAMPLE:
            known = Measured(SAMPLE, probe, await self._measure(len(vector), timeout_s))
            await self._keep(known)
        self._measured, self.value = known, known.floor
        self._embedding.expect(len(vector))

    async def _measure(self, dims: int, timeout_s: float) -> float:
        vectors = await self._vectors(texts(), timeout_s)
        if {len(one) for one in vectors} != {dims}:
            raise EmbeddingRefused(f"{self._embedder.name}: its vectors differ in length")
        return floor_from(vectors)

    async def _vectors(self, wanted: Sequence[str], timeout_s: float) -> list[Sequence[float]]:
        """The vectors of texts, in smaller batches if the provider refuses so many. Raises EmbeddingError."""
        try:
            return [*await self._embedder.embed(wanted, timeout_s=timeout_s)]
        except EmbeddingRefused:
            if len(wanted) == 1:
                raise
        half = len(wanted) // 2
        first = await self._vectors(wanted[:half], timeout_s)
        return first + await self._vectors(wanted[half:], timeout_s)

    async def _kept(self) -> Measured | None:
        try:
            return await in_thread(self._embedding.cache.measured, self._embedder.name)
        except MemoryFault as fault:
            log.warning("%s is measured again: %s", self._embedder.name, fault)
            return None

    async def _keep(self, measured: Measured) -> None:
        try:
            await in_thread(self._embedding.cache.keep_measured, self._embedder.name, measured)
        except MemoryFault as fault:
            log.warning("what was measured of %s is kept in RAM alone: %s", self._embedder.name, fault)

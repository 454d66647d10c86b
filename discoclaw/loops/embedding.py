"""Keeping up with memory: texts of items that have no vector yet get one, in the background, in batches.

Nobody waits for this. It starts when somebody's memory is used or changed, holds no lock while it asks the
provider, and after a failure rests for a while that doubles until something succeeds. A batch that the
provider refuses is halved; a single text it refuses again and again is given up until the next start.

What may be sent where is decided here: confidential items go nowhere, private ones only to a provider on
this machine, and nothing goes anywhere of somebody who wants no memory.
Knows nothing about providers but that they embed texts.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import EmbeddingRefused, MemoryFault
from discoclaw.core.item import Item, by_newest
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.ports import Embedder
from discoclaw.core.subject import user_of
from discoclaw.memory.changes import Listener
from discoclaw.memory.disk.files import in_thread
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.matrix import Matrix, packed
from discoclaw.search.vectors import VectorCache, hash_of
from discoclaw.work import Worker

log = logging.getLogger(__name__)

BATCH = 64
TIMEOUT_S = 30.0
"""Seconds for one batch."""
TRIES = 3
"""A text that is refused so often when it is alone is given up."""
REST_S = 5.0
LONGEST_REST_S = 600.0
MOST_WAITING = 10_000
"""Texts of one owner that wait, those of the newest items."""
MOST_RAM = 64_000_000
"""Bytes of vectors in RAM, of all people together; who was away longest comes back from disk."""
_MAKING = "making vectors"


class Embedding(PersonalData, Listener):
    """The vectors of all subjects. `touch` and `want` say that some may be missing; `matrix` gives them.

    Only people have any, as far as they want a memory (`consent`): nobody asks for vectors of who we are, nor
    of a group, and what these say is not to be sent around. `rest_s` is the first pause after a failure.
    """

    name = "vectors in RAM"

    def __init__(
        self,
        embedder: Embedder,
        memory: Memory,
        cache: VectorCache,
        *,
        consent: Consent = UNLIMITED,
        rest_s: float = REST_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._embedder = embedder
        self._memory = memory
        self._cache = cache
        self._consent = consent
        self._timeout_s = timeout_s
        self._batch = BATCH
        self._touched: dict[str, None] = {}
        self._waiting: dict[str, dict[str, None]] = {}  # texts by owner, in order of arrival
        self._refused: Counter[tuple[str, bytes]] = Counter()
        self._known: OrderedDict[str, Matrix] = OrderedDict()
        self._worker = Worker("embedding", self._work, retry_s=rest_s, longest_s=LONGEST_REST_S)

    def may_leave(self, item: Item) -> bool:
        """Whether an item's text may be given to the provider."""
        return item.facets.sensitivity == "normal" or (
            item.facets.sensitivity == "private" and self._embedder.stays_here
        )

    def recorded(self, subject: str) -> None:
        self.touch(subject)

    def touch(self, subject: str) -> None:
        """A subject's memory changed: what it says now is looked through. Never blocks."""
        self._waiting.pop(subject, None)  # what waits may be private by now, or gone
        self._touched[subject] = None
        self._worker.note(_MAKING)

    def want(self, subject: str, items: Iterable[Item]) -> None:
        """These items are in use, and are to have vectors. Never blocks."""
        matrix = self._known.get(subject)
        missing = [
            item for item in items if self.may_leave(item) and (matrix is None or item.text not in matrix)
        ]
        if missing:
            texts = (item.text for item in sorted(missing, key=by_newest)[:MOST_WAITING])
            self._waiting.setdefault(subject, {}).update(dict.fromkeys(texts))
            self._worker.note(_MAKING)

    async def matrix(self, subject: str) -> Matrix:
        """A subject's vectors, from the cache if need be. Raises MemoryFault."""
        matrix = self._known.get(subject)
        if matrix is None:
            erasings = self._cache.erasings(subject)
            vectors = await asyncio.to_thread(self._cache.load, subject, self._embedder.name)
            matrix = self._known.get(subject) or Matrix(vectors)
            if self._cache.erasings(subject) != erasings:
                return Matrix()
            self._known[subject] = matrix
        self._known.move_to_end(subject)
        while len(self._known) > 1 and sum(one.size for one in self._known.values()) > MOST_RAM:
            self._known.popitem(last=False)
        return matrix

    async def outdated(self, subject: str) -> None:
        """The provider's vectors are of another length now: those there are go, and are made anew."""
        self._known.pop(subject, None)
        try:
            await in_thread(self._cache.drop, subject)
        except MemoryFault as fault:
            log.warning("%s: %s", subject, fault)
        self.touch(subject)

    async def start(self) -> None:
        """Nothing to start: the first use of a memory starts the work."""

    async def settle(self) -> None:
        """Wait until nothing can be done now; a failure may be resting."""
        await self._worker.settle()

    async def close(self) -> None:
        """Stop; what is missing is found again when it is used."""
        await self._worker.close(0)

    # ------------------------------------------------------------------ inside

    async def _work(self, _: str) -> None:
        """Look through what changed and embed one batch; the next one is another run. Raises EmbeddingError.

        So a batch that worked ends the doubling of the pauses.
        """
        while self._touched:
            await self._look(self._touched.popitem()[0])
        if self._waiting:
            await self._next()
        if self._touched or self._waiting:
            self._worker.note(_MAKING)

    async def _look(self, subject: str) -> None:
        """Find what is missing in a subject's memory."""
        erasings = self._cache.erasings(subject)
        try:
            view = await self._memory.view(subject)
        except MemoryFault as fault:
            log.info("%s: no vectors: %s", subject, fault)
            return
        if self._cache.erasings(subject) == erasings and subject not in self._touched:
            self.want(subject, view.active())

    async def _next(self) -> None:
        """Embed a batch of whoever came first. Raises EmbeddingError."""
        subject = next(iter(self._waiting))
        erasings = self._cache.erasings(subject)
        try:
            texts = self._missing(subject, await self.matrix(subject))
        except MemoryFault as fault:
            log.warning("%s: no vectors: %s", subject, fault)
            texts = []
        if not texts:
            self._waiting.pop(subject, None)
            return
        vectors = await self._embed(subject, texts)
        if self._cache.erasings(subject) != erasings:
            return  # erased meanwhile, and nothing of it waits any more
        await self._keep(subject, dict(zip(map(hash_of, texts), vectors, strict=False)), erasings)

    def _missing(self, subject: str, matrix: Matrix) -> list[str]:
        """The next texts of a subject to embed; what needs no vector does not wait any more."""
        waiting = self._waiting.get(subject, {})
        if (user_id := user_of(subject)) is None or self._consent.opted_out(user_id):
            return []
        for text in [text for text in waiting if text in matrix or self._is_hopeless(subject, text)]:
            del waiting[text]
        return list(waiting)[: self._batch]

    async def _embed(self, subject: str, texts: Sequence[str]) -> list[bytes]:
        """The vectors of a batch; none of one that is to be halved. Raises EmbeddingError."""
        try:
            vectors = await self._embedder.embed(texts, timeout_s=self._timeout_s)
        except EmbeddingRefused as error:
            self._batch = max(1, len(texts) // 2)
            if len(texts) > 1:
                return []
            self._refused[subject, hash_of(texts[0])] += 1
            if self._is_hopeless(subject, texts[0]):
                log.warning("%s: a text gets no vector until the next start", subject)
            raise error
        self._batch = min(BATCH, self._batch * 2)
        return [packed(vector) for vector in vectors]

    async def _keep(self, subject: str, vectors: dict[bytes, bytes], erasings: int) -> None:
        """Have them in RAM, and on disk as well as it goes."""
        if not vectors:
            return
        matrix = await self.matrix(subject)
        changed = matrix.dims not in (0, len(next(iter(vectors.values()))) // 4)
        try:
            kept = await in_thread(self._cache.put, subject, self._embedder.name, vectors, erasings=erasings)
        except MemoryFault as fault:
            log.warning("%s: vectors are kept in RAM alone: %s", subject, fault)
            kept = self._cache.erasings(subject) == erasings
        if kept and self._cache.erasings(subject) == erasings:
            matrix.add(vectors)
            if changed:  # by which all others are missing
                self._touched[subject] = None

    def _is_hopeless(self, subject: str, text: str) -> bool:
        return bool(self._refused) and self._refused[subject, hash_of(text)] >= TRIES

    def forget(self, erasure: Erasure) -> None:
        """Let go of a subject; what is asked for just now is not kept."""
        subject = erasure.subject
        self._cache.forget(erasure)
        self._known.pop(subject, None)
        self._touched.pop(subject, None)
        self._waiting.pop(subject, None)
        for one in [one for one in self._refused if one[0] == subject]:
            del self._refused[one]

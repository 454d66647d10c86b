"""Embeds texts of items and archived messages that have no vector yet, in the background, in batches.

Nobody waits for this. It starts when somebody's memory is used or changed, and holds no lock while it asks
the provider. After a failure it pauses; the pause doubles until something succeeds. A batch that the provider
refuses is halved; a single text that it refuses repeatedly is given up until the next start.

Once it is known how long a model's vectors are (`expect`), others are refused: a provider that answers once
with another model would otherwise make all vectors twice.

This module decides what may be sent where: confidential items are never sent, private ones only to a provider
on this machine, and nothing is sent about people who want no memory. Uses a provider only to embed texts.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.errors import EmbeddingRefused, MemoryFault
from discoclaw.core.item import Item, by_newest
from discoclaw.core.ports import ALONE, Clock, Embedder, Processes
from discoclaw.core.purge import Derived, Outcome, Phase, Purge
from discoclaw.core.subject import user_of
from discoclaw.core.visible import VisibleItems
from discoclaw.memory.changes import Listener
from discoclaw.memory.subjects.store import Memory
from discoclaw.search.matrix import Matrix, packed
from discoclaw.search.talk_vectors import DAY_MS, TalkVectors
from discoclaw.search.vectors import VectorCache, hash_of
from discoclaw.store.files import in_thread
from discoclaw.work import Background, Worker

# ----------------------------------------------------------------------
# Batches of texts on their way to a provider, of items and messages alike.


K = TypeVar("K", bound=Hashable)

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


# ----------------------------------------------------------------------
# Items.


log = logging.getLogger(__name__)

TIMEOUT_S = 30.0
"""The time limit of one batch."""
REST_S = 5.0
LONGEST_REST_S = 600.0
MOST_WAITING = 10_000
"""The most waiting texts of one owner; the newest items come first."""
MOST_RAM = 64_000_000
"""The most bytes of vectors in RAM, for all people together; the least recently used go first."""
_MAKING = "making vectors"


class Embedding(Background, Derived, Listener):
    """The vectors of all subjects. `touch` and `want` report that some may be missing; `matrix` returns them.

    Only people who want a memory (`consent`) have vectors. The bot's own memory and those of groups have
    none, so that what they say is not sent anywhere. `rest_s` is the first pause after a failure.
    """

    _grace_s = 0.0  # what is missing is found again when it is used
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
        self.cache = cache
        self.doubted: Callable[[], None] = lambda: None
        """Called when the provider answers with vectors of an unexpected length."""
        self.replacing: list[Callable[[], Awaitable[None]]] = []
        """Called when the model is another now, to remove further vectors; each may raise MemoryFault."""
        self._embedder = embedder
        self._memory = memory
        self._consent = consent
        self._dims = 0
        self._replacements = 0
        self._batches: Batches[tuple[str, bytes]] = Batches(
            embedder, timeout_s=timeout_s, of=lambda key: key[0], check=self.check
        )
        self._touched: dict[str, None] = {}
        self._waiting: dict[str, dict[str, None]] = {}  # texts by owner, in order of arrival
        self._known: OrderedDict[str, Matrix] = OrderedDict()
        self._whole: WeakKeyDictionary[Matrix, VisibleItems] = WeakKeyDictionary()
        """Items that all have vectors, so that ten thousand aren't looked through for every message."""
        self._worker = Worker("embedding", self._work, retry_s=rest_s, longest_s=LONGEST_REST_S)

    def may_leave(self, item: Item) -> bool:
        """Whether an item's text may be sent to the provider."""
        return item.facets.sensitivity == "normal" or (
            item.facets.sensitivity == "private" and self._embedder.stays_here
        )

    def recorded(self, subject: str) -> None:
        self.touch(subject)

    def touch(self, subject: str) -> None:
        """Queue a subject whose memory changed, to find missing vectors. Never blocks."""
        self._waiting.pop(subject, None)  # waiting texts may be private by now, or gone
        self._touched[subject] = None
        self._worker.note(_MAKING)

    def want(self, subject: str, items: Iterable[Item]) -> None:
        """Queue items in use for embedding. Never blocks."""
        matrix = self._known.get(subject)
        if matrix is not None and self._whole.get(matrix) is items:
            return  # nothing was missing before, and neither has changed
        missing = [
            item for item in items if self.may_leave(item) and (matrix is None or item.text not in matrix)
        ]
        if matrix is not None and not missing and isinstance(items, VisibleItems):
            self._whole[matrix] = items
        if missing:
            texts = (item.text for item in sorted(missing, key=by_newest)[:MOST_WAITING])
            self._waiting.setdefault(subject, {}).update(dict.fromkeys(texts))
            self._worker.note(_MAKING)

    async def matrix(self, subject: str) -> Matrix:
        """Return a subject's vectors, from the cache if need be. Raises MemoryFault."""
        matrix = self._known.get(subject)
        if matrix is None:
            before = self._token(subject)
            loaded = await in_thread(self._loaded, subject)
            matrix = self._known.get(subject) or loaded
            if self._token(subject) != before:
                return Matrix()
            self._known[subject] = matrix
        self._known.move_to_end(subject)
        while len(self._known) > 1 and sum(one.size for one in self._known.values()) > MOST_RAM:
            self._known.popitem(last=False)
        return matrix

    async def asked(
        self, subject: str, texts: Sequence[str], *, private: bool, timeout_s: float
    ) -> Sequence[Sequence[float]]:
        """The vectors of what a person said, to compare their items with; none if that may not be sent.

        What was said in `private` goes only to a provider on this machine. Raises EmbeddingError.
        """
        user_id = user_of(subject)
        if user_id is None or self._consent.opted_out(user_id) or (private and not self._embedder.stays_here):
            return []
        return await self._embedder.embed(texts, timeout_s=timeout_s)

    async def outdated(self, subject: str) -> None:
        """Replace a subject's vectors, because the provider's have another length now."""
        self._known.pop(subject, None)
        try:
            await in_thread(self.cache.keep_only, subject, ())
        except MemoryFault as fault:
            log.warning("%s: %s", subject, fault)
        self.touch(subject)

    @property
    def dims(self) -> int:
        """The length of the model's vectors, 0 until it is known."""
        return self._dims

    def expect(self, dims: int) -> None:
        """Refuse vectors of any other length from now on."""
        self._dims = dims

    def check(self, vectors: Sequence[Sequence[float]]) -> None:
        """Raise EmbeddingRefused if the vectors have an unexpected length."""
        other = next((len(one) for one in vectors if self._dims and len(one) != self._dims), None)
        if other is not None:
            self.doubted()
            raise EmbeddingRefused(
                f"{self._embedder.name}: its vectors have {other} numbers instead of {self._dims}"
            )

    async def replaced(self) -> None:
        """Replace everybody's vectors, because the model behind the provider's name is another now.

        Raises MemoryFault if those on disk cannot be removed; they must not be used.
        """
        subjects = list(self._known)
        self._dims = 0
        self._replacements += 1
        self._known.clear()
        self._batches.forget(lambda key: True)
        await in_thread(self.cache.drop_model, self._embedder.name)
        for remove in self.replacing:
            await remove()
        for subject in subjects:
            self.touch(subject)

    # ------------------------------------------------------------------ inside

    async def _work(self, _: str) -> None:
        """Check what changed and embed one batch. Raises EmbeddingError.

        The next batch is another run, so that each success resets the pauses.
        """
        while self._touched:
            await self._look(self._touched.popitem()[0])
        if self._waiting:
            await self._next()
        if self._touched or self._waiting:
            self._worker.note(_MAKING)

    async def _look(self, subject: str) -> None:
        """Find the missing vectors of a subject's memory."""
        erasings = self.cache.erasings(subject)
        try:
            view = await self._memory.view(subject)
        except MemoryFault as fault:
            log.info("%s: no vectors: %s", subject, fault)
            return
        if self.cache.erasings(subject) == erasings and subject not in self._touched:
            self.want(subject, view.active())

    async def _next(self) -> None:
        """Embed a batch of the owner who came first. Raises EmbeddingError."""
        subject = next(iter(self._waiting))
        before = self._token(subject)
        try:
            texts = self._missing(subject, await self.matrix(subject))
        except MemoryFault as fault:
            log.warning("%s: no vectors: %s", subject, fault)
            texts = []
        if not texts:
            self._waiting.pop(subject, None)
            return
        made = await self._batches.embed({(subject, hash_of(text)): text for text in texts})
        if self._token(subject) != before:
            return  # erased meanwhile, and nothing of it is waiting any more; or made by a replaced model
        await self._keep(subject, {key: packed(vector) for (_, key), vector in made.items()}, before[0])

    def _missing(self, subject: str, matrix: Matrix) -> list[str]:
        """The next texts of a subject to embed; texts that need no vector leave the queue."""
        waiting = self._waiting.get(subject, {})
        if (user_id := user_of(subject)) is None or self._consent.opted_out(user_id):
            return []
        missing: list[str] = []
        unneeded: list[str] = []
        for text in waiting:
            if len(missing) == self._batches.size:
                break
            needed = text not in matrix and not self._batches.is_hopeless((subject, hash_of(text)))
            (missing if needed else unneeded).append(text)
        for text in unneeded:
            del waiting[text]
        return missing

    def _loaded(self, subject: str) -> Matrix:
        """A subject's vectors on disk. Blocking. Raises MemoryFault."""
        return Matrix(self.cache.load(subject, self._embedder.name))

    def _token(self, subject: str) -> tuple[int, int]:
        """Changes when a subject's vectors from before must not be kept any more."""
        return self.cache.erasings(subject), self._replacements

    async def _keep(self, subject: str, vectors: dict[bytes, bytes], erasings: int) -> None:
        """Store vectors in RAM and, if possible, on disk."""
        if not vectors:
            return
        matrix = await self.matrix(subject)
        changed = matrix.dims not in (0, len(next(iter(vectors.values()))) // 4)
        try:
            kept = await in_thread(self.cache.put, subject, self._embedder.name, vectors, erasings=erasings)
        except MemoryFault as fault:
            log.warning("%s: vectors are kept in RAM alone: %s", subject, fault)
            kept = self.cache.erasings(subject) == erasings
        if kept and self.cache.erasings(subject) == erasings:
            matrix.add(vectors)
            if changed:  # a new length, so all other vectors are missing now
                self._touched[subject] = None

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        """Drop a subject's vectors, what waits, and the result of a request under way.

        `recorded` finds what is still missing.
        """
        if phase == "ram":
            self.cache.purge(purge, phase)
            if purge.erases:
                self._touched.pop(purge.subject, None)
            self._drop(purge.subject)
        return self._keep_held(purge) if phase == "disk" and purge.subject and not purge.erases else None

    async def _keep_held(self, purge: Purge) -> None:
        """Remove all vectors but those of texts that a persona still remembers."""
        subject, held = purge.subject, set[bytes]()
        if not purge.everything:
            for name in (await self._memory.branches(subject)).all:
                held |= {hash_of(item.text) for item in (await self._memory.view(subject, name)).active()}
        await in_thread(self.cache.keep_only, subject, held)
        self._drop(subject)
        self.touch(subject)

    def _drop(self, subject: str) -> None:
        """Drop a subject's vectors and texts from RAM."""
        self._known.pop(subject, None)
        self._waiting.pop(subject, None)
        self._batches.forget(lambda key: key[0] == subject)


# ----------------------------------------------------------------------
# Archived messages, the newest first. Memories come first: while some lack a vector, talk waits. What still
# needs a vector is listed in the archive's own file, so a killed process loses nothing. A provider on another
# machine gets only what was said where everybody on the server reads along, once somebody speaks there, and
# only so many messages a day (`Provider`). Nothing is sent of people who may not be archived.


LONGEST = 2_000
"""The most characters of a message; its beginning says best what it is about."""
SHARE = 0.25
"""The most of the time that is spent on it while many messages wait: questions use the same provider."""
SPENT_S = 3600.0
"""When the day's messages are used up, how long until the next look at the date."""
_MAKING_FOR_TALK = "making vectors of talk"


class TalkEmbedding(Background):
    """Makes the vectors of talk, after those of all `items`. `rest_s` is the first pause after a failure."""

    _grace_s = 0.0  # what is missing is found again at the next start

    def __init__(
        self,
        embedder: Embedder,
        vectors: TalkVectors,
        *,
        clock: Clock,
        items: Embedding,
        rest_s: float = REST_S,
        timeout_s: float = TIMEOUT_S,
        processes: Processes = ALONE,
    ) -> None:
        self._vectors = vectors
        self._clock = clock
        self._items = items
        self._batches: Batches[int] = Batches(
            embedder, timeout_s=timeout_s, of=lambda message_id: f"message {message_id}", check=items.check
        )
        self._rests_until = 0.0
        self._said_on = -1
        items.replacing.append(self.replaced)
        self._worker = Worker(
            "embedding of talk",
            self._work,
            retry_s=rest_s,
            longest_s=LONGEST_REST_S,
            lease=lambda _: processes.lease("embedding of talk"),
        )

    def touch(self) -> None:
        """Embed what is missing, because the archive has changed. Never blocks."""
        self._worker.note(_MAKING_FOR_TALK, max(0.0, self._rests_until - asyncio.get_running_loop().time()))

    async def start(self) -> None:
        """Look for what was left at the last stop."""
        self.touch()

    async def replaced(self) -> None:
        """Make all vectors again, because the provider's model is another now. Raises MemoryFault."""
        self._vectors.outdate()
        self._batches.forget(lambda message_id: True)
        await in_thread(self._vectors.start_over)
        self.touch()

    async def _work(self, _: str) -> None:
        """Embed one batch. Raises EmbeddingError, and MemoryFault if it cannot be stored.

        The next batch is another run, so that each success resets the pauses.
        """
        await self._items.settle()
        if self._vectors.dims not in (0, self._items.dims) and self._items.dims:
            await self.replaced()
        loop, size, hopeless = asyncio.get_running_loop(), self._batches.size, self._batches.hopeless
        began = loop.time()
        batch = await in_thread(self._vectors.take, size, self._clock(), hopeless)
        if batch.entries:
            made = await self._batches.embed({int(one.id): one.text[:LONGEST] for one in batch.entries})
            vectors = {entry: made[int(entry.id)] for entry in batch.entries if int(entry.id) in made}
            if vectors:
                await in_thread(self._vectors.keep, vectors, batch.token)
            if len(batch.entries) == size:  # more are probably waiting
                self._rests_until = loop.time() + (loop.time() - began) * (1 / SHARE - 1)
            self.touch()
        elif batch.spent:
            if (day := self._clock() // DAY_MS) != self._said_on:
                self._said_on = day
                log.info("talk gets no more vectors today: the limit of a provider elsewhere is reached")
            self._worker.note(_MAKING_FOR_TALK, SPENT_S)

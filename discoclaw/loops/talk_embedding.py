"""Embeds archived messages that have no vector yet, in the background, in batches, the newest first.

Nobody waits for this. Memories come first: while some lack a vector, talk waits. What still needs a vector is
listed in the archive's own file, so a killed process loses nothing. A provider on another machine gets only
what was said where everybody on the server reads along, once somebody speaks there, and only so many messages
a day (`Provider`). Nothing is sent of people who may not be archived. After a failure it pauses, and a text
that the provider refuses is given up, as with memories. Uses a provider only to embed texts.
"""

import asyncio
import logging

from discoclaw.core.ports import Clock, Embedder
from discoclaw.core.processes import ALONE, Processes
from discoclaw.loops.batches import Batches
from discoclaw.loops.embedding import LONGEST_REST_S, REST_S, TIMEOUT_S, Embedding
from discoclaw.search.talk_vectors import DAY_MS, TalkVectors
from discoclaw.store.files import in_thread
from discoclaw.work import Worker

log = logging.getLogger(__name__)

LONGEST = 2_000
"""The most characters of a message; its beginning says best what it is about."""
SHARE = 0.25
"""The most of the time that is spent on it while many messages wait: questions use the same provider."""
SPENT_S = 3600.0
"""When the day's messages are used up, how long until the next look at the date."""
_MAKING = "making vectors of talk"


class TalkEmbedding:
    """Makes the vectors of talk, after those of all `items`. `rest_s` is the first pause after a failure."""

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
        self._worker.note(_MAKING, max(0.0, self._rests_until - asyncio.get_running_loop().time()))

    async def start(self) -> None:
        """Look for what was left at the last stop."""
        self.touch()

    async def settle(self) -> None:
        """Wait until nothing is left to do for now."""
        await self._worker.settle()

    async def close(self) -> None:
        """Stop; what is missing is found again at the next start."""
        await self._worker.close(0)

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
            self._worker.note(_MAKING, SPENT_S)

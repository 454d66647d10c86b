"""The meaning of a message beside its words: its vector, and how near that is to a person's items.

A question is embedded as early in a turn as possible, and a reply waits a quarter of a second for it at most.
After a late or failed answer no question is sent until a background try was answered in time; the first try
runs at the start. A reply never depends on this: without vectors items are found by their words.
Uses a provider only to embed texts.
"""

import asyncio
import logging
import re
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from discoclaw.core.errors import EmbeddingError
from discoclaw.core.item import Item
from discoclaw.core.ports import Embedder
from discoclaw.core.service import Passive
from discoclaw.loops.embedding import LONGEST_REST_S, REST_S, TIMEOUT_S, Embedding
from discoclaw.search.matrix import Matrix

log = logging.getLogger(__name__)
T = TypeVar("T")

WAIT_S = 0.25
"""The longest a reply waits for the vector of its question."""
STALE_S = 5.0
"""A question whose answer nobody collected within this time is cancelled."""
LONGEST_QUESTION = 2000
"""The most characters of a question; its beginning says best what it is about."""
PROBE = "hello"


class Question:
    """One question on its way to the provider, made by `Meaning.ask`."""

    def __init__(
        self,
        meaning: "Meaning",
        vector: asyncio.Task[Sequence[float]],
        matrix: asyncio.Task[Matrix],
        who: str,
    ) -> None:
        self._meaning = meaning
        self._vector = vector
        self._matrix = matrix
        self._who = who

    async def cosines(self, items: Collection[Item]) -> Mapping[str, float]:
        """Return the cosines of the items that have vectors, by id. Never raises; waits at most `WAIT_S`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._meaning.wait_s
        await asyncio.wait([self._matrix], timeout=self._meaning.wait_s)
        matrix = _result(self._matrix)
        if not matrix or not items:
            return {}  # no item has a vector, so there is nothing to wait for
        await asyncio.wait([self._vector], timeout=max(0.0, until - loop.time()))
        vector = self._meaning.answered(self._vector)
        if vector is None:
            return {}
        if matrix.dims != len(vector):
            self._meaning.outdated(self._who)
            return {}
        return matrix.cosines(vector, {item.id: item.text for item in items})


class Meaning:
    """Embeds questions. `rest_s` is the pause before the second background try."""

    def __init__(
        self,
        embedder: Embedder,
        embedding: Embedding,
        *,
        wait_s: float = WAIT_S,
        rest_s: float = REST_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.joins = (embedding,)
        """The parts that listen to memory, and that an erasing visits."""
        self.embedding = embedding
        self.wait_s = wait_s
        self._embedder = embedder
        self._rest_s = self._next_rest_s = rest_s
        self._timeout_s = timeout_s
        self._out = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._trying: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def in_time(self) -> bool:
        """Whether the provider answered in time lately; otherwise no questions are sent."""
        return self._trying is not None and not self._out.is_set()

    async def start(self) -> None:
        """Start to find out, in the background, whether the provider answers."""
        self._out.set()
        self._trying = asyncio.create_task(self._keep_trying(), name="embedding-try")

    def ask(self, subject: str, text: str, *, private: bool, names: Iterable[str] = ()) -> Question | None:
        """Begin to embed a subject's question; None if not allowed, or not possible now. Never blocks.

        What is said in `private` goes only to a provider on this machine. `names` are those of the people in
        the talk; they add nothing to the meaning, and are left out.
        """
        text = without_names(text, names)[:LONGEST_QUESTION]
        if not self.in_time or self._closed or not text or (private and not self._embedder.stays_here):
            return None
        matrix = self._begin(self.embedding.matrix(subject))
        return Question(self, self._begin(self._vector(text, matrix)), matrix, subject)

    def want(self, subject: str, items: Iterable[Item]) -> None:
        """Queue items in use for embedding, if they lack vectors. Never blocks."""
        self.embedding.want(subject, items)

    async def cosines(
        self, subject: str, text: str, items: Collection[Item], *, private: bool
    ) -> Mapping[str, float]:
        """Ask, and wait as long as a reply may. Never raises."""
        question = self.ask(subject, text, private=private)
        return await question.cosines(items) if question is not None else {}

    def answered(self, vector: asyncio.Task[Sequence[float]]) -> Sequence[float] | None:
        """The vector of a question if it has arrived; else later replies stop asking until a try succeeds."""
        if vector.done() and not vector.cancelled() and vector.exception() is None:
            self._next_rest_s = self._rest_s
            return vector.result()
        if vector.done():
            why = str(None if vector.cancelled() else vector.exception())
        else:
            why = f"no answer within {self.wait_s:g} s"
            vector.cancel()
        if self.in_time:
            log.warning("items are found by their words alone for now: %s", why)
            self._out.set()
        return None

    def outdated(self, subject: str) -> None:
        """Handle a provider whose vectors have another length than the stored ones."""
        self._begin(self.embedding.outdated(subject))

    async def settle(self) -> None:
        """Wait until no question is under way; future background tries do not count."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self.embedding.settle()

    async def close(self) -> None:
        """Stop asking, and close the provider's connections."""
        self._closed = True
        tasks = [*self._tasks, *([self._trying] if self._trying is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.embedding.close()
        await self._embedder.close()

    # ------------------------------------------------------------------ inside

    async def _vector(self, text: str, matrix: asyncio.Task[Matrix]) -> Sequence[float]:
        """The vector of a question; it is not even requested if no item has a vector to compare it with."""
        return await self._one(text, STALE_S) if await asyncio.shield(matrix) else ()

    async def _one(self, text: str, timeout_s: float) -> Sequence[float]:
        (vector,) = await self._embedder.embed([text], timeout_s=timeout_s)
        return vector

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start work whose result may never be collected."""
        task = asyncio.create_task(work, name="question")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        return task

    async def _keep_trying(self) -> None:
        """Once replies have stopped asking, try until the provider answers in time. The first may be slow."""
        first, said = True, ""
        while await self._out.wait():
            if not first:
                await asyncio.sleep(self._next_rest_s)
                self._next_rest_s = min(self._next_rest_s * 2, LONGEST_REST_S)
            try:
                await self._one(PROBE, self._timeout_s if first else self.wait_s)
            except Exception as error:  # deliberately broad: a try may fail in any way, and replies go on
                if str(error) != said:  # log a failure once, however often it recurs
                    said = str(error)
                    ours = isinstance(error, EmbeddingError)
                    log.warning("vectors cannot be used: %s", said, exc_info=None if ours else error)
            else:
                self._out.clear()
                said = ""
                log.info("items are found by their meaning too: %s", self._embedder.name)
            first = False


class NoMeaning(Passive):
    """Stands in for `Meaning` where there are no vectors: items are found by their words alone."""

    joins: tuple[()] = ()
    in_time = False

    def ask(self, subject: str, text: str, *, private: bool, names: Iterable[str] = ()) -> None:
        """Return None: there is no provider to ask."""

    def want(self, subject: str, items: Iterable[Item]) -> None:
        """Does nothing: nothing is embedded."""

    async def cosines(
        self, subject: str, text: str, items: Collection[Item], *, private: bool
    ) -> Mapping[str, float]:
        """Return no cosines."""
        return {}


def without_names(text: str, names: Iterable[str]) -> str:
    """A text without the names of the people in the talk, in full or by their first words."""
    said = {name.strip() for name in names}
    said |= {name.split()[0] for name in said if name}
    either = "|".join(re.escape(name) for name in sorted(said, key=len, reverse=True) if len(name) > 1)
    if either:
        text = re.sub(rf"@?(?<!\w)(?:{either})(?:['’]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def _result(task: asyncio.Task[T]) -> T | None:
    """A task's result, or None if it is unfinished or failed."""
    done = task.done() and not task.cancelled() and task.exception() is None
    return task.result() if done else None

"""What a message means, beside its words: its vector, and how near it is to a person's items.

A question is embedded as early in a turn as possible and awaited for a quarter of a second at most. After a
miss or a failure nobody waits any more, and nothing is asked, until a try in the background was answered in
time; the first one is made at the start. Whatever happens, a reply goes on: without vectors items are found
by their words.
Knows nothing about providers but that they embed texts.
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
"""A reply waits so long for the vector of its question, at most."""
STALE_S = 5.0
"""A question whose answer nobody looked at by then is given up."""
LONGEST_QUESTION = 2000
"""Characters of a question; what it is about stands at its beginning."""
PROBE = "hello"


class Question:
    """One question on its way to the provider. `Meaning.ask` makes it."""

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
        """The cosines of the items that have vectors, by id. Never raises, and waits `WAIT_S` at most."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._meaning.wait_s
        await asyncio.wait([self._matrix], timeout=self._meaning.wait_s)
        matrix = _result(self._matrix)
        if not matrix or not items:
            return {}  # there is nothing to compare with, so nothing to wait for
        await asyncio.wait([self._vector], timeout=max(0.0, until - loop.time()))
        vector = self._meaning.answered(self._vector)
        if vector is None:
            return {}
        if matrix.dims != len(vector):
            self._meaning.outdated(self._who)
            return {}
        return matrix.cosines(vector, {item.id: item.text for item in items})


class Meaning:
    """Asks for the vectors of questions. `rest_s` is the pause before the second try in the background."""

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
        """What follows memory on its behalf, and is visited by an erasing."""
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
        """Whether the provider answers in time, as far as is known: only then are questions asked."""
        return self._trying is not None and not self._out.is_set()

    async def start(self) -> None:
        """From here on find out, in the background, whether the provider answers."""
        self._out.set()
        self._trying = asyncio.create_task(self._keep_trying(), name="embedding-try")

    def ask(self, subject: str, text: str, *, private: bool, names: Iterable[str] = ()) -> Question | None:
        """Begin to embed what a subject asks; None when that is not to be, or not now. Never blocks.

        What is said in `private` goes only to a provider on this machine. `names` are those of who takes part
        in the talk; they say nothing of what is meant, and are left out.
        """
        text = without_names(text, names)[:LONGEST_QUESTION]
        if not self.in_time or self._closed or not text or (private and not self._embedder.stays_here):
            return None
        matrix = self._begin(self.embedding.matrix(subject))
        return Question(self, self._begin(self._vector(text, matrix)), matrix, subject)

    def want(self, subject: str, items: Iterable[Item]) -> None:
        """These items are in use, and need vectors some time. Never blocks."""
        self.embedding.want(subject, items)

    async def cosines(
        self, subject: str, text: str, items: Collection[Item], *, private: bool
    ) -> Mapping[str, float]:
        """Ask, and wait as long as a reply may. Never raises."""
        question = self.ask(subject, text, private=private)
        return await question.cosines(items) if question is not None else {}

    def answered(self, vector: asyncio.Task[Sequence[float]]) -> Sequence[float] | None:
        """The vector of a question, if it is there by now; else nobody waits for the next one."""
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
        """The provider's vectors are of another length than those there are."""
        self._begin(self.embedding.outdated(subject))

    async def settle(self) -> None:
        """Wait until nothing is asked, but by tries that come later."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self.embedding.settle()

    async def close(self) -> None:
        """Stop asking, and give the provider's connections back."""
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
        """The vector of a question, which is not even asked where there is nothing to compare with."""
        return await self._one(text, STALE_S) if await asyncio.shield(matrix) else ()

    async def _one(self, text: str, timeout_s: float) -> Sequence[float]:
        (vector,) = await self._embedder.embed([text], timeout_s=timeout_s)
        return vector

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Work of which perhaps nobody asks what came of it."""
        task = asyncio.create_task(work, name="question")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        return task

    async def _keep_trying(self) -> None:
        """Whenever nobody waits any more, try until it answers in time. The first try may take its time."""
        first, said = True, ""
        while await self._out.wait():
            if not first:
                await asyncio.sleep(self._next_rest_s)
                self._next_rest_s = min(self._next_rest_s * 2, LONGEST_REST_S)
            try:
                await self._one(PROBE, self._timeout_s if first else self.wait_s)
            except Exception as error:  # a named edge: a try may fail in any way, and replies go on
                if str(error) != said:  # once, however often it is tried
                    said = str(error)
                    ours = isinstance(error, EmbeddingError)
                    log.warning("vectors can not be used: %s", said, exc_info=None if ours else error)
            else:
                self._out.clear()
                said = ""
                log.info("items are found by their meaning too: %s", self._embedder.name)
            first = False


class NoMeaning(Passive):
    """In place of `Meaning` where there are no vectors: items are found by their words alone."""

    joins: tuple[()] = ()
    in_time = False

    def ask(self, subject: str, text: str, *, private: bool, names: Iterable[str] = ()) -> None:
        """Nothing is asked."""

    def want(self, subject: str, items: Iterable[Item]) -> None:
        """Nothing is embedded."""

    async def cosines(
        self, subject: str, text: str, items: Collection[Item], *, private: bool
    ) -> Mapping[str, float]:
        """No cosines."""
        return {}


def without_names(text: str, names: Iterable[str]) -> str:
    """A text without the names, whole or by their first words, of those who talk."""
    said = {name.strip() for name in names}
    said |= {name.split()[0] for name in said if name}
    either = "|".join(re.escape(name) for name in sorted(said, key=len, reverse=True) if len(name) > 1)
    if either:
        text = re.sub(rf"@?(?<!\w)(?:{either})(?:['’]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def _result(task: asyncio.Task[T]) -> T | None:
    """What a task gave, if it gave anything by now."""
    done = task.done() and not task.cancelled() and task.exception() is None
    return task.result() if done else None

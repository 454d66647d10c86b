"""The meaning of a message beside its words: its vector, and how near that is to a person's items.

A question is embedded as early in a turn as possible, and a reply waits a quarter of a second for it at most.
After a late or failed answer no question is sent until a background try was answered in time; the first try
runs at the start. Each try also looks whether the model is the one that was measured (`Floor`); until
its floor is known, and for a model that can't tell what belongs together, no question is sent. A reply never
depends on this: without vectors items are found by their words.
Uses a provider only to embed texts.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from discoclaw.core.consent import Consent
from discoclaw.core.errors import DiscoClawError, EmbeddingRefused, MemoryFault
from discoclaw.core.item import Item
from discoclaw.core.message import Place
from discoclaw.core.ports import Embedder, Passive
from discoclaw.core.query import NO_COSINES
from discoclaw.core.visible import VisibleItems
from discoclaw.loops.embedding import LONGEST_REST_S, REST_S, TIMEOUT_S, Embedding, TalkEmbedding
from discoclaw.recall.floor import NEVER, PAIRS, PROBE, RULE, floor_of, texts
from discoclaw.recall.talk import NOTHING_MEANT, Meant
from discoclaw.search.matrix import Matrix, alike, cosines_of, packed
from discoclaw.search.talk_vectors import TalkVectors
from discoclaw.search.vectors import Measured, hash_of
from discoclaw.store.files import in_thread

log = logging.getLogger(__name__)


# ----------------------------------------------------------------------
# Measures what the cosines of an embedding model say, when the model is used for the first time.
#
# The floor is kept in the cache of vectors, by the model's name. A name doesn't say which weights are behind
# it: a server may get others. So the vector of one text, the probe, is kept beside the floor. If the provider
# gives another one for it later, everybody's vectors are made again, and the floor is measured again.
# Uses a provider only to embed texts, which are the bot's own.

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


# ----------------------------------------------------------------------


T = TypeVar("T")

WAIT_S = 0.25
"""The longest a reply waits for the vector of its question."""
STALE_S = 5.0
"""A question whose answer nobody collected within this time is cancelled."""
AGAIN_S = 3600.0
"""After this time, the next question has a look taken at whether the model is still the same."""
LONGEST_QUESTION = 2000
"""The most characters of a question; its beginning says best what it is about."""


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
        known = self._matrix.done() and not self._matrix.cancelled() and self._matrix.exception() is None
        matrix = self._matrix.result() if known else None
        if not matrix or not items:
            return NO_COSINES  # no item has a vector, so there is nothing to wait for
        await asyncio.wait([self._vector], timeout=max(0.0, until - loop.time()))
        vector = self._meaning.answered(self._vector)
        if vector is None:
            return NO_COSINES
        if matrix.dims != len(vector):
            self._meaning.outdated(self._who)
            return NO_COSINES
        return matrix.cosines(vector, VisibleItems.of(items).texts)

    async def vector(self) -> Sequence[float] | None:
        """Return the question's vector. None if it was not asked for, failed, or is late; never raises."""
        return await self._meaning.wait(self._vector) or None


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
        again_s: float = AGAIN_S,
    ) -> None:
        self.joins = (embedding,)
        """The parts that listen to memory, and that an erasing visits."""
        self.embedding = embedding
        self.wait_s = wait_s
        self._embedder = embedder
        self._floor = Floor(embedder, embedding)
        self._rest_s = self._next_rest_s = rest_s
        self._timeout_s = timeout_s
        self._again_s = again_s
        self._looked_at = 0.0
        self._out = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._trying: asyncio.Task[None] | None = None
        self._closed = False
        embedding.doubted = self._doubt

    @property
    def floor(self) -> float:
        """The cosine from which an item may be what a question means, whatever its words."""
        return self._floor.value

    @property
    def embedder(self) -> Embedder:
        """The embedder that makes the vectors."""
        return self._embedder

    @property
    def in_time(self) -> bool:
        """Whether the provider answered in time lately; otherwise no questions are sent."""
        return self._trying is not None and not self._out.is_set()

    async def start(self) -> None:
        """Start to find out, in the background, whether the provider answers."""
        self._out.set()
        self._trying = asyncio.create_task(self._keep_trying(), name="embedding-try")

    def ask(
        self, subject: str, text: str, *, private: bool, names: Iterable[str] = (), always: bool = False
    ) -> Question | None:
        """Begin to embed a subject's question; None if not allowed, or not possible now. Never blocks.

        What is said in `private` goes only to a provider on this machine. `names` are those of the people in
        the talk; they add nothing to the meaning, and are left out. `always`: the vector is also wanted if no
        item of the subject has one.
        """
        if not (text := self._askable(text, names, private=private)):
            return None
        matrix = self._begin(self.embedding.matrix(subject))
        vector = self._one(text, STALE_S) if always else self._vector(text, matrix)
        question = Question(self, self._begin(vector), matrix, subject)
        self._look_again()
        return question

    async def vector(self, text: str, *, private: bool, names: Iterable[str] = ()) -> Sequence[float] | None:
        """Return a text's vector, after waiting as long as a reply may; None without one. Never raises."""
        if not (text := self._askable(text, names, private=private)):
            return None
        vector = self._begin(self._one(text, STALE_S))
        self._look_again()
        return await self.wait(vector)

    async def wait(self, vector: asyncio.Task[Sequence[float]]) -> Sequence[float] | None:
        """Return the vector of a question if it arrives as soon as a reply needs it. Never raises."""
        await asyncio.wait([vector], timeout=self.wait_s)
        return self.answered(vector)

    def want(self, subject: str, items: Iterable[Item]) -> None:
        """Queue items in use for embedding, if they lack vectors. Never blocks."""
        self.embedding.want(subject, items)

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
            log.warning("items and talk are found by their words alone for now: %s", why)
            self._doubt()
        return None

    def outdated(self, subject: str) -> None:
        """Handle a subject's vectors, and a question's, that have different lengths."""
        self._doubt()
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

    def _askable(self, text: str, names: Iterable[str], *, private: bool) -> str:
        """The text to send for a question; "" if none may be sent, or can be now."""
        if not self.in_time or self._closed or (private and not self._embedder.stays_here):
            return ""
        return without_names(text, names)[:LONGEST_QUESTION]

    def _doubt(self) -> None:
        """Ask nothing more until a try has shown what the provider answers now."""
        self._out.set()

    def _look_again(self) -> None:
        """Look from time to time whether the model is still the one that was measured."""
        if asyncio.get_running_loop().time() - self._looked_at >= self._again_s:
            self._looked()
            self._begin(self._look())

    def _looked(self) -> None:
        self._looked_at = asyncio.get_running_loop().time()

    async def _look(self) -> None:
        """Have a try made if another model seems to be behind the provider's name. Raises EmbeddingError."""
        if not self._floor.is_of(await self._one(PROBE, self._timeout_s)):
            self._doubt()

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
        """Try until the provider answers in time, once replies have stopped asking. The first may be slow."""
        first, said = True, ""
        while await self._out.wait():
            if not first:
                await asyncio.sleep(self._next_rest_s)
                self._next_rest_s = min(self._next_rest_s * 2, LONGEST_REST_S)
            try:
                vector = await self._one(PROBE, self._timeout_s if first else self.wait_s)
                await self._floor.check(vector, timeout_s=self._timeout_s)
            except Exception as error:  # deliberately broad: a try may fail in any way, and replies go on
                if str(error) != said:  # log a failure once, however often it recurs
                    said = str(error)
                    ours = isinstance(error, DiscoClawError)
                    log.warning("vectors cannot be used: %s", said, exc_info=None if ours else error)
            else:
                said = ""
                if self.floor == NEVER:
                    log.warning(
                        "items are found by their words alone: "
                        "%s can't tell texts that belong together from others; choose another model",
                        self._embedder.name,
                    )
                    return
                self._looked()
                self._out.clear()
                what = "items are found by their meaning too: %s, from a cosine of %.2f"
                log.info(what, self._embedder.name, self.floor)
            first = False


class NoMeaning(Passive):
    """Stands in for `Meaning` where there are no vectors: items are found by their words alone."""

    joins: tuple[()] = ()
    in_time = False
    floor = NEVER

    def ask(
        self, subject: str, text: str, *, private: bool, names: Iterable[str] = (), always: bool = False
    ) -> None:
        """Return None: there is no provider to ask."""

    def want(self, subject: str, items: Iterable[Item]) -> None:
        """Does nothing: nothing is embedded."""


def without_names(text: str, names: Iterable[str]) -> str:
    """A text without the names of the people in the talk, in full or by their first words."""
    said = {name.strip() for name in names}
    said |= {name.split()[0] for name in said if name}
    either = "|".join(re.escape(name) for name in sorted(said, key=len, reverse=True) if len(name) > 1)
    if either:
        text = re.sub(rf"@?(?<!\w)(?:{either})(?:['’]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())


# ----------------------------------------------------------------------
# The meaning of a search of talk: its vector, compared with those of the archived messages.

Speakers = Callable[[], Awaitable[Collection[str]]]
"""Returns the names of those who spoke where a search looks."""
Archived = Callable[[Place], bool]
"""Whether messages at a place are archived now."""


@dataclass(frozen=True, slots=True)
class Asker:
    """A searcher of talk, and whether that is `private`. `question`: the query, if it is embedded already."""

    user_id: str
    private: bool
    question: Question | None = None


class TalkMeaning:
    """Embeds searches of talk; `touch` says that the archive has changed."""

    def __init__(
        self,
        meaning: Meaning,
        vectors: TalkVectors,
        embedding: TalkEmbedding,
        *,
        consent: Consent,
        weights: Meant,
    ) -> None:
        self._meaning = meaning
        self._vectors = vectors
        self._embedding = embedding
        self._consent = consent
        self._weights = weights

    @property
    def weights(self) -> Meant:
        """How much the meaning counts."""
        return replace(self._weights, floor=self._meaning.floor)

    def saw(self, place: Place, archived: Archived) -> None:
        """Note a place where something is said. Never blocks.

        What is said where not everybody reads along goes to no provider elsewhere, nor does what was kept of
        a place where nothing is archived any more.
        """
        if place.group_id is not None:
            still = partial(archived, place)
            where = place.channel_id if place.closed else place.group_id
            self._vectors.saw(f"@g{where}", open_=still() and not place.private, still=still)

    def touch(self) -> None:
        """Embed what is new. Never blocks."""
        self._embedding.touch()

    async def asked(self, query: str, by: Asker, speakers: Speakers) -> Sequence[float] | None:
        """The vector to search the archive with; None if the query has none, or not in time.

        The names of `speakers` are left out of what is embedded. Raises what that raises.
        """
        if not self._meaning.in_time or self._consent.opted_out(by.user_id):
            return None
        if by.question is not None:
            vector = await by.question.vector()
        else:
            vector = await self._meaning.vector(query, private=by.private, names=await speakers())
        if vector is None:
            return None
        if self._vectors.dims not in (0, len(vector)):
            self._meaning.embedding.doubted()  # whether the provider's model is another now
            self._embedding.touch()
        return self._vectors.asked(vector)


class NoTalkMeaning:
    """Stands in for `TalkMeaning` where there are no vectors."""

    weights = NOTHING_MEANT

    def saw(self, place: Place, archived: Archived) -> None:
        """Does nothing: nothing is embedded."""

    def touch(self) -> None:
        """Does nothing: nothing is embedded."""

    async def asked(self, query: str, by: Asker, speakers: Speakers) -> None:
        """Return None: there is no provider to ask."""

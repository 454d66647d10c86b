"""Finds which items are nearest to what a person said, so that a small model can update them.

Words are ranked as for a reply, one query for each message. Vectors count too where there are any. Nobody
waits for this: a memory is ranked in a thread, and a provider that hangs or fails costs some seconds,
after which the words decide alone.
"""

import asyncio
import heapq
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from discoclaw.core.errors import EmbeddingError, MemoryFault
from discoclaw.core.item import Item, by_newest
from discoclaw.core.ports import Recall, Signals
from discoclaw.core.query import Query
from discoclaw.core.visible import VisibleItems
from discoclaw.loops.embedding import Embedding
from discoclaw.loops.review import Meanings
from discoclaw.recall.document import Documents
from discoclaw.recall.query import LONGEST_REQUEST, parse
from discoclaw.recall.rank import Ranker
from discoclaw.search.matrix import Matrix

log = logging.getLogger(__name__)

MOST_CLUES = 40
"""The most queries of one search; more messages than this are joined."""
MOST_BY_WORDS = 40
"""The most items that one query finds by their words."""
MOST_BY_MEANING = 10
"""The most items that one query finds by its vector."""
WAIT_S = 10.0
"""The longest wait for the provider of vectors."""
PAUSE_S = 0.001
"""After each query the interpreter is yielded, so that replies go on."""

Cosines: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Clue:
    """A message in a person's own words. `before` is the talk before it, which may be anybody's."""

    text: str
    before: str = ""


class Nearest:
    """Finds items by words, and by `vectors` if they are given.

    `documents` are those that the ranking of replies has made. `floor` is the cosine from which one text may
    be about the same as another. Above 1, no cosine says so.
    """

    def __init__(
        self,
        vectors: Embedding | None = None,
        documents: Documents | None = None,
        *,
        floor: Callable[[], float] = lambda: 0.0,
        wait_s: float = WAIT_S,
    ) -> None:
        self._vectors = vectors
        self._documents = documents
        self._floor = floor
        self._wait_s = wait_s

    async def to(
        self, subject: str, items: Sequence[Item], clues: Sequence[Clue], *, private: bool
    ) -> list[str]:
        """The ids of those `items` that any of the clues comes near to, nearest first. Never raises.

        What is said in `private` goes only to a provider on this machine.
        """
        asked = few(clues)
        if not asked or not items:
            return []
        known = VisibleItems.of(items)
        queries = [parse(clue.text, recent=clue.before) for clue in asked]
        cosines = await self._cosines(subject, [clue.text for clue in asked], known, private=private)
        # A ranker of its own: the one of the replies may be used by their thread only.
        ranker = Ranker(documents=Documents(self._documents))
        return await asyncio.to_thread(_found, ranker, queries, known, cosines, self._floor())

    async def meanings(self, subject: str) -> Meanings:
        """The vectors that a subject's items have by now. Nothing is sent anywhere. Never raises."""
        try:
            matrix = (await self._vectors.matrix(subject)).copy() if self._vectors is not None else None
        except MemoryFault as fault:
            log.info("%s: near items are found by their words alone: %s", subject, fault)
            matrix = None
        return Meanings(matrix, self._floor())

    async def _cosines(
        self, subject: str, texts: Sequence[str], items: Sequence[Item], *, private: bool
    ) -> Sequence[Cosines]:
        """The cosines of the items that have vectors, for each text; empty where there are none."""
        nothing: Sequence[Cosines] = [{}] * len(texts)
        if self._vectors is None or self._floor() > 1:
            return nothing
        self._vectors.want(subject, items)
        try:
            matrix = (await self._vectors.matrix(subject)).copy()
            if not len(matrix):
                return nothing
            asked = await self._vectors.asked(subject, texts, private=private, timeout_s=self._wait_s)
        except (EmbeddingError, MemoryFault) as error:
            log.info("%s: known items are found by their words alone: %s", subject, error)
            return nothing
        if len(asked) != len(texts):
            return nothing
        return await asyncio.to_thread(_compared, matrix, asked, items)


def few(clues: Sequence[Clue]) -> list[Clue]:
    """At most `MOST_CLUES` clues that say all of it: long ones are cut, and of very many some are joined."""
    parts = [
        Clue(part, clue.before if not begin else "")
        for clue in clues
        for begin, part in _parts(clue.text)
        if part.strip()
    ]
    step = -(-len(parts) // MOST_CLUES) or 1
    groups = (parts[begin : begin + step] for begin in range(0, len(parts), step))
    return [Clue("\n".join(one.text for one in group), group[0].before) for group in groups]


def _parts(text: str) -> list[tuple[int, str]]:
    """A text in pieces that a query reads as a whole, with where each begins; cut between words."""
    found, begin = [], 0
    while len(text) - begin > LONGEST_REQUEST:
        end = text.rfind(" ", begin, begin + LONGEST_REQUEST)
        end = end if end > begin else begin + LONGEST_REQUEST
        found.append((begin, text[begin:end]))
        begin = end
    return [*found, (begin, text[begin:])]


# ---------------------------------------------------------------------- in a thread


def _compared(matrix: Matrix, asked: Sequence[Sequence[float]], items: Sequence[Item]) -> list[Cosines]:
    texts = {item.id: item.text for item in items}
    found: list[Cosines] = []
    for vector in asked:
        found.append(matrix.cosines(vector, texts))
        time.sleep(PAUSE_S)
    return found


def _found(
    ranker: Recall,
    queries: Sequence[Query],
    items: VisibleItems,
    cosines: Sequence[Cosines],
    floor: float,
) -> list[str]:
    """The ids of what any query finds, by their best place in any of the lists; ties are newer first."""
    places: dict[str, int] = {}
    known = items.by_id
    for query, near in zip(queries, cosines, strict=True):
        hits = ranker.consider(query, items, now_ms=0, signals=Signals(near, floor=floor))
        by_words = [hit.item.id for hit in hits[:MOST_BY_WORDS]]
        for ids in (by_words, _by_meaning(near, known)):
            for place, one in enumerate(ids):
                places[one] = min(place, places.get(one, place))
        time.sleep(PAUSE_S)
    return sorted(places, key=lambda one: (places[one], *by_newest(known[one])))


def _by_meaning(cosines: Cosines, known: Mapping[str, Item]) -> list[str]:
    """The items with the nearest vectors; ties by id.

    Whatever their cosine: the model sees most of a memory anyway, and is to see these first.
    """
    near = (one for one in cosines if one in known)
    return heapq.nsmallest(MOST_BY_MEANING, near, key=lambda one: (-cosines[one], one))

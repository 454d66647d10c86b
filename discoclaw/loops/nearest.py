"""Which items are near each other, for a consolidation, and nearest to what a person said, for an extraction.

Words are ranked as for a reply, one query for each message. Vectors count too where there are any. Nobody
waits for this: a memory is ranked in a thread, and a provider that hangs or fails costs some seconds,
after which the words decide alone.
"""

import asyncio
import heapq
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from discoclaw.core import titles
from discoclaw.core.consolidate import available
from discoclaw.core.errors import EmbeddingError, MemoryFault
from discoclaw.core.item import Item, Sensitivity, by_newest
from discoclaw.core.ports import Recall, Signals
from discoclaw.core.query import Query
from discoclaw.core.times import date_of
from discoclaw.core.view import View
from discoclaw.core.visible import VisibleItems
from discoclaw.core.words import terms
from discoclaw.loops.embedding import Embedding
from discoclaw.prompt.quote import quote_entry
from discoclaw.recall.document import LONGEST_REQUEST, Documents, dates_in, of_item, parse
from discoclaw.recall.rank import Ranker
from discoclaw.recall.terms import rarity
from discoclaw.search.matrix import Matrix

# ----------------------------------------------------------------------
# Which items a consolidation shows to a model together, so that each pair that is near is looked at once.
#
# A memory that fits into one prompt is shown as a whole. Of a larger one, each item that waits for a review
# is shown beside its neighbours, by words and by vectors where there are any. What is left when
# `MOST_BATCHES` are full waits for the next time. Open and private items are never in one batch,
# confidential ones in none.
#
# What waits is known from the history: what changed since the last review, what was left over then, and
# what a date in its own words has put in the past since. A thread does this, and pauses now and then.


BATCH_ITEMS = 150
BATCH_CHARS = 12_000
MOST_BATCHES = 10
"""The limit of one run for open and for private items each."""
FEWEST = 10
"""Fewer items than this are shown beside the newest ones."""
NEAR_BY_MEANING = 5
"""How many items with the nearest vectors are shown beside one. All of 108 replaced facts were among them."""
LEVELS: tuple[Sensitivity, ...] = ("normal", "private")
AT_ONCE = 20
PAUSE_S = 0.001
"""After every `AT_ONCE` items, and after each query, the interpreter is yielded, so that replies go on."""

Near: TypeAlias = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The items of each prompt, and the ids of those that wait for the next run.

    `new` are, for each prompt, the ids of those that it is made for.
    """

    batches: tuple[tuple[Item, ...], ...] = ()
    left: frozenset[str] = frozenset()
    new: tuple[frozenset[str], ...] = ()

    def left_from(self, place: int) -> frozenset[str]:
        """The ids of what waits if the prompts from one on are not made."""
        return self.left.union(*self.new[place:])


@dataclass(frozen=True, slots=True)
class Meanings:
    """The vectors of a memory, if there are any, and the cosine from which two may be about the same."""

    matrix: Matrix | None = None
    floor: float = 0.0


def planned(view: View, waiting: Collection[str] | None = None, meanings: Meanings = Meanings()) -> Plan:
    """The items of a view to review; `waiting` are the ids of those that need it, None: all. For a thread."""
    asked = [one for conflict in view.conflicts for one in (conflict.item_id, conflict.other_id)]
    items = sorted(available(view.items.values(), asked), key=by_newest)
    found: list[tuple[Item, ...]] = []
    left: set[str] = set()
    made_for: list[frozenset[str]] = []
    for level in LEVELS:
        group = [item for item in items if item.facets.sensitivity == level]
        new = {item.id: item for item in group if waiting is None or item.id in waiting}
        if not new or len(group) < 2:  # a single item has nothing to be compared with
            continue
        if len(group) <= BATCH_ITEMS and sum(map(_size, group)) <= _ROOM:
            found.append(tuple(group))
            made_for.append(frozenset(new))
            continue
        batches, rest = _packed(group, new, _near(group, meanings))
        found += batches.values()
        made_for += batches
        left |= rest
    return Plan(tuple(found), frozenset(left), tuple(made_for))


def over_since(items: Collection[Item], before_ms: int, now_ms: int) -> set[str]:
    """The ids of items that name a day or month that has passed between two times."""
    before, now = date_of(before_ms), date_of(now_ms)
    found = set()
    for item in items:
        named = {term[2:] for term in dates_in(item.text) if len(term) >= len("d:2026-01")}
        days = [one for one in named if not any(one != more and more.startswith(one) for more in named)]
        if any(before[: len(one)] <= one < now[: len(one)] for one in days):
            found.add(item.id)
    return found


def prompt(items: Sequence[Item], now_ms: int) -> str:
    """The prompt of one review: today's date, and the items."""
    return titles.SEPARATOR.join(
        [
            f"{titles.TODAY}\n{date_of(now_ms)}",
            "\n".join([titles.TO_TIDY, *(entry(item) for item in items)]),
        ]
    )


def entry(item: Item) -> str:
    """An item's line in a prompt."""
    since, updated = date_of(item.created_at), date_of(item.updated_at)
    about = f"({item.facets.author}, since {since}, updated {updated})"
    return f"- {quote_entry(item.id)} [{item.kind}] {about} {quote_entry(item.text)}"


_ROOM = BATCH_CHARS - len(prompt([], 0))


def _size(item: Item) -> int:
    return len(entry(item)) + 1


def _near(items: Sequence[Item], meanings: Meanings) -> Near:
    """A function that returns the ids of the items near to one."""
    count = 0

    def pause() -> None:
        nonlocal count
        count += 1
        if count % AT_ONCE == 0:
            time.sleep(PAUSE_S)

    words, texts = Neighbours(items, pause), {item.id: item.text for item in items}
    rows = meanings.matrix.rows_of(texts) if meanings.matrix is not None else None

    def near(one: str) -> list[str]:
        pause()
        by_meaning = rows.nearest(one, NEAR_BY_MEANING, meanings.floor) if rows is not None else []
        return list(dict.fromkeys([*words.of(one), *by_meaning]))

    return near


def _packed(
    items: Sequence[Item], new: dict[str, Item], near: Near
) -> tuple[dict[frozenset[str], tuple[Item, ...]], set[str]]:
    """Batches of new items (ids) with their neighbours, and those new ones that no batch has room for.

    An item's neighbours come next, so that those near each other are shown in few batches.
    """
    known = {item.id: item for item in items}
    todo, queue, found = dict.fromkeys(new), deque[str](), dict[frozenset[str], tuple[Item, ...]]()
    while todo and len(found) < MOST_BATCHES:
        batch: dict[str, Item] = {}
        waited = set(todo)
        room = _ROOM
        while todo:
            while queue and queue[0] not in todo:
                queue.popleft()
            one = queue[0] if queue else next(iter(todo))
            beside = [other for other in near(one) if other in known]
            group = [known[name] for name in (one, *beside) if name not in batch]
            size = sum(map(_size, group))
            if batch and (size > room or len(batch) + len(group) > BATCH_ITEMS):
                break
            while size > room and len(group) > 2:  # the nearest come first
                size -= _size(group.pop())
            batch.update((item.id, item) for item in group)
            room -= size
            del todo[one]
            queue.extend(beside)
        for item in items:  # newest first
            if len(batch) >= FEWEST:
                break
            batch.setdefault(item.id, item)
        found[frozenset(waited.difference(todo))] = tuple(batch.values())
    return found, set(todo)


# ----------------------------------------------------------------------
# Which items of a memory are about the same, by their words: the pairs that a review has to look at.
#
# Two items are near if they share much of the shorter one, each term weighted by its rarity; the nearest are
# those with the highest cosine of all their terms.
# Terms that many items have tell nothing, and following them would take quadratic time.


MOST = 5
"""The most neighbours of an item."""
LEAST = 0.25
"""The smallest share of the shorter one. "Lives in Linz", "lives in Graz" have 0.3 to 0.4 among thousands."""
FREQUENT = 1 / 10
"""A term of a larger share of the items tells nothing, unless the items that have it are `FEW`."""
FEW = 20
MOST_WITH = 200
"""A term that more items have tells nothing, however many there are."""


class Neighbours:
    """The neighbours of the items of one memory. `pause` is called after each item that is read."""

    def __init__(self, items: Sequence[Item], pause: Callable[[], None] = lambda: None) -> None:
        self._newer = {item.id: place for place, item in enumerate(sorted(items, key=by_newest))}
        self._terms: dict[str, frozenset[str]] = {}
        for item in items:
            document = of_item(item)
            marks = document.marks.difference(terms(item.kind))  # two projects have nothing in common yet
            self._terms[item.id] = marks.union(document.terms)
            pause()
        counts = Counter(term for known in self._terms.values() for term in known)
        most = min(MOST_WITH, max(FEW, int(len(items) * FREQUENT)))
        self._weights = {
            term: rarity(count, len(items)) ** 2 for term, count in counts.items() if count <= most
        }
        self._with: dict[str, list[str]] = {}
        self._lengths: dict[str, float] = {}
        for one, known in self._terms.items():
            telling = [term for term in known if term in self._weights]
            self._lengths[one] = math.sqrt(math.fsum(self._weights[term] for term in telling))
            for term in telling:
                self._with.setdefault(term, []).append(one)

    def of(self, item_id: str) -> list[str]:
        """The ids of the nearest items, nearest first; ties are newer first."""
        shared: dict[str, list[float]] = {}
        for term in self._terms[item_id] & self._weights.keys():
            for other in self._with[term]:
                shared.setdefault(other, []).append(self._weights[term])
        shared.pop(item_id, None)
        length, near = self._lengths[item_id], dict[str, float]()
        for other, both in shared.items():
            weight, others = math.fsum(both), self._lengths[other]
            if weight >= LEAST * min(length, others) ** 2:
                near[other] = weight / (length * others)
        return heapq.nsmallest(MOST, near, key=lambda other: (-round(near[other], 9), self._newer[other]))


# ----------------------------------------------------------------------
# The items nearest to what a person said, so that a small model can update them.


log = logging.getLogger(__name__)

MOST_CLUES = 40
"""The most queries of one search; more messages than this are joined."""
MOST_BY_WORDS = 40
"""The most items that one query finds by their words."""
MOST_BY_MEANING = 10
"""The most items that one query finds by its vector."""
WAIT_S = 10.0
"""The longest wait for the provider of vectors."""

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

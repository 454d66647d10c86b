"""Chooses which of a person's items are ranked for a message: all, or in a large memory only candidates.

Ranking all of some thousand items is quick. Above that, a full-text index on disk names the candidates. Items
that the index does not have yet are added, so that nothing recent is missed; standing items are always
included. The caller decides beforehand who may see an item: only items that are passed in come back. A reply
waits two seconds at most for the index; without it the newest items are ranked. Never raises.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from types import MappingProxyType

from discoclaw.core.cosines import Cosines
from discoclaw.core.errors import MemoryFault
from discoclaw.core.item import Item
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.ports import Clock
from discoclaw.core.ports import Pool as Pool  # part of this module's interface
from discoclaw.core.query import Query
from discoclaw.core.visible import VisibleItems
from discoclaw.core.words import others_for
from discoclaw.memory.subjects.store import Memory
from discoclaw.recall.corpus import Counted
from discoclaw.recall.document import indexed, of_item
from discoclaw.recall.names import asked_names
from discoclaw.recall.spelling import Vocabulary
from discoclaw.recall.standing import considered
from discoclaw.search.item_index import ItemIndex
from discoclaw.work import GRACE_S, Worker

log = logging.getLogger(__name__)

LARGE = 2_000
"""A memory with more active items than this is searched through its index."""
MOST_FRESH = 0.1
"""The largest share of a memory that may be missing from the index and is ranked beside the candidates."""
MOST_LATELY = 8
"""How many sorted lists of items are cached for the next message."""
WAIT_S = 2.0
REST_MS = 60_000
"""How long an index is left alone after a failure."""
_AT_ONCE = 4
"""How many indices are updated concurrently."""


def words_of(item: Item) -> tuple[list[str], int]:
    """The index entry of an item: its tokens, and its length in terms."""
    document = of_item(item)
    return indexed(document), document.length


class _Spellings:
    """Replacements for terms that no item has. `near` caches what other spellings are found."""

    def __init__(self) -> None:
        self.near: dict[str, tuple[tuple[str, float], ...]] = {}

    def __call__(self, term: str, alike: Sequence[str]) -> list[str]:
        self.near[term] = Vocabulary(alike).near(term)
        return [*others_for(term), *(name for name, _ in self.near[term])]


@dataclass(frozen=True, slots=True)
class _Sorted:
    """What somebody may see of a branch while the index is at `held`; it lacks the `fresh` items."""

    items: VisibleItems
    held: Mapping[str, Item]
    fresh: Sequence[Item]


class Finder(PersonalData):
    """Updates the indices of `memory`, each at its next use, and queries them."""

    name = "sorted items"

    def __init__(
        self, memory: Memory, index: ItemIndex, *, clock: Clock, large: int = LARGE, wait_s: float = WAIT_S
    ) -> None:
        self._memory = memory
        self._index = index
        self._clock = clock
        self._large = large
        self._wait_s = wait_s
        self._looks: set[asyncio.Task[Pool | None]] = set()
        self._worker = Worker("item index", self._bring, at_once=_AT_ONCE, retry_s=None)
        self._rest_until: dict[tuple[str, str], int] = {}
        self._lately: deque[_Sorted] = deque(maxlen=MOST_LATELY)
        self._closed = False

    async def pool(
        self,
        subject: str,
        branch: str | None,
        items: Sequence[Item],
        query: Query,
        *,
        cosines: Mapping[str, float] = MappingProxyType({}),
    ) -> Pool:
        """The items to rank for a query among `items`, the active items of a subject's branch.

        `cosines` are similarities by item id; the nearest items are included whatever their words.
        """
        if len(items) <= self._large:
            return Pool(items)
        if branch is None or self._closed or query.everything:
            return self._newest(items)
        nearest = Cosines.of(cosines).nearest
        terms = (*query.wanted, *asked_names(query.terms))
        looking = asyncio.create_task(self._look(subject, branch, items, terms, nearest))
        self._looks.add(looking)
        looking.add_done_callback(self._looks.discard)
        await asyncio.wait([looking], timeout=self._wait_s)
        found = looking.result() if looking.done() and not looking.cancelled() else None
        return found or self._newest(items)

    def _newest(self, items: Sequence[Item]) -> Pool:
        known = VisibleItems.of(items)
        first = (*known.newest[: self._large], *considered(known))
        return Pool(list({item.id: item for item in first}.values()))

    # ------------------------------------------------------------------ querying

    async def _look(
        self, subject: str, branch: str, items: Sequence[Item], terms: Sequence[str], also: Sequence[str]
    ) -> Pool | None:
        try:
            return await self._candidates(subject, branch, items, terms, also)
        except (MemoryFault, OSError) as fault:
            log.warning("%s: the newest items are looked at alone: %s", subject, fault)
        except Exception:  # deliberately broad: a reply goes on without the index, whatever fails there
            log.exception("%s: the newest items are looked at alone", subject)
        return None

    async def _candidates(
        self, subject: str, branch: str, items: Sequence[Item], terms: Sequence[str], also: Sequence[str]
    ) -> Pool | None:
        given = self._given(subject, branch, items)
        if given is None:
            self._sync(subject, branch)
            await self._worker.settle((subject, branch))
            if (given := self._given(subject, branch, items)) is None:
                return None
        elif given.fresh or self._behind(subject, branch):
            self._sync(subject, branch)
        spellings, known, fresh = _Spellings(), given.items.by_id, given.fresh
        found = await self._index.candidates(subject, branch, terms, among=known, instead=spellings)
        if found is None:
            return None
        linked = (other for item in fresh for other in item.facets.links)
        ids = (
            *found.ids,
            *(item.id for item in (*fresh, *considered(given.items))),
            *linked,
            *also,
        )
        pool = [known[one] for one in dict.fromkeys(ids) if one in known]
        counted = Counter(found.frequencies)  # plus what the index does not have yet
        counted.update(term for item in fresh for term in counted.keys() & set(words_of(item)[0]))
        return Pool(pool, Counted(found.total + len(fresh), found.average, counted, spellings.near))

    def _given(self, subject: str, branch: str, items: Sequence[Item]) -> _Sorted | None:
        """The sorted items, or None if the index does not help."""
        held = self._index.indexed(subject, branch)
        if held is None:
            return None
        for given in self._lately:
            same = given.items is items or (
                len(given.items) == len(items) and all(map(is_, given.items, items))
            )
            if given.held is held and same:
                return given
        fresh = [item for item in items if held.get(item.id) is not item]
        if len(fresh) > MOST_FRESH * self._large:
            return None
        given = _Sorted(VisibleItems.of(items), held, fresh)
        self._lately.append(given)
        return given

    def _behind(self, subject: str, branch: str) -> bool:
        """Whether the index lags by more than removals: a removed item may stay in it without harm."""
        view = self._memory.view_in_ram(subject, branch)
        return view is not None and view.head != self._index.head(subject, branch)

    # ------------------------------------------------------------------ updating

    def _sync(self, subject: str, branch: str) -> None:
        """Start updating an index, unless that is under way or the index is resting after a failure."""
        key = (subject, branch)
        rests = self._clock() < self._rest_until.get(key, 0)
        if not rests and not self._closed and not self._worker.busy(key):
            self._worker.note(key)

    async def _bring(self, key: tuple[str, str]) -> None:
        if self._closed:
            return
        subject, branch = key
        try:
            await self._index.sync(subject, branch, await self._memory.view(subject, branch))
        except Exception:
            self._rest_until[key] = self._clock() + REST_MS
            raise
        self._rest_until.pop(key, None)

    async def start(self) -> None:
        """Does nothing: an index is made at its first use."""

    def forget(self, erasure: Erasure) -> None:
        self._lately.clear()

    async def settle(self) -> None:
        """Wait until no index is being updated."""
        while self._looks:
            await asyncio.wait(self._looks)
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Stop. Unfinished indices are continued at their next use."""
        self._closed = True
        self._index.stop()
        await self._worker.close(grace_s)
        await self.settle()

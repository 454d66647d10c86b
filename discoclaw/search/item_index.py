"""The full-text index for people with many items: finds in milliseconds the few that a query may be about.

Each subject and branch has one file (`item_file`). It is made from a view in a thread that yields the
interpreter every few items, and later updated with the differences. It may lag, be incomplete or be missing
at any time; callers learn that and go on without it. Always safe to delete. While a subject is being erased
(`exclusive`), nobody has its files open, and work begun before is discarded. Independent of queries, of
ranking, and of who may see an item.
"""

import asyncio
import logging
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from discoclaw.core.audit import Readable
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.item import Item
from discoclaw.core.personal import NOTHING_WITHDRAWN, Erasure, PersonalData, Removed, Withdrawn
from discoclaw.core.ports import Clock
from discoclaw.core.subject import dm_of, user_of
from discoclaw.core.taken_back import Withdrawal
from discoclaw.core.view import View
from discoclaw.memory.disk.database import remove, rows_of
from discoclaw.memory.disk.files import in_thread, safe_id
from discoclaw.memory.disk.plain import FileDocuments
from discoclaw.search.fulltext import PAGES, orphans
from discoclaw.search.item_file import SPOT_CHECK, ItemFile, Unusable
from discoclaw.search.item_rows import Candidates, Instead, Row, links_of, nothing_instead, stamp_of

log = logging.getLogger(__name__)

CANDIDATES = 200
AT_ONCE = 20
"""How many items are read before the interpreter is yielded, which takes about a millisecond."""
BATCH = 500
"""How many items are written in one transaction."""
PAUSE_S = 0.001

Words = Callable[[Item], tuple[Sequence[str], int]]
"""Returns an item's terms, with repetitions, and its length in terms."""


def _prefix(subject: str) -> str:
    """A prefix that the names of this subject's files have, and no other subject's."""
    return f"{safe_id(subject)}.items."


@dataclass(frozen=True, slots=True)
class _Known:
    """A file's content: the items as they were indexed, by id, and the commit it is complete for."""

    head: str | None
    items: Mapping[str, Item]


@dataclass(slots=True)
class _SubjectIndex:
    """One subject's files. Writers hold `writing`, readers `reading`; `writing` is taken first.

    Work begun in an earlier `epoch` is discarded. `damaged` are branches whose file could not be read.
    """

    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    epoch: int = 0
    known: dict[str, _Known] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)

    @property
    def busy(self) -> bool:
        return self.writing.locked() or self.reading.locked()


class ItemIndex(PersonalData):
    """The indices of all subjects, below `folder`. What is in RAM about them is dropped after `idle_ms`."""

    name = "item index"
    local = True

    def __init__(
        self,
        folder: Path,
        words: Words,
        *,
        clock: Clock,
        idle_ms: int = HOUR_MS,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._folder = folder
        self._words = words
        self._clock = clock
        self._pause_s = pause_s
        self._one_at_a_time = asyncio.Lock()  # otherwise a few large memories would occupy all threads
        self._shelves: IdleMap[_SubjectIndex] = IdleMap(lambda subject: _SubjectIndex(), idle_ms=idle_ms)

    def readable(self) -> Iterator[Readable]:
        for path in sorted(self._folder.glob("*.items.*.sqlite")):
            owner = path.name.partition(".items.")[0]
            for (content,) in rows_of(path, "SELECT content FROM memories"):
                yield Readable(str(path), content, dm_of(user_of(owner) or ""), owner)
            pages = rows_of(path, PAGES.format(index="memories_fts"))
            for term in orphans(rows_of(path, "SELECT terms FROM memories"), pages):
                yield Readable(str(path), term, dm_of(user_of(owner) or ""), owner)

    def path(self, subject: str, branch: str) -> Path:
        """The path of a branch's index. Raises MemoryFault for an invalid subject."""
        named = blake2b(branch.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return self._folder / f"{_prefix(subject)}{named}.sqlite"

    def indexed(self, subject: str, branch: str) -> Mapping[str, Item] | None:
        """The indexed items by id; None while the index cannot be queried."""
        known = self._use(subject).known.get(branch)
        return known.items if known is not None else None

    def head(self, subject: str, branch: str) -> str | None:
        """The commit that the index is complete for; None if there is none or it is unknown."""
        known = self._use(subject).known.get(branch)
        return known.head if known is not None else None

    # ------------------------------------------------------------------ writing

    async def sync(self, subject: str, branch: str, view: View) -> bool:
        """Update a branch's file to a view. Returns whether it is up to date. Raises OSError on disk failure.

        The view must be current: await nothing between asking memory for it and this call, or an erasing
        could come in between.
        """
        shelf, path = self._use(subject), self.path(subject, branch)
        epoch = shelf.epoch
        async with shelf.writing, self._one_at_a_time:
            known = shelf.known.get(branch)
            if branch in shelf.damaged:
                await self._remove(shelf, branch, path, "it cannot be read")
                known = None
            try:
                shelf.known[branch] = await self._bring(shelf, epoch, path, view, known)
            except Unusable as why:
                await self._remove(shelf, branch, path, str(why))
                try:
                    shelf.known[branch] = await self._bring(shelf, epoch, path, view, None)
                except Unusable as still:
                    raise OSError(f"{path} cannot be used: {still}") from still
            except _Stopped:
                return False
            except BaseException:
                if known is not None:  # a part may have been written
                    shelf.known[branch] = replace(known, head=None)
                raise
        return True

    async def _bring(
        self, shelf: _SubjectIndex, epoch: int, path: Path, view: View, known: _Known | None
    ) -> _Known:
        def pause() -> None:
            time.sleep(self._pause_s)
            if shelf.epoch != epoch:
                raise _Stopped

        return await in_thread(_bring, path, view, known, self._words, pause)

    async def _remove(self, shelf: _SubjectIndex, branch: str, path: Path, why: str) -> None:
        log.warning("%s is made anew: %s", path, why)
        shelf.known.pop(branch, None)
        async with shelf.reading:
            await in_thread(remove, path)
        shelf.damaged.discard(branch)

    # ------------------------------------------------------------------ querying

    async def candidates(
        self,
        subject: str,
        branch: str,
        terms: Sequence[str],
        *,
        limit: int = CANDIDATES,
        among: Container[str] | None = None,
        instead: Instead = nothing_instead,
    ) -> Candidates | None:
        """Return the items with any of the terms, among the ids in `among`; see `ItemFile.candidates`.

        None while the index cannot be queried; it may lag. Raises OSError when the disk fails.
        """
        if not terms:
            return Candidates()
        shelf, path = self._use(subject), self.path(subject, branch)
        async with shelf.reading:
            if branch not in shelf.known:
                return None
            try:
                found = await in_thread(_look, path, terms, limit, among, instead)
            except Unusable as why:
                log.warning("%s cannot be read: %s", path, why)
                shelf.damaged.add(branch)
                found = None
            if found is None:
                shelf.known.pop(branch, None)
            return found

    # ------------------------------------------------------------------ closing and erasing

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """Keep everybody from opening the subject's files, so that they can be removed for good."""
        shelf = self._use(erasure.subject)
        shelf.epoch += 1
        async with shelf.writing, shelf.reading:
            try:
                yield
            finally:
                shelf.known.clear()
                shelf.damaged.clear()
                shelf.epoch += 1  # work begun meanwhile may have words from before

    def erase(self, erasure: Erasure) -> Removed:
        """Remove all files of a subject."""
        try:
            files = FileDocuments(self._folder)
            prefix = _prefix(erasure.subject)
            count, left = files.remove([name for name in files.names() if name.startswith(prefix)])
            return Removed(count, tuple(left))
        except OSError as error:
            return Removed(left=(f"{self._folder}: {error}",))

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        """Remove items that a person took back from all their files; the next use brings these up to date.

        What is only private now stays: the index is asked only for items that may be seen.
        """
        if withdrawal.open_only or not withdrawal.subject:
            return NOTHING_WITHDRAWN
        shelf = self._use(withdrawal.subject)
        shelf.epoch += 1
        async with shelf.writing, shelf.reading:
            shelf.known.clear()
            await in_thread(self._withdraw, withdrawal)
        return NOTHING_WITHDRAWN

    def _withdraw(self, withdrawal: Withdrawal) -> None:
        """Raises OSError."""
        for path in sorted(self._folder.glob(f"{_prefix(withdrawal.subject)}*.sqlite")):
            try:
                if withdrawal.everything:
                    remove(path)
                else:
                    with ItemFile(path) as file:
                        file.without(withdrawal.texts)
            except Unusable as why:
                log.warning("%s is removed: %s", path, why)
                remove(path)

    def stop(self) -> None:
        """Make writers end soon: the files stay sound, and are continued at the next use."""
        for subject in self._shelves:
            if (shelf := self._shelves.peek(subject)) is not None:
                shelf.epoch += 1

    def _use(self, subject: str) -> _SubjectIndex:
        now = self._clock()
        self._shelves.evict_idle(now, busy=lambda shelf: shelf.busy)
        return self._shelves.use(subject, now)


# ---------------------------------------------------------------------- in a thread


class _Stopped(Exception):
    """The subject is being erased, or the program is ending."""


def _bring(path: Path, view: View, known: _Known | None, words: Words, pause: Callable[[], None]) -> _Known:
    """Update a file to a view. `pause` yields the interpreter, and raises to stop."""
    pause()
    items = {item.id: item for item in view.items.values() if item.active}
    now = _Known(view.head, items)
    if known is not None and view.head is not None and known.head == view.head:
        return now
    with ItemFile(path) as file:
        held = file.stamps()
        if known is None and held:  # the file is from an earlier run
            file.check()
            file.check_terms(_rows(islice(items.values(), SPOT_CHECK), words, pause))
            if view.head is not None and file.head() == view.head:
                return now
        before = known.items if known is not None else {}
        unlike = [item for key, item in items.items() if key not in held or before.get(key) is not item]
        changed = [item for item in _gently(unlike, BATCH, pause) if held.get(item.id) != stamp_of(item)]
        rows = _rows(changed, words, pause)
        file.write((), held.keys() - items.keys() | {item.id for item in changed if item.id in held})
        while batch := list(islice(rows, BATCH)):
            file.write(batch)
        pause()
        file.complete(links_of(items), view.head, merge=len(changed) > BATCH)
    return now


def _rows(items: Iterable[Item], words: Words, pause: Callable[[], None]) -> Iterator[Row]:
    for item in _gently(items, AT_ONCE, pause):
        terms, length = words(item)
        yield Row(item, terms, length)


def _gently(items: Iterable[Item], at_once: int, pause: Callable[[], None]) -> Iterator[Item]:
    """The items, with a pause after every few."""
    for number, item in enumerate(items, start=1):
        yield item
        if number % at_once == 0:
            pause()


def _look(
    path: Path, terms: Sequence[str], limit: int, among: Container[str] | None, instead: Instead
) -> Candidates | None:
    if not path.exists():
        return None
    with ItemFile(path) as file:
        return file.candidates(terms, limit=limit, among=among, instead=instead)

"""The full-text index of people with many items: which few of them a query may be about, in milliseconds.

One file for each subject and branch (`item_file`), made from a view in a thread that leaves the interpreter
to others every few items, and brought in line with later views by what differs. It may be behind, incomplete
or gone at any time: then it is said, and whoever asks goes on without. Always safe to delete. While a subject
is erased (`exclusive`) nobody has a file of theirs open, and what was begun before comes to nothing.
Knows nothing about queries, ranking, and who may see an item.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.item import Item
from discoclaw.core.personal import Erasure, PersonalData, Removed
from discoclaw.core.ports import Clock
from discoclaw.core.view import View
from discoclaw.memory.disk.database import remove
from discoclaw.memory.disk.files import in_thread, safe_id
from discoclaw.memory.disk.port import FileDocuments
from discoclaw.search.item_file import SPOT_CHECK, ItemFile, Unusable
from discoclaw.search.item_rows import Candidates, Instead, Row, links_of, nothing_instead, stamp_of

log = logging.getLogger(__name__)

CANDIDATES = 200
AT_ONCE = 20
"""So many items are read by one hold of the interpreter, which takes about a millisecond."""
BATCH = 500
"""So many items are written by one transaction."""
PAUSE_S = 0.001

Words = Callable[[Item], tuple[Sequence[str], int]]
"""What an item is found by: its terms, with repetitions, and its length in terms."""


def _prefix(subject: str) -> str:
    """With what the names of a subject's files begin, and nobody else's."""
    return f"{safe_id(subject)}.items."


@dataclass(frozen=True, slots=True)
class _Known:
    """What a file holds: the items, by id, as they were indexed, and of which commit all of them are."""

    head: str | None
    items: Mapping[str, Item]


@dataclass(slots=True)
class _SubjectIndex:
    """One subject's files. Whoever writes holds `writing`, whoever reads `reading`; writing comes first.

    What was begun in another `epoch` comes to nothing. `damaged` are branches whose file could not be read.
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
    """The indices of all subjects, below `folder`. What is known of them leaves RAM after `idle_ms`."""

    name = "item index"

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
        self._one_at_a_time = asyncio.Lock()  # else a few big memories would take all threads
        self._shelves: IdleMap[_SubjectIndex] = IdleMap(lambda subject: _SubjectIndex(), idle_ms=idle_ms)

    def path(self, subject: str, branch: str) -> Path:
        """Where a branch's index lies. Raises MemoryFault for what can name no subject."""
        named = blake2b(branch.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return self._folder / f"{_prefix(subject)}{named}.sqlite"

    def indexed(self, subject: str, branch: str) -> Mapping[str, Item] | None:
        """The items as the index has them, by id; None as long as it can not be asked."""
        known = self._use(subject).known.get(branch)
        return known.items if known is not None else None

    def head(self, subject: str, branch: str) -> str | None:
        """The commit of which the index has everything; None when that is none, or not known."""
        known = self._use(subject).known.get(branch)
        return known.head if known is not None else None

    # ------------------------------------------------------------------ writing

    async def sync(self, subject: str, branch: str, view: View) -> bool:
        """Bring a branch's file in line with a view; whether it is. Raises OSError when the disk fails.

        The view is what memory says now: between asking it and this call nothing may be awaited, or an
        erasing could have come between.
        """
        shelf, path = self._use(subject), self.path(subject, branch)
        epoch = shelf.epoch
        async with shelf.writing, self._one_at_a_time:
            known = shelf.known.get(branch)
            if branch in shelf.damaged:
                await self._remove(shelf, branch, path, "it can not be read")
                known = None
            try:
                shelf.known[branch] = await self._bring(shelf, epoch, path, view, known)
            except Unusable as why:
                await self._remove(shelf, branch, path, str(why))
                try:
                    shelf.known[branch] = await self._bring(shelf, epoch, path, view, None)
                except Unusable as still:
                    raise OSError(f"{path} can not be used: {still}") from still
            except _Stopped:
                return False
            except BaseException:
                if known is not None:  # some of it may have been written
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

    # ------------------------------------------------------------------ looking

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
        """The items that have one of the terms, of those whose ids are `among`; see `ItemFile.candidates`.

        None as long as the index can not be asked; it may be behind. Raises OSError when the disk fails.
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
                log.warning("%s can not be read: %s", path, why)
                shelf.damaged.add(branch)
                found = None
            if found is None:
                shelf.known.pop(branch, None)
            return found

    # ------------------------------------------------------------------ letting go

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """While nobody has a file of the subject open, so that they can be removed for good."""
        shelf = self._use(erasure.subject)
        shelf.epoch += 1
        async with shelf.writing, shelf.reading:
            try:
                yield
            finally:
                shelf.known.clear()
                shelf.damaged.clear()
                shelf.epoch += 1  # who came meanwhile may have words from before

    def erase(self, erasure: Erasure) -> Removed:
        """Remove all files of a subject."""
        try:
            files = FileDocuments(self._folder)
            prefix = _prefix(erasure.subject)
            count, left = files.remove([name for name in files.names() if name.startswith(prefix)])
            return Removed(count, tuple(left))
        except OSError as error:
            return Removed(left=(f"{self._folder}: {error}",))

    def stop(self) -> None:
        """Let whoever writes end soon: the files are sound, and are continued at the next use."""
        for subject in self._shelves:
            if (shelf := self._shelves.peek(subject)) is not None:
                shelf.epoch += 1

    def _use(self, subject: str) -> _SubjectIndex:
        now = self._clock()
        self._shelves.evict_idle(now, busy=lambda shelf: shelf.busy)
        return self._shelves.use(subject, now)


# ---------------------------------------------------------------------- in a thread


class _Stopped(Exception):
    """The subject is being erased, or the program ends."""


def _bring(path: Path, view: View, known: _Known | None, words: Words, pause: Callable[[], None]) -> _Known:
    """Bring a file in line with a view. `pause` gives others the interpreter, and raises to stop."""
    pause()
    items = {item.id: item for item in view.items.values() if item.active}
    now = _Known(view.head, items)
    if known is not None and view.head is not None and known.head == view.head:
        return now
    with ItemFile(path) as file:
        held = file.stamps()
        if known is None and held:  # of an earlier run
            file.check()
            file.check_terms(_rows(islice(items.values(), SPOT_CHECK), words, pause))
            if view.head is not None and file.head() == view.head:
                return now
        before = known.items if known is not None else {}
        unlike = [item for key, item in items.items() if key not in held or before.get(key) is not item]
        changed = [item for item in _gently(unlike, BATCH, pause) if held.get(item.id) != stamp_of(item)]
        rows = _rows(changed, words, pause)
        file.write((), held.keys() - items.keys())
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

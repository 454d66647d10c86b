"""The subjects that are in RAM, each with its own lock, and what needs these locks: erasing a whole subject.

Subjects leave RAM when nobody used them for a while. An erasing is dated after every record, and takes the
bot's own memory along where it rests on the person's words; `erasing` does the work.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.item import tidy_tags
from discoclaw.core.ports import Clock
from discoclaw.core.processes import Processes
from discoclaw.core.purge import Derived, Purge
from discoclaw.core.subject import BOT, HUMAN, group_of, user_of
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.changes import Changes, Listener
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.erase import LEASE, Erased, Eraser, subject_in
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.subject import Subject
from discoclaw.store.files import in_thread, read_in_thread, safe_id
from discoclaw.store.port import Ledgers, subject_of
from discoclaw.work import Worker

log = logging.getLogger(__name__)

_SWEEP_MS = 60_000


@dataclass(slots=True)
class Entry:
    """One subject in RAM. `subject` is None until first use."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    subject: Subject | None = None
    users: int = 0
    """How many callers hold the lock or wait for it; the entry stays in RAM until there are none."""
    stale: bool = False
    """Whether another process recorded something since the subject was read."""
    contended: bool = False
    """Whether another process was faster lately: whoever writes next looks first what is there."""

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Hold the lock; waiting for it already keeps the entry from being evicted."""
        self.users += 1
        try:
            async with self.lock:
                yield
        finally:
            self.users -= 1


class Entries(Derived, Listener):
    """The entries by subject. They leave RAM after `idle_ms`."""

    name = "views in RAM"

    def __init__(self, *, clock: Clock, idle_ms: int) -> None:
        self._clock = clock
        self._entries: IdleMap[Entry] = IdleMap(
            lambda subject: Entry(),
            idle_ms=idle_ms,
            created=lambda subject: log.debug("%s: into memory", subject),
            evicted=lambda subject, entry: log.debug("%s: out of memory, idle", subject),
        )
        self._swept = 0

    def __contains__(self, subject: str) -> bool:
        return self._entries.peek(subject) is not None

    def use(self, subject: str) -> Entry:
        """Return the entry of a subject, created if missing. Raises MemoryFault for an invalid name."""
        now = self._clock()
        if now - self._swept > _SWEEP_MS:
            self._swept = now
            self._entries.evict_idle(now, busy=lambda entry: entry.users > 0)
        return self._entries.use(safe_id(subject), now)

    def drop_unused(self, subject: str) -> None:
        """Evict a subject, unless somebody is using it."""
        entry = self._entries.peek(subject)
        if entry is not None and entry.users == 0:
            self._entries.drop(subject)

    async def renewed(self, names: Collection[str]) -> None:
        """Have what another process recorded taken in before a subject is next used."""
        for subject in filter(None, map(subject_of, names)):
            if (entry := self._entries.peek(subject)) is not None:
                entry.stale = True

    @asynccontextmanager
    async def exclusive(self, purge: Purge) -> AsyncIterator[None]:
        """Keep everybody from writing groups' memories while a person is removed; they are then read again.

        A group that is not in use needs no lock: whoever opens it later finds the tombstone.
        """
        if user_of(purge.subject) is None:
            yield
            return
        try:
            async with AsyncExitStack() as stack:
                for entry in self._groups():
                    await stack.enter_async_context(entry.locked())
                    entry.subject = None
                yield
        finally:
            for entry in self._groups():  # newly opened ones may have read what is erased now
                async with entry.locked():
                    entry.subject = None

    def _groups(self) -> list[Entry]:
        groups = (self._entries.peek(key) for key in self._entries if group_of(key) is not None)
        return [entry for entry in groups if entry is not None]


# ---------------------------------------------------------------------- erasing

RETRY_S: Final = 30.0
"""The pause before an erasing goes on that waits for another process, or for a disk."""


class SubjectEraser(Listener):
    """Erases subjects from `entries` and, through `eraser`, from everywhere else. It is a `Service`.

    In a store that several processes share it follows their erasings too, and finishes those that a killed
    process left.
    """

    def __init__(
        self,
        eraser: Eraser,
        entries: Entries,
        ledgers: Ledgers,
        marks: Tombstones,
        changes: Changes,
        processes: Processes,
        *,
        clock: Clock,
    ) -> None:
        self._eraser = eraser
        self._entries = entries
        self._ledgers = ledgers
        self._tombstones = marks
        self._changes = changes
        self._processes = processes
        self._clock = clock
        self._ours: set[str] = set()
        """Subjects that this process is erasing."""
        self._rest = Worker("erasings", self._finish, retry_s=RETRY_S, longest_s=RETRY_S)
        self._runs = False

    # ------------------------------------------------------------------ other processes

    async def start(self) -> None:
        """Go on with what another process left."""
        self._runs = True
        for subject, intent in self._eraser.pending.items():
            if intent.at is not None:
                self._go_on_later(subject)

    async def settle(self) -> None:
        """Wait until every erasing is finished that can be."""
        await self._rest.settle()

    async def close(self) -> None:
        """Stop; what is unfinished is finished by another process, or at the next start."""
        self._runs = False
        await self._rest.close(0)

    async def renewed(self, names: Collection[str]) -> None:
        """Follow what other processes erase. Raises MemoryFault; it is then to be called again."""
        if tombstones.FILE in names:
            await read_in_thread(self._tombstones.catch_up)
        for subject in sorted({one for one in map(subject_in, names) if one is not None} - self._ours):
            async with self._emptied(subject):
                unfinished = await self._eraser.heard(subject)
            if unfinished:
                self._go_on_later(subject)

    def _go_on_later(self, subject: str) -> None:
        """Finish an erasing once nobody else is at it."""
        if self._runs and self._processes.shared:
            self._rest.note(subject)

    async def _finish(self, subject: str) -> None:
        async with self._leased(subject), self._emptied(subject):
            erased = await self._eraser.finish(subject, lambda: self._newest(subject))
        if erased is None:
            return
        for one in (subject, *erased.groups):
            self._changes.recorded(one)
        if erased.left or erased.waiting:
            raise MemoryFault("; ".join(erased.left) or "another process has not dropped what it has yet")
        log.info("%s: the erasing that was interrupted is finished", subject)

    @asynccontextmanager
    async def _leased(self, subject: str) -> AsyncIterator[None]:
        """Be the only process that erases. It comes before every lock, since others may wait for theirs."""
        async with self._processes.lease(LEASE):
            self._ours.add(subject)
            try:
                yield
            finally:
                self._ours.discard(subject)

    @asynccontextmanager
    async def _emptied(self, subject: str) -> AsyncIterator[int | None]:
        """Hold a subject's lock, with nothing of it in RAM. Gives the time of its newest record, if known."""
        entry = self._entries.use(subject)
        async with entry.locked():
            one, entry.subject = entry.subject, None
            yield one.branches.last_ms if one is not None and not entry.stale else None
        self._entries.drop_unused(subject)

    # ------------------------------------------------------------------ erasing

    async def erase(
        self, subject: str, asked_at: int, history: Callable[[str], Awaitable[History]]
    ) -> Erased:
        """Erase a subject, and the bot's own memory if that rests on their words (see `history`)."""
        # Before it, so that being killed in between leaves nothing; and after, for what was added meanwhile.
        before = await self._erase_soul_of(subject, asked_at, history)
        erased = await self._erase(subject, asked_at)
        try:
            soul = await self._erase_soul_of(subject, asked_at, history) or before
        except MemoryFault as fault:  # what they asked for is done all the same
            log.warning("%s: whether the bot's own memory has anything new of it: %s", subject, fault)
            soul = before
        if soul is None:
            return erased
        waiting = erased.waiting or soul.waiting
        return replace(erased, left=(*erased.left, *soul.left), soul=True, waiting=waiting)

    async def _erase_soul_of(
        self, subject: str, asked_at: int, history: Callable[[str], Awaitable[History]]
    ) -> Erased | None:
        """Erase the bot's own memory if anything in it rests on a person's words; otherwise return None."""
        user = user_of(subject)
        if user is None:
            return None
        known = BOT in self._entries
        try:
            commits = (await history(BOT)).commits.values()
            theirs = any(_rests_on(commit, user) for commit in commits)
        except MemoryFault as fault:
            if self._processes.shared and isinstance(fault.__cause__, OSError):
                raise  # the database is away, which says nothing about what it holds
            log.error("the bot's own memory cannot be read, so it goes along with %s: %s", subject, fault)
            theirs = True
        if theirs:
            return await self._erase(BOT, asked_at)
        if not known:
            self._entries.drop_unused(BOT)  # it was opened only for this check
        return None

    async def _erase(self, subject: str, asked_at: int) -> Erased:
        async with self._leased(subject), self._emptied(subject) as last:
            last = await in_thread(self._newest, subject, last)
            at = max(self._clock(), asked_at, last, self._tombstones.erased_at(subject) + 1)
            erased = await self._eraser.erase(subject, at, lambda: self._newest(subject))
        if erased.waiting:
            self._go_on_later(subject)
        for one in (subject, *erased.groups):
            self._changes.recorded(one)
        return erased

    async def step_done(self, subject: str, step: str) -> None:
        """Record that an outside step is done. Raises MemoryFault."""
        async with self._processes.lease(LEASE), self._entries.use(subject).locked():
            await in_thread(self._eraser.step_done, subject, step)

    def _newest(self, subject: str, last: int | None = None) -> int:
        """The time (ms) of the newest record that has to go, as far as readable. Blocking.

        Records may be ahead of the clock, but one of the year 9999 must not bar learning till then: it is at
        most an hour from now. `last` is the newest of the subject's own ledger, if it is known.
        """
        user, times = user_of(subject), [last or 0]
        if last is None:
            with suppress(OSError):
                records = ledger.read(self._ledgers.log(subject)).records
                times += (ms_of_iso(record.timestamp) for record in records)
        if user is not None:  # groups remember what rests on a person's words
            with suppress(OSError):
                times.append(self._eraser.newest_in_groups(user))
        return min(max(times), self._clock() + HOUR_MS)


def _rests_on(commit: Commit, user: str) -> bool:
    """Whether a commit of the bot's own memory is attributed to a person's words, or is about them.

    An item that was imported without its history is attributed only by its tag, which names the person.
    """
    tagged = (tidy_tags(event.ext.get("item", {}).get("tags")) for event in commit.events)
    return commit.metadata.get(HUMAN) == user or any(user in tags for tags in tagged)

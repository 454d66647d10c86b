"""Erases a whole subject, dated after every record, and the bot's own memory where it rests on their words.

`erasing` does the work; this module determines the time of the erasing, and notifies the other parts.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.idle import HOUR_MS
from discoclaw.core.item import tidy_tags
from discoclaw.core.ports import Clock
from discoclaw.core.processes import Processes
from discoclaw.core.subject import BOT, HUMAN, user_of
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.changes import Changes, Listener
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.erase import LEASE, Erased, Eraser, subject_in
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.subject import Entries, locked
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import Ledgers
from discoclaw.work import Worker

log = logging.getLogger(__name__)

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
            entry = self._entries.use(subject)
            async with locked(entry):
                entry.files = None
                unfinished = await self._eraser.heard(subject)
            self._entries.drop_unused(subject)
            if unfinished:
                self._go_on_later(subject)

    def _go_on_later(self, subject: str) -> None:
        """Finish an erasing once nobody else is at it."""
        if self._runs and self._processes.shared:
            self._rest.note(subject)

    async def _finish(self, subject: str) -> None:
        async with self._leased(subject):
            entry = self._entries.use(subject)
            async with locked(entry):
                entry.files = None
                erased = await self._eraser.finish(subject, lambda: self._newest(subject))
            self._entries.drop_unused(subject)
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
        self,
        subject: str,
        asked_at: int,
        history: Callable[[str], Awaitable[History]],
        *,
        again: bool = False,
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
        async with self._leased(subject):
            entry = self._entries.use(subject)
            async with locked(entry):
                files, entry.files = entry.files, None
                last = files.branches.last_ms if files is not None and not entry.stale else None
                last = await in_thread(self._newest, subject, last)
                since = self._tombstones.erased_at(subject)
                at = max(self._clock(), asked_at, last, since + 1)
                erased = await self._eraser.erase(subject, at, lambda: self._newest(subject))
            self._entries.drop_unused(subject)
        if erased.waiting:
            self._go_on_later(subject)
        for one in (subject, *erased.groups):
            self._changes.recorded(one)
        return erased

    async def step_done(self, subject: str, step: str) -> None:
        """Record that an outside step is done. Raises MemoryFault."""
        async with self._processes.lease(LEASE), locked(self._entries.use(subject)):
            await in_thread(self._eraser.step_done, subject, step)

    def _newest(self, subject: str, last: int | None = None) -> int:
        """The time (ms) of the newest record that has to go, at most an hour from now. Blocking.

        Records may be ahead of the clock, but one of the year 9999 must not bar learning till then. `last` is
        the newest of the subject's own ledger, if it is known.
        """
        own = self._last_ms(subject) if last is None else last
        return min(max(own, self._last_in_groups(subject)), self._clock() + HOUR_MS)

    def _last_in_groups(self, subject: str) -> int:
        """The time (ms) of the newest group record resting on a person's words, as far as readable."""
        user = user_of(subject)
        try:
            return self._eraser.newest_in_groups(user) if user is not None else 0
        except OSError:
            return 0

    def _last_ms(self, subject: str) -> int:
        """The time of a subject's newest record, as far as it can be read."""
        try:
            records = ledger.read(self._ledgers.log(subject)).records
        except OSError:
            return 0
        return max((ms_of_iso(record.timestamp) for record in records), default=0)


def _rests_on(commit: Commit, user: str) -> bool:
    """Whether a commit of the bot's own memory is attributed to a person's words, or is about them.

    An item that was imported without its history is attributed only by its tag, which names the person.
    """
    tagged = (tidy_tags(event.ext.get("item", {}).get("tags")) for event in commit.events)
    return commit.metadata.get(HUMAN) == user or any(user in tags for tags in tagged)

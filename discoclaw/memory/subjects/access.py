"""The way to a subject's files: one writer at a time, and on the newest state, however many processes write.

    in_ram, unchanged   the files, if RAM has them and nobody may have changed them
    locked              the same under the subject's lock, read from the store if need be
    write               lets somebody draft records on the newest state, and appends them

Knows nothing about drafts, commits or branches.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from discoclaw.core.errors import MemoryFault, Overtaken, Refused
from discoclaw.core.event import Commit, Record
from discoclaw.core.subject import group_of
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.memory.changes import Changes
from discoclaw.memory.disk.files import in_thread
from discoclaw.memory.disk.port import Disk
from discoclaw.memory.erasing.groups import unerased
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.subjects.entries import Entries, Entry, locked
from discoclaw.memory.subjects.opening import Opener
from discoclaw.memory.subjects.subject import SubjectFiles

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Drafted(Generic[T]):
    """Records to be appended, and the outcome for whoever drafted them.

    `after` is the view including the last record, if known.
    """

    outcome: T
    records: Sequence[Record] = ()
    after: View | None = None


Attempt = Callable[[SubjectFiles], Awaitable[Drafted[T]]]


class Access:
    """The files of the subjects that `entries` has in RAM, or `opener` reads. `changes` hears of new records.

    `why_not` says why a subject must not be opened now, if so.
    """

    def __init__(
        self,
        disk: Disk,
        entries: Entries,
        opener: Opener,
        marks: Tombstones,
        changes: Changes,
        why_not: Callable[[str], str | None],
    ) -> None:
        self._disk = disk
        self._entries = entries
        self._opener = opener
        self._tombstones = marks
        self._changes = changes
        self._why_not = why_not

    # ------------------------------------------------------------------ reading

    def in_ram(self, subject: str) -> SubjectFiles | None:
        """The files if they are in RAM and no other process may have changed them, else None."""
        return self._usable(self._entries.use(subject))

    def unchanged(self, subject: str) -> SubjectFiles | None:
        """The same if nobody edited the durable file either. Costs one `stat`; never waits for a writer."""
        entry = self._entries.use(subject)
        files = self._usable(entry)
        return files if files is not None and (entry.lock.locked() or files.current()) else None

    @asynccontextmanager
    async def locked(self, subject: str) -> AsyncIterator[SubjectFiles]:
        """Hold a subject's lock, and have its files. Raises MemoryFault if they cannot be read."""
        entry = self._entries.use(subject)
        async with locked(entry):
            yield await self._loaded(subject, entry)

    def _usable(self, entry: Entry) -> SubjectFiles | None:
        return None if entry.stale or not self._disk.in_touch else entry.files

    async def _loaded(self, subject: str, entry: Entry) -> SubjectFiles:
        """The subject's files, read if need be, with any edit by hand adopted. The caller holds the lock."""
        files = entry.files
        if files is None:
            self._check(subject)
            entry.stale = False
            files = await self._opener.open(subject)
        elif self._usable(entry) is None:
            await _renewed(entry, self._opener.catch_up(files))
        adopted = not files.current() and await in_thread(files.reconcile, self._opener.present(subject))
        entry.files = files  # not earlier: nobody may see a view that an edit has replaced
        if adopted:
            self._changes.recorded(subject)
        return files

    def _check(self, subject: str) -> None:
        if (why := self._why_not(subject)) is not None:
            raise MemoryFault(why)

    # ------------------------------------------------------------------ writing

    async def write(self, subject: str, attempt: Attempt[T]) -> T:
        """Append what an attempt drafts on the newest state, and return its outcome.

        If another process was faster, it drafts once more. The log is then held before that, so that a
        subject on which many processes write starves nobody. Raises whatever `attempt` raises, Refused, and
        MemoryFault when the disk fails; nothing is then recorded.
        """
        entry = self._entries.use(subject)
        async with locked(entry):
            try:
                return await self._written(subject, entry, attempt)
            except Overtaken as fault:
                if not self._disk.shared:  # no process of ours: whoever wrote may have damaged it
                    entry.files = None
                    raise
                log.debug("%s: %s; once more on what is there now", subject, fault)
            entry.contended = True
            return await self._written(subject, entry, attempt)

    async def _written(self, subject: str, entry: Entry, attempt: Attempt[T]) -> T:
        """One attempt. While other processes write to the log too, it begins with holding it.

        To lose first would cost as many questions again, and everybody who writes there waits for them.
        """
        files = entry.files
        if files is None or not entry.contended:
            files = await self._loaded(subject, entry)
        if not entry.contended:
            return await self._recorded(subject, entry, files, await attempt(files))
        try:
            entry.contended = await _renewed(entry, self._opener.hold(files))
            return await self._recorded(subject, entry, files, await attempt(files))
        finally:
            await in_thread(files.release)

    async def _recorded(self, subject: str, entry: Entry, files: SubjectFiles, drafted: Drafted[T]) -> T:
        """Append what was drafted on these files, and return its outcome. The caller holds the lock."""
        records, before = drafted.records, files.branches
        erased_at = self._tombstones.erased_at
        if any(ms_of_iso(record.timestamp) <= erased_at(subject) for record in records):
            raise Refused("what was recorded before the memory was erased does not come back")
        if group_of(subject) is not None:
            records = unerased(records, erased_at)
        if not records:
            return drafted.outcome
        if not self._disk.in_touch:  # its subject may have been erased since, which is not known yet
            raise MemoryFault(f"what others changed of {subject} is not known yet, so nothing is recorded")
        try:
            await in_thread(files.record, records, self._opener.present(subject), drafted.after)
        except Overtaken:
            raise  # nothing changed here
        except (MemoryFault, OSError) as error:
            entry.files = None  # the next reader reads and verifies what is on disk
            if isinstance(error, MemoryFault):
                raise
            raise MemoryFault(f"the memory of {subject} cannot be read: {error}") from error
        finally:  # also when the caller gave up meanwhile: the records are on disk
            if files.branches is not before:
                self._changes.recorded(subject)
                for record in records:
                    if isinstance(record, Commit):
                        self._changes.committed(subject, record)
        return drafted.outcome

    async def begin(self, subject: str, records: Sequence[Record]) -> bool:
        """Write a subject's files from verified records. False, and nothing is written, if it has a ledger.

        Raises MemoryFault.
        """
        entry = self._entries.use(subject)
        async with locked(entry):
            self._check(subject)
            if group_of(subject) is not None:
                records = unerased(records, self._tombstones.erased_at)
            files = await self._opener.begin(subject, records)
            if files is None:
                return False
            entry.files = files
        self._changes.recorded(subject)
        return True


async def _renewed(entry: Entry, reading: Awaitable[T]) -> T:
    """Wait until what other processes recorded is read, after which the entry is no longer stale."""
    entry.stale = False  # first: what changes while it is read makes it stale again
    try:
        return await reading
    except BaseException:
        entry.stale = True
        raise

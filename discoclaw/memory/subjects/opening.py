"""Reads subjects from a store: their files, their histories, and branches that are not in RAM.

Every disk failure becomes a MemoryFault that names the subject. Callers hold the subject's lock.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Record
from discoclaw.core.history import History
from discoclaw.core.ports import Clock
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.subject import user_of
from discoclaw.core.view import View
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.subjects.subject import SubjectFiles
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import Disk


class Opener:
    """Opens the subjects of a store. A branch has at most `max_items`; `snapshots` is a folder of caches.

    `dm_privacy` decides what becomes private of a durable file that is taken over.
    """

    def __init__(
        self,
        disk: Disk,
        snapshots: Path,
        tombstones: Tombstones,
        *,
        max_items: int,
        clock: Clock,
        dm_privacy: Callable[[], DmPrivacy],
    ) -> None:
        self._disk = disk
        self._snapshots = snapshots
        self._tombstones = tombstones
        self._max_items = max_items
        self._clock = clock
        self._dm_privacy = dm_privacy

    async def open(self, subject: str) -> SubjectFiles:
        """A subject's files as they are on disk."""
        try:
            return await read_in_thread(self._open, subject)
        except OSError as error:
            raise MemoryFault(f"the memory of {subject} cannot be read: {error}") from error

    async def catch_up(self, files: SubjectFiles) -> None:
        """Let a subject that is in RAM take in what other processes recorded."""
        try:
            await read_in_thread(files.catch_up)
        except OSError as error:
            raise MemoryFault(f"the memory of {files.subject} cannot be read: {error}") from error

    async def hold(self, files: SubjectFiles) -> bool:
        """Keep other processes from recording until `release`. Returns whether there was anything new."""
        try:
            return await in_thread(files.hold)
        except OSError as error:
            raise MemoryFault(f"the memory of {files.subject} cannot be read: {error}") from error

    async def begin(self, subject: str, records: Sequence[Record]) -> SubjectFiles | None:
        """Write a subject's files from verified records; None, and nothing is written, if it has a ledger."""
        try:
            return await in_thread(self._begin, subject, records)
        except OSError as error:
            raise MemoryFault(f"{subject}.jsonl could not be written: {error}") from error

    def _begin(self, subject: str, records: Sequence[Record]) -> SubjectFiles | None:
        if self._disk.ledgers.log(subject).size():
            return None
        files = self._open(subject, records)
        files.reconcile(self.present(subject))
        return files

    def _open(self, subject: str, records: Sequence[Record] | None = None) -> SubjectFiles:
        user, folder = user_of(subject), self._disk.durable
        durable = folder / f"{user}.json" if user is not None and folder is not None else None
        cached, erased_at = self._snapshots / f"{subject}.json", self._tombstones.erased_at(subject)
        lines = self._disk.ledgers.log(subject)
        return SubjectFiles(
            subject,
            lines,
            durable,
            self._max_items,
            cached,
            erased_at=erased_at,
            records=records,
            dm_privacy=self._dm_privacy,
        )

    def present(self, *subjects: str) -> int:
        """The time (ms) for a record now: after every erasing of these subjects, even by a slow clock."""
        return max(self._clock(), *(self._tombstones.erased_at(subject) + 1 for subject in subjects))


async def history_of(files: SubjectFiles) -> History:
    """The full history of a subject."""
    try:
        return await read_in_thread(files.history)
    except OSError as error:
        raise MemoryFault(f"the history of {files.subject} cannot be read: {error}") from error


async def branch_view_of(files: SubjectFiles, branch: str | None) -> View:
    """A branch's view, from disk if need be; by default HEAD's."""
    if branch is None or branch == files.branches.current:
        return files.view
    if files.in_ram(branch):
        return files.branch_view(branch)
    try:
        return await in_thread(files.branch_view, branch)
    except OSError as error:
        raise MemoryFault(f"the memory of {files.subject} cannot be read: {error}") from error

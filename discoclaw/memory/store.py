"""The memory of all subjects: views in RAM, each behind its own lock, backed by ledger and durable file.

Reading is a look into RAM (and one `stat`, so that a file edited by hand counts at once). Changing takes
the subject's lock: draft on the newest view, append the commit, replace the durable file, publish the new
view, tell the followers. Whoever writes one person's memory comes through here, so a person who talks in
two channels, a command and a loop never lose each other's update.
Knows nothing about Discord, models or prompts.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from discoclaw.core.draft import Draft
from discoclaw.core.errors import FolderInUse, MemoryFault
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.ports import Clock
from discoclaw.core.view import View
from discoclaw.memory.files import in_thread, safe_id
from discoclaw.memory.subject import SubjectFiles, user_of

log = logging.getLogger(__name__)
T = TypeVar("T")

_SWEEP_MS = 60_000


@dataclass(slots=True)
class _Entry:
    """One subject in RAM. `files` is None until first use."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    files: SubjectFiles | None = None
    users: int = 0
    """Who holds the lock or waits for it: while there are any, the entry stays."""


class Memory:
    """Views of subjects, and the one way to change them. `root` is `data/memory`.

    `changed` is called with the subject after each commit. Idle subjects leave RAM after `idle_ms`.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        durable_folder: Path | None = None,
        max_items: int = 200,
        idle_ms: int = HOUR_MS,
    ) -> None:
        self.ledger_folder = root / "ledger"
        self.durable_folder = durable_folder or root / "durable"
        self.changed: list[Callable[[str], None]] = []
        self._root = root
        self._clock = clock
        self._max_items = max_items
        self._entries: IdleMap[_Entry] = IdleMap(
            lambda subject: _Entry(),
            idle_ms=idle_ms,
            created=lambda subject: log.debug("%s: into memory", subject),
            evicted=lambda subject, entry: log.debug("%s: out of memory, idle", subject),
        )
        self._swept = 0
        self._folder_lock = FileLock(root / ".lock", thread_local=False)

    # ------------------------------------------------------------------ the folder

    def open(self) -> None:
        """Take the folder for this process. Raises FolderInUse, or MemoryFault when it can not be made."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            self._folder_lock.acquire(timeout=0)
        except Timeout as error:
            raise FolderInUse(
                f"{self._root} is in use by another discoclaw process; "
                "stop that one, or set another DISCOCLAW_DATA_DIR"
            ) from error
        except OSError as error:
            raise MemoryFault(f"{self._root} can not be used: {error}") from error

    def close(self) -> None:
        """Give the folder back."""
        self._folder_lock.release()

    # ------------------------------------------------------------------ reading and changing

    async def view(self, subject: str) -> View:
        """What is remembered of a subject now. Raises MemoryFault when it can not be read.

        Never waits for somebody who is writing: what was there before is then the answer.
        """
        known = self.view_in_ram(subject)
        if known is not None:
            return known
        entry = self._use(subject)
        async with _held(entry):
            return (await self._loaded(subject, entry)).view

    def view_in_ram(self, subject: str) -> View | None:
        """The view, if it is at hand and no file was edited by hand. Costs one `stat`."""
        entry = self._use(subject)
        if entry.files is not None and (entry.lock.locked() or entry.files.current()):
            return entry.files.view
        return None

    async def change(self, subject: str, why: str, wish: Callable[[Draft], T], /, **metadata: Any) -> T:
        """Let `wish` draft changes on the newest view, and record them as one commit.

        `why` is the commit's message, `metadata` what else belongs to it. Returns what `wish` returns. When
        nothing changed, nothing is written. Raises whatever `wish` raises, and MemoryFault when the disk does
        not take it; memory is then as it was.
        """
        entry = self._use(subject)
        async with _held(entry):
            files = await self._loaded(subject, entry)
            draft = Draft(files.view, now_ms=self._clock(), max_items=self._max_items)
            outcome = wish(draft)
            commit = draft.commit(why, **metadata)
            if commit is None:
                return outcome
            before = files.view
            try:
                await in_thread(files.record, commit, self._clock())
            except MemoryFault:
                entry.files = None  # what lies on disk is read anew, and verified, by the next one
                raise
            finally:  # also when the caller gave up meanwhile: the commit stands
                if files.view is not before:
                    self._tell(subject)
        return outcome

    def evict_idle(self) -> list[str]:
        """Drop idle subjects from RAM now; they come back from disk when used."""
        return self._entries.evict_idle(self._clock(), busy=lambda entry: entry.users > 0)

    def in_ram(self) -> int:
        """How many subjects are in RAM."""
        return len(self._entries)

    # ------------------------------------------------------------------ inside

    def _use(self, subject: str) -> _Entry:
        now = self._clock()
        if now - self._swept > _SWEEP_MS:
            self._swept = now
            self.evict_idle()
        return self._entries.use(safe_id(subject), now)

    async def _loaded(self, subject: str, entry: _Entry) -> SubjectFiles:
        """The subject's files, read if need be, a hand edit adopted. The caller holds the lock."""
        if entry.files is None:
            try:
                entry.files = await asyncio.to_thread(self._open_files, subject)
            except OSError as error:
                raise MemoryFault(f"the memory of {subject} can not be read: {error}") from error
        if not entry.files.current() and await in_thread(entry.files.reconcile, self._clock()):
            self._tell(subject)
        return entry.files

    def _open_files(self, subject: str) -> SubjectFiles:
        user = user_of(subject)
        durable = self.durable_folder / f"{user}.json" if user is not None else None
        return SubjectFiles(subject, self.ledger_folder / f"{subject}.jsonl", durable, self._max_items)

    def _tell(self, subject: str) -> None:
        for tell in self.changed:
            tell(subject)


@asynccontextmanager
async def _held(entry: _Entry) -> AsyncIterator[None]:
    """The entry's lock; whoever waits for it keeps the entry from being evicted."""
    entry.users += 1
    try:
        async with entry.lock:
            yield
    finally:
        entry.users -= 1

"""The subjects that are in RAM, each behind a lock of its own.

Idle subjects leave RAM; one whose lock is held, or waited for, stays. Knows nothing about what is in files.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from discoclaw.core.idle import IdleMap
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.ports import Clock
from discoclaw.core.subject import group_of, user_of
from discoclaw.memory.disk.files import safe_id
from discoclaw.memory.subjects.subject import SubjectFiles

log = logging.getLogger(__name__)

_SWEEP_MS = 60_000


@dataclass(slots=True)
class Entry:
    """One subject in RAM. `files` is None until first use."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    files: SubjectFiles | None = None
    users: int = 0
    """Who holds the lock or waits for it: while there are any, the entry stays."""


@asynccontextmanager
async def locked(entry: Entry) -> AsyncIterator[None]:
    """The entry's lock; whoever waits for it keeps the entry from being evicted."""
    entry.users += 1
    try:
        async with entry.lock:
            yield
    finally:
        entry.users -= 1


class Entries(PersonalData):
    """Subjects by name. They leave RAM after `idle_ms`."""

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

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, subject: str) -> bool:
        return self._entries.peek(subject) is not None

    def use(self, subject: str) -> Entry:
        """The entry of a subject, made if missing. Raises MemoryFault for what can name no file."""
        now = self._clock()
        if now - self._swept > _SWEEP_MS:
            self._swept = now
            self.evict_idle()
        return self._entries.use(safe_id(subject), now)

    def drop_unused(self, subject: str) -> None:
        """Let a subject leave RAM, unless somebody uses it."""
        entry = self._entries.peek(subject)
        if entry is not None and entry.users == 0:
            self._entries.drop(subject)

    def evict_idle(self) -> list[str]:
        """Let idle subjects leave RAM now; they come back from disk when used."""
        return self._entries.evict_idle(self._clock(), busy=lambda entry: entry.users > 0)

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """Nobody writes the memory of a group while a person is taken out of it; then it is read anew.

        A group that nobody uses now needs no lock: who comes later finds the tombstone.
        """
        if user_of(erasure.subject) is None:
            yield
            return
        try:
            async with AsyncExitStack() as stack:
                for entry in self._groups():
                    await stack.enter_async_context(locked(entry))
                    entry.files = None
                yield
        finally:
            for entry in self._groups():  # those that came meanwhile may have read what is gone
                async with locked(entry):
                    entry.files = None

    def _groups(self) -> list[Entry]:
        groups = (self._entries.peek(key) for key in self._entries if group_of(key) is not None)
        return [entry for entry in groups if entry is not None]

"""The subjects that are in RAM, each with its own lock. They leave RAM when nobody used them for a while."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from discoclaw.core.idle import IdleMap
from discoclaw.core.ports import Clock
from discoclaw.core.subject import group_of
from discoclaw.memory.changes import Listener
from discoclaw.memory.subjects.subject import Subject
from discoclaw.store.files import safe_id
from discoclaw.store.port import subject_of

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


class Entries(Listener):
    """The entries by subject. They leave RAM after `idle_ms`."""

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
    async def groups_alone(self) -> AsyncIterator[None]:
        """Keep everybody from writing groups' memories while a person is removed; they are then read again.

        A group that is not in use needs no lock: whoever opens it later finds the tombstone.
        """
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

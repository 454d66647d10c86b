"""The files of people and of channels: one JSON text each, which people may have edited.

They show a memory beside what was seen. RAM is updated first, and a worker writes the files later.
Independent of what is in a record.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Collection
from typing import Generic, TypeVar

from discoclaw.core.consent import Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import PersonalData
from discoclaw.core.ports import Clock
from discoclaw.core.view import View
from discoclaw.memory.changes import Listener
from discoclaw.memory.kept import Kept
from discoclaw.memory.subjects.store import Memory
from discoclaw.work import GRACE_S, Worker

log = logging.getLogger(__name__)
V = TypeVar("V")


class Records(PersonalData, Listener, ABC, Generic[V]):
    """The records that are `kept`, which show what is in `memory`; `what` is the word for one of them."""

    def __init__(self, kept: Kept[V], what: str, memory: Memory, clock: Clock, consent: Consent) -> None:
        self.documents = kept.documents
        self._kept = kept
        self._what = what
        self._memory = memory
        self._clock = clock
        self._consent = consent
        self._worker = Worker(f"{what}s", self._bring)

    @abstractmethod
    async def _bring(self, about: str) -> None:
        """Bring the file about this id up to date. Raises MemoryFault."""

    async def start(self) -> None:
        """Does nothing: the first change starts the writing."""

    async def settle(self) -> None:
        """Wait until everything is written, or cannot be written for now."""
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Write what is waiting within `grace_s`, then stop."""
        self._worker.hurry()
        await self._worker.close(grace_s)

    async def renewed(self, names: Collection[str]) -> None:
        await self._kept.renewed(names)

    def _note(self, about: str) -> None:
        """Queue a file for writing, together with those that the disk refused before."""
        self._worker.hurry()
        self._worker.note(about)

    async def _shown(self, subject: str, viewing: Awaitable[View]) -> View | None:
        """The view that a file is to show; None if it cannot be read, and the file then stays as it is."""
        try:
            return await viewing
        except MemoryFault as fault:
            log.warning("the %s of %s shows what its memory said before: %s", self._what, subject, fault)
            return None

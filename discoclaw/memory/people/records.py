"""The files of people and of channels: one JSON text each, which people may have edited.

They show a memory beside what was seen. RAM is updated first, and a worker writes the files later.
Independent of what is in a record.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import TypeVar

from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import PersonalData
from discoclaw.core.ports import Clock
from discoclaw.core.view import View
from discoclaw.memory.changes import Listener
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import in_thread, stamp_of
from discoclaw.store.plain import documents_at
from discoclaw.store.port import Documents, drop
from discoclaw.work import GRACE_S, Worker

log = logging.getLogger(__name__)
T = TypeVar("T")


class Records(PersonalData, Listener, ABC):
    """The records of one folder, which show what is in `memory`; `what` is the word for one of them."""

    def __init__(self, what: str, where: Path | Documents, memory: Memory, *, clock: Clock) -> None:
        self.documents = documents_at(where)
        self._folder = self.documents.folder.name
        self._what = what
        self._memory = memory
        self._clock = clock
        self._worker = Worker(f"{what}s", self._bring)

    @abstractmethod
    async def _bring(self, about: str) -> None:
        """Bring the file about this id up to date. Raises MemoryFault and OSError."""

    async def start(self) -> None:
        """Does nothing: the first change starts the writing."""

    async def settle(self) -> None:
        """Wait until everything is written, or cannot be written for now."""
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Write what is waiting within `grace_s`, then stop."""
        self._worker.hurry()
        await self._worker.close(grace_s)

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

    async def renewed(self, names: Collection[str]) -> None:
        """Have what another process wrote read again before it is next used."""
        for name in names:
            folder, _, file = name.rpartition("/")
            if folder == self._folder and file.endswith(".json"):
                self._renew(file.removesuffix(".json"))

    @abstractmethod
    def _renew(self, about: str) -> None:
        """Have the file about this id read again."""

    async def _replaced(self, name: str, known: bytes, content: bytes) -> bool:
        """Write a file, unless another process wrote it since it was `known`. Raises MemoryFault, OSError."""

        def work(before: bytes | None) -> bytes | None:
            return content if (before or b"") == known else None

        return await in_thread(self.documents.change, name, work) == content

    async def _read_file(self, name: str, parse: Callable[[object], T]) -> tuple[T | None, bytes]:
        """The result of `read`. Raises MemoryFault."""
        try:
            return await in_thread(read, self.documents, name, parse, what=self._what, now_ms=self._clock())
        except OSError as error:
            raise MemoryFault(f"{self.documents.folder / name} cannot be read: {error}") from error


def read(
    folder: Documents, name: str, parse: Callable[[object], T], *, what: str, now_ms: int
) -> tuple[T | None, bytes]:
    """Return the record under a name and its bytes; None if there is none. Blocking. Raises OSError.

    A record that cannot be parsed is kept aside and treated as missing; `what` names its type for the log.
    """
    try:
        content = folder.read(name)
    except FileNotFoundError:
        return None, b""
    try:
        return parse(json.loads(content)), content
    except (ValueError, RecursionError) as error:
        aside = folder.keep_aside(name, "corrupt", stamp_of(now_ms))
        log.error("%s is no %s (%s); it is kept as %s", folder.folder / name, what, error, aside.name)
        drop(folder, name)
        return None, b""

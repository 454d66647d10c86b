"""Writing later: what changed is noted at once, and written by a task of its own, each thing once.

Nobody who notes a change waits for a disk. What could not be written is tried again with the next change of
anything. Knows nothing about what is written.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from discoclaw.core.errors import MemoryFault

log = logging.getLogger(__name__)


class Behind:
    """Calls `write` with the key of whatever was marked, one after another. `name` is for the log."""

    def __init__(self, name: str, write: Callable[[str], Awaitable[None]]) -> None:
        self._name = name
        self._write = write
        self._waiting: dict[str, None] = {}  # in order of arrival, each once
        self._failed: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def mark(self, key: str) -> None:
        """Something changed. Never blocks."""
        self._waiting |= {**self._failed, key: None}
        self._failed.clear()
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._work(), name=self._name)

    async def settle(self) -> None:
        """Wait until everything that was marked was written, or could not be."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def close(self, grace_s: float = 5.0) -> None:
        """Write what waits within `grace_s`, then stop."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=grace_s)
        self._closed = True
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, {}
                for key in batch:
                    await self._try(key)
        finally:
            self._task = None

    async def _try(self, key: str) -> None:
        try:
            await self._write(key)
        except (MemoryFault, OSError) as error:
            log.warning("%s: %s is not written, and tried again later: %s", self._name, key, error)
            self._failed[key] = None
        except Exception:  # a named edge: one may fail in any way, and the others are written
            log.exception("%s: %s is not written", self._name, key)
            self._failed[key] = None

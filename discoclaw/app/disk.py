"""Memory on disk: opened first, closed last."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress

from discoclaw.app.services import Part
from discoclaw.core.health import Finding
from discoclaw.core.times import span
from discoclaw.storage import Storage
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import CURSORS
from discoclaw.store.threads import WRITES, running
from discoclaw.work import Worker

log = logging.getLogger(__name__)

CLOSE_WAIT_S = 2.0
"""The longest that closing waits for reads and writes that nobody waits for any more."""
LOOK_S = 0.02
PROBE_S = 15.0
"""The pause between two tries to write, after a write has failed."""
PROBE_HANGS_S = 60.0
_PROBE = "writable.json"


class OnDisk:
    """Opens and closes everything in the data folder. `services` are its parts, in order."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        opening = Part(starting=self._open, settling=storage.processes.settle, closing=self._close)
        pause = PROBE_S
        self._probe = Worker("the store", self._write, retry_s=pause, longest_s=pause, most_s=PROBE_HANGS_S)
        self.services = (opening, self._probe, storage.memory.erasings)

    def health(self) -> Iterator[Finding]:
        """Whether the store can be reached, and was written when that was last tried."""
        storage, written, name = self._storage, WRITES.state(), "the store"
        if not storage.processes.in_touch:
            text = "PostgreSQL has not answered lately; people are answered without their memories"
            yield Finding(name, "bad", text, "look at the database, and at the network to it")
        elif written.failing_s is not None:
            text = f"nothing could be written for {span(round(written.failing_s * 1000))}: {written.reason}"
            yield Finding(name, "bad", text, "free some space, or look at the permissions; the log says more")
            self._probe.note("")  # nobody else may try again soon
        else:
            yield Finding(name, "good", f"{storage.memory.disk.name}; the last write worked")

    async def _write(self, _: str) -> None:
        """Try whether the store can be written again. Raises OSError and MemoryFault."""
        folder = self._storage.memory.disk.documents(CURSORS)
        await in_thread(folder.write, _PROBE, b"{}\n")
        await in_thread(folder.remove, [_PROBE])

    async def _open(self) -> None:
        await read_in_thread(self._storage.open)
        await self._storage.processes.start()
        await read_in_thread(self._storage.load)

    async def _close(self) -> None:
        """Close the files, unless a disk hangs: what it may still write has to be under our lock."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WAIT_S):
                while running():  # noqa: ASYNC110 - threads ring no bell, and this is the last thing we do
                    await asyncio.sleep(LOOK_S)
        calls = running()
        await self._storage.processes.close()  # what is still written after that, a shared store refuses
        if calls:
            log.error("the data folder stays locked until we end, because of %s", "; ".join(calls))
            return
        await read_in_thread(self._storage.close)

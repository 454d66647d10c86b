"""Memory on disk: opened first, closed last."""

import asyncio
import logging
from contextlib import suppress
from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.memory.disk.threads import running
from discoclaw.storage import build

log = logging.getLogger(__name__)

CLOSE_WAIT_S = 2.0
"""The longest that closing waits for reads and writes that nobody waits for any more."""
LOOK_S = 0.02


class OnDisk(Feature):
    """Everything in the data folder; `storage` has the parts."""

    settings: ClassVar = (
        "store",
        "data_dir",
        "idle_s",
        "max_items",
        "asks_first",
        "durable_enabled",
        "durable_dir",
        "summary_dir",
        "summary_enabled",
    )

    def __init__(self, basics: Basics) -> None:
        self.storage = build(basics.settings, clock=basics.clock, redactor=basics.redactor)
        settling = self.storage.processes.settle
        opening = Part(starting=self._open, settling=settling, closing=self._close)
        self.services = (opening, self.storage.memory.erasings)

    async def _open(self) -> None:
        await read_in_thread(self.storage.open)
        await self.storage.processes.start()
        await read_in_thread(self.storage.load)

    async def _close(self) -> None:
        """Close the files, unless a disk hangs: what it may still write has to be under our lock."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WAIT_S):
                while running():  # noqa: ASYNC110 - threads ring no bell, and this is the last thing we do
                    await asyncio.sleep(LOOK_S)
        calls = running()
        await self.storage.processes.close()  # what is still written after that, a shared store refuses
        if calls:
            log.error("the data folder stays locked until we end, because of %s", "; ".join(calls))
            return
        await read_in_thread(self.storage.close)

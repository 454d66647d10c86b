"""Memory on disk: opened first, closed last."""

import asyncio
from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.feature import Feature
from discoclaw.app.part import Part
from discoclaw.storage import build


class OnDisk(Feature):
    """Everything in the data folder; `storage` has the parts."""

    settings: ClassVar = (
        "store",
        "data_dir",
        "idle_s",
        "max_items",
        "durable_enabled",
        "durable_dir",
        "summary_dir",
        "summary_enabled",
    )

    def __init__(self, basics: Basics) -> None:
        self.storage = build(basics.settings, clock=basics.clock, redactor=basics.redactor)
        self.services = (Part(starting=self._open, closing=self._close),)

    async def _open(self) -> None:
        await asyncio.to_thread(self.storage.open)
        await asyncio.to_thread(self.storage.load)

    async def _close(self) -> None:
        await asyncio.to_thread(self.storage.close)

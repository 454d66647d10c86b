"""Services that run in one process at a time: in the one that has their lease."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from discoclaw.core.errors import LeaseLost
from discoclaw.core.processes import Processes
from discoclaw.core.service import Service

log = logging.getLogger(__name__)

AGAIN_S: Final = 30.0
"""The pause after services could not be started, so that another process may try it meanwhile."""
LOST_S: Final = 1.0
"""The pause after the lease was lost: who ends gets none any more, and must not ask for it without end."""


class Sole:
    """Services that are started once the lease `name` is had, and closed when it is lost. A `Service` itself.

    If the lease is free at the start, they are started before anything that comes after them, and what they
    raise is raised. Otherwise they are started later, when whoever has the lease has ended. They can be
    started again after they were closed. What they write belongs to the lease.
    """

    def __init__(self, name: str, services: Sequence[Service], processes: Processes) -> None:
        self._name = name
        self._services = tuple(services)
        self._processes = processes
        self._started: list[Service] = []
        self._runs = False
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the services, or wait for the lease in the background."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep(ready), name=self._name)
        try:
            await ready
        except asyncio.CancelledError:
            self._task.cancel()
            raise

    async def settle(self) -> None:
        """Wait until nothing is left to do here for now."""
        for service in reversed(self._started):
            await service.settle()

    async def close(self) -> None:
        """Close what runs here, and give the lease back."""
        self._closing.set()
        task, self._task = self._task, None
        if task is None:
            return
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelled():
                raise

    # ------------------------------------------------------------------ inside

    async def _keep(self, ready: asyncio.Future[None]) -> None:
        """Have the lease as often as it is to be had, until we close."""
        try:
            async with self._processes.free(self._name) as ours:
                if ours:
                    await self._run(ready)
        except LeaseLost:
            log.warning("%s: another process does this now", self._name)
        except Exception as error:  # noqa: BLE001 - whoever starts us is told of it, or it is logged
            if not ready.done():
                ready.set_exception(error)
                return
            self._failed(error)
        if not ready.done():
            log.info("%s: another process does this, and this one waits in case it ends", self._name)
            ready.set_result(None)
        while not self._closing.is_set():
            closing = asyncio.create_task(self._closing.wait())
            leased = asyncio.create_task(self._leased(), name=self._name)
            await asyncio.wait([closing, leased], return_when=asyncio.FIRST_COMPLETED)
            closing.cancel()
            if not self._runs:
                leased.cancel()  # it still waits for the lease, or starts
            await self._ended(leased)

    async def _ended(self, leased: asyncio.Task[None]) -> None:
        try:
            await leased
        except asyncio.CancelledError:
            if not leased.cancelled():
                raise
        except LeaseLost:
            log.warning("%s: another process does this now", self._name)
            await self._pause(LOST_S)
        except Exception as error:  # noqa: BLE001 - it is logged, and may work later or in another process
            self._failed(error)
            await self._pause(AGAIN_S)

    async def _pause(self, pause_s: float) -> None:
        """Wait so long, or until we close."""
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._closing.wait()

    def _failed(self, error: Exception) -> None:
        if self._closing.is_set():
            raise error  # whoever closes us is told
        log.error("%s failed, and is tried again", self._name, exc_info=error)

    async def _leased(self) -> None:
        async with self._processes.lease(self._name):
            log.info("%s: this process does it from now on", self._name)
            await self._run()

    async def _run(self, ready: asyncio.Future[None] | None = None) -> None:
        """Start all, wait until we close, and close all."""
        try:
            for service in self._services:
                self._started.append(service)
                await service.start()
            self._runs = True
            if ready is not None:
                ready.set_result(None)
            await self._closing.wait()  # or until the lease is lost, which ends this task
        finally:
            self._runs = False
            await self._end()

    async def _end(self) -> None:
        """Close all that were started, in reverse order; the first error is raised when all are closed."""
        errors: list[Exception] = []
        while self._started:
            try:
                await self._started.pop().close()
            except Exception as error:  # noqa: BLE001 - the others have to be closed before it is raised
                errors.append(error)
        if errors:
            raise errors[0]

"""The lifecycle of the program: its services in order, its data folder, and what one process alone has."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from discoclaw.core.errors import LeaseLost
from discoclaw.core.health import Finding
from discoclaw.core.ports import Processes, Service
from discoclaw.core.times import span
from discoclaw.storage import Storage
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import CURSORS
from discoclaw.store.threads import WRITES, running
from discoclaw.work import Worker

log = logging.getLogger(__name__)

STEP_S: Final = 2.0
"""How long a service keeps the next one from closing while a disk hangs: as long as a reply waits for one."""
LAST_S: Final = 0.2
"""What each service has left to close when the time for all of them is over."""
LOOK_S: Final = 0.1
AGAIN_S: Final = 30.0
"""The pause after services could not be started, so that another process may try it meanwhile."""
CLOSE_WAIT_S = 2.0
"""The longest that closing waits for reads and writes that nobody waits for any more."""
PROBE_S = 15.0
"""The pause between two tries to write, after a write has failed."""
PROBE_HANGS_S = 60.0
_PROBE = "writable.json"
LOST_S: Final = 1.0
"""The pause after the lease was lost: who ends gets none any more, and must not ask for it without end."""


async def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """A `Service` made of functions, for parts that have only some of its methods, or other names."""

    starting: Callable[[], Awaitable[object]] = _nothing
    settling: Callable[[], Awaitable[object]] = _nothing
    closing: Callable[[], Awaitable[object]] = _nothing

    async def start(self) -> None:
        await self.starting()

    async def settle(self) -> None:
        await self.settling()

    async def close(self) -> None:
        await self.closing()


class Services:
    """A list of services as one. A service comes after everything it depends on."""

    def __init__(self, services: Sequence[Service], *, close_s: float = 30.0) -> None:
        self._services = tuple(services)
        self._close_s = close_s
        self._started: list[Service] = []

    async def start(self) -> None:
        """Start all in order. If one fails, those before it are closed, and its error is raised."""
        try:
            for service in self._services:
                self._started.append(service)
                await service.start()
        except BaseException:
            await self.close()
            raise

    async def settle(self) -> None:
        """Wait until nothing is working; in reverse order, since later services give work to earlier ones."""
        for service in reversed(self._services):
            await service.settle()

    async def close(self) -> None:
        """Close all that were started, in reverse order. A failing one does not keep the others open.

        Neither does one that hangs: all together take `close_s`, and what has not ended then is named in the
        log. A cancellation gives up on the service that is closing, and goes on with the next.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._close_s
        closings: dict[asyncio.Task[None], str] = {}
        cancelled: asyncio.CancelledError | None = None
        while self._started:
            service = self._started.pop()
            closing = asyncio.ensure_future(service.close())
            closings[closing] = _name_of(service)
            try:
                await _in_turn(closing, ends)
            except asyncio.CancelledError as error:
                cancelled = error
                closing.cancel()
        late = [name for closing, name in closings.items() if not closing.done()]
        if late:
            log.error("not closed in time: %s", ", ".join(late))
        ended = [closing for closing in closings if closing.done() and not closing.cancelled()]
        errors = [failure for closing in ended if (failure := closing.exception()) is not None]
        if cancelled is not None:
            raise cancelled
        if errors:
            raise errors[0]


async def _in_turn(closing: asyncio.Task[None], ends: float) -> None:
    """Wait until a service is closed, or until the next one should not wait any longer."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not closing.done():
        left = ends - loop.time()
        await asyncio.wait([closing], timeout=LAST_S if left <= 0 else min(left, LOOK_S))
        if left <= 0 or (loop.time() - began >= STEP_S and running(STEP_S)):
            return


def _name_of(service: Service) -> str:
    """A service's name for the log: its class, or the function that closes it."""
    closing = getattr(service, "closing", None)
    return getattr(closing, "__qualname__", type(service).__qualname__).removesuffix(".<locals>.close")


# The data folder: opened first, closed last.


class OnDisk:
    """Opens and closes everything in the data folder. `services` are its parts, in order."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        opening = Part(self._open, storage.processes.settle, self._close)
        pause = PROBE_S
        self._probe = Worker("the store", self._write, retry_s=pause, longest_s=pause, most_s=PROBE_HANGS_S)
        self.services = (opening, self._probe)

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
                    await asyncio.sleep(0.02)
        calls = running()
        await self._storage.processes.close()  # what is still written after that, a shared store refuses
        if calls:
            log.error("the data folder stays locked until we end, because of %s", "; ".join(calls))
            return
        await read_in_thread(self._storage.close)


# Services that run in one process at a time: in the one that has their lease.


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
        self._running: Services | None = None
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
        if self._running is not None:
            await self._running.settle()

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
            if self._running is None:
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
        running = Services(self._services)
        await running.start()
        try:
            self._running = running
            if ready is not None:
                ready.set_result(None)
            await self._closing.wait()  # or until the lease is lost, which ends this task
        finally:
            self._running = None
            await running.close()

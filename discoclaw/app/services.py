"""The list of all services: started in order, closed in reverse."""

import asyncio
import logging
from collections.abc import Sequence

from discoclaw.core.service import Service
from discoclaw.memory.disk.threads import running

log = logging.getLogger(__name__)

STEP_S = 2.0
"""How long a service keeps the next one from closing while a disk hangs: as long as a reply waits for one."""
LAST_S = 0.2
"""What each service has left to close when the time for all of them is over."""
LOOK_S = 0.1


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

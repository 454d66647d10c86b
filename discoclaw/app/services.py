"""The list of all services: started in order, closed in reverse."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from discoclaw.core.service import Service

log = logging.getLogger(__name__)


class Services:
    """A list of services as one. A service comes after everything it depends on."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = tuple(services)
        self._started = AsyncExitStack()

    async def start(self) -> None:
        """Start all in order. If one fails, those before it are closed, and its error is raised."""
        async with AsyncExitStack() as stack:
            for service in self._services:
                stack.push_async_callback(service.close)
                await service.start()
            self._started = stack.pop_all()

    async def settle(self) -> None:
        """Wait until nothing is working; in reverse order, since later services give work to earlier ones."""
        for service in reversed(self._services):
            await service.settle()

    async def close(self) -> None:
        """Close all that were started, in reverse order. A failing one does not keep the others open."""
        await self._started.aclose()

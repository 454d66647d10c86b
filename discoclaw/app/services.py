"""The one list of everything that runs: started in order, closed in reverse."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from discoclaw.core.service import Service

log = logging.getLogger(__name__)


class Services:
    """A list of services as one. What depends on something stands behind it in the list."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = tuple(services)
        self._started = AsyncExitStack()

    async def start(self) -> None:
        """Start all in order. If one fails, those before it are closed again, and its error is raised."""
        async with AsyncExitStack() as stack:
            for service in self._services:
                stack.push_async_callback(service.close)
                await service.start()
            self._started = stack.pop_all()

    async def settle(self) -> None:
        """Wait until nothing is at work: first what gives others work, so in reverse order."""
        for service in reversed(self._services):
            await service.settle()

    async def close(self) -> None:
        """Close all that were started, in reverse order. One that fails does not keep the others open."""
        await self._started.aclose()

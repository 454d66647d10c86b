"""A service made of functions, for parts whose methods have other names or which have only some of them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


async def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """A `Service` that calls the given functions."""

    starting: Callable[[], Awaitable[object]] = _nothing
    settling: Callable[[], Awaitable[object]] = _nothing
    closing: Callable[[], Awaitable[object]] = _nothing

    async def start(self) -> None:
        await self.starting()

    async def settle(self) -> None:
        await self.settling()

    async def close(self) -> None:
        await self.closing()

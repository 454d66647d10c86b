"""Waiting without polling: whoever changes something rings, whoever waits looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Bell:
    """One condition for a whole server; looking is cheap, so nobody needs a bell of their own."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()

    async def ring(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def wait_until(
        self,
        found: Callable[[], T | None],
        seen: Callable[[], str],
        timeout: float,  # noqa: ASYNC109 - a failing test should say what was there instead
    ) -> T:
        """Looks after every ring until `found` has something; past the time limit, says what was `seen`."""
        try:
            async with asyncio.timeout(timeout), self._changed:
                while (result := found()) is None:
                    await self._changed.wait()
                return result
        except TimeoutError:
            raise TimeoutError(f"waited {timeout} s; {seen()}") from None

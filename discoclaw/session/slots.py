"""Slots for what takes long: so many at once, and of each person only so many, so that nobody takes all.

Who waits does so in the order in which they came. Knows nothing of what is done in a slot.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(eq=False)
class Turn:
    """A person's own slots, while something of theirs is under way or waits. `spent`: what that took (s)."""

    free: asyncio.Semaphore
    users: int = 0
    spent: float = 0.0


class Slots:
    """`at_once` slots, of which a person has up to `each`."""

    def __init__(self, at_once: int, each: int = 1) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._each = each
        self._turns: dict[str, Turn] = {}

    def busy(self, user_id: str) -> bool:
        """Whether a person would have to wait."""
        own = self._turns.get(user_id)
        return self._free.locked() or (own is not None and own.free.locked())

    @asynccontextmanager
    async def of(self, user_id: str) -> AsyncGenerator[Turn, None]:
        """Wait for a slot, and have it."""
        turn = self._turns.setdefault(user_id, Turn(asyncio.Semaphore(self._each)))
        turn.users += 1
        try:
            async with turn.free, self._free:
                yield turn
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[user_id]

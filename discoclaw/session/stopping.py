"""Answers that a person stops: the turn ends with what was said so far, and the next one begins.

Independent of what a turn does, and of how people say that it is enough.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Literal

Stopped = Literal["now", "ending", "unknown"]
"""Whether this request stops the answer, comes when it is ending anyway, or finds none under way."""


class Stoppable:
    """One answer that is being given. `stopped`: it ended before the model had finished."""

    def __init__(self, user_id: str) -> None:
        self.user_id = user_id
        self.stopped = False
        self._limit: asyncio.Timeout | None = None

    @asynccontextmanager
    async def part(self) -> AsyncIterator[None]:
        """The part that can be stopped: what is awaited in it is cancelled, and it ends without an error."""
        # A timeout that we set off by hand: it tells our own cancellation from anybody else's.
        limit = self._limit = asyncio.timeout(None)
        try:
            async with limit:
                yield
        except TimeoutError:
            self.stopped = limit.expired()
            if not self.stopped:
                raise
        finally:
            self._limit = None

    def stop(self) -> bool:
        """Stop it. Returns False if it is not in that part, or was stopped before."""
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.reschedule(asyncio.get_running_loop().time())
        return limit is not None


class Stops:
    """The answers that are being given, by the id of what they answer."""

    def __init__(self) -> None:
        self._turns: dict[str, Stoppable] = {}

    @contextmanager
    def turn(self, message_id: str, user_id: str) -> Iterator[Stoppable]:
        """An answer, from its first to its last step."""
        one = self._turns[message_id] = Stoppable(user_id)
        try:
            yield one
        finally:
            del self._turns[message_id]

    def stop(self, message_id: str, user_id: str) -> Stopped:
        """Stop the answer to a message. Only the person who is answered can do that."""
        one = self._turns.get(message_id)
        if one is None or one.user_id != user_id:
            return "unknown"
        return "now" if one.stop() else "ending"

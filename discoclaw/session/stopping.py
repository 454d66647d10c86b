"""Answers that end early: a person stops one, or deletes what it answers.

Whoever stops an answer keeps what was said so far. Of an answer to a deleted message nothing stays.
Independent of what a turn does, and of how people say that it is enough.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Literal

from discoclaw.core.errors import QuestionGone

MOST_DELETED: Final = 2_000
Stopped = Literal["now", "ending", "unknown"]
"""Whether this request stops the answer, comes when it is ending anyway, or finds none under way."""


class Stoppable:
    """One answer that is being given. `stopped`: it ended before the model had finished.

    `gone`: the message that it answers was deleted.
    """

    def __init__(self, user_id: str, *, gone: bool = False) -> None:
        self.user_id = user_id
        self.stopped = False
        self.gone = gone
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

    def check(self) -> None:
        """Raise QuestionGone if the message that it answers was deleted."""
        if self.gone:
            raise QuestionGone("what was being answered was deleted")

    def stop(self) -> bool:
        """Stop it. Returns False if it is not in that part, or was stopped before."""
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.reschedule(asyncio.get_running_loop().time())
        return limit is not None


class Stops:
    """The answers that are being given, by the id of what they answer, and what was deleted lately."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[Collection[str], Stoppable]] = {}
        self._deleted: dict[str, None] = {}

    @contextmanager
    def turn(self, message_id: str, user_id: str, asks: Collection[str]) -> Iterator[Stoppable]:
        """An answer to the messages `asks`, from its first to its last step.

        Raises QuestionGone if one of them was deleted by the end, whatever else went wrong.
        """
        one = Stoppable(user_id, gone=self.deleted(asks))
        self._turns[message_id] = asks, one
        try:
            yield one
        except Exception:
            one.check()
            raise
        finally:
            del self._turns[message_id]
        one.check()

    def delete(self, message_ids: Collection[str]) -> None:
        """Messages were deleted: whatever answers one of them ends."""
        for message_id in message_ids:
            self._deleted[message_id] = None
            if len(self._deleted) > MOST_DELETED:
                del self._deleted[next(iter(self._deleted))]
        for asks, one in self._turns.values():
            if self.deleted(asks):
                one.gone = True
                one.stop()

    def deleted(self, message_ids: Collection[str]) -> bool:
        """Whether one of these messages was deleted lately: they may be waiting, or not even be heard yet."""
        return not self._deleted.keys().isdisjoint(message_ids)

    def stop(self, message_id: str, user_id: str) -> Stopped:
        """Stop the answer to a message. Only the person who is answered can do that."""
        _, one = self._turns.get(message_id, ((), None))
        if one is None or one.user_id != user_id:
            return "unknown"
        return "now" if one.stop() else "ending"

"""Has withdrawn summaries written again, from what the chat's history still has.

In a conversation where nothing was said lately, that waits for the next message. Nobody waits for it.
"""

import asyncio
from collections.abc import Collection

from discoclaw.core.personal import NOTHING_WITHDRAWN, PersonalData, Withdrawn
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Withdrawal
from discoclaw.core.times import snowflake_at
from discoclaw.loops.schedule import Loops
from discoclaw.session.refill import Refill
from discoclaw.session.window import Windows
from discoclaw.work import Worker


class Rewriting(PersonalData):
    """Has the messages of withdrawn summaries read again. It is a `core.service.Service`."""

    name = "summaries to be made again"

    def __init__(self, windows: Windows, loops: Loops, refill: Refill, *, clock: Clock) -> None:
        self._windows = windows
        self._loops = loops
        self._refill = refill
        self._clock = clock
        self._waiting: set[str] = set()
        self._worker = Worker("summaries made again", self._read)

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        for key in sorted(sessions):
            if await self._loops.summary_lost(key):
                self._loops.tracks.begin_again(key)
                self._windows.use(key).refilled = False
                self._waiting.add(key)
        return NOTHING_WITHDRAWN

    def withdrawn(self, subject: str) -> None:
        """Have them read now. Until here, no summary of these conversations may be written."""
        waiting, self._waiting = self._waiting, set()
        for key in sorted(waiting):
            self._worker.note(key)

    async def start(self) -> None:
        """Do nothing: a withdrawal starts the work."""

    async def settle(self) -> None:
        """Wait until everything was read."""
        await self._worker.settle()

    async def close(self) -> None:
        """Stop. The rest is read when somebody says something there again."""
        await self._worker.close(0)

    async def _read(self, session_key: str) -> None:
        window = self._windows.use(session_key)
        if window.place is not None and not window.refilled:
            before = str(snowflake_at(self._clock()) + (1 << 22))
            await asyncio.wait([self._refill.read(window.place, session_key, window, before=before)])

"""People's talk in the RAM of the running program, as one part that a purge visits.

Purged summaries are written again from what the chat's history still has. In a conversation where nothing was
said lately, that waits for the next message. Nobody waits for it.
"""

import asyncio
from collections.abc import Iterable

from discoclaw.core.ports import Clock, Recall
from discoclaw.core.purge import Derived, Purge, Purged
from discoclaw.core.subject import user_of
from discoclaw.core.times import snowflake_at
from discoclaw.loops.schedule import Loops
from discoclaw.memory.changes import Listener
from discoclaw.session.agent import Explained
from discoclaw.session.hatch import Hatchery
from discoclaw.session.refill import Refill
from discoclaw.session.window import Windows
from discoclaw.work import Worker


class TalkInRam(Derived, Listener):
    """Windows, backlogs, the interview, the reasons for answers, and ranking. It is a `core.service.Service`.

    After a purge it has the messages of purged summaries read again.
    """

    name = "talk in memory"

    def __init__(
        self,
        windows: Windows,
        loops: Loops,
        hatchery: Hatchery,
        explained: Explained,
        ranker: Recall,
        refill: Refill,
        *,
        clock: Clock,
    ) -> None:
        self._windows = windows
        self._loops = loops
        self._hatchery = hatchery
        self._explained = explained
        self._ranker = ranker
        self._refill = refill
        self._clock = clock
        self._to_read: set[str] = set()
        """The conversations whose summaries were purged."""
        self._worker = Worker("summaries made again", self._read)

    def sessions_of(self, subject: str) -> Iterable[str]:
        """The conversations that have words of a person in RAM."""
        if (user_id := user_of(subject)) is None:
            return ()
        return {*self._windows.with_words_of(user_id), *self._loops.tracks.sessions_of(user_id)}

    def purge_ram(self, purge: Purge) -> Purged | None:
        """Drop the messages that somebody took back, from what is shown and from what is to be learned.

        Where they are erased, drop everything that could bring their words back: their conversations start
        empty.
        """
        if purge.erases and not purge.user_id:
            return None
        self._explained.forget(purge.user_id)
        self._ranker.forget()
        if purge.erases:
            touched = sorted({*purge.sessions, *self.sessions_of(purge.subject)})
            for session_key in touched:
                self._windows.use(session_key).clear()
            self._hatchery.erase(purge.user_id)
            self._loops.tracks.erase(purge.user_id, touched, purge.at)
            return None
        self._hatchery.purge(purge)
        gone = self._windows.purge(purge) | self._loops.tracks.purge(purge)
        return Purged(messages=frozenset(gone))

    def out_of_touch(self) -> None:
        """Answer from no talk that others may take back or erase meanwhile; what is to be learned waits."""
        self._windows.out_of_touch()

    # ------------------------------------------------------------------ summaries that are written again

    async def purge_disk(self, purge: Purge) -> None:
        for key in sorted(purge.sessions):
            if await self._loops.summary_lost(key):
                self._loops.tracks.begin_again(key)
                self._windows.use(key).refilled = False
                self._to_read.add(key)

    def purged(self, subject: str) -> None:
        """Have them read now. Until here, no summary of these conversations may be written."""
        waiting, self._to_read = self._to_read, set()
        for key in sorted(waiting):
            self._worker.note(key)

    async def start(self) -> None:
        """Do nothing: a purge starts the work."""

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

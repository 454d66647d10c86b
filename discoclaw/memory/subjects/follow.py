"""Followers of the ledger: whoever mirrors memory elsewhere, each with a saved cursor.

The writer never calls a mirror. It says that a subject changed; a follower's own task then brings the
mirror up to date and saves how far it came. What changed while the program was down is found at the start,
by comparing the sizes of the ledgers with the cursor. A mirror may lag or die; nothing else notices.
Knows nothing about what a mirror is.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from discoclaw.memory.changes import Listener
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.port import Ledgers, ledgers_at

log = logging.getLogger(__name__)

LONGEST_PAUSE_S = 3600.0

Mirror = Callable[[str], Awaitable[None]]
"""Brings the mirror of one subject up to date; raises when it could not."""


class Follower(Listener):
    """Keeps one mirror up to date. `retry_s` is the first pause after a failure; it doubles up to an hour.

    Its task ends when nothing can be done now, and is started again by the next change or by the clock. A
    subject that fails waits alone; the others go on.
    """

    def __init__(
        self,
        name: str,
        mirror: Mirror,
        *,
        ledgers: Path | Ledgers,
        cursors: Cursors,
        retry_s: float = 30.0,
    ) -> None:
        self._name = f"follow-{name}"
        self._mirror = mirror
        self._ledgers = ledgers_at(ledgers)
        self._cursors = cursors
        self._retry_s = retry_s
        self._waiting: dict[str, None] = {}  # in order of arrival, each subject once
        self._failed: dict[str, float] = {}  # the pauses of subjects that failed, in seconds
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def catch_up(self) -> None:
        """Queue every subject whose ledger is not as long as the cursor says."""
        done = await self._cursors.get(self._name)
        try:
            there = await asyncio.to_thread(self._ledgers.by_age)
        except OSError as error:
            log.warning("%s: what changed meanwhile can not be found: %s", self._name, error)
            return
        for subject, size in there:
            if done.get(subject) != size:
                self.touch(subject)

    def recorded(self, subject: str) -> None:
        self.touch(subject)

    def touch(self, subject: str) -> None:
        """A subject changed. Never blocks. One that failed lately still waits out its pause."""
        if subject not in self._timers:
            self._waiting[subject] = None
            self._start()

    async def settle(self) -> None:
        """Wait until nothing can be done now; failures may be waiting for their next try."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop; what is left is found again at the next start."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _start(self) -> None:
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._drain(), name=self._name)

    async def _drain(self) -> None:
        done: dict[str, int] = {}
        try:
            while self._waiting:
                subject = next(iter(self._waiting))
                del self._waiting[subject]
                size = await asyncio.to_thread(self._size, subject)
                try:
                    await self._mirror(subject)
                except Exception:  # a named edge: a mirror may fail in any way, and memory goes on
                    pause = self._later(subject)
                    log.exception("%s: %s not mirrored; next try in %.0f s", self._name, subject, pause)
                    continue
                done[subject] = size
                self._failed.pop(subject, None)
        finally:
            try:
                await self._note(done)
            finally:
                self._task = None
                if self._waiting:  # touched while the cursor was saved
                    self._start()

    async def _note(self, done: Mapping[str, int]) -> None:
        """Save what was done; a subject that is gone, or was erased meanwhile, leaves no trace."""
        erasings = self._cursors.erasings
        gone = await asyncio.to_thread(lambda: {subject for subject in done if not self._size(subject)})

        def noted(known: Mapping[str, object]) -> Mapping[str, object] | None:
            if erasings != self._cursors.erasings:
                return None  # all that is lost is that it is done again
            return {subject: size for subject, size in {**known, **done}.items() if subject not in gone}

        await self._cursors.update(self._name, noted)

    def _size(self, subject: str) -> int:
        try:
            return self._ledgers.log(subject).size()
        except OSError:
            return 0

    def _later(self, subject: str) -> float:
        """Try a subject again after a pause (s), which is returned and doubles with each failure."""
        pause = self._failed.get(subject, self._retry_s)
        self._failed[subject] = min(pause * 2, LONGEST_PAUSE_S)

        def again() -> None:
            del self._timers[subject]
            self.touch(subject)

        self._timers[subject] = asyncio.get_running_loop().call_later(pause, again)
        return pause

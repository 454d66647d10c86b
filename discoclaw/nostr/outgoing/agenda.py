"""When is what to be done: things that changed wait for others, some are urgent, and failures wait longer.

    later   within `pause_s` of the first change, however many follow
    now     as soon as possible, but the same thing not twice within `gap_s`
    failed  after `retry_s`, which doubles with each failure up to an hour

One thing at a time, each by its key. Knows nothing about what is done.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from discoclaw.core.errors import MemoryFault, NostrError

log = logging.getLogger(__name__)

LONGEST_PAUSE_S: Final = 3600.0
_MOST_KNOWN = 1_000


class Agenda:
    """Calls `work` with the key of whatever is due, in a task of its own. `name` is for the log."""

    def __init__(
        self,
        name: str,
        work: Callable[[str], Awaitable[None]],
        *,
        pause_s: float,
        gap_s: float = 1.0,
        retry_s: float = 30.0,
    ) -> None:
        self._name = name
        self._work = work
        self._pause_s = pause_s
        self._gap_s = gap_s
        self._retry_s = retry_s
        self._urgent: dict[str, None] = {}  # in order of arrival, each once
        self._due: dict[str, None] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._failed: dict[str, float] = {}  # the pauses of what failed, in seconds
        self._begun: dict[str, float] = {}  # when what was done lately was begun, by the loop's clock
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def later(self, key: str) -> None:
        """Something changed. Never blocks. What failed lately still waits out its pause."""
        if key not in self._timers and key not in self._due and key not in self._urgent:
            self._in(self._pause_s, key)

    def now(self, key: str, *, first: bool = False) -> None:
        """Something is to be done now; `first`: before all else. Never blocks."""
        self._cancel(key)
        again = self._begun.get(key, -self._gap_s) + self._gap_s - asyncio.get_running_loop().time()
        if again > 0:
            self._in(again, key)
        else:
            self._queue(key, first=first)

    def all_now(self) -> None:
        """What waits is due now."""
        for key in list(self._timers):
            self._cancel(key)
            self._queue(key)

    @property
    def waiting(self) -> int:
        """How many things are still to be done."""
        return len({*self._due, *self._urgent, *self._timers})

    async def settle(self) -> None:
        """Wait until nothing is due; what waits for its time waits on."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop behind what is being done now. What is left is left."""
        self._closed = True
        for key in list(self._timers):
            self._cancel(key)
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait([task])

    # ------------------------------------------------------------------ inside

    def _in(self, pause_s: float, key: str) -> None:
        if not self._closed:
            self._timers[key] = asyncio.get_running_loop().call_later(pause_s, self._rung, key)

    def _rung(self, key: str) -> None:
        del self._timers[key]
        self._queue(key)

    def _cancel(self, key: str) -> None:
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()

    def _queue(self, key: str, *, first: bool = False) -> None:
        if first:
            self._due.pop(key, None)
        if key not in self._urgent:
            (self._urgent if first else self._due)[key] = None
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._drain(), name=self._name)

    async def _drain(self) -> None:
        try:
            while queue := self._urgent or self._due:
                key = next(iter(queue))
                del queue[key]
                await self._try(key)
        finally:
            self._task = None

    async def _try(self, key: str) -> None:
        self._note(key)
        try:
            await self._work(key)
        except (MemoryFault, NostrError, OSError) as error:
            pause = self._again(key)
            log.warning("%s: %s is tried again in %.0f s: %s", self._name, key, pause, error)
        except Exception:  # a named edge: one may fail in any way, and the others go on
            log.exception("%s: %s is tried again in %.0f s", self._name, key, self._again(key))
        else:
            self._failed.pop(key, None)

    def _note(self, key: str) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._begun) >= _MOST_KNOWN:
            self._begun = {one: at for one, at in self._begun.items() if at + self._gap_s > now}
        self._begun[key] = now

    def _again(self, key: str) -> float:
        """Try something again after a pause (s), which is returned."""
        pause = self._failed.get(key, self._retry_s)
        self._failed[key] = min(pause * 2, LONGEST_PAUSE_S)
        if key not in self._due and key not in self._urgent:
            self._cancel(key)
            self._in(pause, key)
        return pause

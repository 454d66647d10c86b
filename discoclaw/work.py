"""The background worker: everything that is done later, and that nobody waits for, is done by one of these.

A caller notes a key, and a task of the worker calls `run` with it:

    noted                       due now, or after `after_s`; several notes before the run are one run
    noted while it is running   run once more afterwards, so no change is ever missed
    run failed                  due again after `retry_s`, which doubles with each failure up to `longest_s`;
                                the key waits alone, and notes for it don't make it due earlier

At most `at_once` keys are run side by side, and no key twice at the same time. With `lease` that holds for
all processes: a run waits for its lease. An error we expect (one of `core/errors`, or an OSError) is one
warning until the key works again; any other is logged with its traceback each time.

The pauses are ours and not those of `tenacity` or `stamina`: these retry a call that somebody awaits. Here
nobody does, a pause belongs to a key, notes join it and closing ends it, so a library would only replace the
line that doubles a number.
Knows nothing about what is run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from contextvars import Context, copy_context
from typing import Any, Final, Generic, TypeVar

from discoclaw.core.errors import DiscoClawError
from discoclaw.jobs import MOST_S, Jobs

log = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)

RETRY_S: Final = 30.0
LONGEST_S: Final = 3600.0
GRACE_S: Final = 5.0
_MOST_BEGUN = 1_000
"""Keys whose last start is remembered before those that no longer matter are dropped."""


async def _nothing(keys: Collection[object]) -> None:
    """Do nothing, as most workers do when they become idle."""


def _no_lease(key: object) -> AbstractAsyncContextManager[None]:
    """No lease, as for most runs."""
    return nullcontext()


class Worker(Generic[K]):
    """Calls `run` with each key that was noted. `name` is for the log. It is a `core.service.Service`.

    `retry_s` None: a key that failed waits for its next note. A key starts again `gap_s` after its last start
    at the earliest. `idle` is awaited when nothing is due any more, with the keys that were run without an
    error since it was last called. A run that takes longer than `most_s` counts as hanging; see `jobs`.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[K], Awaitable[None]],
        *,
        at_once: int = 1,
        gap_s: float = 0.0,
        retry_s: float | None = RETRY_S,
        longest_s: float = LONGEST_S,
        idle: Callable[[Collection[K]], Awaitable[None]] = _nothing,
        lease: Callable[[K], AbstractAsyncContextManager[None]] = _no_lease,
        most_s: float = MOST_S,
    ) -> None:
        self._name = name
        self._jobs = Jobs(
            name,
            most_s=most_s,
            due=lambda: bool(self._urgent or self._due),
            waiting=lambda: len({*self._due, *self._urgent, *self._again, *self._resting}),
        )
        self._run = run
        self._at_once = at_once
        self._gap_s = gap_s
        self._retry_s = retry_s
        self._longest_s = longest_s
        self._idle = idle
        self._lease = lease
        self._context: Context | None = None
        self._urgent: dict[K, None] = {}  # due, in order of arrival, each once; before all in `_due`
        self._due: dict[K, None] = {}
        self._running: set[K] = set()
        self._again: dict[K, bool] = {}  # noted while running; whether it is urgent
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._resting: set[K] = set()  # keys whose timer is the pause after a failure
        self._pauses: dict[K, float] = {}  # the next pauses of keys that failed, in seconds
        self._warned: set[K] = set()
        self._begun: dict[K, float] = {}  # when a key was last started, by the loop's clock
        self._done: dict[K, None] = {}  # what `idle` was not called with yet
        self._in_idle = False
        self._lanes: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._closed = False

    # ------------------------------------------------------------------ noting

    def note(self, key: K, after_s: float = 0.0, *, first: bool = False) -> None:
        """Something changed: run the key now, or in `after_s` unless it is due earlier. Never blocks.

        With `first` it comes before all others and doesn't wait out a pause, because somebody waits for it.
        """
        if self._closed or (key in self._resting and not first):
            return
        wait_s = max(after_s, self._gap(key))
        if wait_s <= 0:
            self._make_due(key, first=first)
        elif not self.busy(key) or (key in self._running and key not in self._again):
            at = asyncio.get_running_loop().time() + wait_s
            if key not in self._timers or at < self._timers[key].when():
                self._ring(at, key)

    def hurry(self) -> None:
        """Make everything due now: what waits for its time, and what waits after a failure. Never blocks."""
        for key in list(self._timers):
            self._make_due(key)

    def busy(self, key: K) -> bool:
        """Whether a key is due or running."""
        return key in self._running or key in self._due or key in self._urgent

    @property
    def waiting(self) -> int:
        """How many keys are still to be run, now or later."""
        return len({*self._due, *self._urgent, *self._again, *self._timers})

    # ------------------------------------------------------------------ lifecycle

    async def start(self) -> None:
        """Let all runs belong to whoever starts it: what is leased there fences what they write.

        Without a start they belong to whoever noted their key. The first note starts the work.
        """
        self._context = copy_context()

    async def settle(self, *keys: K) -> None:
        """Wait until nothing is due, or none of these keys; what waits for its time is not awaited."""
        if not keys:
            while self._lanes:
                await asyncio.wait(self._lanes)
        while any(self.busy(key) for key in keys):
            await self._ended.wait()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Finish what is due within `grace_s`, then stop. Nothing runs afterwards; may be called again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self.settle()
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        for waiting in (self._timers, self._urgent, self._due, self._again):
            waiting.clear()
        for lane in self._lanes:
            lane.cancel()
        self._wake()
        await self.settle()
        if self._done:
            await self._report_idle()
        self._jobs.ended()

    # ------------------------------------------------------------------ inside: when

    def _make_due(self, key: K, *, first: bool = False) -> None:
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._resting.discard(key)
        if key in self._running:
            self._again[key] = first or self._again.get(key, False)
            return
        fresh = not self.busy(key)
        if not (self._urgent or self._due):
            self._jobs.moved()
        if first:
            self._due.pop(key, None)
            self._urgent[key] = None
        elif fresh:
            self._due[key] = None
        if fresh and len(self._lanes) < self._at_once:
            context = self._context.copy() if self._context is not None else None
            lane = asyncio.create_task(self._work(), name=self._name, context=context)
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)  # also one that is cancelled before it begins

    def _ring(self, at: float, key: K) -> None:
        """Make a key due at a time of the loop's clock, instead of when it was to be."""
        if (timer := self._timers.get(key)) is not None:
            timer.cancel()
        self._timers[key] = asyncio.get_running_loop().call_at(at, self._make_due, key)

    def _gap(self, key: K) -> float:
        """How long (s) a key still has to wait since its last start."""
        if (begun := self._begun.get(key)) is None:
            return 0.0
        return begun + self._gap_s - asyncio.get_running_loop().time()

    def _begin(self, key: K) -> None:
        self._running.add(key)
        if self._gap_s <= 0:
            return
        now = asyncio.get_running_loop().time()
        if len(self._begun) >= _MOST_BEGUN:
            self._begun = {one: at for one, at in self._begun.items() if at + self._gap_s > now}
        self._begun[key] = now

    def _end(self, key: K) -> None:
        self._running.discard(key)
        if (first := self._again.pop(key, None)) is not None and not self._closed:
            self._make_due(key, first=first)
        self._wake()

    def _wake(self) -> None:
        """Let everybody who waits in `settle` look at their keys again."""
        self._ended.set()
        self._ended.clear()

    # ------------------------------------------------------------------ inside: running

    async def _work(self) -> None:
        """Run what is due, one key after another, until nothing is left for this task."""
        lane = asyncio.current_task()
        assert lane is not None
        try:
            while True:
                if queue := self._urgent or self._due:
                    key = next(iter(queue))
                    del queue[key]
                    await self._try(key, lane)
                elif self._done and not self._running and not self._in_idle:
                    await self._report_idle()
                else:
                    return
        finally:
            self._lanes.discard(lane)  # now, so that the next note starts another one

    async def _try(self, key: K, lane: asyncio.Task[None]) -> None:
        self._begin(key)
        try:
            async with AsyncExitStack() as stack:
                with self._jobs.leasing():
                    await stack.enter_async_context(self._lease(key))
                with self._jobs.running():
                    await self._run(key)
        except (DiscoClawError, OSError) as error:
            level = logging.DEBUG if key in self._warned else logging.WARNING
            self._warned.add(key)
            log.log(level, "%s: %s failed%s: %s", self._name, key, self._rest(key, error), error)
        except asyncio.CancelledError as error:
            if lane.cancelling():
                raise
            # Something inside gave up, which is a failure like others, and doesn't stop the other keys.
            log.warning("%s: %s was cancelled%s", self._name, key, self._rest(key, error), exc_info=True)
        except Exception as error:  # a named edge: a key may fail in any way, and the others are run
            log.exception("%s: %s failed%s", self._name, key, self._rest(key, error))
        else:
            self._worked(key)
        finally:
            self._end(key)

    def _worked(self, key: K) -> None:
        self._jobs.worked(key)
        self._done[key] = None
        self._pauses.pop(key, None)
        if key in self._warned:
            self._warned.discard(key)
            log.info("%s: %s works again", self._name, key)

    def _rest(self, key: K, error: BaseException) -> str:
        """Make a key that failed due after a pause. Returns when that is, for the log."""
        self._jobs.broke(key, error, again=self._retry_s is not None)
        if self._retry_s is None or self._closed:
            return ""
        own = self._pauses.get(key, self._retry_s)
        self._pauses[key] = min(own * 2, self._longest_s)
        asked = error.after_s if isinstance(error, DiscoClawError) else 0.0
        pause = min(max(own, asked), self._longest_s)
        self._again.pop(key, None)
        self._ring(asyncio.get_running_loop().time() + pause, key)
        self._resting.add(key)
        return f", next try in {pause:.4g} s"

    async def _report_idle(self) -> None:
        done, self._done = self._done, {}
        self._in_idle = True
        try:
            with self._jobs.running():
                await self._idle(list(done))
        except asyncio.CancelledError:
            self._done = {**done, **self._done}  # closing calls it again
            raise
        except Exception:  # a named edge: what follows a run may fail in any way, and the runs go on
            log.exception("%s: what follows %d runs failed", self._name, len(done))
        finally:
            self._in_idle = False


class Working:
    """A `core.service.Service` whose work is that of one worker, for parts to derive from."""

    _worker: Worker[Any]

    async def start(self) -> None:
        """Let all work belong to whoever starts it, whoever it is about."""
        await self._worker.start()

    async def settle(self) -> None:
        """Wait until everything is done, or was tried in vain once more."""
        self._worker.hurry()
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Do what is waiting, within `grace_s`, then stop."""
        self._worker.hurry()
        await self._worker.close(grace_s)

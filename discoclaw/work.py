"""Background work: the worker that does what nobody waits for, and which jobs run, since when.

Everything that is done later is done by a `Worker`. A caller notes a key, and a task calls `run` with it:

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

Each part that works in the background has a `Jobs`, a `Worker` among others, and every `Jobs` is found by
`at_work` without being listed anywhere. So no new worker can be forgotten when somebody asks what hangs. A
long job counts from its last `step`, which each access to a disk is. Times are those of the event loop that
runs the jobs. Knows nothing about what is run.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext, suppress
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

from discoclaw.core.errors import DiscoClawError, meaning
from discoclaw.core.health import Finding
from discoclaw.core.times import span

log = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
RETRY_S: Final = 30.0
LONGEST_S: Final = 3600.0
GRACE_S: Final = 5.0
_MOST_BEGUN = 1_000
"""Keys whose last start is remembered before those that no longer matter are dropped."""
MOST_S: Final = 900.0
"""The longest that a job takes where nothing else is said: several calls of a slow model in a row."""
RESTART: Final = "restart the bot: what is unfinished is taken up again"


# ---------------------------------------------------------------------- which jobs run


@dataclass(frozen=True, slots=True)
class Work:
    """How one part is working, at one moment.

    `running` jobs run. One of them has got nowhere for `longest_s`; more than `most_s` means that it hangs.
    `leased` of all wait for a lease that another process has. `waiting` jobs are due, or have failed.
    Something has been due for `stuck_s` without any job beginning or ending; 0 if something runs or nothing
    is due. `failing` jobs failed when they last ran, most recently because of `reason`. Since the start,
    `done` jobs ended well and `failed` didn't. The last one began, got on or ended `idle_s` ago.
    """

    name: str
    running: int = 0
    longest_s: float = 0.0
    most_s: float = MOST_S
    leased: int = 0
    waiting: int = 0
    stuck_s: float = 0.0
    failing: int = 0
    reason: str = ""
    done: int = 0
    failed: int = 0
    idle_s: float = 0.0

    @property
    def hangs(self) -> bool:
        """Whether a job has been running for too long, or one that is due doesn't start."""
        return self.longest_s > self.most_s or (self.stuck_s > self.most_s and not self.leased)

    def finding(self) -> Finding | None:
        """The finding about this worker; None if all is well."""
        if self.longest_s > self.most_s:
            text = f"a job has got nowhere for {_span(self.longest_s)}"
            return Finding(self.name, "bad", text, RESTART)
        if self.stuck_s > self.most_s:
            if self.leased:
                text = f"a job has been waiting for another process for {_span(self.stuck_s)}"
                return Finding(self.name, "warning", text, "look whether the other processes are ready")
            text = f"a job has been due for {_span(self.stuck_s)} and doesn't start"
            return Finding(self.name, "bad", text, RESTART)
        if self.failing:
            what = "a job" if self.failing == 1 else f"{self.failing} jobs"
            return Finding(self.name, "warning", f"{what} failed: {self.reason}", "the log says more")
        return None


class Jobs:
    """The jobs of one part. `name` is for people, and names nobody.

    `due` says whether something could begin now, `waiting` how many are due or failed.
    """

    def __init__(
        self,
        name: str,
        *,
        most_s: float = MOST_S,
        due: Callable[[], bool] = lambda: False,
        waiting: Callable[[], int] = lambda: 0,
    ) -> None:
        self.name = name
        self._most_s = most_s
        self._due = due
        self._waiting = waiting
        self._running: dict[object, float] = {}
        self._leased = 0
        self._failing: set[Hashable] = set()
        self._reason = ""
        self._done = self._failed = 0
        self._moved = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    def moved(self) -> float:
        """Note that something became due, begins or ends. Returns the time (s)."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            _all.add(self)
        self._moved = self._loop.time()
        return self._moved

    @contextmanager
    def leasing(self) -> Iterator[None]:
        """A job waits for its lease inside this block."""
        self._leased += 1
        try:
            yield
        finally:
            self._leased -= 1

    @contextmanager
    def running(self) -> Iterator[None]:
        """A job runs inside this block."""
        job = object()
        self._running[job] = self.moved()
        token = _JOB.set((self, job))
        try:
            yield
        finally:
            _JOB.reset(token)
            del self._running[job]
            self.moved()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A job runs inside this block, and how it ends is counted."""
        with self.running():
            try:
                yield
            except Exception as error:
                self.broke("", error, again=False)
                raise
        self.worked()

    def stepped(self, job: object, within_s: float) -> None:
        """Note that a job that runs gets on, and will again `within_s`."""
        if job in self._running:  # and not a task that goes on after it
            self._running[job] = self.moved() + within_s

    def worked(self, key: Hashable = "") -> None:
        """Note that a job ended well."""
        self._done += 1
        self._failing.discard(key)

    def broke(self, key: Hashable, error: BaseException, *, again: bool) -> None:
        """Note that a job failed; with `again` it counts as failing until it works."""
        self._failed += 1
        self._reason = reason_of(error)
        if again:
            self._failing.add(key)

    def ended(self) -> None:
        """Leave the list of workers: nothing runs here any more."""
        _all.discard(self)

    def is_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether the jobs run in this event loop."""
        return self._loop is loop

    def work(self) -> Work:
        """How it is working now."""
        now = self._loop.time() if self._loop is not None else 0.0
        oldest = min(self._running.values(), default=now)
        stuck = self._due() and not self._running
        return Work(
            self.name,
            running=len(self._running),
            longest_s=max(now - oldest, 0.0),
            most_s=self._most_s,
            leased=self._leased,
            waiting=self._waiting(),
            stuck_s=now - self._moved if stuck or (self._leased and not self._running) else 0.0,
            failing=len(self._failing),
            reason=self._reason,
            done=self._done,
            failed=self._failed,
            idle_s=now - self._moved,
        )


_all: "WeakSet[Jobs]" = WeakSet()
_JOB: ContextVar[tuple[Jobs, object] | None] = ContextVar("job", default=None)


def step(within_s: float = 0.0) -> None:
    """Say that the job in which this is called gets on: its time counts anew, from `within_s` (s) on.

    That is for a call that has a time limit of its own.
    """
    if (job := _JOB.get()) is not None:
        jobs, one = job
        jobs.stepped(one, within_s)


def at_work() -> list[Work]:
    """How every part is working that runs in this event loop, by name. Call it there."""
    loop = asyncio.get_running_loop()
    return sorted((one.work() for one in list(_all) if one.is_of(loop)), key=lambda one: one.name)


def reason_of(error: BaseException) -> str:
    """Why something failed, in words that name nobody: neither an id, nor a file, nor what somebody said."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            said = os.strerror(cause.errno)  # and not its own text, which may name a file or a host
            return said[:1].lower() + said[1:]
        cause = cause.__cause__ or (cause.__context__ if isinstance(cause, DiscoClawError) else None)
    return meaning(error)


def _span(seconds: float) -> str:
    return span(round(seconds * 1000))


async def within(wait_s: float, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Wait for work, for so long at most: what takes longer goes on by itself. Returns its task."""
    task = asyncio.create_task(work)
    await asyncio.wait([task], timeout=wait_s)
    if not task.done():
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
    return task


# ---------------------------------------------------------------------- the worker


async def _nothing(keys: Collection[object]) -> None:
    """Do nothing, as most workers do when they become idle."""


def _no_lease(key: object) -> AbstractAsyncContextManager[None]:
    """No lease, as for most runs."""
    return nullcontext()


class Worker(Generic[K]):
    """Calls `run` with each key that was noted. `name` is for the log. It is a `core.ports.Service`.

    `retry_s` None: a key that failed waits for its next note. A key starts again `gap_s` after its last start
    at the earliest. `idle` is awaited when nothing is due any more, with the keys that were run without an
    error since it was last called. A run that takes longer than `most_s` counts as hanging; see `Jobs`.
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


class Background:
    """A `core.ports.Service` whose work is that of one worker, for parts to derive from.

    The first note starts the work. At the end what is due is done within `_grace_s`, and the rest is left.
    """

    _worker: Worker[Any]
    _grace_s = GRACE_S

    async def start(self) -> None:
        """Do nothing."""

    async def settle(self) -> None:
        """Wait until nothing is due; what waits for its time, or for a retry, is not awaited."""
        await self._worker.settle()

    async def close(self) -> None:
        """Finish what is due, then stop."""
        await self._worker.close(self._grace_s)


class Working:
    """A `core.ports.Service` like `Background` that leaves nothing undone, if it can be done in time."""

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

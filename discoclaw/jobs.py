"""Background jobs: which ones run, since when, and how the last ones ended.

Each part that works in the background has a `Jobs`, a `work.Worker` among others, and every `Jobs` is found
by `at_work` without being listed anywhere. So no new worker can be forgotten when somebody asks what hangs.
A long job counts from its last `step`, which each access to a disk is.
Times are those of the event loop that runs the jobs. Knows nothing about what the jobs do.
"""

import asyncio
import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final
from weakref import WeakSet

from discoclaw.core.errors import DiscoClawError, meaning
from discoclaw.core.health import Finding
from discoclaw.core.times import span

MOST_S: Final = 900.0
"""The longest that a job takes where nothing else is said: several calls of a slow model in a row."""
RESTART: Final = "restart the bot: what is unfinished is taken up again"


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

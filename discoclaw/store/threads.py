"""Threads for calls that may never return: one that hangs stops neither other calls nor the program's end.

The threads of `asyncio.to_thread` are few (six on two cores), shared by everything, and Python waits for them
when it ends; six files on a dead mount would stop the whole bot. Here a call that takes long no longer counts
towards the limit, so that others go on beside it, and the threads are daemons, for which Python doesn't wait.
Independent of what the calls do.
"""

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from discoclaw.core.errors import MemoryLate
from discoclaw.work import reason_of, within

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 32
"""Threads at once: like Python's own pool on a large machine; more would wait for the same disk."""
MOST = 1_000
"""All threads, including those that hang. Their callers' locks allow about one for each file that hangs."""
HANGS_S = 0.5
"""After this long a call counts as hanging: a quarter of what a reply waits for a disk."""
IDLE_S = 10.0


@dataclass(eq=False, slots=True)
class _Call:
    future: Future[Any]
    work: Callable[[], Any]
    name: str
    began: float = 0.0


_all: "WeakSet[Threads]" = WeakSet()


class Threads(Executor):
    """Runs up to `at_once` calls side by side, not counting those that run for longer than `hangs_s`.

    With `hangs_s` None all of them count: `Threads(1, hangs_s=None)` runs one call after the other.
    """

    def __init__(self, at_once: int = AT_ONCE, *, hangs_s: float | None = HANGS_S) -> None:
        self._at_once = at_once
        self._hangs_s = hangs_s
        self._changed = threading.Condition()
        self._waiting: deque[_Call] = deque()
        self._running: dict[_Call, None] = {}
        self._threads = 0
        self._idle = 0
        self._watched = False
        self._closed = False
        _all.add(self)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call as soon as a thread is free. Raises RuntimeError after `shutdown`."""
        call = _Call(Future(), lambda: fn(*args, **kwargs), _name_of(fn, args))
        with self._changed:
            if self._closed:
                raise RuntimeError("no calls are taken any more")
            self._waiting.append(call)
            self._grow()
            self._watch()
            self._changed.notify()
        return call.future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Take no more calls. Those under way are finished; nobody waits for them, whatever `wait` is."""
        with self._changed:
            self._closed = True
            if cancel_futures:
                while self._waiting:
                    self._waiting.popleft().future.cancel()
            self._changed.notify_all()

    # ------------------------------------------------------------------ what is under way

    def running(self, for_s: float = 0.0) -> list[str]:
        """Calls that have been running for at least so many seconds, oldest first, each with its time."""
        now = time.monotonic()
        with self._changed:
            calls = [(call.name, now - call.began) for call in self._running]
        return [f"{name} for {took:.0f} s" for name, took in calls if took >= for_s]

    # ------------------------------------------------------------------ inside; the caller holds the lock

    def _grow(self) -> None:
        while len(self._waiting) > self._idle and self._threads < MOST:
            if self._threads - self._hanging() >= self._at_once:
                return
            self._threads += 1
            self._idle += 1  # it will take a call at once
            threading.Thread(target=self._work, name="disk", daemon=True).start()

    def _watch(self) -> None:
        """If calls wait for a thread, look again when those that run may count as hanging."""
        if self._hangs_s is None or self._watched or len(self._waiting) <= self._idle:
            return
        self._watched = True
        again = threading.Timer(self._hangs_s, self._look_again)
        again.daemon = True
        again.start()

    def _look_again(self) -> None:
        with self._changed:
            self._watched = False
            self._grow()
            self._watch()

    def _hanging(self) -> int:
        if self._hangs_s is None:
            return 0
        since = time.monotonic() - self._hangs_s
        return sum(call.began < since for call in self._running)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            try:
                if call.future.set_running_or_notify_cancel():
                    call.future.set_result(call.work())
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
                call.future.set_exception(error)
            finally:
                with self._changed:
                    del self._running[call]
                    self._idle += 1
            del call  # a thread that waits keeps nothing alive

    def _next(self) -> _Call | None:
        """The next call; None if this thread is to end."""
        with self._changed:
            while not self._waiting:
                woken = self._changed.wait(IDLE_S)
                if not self._waiting and (self._closed or not woken):
                    self._threads -= 1
                    self._idle -= 1
                    return None
            call = self._waiting.popleft()
            call.began = time.monotonic()
            self._running[call] = None
            self._idle -= 1
            return call


def _name_of(work: Any, args: tuple[Any, ...]) -> str:
    """A call's name for the log: the function, and the subject or file where that is the first argument."""
    while isinstance(work, partial):
        work, args = work.func, (*work.args, *args)
    if isinstance(getattr(work, "__self__", None), Context):  # whose `run` takes the function first
        work, *rest = args
        args = tuple(rest)
    name = getattr(work, "__qualname__", type(work).__name__)
    about = args[0] if args and isinstance(args[0], str | PurePath) else ""
    return f"{name} {about}".rstrip()


def running(for_s: float = 0.0) -> list[str]:
    """Calls in any of these threads that have been running for at least so many seconds, with their times."""
    return [call for threads in list(_all) for call in threads.running(for_s)]


DISK = Threads()
"""For everything that touches a disk. One for the whole process, as asyncio's own is for each loop."""


# ----------------------------------------------------------------------
# Whether the store can be written: how the last write ended, of all that this process writes.

_SQLITE = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file can't be written",
    sqlite3.SQLITE_CANTOPEN: "the file can't be opened",
    sqlite3.SQLITE_IOERR: "the disk fails",
}


@dataclass(frozen=True, slots=True)
class Written:
    """How writing goes: `done` and `failed` since the start, and for how long (s) none has worked.

    `reason` is why the last one failed; both are empty once one has worked again.
    """

    done: int = 0
    failed: int = 0
    failing_s: float | None = None
    reason: str = ""


class Writes:
    """The outcomes of writes."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._done = self._failed = 0
        self._since: float | None = None
        self._reason = ""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note how the write in this block ends."""
        try:
            yield
        except OSError as error:
            with self._lock:
                self._failed += 1
                self._since = self._now() if self._since is None else self._since
                self._reason = _reason(error)
            raise
        with self._lock:
            self._done += 1
            self._since, self._reason = None, ""

    def state(self) -> Written:
        """How writing goes now."""
        with self._lock:
            since = None if self._since is None else self._now() - self._since
            return Written(self._done, self._failed, since, self._reason)


def _reason(error: OSError) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
            return _SQLITE.get(code & 0xFF, "SQLite refuses it")
        cause = cause.__cause__
    return reason_of(error) if error.errno else "the store refuses it"


WRITES = Writes()
"""The writes of this process, whichever store it has."""


# ---------------------------------------------------------------------- who waits for them

WAIT_S = 2.0
"""The longest a reply waits for a disk; it reads only at the first look at a person or conversation."""


async def in_time(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work on a disk. Raises MemoryLate if it takes too long; it then goes on."""
    task = await within(WAIT_S, work)
    if not task.done():
        raise MemoryLate("the disk does not answer in time; what was asked of it may still happen")
    return task.result()


async def noted_in_time(noting: Coroutine[Any, Any, bool]) -> bool:
    """Whether something was recorded on disk in time; a hanging disk counts as no."""
    try:
        return await in_time(noting)
    except MemoryLate:
        log.warning("something could not be noted in time: the disk does not answer")
        return False

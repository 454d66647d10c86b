"""Counts what a program does while a block runs: a test compares few with many, and needs no clock.

    with counted() as counts:
        …
    counts.done   directory entries, files opened to read and to write, bytes written, fsyncs, hops (to
                  threads), tasks, statements (SQL), scans (a thousand steps of SQLite's), documents
                  (rendered as JSON)
    counts.steps  for each function of DiscoClaw, how many of its lines ran, each turn of a loop anew

What C does inside one call (a copy of a dict, `sorted` without a key) is one step, however much there is.
Counted are only tasks of DiscoClaw's own coroutines and documents that it renders itself. SQLite's pages are
not in the bytes, but its statements are counted. One block at a time.
"""

import concurrent.futures.thread
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

import discoclaw
from discoclaw.store import threads

OURS = f"{Path(discoclaw.__file__).parent}{os.sep}"
ENTRIES, READ, WRITTEN, BYTES = "directory entries", "files read", "files written", "bytes written"
SYNCS, HOPS, TASKS, STATEMENTS, DOCUMENTS = "fsyncs", "hops", "tasks", "statements", "documents"
SCANS, STEPS_A_SCAN = "scans", 1_000
SUBMIT = threads.Threads.submit.__code__
_SQL = frozenset({"execute", "executemany", "executescript"})


@dataclass
class Counts:
    """What was done, by its name, and the steps by function (`memory/cursors.py Cursors.get`)."""

    done: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)


def least(*counts: Counts) -> Counts:
    """The least of each: what repetitions of the same share, whatever came together by chance in one."""
    return Counts(
        reduce(lambda one, other: one & other, (one.done for one in counts)),
        reduce(lambda one, other: one & other, (one.steps for one in counts)),
    )


def grown(few: Counts, many: Counts, *, most_steps: int, **most: int) -> dict[str, tuple[int, int]]:
    """What was done more often with many than with few, and what functions took more steps: (few, many).

    A function may take `most_steps` more, since a loop may wait once more, and of what is done there may be
    as many more as `most` says (`tasks=1`). Whatever goes through all has as many more as there are.
    """
    done = {
        name: (few.done[name], n) for name, n in many.done.items() if n > few.done[name] + most.get(name, 0)
    }
    steps = {name: (few.steps[name], n) for name, n in many.steps.items() if n > few.steps[name] + most_steps}
    return done | steps


@contextmanager
def counted() -> Iterator[Counts]:
    """Count in this thread, and in all threads that the event loop hands work to."""
    counts, lock = Counts(), threading.Lock()
    watches: list[_Watch] = []

    @contextmanager
    def watched() -> Iterator[None]:
        watch = _Watch()
        with lock:
            watches.append(watch)
        before = sys.gettrace(), sys.getprofile()
        sys.settrace(watch.trace)
        sys.setprofile(watch.profile)
        try:
            yield
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])

    def inside(run: Callable[..., Any], *args: Any, **given: Any) -> Any:
        with watched():
            return run(*args, **given)

    def submitted(pool: threads.Threads, run: Callable[..., Any], /, *args: Any, **given: Any) -> Any:
        return submit(pool, partial(inside, run), *args, **given)

    def scanned(path: Any = ".") -> Any:
        found = list(scandir(path))
        _add(ENTRIES, len(found))
        return _Scan(found)

    def listed(path: Any = ".") -> Any:
        found = listdir(path)
        _add(ENTRIES, len(found))
        return found

    def written(handle: int, content: Any) -> int:
        size = write(handle, content)
        _add(BYTES, size)
        return size

    def _add(name: str, number: int) -> None:
        with lock:
            counts.done[name] += number

    def opened(path: object, flags: int) -> None:
        if not str(path).endswith((".py", ".pyc")):
            _add(WRITTEN if flags & (os.O_WRONLY | os.O_RDWR) else READ, 1)

    scandir, listdir, write = os.scandir, os.listdir, os.write
    work, submit = concurrent.futures.thread._WorkItem.run, threads.Threads.submit
    with (
        patch.object(os, "scandir", scanned),
        patch.object(os, "listdir", listed),
        patch.object(os, "write", written),
        patch.object(threads.Threads, "submit", submitted),
        patch.object(concurrent.futures.thread._WorkItem, "run", lambda *args: inside(work, *args)),
        _openings(opened),
        watched(),
    ):
        yield counts
    for watch in watches:
        counts.done.update(watch.done)
        for code, number in watch.steps.items():
            counts.steps[f"{code.co_filename.removeprefix(OURS)} {code.co_qualname}"] += number


class _Watch:
    """What one thread does."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.steps: Counter[CodeType] = Counter()

    def trace(self, frame: FrameType, _event: str, _arg: object) -> Any:
        return self.line if frame.f_code.co_filename.startswith(OURS) else None

    def line(self, frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            self.steps[frame.f_code] += 1
        return self.line

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self._called(frame, frame.f_code)
        elif event == "c_call":
            if arg is os.fsync:
                self.done[SYNCS] += 1
            elif arg.__name__ in _SQL and type(getattr(arg, "__self__", None)).__module__ == "sqlite3":
                self.done[STATEMENTS] += 1
                run_by = arg.__self__
                connection = getattr(run_by, "connection", run_by)
                connection.set_progress_handler(self._scanned, STEPS_A_SCAN)

    def _scanned(self) -> None:
        self.done[SCANS] += 1

    def _called(self, frame: FrameType, code: CodeType) -> None:
        match code.co_name:
            case "submit" if code is SUBMIT:
                self.done[HOPS] += 1
            case "to_thread" if "asyncio" in code.co_filename and frame.f_lasti <= 10:
                self.done[HOPS] += 1
            case "create_task" if code.co_filename.endswith("base_events.py"):
                made = getattr(frame.f_locals.get("coro"), "cr_code", None)
                self.done[TASKS] += made is not None and made.co_filename.startswith(OURS)
            case "dumps" if os.path.join("json", "__init__") in code.co_filename:
                caller = frame.f_back
                self.done[DOCUMENTS] += caller is not None and caller.f_code.co_filename.startswith(OURS)
            case "execute" | "executemany" if f"{os.sep}psycopg{os.sep}" in code.co_filename:
                self.done[STATEMENTS] += 1


class _Scan(list[os.DirEntry[Any]]):
    """What `os.scandir` returns, read already."""

    def __enter__(self) -> "_Scan":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> os.DirEntry[Any]:
        if not self:
            raise StopIteration
        return self.pop(0)

    def __iter__(self) -> Iterator[os.DirEntry[Any]]:
        return self

    def close(self) -> None:
        self.clear()


_hears: list[Callable[[object, int], None]] = []


def _audit(event: str, args: tuple[Any, ...]) -> None:
    # A file that is opened through an opener is named twice: without flags for the call of the opener.
    if event == "open" and _hears and isinstance(args[0], str) and isinstance(args[2], int):
        _hears[-1](args[0], args[2])


@contextmanager
def _openings(hear: Callable[[object, int], None]) -> Iterator[None]:
    """Hear of each file that is opened. Python can't take such a hook away again."""
    if _audit not in _hooked:
        sys.addaudithook(_audit)
        _hooked.append(_audit)
    _hears.append(hear)
    try:
        yield
    finally:
        _hears.remove(hear)


_hooked: list[Callable[..., None]] = []

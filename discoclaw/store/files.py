"""Crash-safe files: a write takes effect completely or not at all, and never overwrites an unreadable file.

A write goes to a temporary file in the same folder (`temporary`), which is synced and renamed over the
target; then the folder is synced too. Appends are synced before they count. A symbolic link in place of a
file is neither read nor written through, because it may lead to somebody else's file; folders may be links.
Everything here blocks: callers use one thread for a whole operation. Independent of what the bytes mean.
"""

import asyncio
import contextlib
import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Coroutine, Iterator
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from discoclaw.core.errors import MemoryFault, Overtaken, Refused
from discoclaw.core.text import safe_key
from discoclaw.core.times import iso_ms
from discoclaw.jobs import step
from discoclaw.store import private, temporary
from discoclaw.store.threads import DISK, WRITES

P = ParamSpec("P")
T = TypeVar("T")

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


Stamp = tuple[int, int, int] | None


class Linked(OSError):
    """A symbolic link is in place of a file; the text says which one, and the way out."""


def safe_id(name: str) -> str:
    """Return `name` if it is a safe file name, so that no id leaves its folder; else raise MemoryFault."""
    if not _ID.fullmatch(name):
        raise MemoryFault(f"{name!r} cannot name a memory; ids are letters, digits, '_' and '-'")
    return name


def session_name(session_key: str) -> str:
    """The name of a session's file. Colons stay except on Windows, where file names cannot have them."""
    name = safe_key(session_key)
    return f"{name.replace(':', '-') if os.name == 'nt' else name}.json"


def session_file(folder: Path, session_key: str) -> Path:
    """The file of a session in `folder`."""
    return folder / session_name(session_key)


def render_json(value: object) -> bytes:
    """JSON in the format of all files: indented by two spaces, non-ASCII unescaped, a newline at the end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def read_plain(path: Path) -> bytes:
    """Return a file's content. Raises OSError, of which Linked."""
    with open(path, "rb", opener=open_plain) as file:
        return file.read()


def open_regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """For `open(..., opener=open_regular)`: opens no pipe and no device, which might never end.

    Raises Refused and OSError.
    """
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Refused(f"{path} is not a regular file; use a copy of what it points to")
    return handle


def open_plain(path: str, flags: int) -> int:
    """For `open(..., opener=open_plain)`: opens no symbolic link; a new file is the bot's user's alone."""
    if not _NO_LINKS:  # pragma: no cover - Windows has no such flag
        _refuse_link(path)
    try:
        return private.opener(path, flags | _NO_LINKS)
    except OSError:
        _refuse_link(path)
        raise


def _refuse_link(path: str | Path) -> None:
    if os.path.islink(path):
        raise Linked(f"{path} is a symbolic link, which is never followed; put the file itself in its place")


@WRITES.noted()
def write_atomic(path: Path, content: bytes, *, still: Callable[[], bool] = lambda: True) -> Stamp:
    """Replace a file's content, durably. Returns the new file's stamp, or None if it was not replaced.

    `still` is called at the last moment and says whether the file may be replaced. From its first byte on
    only the bot's user reads it. Raises OSError; the old file is then unchanged.
    """
    folder, name = os.path.split(path)
    claimed = False
    while not claimed:
        made = os.path.join(folder, temporary.name_for(name))
        with contextlib.ExitStack() as stack:
            try:
                handle = stack.enter_context(_opened(made, os.O_EXCL))
                if not (claimed := temporary.claim(handle)):
                    continue
                _write(handle, content)
                os.fsync(handle)
                stamp = _stamp(os.fstat(handle))
                if os.name == "nt":  # pragma: no cover - an open file cannot be renamed there
                    stack.close()
                if not still():
                    os.unlink(made)
                    return None
                _refuse_link(path)
                os.replace(made, path)
            except BaseException:
                stack.close()
                with contextlib.suppress(OSError):
                    os.unlink(made)
                raise
    sync_folder(folder)
    return stamp


@contextlib.contextmanager
def _opened(path: str | Path, flags: int) -> Iterator[int]:
    """A file open for unbuffered writing; its folder is created if it is missing."""
    private.make_folder(os.path.dirname(path) or ".")
    handle = open_plain(os.fspath(path), flags | os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0))
    try:
        yield handle
    finally:
        os.close(handle)


def _write(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def stamp_now(path: Path) -> Stamp:
    """A stamp that changes when somebody writes or replaces the file; None if there is no file."""
    try:
        return _stamp(os.lstat(path))
    except OSError:
        return None


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return (status.st_mtime_ns, status.st_size, status.st_ino)


@WRITES.noted()
def append_synced(path: Path, content: bytes, *, expected_size: int) -> None:
    """Append `content`, durably, to a file of exactly `expected_size` bytes (0: it may not exist yet).

    If the disk takes only a part, the file is cut back. Raises OSError, or Overtaken if the file has another
    length, because somebody else wrote.
    """
    fresh = expected_size == 0 and not path.exists()
    with _opened(path, os.O_APPEND) as handle:
        if (size := os.fstat(handle).st_size) != expected_size:
            raise Overtaken(f"{path} was changed by somebody else ({size} bytes, not {expected_size})")
        try:
            _write(handle, content)
            os.fsync(handle)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, expected_size)
                os.fsync(handle)
            raise
    if fresh:
        sync_folder(path.parent)


def sync_folder(folder: str | Path) -> None:
    """Make a rename or creation in `folder` durable, where the system can do that (Windows cannot)."""
    if os.name == "nt":  # pragma: no cover - no directory handles there
        return
    handle = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some mounts cannot sync a folder
            raise
    finally:
        os.close(handle)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread, to its end even if the caller is cancelled: threads cannot be stopped.

    A caller that holds a lock around this therefore releases it only when nobody is writing any more.
    """
    outcome = await to_its_end(_begun(work, *args, **kwargs))
    step()
    return outcome


async def read_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread that is left to itself if the caller is cancelled, as a read may be."""
    outcome = await _begun(work, *args, **kwargs)
    step()
    return outcome


def _begun(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    call = partial(copy_context().run, work, *args, **kwargs)
    return asyncio.get_running_loop().run_in_executor(DISK, call)


async def to_its_end(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Run work that must not stop half-way, to its end even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it as never retrieved
        raise


def free_bytes(folder: Path) -> int:
    """How many bytes are free in a folder, or where it would be made. Raises OSError."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def stamp_of(ms: int) -> str:
    """A time (ms since 1970) in the form for names of files kept aside: "20260203-162935"."""
    return iso_ms(ms)[:19].replace("-", "").replace(":", "").replace("T", "-")


def keep_aside(path: Path, label: str, stamp: str) -> Path:
    """Copy a file to `<name>.<label>-<stamp>`, as a backup before a change. Returns the copy."""
    aside = unused_name(path, label, stamp)
    write_atomic(aside, read_plain(path))
    return aside


def unused_name(path: Path, label: str, stamp: str) -> Path:
    """The first unused name of `<name>.<label>-<stamp>`, `<name>.<label>-<stamp>-2` and so on."""
    unused, count = path.with_name(f"{path.name}.{label}-{stamp}"), 1
    while unused.exists():
        count += 1
        unused = path.with_name(f"{path.name}.{label}-{stamp}-{count}")
    return unused

"""Files and folders of which a crash leaves the old content or the new one, and which only we can read.

A write goes to a temporary file in the same folder, which is synced and renamed over the target; then the
folder is synced too. Appends are synced before they count. A symbolic link in place of a file is neither read
nor written through, because it may lead to somebody else's file; folders may be links. Whatever the umask is,
a new file has the mode 0600 and a new folder 0700; a folder that an admin made keeps its mode.

A writer locks its temporary file until it has renamed it, and the system releases the locks of a process
that is killed. So a temporary file that nobody has locked is a leftover, whichever process wrote it. Windows,
which has no such locks, removes no file that is open.

All but `in_thread` and its like blocks: callers use one thread for a whole operation. Knows nothing about
what the bytes mean.
"""

import asyncio
import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextvars import copy_context
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

from discoclaw.core.errors import MemoryFault, Overtaken, Refused
from discoclaw.core.text import safe_key
from discoclaw.core.times import iso_ms
from discoclaw.store.threads import DISK, WRITES
from discoclaw.work import step

if sys.platform != "win32":
    import fcntl

P = ParamSpec("P")
T = TypeVar("T")

FILE_MODE, FOLDER_MODE = 0o600, 0o700
"""The modes of a new file and of a new folder."""
_OTHERS = 0o077
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TEMPORARY = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{8}\.tmp(-wal|-shm|-journal)?", re.DOTALL)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)

Stamp = tuple[int, int, int] | None


class Linked(OSError):
    """A symbolic link is in place of a file; the text says which one, and the way out."""


# ---------------------------------------------------------------------- names


def safe_id(name: str) -> str:
    """Return `name` if it is a safe file name, so that no id leaves its folder; else raise MemoryFault."""
    if not _ID.fullmatch(name):
        raise MemoryFault(f"{name!r} cannot name a memory; ids are letters, digits, '_' and '-'")
    return name


def session_name(session_key: str) -> str:
    """The name of a session's file. Colons stay except on Windows, where file names cannot have them."""
    name = safe_key(session_key)
    return f"{name.replace(':', '-') if os.name == 'nt' else name}.json"


def stamp_of(ms: int) -> str:
    """A time (ms since 1970) in the form for names of files kept aside: "20260203-162935"."""
    return iso_ms(ms)[:19].replace("-", "").replace(":", "").replace("T", "-")


def unused_name(path: Path, label: str, stamp: str) -> Path:
    """The first unused name of `<name>.<label>-<stamp>`, `<name>.<label>-<stamp>-2` and so on."""
    unused, count = path.with_name(f"{path.name}.{label}-{stamp}"), 1
    while unused.exists():
        count += 1
        unused = path.with_name(f"{path.name}.{label}-{stamp}-{count}")
    return unused


def name_for(name: str) -> str:
    """A new name for the temporary file of a write to the file `name`."""
    return f".{name}.{secrets.token_hex(4)}.tmp"


# ---------------------------------------------------------------------- reading, and opening


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


def opener(path: str, flags: int) -> int:
    """For `open(..., opener=opener)`: a file that is created is readable only by the bot's user."""
    return os.open(path, flags, FILE_MODE)


def open_plain(path: str, flags: int) -> int:
    """For `open(..., opener=open_plain)`: opens no symbolic link; a new file is the bot's user's alone."""
    if not _NO_LINKS:  # pragma: no cover - Windows has no such flag
        _refuse_link(path)
    try:
        return opener(path, flags | _NO_LINKS)
    except OSError:
        _refuse_link(path)
        raise


def _refuse_link(path: str | Path) -> None:
    if os.path.islink(path):
        raise Linked(f"{path} is a symbolic link, which is never followed; put the file itself in its place")


# ---------------------------------------------------------------------- writing one file


@WRITES.noted()
def write_atomic(path: Path, content: bytes, *, still: Callable[[], bool] = lambda: True) -> Stamp:
    """Replace a file's content, durably. Returns the new file's stamp, or None if it was not replaced.

    `still` is called at the last moment and says whether the file may be replaced. From its first byte on
    only the bot's user reads it. Raises OSError; the old file is then unchanged.
    """
    folder, name = os.path.split(path)
    claimed = False
    while not claimed:
        made = os.path.join(folder, name_for(name))
        with contextlib.ExitStack() as stack:
            try:
                handle = stack.enter_context(_opened(made, os.O_EXCL))
                if not (claimed := claim(handle)):
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
    make_folder(os.path.dirname(path) or ".")
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


def claim(handle: int) -> bool:
    """Lock a temporary file that was just created. Returns False if it has been removed as a leftover."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # a mount without locks: there nothing is removed either
            fcntl.flock(handle, fcntl.LOCK_EX)
    return os.fstat(handle).st_nlink > 0 or os.name == "nt"


# ---------------------------------------------------------------------- new files and folders


@contextlib.contextmanager
def new_file(target: Path, *, ending: str | None = None, replace: bool = False) -> Iterator[BinaryIO]:
    """A temporary file beside `target`, which the block fills and may read; then it is renamed to `target`.

    If the block raises, it is removed; if the process is killed, the next one for this file, or one with this
    ending, removes it. Raises Refused as `check_place` does, and OSError.
    """
    check_place(target, replace=replace)
    make_folder(target.parent)
    sweep_for(target, alike=ending)
    made = target.with_name(name_for(target.name))
    try:
        with open(made, "x+b", opener=opener) as file:
            claim(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":  # pragma: no cover - an open file cannot be renamed there
                file.close()
            _put(made, target, replace)
    except BaseException:
        with contextlib.suppress(OSError):
            made.unlink()
        raise
    sync_folder(target.parent)


def _put(made: Path, target: Path, replace: bool) -> None:
    """Rename a file. Raises Refused and OSError."""
    if not replace:
        try:
            os.link(made, target)  # unlike a rename, it replaces nothing
        except OSError:  # somebody was quicker, or a mount without hard links
            pass
        else:
            made.unlink()
            return
    check_place(target, replace=replace)
    os.replace(made, target)


def check_place(target: Path, *, replace: bool = False) -> None:
    """Raise Refused unless a file may be put there: nothing is there, or a regular file to `replace`.

    A pipe, a device or a folder is never replaced, and a symbolic link never followed.
    """
    try:
        mode = os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(mode):
        what = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise Refused(f"{target} is there already and is {what}, which is never replaced; name another file")
    if not replace:
        raise Refused(f"{target} is there already; name another file, or add --force to replace it")


def make_folder(folder: str | Path) -> None:
    """Create a folder with its missing parents. One that exists keeps its mode. Raises OSError."""
    try:
        os.mkdir(folder, FOLDER_MODE)
    except FileNotFoundError:
        make_folder(os.path.dirname(os.path.abspath(folder)))
        make_folder(folder)
    except OSError:  # it exists, or the system does not say so
        if not os.path.isdir(folder):
            raise


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside `target`, which the block fills; then it is renamed to `target`.

    If the block raises, it is removed. An empty folder is replaced. Raises OSError.
    """
    with passing_folder(target) as made:
        yield made
        if target.exists():
            target.rmdir()  # empty, or somebody was quicker and this fails
        os.rename(made, target)
    sync_folder(target.parent)


@contextlib.contextmanager
def passing_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside `target`, which is removed in the end, unless it has been renamed.

    It is locked as long as its writer lives. If the process is killed, the next one for this target removes
    it. Raises OSError.
    """
    make_folder(target.parent)
    sweep_for(target)
    with contextlib.ExitStack() as stack:
        claimed = False
        while not claimed:
            made = target.with_name(name_for(target.name))
            make_folder(made)
            if os.name == "nt":  # pragma: no cover - no directory handles there
                break
            handle = os.open(made, os.O_RDONLY)
            stack.callback(os.close, handle)
            claimed = claim(handle)
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


def free_bytes(folder: Path) -> int:
    """How many bytes are free in a folder, or where it would be made. Raises OSError."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


# ---------------------------------------------------------------------- leftovers of killed writes


def leftovers(listed: Iterable[tuple[Path, Iterable[str]]]) -> list[Path]:
    """The temporary files among the files of folders. Those of a living writer are among them."""
    return [folder / name for folder, names in listed for name in names if _TEMPORARY.fullmatch(name)]


def sweep(listed: Iterable[tuple[Path, Iterable[str]]]) -> tuple[int, list[str]]:
    """Remove the leftovers among the files of folders. Returns how many, and which stay and why."""
    removed, left = 0, list[str]()
    for path in leftovers(listed):
        try:
            removed += path.is_file() and _remove_unlocked(path)
        except OSError as error:
            left.append(f"{path}: {error.strerror or error}")
    return removed, left


def sweep_for(target: Path, *, alike: str | None = None) -> None:
    """Remove what killed writes of one file or folder left beside it. What cannot be removed stays.

    `alike`: also those of files with this ending.
    """
    endings = (alike,) if alike is not None else ()
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):
            ours = _TEMPORARY.fullmatch(name)
            if ours and (ours["target"] == target.name or ours["target"].endswith(endings)):
                with contextlib.suppress(OSError):
                    _remove_unlocked(target.with_name(name))


def _remove_unlocked(path: Path) -> bool:
    """Remove a temporary file or folder, unless its writer is alive. Returns whether. Raises OSError."""
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        return False
    with contextlib.ExitStack() as stack:
        if sys.platform != "win32":  # there the system refuses to remove an open file
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
                stack.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, FileNotFoundError):  # its writer is alive, or was quicker
                return False
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return True


# ---------------------------------------------------------------------- files from before, closed to others


def close_files(folder: Path) -> None:
    """Take the others' permissions from the files in a folder, which another library made. Raises OSError."""
    for entry in os.scandir(folder):
        _close(entry.path)


def close_old(trees: Iterable[Path], folders: Iterable[Path]) -> tuple[int, list[str]]:
    """Take the others' permissions from everything in `trees`, and from the files in `folders`.

    Returns how many there were, and which stay open and why. In a tree whose top folder is closed already
    nobody can reach anything, so it costs one `stat`. The top is closed last: a start that is killed midway
    is repeated by the next one. `folders` were placed by an admin and keep their own mode.
    """
    closed, left = 0, list[str]()

    def stays(error: OSError) -> None:
        left.append(f"{error.filename}: {error.strerror or error}")

    def close(*paths: str | Path) -> None:
        nonlocal closed
        for path in paths:
            try:
                closed += _close(path)
            except FileNotFoundError:  # somebody was quicker
                pass
            except OSError as error:
                stays(error)

    if os.name == "nt":  # pragma: no cover - Windows has no such bits
        return closed, left
    for top in filter(_is_open, trees):
        for folder, *names in os.walk(top, topdown=False, onerror=stays):
            close(*(os.path.join(folder, name) for name in chain(*names)))
        close(os.path.realpath(top))
        if _is_open(top):
            left.append(f"{top}: the file system keeps its permissions")
    for one in filter(_is_open, folders):
        for folder, _, files in os.walk(one, onerror=stays):
            close(*(os.path.join(folder, name) for name in files))
            break
    return closed, left


def _close(path: str | Path) -> bool:
    """Take the others' permissions from a file or folder. Returns whether they had any. Raises OSError."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode) or not mode & _OTHERS:
        return False
    os.chmod(path, stat.S_IMODE(mode) & ~_OTHERS)
    return True


def _is_open(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & _OTHERS)
    except OSError:
        return False


# ---------------------------------------------------------------------- threads


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

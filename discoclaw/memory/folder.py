"""The data folder: only one process at a time uses it; others that try are told which one.

Whoever has it is recorded beside the lock in `.holder`: {pid, host, since}. Only the lock decides; a wrong or
missing record changes nothing but the text of an error. Blocking. Knows nothing about what is in the stores.
"""

import json
import logging
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from filelock import FileLock, Timeout

from discoclaw.core.errors import FolderInUse, MemoryFault, faulting
from discoclaw.core.ports import Clock
from discoclaw.core.times import iso_ms, valid_ms
from discoclaw.memory import upgrades
from discoclaw.memory.exchange import swap
from discoclaw.memory.stores import Disks
from discoclaw.store.files import (
    FILE_MODE,
    close_old,
    make_folder,
    render_json,
    stamp_of,
    sweep,
    write_atomic,
)

ANOTHER = "another discoclaw process"

log = logging.getLogger(__name__)

T = TypeVar("T")


def empty(folder: Path) -> None:
    """Remove everything in a folder, if there is one. Raises OSError."""
    for path in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


class DataFolder:
    """`data/memory` with its stores."""

    def __init__(self, disks: Disks, *, clock: Clock) -> None:
        self._disks = disks
        self._root = disks.root
        self._clock = clock
        self._lock = FileLock(self._root / ".lock", mode=FILE_MODE, thread_local=False)

    def open(self, then: Callable[[], None], *, beside: bool = False) -> None:
        """Take the folder for this process, bring it to this version, prepare the stores, call `then`.

        In a store that is shared, caches begin empty: they may hold what was erased meanwhile. `beside` then
        leaves the folder to whoever uses it. Raises FolderInUse, naming the other process, NewerSchema, or
        MemoryFault if the folder cannot be created or used; it is released then.
        """
        ours = not (beside and self._disks.used.shared)
        if ours:
            self._take()
        try:
            upgrades.check(self._root)
            if ours:
                self._settle_in()
            self._disks.open()
            then()
        except OSError as error:
            self.close()
            raise MemoryFault(f"the memory cannot be used: {error}") from error
        except BaseException:
            self.close()
            raise

    def _settle_in(self) -> None:
        """Finish what was interrupted, upgrade, and clear away what earlier runs left.

        Raises OSError and MemoryFault.
        """
        swap.finish(self._root.parent)
        upgrades.upgrade(self._root, self._clock())
        # What earlier versions wrote is readable only by the bot's user, too. What fails is only a warning.
        closed, left = close_old(self._disks.trees(), self._disks.placed())
        if closed:
            log.info("only the bot's user can read %d files and folders of its data from now on", closed)
        if left:
            more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
            log.warning("other users of this machine may read the bot's data: %s%s", left[0], more)
        for stays in sweep(self._disks.listed())[1]:
            log.warning("the leftover of a killed write could not be removed: %s", stays)
        note_holder(self._root, self._clock())
        if self._disks.used.shared:
            empty(self._root.parent / "cache")

    def rescue(self) -> list[str]:
        """Save what can be read of a store that is damaged as a whole. Returns sentences about what was done.

        Not allowed while it is open. Raises FolderInUse, and MemoryFault when the disk fails.
        """
        upgrades.check(self._root)
        with faulting("what is damaged cannot be mended"):
            return self.alone(lambda: self._disks.rescue(stamp_of(self._clock())))

    def alone(self, work: Callable[[], T]) -> T:
        """Return what `work` does while nobody uses the folder, which isn't opened.

        Raises FolderInUse, MemoryFault, and whatever `work` raises.
        """
        self._take()
        try:
            swap.finish(self._root.parent)
            return work()
        finally:
            self.close()

    def close(self) -> None:
        """Release the folder."""
        self._disks.close()
        if self._lock.is_locked:
            leave_holder(self._root)
            self._lock.release()

    def _take(self) -> None:
        try:
            make_folder(self._root)
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise FolderInUse(
                f"{self._root} is in use by {who(self._root, self._clock())}; "
                "stop that one, or set another DISCOCLAW_DATA_DIR"
            ) from error
        except OSError as error:
            raise MemoryFault(f"{self._root} cannot be used: {error}") from error


# ---------------------------------------------------------------------- who has the folder


class Holder(NamedTuple):
    """A process that has the folder: its number, its machine, and since when (ms since 1970, by that one's
    clock)."""

    pid: int
    host: str
    since: int


def note_holder(root: Path, now_ms: int) -> None:
    """Record that this process has the folder. A failing disk is only a warning."""
    path = root / ".holder"
    try:
        write_atomic(path, render_json({"pid": os.getpid(), "host": socket.gethostname(), "since": now_ms}))
    except OSError as error:
        log.warning("%s could not be written: %s", path, error)
        leave_holder(root)  # the previous holder's record is outdated


def leave_holder(root: Path) -> None:
    """Remove the record; the caller still has the folder."""
    with suppress(OSError):
        (root / ".holder").unlink()


def holder_of(root: Path) -> Holder | None:
    """The process that has the folder, as far as the record says; None if it ended or is unknown."""
    holder = recorded(root)
    if holder is not None and holder.host == socket.gethostname() and not _lives(holder.pid):
        return None  # a leftover record, which its writer could not remove
    return holder


def recorded(root: Path) -> Holder | None:
    """The process that the record names, which may have ended since; None without a readable record."""
    try:
        value = json.loads((root / ".holder").read_bytes())
        pid, host, since = value["pid"], value["host"], value["since"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if type(pid) is not int or pid <= 0 or not isinstance(host, str) or not valid_ms(since):
        return None
    return Holder(pid, host, since)


def locked(root: Path) -> bool | None:
    """Whether a process has the folder's lock; None where the system doesn't say.

    It isn't tried: whoever starts at this moment would find it taken.
    """
    try:
        status = os.stat(root / ".lock")
        locks = Path("/proc/locks").read_text()
    except FileNotFoundError:
        return None if (root / ".lock").exists() else False
    except OSError:
        return None
    holder = recorded(root)
    return is_in(locks, status.st_dev, status.st_ino, holder.pid if holder is not None else None)


def is_in(locks: str, device: int, inode: int, pid: int | None) -> bool:
    """Whether a file is in the list of all locks. `pid` is of the process that says it has it.

    Some file systems, as btrfs, state another device there than in `stat`. Of them the process counts.
    """
    exact, alike = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}", f":{inode}"
    rows = [row.split() for row in locks.splitlines()]
    return any(
        exact in row or (str(pid) in row and any(word.endswith(alike) for word in row)) for row in rows
    )


def who(root: Path, now_ms: int) -> str:
    """A description of who has the folder: "process 4242 (since 14:03Z)"."""
    if (holder := holder_of(root)) is None:
        return ANOTHER
    at, today = iso_ms(holder.since), iso_ms(now_ms)[:10]
    when = at[11:16] if at[:10] == today else f"{at[:10]} {at[11:16]}"
    here = holder.host == socket.gethostname()
    where = "" if here else f" on {' '.join(holder.host.split())[:80]}"
    return f"process {holder.pid}{where} (since {when}Z)"


def _lives(pid: int) -> bool:
    if os.name == "nt":  # pragma: no cover - on Windows this call would stop the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True

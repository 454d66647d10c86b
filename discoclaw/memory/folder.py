"""The data folder: only one process at a time uses it; others that try are told which one.

Blocking. Independent of what is in the stores.
"""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from discoclaw.core.errors import FolderInUse, MemoryFault
from discoclaw.core.ports import Clock
from discoclaw.memory import upgrades
from discoclaw.memory.exchange import swap
from discoclaw.memory.stores import Disks
from discoclaw.store import lock_holder, private, temporary
from discoclaw.store.files import stamp_of

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
        self._lock = FileLock(self._root / ".lock", mode=private.FILE, thread_local=False)

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
        self._close_to_others()
        for stays in temporary.sweep(self._disks.listed())[1]:
            log.warning("the leftover of a killed write could not be removed: %s", stays)
        lock_holder.note(self._root, self._clock())
        if self._disks.used.shared:
            empty(self._root.parent / "cache")

    def rescue(self) -> list[str]:
        """Save what can be read of a store that is damaged as a whole. Returns sentences about what was done.

        Not allowed while it is open. Raises FolderInUse, and MemoryFault when the disk fails.
        """
        upgrades.check(self._root)
        try:
            return self.alone(lambda: self._disks.rescue(stamp_of(self._clock())))
        except OSError as error:
            raise MemoryFault(f"what is damaged cannot be mended: {error}") from error

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
            lock_holder.leave(self._root)
            self._lock.release()

    def _close_to_others(self) -> None:
        """Make what earlier versions wrote readable only by the bot's user. What fails is only a warning."""
        closed, left = private.close_old(self._disks.trees(), self._disks.placed())
        if closed:
            log.info("only the bot's user can read %d files and folders of its data from now on", closed)
        if left:
            more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
            log.warning("other users of this machine may read the bot's data: %s%s", left[0], more)

    def _take(self) -> None:
        try:
            private.make_folder(self._root)
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise FolderInUse(
                f"{self._root} is in use by {lock_holder.who(self._root, self._clock())}; "
                "stop that one, or set another DISCOCLAW_DATA_DIR"
            ) from error
        except OSError as error:
            raise MemoryFault(f"{self._root} cannot be used: {error}") from error

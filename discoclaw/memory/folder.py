"""The data folder: one process at a time uses it, and says so to others who ask.

Blocking. Knows nothing about what is in the stores.
"""

from collections.abc import Callable

from filelock import FileLock, Timeout

from discoclaw.core.errors import FolderInUse, MemoryFault
from discoclaw.core.ports import Clock
from discoclaw.memory.disk import lock_holder
from discoclaw.memory.disk.files import stamp_of
from discoclaw.memory.stores import Disks


class DataFolder:
    """`data/memory` with its stores."""

    def __init__(self, disks: Disks, *, clock: Clock) -> None:
        self._disks = disks
        self._root = disks.root
        self._clock = clock
        self._lock = FileLock(self._root / ".lock", thread_local=False)

    def open(self, then: Callable[[], None]) -> None:
        """Take the folder for this process, make the stores ready, and do what comes `then`.

        Raises FolderInUse, naming who has it, or MemoryFault when it cannot be made or used; it is then given
        back.
        """
        self._take()
        try:
            lock_holder.note(self._root, self._clock())
            self._disks.open()
            then()
        except OSError as error:
            self.close()
            raise MemoryFault(f"the memory cannot be used: {error}") from error
        except BaseException:
            self.close()
            raise

    def rescue(self) -> list[str]:
        """Save what can be read of a store that is damaged as a whole; what was done, in sentences.

        Not while it is open. Raises FolderInUse, and MemoryFault when the disk fails.
        """
        self._take()
        try:
            return self._disks.rescue(stamp_of(self._clock()))
        except OSError as error:
            raise MemoryFault(f"what is damaged cannot be mended: {error}") from error
        finally:
            self.close()

    def close(self) -> None:
        """Give the folder back."""
        self._disks.close()
        if self._lock.is_locked:
            lock_holder.leave(self._root)
            self._lock.release()

    def _take(self) -> None:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise FolderInUse(
                f"{self._root} is in use by {lock_holder.who(self._root, self._clock())}; "
                "stop that one, or set another DISCOCLAW_DATA_DIR"
            ) from error
        except OSError as error:
            raise MemoryFault(f"{self._root} cannot be used: {error}") from error

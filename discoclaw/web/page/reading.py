"""Values that a page reads while somebody looks, from a disk or a database that may hang.

    Reading   reads a value at most once at a time, and keeps it for a moment
    Read      what came of it: the value, or a sentence why there is none

So however often a page is loaded, it costs a bounded amount of work, and what hangs is asked once and costs
a page no more than `WITHIN_S`. Knows nothing about what is read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, ParamSpec, TypeVar

from discoclaw.core.errors import DiscoClawError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

WITHIN_S: Final = 2.0
"""How long a page waits for a part of it: as long as a reply waits for a disk."""
FRESH_S: Final = 2.0
"""How long a value is shown again."""
HANGS: Final = f"could not be read within {WITHIN_S:.0f} s; the disk or the database may hang"


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """A value, or None and the `trouble` with it."""

    value: T | None = None
    trouble: str = ""


class Reading(Generic[P, T]):
    """Reads a value with `read`. `name` is for the log."""

    def __init__(
        self,
        name: str,
        read: Callable[P, Awaitable[T]],
        *,
        within_s: float = WITHIN_S,
        fresh_s: float = FRESH_S,
    ) -> None:
        self._name = name
        self._read = read
        self._within_s = within_s
        self._fresh_s = fresh_s
        self._kept: tuple[object, float, Read[T]] | None = None
        self._forgotten = 0
        self._task: asyncio.Task[Read[T]] | None = None

    async def get(self, *args: P.args, **kwargs: P.kwargs) -> Read[T]:
        """The value for these arguments. Never raises."""
        loop, asked = asyncio.get_running_loop(), (args, kwargs)
        ends = loop.time() + self._within_s
        while True:
            if self._kept is not None:
                known, until, found = self._kept
                if known == asked and loop.time() < until:
                    return found
            if self._task is None:
                self._task = asyncio.create_task(self._tried(*args, **kwargs), name=self._name)
                self._task.add_done_callback(self._ended)
            task = self._task
            if (left := ends - loop.time()) <= 0:
                return Read(None, HANGS)
            await asyncio.wait([task], timeout=left)

    def forget(self) -> None:
        """Show nothing again that was read before now."""
        self._kept = None
        self._forgotten += 1

    async def _tried(self, *args: P.args, **kwargs: P.kwargs) -> Read[T]:
        found: Read[T]
        forgotten, fresh_s = self._forgotten, self._fresh_s
        try:
            found = Read(await self._read(*args, **kwargs))
        except (DiscoClawError, OSError) as error:
            found, fresh_s = Read(None, str(error)), FRESH_S
        except Exception:  # a named edge: a bug in one part of a page must not take the others away
            log.exception("the page could not read %s", self._name)
            found, fresh_s = Read(None, "could not be read; the log says why"), FRESH_S
        if forgotten == self._forgotten:
            self._kept = ((args, kwargs), asyncio.get_running_loop().time() + fresh_s, found)
        return found

    def _ended(self, task: "asyncio.Task[Read[T]]") -> None:
        self._task = None

    async def close(self) -> None:
        """Give up on what is being read."""
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait([task])

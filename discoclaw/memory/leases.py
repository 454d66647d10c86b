"""The leases that this process has, and the tasks that work under them.

Leases keep processes apart, not the tasks of one process: these share the lease until the last of them
leaves. A process has a lease until it gives it back, or until another one replaces it: then it loses all, the
store refuses what it writes, and the tasks inside are cancelled, because no store can refuse what they send
to Discord.
"""

import asyncio
import logging
from collections import Counter
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from discoclaw.core.errors import LeaseLost
from discoclaw.store.files import in_thread, to_its_end
from discoclaw.store.sharing import Presence

if TYPE_CHECKING:
    from discoclaw.store.postgres.processes import ProcessRows

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
"""How often one looks whether a lease is free: a second is little beside the five until a dead process is
known to be dead."""


class _Lease:
    """A lease, and the tasks inside, each as often as it entered; none has it while that is empty."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        """Held while the store is asked about this lease, so that nobody enters while it is given back."""
        self.tasks: Counter[asyncio.Task[Any]] = Counter()


class Leases:
    """All leases of one process. `back` is set while the store can be asked."""

    def __init__(self, rows: "ProcessRows", presence: Presence, back: asyncio.Event) -> None:
        self._rows = rows
        self._presence = presence
        self._back = back
        self._known: WeakValueDictionary[str, _Lease] = WeakValueDictionary()
        self._waiting: Counter[str] = Counter()
        self._returning: set[asyncio.Task[None]] = set()
        self._cancelled: set[asyncio.Task[Any]] = set()
        self._ended = False

    def held(self) -> tuple[str, ...]:
        """The names of those that we have."""
        return tuple(name for name, one in self._known.items() if one.tasks)

    def waiting(self) -> tuple[str, ...]:
        """The names of those that we wait for. For any thread."""
        return tuple(self._waiting)

    def lease(self, name: str) -> AbstractAsyncContextManager[Any]:
        """Have a lease while this is entered; waits for whoever has it. See `core/ports`."""
        return _Entry(self, name, waits=True)

    def free(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Enter a lease without waiting: False if another process has it, or the store doesn't answer."""
        return _Entry(self, name, waits=False)

    def end(self) -> None:
        """Lose all leases for good; whoever waits for one gets LeaseLost."""
        self._ended = True
        inside = {task for one in self._known.values() for task in one.tasks}
        self._cancelled |= {task for task in inside if task.cancel("its lease was lost")}
        self._back.set()

    def close(self) -> None:
        """Give no lease back any more: the process leaves, and its leases and claims end at one moment."""
        for task in self._returning:
            task.cancel()
        self._known.clear()

    # ------------------------------------------------------------------ inside

    async def had(self, name: str) -> _Lease:
        """Wait until a lease is ours, and this task inside. Raises LeaseLost."""
        pause_s = FIRST_PAUSE_S
        while (one := await self.entered(name)) is None:
            if self._ended:
                raise LeaseLost(f"this process gets no lease any more, and so not {name!r}")
            self._waiting[name] += 1
            try:
                await (asyncio.sleep(pause_s) if self._back.is_set() else self._back.wait())
            finally:
                self._waiting[name] -= 1
                self._waiting += Counter()  # forgets what nobody waits for
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        return one

    async def entered(self, name: str) -> _Lease | None:
        """Take a lease, or share the one we have; None if that cannot be now."""
        task = asyncio.current_task()
        assert task is not None
        one = self._known.setdefault(name, _Lease(name))
        async with one.lock:
            if not one.tasks and not await self._taken(one):
                return None
            one.tasks[task] += 1
            return one

    async def _taken(self, one: _Lease) -> bool:
        if self._ended or not self._presence.answers:
            return False
        try:
            return await in_thread(self._rows.take, one.name) and not self._ended
        except (OSError, LeaseLost) as error:
            log.debug("the lease %r could not be taken: %s", one.name, error)
            return False
        except asyncio.CancelledError:
            self._later(one)  # it may have been taken
            raise

    async def left(self, one: _Lease, task: "asyncio.Task[Any]") -> None:
        """A task leaves, and the last one gives the lease back."""
        async with one.lock:
            one.tasks[task] -= 1
            one.tasks += Counter()
            if one.tasks or self._ended or one.name not in self._known:
                return
            try:
                await in_thread(self._rows.release, one.name)
            except OSError:
                self._later(one)

    def lost(self, task: "asyncio.Task[Any]", cancelled_before: int, error: BaseException | None) -> bool:
        """Whether a task that leaves with this error has lost its leases, and not been cancelled beside."""
        if isinstance(error, asyncio.CancelledError):
            return task in self._cancelled and task.uncancel() <= cancelled_before
        return error is None and self._ended

    def _later(self, one: _Lease) -> None:
        """Give a lease back as soon as the store answers, unless it was taken again meanwhile."""
        task = asyncio.create_task(self._returned(one), name=f"returns {one.name}")
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def _returned(self, one: _Lease) -> None:
        while not self._ended:
            async with one.lock:
                if one.tasks:
                    return
                with suppress(OSError):
                    await in_thread(self._rows.release, one.name)
                    return
            await asyncio.sleep(LONGEST_PAUSE_S)


class _Entry(AbstractAsyncContextManager[bool]):
    """One entering of a lease. No generator, because what waits in one can't be told from what works."""

    def __init__(self, leases: Leases, name: str, *, waits: bool) -> None:
        self._leases = leases
        self._name = name
        self._waits = waits
        self._lease: _Lease | None = None

    async def __aenter__(self) -> bool:
        enters = self._leases.had if self._waits else self._leases.entered
        self._lease = await enters(self._name)
        self._task = asyncio.current_task()
        self._before = self._task.cancelling() if self._task is not None else 0
        return self._lease is not None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lease is None:
            return
        assert self._task is not None
        try:
            await to_its_end(self._leases.left(self._lease, self._task))
        except asyncio.CancelledError as cancelled:
            if not self._leases.lost(self._task, self._before, cancelled):
                raise
            error = None
        if self._leases.lost(self._task, self._before, error):
            raise LeaseLost(f"another process may have the lease {self._name!r} by now") from None

"""The leases that this process has, and the tasks that work under them.

Leases keep processes apart, not the tasks of one process: these share the lease until the last of them
leaves. A lease that another process took meanwhile is lost: the store refuses what is written under it
(`disk/fence`), and the tasks inside are cancelled, because no store can refuse what they send to Discord.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from weakref import WeakValueDictionary

from discoclaw.core.errors import LeaseLost
from discoclaw.memory.disk.fence import FENCES, Fence, Presence
from discoclaw.memory.disk.files import in_thread, to_its_end
from discoclaw.memory.disk.members import Rows

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
"""How often one looks whether a lease is free: a second is little beside the five until a dead process is
known to be dead."""


@dataclass(eq=False, slots=True)
class _Held:
    """A lease that we have, and the tasks inside, each as often as it entered."""

    fence: Fence
    tasks: Counter["asyncio.Task[object]"] = field(default_factory=Counter)
    lost: bool = False
    cancelled: set["asyncio.Task[object]"] = field(default_factory=set)


@dataclass(eq=False)
class _Lease:
    name: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the store is asked about this lease, so that nobody enters while it is given back."""
    held: _Held | None = None


class Leases:
    """All leases of one process. `back` is set while the store can be asked."""

    def __init__(self, rows: Rows, presence: Presence, back: asyncio.Event) -> None:
        self._rows = rows
        self._presence = presence
        self._back = back
        self._known: WeakValueDictionary[str, _Lease] = WeakValueDictionary()
        self._held: dict[str, _Lease] = {}
        self._waiting: Counter[str] = Counter()
        self._returning: set[asyncio.Task[None]] = set()
        self._ended = False

    def held(self) -> tuple[str, ...]:
        """The names of those that we have. For any thread."""
        return tuple(self._held)

    def waiting(self) -> tuple[str, ...]:
        """The names of those that we wait for. For any thread."""
        return tuple(self._waiting)

    def lease(self, name: str) -> AbstractAsyncContextManager[None]:
        """Have a lease while this is entered; waits for whoever has it. See `core/processes`."""
        return _Waited(self, name)

    async def had(self, name: str) -> AbstractAsyncContextManager[None]:
        """Wait until a lease is ours; while the result is entered, the task is inside. Raises LeaseLost."""
        one, pause_s = self._lease(name), FIRST_PAUSE_S
        while (held := await self._entered(one)) is None:
            if self._ended:
                raise LeaseLost(f"this process gets no lease any more, and so not {name!r}")
            self._waiting[name] += 1
            try:
                await (asyncio.sleep(pause_s) if self._back.is_set() else self._back.wait())
            finally:
                self._waiting[name] -= 1
                self._waiting += Counter()  # forgets what nobody waits for
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        return self._inside(one, held)

    @asynccontextmanager
    async def free(self, name: str) -> AsyncIterator[bool]:
        """The same without waiting: False if another process has it, or the store does not answer."""
        one = self._lease(name)
        held = await self._entered(one)
        if held is None:
            yield False
            return
        async with self._inside(one, held):
            yield True

    def moved(self, epoch: int, kept: Collection[str]) -> None:
        """We have a new epoch, and only these leases are still ours: all others are lost."""
        for name, one in list(self._held.items()):
            held = one.held
            assert held is not None
            if name in kept:
                held.fence.epoch = epoch
            if held.fence.epoch == epoch:
                continue
            log.warning("the lease %r was lost: another process may have it by now", name)
            one.held, held.lost = None, True
            del self._held[name]
            for task in held.tasks:
                if task.cancel(f"the lease {name} was lost"):
                    held.cancelled.add(task)
        for name in set(kept) - self._held.keys():  # left meanwhile, which gave back that of the old epoch
            self._later(self._lease(name), epoch)

    def end(self) -> None:
        """Nothing is leased any more: all leases are lost, and whoever waits for one gets LeaseLost."""
        self._ended = True
        self.moved(0, ())
        self._back.set()

    # ------------------------------------------------------------------ inside

    def _lease(self, name: str) -> _Lease:
        return self._known.setdefault(name, _Lease(name))

    async def _entered(self, one: _Lease) -> _Held | None:
        """Take a lease, or share the one we have; None if that cannot be now."""
        task = asyncio.current_task()
        assert task is not None
        async with one.lock:
            if one.held is None and not await self._taken(one):
                return None
            if one.held is not None:
                one.held.tasks[task] += 1
            return one.held

    async def _taken(self, one: _Lease) -> bool:
        epoch = self._presence.epoch
        if not self._presence.answers:
            return False
        try:
            taken = await in_thread(self._rows.take, one.name, epoch)
        except OSError as error:
            log.debug("the lease %r could not be asked for: %s", one.name, error)
            return False
        except asyncio.CancelledError:
            self._later(one, epoch)  # it may have been taken
            raise
        if not taken or epoch != self._presence.epoch:  # the lease of an epoch that is over is no lease
            return False
        one.held = _Held(Fence(one.name, epoch))
        self._held[one.name] = one
        return True

    @asynccontextmanager
    async def _inside(self, one: _Lease, held: _Held) -> AsyncIterator[None]:
        task = asyncio.current_task()
        assert task is not None
        token, before = FENCES.set((*FENCES.get(), held.fence)), task.cancelling()
        try:
            try:
                yield
            finally:
                with suppress(ValueError):  # left by another task than the one that entered
                    FENCES.reset(token)
                await to_its_end(self._left(one, held, task))
        except asyncio.CancelledError:
            if task in held.cancelled and task.uncancel() <= before:
                raise _lost(one.name) from None
            raise
        if held.lost:
            raise _lost(one.name)

    async def _left(self, one: _Lease, held: _Held, task: "asyncio.Task[object]") -> None:
        async with one.lock:
            held.tasks[task] -= 1
            held.tasks += Counter()
            if held.tasks:
                return
            held.fence.over = not held.lost
            if one.held is not held:
                return
            one.held = None
            del self._held[one.name]
            try:
                await in_thread(self._rows.release, [one.name], held.fence.epoch)
            except OSError:
                self._later(one, held.fence.epoch)

    def _later(self, one: _Lease, epoch: int) -> None:
        """Give a lease back as soon as the store answers, unless it was taken again meanwhile."""
        task = asyncio.create_task(self._returned(one, epoch), name=f"returns {one.name}")
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def _returned(self, one: _Lease, epoch: int) -> None:
        while epoch == self._presence.epoch:
            async with one.lock:
                if one.held is not None:
                    return
                with suppress(OSError):
                    await in_thread(self._rows.release, [one.name], epoch)
                    return
            await asyncio.sleep(LONGEST_PAUSE_S)

    def close(self) -> None:
        """Give no lease back any more: the process leaves, and its leases and claims end at one moment."""
        for task in self._returning:
            task.cancel()
        for one in self._held.values():
            one.held = None
        self._held.clear()


class _Waited:
    """A lease that is waited for. No generator, because what waits in one can't be told from what works."""

    def __init__(self, leases: Leases, name: str) -> None:
        self._leases = leases
        self._name = name
        self._inside: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> None:
        self._inside = await self._leases.had(self._name)
        await self._inside.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._inside is not None
        return await self._inside.__aexit__(kind, error, trace)


def _lost(name: str) -> LeaseLost:
    return LeaseLost(f"another process has the lease {name!r} by now")

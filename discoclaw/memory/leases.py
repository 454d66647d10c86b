"""The leases that this process has, and the tasks that work under them.

Leases keep processes apart, not the tasks of one process: these share the lease until the last of them
leaves. A lease that another process took meanwhile is lost: the store refuses what is written under it
(`store/sharing`), and the tasks inside are cancelled, because no store can refuse what they send to Discord.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from discoclaw.core.errors import LeaseLost
from discoclaw.store.files import in_thread, to_its_end
from discoclaw.store.sharing import FENCES, Entered, Fence, Member, Page, Presence, State, seconds

if TYPE_CHECKING:
    from discoclaw.store.postgres.processes import ProcessRows

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

    def __init__(self, rows: "ProcessRows", presence: Presence, back: asyncio.Event) -> None:
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
        """Have a lease while this is entered; waits for whoever has it. See `core/ports`."""
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
        """Enter a lease without waiting: False if another process has it, or the store doesn't answer."""
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
        """Lose all leases for good; whoever waits for one gets LeaseLost."""
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
        if not taken or epoch != self._presence.epoch:  # the lease of an epoch that is over isn't a lease
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


# ---------------------------------------------------------------------- the thread

RENEW_S = 1.0
POLL_S = 0.3
LONGEST_POLL_S = 2.0
"""The pause while the store does not answer: it doubles up to this."""
LONGEST_AGAIN_S = 30.0
PRUNE_S = 60.0
PRUNING = "pruning"
"""The lease of the process that keeps the tables small. It has it as long as it lives."""
LEAVE_S = 2.0
"""The longest that a process waits for the store in order to leave it."""


class Heard(NamedTuple):
    """A page of the feed. `entered` is our new epoch if we needed one.

    `losses` is how often touch had been lost when it was read.
    """

    page: Page
    losses: int
    entered: Entered | None = None


class Lost(NamedTuple):
    """The store is out of touch."""

    why: str


class Overtaken(NamedTuple):
    """One of our shards is another process's, or was given up: the last that the thread tells."""

    entered: Entered


class Fewer(NamedTuple):
    """A process is gone for which names were kept, or this one has caught up with them."""


Told: TypeAlias = Heard | Lost | Overtaken | Fewer
"""What the thread tells the event loop."""


class Renewing:
    """The thread. `quick_s` is how fast the store has to answer for us to be in touch again.

    `tell` is called in the thread, and must not block. `epoch`, `position` and `fed` are those of the newest
    page that was applied.
    """

    def __init__(
        self,
        rows: "ProcessRows",
        presence: Presence,
        member: Member,
        leases: Leases,
        tell: Callable[[Told], None],
        *,
        quick_s: float,
    ) -> None:
        self._rows = rows
        self._presence = presence
        self._member = member
        self._leases = leases
        self._tell = tell
        self._quick_s = quick_s
        self._renew_s = min(RENEW_S, rows.lease_s / 5)
        self._poll_s = min(POLL_S, rows.lease_s / 5)
        self._thread = threading.Thread(target=self._run, name="renewing", daemon=True)
        self._woken = threading.Event()
        self._ended = False
        self.back = threading.Event()
        """Set while we are in touch, for threads."""
        self.losses = 0
        """Grows when touch is lost: what was read before is then no longer enough to be in touch again."""

        self._epoch = self._position = 0
        self._fed = self._renewed_at = self._pruned_at = 0.0
        self._unsaid = False
        """Whether the position is to be told before the next renewal is due."""
        self._outstanding = False
        """Whether the event loop is dealing with a page."""
        self._entered: Entered | None = None
        """Our new epoch, until the event loop knows it."""
        self._again_s = self._again_at = 0.0
        """The pause before a page that the event loop could not deal with, and when it is read again."""
        self._fewer = False
        """Whether to tell that there are `Fewer`, once the others know our position."""

    # ------------------------------------------------------------------ for the event loop

    def enter(self) -> None:
        """Register, and begin. Blocking. Raises OSError."""
        sent = seconds()
        entered = self._rows.enter(self._member)
        page = self._rows.page(entered.epoch, entered.position)
        self._position, self._fed, self._pruned_at = page.position, page.read_at, seconds()
        self._count_on_us(entered.epoch, sent)
        self._thread.start()

    def applied(self, heard: Heard) -> None:
        """The event loop has let go of all that a page named."""
        page = heard.page
        self._position, self._fed = max(self._position, page.position), page.read_at
        self._outstanding, self._again_s = False, 0.0
        if page.names:  # somebody may be waiting for that
            self._unsaid = True
            self._woken.set()

    def again(self) -> None:
        """Give the event loop the page once more that it could not deal with, after a pause that doubles."""
        self._again_s = min(2 * self._again_s or self._poll_s, LONGEST_AGAIN_S)
        self._again_at = seconds() + self._again_s
        self._outstanding = False

    def lose(self) -> None:
        """The store does not answer a turn in time, so it is out of touch until it answers quickly."""
        self.losses += 1
        self._presence.away = self._presence.stale = True
        self._woken.set()

    def leave(self) -> None:
        """Take ourselves and our leases out of the store. Blocks for a short while; may be called again."""
        self._ended = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(LEAVE_S)
        self._presence.until = float("inf")  # what is read now rests on no RAM; the fence refuses all writes

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        pause_s, trouble = self._poll_s, ""
        while not self._ended:
            try:
                self._beat()
            except OSError as error:
                if str(error) != trouble:
                    log.debug("the processes' rows: %s", error)
                pause_s, trouble = min(pause_s * 2, LONGEST_POLL_S), str(error)
            except Exception as error:  # a named edge: this thread decides whether the others count on us
                log.exception("this process could not renew itself")
                pause_s, trouble = LONGEST_POLL_S, type(error).__name__
            else:
                pause_s, trouble = self._poll_s, ""
            left_s = self._presence.until - seconds()
            if left_s <= 0 and not self._presence.stale:
                self._lost(trouble or "it answers too slowly")
            self._woken.wait(min(pause_s, left_s) if left_s > 0 else pause_s)
            self._woken.clear()
        with suppress(OSError):
            self._rows.leave(self._epoch)
        self._rows.close()

    def _beat(self) -> None:
        # Out of touch, it has to be seen first that the store takes writes again, and not only reads.
        due = self._unsaid or self._presence.stale or seconds() - self._renewed_at >= self._renew_s
        if due:
            sent, self._unsaid = seconds(), False
            if self._rows.renew(self._epoch, State(self._position, self._fed, self._leases.waiting())):
                self._count_on_us(self._epoch, sent)
            else:
                self._lost("the others no longer counted on this process")
                if not self._entered_again():
                    return
        if due and self._fewer and not (self._presence.stale or self._unsaid):
            self._fewer = False
            self._tell(Fewer())
        if not self._outstanding and seconds() >= self._again_at:
            self._read()
        if seconds() - self._pruned_at >= PRUNE_S:
            self._pruned_at = seconds()
            if self._rows.take(PRUNING, self._epoch) and self._rows.prune():
                self._fewer = True

    def _entered_again(self) -> bool:
        """Get a new epoch. Without one, `presence` keeps that under which nothing is written any more."""
        sent = seconds()
        again = self._rows.enter_again(self._member, self._epoch, self._position, self._leases.held())
        if again.overtaken:
            self._ended = True
            self._tell(Overtaken(again))
            return False
        self._entered, self._fewer, self._outstanding = again, True, False
        self._count_on_us(again.epoch, sent)
        return True

    def _read(self) -> None:
        losses, sent = self.losses, seconds()
        page = self._rows.page(self._epoch, self._position)
        if self._presence.stale:
            if seconds() - sent > self._quick_s:
                return  # no turn would wait that long
            self._presence.away = False
        elif not page.names and page.complete:
            self._position, self._fed = page.position, page.read_at
            return
        heard, self._entered, self._outstanding = Heard(page, losses, self._entered), None, True
        self._tell(heard)

    def _count_on_us(self, epoch: int, sent: float) -> None:
        """The others count on us, from the moment on at which we asked them to."""
        self._epoch = self._presence.epoch = epoch
        self._renewed_at, self._presence.until = sent, sent + self._rows.lease_s

    def _lost(self, why: str) -> None:
        self.losses += 1
        self._presence.away = self._presence.stale = True
        self._tell(Lost(why))

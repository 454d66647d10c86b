"""The processes that share the store, as one of them sees them: claims, leases, and what the others changed.

One thread says each second that this process lives (`_live`), and one reads what others changed (`_follow`),
which the event loop lets go of. While the store is out of reach (*out of touch*), nothing in RAM is used,
because others may have changed or erased it. A turn goes on without memory, as with a disk that fails, and
what is to be learned waits. Touch is back once the store answers quickly and everything that changed
meanwhile was let go of. A process that others replaced meanwhile (`postgres/processes`) writes nothing more,
loses its leases, and ends.

Leases keep processes apart, not the tasks of one process: these share the lease until the last of them
leaves. A process has a lease until it gives it back, or is replaced: then it loses all, the store refuses
what it writes, and the tasks inside are cancelled, because no store can refuse what they send to Discord.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from discoclaw.core.errors import LeaseLost, MemoryFault, faulting
from discoclaw.core.ports import ALONE, Processes
from discoclaw.memory.changes import Listener
from discoclaw.memory.stores import shared
from discoclaw.store.files import in_thread, read_in_thread, to_its_end
from discoclaw.store.port import Disk, Presence, seconds
from discoclaw.store.threads import Threads

if TYPE_CHECKING:
    from discoclaw.store.postgres.processes import Claimed, Page, ProcessRows
    from discoclaw.store.postgres.tables import Seen

log = logging.getLogger(__name__)

LEASE_S = 5.0
"""How long a process counts as alive after each beat, of which there is one a second. Whoever dies is
succeeded after that; a shorter one would be lost whenever a database takes a few seconds to answer."""
BEAT_S, POLL_S = 1.0, 0.3
LONGEST_PAUSE_S = 2.0
"""The pause while the store does not answer: it doubles up to this."""
ANSWER_S = 2.0
"""How long a turn waits for the store: as long as for a disk."""
LOOK_S, LONGEST_LOOK_S = 0.05, 1.0
"""How often one looks whether a lease is free, or all processes let go of something: a second is little
beside the five until a dead process is known to be dead."""
WARN_S = 10.0
PRUNE_S = 60.0
PRUNING = "pruning"
"""The lease of the process that keeps the tables small. It has it as long as it lives."""
LEAVE_S = 2.0
"""The longest that a process waits for the store in order to leave it."""


def processes_of(disk: Disk, changes: Listener, kind: str) -> Processes:
    """The processes that use a store, this one among them. `changes` hears what others change.

    `kind` is "bot", or "tool" for a command of the terminal.
    """
    if (database := shared(disk)) is None:
        return ALONE
    return SharedProcesses(database.rows(LEASE_S), database.presence, database.seen, changes, kind)


class SharedProcesses:
    """One of several processes. A `core.ports.Service`, started once the store is open, and closed last."""

    shared = True

    def __init__(
        self, rows: "ProcessRows", presence: Presence, texts: "Seen", changes: Listener, kind: str
    ) -> None:
        self._rows = rows
        self._presence = presence
        self._texts = texts
        self._changes = changes
        self._kind = kind
        self._leases = _Leases(rows, presence)
        self._next: _Question | None = None
        """What turns ask while the store is being asked: all of it at once, as soon as it has answered."""
        self._asking = asyncio.Lock()
        self._askers = Threads(1)
        self._beat_s, self._poll_s = min(BEAT_S, rows.lease_s / 5), min(POLL_S, rows.lease_s / 5)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._live, self._follow)]
        self._beat_now, self._leaving = threading.Event(), threading.Event()
        self._settled = threading.Event()
        """Set while we are in touch, or never will be again; for threads."""
        self._owed: dict[str, object] = {}
        """Texts to let go of, once more if a part could not; each with a mark of when it was added."""
        self._dropping: set[asyncio.Task[Any]] = set()

        self._position, self._fed = 0, 0.0
        """Where we are in the list of changes, and the database's time of the page that said so (s)."""
        self._beaten_at = self._lost_at = 0.0
        """When the newest beat that counted was sent, and when touch was lost the last time: what was read
        before that is no longer enough to be in touch again."""
        self._away_since: float | None = None
        self._noticed_at = 0.0
        self._replaced = False

    # ------------------------------------------------------------------ lifecycle

    async def start(self) -> None:
        """Register. Raises MemoryFault if the store cannot be reached."""
        sent = seconds()
        try:
            process, self._position, self._fed = await in_thread(self._rows.enter, self._kind)
        except OSError as error:
            raise MemoryFault(str(error)) from error
        self._count_on_us(sent)
        self._presence.process = process
        self._loop = asyncio.get_running_loop()
        for thread in self._threads:
            thread.start()
        log.info("this is process %d of the store", process)

    async def settle(self) -> None:
        """Wait until what the others changed, as far as it was read, was let go of."""
        while self._dropping:
            await asyncio.wait(self._dropping)

    async def close(self) -> None:
        """Leave the store: others can have our leases at once. May be called again."""
        self._leases.close()
        self._leaving.set()
        self._beat_now.set()
        for thread in self._threads:
            if thread.is_alive():
                await in_thread(thread.join, LEAVE_S)
        self._presence.until = float("inf")  # what is read now rests on no RAM; the fence refuses all writes

    # ------------------------------------------------------------------ claims

    @property
    def in_touch(self) -> bool:
        return self._presence.in_touch

    async def claim(self, message_id: str, about: Iterable[str] = ()) -> bool:
        return await self._asked(int(message_id), tuple(about))

    async def look(self, about: Iterable[str]) -> None:
        await self._asked(None, tuple(about))

    async def _asked(self, message: int | None, about: Collection[str]) -> bool:
        """Claim and look at once. True if there is no answer in time.

        A process that was stopped, or whose database was restarted, is back in touch soon, or learns that
        it was replaced. Without the pause it would handle what others have claimed by then.
        """
        ours = await self._answer(message, about)
        if ours is None and (left_s := self._noticed_at + ANSWER_S - seconds()) > 0:
            await read_in_thread(self._settled.wait, left_s)
            if self._presence.in_touch:
                ours = await self._answer(message, about)
        if self._replaced and message is not None:
            return False
        if ours is None and seconds() >= self._presence.until:
            # Nobody waits for us any more: what was said here since the loss may be erased by now, too.
            self._changes.out_of_touch()
        return ours is not False

    async def _answer(self, message: int | None, about: Collection[str]) -> bool | None:
        """Ask once whether the message is ours, and what others changed; None if there is no answer."""
        if not self._presence.in_touch:
            self._lose(f"this process was not heard from for {self._rows.lease_s:g} s")
            return None
        try:
            found = await self._claimed(message, about)
            changed = self._texts.differing({name: found.versions[name] for name in about})
            dropping = asyncio.create_task(self._renewed(changed, set(about)))
            self._counted(dropping)
            await asyncio.wait([dropping], timeout=ANSWER_S)
            if not dropping.done():
                raise TimeoutError(f"what others changed could not be read within {ANSWER_S:g} s")
            dropping.result()
        except LeaseLost:
            self._end()
            return None
        except (OSError, MemoryFault) as error:
            self._lose(str(error), anew=True)
            return None
        return message is None or message in found.messages

    async def _claimed(self, message: int | None, names: Collection[str]) -> "Claimed":
        """Claim a message, if one is given, and get the versions of texts; others may be in the answer too.

        Raises OSError, of which TimeoutError, and LeaseLost.
        """
        if (question := self._next) is None:
            question = self._next = _Question()
            question.answer = asyncio.create_task(self._answer_to(question), name="claims")
            question.answer.add_done_callback(_retrieve)
        question.names.update(names)
        if message is not None:
            question.messages.add(message)
        return await asyncio.shield(question.answer)

    async def _answer_to(self, question: "_Question") -> "Claimed":
        async with self._asking:
            self._next = None
            # Ordered, so that two processes that claim the same messages do not wait for each other.
            asked = self._askers.submit(self._rows.claim, sorted(question.messages), question.names)
            waiting = asyncio.wrap_future(asked)
            waiting.add_done_callback(_retrieve)
            await asyncio.wait([waiting], timeout=ANSWER_S)
        if not asked.done():  # whatever the event loop knows by now: it may be busy for longer than that
            raise TimeoutError(f"it did not answer within {ANSWER_S:g} s")
        return asked.result()

    def _counted(self, task: "asyncio.Task[Any]") -> None:
        """Have `settle` wait for a task that lets go of texts."""
        self._dropping.add(task)
        task.add_done_callback(self._dropping.discard)
        task.add_done_callback(_retrieve)

    async def _renewed(self, names: Collection[str], about: set[str] | None = None) -> None:
        """Have all parts let go of texts, and of those that were read anew by some of them only.

        Of what is owed beside these, a turn waits only for what it is `about`: an erasing, of which the parts
        let go too, may wait for a slow write. The next page of the feed is about everything.
        """
        self._owed |= dict.fromkeys([*names, *self._texts.take_stale()], object())
        mine = self._owed.keys() if about is None else self._owed.keys() & about
        if owed := {name: self._owed[name] for name in mine}:
            await self._changes.renewed(owed.keys())
            for name, since in owed.items():
                if self._owed.get(name) is since:
                    del self._owed[name]

    # ------------------------------------------------------------------ leases

    def lease(self, name: str) -> AbstractAsyncContextManager[None]:
        return _Entry(self._leases, name, waits=True)

    def free(self, name: str) -> AbstractAsyncContextManager[bool]:
        return _Entry(self._leases, name, waits=False)

    async def holders(self, prefix: str) -> Mapping[str, str]:
        with faulting("who else uses the store is not known"):
            return await in_thread(self._rows.holders, prefix)

    async def all_know(self) -> None:
        began, pause_s, warned = seconds(), LOOK_S, False
        with faulting("not every process is known to have heard of it"):
            position = await in_thread(self._rows.newest)
            while behind := await in_thread(self._rows.behind, position):
                if not warned and seconds() - began > WARN_S:
                    warned = True
                    log.warning("waiting until process %d lets go of what changed", behind[0])
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, LONGEST_LOOK_S)

    # ------------------------------------------------------------------ living; a thread

    def _live(self) -> None:
        """Say each second that this process lives. An event loop that hangs for long is busy, not dead."""
        pause_s = self._beat_s
        while not self._leaving.is_set():
            sent = seconds()
            try:
                if not self._rows.beat(self._position, self._fed, list(self._leases.waiting)):
                    self._presence.away = self._presence.stale = True
                    assert self._loop is not None
                    with suppress(RuntimeError):  # it has ended
                        self._loop.call_soon_threadsafe(self._end)
                    break
                self._count_on_us(sent)
                pause_s = self._poll_s if self._presence.stale else self._beat_s
            except OSError as error:
                log.debug("the beat of this process: %s", error)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            except Exception:  # a named edge: this thread decides whether the others count on us
                log.exception("this process could not say that it lives")
                pause_s = LONGEST_PAUSE_S
            self._beat_now.wait(pause_s)
            self._beat_now.clear()
        with suppress(OSError):
            self._rows.leave()
        self._rows.beating.close()

    def _count_on_us(self, sent: float) -> None:
        """The others count on us, from the moment on at which we asked them to."""
        if seconds() >= self._presence.until:  # for a while they may not have
            self._lost_at = sent
            self._presence.away = self._presence.stale = True
        self._beaten_at, self._presence.until = sent, sent + self._rows.lease_s

    def _end(self) -> None:
        """Write nothing more, and ask nothing: others may have our leases."""
        if not self._replaced:
            self._replaced = self._presence.away = self._presence.stale = True
            log.warning("other processes no longer count on this one: nothing that it writes counts any more")
            self._leases.end()
            self._settled.set()

    # ------------------------------------------------------------------ what others changed; losing touch

    def _follow(self) -> None:
        """Let go of what the others changed, as long as we live; after a loss we are then in touch again."""
        assert self._loop is not None
        pause_s, trouble, pruned_at = self._poll_s, "", seconds()
        while not (self._leaving.is_set() or self._replaced or self._loop.is_closed()):
            sent = seconds()
            try:
                page = self._rows.page(self._position)
                if page.names or not page.complete or self._presence.stale:
                    asyncio.run_coroutine_threadsafe(self._apply(page, sent), self._loop).result()
                else:
                    self._position, self._fed = page.position, page.read_at
                if seconds() - pruned_at >= PRUNE_S:
                    pruned_at = seconds()
                    try:  # to keep the tables small, if no other process does it
                        if self._rows.take(PRUNING) and self._rows.prune():
                            self._rows.hide()
                    except OSError as error:  # the next erasing does it
                        log.warning("some names of texts that were erased are left: %s", error)
                pause_s, trouble = self._poll_s, ""
            except (OSError, MemoryFault) as error:
                pause_s, trouble = min(pause_s * 2, LONGEST_PAUSE_S), str(error)
            except Exception as error:  # a named edge: what was not let go of must not count as read
                log.exception("what other processes changed could not be let go of")
                pause_s, trouble = LONGEST_PAUSE_S, type(error).__name__
            if not self._presence.in_touch:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._lose, trouble or "it answers too slowly")
            self._leaving.wait(pause_s)
        self._rows.feed.close()

    async def _apply(self, page: "Page", sent: float) -> None:
        """Let go of what a page names, which was asked for at a time. Raises OSError and MemoryFault."""
        task = asyncio.current_task()
        assert task is not None
        self._counted(task)
        if self._presence.stale:
            # A turn would not wait that long; and the store has to take writes again, and not only reads.
            if seconds() - sent > ANSWER_S or self._beaten_at < self._lost_at:
                return
            self._presence.away = False
        names = self._texts.unseen(page.names)
        if not page.complete:
            names |= self._texts.names()
        try:
            await self._renewed(names)
        except (OSError, MemoryFault) as error:
            log.warning("what other processes changed could not be let go of: %s", error)
            raise
        self._position, self._fed = page.position, page.read_at
        if page.names:  # somebody may be waiting for that
            self._beat_now.set()
        if self._presence.stale and sent >= self._lost_at and not self._replaced:
            self._presence.stale = False
            self._settled.set()
            if self._away_since is not None:
                log.warning("in touch with the store again, after %.1f s", seconds() - self._away_since)
                self._away_since = None
            self._changes.back_in_touch()

    def _lose(self, why: str, *, anew: bool = False) -> None:
        """Be out of touch. `anew`: what was read up to now is not enough to be in touch again."""
        if anew or not self._presence.stale:
            self._lost_at = seconds()
            self._presence.away = self._presence.stale = True
            self._beat_now.set()
        if self._away_since is None:
            self._away_since = min(seconds(), self._presence.until - self._rows.lease_s)
            self._noticed_at = seconds()
            self._settled.clear()
            log.warning("out of touch with the store: %s; answering without memory until it is back", why)
            self._changes.out_of_touch()


@dataclass(eq=False, slots=True)
class _Question:
    """The questions of several turns: messages to claim, and texts of which they need the version."""

    messages: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    answer: "asyncio.Task[Claimed]" = field(init=False)


def _retrieve(done: "asyncio.Future[Any]") -> None:
    """Look at an outcome, so that asyncio doesn't log an error for which nobody waits any more."""
    done.cancelled() or done.exception()


# ---------------------------------------------------------------------- leases


class _Lease:
    """A lease, and the tasks inside, each as often as it entered; none has it while that is empty."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        """Held while the store is asked about this lease, so that nobody enters while it is given back."""
        self.tasks: Counter[asyncio.Task[Any]] = Counter()


class _Leases:
    """All leases of this process."""

    def __init__(self, rows: "ProcessRows", presence: Presence) -> None:
        self._rows = rows
        self._presence = presence
        self._known: WeakValueDictionary[str, _Lease] = WeakValueDictionary()
        self.waiting: Counter[str] = Counter()
        """The names of those that we wait for. For any thread."""
        self._returning: set[asyncio.Task[None]] = set()
        self._cancelled: set[asyncio.Task[Any]] = set()
        self.ended = False

    def end(self) -> None:
        """Lose all leases for good; whoever waits for one gets LeaseLost."""
        self.ended = True
        inside = {task for one in self._known.values() for task in one.tasks}
        self._cancelled |= {task for task in inside if task.cancel("its lease was lost")}

    def close(self) -> None:
        """Give no lease back any more: the process leaves, and its leases and claims end at one moment."""
        for task in self._returning:
            task.cancel()
        self._known.clear()

    async def entered(self, name: str, task: "asyncio.Task[Any]") -> _Lease | None:
        """Take a lease for a task, or share the one we have; None if that cannot be now."""
        one = self._known.setdefault(name, _Lease(name))
        async with one.lock:
            if not one.tasks:
                if self.ended or not self._presence.answers:
                    return None
                try:
                    if not await in_thread(self._rows.take, name) or self.ended:
                        return None
                except (OSError, LeaseLost) as error:
                    log.debug("the lease %r could not be taken: %s", name, error)
                    return None
                except asyncio.CancelledError:
                    self._return_later(one)  # it may have been taken
                    raise
            one.tasks[task] += 1
            return one

    async def left(self, one: _Lease, task: "asyncio.Task[Any]") -> None:
        """A task leaves, and the last one gives the lease back."""
        async with one.lock:
            one.tasks[task] -= 1
            one.tasks += Counter()
            if one.tasks or self.ended or one.name not in self._known:
                return
            try:
                await in_thread(self._rows.release, one.name)
            except OSError:
                self._return_later(one)

    def lost(self, task: "asyncio.Task[Any]", cancelled_before: int, error: BaseException | None) -> bool:
        """Whether a task that leaves with this error has lost its leases, and not been cancelled beside."""
        if isinstance(error, asyncio.CancelledError):
            return task in self._cancelled and task.uncancel() <= cancelled_before
        return error is None and self.ended

    def _return_later(self, one: _Lease) -> None:
        """Give a lease back as soon as the store answers, unless it was taken again meanwhile."""

        async def returned() -> None:
            while not self.ended:
                async with one.lock:
                    if one.tasks:
                        return
                    with suppress(OSError):
                        await in_thread(self._rows.release, one.name)
                        return
                await asyncio.sleep(LONGEST_LOOK_S)

        task = asyncio.create_task(returned(), name=f"returns {one.name}")
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)


class _Entry(AbstractAsyncContextManager[Any]):
    """One entering of a lease. No generator, because what waits in one can't be told from what works."""

    def __init__(self, leases: _Leases, name: str, *, waits: bool) -> None:
        self._leases = leases
        self._name = name
        self._waits = waits

    async def __aenter__(self) -> bool:
        task = asyncio.current_task()
        assert task is not None
        leases, name, pause_s = self._leases, self._name, LOOK_S
        while (one := await leases.entered(name, task)) is None and self._waits:
            if leases.ended:
                raise LeaseLost(f"this process gets no lease any more, and so not {name!r}")
            leases.waiting[name] += 1
            try:
                await asyncio.sleep(pause_s)
            finally:
                leases.waiting[name] -= 1
                leases.waiting += Counter()  # forgets what nobody waits for
            pause_s = min(pause_s * 1.5, LONGEST_LOOK_S)
        self._lease, self._task, self._before = one, task, task.cancelling()
        return one is not None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lease is None:
            return
        try:
            await to_its_end(self._leases.left(self._lease, self._task))
        except asyncio.CancelledError as cancelled:
            if not self._leases.lost(self._task, self._before, cancelled):
                raise
            error = None
        if self._leases.lost(self._task, self._before, error):
            raise LeaseLost(f"another process may have the lease {self._name!r} by now") from None

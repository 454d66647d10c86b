"""The processes that share the store, as one of them sees them: claims, leases, and what the others changed.

While the store is out of reach (*out of touch*), nothing in RAM is used, because others may have changed or
erased it. A turn goes on without memory, as with a disk that fails, and what is to be learned waits. Touch is
back once the store answers quickly and everything that changed meanwhile was let go of.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from discoclaw.core.errors import MemoryFault, faulting
from discoclaw.core.ports import ALONE, Processes
from discoclaw.memory.changes import Listener
from discoclaw.memory.leases import Fewer, Heard, Leases, Lost, Overtaken, Renewing, Told
from discoclaw.memory.stores import shared
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import Disk
from discoclaw.store.sharing import Claimed, Entered, Member, Presence, seconds
from discoclaw.store.threads import Threads

if TYPE_CHECKING:
    from discoclaw.store.postgres.processes import ProcessRows
    from discoclaw.store.postgres.tables import Seen

log = logging.getLogger(__name__)
T = TypeVar("T")

LEASE_S = 5.0
"""How long a process counts as alive after each renewal, of which there is one a second. Whoever dies is
succeeded after that; a shorter one would be lost whenever a database takes a few seconds to answer."""
ANSWER_S = 2.0
"""How long a turn waits for the store: as long as for a disk."""
LOOK_S, LONGEST_LOOK_S = 0.1, 1.0
"""How often one looks whether all processes let go of something."""
WARN_S = 10.0
MISSED = "cut off for too long to know who was erased meanwhile: no lease is kept"


def processes_of(disk: Disk, changes: Listener, member: Member) -> Processes:
    """The processes that use a store, of which this one is a `member`. `changes` hears what others change."""
    if (database := shared(disk)) is None:
        return ALONE
    return SharedProcesses(database.rows(LEASE_S), database.presence, database.seen, changes, member)


class SharedProcesses:
    """One of several processes. A `core.service.Service`, started once the store is open, and closed last."""

    shared = True

    def __init__(
        self, rows: "ProcessRows", presence: Presence, texts: "Seen", changes: Listener, member: Member
    ) -> None:
        self._rows = rows
        self._presence = presence
        self._texts = texts
        self._changes = changes
        self._back = asyncio.Event()
        """Set while we are in touch."""
        self._back.set()
        self._leases = Leases(rows, presence, self._back)
        self._renewing = Renewing(rows, presence, member, self._leases, self._tell, quick_s=ANSWER_S)
        self._asking = Asking(self._claim, answer_s=ANSWER_S)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lost_at: float | None = None
        self._noticed_at = 0.0
        self._overtaken = False
        """Whether another process has our shards by now: then this one ends, and does nothing more."""
        self._tasks: set[asyncio.Task[Any]] = set()
        presence.margin_s = min(presence.margin_s, rows.lease_s * 0.4)
        self._applying = asyncio.Lock()
        self._owed: dict[str, object] = {}
        """Texts to let go of, once more if a part could not; each with a mark of when it was added."""

    # ------------------------------------------------------------------ lifecycle

    async def start(self) -> None:
        """Register. Raises MemoryFault if the store cannot be reached."""
        self._loop = asyncio.get_running_loop()
        try:
            await in_thread(self._renewing.enter)
        except OSError as error:
            raise MemoryFault(str(error)) from error
        log.info("this is process %d of the store", self._presence.epoch)

    async def settle(self) -> None:
        """Wait until what the others changed, as far as it was read, was let go of."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Leave the store: others can have our leases at once. May be called again."""
        self._leases.close()
        await in_thread(self._renewing.leave)

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
        others have its shards. Without the pause it would handle what others have claimed by then.
        """
        ours = await self._answer(message, about)
        if ours is None and await self._back_soon():
            ours = await self._answer(message, about)
        if self._overtaken and message is not None:
            return False
        if ours is None and seconds() >= self._presence.until:
            # Nobody waits for us any more: what was said here since the loss may be erased by now, too.
            self._changes.out_of_touch()
        return ours is not False

    async def _answer(self, message: int | None, about: Collection[str]) -> bool | None:
        """Ask once whether the message is ours, and what others changed; None if there is no answer."""
        if not self._presence.in_touch:
            # If the thread was the first to notice, the event loop has not come to its word yet.
            noticed = self._lost if self._presence.stale else self._lose
            noticed(f"this process was not heard from for {self._rows.lease_s:g} s")
            return None
        try:
            found = await self._asking.claimed(message, about)
            changed = self._texts.differing({name: found.versions[name] for name in about})
            dropping = self._begun(self._renewed(changed, set(about)))
            await asyncio.wait([dropping], timeout=ANSWER_S)
            if not dropping.done():
                raise TimeoutError(f"what others changed could not be read within {ANSWER_S:g} s")
            dropping.result()
        except (OSError, MemoryFault) as error:
            self._lose(str(error))
            return None
        return message is None or message in found.messages

    async def _back_soon(self) -> bool:
        """Wait until we are in touch again, as long as that may still be soon after the loss."""
        if (left_s := self._noticed_at + ANSWER_S - seconds()) > 0:
            await read_in_thread(self._renewing.back.wait, left_s)
        return self._presence.in_touch

    def _claim(self, messages: Collection[int], about: Collection[str]) -> Claimed:
        return self._rows.claim(messages, self._presence.epoch, about)

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
        return self._leases.lease(name)

    def free(self, name: str) -> AbstractAsyncContextManager[bool]:
        return self._leases.free(name)

    async def holders(self, prefix: str) -> Mapping[str, str]:
        with faulting("who else uses the store is not known"):
            return await in_thread(self._rows.holders, prefix, self._presence.epoch)

    async def all_know(self) -> None:
        def behind(position: int) -> list[int]:
            return self._rows.behind(position, self._presence.epoch)

        with faulting("not every process is known to have heard of it"):
            await self._none(behind, "process %d lets go of what changed")
            # One that died may have asked the fence before, so that its COMMIT is still to come. Who lives
            # reads past such a transaction only when that has ended, but there may be nobody else alive.
            await self._none(self._rows.under_way, "transaction %d ends")

    async def _none(self, left: Callable[[int], list[int]], what: str) -> None:
        """Wait until nobody is left of those that `left` finds below the position of now. Raises OSError."""
        began, pause_s, warned = seconds(), LOOK_S, False
        position = await in_thread(self._rows.newest)
        while found := await in_thread(left, position):
            if not warned and seconds() - began > WARN_S:
                warned = True
                log.warning(f"waiting until {what}", found[0])
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LONGEST_LOOK_S)

    # ------------------------------------------------------------------ losing touch, and getting it back

    def _lose(self, why: str) -> None:
        self._renewing.lose()
        self._lost(why)

    def _lost(self, why: str) -> None:
        if self._lost_at is None:
            self._lost_at = min(seconds(), self._presence.until - self._rows.lease_s)
            self._noticed_at = seconds()
            self._back.clear()
            self._renewing.back.clear()
            log.warning("out of touch with the store: %s; answering without memory until it is back", why)
            self._changes.out_of_touch()

    async def _apply(self, heard: Heard) -> None:
        """Let go of what the others changed; after a loss we are then in touch again."""
        async with self._applying:
            page, missed = heard.page, False
            if heard.entered is not None:
                missed = heard.entered.missed
                self._leases.moved(heard.entered.epoch, heard.entered.kept)
            names = self._texts.unseen(page.names)
            if missed:
                log.warning(MISSED)
            if missed or not page.complete:
                names |= self._texts.names()
            try:
                await self._renewed(names)
            except (MemoryFault, OSError) as error:
                log.warning("what other processes changed could not be let go of: %s", error)
                self._renewing.again()
                return
            except Exception:  # a named edge: what was not let go of must not count as read
                log.exception("what other processes changed could not be let go of")
                self._renewing.again()
                return
            self._renewing.applied(heard)
            if self._presence.stale and heard.losses == self._renewing.losses:
                self._presence.stale = False
                self._back.set()
                self._renewing.back.set()
                if self._lost_at is not None:
                    log.warning("in touch with the store again, after %.1f s", seconds() - self._lost_at)
                    self._lost_at = None
                self._changes.back_in_touch()

    def _end(self, entered: Entered) -> None:
        """Write nothing more, and ask nothing: our shards are another process's."""
        self._overtaken = True
        log.warning(MISSED if entered.missed else "nothing that this process writes counts any more")
        self._leases.end()
        self._renewing.back.set()  # nobody has to wait for it

    async def _hide(self) -> None:
        try:
            await in_thread(self._rows.hide)
        except OSError as error:  # the next erasing does it
            log.warning("some names of texts that were erased are left: %s", error)

    def _tell(self, told: Told) -> None:
        """What the thread tells, for the event loop."""
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._hear, told)

    def _hear(self, told: Told) -> None:
        match told:
            case Heard():
                self._begun(self._apply(told))
            case Lost(why):
                self._lost(why)
            case Fewer():
                self._begun(self._hide())
            case Overtaken(entered):
                self._end(entered)

    def _begun(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        task.cancelled() or task.exception()  # retrieved, also if nobody waits for it any more


# ---------------------------------------------------------------------- questions of turns


@dataclass(eq=False, slots=True)
class _Question:
    """The questions of several turns: messages to claim, and texts of which they need the version."""

    answer: "asyncio.Future[Claimed]"
    messages: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


class Asking:
    """Asks with `ask`, which blocks. The store has to answer a statement within `answer_s`."""

    def __init__(
        self, ask: Callable[[Collection[int], Collection[str]], Claimed], *, answer_s: float
    ) -> None:
        self._ask = ask
        self._answer_s = answer_s
        self._threads = Threads(1)
        self._next: _Question | None = None
        self._task: asyncio.Task[None] | None = None

    async def claimed(self, message: int | None, names: Collection[str]) -> Claimed:
        """Claim a message, if one is given, and get the versions of texts; others may be in the answer too.

        Raises OSError, of which TimeoutError.
        """
        if self._next is None:
            self._next = _Question(asyncio.get_running_loop().create_future())
        question = self._next
        question.names.update(names)
        if message is not None:
            question.messages.add(message)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="claims")
        return await asyncio.shield(question.answer)

    async def _run(self) -> None:
        try:
            while (question := self._next) is not None:
                self._next = None
                try:
                    question.answer.set_result(await self._answered(question))
                except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
                    question.answer.set_exception(error)
                    question.answer.exception()  # retrieved, also if nobody waits for it any more
        finally:
            self._task = None

    async def _answered(self, question: _Question) -> Claimed:
        # Ordered, so that two processes that claim the same messages do not wait for each other.
        asked = self._threads.submit(self._ask, sorted(question.messages), question.names)
        waiting = asyncio.wrap_future(asked)
        waiting.add_done_callback(lambda late: late.cancelled() or late.exception())
        await asyncio.wait([waiting], timeout=self._answer_s)
        if not asked.done():  # whatever the event loop knows by now: it may be busy for longer than that
            raise TimeoutError(f"it did not answer within {self._answer_s:g} s")
        return asked.result()

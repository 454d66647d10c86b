"""The desk: every conversation has a queue and runs one job at a time; conversations run concurrently.

Order within a conversation is kept. A job that may run beside others is no longer waited for once it takes
long: by other people's jobs after what a reply waits for a disk, by those of its own person somewhat later.
A queue is bounded, so that a flood is refused with a message instead of queued without end; the number of
jobs running at once is bounded too. A conversation's worker starts with its first job and ends with its last
one. Independent of what a job does.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from discoclaw.core.values import dataclass, field
from discoclaw.work import Jobs

log = logging.getLogger(__name__)

OTHERS_WAIT_S = 2.0
"""The longest that other people's jobs wait for one that may run beside them: as long as for a disk."""
OWN_WAIT_S = 10.0
"""The longest that a person's next job waits for it: five times that, since it may rest on the outcome."""
MOST_BESIDE = 5
"""The most jobs of one person that run beside others in a conversation; beyond that the next one waits."""
WORD_S = 2.0
"""Time for a last word to people (the `dropped` calls) when closing took all of its own."""
END_S = 0.5
"""Time in which what is cancelled without a last word has to end."""


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Job:
    """`run` does the work; `dropped` is awaited instead if the desk closes before the work could start.

    `by` is whose job it is. With `beside` it may go on beside later jobs if it takes long. It waits `since`
    then (loop time).
    """

    run: Callable[[], Awaitable[None]]
    dropped: Callable[[], Awaitable[None]]
    by: str = ""
    beside: bool = False
    since: float = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class _Beside:
    """A job that goes on beside the others; its person's next jobs wait `until` then (loop time)."""

    by: str
    until: float


@dataclass(slots=True, eq=False)
class _Queue:
    """A conversation's waiting jobs, and those that go on beside them."""

    waiting: deque[Job] = field(default_factory=deque)
    beside: dict[asyncio.Task[None], _Beside] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def holds_up(self, by: str) -> bool:
        """Whether a person's next job has to wait for their own."""
        own = [one for one in self.beside.values() if one.by == by]
        now = _now()
        return len(own) >= MOST_BESIDE or any(now < one.until for one in own)

    @property
    def ready(self) -> bool:
        """Whether there is a job that does not have to wait for another one of its person."""
        return any(not self.holds_up(job.by) for job in self.waiting)

    def next(self) -> Job:
        """Take the first job that is ready; there is one."""
        job = next(one for one in self.waiting if not self.holds_up(one.by))
        self.waiting.remove(job)
        return job

    def in_the_way(self, job: Job) -> int:
        """How many jobs a new one waits for: those of people who are held up don't delay the others."""
        held = self.holds_up(job.by)
        return sum(self.holds_up(one.by) == held for one in self.waiting)

    async def change(self) -> None:
        """Wait until there is something to do: a job is new, has ended, or was waited for long enough."""
        self.changed.clear()
        loop = asyncio.get_running_loop()
        times = [one.until for one in self.beside.values() if one.until > loop.time()]
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(times, default=None)):
                await self.changed.wait()


class Desk:
    """Up to `waiting_limit` jobs wait in each conversation; up to `running_limit` run at once in total."""

    def __init__(self, *, waiting_limit: int = 20, running_limit: int = 16) -> None:
        self._jobs = Jobs("answers", due=lambda: self.waiting > 0, waiting=lambda: self.waiting)
        self._waiting_limit = waiting_limit
        self._slots = asyncio.Semaphore(running_limit)
        self._queues: dict[str, _Queue] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    def submit(self, session_key: str, job: Job) -> bool:
        """Queue a job. Returns False if the conversation's queue is full or the desk is closed."""
        queue = self._queues.get(session_key) or _Queue()
        if self._closed or queue.in_the_way(job) >= self._waiting_limit:
            return False
        if not self._workers:
            self._jobs.moved()
        queue.waiting.append(job)
        queue.changed.set()
        if session_key not in self._workers:
            self._queues[session_key] = queue
            worker = asyncio.create_task(self._work(session_key, queue), name=f"desk {session_key}")
            self._workers[session_key] = worker
        return True

    @property
    def closed(self) -> bool:
        return self._closed

    def busy(self) -> int:
        """How many conversations have a job running or waiting."""
        return len(self._workers)

    @property
    def waiting(self) -> int:
        """How many jobs have not begun."""
        return sum(len(queue.waiting) for queue in self._queues.values())

    @property
    def oldest_s(self) -> float:
        """For how long (s) the job that has waited longest has been waiting; 0 if none waits."""
        since = [job.since for queue in self._queues.values() for job in queue.waiting]
        return _now() - min(since) if since else 0.0

    async def settle(self) -> None:
        """Wait until every queue is empty."""
        while self._workers:
            await asyncio.wait(list(self._workers.values()))

    async def close(self, grace_s: float = 20.0) -> None:
        """Accept no more jobs and finish the waiting ones, within `grace_s`.

        After that, running jobs are cancelled (a job may catch that and report it), and `dropped` is called
        for those that have not started.
        """
        self._closed = True
        self._jobs.ended()
        if not self._workers:
            return
        _, late = await asyncio.wait(list(self._workers.values()), timeout=grace_s)
        for worker in late:
            worker.cancel()
        if late:
            _, stuck = await asyncio.wait(late, timeout=WORD_S)
            # Also what goes on beside a queue: what it speaks through is closed next.
            stuck |= {task for queue in self._queues.values() for task in queue.beside}
            for task in stuck:
                task.cancel()
            if stuck:
                await asyncio.wait(stuck, timeout=END_S)

    async def _work(self, session_key: str, queue: _Queue) -> None:
        try:
            while queue.waiting or queue.beside:
                if not queue.ready:
                    await queue.change()
                    continue
                async with self._slots:
                    await self._run(session_key, queue, queue.next())
        except asyncio.CancelledError:
            beside = list(queue.beside)
            for task in beside:
                task.cancel()
            for job in queue.waiting:
                await self._attempt(session_key, job.dropped)
            if beside:
                await asyncio.wait(beside)
            raise
        finally:
            del self._workers[session_key]
            del self._queues[session_key]

    async def _run(self, session_key: str, queue: _Queue, job: Job) -> None:
        """Run a job to its end, or until it goes on beside the others."""
        if not job.beside:
            await self._take(session_key, job)
            return
        task = asyncio.create_task(self._take(session_key, job), name=f"desk {session_key}")
        queue.beside[task] = _Beside(job.by, _now() + OWN_WAIT_S)
        task.add_done_callback(queue.beside.pop)
        task.add_done_callback(lambda _: queue.changed.set())
        await asyncio.wait([task], timeout=OTHERS_WAIT_S)

    async def _take(self, session_key: str, job: Job) -> None:
        async def run() -> None:
            with self._jobs.counted():
                await job.run()

        await self._attempt(session_key, run)

    @staticmethod
    async def _attempt(session_key: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:  # deliberately broad: one failing job must not stop its conversation
            log.exception("%s: a job failed", session_key)


# ----------------------------------------------------------------------
# Slots for what takes long: so many at once, and of each person only so many, so that nobody takes all.
#
# Who waits does so in the order in which they came. Knows nothing of what is done in a slot.


@dataclass(eq=False)
class Own:
    """A person's own slots, while something of theirs is under way or waits. `spent`: what that took (s)."""

    free: asyncio.Semaphore
    users: int = 0
    spent: float = 0.0


class Slots:
    """`at_once` slots, of which a person has up to `each`."""

    def __init__(self, at_once: int, each: int = 1) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._each = each
        self._own: dict[str, Own] = {}

    def busy(self, user_id: str) -> bool:
        """Whether a person would have to wait."""
        own = self._own.get(user_id)
        return self._free.locked() or (own is not None and own.free.locked())

    @asynccontextmanager
    async def of(self, user_id: str) -> AsyncGenerator[Own, None]:
        """Wait for a slot, and have it."""
        own = self._own.setdefault(user_id, Own(asyncio.Semaphore(self._each)))
        own.users += 1
        try:
            async with own.free, self._free:
                yield own
        finally:
            own.users -= 1
            if not own.users:
                del self._own[user_id]

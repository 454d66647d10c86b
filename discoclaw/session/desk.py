"""The desk: every conversation has a queue and runs one job at a time; conversations run concurrently.

Order within a conversation is kept. A queue is bounded, so that a flood is refused with a message instead of
queued without end; the number of jobs running at once is bounded too. A conversation's worker starts with its
first job and ends with its last one. Independent of what a job does.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """`run` does the work; `dropped` is awaited instead if the desk closes before the work could start."""

    run: Callable[[], Awaitable[None]]
    dropped: Callable[[], Awaitable[None]]


WORD_S = 2.0
"""Time for the `dropped` calls when closing took all of its own."""


class Desk:
    """Up to `waiting_limit` jobs wait in each conversation; up to `running_limit` run at once in total."""

    def __init__(self, *, waiting_limit: int = 20, running_limit: int = 16) -> None:
        self._waiting_limit = waiting_limit
        self._slots = asyncio.Semaphore(running_limit)
        self._queues: dict[str, deque[Job]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    def submit(self, session_key: str, job: Job) -> bool:
        """Queue a job. Returns False if the conversation's queue is full or the desk is closed."""
        queue = self._queues.get(session_key, deque())
        if self._closed or len(queue) >= self._waiting_limit:
            return False
        queue.append(job)
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
        if not self._workers:
            return
        _, late = await asyncio.wait(list(self._workers.values()), timeout=grace_s)
        for worker in late:
            worker.cancel()
        if late:
            _, stuck = await asyncio.wait(late, timeout=WORD_S)
            for worker in stuck:
                worker.cancel()

    async def _work(self, session_key: str, queue: deque[Job]) -> None:
        try:
            while queue:
                async with self._slots:
                    await self._attempt(session_key, queue.popleft().run)
        except asyncio.CancelledError:
            for job in queue:
                await self._attempt(session_key, job.dropped)
            raise
        finally:
            del self._workers[session_key]
            del self._queues[session_key]

    @staticmethod
    async def _attempt(session_key: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:  # deliberately broad: one failing job must not stop its conversation
            log.exception("%s: a job failed", session_key)

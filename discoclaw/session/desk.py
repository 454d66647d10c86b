"""The desk: every conversation has its queue; one job at a time in each, conversations side by side.

Order within a conversation is kept. A queue is bounded, so that a flood is refused with a word rather than
remembered for ever; so is the number of jobs running at once. A conversation's worker starts with its
first job and ends with its last one. Knows nothing about what a job does.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """`run` is the work; `dropped` is awaited instead when the desk closes before the work could start."""

    run: Callable[[], Awaitable[None]]
    dropped: Callable[[], Awaitable[None]]


WORD_S = 2.0
"""Time to say what was dropped, when closing left none."""


class Desk:
    """`waiting_limit` jobs may wait in one conversation; `running_limit` run at once in all of them."""

    def __init__(self, *, waiting_limit: int = 20, running_limit: int = 16) -> None:
        self._waiting_limit = waiting_limit
        self._slots = asyncio.Semaphore(running_limit)
        self._queues: dict[str, deque[Job]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    def submit(self, session_key: str, job: Job) -> bool:
        """Queue a job. False when the conversation's queue is full or the desk is closed."""
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
        """Take no more jobs and finish those that wait, within `grace_s`.

        After that, what runs is cancelled (a job may catch that and say so), and what has not started is
        dropped with its word.
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
        except Exception:  # a named edge: one job's fault must not stop its conversation
            log.exception("%s: a job failed", session_key)

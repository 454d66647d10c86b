"""What hangs is found: in each worker, whoever made it, and without listing it anywhere.

Time is that of an event loop whose clock jumps to the next timer.
"""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from discoclaw.core.errors import MemoryFault
from discoclaw.work import MOST_S, Work, Worker, at_work, reason_of
from tests.test_work import Job, on_a_jumping_clock, passes

MEANS = "memory cannot be read or written (disk full, permission, damage)"


def only() -> Work:
    """The only work in this event loop."""
    [found] = at_work()
    return found


def state(work: Work) -> str:
    return found.state if (found := work.finding()) is not None else "good"


class TestAWorker:
    @on_a_jumping_clock
    async def test_that_hangs_is_found_once_its_job_takes_too_long(self) -> None:
        job = Job()
        job.gates["a"] = asyncio.Event()
        worker = Worker("test", job)
        worker.note("a")
        worker.note("b")
        await passes(MOST_S)
        assert (only().hangs, only().running, only().waiting) == (False, 1, 1)
        await passes(1)
        assert only().hangs
        finding = only().finding()
        assert finding is not None
        assert (finding.name, finding.state) == ("test", "bad")
        assert finding.text == "a job has got nowhere for 15 min"
        job.gates.pop("a").set()
        await worker.settle()
        assert (state(only()), only().done, only().running) == ("good", 2, 0)

    @on_a_jumping_clock
    async def test_may_say_that_its_jobs_take_longer(self) -> None:
        job = Job()
        job.gates["a"] = asyncio.Event()
        worker = Worker("test", job, most_s=2 * MOST_S)
        worker.note("a")
        await passes(MOST_S + 1)
        assert not only().hangs
        await passes(MOST_S)
        assert only().hangs
        await worker.close()

    @on_a_jumping_clock
    async def test_that_hangs_in_what_follows_its_runs_is_found(self) -> None:
        forever = asyncio.Event()

        async def idle(keys: object) -> None:
            await forever.wait()

        worker = Worker("test", Job(), idle=idle)
        worker.note("a")
        await passes(MOST_S + 1)
        assert only().hangs
        forever.set()
        await worker.settle()
        assert not only().hangs

    @on_a_jumping_clock
    async def test_whose_task_is_gone_leaves_what_is_due_and_is_found(self) -> None:
        worker = Worker("test", Job(), at_once=0)
        worker.note("a")
        await passes(MOST_S + 1)
        finding = only().finding()
        assert finding is not None
        assert (finding.state, finding.text) == ("bad", "a job has been due for 15 min and doesn't start")
        await worker.close()

    @on_a_jumping_clock
    async def test_that_waits_for_another_process_is_not_blamed(self) -> None:
        given = asyncio.Event()

        @asynccontextmanager
        async def lease(key: str) -> AsyncIterator[None]:
            await given.wait()
            yield

        worker = Worker("test", Job(), lease=lease)
        worker.note("a")
        await passes(MOST_S + 1)
        assert (state(only()), only().hangs) == ("warning", False)
        given.set()
        await worker.settle()
        assert state(only()) == "good"

    @on_a_jumping_clock
    async def test_that_fails_is_a_warning_until_it_works(self) -> None:
        job = Job()
        job.failures["a"] = [OSError(errno.ENOSPC, "No space", "/data/user-1.json"), MemoryFault("user-1")]
        worker = Worker("test", job, retry_s=30)
        worker.note("a")
        await passes(1)
        finding = only().finding()
        assert finding is not None
        assert (finding.state, finding.text) == ("warning", "a job failed: no space left on device")
        await passes(30)
        assert (only().failing, only().failed, only().reason) == (1, 2, MEANS)
        await passes(60)
        assert (state(only()), only().failing, only().done) == ("good", 0, 1)
        await worker.close()

    @on_a_jumping_clock
    async def test_that_is_closed_is_not_looked_at_any_more(self) -> None:
        worker = Worker("test", Job())
        worker.note("a")
        await worker.close()
        assert at_work() == []


class TestAReason:
    def test_names_neither_files_nor_people(self) -> None:
        fault = MemoryFault("can't write data/memory/ledger/user-1.jsonl")
        fault.__cause__ = PermissionError(errno.EACCES, "Permission denied", "user-1.jsonl")
        assert reason_of(fault) == "permission denied"
        assert reason_of(MemoryFault("user-1")) == MEANS
        assert reason_of(OSError("user-1")) == "OSError"

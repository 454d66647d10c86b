"""The background worker: what was noted is run, in its time, never twice at once, and nothing is missed.

Time is that of an event loop whose clock jumps to the next timer, so pauses of an hour take no time.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from functools import wraps
from typing import Any, ParamSpec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.errors import DiscoClawError, EmbeddingUnavailable, MemoryFault
from discoclaw.core.ports import Service
from discoclaw.work import Worker
from tests.examples import MANY

P = ParamSpec("P")


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop that never sleeps: with nothing to do it is the time of the next timer."""

    def __init__(self) -> None:
        self._present = 1_000.0
        super().__init__()

    def time(self) -> float:
        return self._present

    def _run_once(self) -> None:
        if not self._ready:
            timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]
            if not timers:
                raise RuntimeError("nothing will ever happen again")
            self._present = max(self._present, min(timers))
        super()._run_once()


def on_a_jumping_clock(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on a loop whose clock jumps."""

    @wraps(test)
    def run(*args: P.args, **given: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(test(*args, **given))

    return run


class Job:
    """What a worker runs: notes what is run and when, fails as scripted, and waits where a gate is shut."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.times: list[float] = []
        self.ended: list[str] = []
        self.failures: dict[str, list[BaseException]] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.during: Callable[[str], None] = lambda key: None
        self.at_once: Counter[str] = Counter()
        self.most_at_once = 0
        self._start = asyncio.get_running_loop().time()

    async def __call__(self, key: str) -> None:
        self.runs.append(key)
        self.times.append(asyncio.get_running_loop().time() - self._start)
        self.at_once[key] += 1
        assert self.at_once[key] == 1, f"{key} runs twice at the same time"
        self.most_at_once = max(self.most_at_once, self.at_once.total())
        try:
            if (gate := self.gates.get(key)) is not None:
                await gate.wait()
            else:
                await asyncio.sleep(0)
            self.during(key)
            if failures := self.failures.get(key):
                raise failures.pop(0)
        finally:
            self.at_once[key] -= 1
        self.ended.append(key)


async def passes(seconds: float) -> None:
    """Time passes."""
    await asyncio.sleep(seconds)


class TestNoting:
    @on_a_jumping_clock
    async def test_is_followed_by_a_run_in_the_order_of_the_notes(self) -> None:
        job = Job()
        worker = Worker("test", job)
        for key in ("b", "a", "c"):
            worker.note(key)
        assert job.runs == []  # nobody who notes something waits for it
        await worker.settle()
        assert job.ended == ["b", "a", "c"]

    @on_a_jumping_clock
    async def test_the_same_before_its_run_is_one_run(self) -> None:
        job = Job()
        worker = Worker("test", job)
        for _ in range(5):
            worker.note("a")
            worker.note("b")
        await worker.settle()
        assert job.runs == ["a", "b"]

    @on_a_jumping_clock
    async def test_during_its_run_is_one_more_run_behind_it(self) -> None:
        job = Job()
        worker = Worker("test", job)
        job.gates["a"] = asyncio.Event()
        worker.note("a")
        await passes(1)
        for _ in range(3):
            worker.note("a")
        job.gates.pop("a").set()
        await worker.settle()
        assert job.runs == ["a", "a"]

    @on_a_jumping_clock
    async def test_from_within_the_run_too(self) -> None:
        job = Job()
        worker = Worker("test", job)
        job.during = lambda key: worker.note("a") if len(job.runs) < 4 else None
        worker.note("a")
        await worker.settle()
        assert job.runs == ["a"] * 4

    @on_a_jumping_clock
    async def test_for_later_waits_and_settling_does_not(self) -> None:
        job = Job()
        worker = Worker("test", job)
        worker.note("a", 10.0)
        await worker.settle()
        assert (job.runs, worker.waiting) == ([], 1)
        await passes(11)
        assert job.times == [10.0]

    @on_a_jumping_clock
    async def test_for_later_counts_from_the_first_note_and_an_earlier_one_wins(self) -> None:
        job = Job()
        worker = Worker("test", job)
        worker.note("a", 10.0)
        await passes(4)
        worker.note("a", 10.0)  # within ten seconds of the first change, however many follow
        worker.note("b", 10.0)
        worker.note("b", 2.0)
        worker.note("c", 10.0)
        worker.note("c")
        await passes(100)
        assert list(zip(job.runs, job.times, strict=True)) == [("c", 4.0), ("b", 6.0), ("a", 10.0)]

    @on_a_jumping_clock
    async def test_for_later_during_a_run_is_a_run_of_its_own(self) -> None:
        job = Job()
        worker = Worker("test", job)
        job.gates["a"] = asyncio.Event()
        worker.note("a")
        await passes(1)
        worker.note("a", 5.0)
        await passes(1)
        job.gates.pop("a").set()
        await passes(10)
        assert job.times == [0.0, 6.0]
        job.gates["a"] = asyncio.Event()
        worker.note("a")
        await passes(1)
        worker.note("a", 5.0)  # which comes while the run is still at work
        await passes(10)
        job.gates.pop("a").set()
        await worker.settle()
        assert job.times[2:] == [12.0, 23.0]

    @on_a_jumping_clock
    async def test_urgent_is_before_all_others_in_the_order_of_these_notes(self) -> None:
        job = Job()
        worker = Worker("test", job)
        for key, first in (("a", False), ("b", True), ("c", False), ("d", True), ("c", True)):
            worker.note(key, first=first)
        worker.note("b")
        await worker.settle()
        assert job.runs == ["b", "d", "c", "a"]

    @on_a_jumping_clock
    async def test_urgent_during_its_run_is_before_all_others_too(self) -> None:
        job = Job()
        worker = Worker("test", job)
        job.gates["a"] = asyncio.Event()
        worker.note("a")
        await passes(1)
        worker.note("b")
        worker.note("a", first=True)
        worker.note("a")
        job.gates.pop("a").set()
        await worker.settle()
        assert job.runs == ["a", "a", "b"]

    @on_a_jumping_clock
    async def test_the_same_does_not_start_twice_within_the_gap(self) -> None:
        job = Job()
        worker = Worker("test", job, gap_s=60.0)
        worker.note("a")
        await worker.settle()
        worker.note("a", first=True)
        worker.note("b")
        await worker.settle()
        assert (job.runs, worker.waiting) == (["a", "b"], 1)
        await passes(61)
        assert job.times == [0.0, 0.0, 60.0]
        worker.note("a")
        worker.hurry()  # whoever asks for everything doesn't wait for a gap
        await worker.settle()
        assert job.times[3:] == [61.0]

    @on_a_jumping_clock
    async def test_the_gap_holds_among_thousands_of_others(self) -> None:
        job = Job()
        worker = Worker("test", job, gap_s=60.0)
        for number in range(1_001):
            worker.note(str(number))
        await worker.settle()
        worker.note("5")
        await worker.settle()
        assert (job.runs.count("5"), worker.waiting) == (1, 1)

    @on_a_jumping_clock
    async def test_only_recent_starts_are_remembered_for_the_gap(self) -> None:
        job = Job()
        worker = Worker("test", job, gap_s=1.0)
        for number in range(3_000):
            worker.note(str(number))
            await passes(0.01)
        await worker.settle()
        assert len(job.runs) == 3_000
        assert len(worker._begun) <= 1_001


class TestSideBySide:
    @pytest.mark.parametrize("limit", [1, 3])
    @on_a_jumping_clock
    async def test_so_many_keys_and_no_more(self, limit: int) -> None:
        job = Job()
        worker = Worker("test", job, at_once=limit)
        for number in range(10):
            worker.note(str(number))
        await worker.settle()
        assert job.most_at_once == limit
        assert sorted(job.ended) == [str(number) for number in range(10)]

    @on_a_jumping_clock
    async def test_a_key_that_takes_long_holds_up_no_other(self) -> None:
        job = Job()
        worker = Worker("test", job, at_once=2)
        job.gates["slow"] = asyncio.Event()
        worker.note("slow")
        for number in range(3):
            worker.note(str(number))
            await passes(1)
        assert job.ended == ["0", "1", "2"]
        job.gates["slow"].set()
        await worker.settle()
        assert job.ended[-1] == "slow"

    @on_a_jumping_clock
    async def test_one_that_ends_makes_room_for_one_that_is_noted_in_that_moment(self) -> None:
        job = Job()
        worker = Worker("test", job)
        for turns in range(6):
            worker.note("a")
            for _ in range(turns):
                await asyncio.sleep(0)
            worker.note("b")
            await worker.settle()
        assert Counter(job.runs)["b"] == 6


class TestFailures:
    @on_a_jumping_clock
    async def test_are_tried_again_after_pauses_that_double_up_to_a_limit(self) -> None:
        job = Job()
        worker = Worker("test", job, retry_s=30.0, longest_s=100.0)
        job.failures["a"] = [MemoryFault("disk full") for _ in range(5)]
        worker.note("a")
        await passes(1_000)
        assert job.times == [0.0, 30.0, 90.0, 190.0, 290.0, 390.0]
        assert job.ended == ["a"]

    @on_a_jumping_clock
    async def test_begin_with_the_first_pause_again_once_it_has_worked(self) -> None:
        job = Job()
        worker = Worker("test", job, retry_s=30.0)
        job.failures["a"] = [OSError("disk full"), OSError("disk full")]
        worker.note("a")
        await passes(100)
        job.failures["a"] = [OSError("disk full")]
        worker.note("a")
        await passes(100)
        assert job.times == [0.0, 30.0, 90.0, 100.0, 130.0]

    @on_a_jumping_clock
    async def test_wait_alone(self) -> None:
        job = Job()
        worker = Worker("test", job)
        job.failures["a"] = [ValueError("a mistake")]
        for key in ("a", "b"):
            worker.note(key)
        await worker.settle()
        assert (job.ended, worker.waiting) == (["b"], 1)
        worker.note("c")
        await worker.settle()
        assert job.ended == ["b", "c"]

    @on_a_jumping_clock
    async def test_are_not_tried_earlier_for_a_note_and_the_note_is_not_missed(self) -> None:
        job = Job()
        worker = Worker("test", job, retry_s=30.0)
        job.failures["a"] = [OSError("no")]
        worker.note("a")
        await passes(1)
        worker.note("a")
        worker.note("a", 5.0)
        worker.note("a", 500.0)
        await passes(1_000)
        assert job.times == [0.0, 30.0]

    @on_a_jumping_clock
    async def test_take_along_what_was_noted_during_the_run(self) -> None:
        job = Job()
        worker = Worker("test", job, retry_s=30.0)
        job.failures["a"] = [OSError("no")]
        job.during = lambda key: worker.note("a") if len(job.runs) == 1 else None
        worker.note("a")
        await passes(1_000)
        assert job.times == [0.0, 30.0]

    @on_a_jumping_clock
    async def test_are_tried_at_once_where_somebody_waits_for_it(self) -> None:
        job = Job()
        worker = Worker("test", job, retry_s=30.0)
        job.failures["a"], job.failures["b"] = [OSError("no")], [OSError("no")]
        for key in ("a", "b"):
            worker.note(key)
        await worker.settle()
        worker.note("a", first=True)
        await worker.settle()
        assert job.ended == ["a"]
        worker.hurry()
        await worker.settle()
        assert job.ended == ["a", "b"]
        assert (job.times, worker.waiting) == ([0.0] * 4, 0)

    @on_a_jumping_clock
    async def test_wait_longer_where_the_error_asks_for_it(self) -> None:
        job = Job()
        worker = Worker("test", job, retry_s=5.0, longest_s=600.0)
        asked = (1.0, 50.0, 99_999.0)
        job.failures["a"] = [EmbeddingUnavailable("slow down", after_s=after_s) for after_s in asked]
        worker.note("a")
        await passes(2_000)
        assert job.times == [0.0, 5.0, 55.0, 655.0]

    @on_a_jumping_clock
    async def test_wait_for_the_next_note_where_nothing_is_tried_again(self) -> None:
        job = Job()
        worker = Worker("test", job, retry_s=None)
        job.failures["a"] = [OSError("no"), OSError("no")]
        worker.note("a")
        await passes(10_000)
        assert (job.runs, worker.waiting) == (["a"], 0)
        job.during = lambda key: worker.note("a") if len(job.runs) == 2 else None
        worker.note("a")
        await worker.settle()
        assert (len(job.runs), job.ended) == (3, ["a"])

    @on_a_jumping_clock
    async def test_that_we_expect_are_one_warning_until_it_works(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        job = Job()
        worker = Worker("writer", job, retry_s=30.0)
        job.failures["a"] = [OSError("full"), MemoryFault("full"), OSError("full")]
        worker.note("a")
        await passes(1_000)
        job.failures["a"] = [DiscoClawError("broken")]
        worker.note("a")
        await passes(1_000)
        assert caplog.messages == [
            "writer: a failed, next try in 30 s: full",
            "writer: a works again",
            "writer: a failed, next try in 30 s: broken",
            "writer: a works again",
        ]
        assert all(record.exc_info is None for record in caplog.records)

    @on_a_jumping_clock
    async def test_that_nobody_expects_are_logged_with_their_traceback_each_time(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        job = Job()
        worker = Worker("writer", job, retry_s=30.0)
        job.failures["a"] = [ValueError("a mistake"), ValueError("a mistake")]
        worker.note("a")
        await passes(1_000)
        assert job.ended == ["a"]
        assert [record.exc_info is not None for record in caplog.records] == [True, True]
        assert "ValueError: a mistake" in caplog.text

    @on_a_jumping_clock
    async def test_of_something_that_was_cancelled_inside_stop_no_other_key(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        job = Job()
        worker = Worker("test", job, retry_s=30.0)
        job.failures["a"] = [asyncio.CancelledError("its executor was shut down")]
        for key in ("a", "b"):
            worker.note(key)
        await passes(31)
        assert job.ended == ["b", "a"]
        assert "a was cancelled, next try in 30 s" in caplog.text


class Idle:
    """What follows the runs."""

    def __init__(self) -> None:
        self.reported: list[list[str]] = []
        self.gate: asyncio.Event | None = None
        self.fails = 0

    async def __call__(self, keys: Collection[str]) -> None:
        if self.gate is not None:
            await self.gate.wait()
        self.reported.append(sorted(keys))
        if self.fails > 0:
            self.fails -= 1
            raise OSError("disk full")


class TestBecomingIdle:
    @on_a_jumping_clock
    async def test_is_reported_once_with_all_that_was_done(self) -> None:
        job, idle = Job(), Idle()
        worker = Worker("test", job, at_once=2, idle=idle)
        job.failures["bad"] = [OSError("no")]
        for key in ("a", "bad", "b", "c", "a"):
            worker.note(key)
        await worker.settle()
        assert idle.reported == [["a", "b", "c"]]
        await passes(31)
        assert idle.reported == [["a", "b", "c"], ["bad"]]

    @on_a_jumping_clock
    async def test_is_not_reported_when_nothing_worked(self) -> None:
        job, idle = Job(), Idle()
        worker = Worker("test", job, idle=idle)
        job.failures["a"] = [OSError("no")]
        worker.note("a")
        await worker.settle()
        assert idle.reported == []

    @pytest.mark.parametrize("limit", [1, 2])
    @on_a_jumping_clock
    async def test_is_awaited_and_what_is_noted_meanwhile_is_run_and_reported_too(self, limit: int) -> None:
        job, idle = Job(), Idle()
        worker = Worker("test", job, at_once=limit, idle=idle)
        idle.gate = asyncio.Event()
        worker.note("a")
        settling = asyncio.create_task(worker.settle())
        await passes(1)
        worker.note("b")
        await passes(1)
        assert not settling.done()
        idle.gate.set()
        await settling
        assert idle.reported == [["a"], ["b"]]

    @on_a_jumping_clock
    async def test_that_fails_is_logged_and_the_runs_go_on(self, caplog: pytest.LogCaptureFixture) -> None:
        job, idle = Job(), Idle()
        worker = Worker("test", job, idle=idle)
        idle.fails = 1
        for key in ("a", "b"):
            worker.note(key)
            await worker.settle()
        assert idle.reported == [["a"], ["b"]]
        assert "disk full" in caplog.text

    @pytest.mark.parametrize("where", ["in a run", "in what follows"])
    @on_a_jumping_clock
    async def test_is_reported_when_we_stop_in_the_middle(self, where: str) -> None:
        job, idle = Job(), Idle()
        worker = Worker("test", job, idle=idle)
        worker.note("a")
        if where == "in a run":
            job.gates["b"] = asyncio.Event()
            worker.note("b")
        else:
            idle.gate = asyncio.Event()
        await passes(1)
        assert idle.reported == []
        closing = asyncio.create_task(worker.close(1.0))
        await passes(2)
        if idle.gate is not None:
            idle.gate.set()
        await closing
        assert idle.reported == [["a"]]


class TestSettling:
    @on_a_jumping_clock
    async def test_waits_for_some_keys_only(self) -> None:
        job = Job()
        worker = Worker("test", job, at_once=2)
        job.gates["slow"] = asyncio.Event()
        for key in ("slow", "a", "b"):
            worker.note(key)
        assert worker.busy("a") and not worker.busy("other")
        await worker.settle("a", "b", "other")
        assert job.ended == ["a", "b"]
        assert worker.busy("slow") and not worker.busy("a")
        job.gates["slow"].set()
        await worker.settle("slow")
        assert "slow" in job.ended

    @on_a_jumping_clock
    async def test_of_a_key_waits_for_the_run_behind_the_one_at_work(self) -> None:
        job = Job()
        worker = Worker("test", job)
        job.during = lambda key: worker.note("a") if len(job.runs) < 3 else None
        worker.note("a")
        await worker.settle("a")
        assert job.ended == ["a"] * 3

    @on_a_jumping_clock
    async def test_with_nothing_to_do_returns(self) -> None:
        job = Job()
        worker = Worker("test", job)
        await worker.start()
        await worker.settle()
        await worker.settle("a")
        assert (job.runs, worker.waiting) == ([], 0)


class TestClosing:
    @on_a_jumping_clock
    async def test_finishes_what_is_due_within_the_grace(self) -> None:
        job = Job()
        worker = Worker("test", job)
        for key in ("a", "b"):
            worker.note(key)
        worker.note("later", 1.0)
        await worker.close()
        assert job.ended == ["a", "b"]
        await passes(100)
        assert (job.ended, worker.waiting) == (["a", "b"], 0)

    @on_a_jumping_clock
    async def test_stops_what_takes_longer_and_what_stands_behind_it(self) -> None:
        job = Job()
        worker = Worker("test", job)
        job.gates["slow"] = asyncio.Event()
        for key in ("slow", "b", "slow"):
            worker.note(key)
        began = asyncio.get_running_loop().time()
        await worker.close(3.0)
        assert asyncio.get_running_loop().time() == began + 3.0
        assert (job.runs, job.ended, job.at_once["slow"]) == (["slow"], [], 0)

    @pytest.mark.parametrize("steps", range(4))
    @on_a_jumping_clock
    async def test_without_a_grace_stops_at_once_wherever_it_is(self, steps: int) -> None:
        job = Job()
        worker = Worker("test", job)
        job.gates["slow"] = asyncio.Event()
        worker.note("slow")
        waiting = asyncio.create_task(worker.settle("slow"))
        for _ in range(steps):
            await asyncio.sleep(0)
        await worker.close(0)
        await asyncio.wait_for(waiting, 1)
        await worker.settle()
        assert job.ended == []

    @on_a_jumping_clock
    async def test_ends_the_pause_after_a_failure(self) -> None:
        job = Job()
        worker = Worker("test", job)
        job.failures["a"] = [OSError("no"), OSError("no")]
        worker.note("a")
        await worker.settle()
        await worker.close()
        await passes(10_000)
        assert job.runs == ["a"]

    @on_a_jumping_clock
    async def test_twice_or_without_a_start_is_no_different(self) -> None:
        job = Job()
        worker = Worker("test", job)
        await worker.close()
        worker.note("a")
        worker.note("b", 1.0)
        worker.note("c", first=True)
        worker.hurry()
        await passes(10)
        await worker.settle()
        await worker.close()
        assert (job.runs, worker.waiting) == ([], 0)

    @on_a_jumping_clock
    async def test_a_worker_is_a_service(self) -> None:
        job = Job()
        worker = Worker("test", job)
        service: Service = worker
        await service.start()
        worker.note("a")
        await service.settle()
        assert job.ended == ["a"]
        await service.close()
        worker.note("b")
        await service.settle()
        assert job.ended == ["a"]


KEYS = "abc"
notes = st.tuples(
    st.sampled_from(KEYS), st.sampled_from([0.0, 0.0, 1.0, 40.0]), st.booleans(), st.integers(0, 3)
)


class TestWhateverHappens:
    @MANY
    @given(
        given_notes=st.lists(notes, max_size=25),
        steps=st.lists(st.integers(0, 4), min_size=1, max_size=8),
        failing=st.lists(st.booleans(), max_size=12),
        limit=st.integers(1, 3),
        gap_s=st.sampled_from([0.0, 2.0]),
    )
    @on_a_jumping_clock
    async def test_no_note_is_missed_and_no_key_runs_twice_at_once(
        self,
        given_notes: list[tuple[str, float, bool, int]],
        steps: list[int],
        failing: list[bool],
        limit: int,
        gap_s: float,
    ) -> None:
        """A run sees what was noted before it began: in the end each key's last note was seen."""

        logging.disable(logging.CRITICAL)
        try:
            noted: Counter[str] = Counter()
            seen: Counter[str] = Counter()
            reported: set[str] = set()
            running: set[str] = set()
            runs = 0

            async def run(key: str) -> None:
                nonlocal runs
                number, runs = runs, runs + 1
                assert key not in running
                running.add(key)
                assert len(running) <= limit
                sees = noted[key]
                try:
                    for _ in range(steps[number % len(steps)]):
                        await asyncio.sleep(0)
                    if number < len(failing) and failing[number]:
                        raise OSError("disk full")
                finally:
                    running.discard(key)
                seen[key] = sees

            async def idle(keys: Collection[str]) -> None:
                assert running == set()
                reported.update(keys)

            worker = Worker("test", run, at_once=limit, gap_s=gap_s, retry_s=3.0, idle=idle)
            for key, after_s, first, pause in given_notes:
                noted[key] += 1
                worker.note(key, after_s, first=first)
                for _ in range(pause):
                    await asyncio.sleep(0)
            await worker.settle()
            assert running == set()
            await passes(100_000)
            assert seen == noted
            assert reported == set(noted)
            assert worker.waiting == 0
        finally:
            logging.disable(logging.NOTSET)

"""The desk: order within a conversation, conversations side by side, and an end without loose ones."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from discoclaw.core.errors import ChatUnavailable
from discoclaw.jobs import at_work
from discoclaw.session.desk import WORD_S, Desk, Job
from tests.session.scene import until


class Work:
    """Jobs that note what happens to them. A named gate holds a job until it is opened."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.running = 0
        self.most = 0

    def job(
        self,
        name: str,
        *,
        held: bool = False,
        fails: BaseException | None = None,
        by: str = "",
        beside: bool = False,
    ) -> Job:
        if held:
            self.gates[name] = asyncio.Event()

        async def run() -> None:
            self.log.append(f"{name} begins")
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(0)
                if held:
                    await self.gates[name].wait()
                if fails is not None:
                    raise fails
                self.log.append(f"{name} ends")
            except asyncio.CancelledError:
                self.log.append(f"{name} cancelled")
                raise
            finally:
                self.running -= 1

        return Job(run, self.noting(f"{name} dropped"), by, beside)

    def noting(self, line: str) -> Callable[[], Awaitable[None]]:
        async def note() -> None:
            self.log.append(line)

        return note


class TestOrder:
    async def test_a_conversations_jobs_run_one_after_the_other_in_their_order(self) -> None:
        desk, work = Desk(), Work()
        for name in "abc":
            assert desk.submit("one", work.job(name))
        await desk.settle()
        assert work.log == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]

    async def test_a_job_that_comes_while_one_runs_waits(self) -> None:
        desk, work = Desk(), Work()
        desk.submit("one", work.job("a", held=True))
        await until(lambda: work.log == ["a begins"])
        desk.submit("one", work.job("b"))
        await asyncio.sleep(0.01)
        assert work.log == ["a begins"]
        work.gates["a"].set()
        await desk.settle()
        assert work.log[1:] == ["a ends", "b begins", "b ends"]

    async def test_conversations_do_not_wait_for_each_other(self) -> None:
        desk, work = Desk(), Work()
        desk.submit("one", work.job("a", held=True))
        desk.submit("two", work.job("b"))
        await until(lambda: "b ends" in work.log)
        assert "a ends" not in work.log
        work.gates["a"].set()
        await desk.settle()

    async def test_a_job_may_queue_another(self) -> None:
        desk, work = Desk(), Work()

        async def again() -> None:
            assert desk.submit("one", work.job("b"))

        desk.submit("one", Job(again, work.noting("dropped")))
        await desk.settle()
        assert work.log == ["b begins", "b ends"]


class TestBeside:
    async def test_what_takes_long_holds_up_its_own_person_and_nobody_else(self) -> None:
        desk, work = Desk(running_limit=1), Work()
        desk.submit("one", work.job("a", by="ann", beside=True, held=True))
        desk.submit("one", work.job("a2", by="ann"))
        desk.submit("one", work.job("b", by="bob"))
        desk.submit("two", work.job("c", by="cat"))
        await until(lambda: "b ends" in work.log and "c ends" in work.log)
        assert "a2 begins" not in work.log
        work.gates["a"].set()
        await desk.settle()
        assert work.log[-3:] == ["a ends", "a2 begins", "a2 ends"]

    async def test_a_flood_of_one_who_is_held_up_takes_no_place_from_others(self) -> None:
        desk, work = Desk(waiting_limit=2), Work()
        desk.submit("one", work.job("a", by="ann", beside=True, held=True))
        await until(lambda: work.log == ["a begins"])
        assert [desk.submit("one", work.job(f"a{n}", by="ann")) for n in range(3)] == [True, True, False]
        assert [desk.submit("one", work.job(f"b{n}", by="bob")) for n in range(3)] == [True, True, False]
        work.gates["a"].set()
        await desk.settle()
        assert {"a0 ends", "a1 ends", "b0 ends", "b1 ends"} <= set(work.log)

    async def test_closing_cancels_it_and_drops_what_waited_for_it(self) -> None:
        desk, work = Desk(), Work()
        desk.submit("one", work.job("a", by="ann", beside=True, held=True))
        await until(lambda: work.log == ["a begins"])
        desk.submit("one", work.job("a2", by="ann"))
        await desk.close(0.01)
        await desk.settle()
        assert sorted(work.log[1:]) == ["a cancelled", "a2 dropped"]


class TestLimits:
    async def test_a_full_queue_refuses(self) -> None:
        desk, work = Desk(waiting_limit=2), Work()
        desk.submit("one", work.job("a", held=True))
        await until(lambda: work.running == 1)
        assert [desk.submit("one", work.job(name)) for name in "bcd"] == [True, True, False]
        assert (desk.waiting, desk.busy()) == (2, 1)
        assert desk.submit("two", work.job("e"))
        work.gates["a"].set()
        await desk.settle()
        assert "c ends" in work.log
        assert "d begins" not in work.log
        assert desk.submit("one", work.job("f"))
        await desk.settle()

    async def test_only_so_many_run_at_once_and_all_get_their_turn(self) -> None:
        desk, work = Desk(running_limit=3), Work()
        for number in range(10):
            desk.submit(f"session {number}", work.job(str(number), held=True))
        await until(lambda: work.running == 3)
        await asyncio.sleep(0.01)
        for gate in work.gates.values():
            gate.set()
        await desk.settle()
        assert work.most == 3
        assert sum(line.endswith("ends") for line in work.log) == 10

    async def test_a_busy_conversation_does_not_starve_the_others(self) -> None:
        desk, work = Desk(running_limit=1), Work()
        for number in range(5):
            desk.submit("busy", work.job(f"busy {number}"))
        desk.submit("other", work.job("other"))
        await desk.settle()
        assert work.log.index("other begins") < work.log.index("busy 3 begins")


class TestFailures:
    async def test_a_failing_job_does_not_stop_its_conversation(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk, work = Desk(), Work()
        desk.submit("one", work.job("a", fails=RuntimeError("a fault nobody thought of")))
        desk.submit("one", work.job("b"))
        await desk.settle()
        assert work.log == ["a begins", "b begins", "b ends"]
        assert "a fault nobody thought of" in caplog.text
        [found] = at_work()
        assert (found.done, found.failed) == (1, 1)

    async def test_it_gives_its_place_back(self) -> None:
        desk, work = Desk(running_limit=1), Work()
        for number in range(3):
            desk.submit(f"session {number}", work.job(str(number), fails=ChatUnavailable("down")))
        desk.submit("last", work.job("last"))
        await desk.settle()
        assert "last ends" in work.log

    async def test_queues_do_not_pile_up(self) -> None:
        desk, work = Desk(), Work()
        for number in range(50):
            desk.submit(f"session {number}", work.job(str(number)))
        assert desk.busy() == 50
        await desk.settle()
        assert desk.busy() == 0
        desk.submit("session 1", work.job("again"))
        assert desk.busy() == 1
        await desk.settle()


class TestClosing:
    async def test_what_waits_is_finished_within_the_time(self) -> None:
        desk, work = Desk(), Work()
        for name in "abc":
            desk.submit("one", work.job(name))
        await desk.close()
        assert work.log[-1] == "c ends"

    async def test_then_what_runs_is_cancelled_and_what_waits_is_told(self) -> None:
        desk, work = Desk(), Work()
        for name in "abc":
            desk.submit("one", work.job(name, held=True))
        await until(lambda: work.running == 1)
        await desk.close(grace_s=0.01)
        assert work.log == ["a begins", "a cancelled", "b dropped", "c dropped"]
        assert desk.busy() == 0

    async def test_so_is_what_waits_for_a_place_to_run(self) -> None:
        desk, work = Desk(running_limit=1), Work()
        desk.submit("one", work.job("a", held=True))
        await until(lambda: work.running == 1)
        desk.submit("two", work.job("b"))
        await desk.close(grace_s=0.01)
        assert sorted(work.log) == ["a begins", "a cancelled", "b dropped"]

    async def test_at_once_when_there_is_no_time(self) -> None:
        desk, work = Desk(), Work()
        desk.submit("one", work.job("a", held=True))
        desk.submit("one", work.job("b"))
        await desk.close(grace_s=0)
        assert "b dropped" in work.log
        assert work.running == 0

    async def test_one_that_can_not_be_told_does_not_keep_the_next_from_being_told(self) -> None:
        desk, work = Desk(), Work()

        async def fails() -> None:
            raise ChatUnavailable("down")

        desk.submit("one", work.job("a", held=True))
        await until(lambda: work.running == 1)
        desk.submit("one", Job(work.job("b").run, fails))
        desk.submit("one", work.job("c"))
        await desk.close(grace_s=0.01)
        assert work.log[-1] == "c dropped"

    async def test_telling_that_hangs_does_not_hold_up_the_end_for_ever(self) -> None:
        desk, work = Desk(), Work()

        async def hangs() -> None:
            await asyncio.Event().wait()

        desk.submit("one", work.job("a", held=True))
        await until(lambda: work.running == 1)
        desk.submit("one", Job(work.job("b").run, hangs))
        closing = asyncio.create_task(desk.close(grace_s=0.05))
        done, _ = await asyncio.wait([closing], timeout=WORD_S + 1)
        if not done:  # leave nothing behind
            for task in asyncio.all_tasks() - {asyncio.current_task(), closing}:
                task.cancel()
            await closing
        assert done

    async def test_nothing_is_taken_afterwards(self) -> None:
        desk, work = Desk(), Work()
        await desk.close()
        assert not desk.submit("one", work.job("a"))
        await desk.settle()
        assert work.log == []

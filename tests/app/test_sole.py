"""Services of which one process at a time has the lease."""

import asyncio
from collections.abc import Sequence

import pytest

from discoclaw.app.services import Part, Sole
from discoclaw.core.processes import ALONE
from tests.memory.together import Together
from tests.session.scene import until


class Log:
    """Services that write down what happens to them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def service(self, name: str, *, fails: bool = False) -> Part:
        async def start() -> None:
            self.lines.append(f"start {name}")
            if fails:
                raise ConnectionError(name)

        async def close() -> None:
            self.lines.append(f"close {name}")

        return Part(start, closing=close)

    def services(self, *names: str) -> Sequence[Part]:
        return [self.service(name) for name in names]


class TestAloneItIsAsIfTheyWereListed:
    async def test_they_are_started_before_start_ends_and_closed_in_reverse(self) -> None:
        log = Log()
        sole = Sole("work", log.services("a", "b"), ALONE)
        await sole.start()
        assert log.lines == ["start a", "start b"]
        await sole.close()
        assert log.lines[2:] == ["close b", "close a"]
        await sole.close()
        assert len(log.lines) == 4

    async def test_what_one_raises_is_raised_and_those_before_it_are_closed(self) -> None:
        log = Log()
        sole = Sole("work", [log.service("a"), log.service("b", fails=True), log.service("c")], ALONE)
        with pytest.raises(ConnectionError, match="b"):
            await sole.start()
        assert log.lines == ["start a", "start b", "close b", "close a"]
        await sole.close()

    async def test_it_can_be_closed_without_a_start(self) -> None:
        log = Log()
        await Sole("work", log.services("a"), ALONE).close()
        assert log.lines == []


class TestOneProcessAtATimeHasThem:
    async def test_the_second_waits_without_holding_up_its_start_and_takes_over(self) -> None:
        store, log = Together(), Log()
        first = Sole("work", log.services("first"), store.join())
        second = Sole("work", log.services("second"), store.join())
        await first.start()
        await second.start()
        assert log.lines == ["start first"]
        await first.close()
        await until(lambda: len(log.lines) == 3)
        assert log.lines == ["start first", "close first", "start second"]
        await second.close()
        assert log.lines[3:] == ["close second"]

    async def test_the_second_takes_over_when_the_first_is_killed(self) -> None:
        store, log = Together(), Log()
        killed = store.join()
        await Sole("work", log.services("first"), killed).start()
        second = Sole("work", log.services("second"), store.join())
        await second.start()
        await killed.kill()
        await until(lambda: "start second" in log.lines)
        await second.close()
        assert log.lines[-2:] == ["start second", "close second"]

    async def test_whoever_loses_the_lease_closes_them_and_may_have_them_again(self) -> None:
        store, log = Together(), Log()
        one, other = store.join(), store.join()
        first, second = Sole("work", log.services("first"), one), Sole("work", log.services("second"), other)
        await first.start()
        await second.start()
        await one.lose()
        await until(lambda: len(log.lines) == 3)
        assert sorted(log.lines[1:]) == ["close first", "start second"]
        await second.close()
        await until(lambda: len(log.lines) == 5)
        assert log.lines[3:] == ["close second", "start first"]
        await first.close()

    async def test_closing_while_it_waits_starts_nothing(self) -> None:
        store, log = Together(), Log()
        first = Sole("work", log.services("first"), store.join())
        second = Sole("work", log.services("second"), store.join())
        await first.start()
        await second.start()
        await second.close()
        await first.close()
        await asyncio.sleep(0)
        assert log.lines == ["start first", "close first"]

    async def test_closing_does_not_wait_for_a_start_that_hangs(self) -> None:
        store, log = Together(), Log()
        first, gate = Sole("work", log.services("first"), store.join()), asyncio.Event()

        async def hang() -> None:
            log.lines.append("begin")
            await gate.wait()

        second = Sole("work", [Part(hang), *log.services("never")], store.join())
        await first.start()
        await second.start()
        await first.close()
        await until(lambda: "begin" in log.lines)
        await second.close()
        assert "start never" not in log.lines

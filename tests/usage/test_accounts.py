"""The accounts on real stores: what is written, what still counts after a fault, and what calls may begin."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.budgets import Limit, Wish, limits_of
from discoclaw.core.consent import Consent
from discoclaw.core.model import Usage
from discoclaw.core.purge import erasing
from discoclaw.core.usage import DOLLAR, NOBODY, Call, Payer
from discoclaw.memory.stores import Disks, disks
from discoclaw.store.plain import FileLog, FilesDisk
from discoclaw.store.port import Disk, Head, Log
from discoclaw.usage.accounts import Accounts, Grant, Rules, unused
from discoclaw.usage.log import UsageLog, month_of
from tests.memory.child import full_at
from tests.purging import from_all, from_disk

NOON = 1_763_985_600_000  # 2025-11-24 12:00 UTC
DAY_MS = 86_400_000
ANN, BOB = Payer("1", "10", "100"), Payer("2", "10", "100")
ONE = Wish("usual", "big", 100)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from discoclaw.core.budgets import Limit, Wish
from discoclaw.core.usage import Payer
from discoclaw.store.plain import FileLog, FilesDisk
from discoclaw.usage.accounts import Accounts, Rules
from discoclaw.usage.log import UsageLog

async def main() -> None:
    lines = UsageLog(FilesDisk(Path(sys.argv[1])))
    accounts = Accounts(lines, clock=lambda: int(sys.argv[2]), rules=Rules((Limit("all", "day", 1000),)))
    await accounts.start()
    await accounts.begin("answer", Payer("1"), [Wish("usual", "big", 100)])
    await accounts.settle()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
"""A process that is killed in the middle of its first call."""


class Clock:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.ms = NOON

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


Open = Callable[..., Any]


@pytest.fixture
def opened(store: str, tmp_path: Path, clock: Clock) -> Iterator[Open]:
    """`async with opened("1000/day") as accounts`: as a process that has just started. Nanodollars."""
    stores: list[Disks] = []

    @asynccontextmanager
    async def begin(budget: str = "", disk: Disk | None = None, **more: Any) -> AsyncIterator[Accounts]:
        if disk is None:
            stores.append(disks(store, tmp_path / "memory"))
            stores[-1].used.open()
            disk = stores[-1].used
        limits = tuple(Limit(one.scope, one.period, one.nano // DOLLAR) for one in limits_of(budget))
        made = Accounts(UsageLog(disk), clock=clock, rules=Rules(limits), **more)
        await made.start()
        yield made
        await made.close()

    yield begin
    for one in stores:
        one.close()


def ended(grant: Grant, nano: int, *, requests: int = 1) -> Call:
    """The call that a grant was for, with its cost."""
    used = Usage(nano // 2, nano - nano // 2)
    return Call(grant.id, grant.at, grant.purpose, "big", used, nano, grant.payer, requests)


async def call(accounts: Accounts, nano: int, payer: Payer = ANN) -> bool:
    """Make a call of this cost. Returns whether the budgets allowed it."""
    grant = await accounts.begin("answer", payer, [ONE])
    if grant.choice.wish is None:
        return False
    accounts.end(ended(grant, nano))
    return True


def spent(accounts: Accounts) -> dict[str, int]:
    return {f"{one.limit.scope} {one.whose}".strip(): one.nano for one in accounts.all_spent() if one.nano}


class TestALog:
    @pytest.mark.every_store
    async def test_has_every_call_with_whom_it_was_for(self, opened: Open, clock: Clock) -> None:
        async with opened() as accounts:
            await call(accounts, 7)
            clock.ms += 1000
            await call(accounts, 8, BOB)
        async with opened() as accounts:
            found = await accounts.calls(0)
            assert [(one.payer, one.nano, one.usage, one.at) for one in found] == [
                (ANN, 7, Usage(3, 4), NOON),
                (BOB, 8, Usage(4, 4), NOON + 1000),
            ]
            assert [one.nano for one in await accounts.calls(NOON + 1)] == [8]

    async def test_of_everything_begins_anew_with_a_month_and_is_kept_for_a_year(
        self, opened: Open, clock: Clock
    ) -> None:
        async with opened() as accounts:
            await call(accounts, 1)
            await accounts.settle()
            clock.ms += 30 * DAY_MS
            await call(accounts, 2)
            await accounts.settle()
            assert [one.nano for one in await accounts.calls(0)] == [1, 2]
        clock.ms += 380 * DAY_MS
        async with opened() as accounts:
            assert [one.nano for one in await accounts.calls(0)] == [2]

    async def test_cut_in_half_costs_what_is_missing_and_goes_on(self, opened: Open, tmp_path: Path) -> None:
        async with opened("1000/day") as accounts:
            await call(accounts, 300)
            await call(accounts, 200)
        path = tmp_path / "memory" / "usage" / f"{month_of(NOON)}.jsonl"
        path.write_bytes(path.read_bytes()[:-30])
        async with opened("1000/day") as accounts:
            assert spent(accounts) == {"all": 400}  # the second call's end is lost: what was put aside counts
            await call(accounts, 50)
        async with opened("1000/day") as accounts:
            assert spent(accounts) == {"all": 450}

    async def test_that_is_nonsense_stops_nothing(self, opened: Open, tmp_path: Path) -> None:
        path = tmp_path / "memory" / "usage" / f"{month_of(NOON)}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(
            b'\x00\xff{"id": 1}\n[]\n{"id":"a","at":9e99,"nano":-1}\n\n{"id":"b","at":1,"hold":true}'
        )
        async with opened("1000/day") as accounts:
            assert await call(accounts, 50)
            assert spent(accounts) == {"all": 50}


class TestABudget:
    @pytest.mark.every_store
    async def test_holds_over_a_restart(self, opened: Open) -> None:
        async with opened("1000/day, person 500/day") as accounts:
            for _ in range(5):
                assert await call(accounts, 100)
            assert not await call(accounts, 100)
            assert await call(accounts, 100, BOB)
        async with opened("1000/day, person 500/day") as accounts:
            assert spent(accounts) == {"all": 600, "person 1": 500, "person 2": 100}
            assert not await call(accounts, 100)

    @pytest.mark.every_store
    async def test_is_not_exceeded_by_thirty_calls_at_once(self, opened: Open) -> None:
        async with opened("1000/day") as accounts:
            grants = await asyncio.gather(*(accounts.begin("answer", ANN, [ONE]) for _ in range(30)))
            begun = [one for one in grants if one.choice.wish is not None]
            assert len(begun) == 10
            for one in begun:
                accounts.end(ended(one, 10))
            assert spent(accounts) == {"all": 100}

    async def test_counts_what_was_put_aside_for_a_call_that_was_killed(
        self, opened: Open, tmp_path: Path
    ) -> None:
        killed = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, str(tmp_path / "memory"), str(NOON)
        )
        assert await killed.wait() == -signal.SIGKILL
        async with opened("1000/day") as accounts:
            assert spent(accounts) == {"all": 100}
            assert await accounts.calls(0) == []

    async def test_gets_back_what_was_put_aside_for_a_call_that_nobody_made(
        self, opened: Open, tmp_path: Path
    ) -> None:
        disk = SharedDisk(tmp_path / "shared")
        async with opened("1000/day", disk) as accounts:
            accounts.end(unused(await accounts.begin("answer", ANN, [ONE])))
            waiting = asyncio.create_task(accounts.begin("answer", ANN, [ONE]))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            await accounts.settle()
        async with opened("1000/day", disk) as accounts:
            assert (spent(accounts), await accounts.calls(0)) == ({}, [])

    async def test_that_was_lowered_below_what_is_spent_holds_at_once(self, opened: Open) -> None:
        async with opened("1000/day") as accounts:
            assert await call(accounts, 300)
        async with opened("200/day") as accounts:
            assert not await call(accounts, 1)

    async def test_is_not_renewed_by_a_clock_that_is_set_back(self, opened: Open, clock: Clock) -> None:
        async with opened("100/day") as accounts:
            assert await call(accounts, 100)
            clock.ms -= DAY_MS
            assert not await call(accounts, 1)
        async with opened("100/day") as accounts:
            assert not await call(accounts, 1)

    async def test_of_a_month_that_has_begun_is_not_renewed_by_a_clock_set_back_before_it(
        self, opened: Open, clock: Clock
    ) -> None:
        clock.ms += 7 * DAY_MS  # the first of December
        async with opened("100/month") as accounts:
            assert await call(accounts, 100)
        clock.ms -= DAY_MS
        async with opened("100/month") as accounts:
            assert not await call(accounts, 1)

    async def test_counts_each_line_once_when_the_clock_goes_back_over_a_month(
        self, opened: Open, clock: Clock
    ) -> None:
        async with opened("1000/month") as accounts:
            await call(accounts, 100)
            await accounts.settle()
            clock.ms += 30 * DAY_MS
            await call(accounts, 10)
            await accounts.settle()
            clock.ms = NOON  # too far to be an adjustment, so it was wrong before
            await call(accounts, 1)
            await accounts.settle()
            assert spent(accounts) == {"all": 101}

    async def test_is_told_of_when_it_is_nearly_spent(self, opened: Open) -> None:
        told: list[int] = []
        async with opened("1000/day", news=lambda spent: told.append(spent.percent)) as accounts:
            for nano in (790, 20, 200):
                await call(accounts, nano)
        assert told == [81, 101]
        async with opened("1000/day", news=lambda spent: told.append(spent.percent)):
            assert told == [81, 101, 101]

    async def test_of_a_store_without_memory_is_kept_in_ram(self, clock: Clock) -> None:
        accounts = Accounts(None, clock=clock, rules=Rules((Limit("all", "day", 1000),)))
        await accounts.start()
        for _ in range(10):
            assert await call(accounts, 100)
        assert not await call(accounts, 100)
        assert await accounts.calls(0) == []
        await accounts.close()

    async def test_costs_nothing_for_models_that_are_free_even_if_all_is_spent(self, opened: Open) -> None:
        async with opened("100/day") as accounts:
            await call(accounts, 500)
            grant = await accounts.begin("answer", ANN, [Wish("usual", "here", 0)])
            assert grant.choice.wish is not None and grant.choice.less is None


class TestTwoProcesses:
    async def test_share_a_budget(self, database: str, tmp_path: Path, clock: Clock) -> None:
        rules = Rules((Limit("all", "day", 1000),))
        with disks(database, tmp_path / "a") as first, disks(database, tmp_path / "b") as second:
            first.open()
            second.open()
            one, two = (Accounts(UsageLog(each.used), clock=clock, rules=rules) for each in (first, second))
            await one.start()
            await two.start()
            asked = [each.begin("answer", ANN, [ONE]) for _ in range(15) for each in (one, two)]
            grants = await asyncio.gather(*asked)
            begun = [grant for grant in grants if grant.choice.wish is not None]
            assert len(begun) == 10
            for grant, whose in zip(grants, [one, two] * 15, strict=True):
                if grant.choice.wish is not None:
                    whose.end(ended(grant, 20))
            await one.settle()
            await two.settle()
            assert await call(one, 30)
            await one.settle()
            assert await call(two, 40)
            assert (spent(two), len(await two.calls(0))) == ({"all": 270}, 12)
            await one.close()
            await two.close()


class _HangingLog(FileLog):
    """A log that takes no line before `goes_on` is set."""

    def __init__(self, path: Path, goes_on: threading.Event) -> None:
        super().__init__(path)
        self._goes_on = goes_on

    def append(self, content: bytes, *, after: Head) -> Head:
        self._goes_on.wait()
        return super().append(content, after=after)


class HangingDisk(FilesDisk):
    """A disk that hangs until `goes_on` is set."""

    goes_on: threading.Event

    def log(self, name: str) -> Log:
        return _HangingLog(self.root / name, self.goes_on)


class _LosingLog(FileLog):
    """A log that says of some lines that they failed, though they arrived or not."""

    def __init__(self, path: Path, disk: "LosingDisk") -> None:
        super().__init__(path)
        self._disk = disk

    def append(self, content: bytes, *, after: Head) -> Head:
        if self._disk.losing == "the answer":
            super().append(content, after=after)
        if self._disk.losing:
            raise OSError("the connection broke")
        return super().append(content, after=after)


class LosingDisk(FilesDisk):
    """A disk that loses what is written (`losing` "it"), or only the answer to that ("the answer")."""

    losing = ""

    def log(self, name: str) -> Log:
        return _LosingLog(self.root / name, self)


class SharedDisk(LosingDisk):
    """The same, as a database that processes share."""

    shared = True


class TestADiskThatFails:
    @pytest.mark.parametrize("kind", [LosingDisk, SharedDisk])
    async def test_after_it_took_the_lines_has_each_of_them_once(
        self, opened: Open, tmp_path: Path, kind: type[LosingDisk]
    ) -> None:
        disk = kind(tmp_path / "losing")
        async with opened("1000/day", disk) as accounts:
            disk.losing = "the answer"
            assert await call(accounts, 300)
            await accounts.settle()
            disk.losing = ""
            assert await call(accounts, 200)
            await accounts.settle()
            assert (spent(accounts), len(await accounts.calls(0))) == ({"all": 500}, 2)
        async with opened("1000/day", disk) as accounts:
            assert spent(accounts) == {"all": 500}

    async def test_counts_what_others_spent_once(self, opened: Open, tmp_path: Path) -> None:
        disk, others = SharedDisk(tmp_path / "shared"), SharedDisk(tmp_path / "shared")
        async with opened("1000/day", disk) as accounts, opened("1000/day", others) as other:
            assert await call(other, 100)
            await other.settle()
            disk.losing = "it"
            for _ in range(3):
                assert await call(accounts, 10)
                await accounts.settle()
            assert spent(accounts) == {"all": 130}
            disk.losing = ""
            await accounts.settle()
            assert (spent(accounts), len(await other.calls(0))) == ({"all": 130}, 4)

    async def test_because_it_is_full_stops_no_call_and_gets_everything_later(self, opened: Open) -> None:
        async with opened("1000/day") as accounts:
            with full_at(10):
                for _ in range(10):
                    assert await call(accounts, 100)
                assert not await call(accounts, 100)
            await accounts.settle()
            assert len(await accounts.calls(0)) == 10
        async with opened("1000/day") as accounts:
            assert spent(accounts) == {"all": 1000}

    @pytest.mark.parametrize(("shared", "wait_s"), [(False, 3600.0), (True, 0.05)])
    async def test_because_it_hangs_lets_one_call_wait_at_most_and_that_in_a_shared_store(
        self, opened: Open, tmp_path: Path, shared: bool, wait_s: float
    ) -> None:
        disk = HangingDisk(tmp_path / "hanging")
        disk.shared, disk.goes_on = shared, threading.Event()
        async with opened("1000/day", disk, wait_s=wait_s) as accounts:
            try:
                for _ in range(10):
                    assert await call(accounts, 100)
                assert not await call(accounts, 100)
            finally:
                disk.goes_on.set()
            await accounts.settle()
            assert len(await accounts.calls(0)) == 10
        async with opened("1000/day", FilesDisk(tmp_path / "hanging")) as accounts:
            assert spent(accounts) == {"all": 1000}


class TestSomebody:
    @pytest.mark.every_store
    async def test_who_is_erased_is_in_no_line_while_the_spending_stays(self, opened: Open) -> None:
        erased: dict[str, int] = {}
        consent = Consent(erased_at=lambda user_id: erased.get(user_id, -1))
        async with opened("1000/day, person 1000/day", consent=consent) as accounts:
            await call(accounts, 100)
            await call(accounts, 100, BOB)
            await accounts.settle()
            under_way = await accounts.begin("answer", ANN, [ONE])
            await accounts.settle()
            erased["1"] = NOON + 1
            purge = erasing("user-1", NOON + 1)
            removed = await from_all(accounts, purge)
            assert (removed.count, removed.left) == (3, ())  # two holds and the end of one call
            accounts.end(ended(under_way, 50))
            await accounts.settle()
            assert [one.payer.user for one in await accounts.calls(0)] == [None, "2", None]
            assert [one.owner for one in accounts.audit()] == ["user-2"] * 2
            assert spent(accounts) == {"all": 250, "person 2": 100}
            assert await call(accounts, 10, BOB)
            assert spent(accounts) == {"all": 260, "person 2": 110}
        async with opened("1000/day, person 1000/day") as accounts:
            assert spent(accounts) == {"all": 260, "person 2": 110}

    async def test_who_wants_no_memory_is_in_no_line_and_has_a_budget_in_ram(self, opened: Open) -> None:
        consent = Consent(refused_until=lambda user_id: 1 << 62 if user_id == "1" else -1)
        async with opened("person 100/day", consent=consent) as accounts:
            assert await call(accounts, 100)
            assert not await call(accounts, 1)
            assert [one.payer for one in await accounts.calls(0)] == [ANN.without("1")]

    async def test_who_is_erased_is_not_in_a_line_either_that_was_cut_in_half(self, tmp_path: Path) -> None:
        path = tmp_path / "usage" / "2025-11.jsonl"
        path.parent.mkdir()
        path.write_text('{"id":"a","at":1763985600000,"user":"1","for":"ans')
        accounts = Accounts(UsageLog(FilesDisk(tmp_path)), clock=lambda: NOON)
        await accounts.start()
        assert (await from_disk(accounts, erasing("user-1", NOON))).count == 1
        assert path.read_text() == ""
        assert (await from_disk(accounts, erasing("user-1", NOON))).count == 0
        assert await call(accounts, 5)
        assert [one.nano for one in await accounts.calls(0)] == [5]
        await accounts.close()

    @pytest.mark.every_store
    async def test_gets_no_second_budget_by_having_their_memory_erased(self, opened: Open) -> None:
        erased: dict[str, int] = {}
        consent = Consent(erased_at=lambda user_id: erased.get(user_id, -1))

        async def erase(accounts: Accounts) -> None:
            erased["1"] = NOON - 1
            purge = erasing("user-1", NOON - 1)
            await from_all(accounts, purge)

        said_before = Payer("1", "10", "100", said_at=NOON - 2)
        async with opened("person 300/day", consent=consent) as accounts:
            assert await call(accounts, 80)
            under_way = await accounts.begin("answer", said_before, [ONE])
            await accounts.settle()
            await erase(accounts)
            accounts.end(ended(under_way, 70))  # settled exactly, though nobody is named
            assert await call(accounts, 50, said_before)
            await accounts.settle()
            assert "1" not in repr(spent(accounts))
            assert [one.payer.user for one in await accounts.calls(0)] == [None] * 3
            assert await call(accounts, 60)
            assert spent(accounts) == {"person 1": 260}
            await erase(accounts)
            assert await call(accounts, 40)
            assert not await call(accounts, 1)
            assert await call(accounts, 1, BOB)

    async def test_who_wants_no_memory_gets_no_second_budget_when_somebody_else_is_erased(
        self, opened: Open
    ) -> None:
        refused = {"1": -1}
        consent = Consent(refused_until=lambda user_id: refused.get(user_id, -1))
        async with opened("person 200/day", consent=consent) as accounts:
            await call(accounts, 60)
            refused["1"] = 1 << 62
            await call(accounts, 70)
            refused["1"] = -1
            under_way = await accounts.begin("answer", ANN, [ONE])
            await call(accounts, 10, BOB)
            await accounts.settle()
            purge = erasing("user-2", NOON)
            await from_all(accounts, purge)
            assert not await call(accounts, 1)  # as much as is left is put aside
            accounts.end(ended(under_way, 20))
            assert spent(accounts) == {"person 1": 150}

    async def test_is_in_no_line_where_nobody_is_remembered(self, tmp_path: Path, clock: Clock) -> None:
        accounts = Accounts(UsageLog(FilesDisk(tmp_path)), clock=clock, rules=Rules(names_people=False))
        await call(accounts, 5)
        assert [one.payer for one in await accounts.calls(0)] == [Payer(None, "10", "100")]
        await accounts.close()


class TestAnUnknownPrice:
    async def test_is_warned_of_once_with_the_way_out(
        self, opened: Open, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with opened() as accounts:
            for _ in range(3):
                grant = await accounts.begin("answer", NOBODY, [ONE])
                used = Call(grant.id, grant.at, "answer", "gpt-9", Usage(1, 1), 9, priced=False)
                accounts.end(used)
        warned = [one.message for one in caplog.records if "gpt-9" in one.message]
        assert len(warned) == 1 and "DISCOCLAW_PRICES" in warned[0]

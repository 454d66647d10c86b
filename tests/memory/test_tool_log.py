"""Which tools were called, and what was cleared: lines that nobody waits for, and that leave in the end."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.errors import MemoryFault
from discoclaw.core.redact import Redactor
from discoclaw.core.subject import dm_of, user_of
from discoclaw.memory.conversations import clears
from discoclaw.memory.conversations.clears import Clear, Clears
from discoclaw.memory.conversations.rolling import NOTHING, RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people import tool_log
from discoclaw.memory.people.tool_log import KEPT_MS, Call, ToolLog
from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import session_name
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, ROLLING, TOOLS, Disk
from tests.cli.shell import Shell
from tests.memory.backups import written
from tests.memory.kit import NOW, Clock, erased_from, listening
from tests.memory.leftovers import ANN, BOB, shelves, traces
from tests.session.scene import until
from tests.tables import naming

HER = user_of(ANN) or ""
GENERAL, ANNS_DM = "discord:channel:7", dm_of(HER)
DAY = 86_400_000
Fresh = Callable[[], Disks]


@pytest.fixture
async def house(memory: Memory, clock: Clock) -> AsyncIterator[ToolLog]:
    """The tool log of an open memory, which tells it of erasings."""
    log = ToolLog(memory.disk, clock=clock, consent=erased_from(memory), changes=memory.changes)
    memory.join(log)
    yield log
    await log.close()


def note(log: ToolLog, subject: str = ANN, content: str = "found 2 items", **given: Any) -> None:
    about = {"tool": "memory_search", "ok": True, "channel": "7", "session": GENERAL, "private": False}
    log.note(subject, content=content, **{**about, "said_at": NOW, **given})


def calls(disk: Disk, subject: str = ANN) -> list[Call]:
    return tool_log.CALLS.read(tool_log.log_of(disk, subject))


def contents(disk: Disk, subject: str = ANN) -> list[str]:
    return [one.content for one in calls(disk, subject)]


class TestALine:
    async def test_is_json_of_this_shape_in_the_persons_file(self, house: ToolLog, root: Path) -> None:
        note(house)
        await house.settle()
        (line,) = (root / "tools" / f"{ANN}.jsonl").read_text().splitlines()
        value = json.loads(line)
        assert len(value.pop("id")) == 16
        assert value == {
            "at": NOW,
            "tool": "memory_search",
            "ok": True,
            "content": "found 2 items",
            "channel": "7",
            "session": GENERAL,
            "private": False,
        }

    async def test_is_short_and_has_no_secrets(self, memory: Memory, clock: Clock) -> None:
        log = ToolLog(memory.disk, clock=clock, redactor=Redactor(own=frozenset({"ab" * 32})))
        note(log, content="x" * 280 + " 0x" + "AB" * 32 + " and more", tool="t" * 100)
        await log.settle()
        (one,) = calls(memory.disk)
        assert one.content == "x" * 280 + " 0x[REDACTED key] a…"
        assert (len(one.content), len(one.tool)) == (300, 64)
        await log.close()

    def test_of_another_shape_is_none(self) -> None:
        for changed in (
            {"id": "x"},
            {"at": "now"},
            {"ok": 1},
            {"content": "x" * 301},
            {"session": "../x"},
            {"tool": ""},
        ):
            with naming(changed):
                good = Call("0" * 16, NOW, "memory_search", True, "", None, GENERAL, False)
                value = {name: getattr(good, name) for name in Call.__slots__}
                assert tool_log.call_of(value | {"more": 1}) == good
                assert tool_log.call_of(value | changed) is None


class TestWriting:
    async def test_keeps_the_order_goes_on_by_itself_and_ends_when_we_stop(
        self, house: ToolLog, memory: Memory
    ) -> None:
        told = listening(memory).units
        for number in range(3):
            note(house, content=str(number))
            note(house, BOB, f"b{number}")
        assert calls(memory.disk) == []  # nobody waits for it
        await until(lambda: set(told) == {ANN, BOB}, seconds=20)
        note(house, content="the last one")
        await house.close()
        note(house, content="too late")
        assert contents(memory.disk) == ["0", "1", "2", "the last one"]
        assert contents(memory.disk, BOB) == ["b0", "b1", "b2"]

    async def test_a_disk_that_takes_nothing_is_tried_again(
        self, house: ToolLog, memory: Memory, root: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (root / "tools").write_text("in the way")
        note(house, content="one")
        await house.settle()
        note(house, content="two")
        await house.settle()
        assert caplog.text.count("tool log: writing failed") == 1
        (root / "tools").unlink()
        await house.settle()
        assert contents(memory.disk) == ["one", "two"]

    async def test_that_fails_for_one_person_holds_up_nobody_else(
        self, house: ToolLog, memory: Memory, root: Path
    ) -> None:
        (root / "tools" / f"{ANN}.jsonl").mkdir(parents=True)
        note(house, content="hers")
        note(house, BOB, "his")
        await house.settle()
        assert contents(memory.disk, BOB) == ["his"]
        (root / "tools" / f"{ANN}.jsonl").rmdir()
        await house.settle()
        assert contents(memory.disk) == ["hers"]
        assert contents(memory.disk, BOB) == ["his"]

    async def test_goes_on_behind_a_line_that_was_cut_off(
        self, house: ToolLog, memory: Memory, root: Path
    ) -> None:
        note(house, content="one")
        await house.settle()
        with (root / "tools" / f"{ANN}.jsonl").open("ab") as file:
            file.write(b'{"id": "torn')
        note(house, content="two")
        await house.settle()
        assert contents(memory.disk) == ["one", "two"]

    async def test_a_file_that_grows_too_long_loses_its_older_half(
        self, house: ToolLog, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tool_log, "MOST_BYTES", 2_000)
        monkeypatch.setattr(tool_log, "CALLS", replace(tool_log.CALLS, most=2_000))
        for number in range(20):
            note(house, content=f"{number}")
            await house.settle()
        kept = contents(memory.disk)
        assert kept[-1] == "19" and 3 < len(kept) < 15
        assert tool_log.log_of(memory.disk, ANN).size() <= 2_000

    async def test_what_waits_is_bounded(self, house: ToolLog, memory: Memory) -> None:
        house._most = 3
        for number in range(5):
            note(house, content=str(number))
        await house.settle()
        assert contents(memory.disk) == ["2", "3", "4"]
        for number in range(5, 10):
            note(house, (ANN, BOB)[number % 2], str(number))
        await house.settle()
        assert len(contents(memory.disk)[3:]) + len(contents(memory.disk, BOB)) == 3


class TestLeaving:
    async def test_after_thirty_days_and_not_before(
        self, house: ToolLog, memory: Memory, clock: Clock
    ) -> None:
        note(house, content="old")
        note(house, BOB, "old")
        await house.settle()
        clock.now += 10 * DAY
        note(house, content="new")
        await house.settle()
        assert await house.expire(NOW + KEPT_MS) == 0
        assert await house.expire(NOW + KEPT_MS + DAY) == 2
        assert contents(memory.disk) == ["new"]
        assert memory.disk.documents(TOOLS).names() == [f"{ANN}.jsonl"]

    async def test_one_file_that_fails_keeps_no_other(
        self, house: ToolLog, memory: Memory, root: Path
    ) -> None:
        note(house, BOB, "old")
        await house.settle()
        (root / "tools" / "user-000.jsonl").mkdir()
        with pytest.raises(MemoryFault):
            await house.expire(NOW + 2 * KEPT_MS)
        assert contents(memory.disk, BOB) == []


class TestErasing:
    @pytest.mark.every_store
    async def test_takes_the_file_and_what_waits_and_nothing_of_later_words(
        self, house: ToolLog, memory: Memory, root: Path
    ) -> None:
        note(house, content="Kanarie")
        note(house, BOB, "coffee")
        await house.settle()
        note(house, content="Kanarie")
        erased = await memory.erase(ANN)
        note(house, content="Kanarie", said_at=NOW)  # an answer that was under way
        await house.settle()
        assert traces(root, "Kanarie", HER) == []
        assert contents(memory.disk, BOB) == ["coffee"]
        note(house, content="later", said_at=erased.at + 1)
        await house.settle()
        assert contents(memory.disk) == ["later"]

    async def test_waits_for_what_is_being_written(self, house: ToolLog, memory: Memory) -> None:
        note(house, content="Kanarie")
        writing = asyncio.create_task(house.settle())
        await asyncio.sleep(0)
        await memory.erase(ANN)
        await writing
        assert contents(memory.disk) == []

    async def test_leaves_of_a_clear_only_that_there_was_one(
        self, memory: Memory, clock: Clock, root: Path
    ) -> None:
        noted = Clears(memory.disk, clock=clock)
        memory.join(noted)
        for session, by in ((GENERAL, HER), (ANNS_DM, HER), (GENERAL, "456")):
            await noted.note(session, by=by)
        assert await noted.hidden(ANNS_DM, NOW)
        await memory.erase(ANN)
        kept = clears.CLEARS.read(memory.disk.log(clears.FILE))
        assert [(one.session, one.by) for one in kept] == [(GENERAL, None), (GENERAL, "456")]
        assert await noted.hidden(GENERAL, NOW)
        assert not await noted.hidden(ANNS_DM, NOW)
        assert traces(root, HER) == []


class TestClears:
    async def test_hide_what_is_as_old_or_older_in_that_conversation_only(
        self, fresh: Fresh, clock: Clock
    ) -> None:
        noted = Clears(fresh().used, clock=clock)
        assert not await noted.hidden(GENERAL, 0)
        await noted.note(GENERAL, by=HER)
        clock.forward(minutes=1)
        last = await noted.note(GENERAL)
        disk = fresh().used
        for known in (noted, Clears(disk, clock=clock)):
            assert await known.hidden(GENERAL, NOW)
            assert await known.hidden(GENERAL, last.at)
            assert not await known.hidden(GENERAL, last.at + 1)
            assert not await known.hidden(ANNS_DM, NOW)
        cleared = clears.newest(clears.CLEARS.read(disk.log(clears.FILE)))
        assert clears.hidden(cleared, GENERAL, last.at) and not clears.hidden(cleared, "else", 0)

    async def test_noted_twice_is_once_and_a_bad_line_is_none(self, fresh: Fresh) -> None:
        lines = fresh().used.log(clears.FILE)
        one = Clear("0" * 16, NOW, GENERAL, None)
        assert clears.CLEARS.add(lines, [one]) == 1
        bad = [b"torn", b'{"id": 1}', b'{"id":"%s","at":1,"session":"\\ud800","by":null}' % (b"1" * 16)]
        lines.append(b"\n".join(bad) + b"\n", after=lines.head())
        assert clears.CLEARS.add(lines, [one, one]) == 0
        assert clears.CLEARS.read(lines) == [one]

    async def test_of_very_many_the_newest_of_each_conversation_stay(
        self, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clears, "CLEARS", replace(clears.CLEARS, most=2_000))
        lines = fresh().used.log(clears.FILE)
        made = [Clear(f"{n:016x}", n, f"discord:channel:{n % 3}", None) for n in range(60)]
        for one in made:
            clears.CLEARS.add(lines, [one])
        assert clears.newest(clears.CLEARS.read(lines)) == {
            f"discord:channel:{n % 3}": n for n in (57, 58, 59)
        }
        assert lines.size() <= 2_000


class TestClearingASummary:
    @pytest.fixture
    def again(self, fresh: Fresh, clock: Clock) -> Callable[[], RollingMemory]:
        def start() -> RollingMemory:
            disk = fresh().used
            return RollingMemory(
                disk.documents(ROLLING),
                cursors=Cursors(disk.documents(CURSORS)),
                clock=clock,
                clears=Clears(disk, clock=clock),
            )

        return start

    async def test_is_noted_and_a_later_summary_shows(
        self, again: Callable[[], RollingMemory], fresh: Fresh
    ) -> None:
        rolling = again()
        for text in ("one", "two"):  # the second one's time is ahead of the clock
            await rolling.put(GENERAL, text, generation=await rolling.generation(GENERAL))
        before = await rolling.get(GENERAL)
        await rolling.clear(GENERAL, by=HER)
        (noted,) = clears.CLEARS.read(fresh().used.log(clears.FILE))
        assert (noted.session, noted.by, noted.at) == (GENERAL, HER, before.updated_at)
        await rolling.put(GENERAL, "three", generation=await rolling.generation(GENERAL))
        after = await again().get(GENERAL)
        assert after.summary == "three" and after.updated_at > noted.at

    async def test_that_was_killed_in_between_hides_what_it_left(
        self, again: Callable[[], RollingMemory], fresh: Fresh, clock: Clock
    ) -> None:
        rolling = again()
        await rolling.put(GENERAL, "a talk", generation=await rolling.generation(GENERAL))
        disk = fresh().used
        await Clears(disk, clock=clock).note(GENERAL)
        assert session_name(GENERAL) in disk.documents(ROLLING).names()
        assert await again().get(GENERAL) == NOTHING

    async def test_that_can_not_be_noted_clears_nothing(
        self, again: Callable[[], RollingMemory], root: Path
    ) -> None:
        rolling = again()
        await rolling.put(GENERAL, "a talk", generation=await rolling.generation(GENERAL))
        (root / clears.FILE).mkdir()
        with pytest.raises(MemoryFault):
            await rolling.clear(GENERAL)
        assert (await rolling.get(GENERAL)).summary == "a talk"


class TestMovingToAnotherStore:
    @pytest.mark.every_store
    async def test_both_come_along_once_and_without_who_was_erased_there(
        self, house: ToolLog, memory: Memory, tmp_path: Path, clock: Clock
    ) -> None:
        note(house, content="hers")
        note(house, BOB, "his")
        await house.settle()
        noted = Clears(memory.disk, clock=clock)
        for session, by in ((GENERAL, HER), (ANNS_DM, HER)):
            await noted.note(session, by=by)
        out, other = written(memory.disk, tmp_path, tmp_path / "all"), Shell(tmp_path / "other")
        there = shelves(other.folder / "data", clock).memory
        there.open()
        await there.erase(ANN)
        there.close()
        for _ in range(2):
            await asyncio.to_thread(other.says, "import", str(out))
        target = FilesDisk(other.memory_folder)
        assert (contents(target), contents(target, BOB)) == ([], ["his"])
        marks = clears.CLEARS.read(target.log(clears.FILE))
        assert [(one.session, one.by) for one in marks] == [(GENERAL, None)]
        for name in (clears.FILE, f"{TOOLS}/{BOB}.jsonl"):
            assert len(target.log(name).read().splitlines()) == 1

"""When somebody was last asked something in return: kept over restarts, and gone with the person."""

import asyncio
from pathlib import Path

import pytest

from discoclaw.core.decay import DAY_MS
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.asked_back import AskedBack
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import Clock as MemoryClock
from tests.memory.processes import Process
from tests.session.scene import Clock

ANN = "7"


class Home:
    """The limits on real files, by a clock that is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.cursors = Cursors(folder / "cursors")
        self.memory = Memory(folder, clock=self.clock, cursors=self.cursors)
        choices = Choices(folder, self.memory.changes)
        choices.load()
        self.asked = AskedBack(self.memory, self.cursors, choices, clock=self.clock)


class Meanwhile(Derived):
    """Notes a question as an erasing begins, or once its tombstone stands: the note has to wait for it."""

    name = "a question in the middle of an erasing"

    def __init__(self, asked: AskedBack, *, late: bool) -> None:
        self._asked = asked
        self._late = late
        self.noting: asyncio.Task[bool] | None = None
        self._loop = asyncio.get_running_loop()

    def outside(self, subject: str) -> tuple[str, ...]:
        if not self._late:
            self._loop.call_soon_threadsafe(self._note)
        return ()

    def purge(self, purge: Purge, phase: Phase) -> None:
        if self._late and phase == "ram":
            self._note()

    def _note(self) -> None:
        self.noting = asyncio.create_task(self._asked.note(ANN, "another"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def test_a_day_counts_from_the_last_question_also_after_a_restart(home: Home, tmp_path: Path) -> None:
    assert await home.asked.may_ask(ANN)
    assert await home.asked.note(ANN, "event")
    again = Home(tmp_path)
    for later, may in ((0, False), (DAY_MS - 1000, False), (DAY_MS, True)):
        again.clock.now = home.clock.now + later
        assert await again.asked.may_ask(ANN) == may
    assert await again.asked.may_ask("8")


async def test_a_clock_that_was_ahead_once_silences_nobody(home: Home) -> None:
    home.clock.now += 1000 * DAY_MS
    await home.asked.note(ANN, "event")
    home.clock.now -= 1000 * DAY_MS
    assert await home.asked.may_ask(ANN)


async def test_a_cursor_that_nobody_can_read_is_none(home: Home, tmp_path: Path) -> None:
    (tmp_path / "cursors").mkdir(exist_ok=True)
    (tmp_path / "cursors" / f"asked-{ANN}.json").write_text('{"at": "yesterday", "event": 7}')
    assert await home.asked.may_ask(ANN)
    assert not await home.asked.was_shown(ANN, "event")


@pytest.mark.parametrize("late", [False, True])
async def test_what_is_noted_during_an_erasing_is_not_kept(home: Home, tmp_path: Path, late: bool) -> None:
    await home.asked.note(ANN, "event")
    meanwhile = Meanwhile(home.asked, late=late)
    home.memory.join(meanwhile)
    assert (await home.memory.erase(f"user-{ANN}")).left == ()
    assert meanwhile.noting is not None
    assert not await meanwhile.noting
    assert not (tmp_path / "cursors" / f"asked-{ANN}.json").exists()


async def test_of_two_processes_one_alone_welcomes_a_person(two: list[Process], clock: MemoryClock) -> None:
    def limits(process: Process) -> AskedBack:
        storage = process.storage
        return AskedBack(process.memory, storage.cursors, storage.people.choices, clock=clock)

    first, second = map(limits, two)
    assert first.may_be_new(ANN) and second.may_be_new(ANN)
    assert sorted(await asyncio.gather(first.welcome(ANN, "1"), second.welcome(ANN, "2"))) == [False, True]
    assert not first.may_be_new(ANN) and not second.may_be_new(ANN)
    assert await first.welcome("8", "3")

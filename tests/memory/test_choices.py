"""What people chose about being remembered: durable, exact, and a start stops when it cannot be read."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.stores import Store, disks
from tests.memory import child
from tests.memory.kit import NOW, fingerprint, told_by
from tests.tables import naming

Start = Callable[[], Choices]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "choices.json"


@pytest.fixture
def start(root: Path, store: Store) -> Start:
    """Choices as the next start reads them."""

    def load() -> Choices:
        choices = Choices(disks(store, root).used)
        choices.load()
        return choices

    return load


class TestAChoiceIsKept:
    def test_nobody_chose_anything_and_nothing_is_written(self, path: Path, start: Start) -> None:
        choices = start()
        assert (choices.opted_out("1"), choices.auto_switch("1")) == (False, False)
        assert not path.parent.exists()

    async def test_it_holds_at_once_and_after_a_start_and_undoes_no_other(self, start: Start) -> None:
        choices = start()
        for chosen in (True, False):
            await choices.choose("1", opted_out=True)
            await choices.choose("1", auto_switch=chosen)
            await choices.choose("2", auto_switch=True)
            for one in (choices, start()):
                assert [one.opted_out(user) for user in ("1", "2", "3")] == [True, False, False]
                assert [one.auto_switch(user) for user in ("1", "2", "3")] == [chosen, True, False]

    async def test_the_time_between_stays_unheard(self, start: Start) -> None:
        choices = start()
        assert choices.refused_until("1") == -1
        await choices.choose("1", opted_out=True)
        assert choices.refused_until("1") > NOW * 1000
        await choices.choose("1", opted_out=False, since=NOW)
        for one in (choices, start()):
            assert (one.opted_out("1"), one.refused_until("1")) == (False, NOW)

    async def test_the_file_is_plain_and_names_only_who_chose(self, path: Path, start: Start) -> None:
        choices = start()
        await choices.choose("1", opted_out=True, auto_switch=True)
        await choices.choose("2", opted_out=True)
        await choices.choose("2", opted_out=False)
        expected = {"version": 1, "people": {"1": {"opted_out": True, "auto_switch": True}}}
        assert json.loads(path.read_bytes()) == expected

    async def test_a_no_to_being_asked_outlasts_a_default_that_says_yes(
        self, path: Path, start: Start
    ) -> None:
        choices = start()
        await choices.choose("1", asks_first=False)
        await choices.choose("2", asks_first=True)
        for asks in (True, False):
            one = Choices(path.parent, asks=lambda user_id, place, asks=asks: asks)
            one.load()
            assert [one.asks_first(user) for user in ("1", "2", "3")] == [False, True, asks]

    async def test_an_unknown_choice_is_refused_and_nothing_is_written(
        self, path: Path, start: Start
    ) -> None:
        choices = start()
        await choices.choose("1", opted_out=True)
        before = fingerprint(path.parent)
        with pytest.raises(ValueError, match="shout"):
            await choices.choose("1", shout=True)
        with pytest.raises(ValueError, match="opted_out"):
            await choices.choose("1", opted_out="no")  # type: ignore[arg-type]
        assert fingerprint(path.parent) == before
        assert choices.opted_out("1")

    async def test_many_at_once_lose_nothing(self, start: Start) -> None:
        choices = start()
        people = [str(number) for number in range(40)]
        await asyncio.gather(
            *(choices.choose(user, opted_out=True) for user in people),
            *(choices.choose(user, auto_switch=True) for user in people),
        )
        for one in (choices, start()):
            assert all(one.opted_out(user) and one.auto_switch(user) for user in people)

    async def test_whoever_gave_up_waiting_has_chosen_all_the_same(self, start: Start) -> None:
        choices = start()
        for number in range(20):
            waiting = asyncio.create_task(choices.choose(f"{number}", opted_out=True))
            for _ in range(1 + number % 4):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            later = start()
            assert [choices.opted_out(f"{one}") for one in range(20)] == [
                later.opted_out(f"{one}") for one in range(20)
            ]
        assert any(choices.opted_out(f"{one}") for one in range(20))


class TestAFileThatCanNotBeReadStopsTheStart:
    """Nobody is remembered against their word because of a slip."""

    def test_and_is_named_with_the_way_out(self, path: Path, start: Start) -> None:
        for content in (
            b"",
            b"{ oops",
            b"\xff\xfe",
            b"[]",
            b"7",
            b"null",
            b"[" * 100_000,
            b'{"people": {}}',
            b'{"version": 1}',
            b'{"version": 2, "people": {}}',
            b'{"version": "1", "people": {}}',
            b'{"version": 1, "people": []}',
            b'{"version": 1, "people": {"1": []}}',
            b'{"version": 1, "people": {"1": null}}',
            b'{"version": 1, "people": {"1": {"shout": true}}}',
            b'{"version": 1, "people": {"1": {"opted_out": 1}}}',
            b'{"version": 1, "people": {"1": {"opted_out": "yes"}}}',
            b'{"version": 1, "people": {"1": {"since": true}}}',
            b'{"version": 1, "people": {"1": {"since": -1}}}',
            b'{"version": 1, "people": {"1": {"opted_out": true}, "2": {"opted-out": true}}}',
        ):
            with naming(content):
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
                with pytest.raises(MemoryFault, match=r"choices\.json cannot be read.*opted out.*correct it"):
                    start()
                assert path.read_bytes() == content

    def test_a_folder_in_its_place(self, path: Path, start: Start) -> None:
        path.mkdir(parents=True)
        with pytest.raises(MemoryFault, match=r"choices\.json"):
            start()


class TestADiskThatDoesNotTakeIt:
    def test_changes_nothing_until_there_is_space(self, tmp_path: Path) -> None:
        report = told_by(child.choose_full, tmp_path)
        assert "choices.json could not be written" in report.pop("fault")
        assert report == {
            "ram": [True, False],
            "disk": [True, False],
            "names": ["choices.json"],
            "again": [True, True],
        }

    async def test_a_file_where_its_folder_should_be(self, path: Path, start: Start) -> None:
        choices = start()
        path.parent.write_text("no folder")
        with pytest.raises(MemoryFault, match="could not be written"):
            await choices.choose("1", opted_out=True)
        assert not choices.opted_out("1")
        path.parent.unlink()
        await choices.choose("1", opted_out=True)
        assert start().opted_out("1")

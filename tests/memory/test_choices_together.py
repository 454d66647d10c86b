"""What people choose in one process holds in every process that shares the store, and none of it is lost."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.changes import Changes
from discoclaw.memory.people import choices as stored
from discoclaw.memory.people.choices import Choices
from discoclaw.store.plain import FilesDisk
from tests.memory.together import Member, Together


class Chooser:
    """One process that knows people's choices."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.changes = Changes()
        self.choices = Choices(member.disk, self.changes)
        self.changes.add(self.choices)
        self.heard: list[str] = []
        self.changes.chosen = self.heard.append  # type: ignore[method-assign]
        member.listener = self.changes
        self.choices.load()


@pytest.fixture
def together() -> Together:
    return Together()


@pytest.fixture
def three(together: Together) -> list[Chooser]:
    return [Chooser(together.join()) for _ in range(3)]


class TestProcessesThatShareAStore:
    async def test_lose_none_of_the_choices_that_are_made_at_the_same_time(
        self, together: Together, three: list[Chooser]
    ) -> None:
        people = [str(number) for number in range(20)]
        one, two, three_ = (chooser.choices for chooser in three)
        await asyncio.gather(
            *(one.choose(user, opted_out=True) for user in people),
            *(two.choose(user, auto_switch=True) for user in people),
            *(three_.choose(user, asks_first=False) for user in people),
        )
        later = Choices(together.join().disk)
        later.load()
        assert all(
            (later.opted_out(user), later.auto_switch(user), later.never_asks(user)) == (True, True, True)
            for user in people
        )

    async def test_know_an_opt_out_when_they_have_looked(self, three: list[Chooser]) -> None:
        here, there, _ = three
        await here.choices.choose("1", opted_out=True)
        assert not there.choices.opted_out("1")
        await there.member.look(["choices/1.json"])
        assert there.choices.refused_until("1") == sys.maxsize
        await here.choices.choose("1", opted_out=False, since=77)
        await there.member.look(["choices/1.json"])
        assert (there.choices.opted_out("1"), there.choices.refused_until("1")) == (False, 77)

    async def test_tell_their_own_parts_of_it_once(self, three: list[Chooser]) -> None:
        here, there, _ = three
        await here.choices.choose("1", opted_out=True)
        await there.member.hear()
        await there.choices.renewed(["choices/1.json", "ledger/user-1.jsonl"])
        assert (here.heard, there.heard) == (["1"], ["1"])

    async def test_do_not_know_less_when_it_cannot_be_read(
        self, together: Together, three: list[Chooser]
    ) -> None:
        here, there, _ = three
        await here.choices.choose("1", opted_out=True)
        await there.member.hear()
        together.documents["choices/1.json"] = b"{"
        with pytest.raises(MemoryFault, match="who opted out"):
            await there.choices.renewed(["choices/1.json"])
        assert there.choices.opted_out("1")
        with pytest.raises(MemoryFault, match="who opted out"):
            Choices(here.member.disk).load()


class TestMovingBetweenStores:
    async def test_there_and_back_gives_the_same_bytes(self, tmp_path: Path, three: list[Chooser]) -> None:
        files, back, shared = FilesDisk(tmp_path / "here"), FilesDisk(tmp_path / "back"), three[0].member.disk
        here = Choices(files)
        for user in ("30", "4", "100"):
            await here.choose(user, opted_out=True, asks_first=False)
        assert stored.bring(files, shared)
        assert stored.bring(shared, back)
        exported = [tmp_path / where / "choices.json" for where in ("here", "back")]
        assert len({path.read_bytes() for path in exported}) == 1
        assert list(json.loads(exported[0].read_bytes())["people"]) == ["100", "30", "4"]

    async def test_an_opt_out_on_either_side_counts(self, tmp_path: Path, three: list[Chooser]) -> None:
        files, shared = FilesDisk(tmp_path), three[0].member.disk
        await Choices(files).choose("1", opted_out=True)
        await Choices(files).choose("2", auto_switch=True)
        await three[0].choices.choose("1", auto_switch=True)
        await three[0].choices.choose("2", opted_out=True)
        stored.bring(files, shared)
        assert stored.read(shared) == {
            "1": {"opted_out": True, "auto_switch": True},
            "2": {"auto_switch": True, "opted_out": True},
        }
        stored.remove(files)
        assert stored.read(files) is None

    async def test_what_was_chosen_here_is_newer_than_a_copy(self, three: list[Chooser]) -> None:
        shared = three[0].member.disk
        await three[0].choices.choose("1", asks_first=True)
        theirs: dict[str, stored.Chosen] = {"1": {"opted_out": True}, "2": {"opted_out": True}}
        assert stored.add_missing(theirs, shared, dry=True)
        assert stored.read(shared) == {"1": {"asks_first": True}}
        assert stored.add_missing(theirs, shared)
        assert stored.read(shared) == {"1": {"asks_first": True}, "2": {"opted_out": True}}

"""An erasing looks at the groups that have anything of a person, and misses none."""

import asyncio
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.history import PEOPLE
from discoclaw.core.profile import Group
from discoclaw.memory.erasing import groups
from discoclaw.memory.erasing.groups import INDEX, OF_PERSON, GroupIndex, newest
from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import render_json
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, GROUPS, Disk
from tests.examples import FEW
from tests.memory.kit import Clock, remember
from tests.memory.together import Together

ANN, BOB, CLEO = "9100001", "9100002", "9100003"
PEOPLE_IDS = (ANN, BOB, CLEO)
CHANNELS = [f"group-{number}" for number in range(70, 76)]


async def learn(memory: Memory, group: str, *people: str, text: str = "cakes") -> None:
    await memory.change(group, "why", remember(f"We talk of {text}."), **{PEOPLE: sorted(people)})


def named_in(disk: Disk, user: str) -> set[str]:
    """The groups whose ledgers or files name a person, by reading all of them."""
    mark = re.compile(rb"(?<!\w)%b(?!\w)" % user.encode())
    found = {one for one, _ in disk.ledgers.by_age() if mark.search(disk.ledgers.log(one).read())}
    files = disk.documents(GROUPS)
    found |= {f"group-{name[:-5]}" for name in files.names() if mark.search(files.read(name))}
    return {one for one in found if one.startswith("group-")}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), st.sampled_from(CHANNELS), st.sampled_from(PEOPLE_IDS)),
        st.tuples(st.just("member"), st.sampled_from(CHANNELS), st.sampled_from(PEOPLE_IDS)),
        st.tuples(st.just("erase"), st.just(""), st.sampled_from(PEOPLE_IDS)),
        st.tuples(st.just("ask"), st.just(""), st.sampled_from(PEOPLE_IDS)),
        st.tuples(st.just("damage"), st.sampled_from(CHANNELS), st.sampled_from(PEOPLE_IDS)),
        st.tuples(st.just("lose"), st.just(""), st.just("")),
    ),
    max_size=25,
)


class TestNoGroupIsMissed:
    @FEW
    @given(STEPS)
    def test_whatever_happens_between_two_erasings(self, steps: list[tuple[str, str, str]]) -> None:
        async def work() -> None:
            with TemporaryDirectory() as folder:
                memory = Memory(Path(folder), clock=Clock())
                for step in steps:
                    await _step(memory, *step)
                for user in PEOPLE_IDS:
                    assert named_in(memory.disk, user) <= GroupIndex(memory.disk).of(user)
                    await memory.erase(f"user-{user}")
                    assert named_in(memory.disk, user) == set()
                names = memory.disk.documents(CURSORS).names()
                assert not [one for one in names if one.startswith(OF_PERSON)]

        asyncio.run(work())

    async def test_a_member_of_whom_nothing_was_recorded_is_found_in_a_shared_store(
        self, tmp_path: Path
    ) -> None:
        disk = Together().join().disk
        await learn(Memory(Disks(tmp_path, disk), clock=Clock()), "group-70", BOB)
        GroupIndex(disk).of(BOB)
        GroupIndex(disk).note("group-71", [ANN])
        assert GroupIndex(disk).of(ANN) == {"group-71"}
        assert GroupIndex(disk).recorded(BOB) == {"group-70"}

    async def test_an_index_that_is_lost_is_built_again_in_a_shared_store_too(self, tmp_path: Path) -> None:
        disk = Together().join().disk
        await learn(Memory(Disks(tmp_path, disk), clock=Clock()), "group-70", BOB)
        disk.documents(GROUPS).write("71.json", render_json(Group(members=((ANN, "Ann"),)).to_json()))
        GroupIndex(disk).of(BOB)
        cursors = disk.documents(CURSORS)
        assert cursors.remove([one for one in cursors.names() if one.startswith("groups-")])[0] > 1
        assert GroupIndex(disk).of(ANN) == {"group-71"}
        assert GroupIndex(disk).of(BOB) == {"group-70"}


class TestFewAreRead:
    async def test_only_the_groups_of_the_person_and_those_that_changed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory = Memory(tmp_path, clock=Clock())
        for number in range(40):
            await learn(memory, f"group-{number}", ANN if number == 7 else BOB)
        assert newest(memory.disk, ANN) > 0
        await learn(memory, "group-8", BOB, text="pies")
        read: list[bytes] = []
        original = groups._people_in
        monkeypatch.setattr(
            groups, "_people_in", lambda content: (read.append(content), original(content))[1]
        )
        assert GroupIndex(memory.disk).recorded(ANN) == {"group-7"}
        assert len(read) == 1
        assert GroupIndex(memory.disk).recorded(ANN) == {"group-7"}
        assert len(read) == 1

    async def test_a_disk_that_refuses_the_index_hides_no_group(self, tmp_path: Path) -> None:
        memory = Memory(tmp_path, clock=Clock())
        await learn(memory, "group-7", ANN)
        (tmp_path / "cursors").write_text("a file where the folder should be")
        assert GroupIndex(FilesDisk(tmp_path)).recorded(ANN) == {"group-7"}


async def _step(memory: Memory, what: str, group: str, user: str) -> None:
    files, log = memory.disk.documents(GROUPS), memory.ledgers.log(group)
    name = f"{group.removeprefix('group-')}.json"
    match what:
        case "learn":
            await learn(memory, group, user, BOB)
        case "member":
            known = json.loads(files.read(name)) if name in files.names() else {}
            now = Group.from_json(known)
            members = tuple(dict([*now.members, (user, "somebody")]).items())
            files.write(name, render_json(Group(members=members).to_json()))
        case "erase":
            await memory.erase(f"user-{user}")
        case "ask":
            GroupIndex(memory.disk).of(user)
        case "damage" if log.size():
            log.replace(log.read() + b'{"people": ["%b"], "torn\n' % user.encode())
        case "lose":
            memory.disk.documents(CURSORS).remove([f"{INDEX}.json"])

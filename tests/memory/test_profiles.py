"""Who people are, on disk: made at their first message, written behind, and gone with an erasing for good."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets
from discoclaw.core.profile import Profile
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import PROFILES
from tests.memory.kit import (
    ANN,
    NOW,
    Clock,
    asides,
    commits_of,
    durable_of,
    erased_from,
    ledger_of,
    listening,
    refusing,
    remember,
    tell_nobody,
    texts,
)

ID = ANN.removeprefix("user-")
S = NOW // 1000


def profiles_of(memory: Memory, clock: Clock, **given: Any) -> Profiles:
    given = {"consent": erased_from(memory), **given}
    profiles = Profiles(memory.disk.documents(PROFILES), memory, clock=clock, **given)
    memory.join(profiles)
    return profiles


@pytest.fixture
def profiles(memory: Memory, clock: Clock) -> Profiles:
    return profiles_of(memory, clock)


def on_disk(profiles: Profiles, user_id: str = ID) -> Any:
    """The file; None when there is none."""
    name = f"{user_id}.json"
    return json.loads(profiles.documents.read(name)) if name in profiles.documents.names() else None


async def met(profiles: Profiles, name: str = "Ann", at: int = NOW, **given: Any) -> Any:
    """Somebody speaks, and what the file says then."""
    profiles.seen(ID, name, at, **given)
    await profiles.settle()
    return on_disk(profiles)


class TestAFirstMessage:
    async def test_makes_a_profile_with_name_and_time_which_nobody_waits_for(
        self, profiles: Profiles
    ) -> None:
        profiles.seen(ID, "Ann", NOW)  # no await
        assert (profiles.in_ram(ID), on_disk(profiles)) == (None, None)
        await profiles.close()
        assert on_disk(profiles) == {
            "display_names": [["Ann", S]],
            "first_seen": S,
            "notes": [],
            "preferences": {},
        }
        assert profiles.in_ram(ID) == Profile((("Ann", S),), S)

    async def test_finds_what_was_remembered_before(self, memory: Memory, profiles: Profiles) -> None:
        await memory.change(ANN, "why", remember("has a cat"))
        await profiles.settle()
        assert on_disk(profiles) is None  # who never spoke has no profile
        assert (await met(profiles))["notes"] == ["has a cat"]

    async def test_of_somebody_who_opted_out_makes_none(self, memory: Memory, clock: Clock) -> None:
        out = {ID}
        profiles = profiles_of(memory, clock, consent=refusing(out.__contains__))
        assert await met(profiles) is None
        out.clear()
        assert (await met(profiles))["first_seen"] == S
        out.add(ID)
        assert (await met(profiles, "Anna"))["display_names"] == [["Ann", S]]
        profiles.seen(ID, "Anne", NOW)
        out.clear()
        profiles.seen(ID, "Bea", NOW)
        out.add(ID)  # before it was written
        await profiles.settle()
        out.clear()
        assert (await met(profiles, "Bea"))["display_names"] == [["Ann", S], ["Bea", S]]


class TestRenames:
    async def test_are_added_and_first_seen_stays(self, profiles: Profiles) -> None:
        for second, name in enumerate(["Ann", "Ann", "Anna", "Ann"]):
            file = await met(profiles, name, NOW + second * 1000)
        assert file["display_names"] == [["Ann", S], ["Anna", S + 2], ["Ann", S + 3]]
        assert file["first_seen"] == S

    async def test_another_name_on_another_server_is_no_rename_each_time(self, profiles: Profiles) -> None:
        for _ in range(3):
            for name, where in (("Ann", "100"), ("Boss", "200")):
                file = await met(profiles, name, where=where)
        assert [name for name, _ in file["display_names"]] == ["Ann", "Boss"]


class TestTheView:
    async def test_follows_what_changes_in_memory(self, memory: Memory, profiles: Profiles) -> None:
        told = listening(memory).units
        await met(profiles)

        def wish(draft: Draft) -> None:
            facets = Facets(key="indent")
            draft.upsert("preference", "User prefers tabs.", Origin("stated"), facets=facets)
            draft.upsert("fact", "has a cat", Origin("stated"), marked="private")
            draft.upsert("fact", "a secret", Origin("stated"), marked="confidential")

        await memory.change(ANN, "why", wish)
        await profiles.settle()
        file = on_disk(profiles)
        assert (file["notes"], file["preferences"]) == (["has a cat"], {"indent": "User prefers tabs."})
        assert told == [ANN, ANN]

    async def test_changes_that_wait_are_one_write_and_nothing_new_is_none(
        self, memory: Memory, clock: Clock, profiles: Profiles
    ) -> None:
        told = listening(memory).units
        for number in range(20):
            profiles.seen(ID, f"Ann {number}", NOW)
        await profiles.settle()
        assert len(on_disk(profiles)["display_names"]) == 20
        for one in (profiles, profiles_of(memory, clock)):
            await met(one, "Ann 19", at=NOW + 5000)
        assert told == [ANN]

    async def test_is_made_good_at_the_next_message_after_a_crash(
        self, memory: Memory, clock: Clock, profiles: Profiles
    ) -> None:
        await met(profiles)
        tell_nobody(memory)
        await memory.change(ANN, "why", remember("has a cat"))  # and nobody wrote the file
        assert (await met(profiles_of(memory, clock)))["notes"] == ["has a cat"]

    async def test_is_what_it_was_where_memory_can_not_be_read(
        self, memory: Memory, clock: Clock, profiles: Profiles
    ) -> None:
        await memory.change(ANN, "why", remember("has a cat"))
        await met(profiles)
        ledger_of(memory).unlink()
        ledger_of(memory).mkdir()
        clock.forward(minutes=61)
        again = profiles_of(memory, clock)
        assert (await met(again, "Anna"))["notes"] == ["has a cat"]
        assert [name for name, _ in on_disk(again)["display_names"]] == ["Ann", "Anna"]


class TestAnEditByHand:
    def edit(self, memory: Memory) -> None:
        path = durable_of(memory)
        path.write_text(path.read_text().replace("has a cat", "has a dog"))

    async def test_is_left_to_who_answers_and_shown_then(self, memory: Memory, profiles: Profiles) -> None:
        await memory.change(ANN, "why", remember("has a cat"))
        self.edit(memory)
        profiles.seen(ID, "Ann", NOW)
        await profiles.settle()
        assert len(commits_of(memory)) == 1  # nobody looked at the durable file
        assert await texts(memory) == ["has a dog"]
        await profiles.settle()
        assert on_disk(profiles)["notes"] == ["has a dog"]

    async def test_is_what_is_seen_first_after_a_start(
        self, memory: Memory, restart: Callable[[], Memory], clock: Clock
    ) -> None:
        await memory.change(ANN, "why", remember("has a cat"))
        self.edit(memory)
        again = restart()
        profiles = profiles_of(again, clock)
        profiles.seen(ID, "Ann", NOW)
        seen = set()
        while on_disk(profiles) is None:
            view = again.view_in_ram(ANN)
            seen |= {item.text for item in view.active()} if view is not None else set()
            await asyncio.sleep(0)
        assert seen <= {"has a dog"}
        await profiles.settle()
        assert on_disk(profiles)["notes"] == ["has a dog"]


class TestFilesThatAreNotAsTheyShouldBe:
    async def test_what_is_not_known_here_is_kept(
        self, memory: Memory, clock: Clock, profiles: Profiles
    ) -> None:
        await met(profiles)
        file = {**on_disk(profiles), "x_new": {"a": [1]}, "is_owner": True}
        profiles.documents.write(f"{ID}.json", json.dumps(file).encode())
        after = await met(profiles_of(memory, clock), "Anna")
        assert after["x_new"] == {"a": [1]}
        assert "is_owner" not in after
        assert after["display_names"] == [["Ann", S], ["Anna", S]]

    @pytest.mark.parametrize(
        "content", [b"", b"\xff", b"{}", b"[" * 9000, b'{"first_seen": 1, "x": "\\ud800"}']
    )
    async def test_one_that_can_not_be_read_is_kept_aside_and_counts_as_none(
        self, profiles: Profiles, content: bytes
    ) -> None:
        profiles.documents.write(f"{ID}.json", content)
        assert (await met(profiles))["first_seen"] == S
        (copy,) = asides(profiles.documents.folder / f"{ID}.json", "corrupt")
        assert copy.read_bytes() == content

    async def test_a_disk_that_fails_costs_nothing_but_time(
        self, profiles: Profiles, caplog: pytest.LogCaptureFixture
    ) -> None:
        profiles.documents.folder.write_text("a file in the way")
        profiles.seen(ID, "Ann", NOW)
        await profiles.settle()
        assert f"profiles: {ID} failed, next try in 30 s" in caplog.text
        profiles.documents.folder.unlink()
        profiles.seen("456", "Bob", NOW)  # anything that changes
        await profiles.settle()
        assert on_disk(profiles)["first_seen"] == S
        assert on_disk(profiles, "456") is not None

    async def test_ids_leave_no_folder(self, profiles: Profiles, root: Path) -> None:
        profiles.seen("../../x", "Eve", NOW)
        await profiles.settle()
        assert not list(root.parent.rglob("x.json"))


class TestErasing:
    @pytest.mark.every_store
    async def test_leaves_nothing_and_a_message_from_before_makes_nothing(
        self, memory: Memory, profiles: Profiles
    ) -> None:
        await met(profiles)
        profiles.documents.write(f"{ID}.json.corrupt-1", b"Ann")
        at = (await memory.erase(ANN)).at
        assert profiles.in_ram(ID) is None
        assert await met(profiles, at=at) is None
        assert profiles.documents.names() == []
        assert (await met(profiles, "Anna", at + 1))["display_names"] == [["Anna", (at + 1) // 1000]]

    async def test_finds_nobody_writing(self, memory: Memory, profiles: Profiles) -> None:
        """Whatever was under way when it began is not on disk when it is done."""
        for pauses in range(8):
            profiles.seen(ID, f"Ann {pauses}", NOW + pauses)
            await memory.change(ANN, "why", remember(f"thing {pauses}"))
            for _ in range(pauses):
                await asyncio.sleep(0)
            at = (await memory.erase(ANN)).at
            await profiles.settle()
            assert profiles.documents.names() == []
            assert at >= NOW

    async def test_is_not_undone_by_a_file_that_is_put_back(
        self, memory: Memory, clock: Clock, profiles: Profiles
    ) -> None:
        await met(profiles)
        content = profiles.documents.read(f"{ID}.json")
        clock.forward(minutes=1)
        at = (await memory.erase(ANN)).at
        profiles.documents.write(f"{ID}.json", content)
        again = profiles_of(memory, clock)
        assert await again.get(ID) is None
        assert (await met(again, "Anna", at + 1))["display_names"] == [["Anna", (at + 1) // 1000]]

    @pytest.mark.every_store
    async def test_of_somebody_else_changes_no_byte(self, memory: Memory, profiles: Profiles) -> None:
        await met(profiles)
        before = profiles.documents.read(f"{ID}.json")
        profiles.seen("1234", "Bob", NOW)
        await profiles.settle()
        await memory.erase("user-1234")
        assert profiles.documents.names() == [f"{ID}.json"]
        assert profiles.documents.read(f"{ID}.json") == before


class TestRam:
    async def test_nothing_is_read_at_the_start_and_who_is_silent_leaves(
        self, memory: Memory, clock: Clock, profiles: Profiles
    ) -> None:
        await met(profiles)
        again = profiles_of(memory, clock)
        assert (again.in_ram(ID), again.at_hand(ID)) == (None, False)
        assert (await again.get(ID)).name == "Ann"
        assert again.at_hand(ID)
        assert await again.get("999") is None
        assert again.at_hand("999"), "it is known that there is nothing"
        clock.forward(minutes=61)
        again.seen("456", "Bob", NOW)
        assert again.in_ram(ID) is None
        await again.settle()

"""Whom the bot knows, for its admin: counts, page by page, on every store."""

from collections.abc import Callable
from typing import cast

import pytest

from discoclaw.app.page import MOST_BYTES, MOST_SHOWN, KnownPeople
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault
from discoclaw.core.purge import erasing
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import Disk, Log
from tests.purging import from_ram


async def remembered(memory: Memory, user_id: int, *texts: str) -> None:
    for text in texts:
        await memory.change(f"user-{user_id}", "why", lambda draft, text=text: add(draft, text))


def add(draft: Draft, text: str) -> None:
    draft.upsert("fact", text, Origin("stated"))


def no(user_id: str) -> bool:
    return False


class Late:
    """A store, and its ledgers; something happens whenever one of them is about to be read."""

    def __init__(self, disk: Disk, then: Callable[[], None]) -> None:
        self.documents, self.by_age = disk.documents, disk.ledgers.by_age
        self._disk, self._then = disk, then

    @property
    def ledgers(self) -> "Late":
        return self

    def log(self, subject: str) -> Log:
        self._then()
        return self._disk.ledgers.log(subject)


@pytest.mark.every_store
class TestPeople:
    async def test_are_counted_whoever_changed_last(self, memory: Memory) -> None:
        people = KnownPeople(memory.disk, lambda user_id: user_id == "2")
        assert (people.page(1).total, people.page(1).pages) == (0, 1)
        await remembered(memory, 1, "a", "b")
        await remembered(memory, 2, "c")
        await memory.change("group-7", "why", lambda draft: add(draft, "d"))
        shown = people.page(1).shown
        assert {(one.id, one.memories, one.changes, one.opted_out) for one in shown} == {
            ("2", 1, 1, True),
            ("1", 2, 2, False),
        }
        await remembered(memory, 1, "e")
        assert {(one.id, one.memories) for one in people.page(1).shown} == {("1", 3), ("2", 1)}

    async def test_come_in_pages(self, memory: Memory) -> None:
        for user_id in range(MOST_SHOWN + 2):
            await remembered(memory, user_id, "a")
        people = KnownPeople(memory.disk, lambda user_id: False)
        ids = [[one.id for one in people.page(number).shown] for number in (1, 2)]
        assert [len(page) for page in ids] == [MOST_SHOWN, 2]
        assert {*ids[0], *ids[1]} == {str(user_id) for user_id in range(MOST_SHOWN + 2)}
        assert people.page(3).number == 2
        assert people.page(0).number == 1


class TestAPerson:
    async def test_whose_history_is_very_long_is_listed_without_counts(self, memory: Memory) -> None:
        await remembered(memory, 1, "a")
        with (memory.ledger_folder / "user-1.jsonl").open("ab") as ledger:
            ledger.write(b" " * MOST_BYTES)
        (one,) = KnownPeople(memory.disk, lambda user_id: False).page(1).shown
        assert (one.id, one.memories, one.changed) == ("1", None, None)

    async def test_with_a_damaged_history_is_marked(self, memory: Memory) -> None:
        await remembered(memory, 1, "a", "b")
        path = memory.ledger_folder / "user-1.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"a"', b'"x"', 1))
        (one,) = KnownPeople(memory.disk, lambda user_id: False).page(1).shown
        assert one.faults

    async def test_who_is_erased_leaves_ram(self, memory: Memory) -> None:
        await remembered(memory, 1, "a")
        people = KnownPeople(memory.disk, lambda user_id: False)
        people.page(1)
        from_ram(people, erasing("user-1", 0))
        assert "user-1" not in repr(vars(people))

    async def test_who_is_erased_while_their_ledger_is_read_leaves_ram_too(self, memory: Memory) -> None:
        await remembered(memory, 1, "a")
        people = KnownPeople(
            cast(Disk, Late(memory.disk, lambda: from_ram(people, erasing("user-1", 0)))), no
        )
        people.page(1)
        assert "user-1" not in repr(vars(people))

    async def test_with_a_broken_profile_has_no_name(self, memory: Memory) -> None:
        await remembered(memory, 1, "a")
        profiles = memory.disk.documents("profiles")
        for content in (b"[" * 5000, b"\xff", b"{}"):
            profiles.write("1.json", content)
            assert KnownPeople(memory.disk, lambda user_id: False).page(1).shown[0].name == ""

    async def test_of_a_store_that_cannot_be_read_is_a_fault(self, memory: Memory) -> None:
        await remembered(memory, 1, "a")
        ledger = memory.ledger_folder / "user-1.jsonl"
        ledger.unlink()
        ledger.symlink_to("/dev/null")  # which may be somebody else's file
        with pytest.raises(MemoryFault, match="the store can't be read"):
            KnownPeople(memory.disk, lambda user_id: False).page(1)

"""What was read of files is kept for a while, and goes with the message that it came with."""

import asyncio
import base64
from dataclasses import replace

import pytest

from discoclaw.core.attached import Content, Encoded, FileRef, Picture, TextFile, Unreadable
from discoclaw.core.personal import Erasure
from discoclaw.core.subject import user_subject
from discoclaw.core.taken_back import Withdrawal, Words, distinctive
from discoclaw.session.files.shelf import Origin, Read, Shelf
from tests.session.scene import ANN, BOB, HOUR, NOW, Clock, said

LATER = NOW + HOUR


class Files:
    """Reads what it has by name, once the gate is open. `read_files` are the ids that it was asked for."""

    def __init__(self) -> None:
        self.contents: dict[str, Content] = {}
        self.read_files: list[str] = []
        self.gate: asyncio.Event | None = None

    async def read(self, file: FileRef) -> Content | Unreadable:
        self.read_files.append(file.id)
        if self.gate is not None:
            await self.gate.wait()
        return self.contents.get(file.name) or Unreadable(file.name, "It is broken.")


def ref(number: int, name: str = "cat.png") -> FileRef:
    return FileRef(f"f{number}", str(number), ANN.id, name, 10)


def origin(number: int = 1, text: str = "", *, private: bool = False) -> Origin:
    return Origin(said(number, ANN, text), private)


class Room:
    """A shelf, the files that it reads, and the time."""

    def __init__(self, most: int = 1_000) -> None:
        self.files = Files()
        self.clock = Clock()
        self.shelf = Shelf(self.files, clock=self.clock, most=most)
        self.files.contents["cat.png"] = Picture("cat.png", "image/png", b"cat" * 10, 750, 2)
        self.files.contents["log.txt"] = TextFile("log.txt", "error")

    async def put(self, number: int, name: str = "cat.png", text: str = "", *, private: bool = False) -> Read:
        task = self.shelf.read(ref(number, name), origin(number, text, private=private), keep=True)
        assert task is not None
        return await task


@pytest.fixture
def room() -> Room:
    return Room()


class TestWhatIsRead:
    async def test_is_encoded_once_and_kept(self, room: Room) -> None:
        read = await room.put(1)
        assert read == Encoded("cat.png", "image/png", base64.b64encode(b"cat" * 10).decode(), tokens=2)
        assert room.shelf.look(ref(1)) == read
        assert room.files.read_files == ["f1"]

    async def test_is_whole_whatever_its_size(self, room: Room) -> None:
        data = bytes(range(256)) * 4_001
        room.files.contents["cat.png"] = Picture("cat.png", "image/png", data, 1, 1)
        read = await room.put(1)
        assert isinstance(read, Encoded) and base64.b64decode(read.data) == data

    async def test_is_kept_once_however_often_it_was_sent(self, room: Room) -> None:
        await room.put(1)
        size = room.shelf.size
        room.files.contents["my cat.png"] = replace(room.files.contents["cat.png"], name="my cat.png")
        await room.put(2, "my cat.png")
        assert room.shelf.size == size
        names = [
            kept.name for kept in (room.shelf.look(ref(1)), room.shelf.look(ref(2, "my cat.png"))) if kept
        ]
        assert names == ["cat.png", "my cat.png"]

    async def test_is_read_once_at_a_time(self, room: Room) -> None:
        first = room.shelf.read(ref(1), origin(), keep=True)
        assert room.shelf.read(ref(1), origin(), keep=True) is first
        await room.shelf.settle()
        assert room.files.read_files == ["f1"]

    async def test_is_not_kept_of_somebody_who_wants_no_memory(self, room: Room) -> None:
        task = room.shelf.read(ref(1), origin(), keep=False)
        assert task is not None and isinstance(await task, Encoded)
        assert room.shelf.look(ref(1)) is None and room.shelf.size == 0

    async def test_is_not_kept_if_it_could_not_be_read(self, room: Room) -> None:
        assert await room.put(1, "broken.png") == Unreadable("broken.png", "It is broken.")
        assert room.shelf.failed(ref(1, "broken.png")) and room.shelf.size == 0


class TestRoom:
    async def test_is_made_by_what_was_not_used_for_longest(self) -> None:
        room = Room(most=90)  # two pictures have 80 bytes
        for number, byte in ((1, b"a"), (2, b"b"), (3, b"c")):
            room.files.contents[f"{number}.png"] = Picture(f"{number}.png", "image/png", byte * 30, 1, 1)
        await room.put(1, "1.png")
        await room.put(2, "2.png")
        assert room.shelf.look(ref(1, "1.png")) is not None
        await room.put(3, "3.png")
        kept = [number for number in (1, 2, 3) if room.shelf.look(ref(number, f"{number}.png"))]
        assert kept == [1, 3]

    async def test_is_given_back_after_an_hour(self, room: Room) -> None:
        await room.put(1)
        room.clock.forward(HOUR - 1_000)
        assert room.shelf.look(ref(1)) is not None
        room.clock.forward(HOUR + 1_000)
        assert room.shelf.look(ref(1)) is None and room.shelf.size == 0

    async def test_is_none_where_nothing_may_be_kept(self) -> None:
        room = Room(most=0)
        assert isinstance(await room.put(1), Encoded)
        assert room.shelf.size == 0


def taken_back(*, by: str = ANN.id, **given: object) -> Withdrawal:
    return Withdrawal(user_subject(by), LATER, **given)


class TestTakingBack:
    @pytest.mark.parametrize(
        ("withdrawal", "gone"),
        [
            (taken_back(messages={"1": "10"}), [1]),
            (taken_back(words=Words(distinctive("my zebra"))), [2]),
            (taken_back(everything=True), [1, 2]),
            (taken_back(by=BOB.id, everything=True), []),
            (taken_back(messages={"1": "10"}, open_only=True), [1]),
            (taken_back(words=Words(distinctive("my zebra")), open_only=True), []),
        ],
        ids=["a message", "a word", "everything", "another's", "the open", "the open, said in private"],
    )
    async def test_takes_what_came_with_it(self, room: Room, withdrawal: Withdrawal, gone: list[int]) -> None:
        await room.put(1, text="look")
        await room.put(2, "log.txt", "my zebra", private=True)
        room.shelf.let_go(withdrawal)
        left = [(1, "cat.png"), (2, "log.txt")]
        assert [number for number, name in left if room.shelf.look(ref(number, name)) is None] == gone

    async def test_leaves_what_another_message_brought_too(self, room: Room) -> None:
        await room.put(1)
        await room.put(2)
        room.shelf.drop(["1"])
        assert room.shelf.look(ref(1)) is None and room.shelf.look(ref(2)) is not None

    async def test_an_erasing_takes_all_of_a_person(self, room: Room) -> None:
        await room.put(1)
        room.shelf.forget(Erasure(user_subject(BOB.id), LATER))
        assert room.shelf.size > 0
        room.shelf.forget(Erasure(user_subject(ANN.id), LATER))
        assert room.shelf.size == 0

    async def test_an_edit_takes_the_files_that_it_removed(self, room: Room) -> None:
        await room.put(1)
        room.shelf.keep_only("1", {"f1"})
        assert room.shelf.look(ref(1)) is not None
        room.shelf.keep_only("1", set())
        assert room.shelf.look(ref(1)) is None

    @pytest.mark.parametrize("how", ["erased", "withdrawn", "deleted", "edited", "closed"])
    async def test_leaves_nothing_of_what_is_being_read(self, room: Room, how: str) -> None:
        room.files.gate = asyncio.Event()
        task = room.shelf.read(ref(1), origin(), keep=True)
        assert task is not None
        await asyncio.sleep(0)
        if how == "erased":
            room.shelf.forget(Erasure(user_subject(ANN.id), LATER))
        elif how == "withdrawn":
            room.shelf.let_go(taken_back(everything=True))
        elif how == "deleted":
            room.shelf.drop(["1"])
        elif how == "edited":
            room.shelf.keep_only("1", set())
        else:
            await room.shelf.close()
        room.files.gate.set()
        await asyncio.wait([task])
        assert task.cancelled() and room.shelf.size == 0
        await room.shelf.settle()

    async def test_a_deleted_message_is_not_read_any_more(self, room: Room) -> None:
        room.shelf.drop(["1"])
        assert room.shelf.read(ref(1), origin(), keep=True) is None
        assert room.files.read_files == []

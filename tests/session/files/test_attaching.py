"""The files of a turn: which ones its prompt has, how long it waits for them, and what a preview does."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discoclaw.core.attached import TOKENS_A_PAGE, Content, Encoded, FileRef, Picture, TextFile, Unreadable
from discoclaw.core.message import Author, Inbound
from discoclaw.core.model import UserTurn
from discoclaw.core.personal import Erasure
from discoclaw.core.subject import user_subject
from discoclaw.session.files.arranging import Room, arranged
from discoclaw.session.files.attaching import Bounds
from discoclaw.session.files.choosing import OWN, Wanted
from discoclaw.session.files.shelf import Origin, Shelf
from tests.prompt.reader import FILES, TURN_TITLES, sections
from tests.session.scene import ANN, BOB, NOW, House, Recorder, house, inbound, said, until

IMPATIENT = Bounds(own_s=0.05, older_s=0.05)


class Served:
    """Reads a picture for every name that ends like one, else a text; what is `held` waits for the gate."""

    def __init__(self, *held: str) -> None:
        self.held = set(held)
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()
        self.read_names: list[str] = []

    async def read(self, file: FileRef) -> Content | Unreadable:
        self.read_names.append(file.name)
        self.asked.set()
        if file.name in self.held:
            await self.gate.wait()
        if file.name.endswith(".png"):
            return Picture(file.name, "image/png", file.name.encode(), 10, 10)
        return TextFile(file.name, f"words of {file.name}")


def ref(number: int, name: str, author: Author = ANN, **given: Any) -> FileRef:
    return FileRef(f"{number}/{name}", str(number), author.id, name, 10, **given)


def message(number: int, text: str, *names: str, author: Author = ANN) -> Inbound:
    return inbound(number, text, author, files=tuple(ref(number, name, author) for name in names))


def shelf_of(home: House) -> Shelf:
    """The part that keeps what was read."""
    return next(part for part in home.memory.personal if isinstance(part, Shelf))


async def asked(home: House, one: Inbound) -> Recorder:
    """Say something and have it answered."""
    reply = Recorder()
    home.hear(one)
    home.answer(one, reply)
    await home.settle()
    return reply


def turn(home: House) -> UserTurn:
    """The first turn of the last request."""
    first = home.model.requests[-1].turns[0]
    assert isinstance(first, UserTurn)
    return first


def named(home: House) -> list[str]:
    """The lines of the section about files."""
    return sections(turn(home).text, TURN_TITLES).get(FILES, [])


class TestWaiting:
    async def test_for_a_slow_file_costs_a_sentence_and_not_the_reply(self, tmp_path: Path) -> None:
        served = Served("slow.png")
        home = house(tmp_path, reader=served, bounds=IMPATIENT)
        reply = await asked(home, message(1, "look", "slow.png", "fast.txt"))
        assert reply.text.endswith(
            "“slow.png” took too long to load, so I answered without it. Please ask again in a moment."
        )
        assert named(home)[0] == "- “slow.png”, with this message: couldn't be read; the person is told why"
        assert named(home)[-1] == "  > words of fast.txt"
        assert turn(home).media == ()
        served.gate.set()  # what came too late is there for the next turn
        await shelf_of(home).settle()
        await asked(home, message(5, "and now?"))
        assert [one.name for one in turn(home).media] == ["slow.png"]
        assert served.read_names.count("slow.png") == 1

    async def test_for_older_files_is_not_even_told(self, tmp_path: Path) -> None:
        home = house(tmp_path, reader=Served("slow.png"), bounds=IMPATIENT)
        home.hear(message(1, "look", "slow.png", author=BOB))
        reply = await asked(home, message(2, "well?"))
        assert (reply.text, named(home)) == ("All right.", [])
        await shelf_of(home).close()


class TestTakingBackWhileItIsRead:
    async def test_leaves_nothing_and_the_answer_goes_without(self, tmp_path: Path) -> None:
        served = Served("cat.png")
        home = house(tmp_path, reader=served)
        one, reply = message(1, "look", "cat.png"), Recorder()
        home.hear(one)
        home.answer(one, reply)
        await served.asked.wait()
        shelf_of(home).forget(Erasure(user_subject(ANN.id), NOW + 10))
        await home.settle()
        assert (turn(home).media, named(home), reply.text) == ((), [], "All right.")
        assert shelf_of(home).size == 0

    @pytest.mark.parametrize("how", ["deleted", "without its file", "erased"])
    async def test_leaves_nothing_of_others_that_was_read_before(self, tmp_path: Path, how: str) -> None:
        """The prompt had what was there when the wait for another file began."""
        served = Served("late.png")
        home = house(tmp_path, reader=served)
        first, second = message(1, "my passport", "old.png", author=BOB), message(3, "look")
        await asked(home, first)
        for one in (message(2, "more", "late.png"), second):
            home.hear(one)
        home.answer(second, Recorder())
        await until(lambda: "late.png" in served.read_names)
        if how == "deleted":
            home.talk.listener.forget({"1"}, first.session_key)
        elif how == "erased":
            shelf_of(home).forget(Erasure(user_subject(BOB.id), NOW + 10))
        else:
            home.talk.listener.amend(said(1, BOB, text="my holiday"), first.session_key)
        served.gate.set()
        await home.settle()
        assert [one.name for one in turn(home).media] == ["late.png"]
        assert not any("old.png" in line for line in named(home))
        assert ("passport" in turn(home).text) == (how == "erased")  # the window has it from another part


class TestAPreview:
    async def test_names_the_files_and_reads_none(self, tmp_path: Path) -> None:
        served = Served()
        home = house(tmp_path, reader=served)
        home.hear(message(1, "look", "cat.png", "log.txt"))
        made = await home.talk.previews.of(inbound(2, "what is it?"))
        entries = [(one.label, one.name, one.whence) for one in made.ready.prompt.files]
        assert entries == [
            ("Text 1", "cat.png", "from Ann, 1 message ago"),  # its type says nothing
            ("Text 2", "log.txt", "from Ann, 1 message ago"),
        ]
        assert served.read_names == []


class TestWhichFiles:
    async def test_own_ones_come_first_then_older_ones_from_the_newest(self, tmp_path: Path) -> None:
        home = house(tmp_path, reader=Served(), bounds=Bounds(older=2))
        for number in (1, 2, 3):
            home.hear(message(number, "look", f"{number}.png"))
        await asked(home, message(4, "which?", "4.png"))
        assert [one.name for one in turn(home).media] == ["4.png", "3.png", "2.png"]
        assert [one.older for one in turn(home).media] == [False, True, True]
        assert named(home)[1] == "- Picture 2: “3.png”, from Ann, 1 message ago"

    async def test_a_file_that_came_twice_is_shown_once(self, tmp_path: Path) -> None:
        home = house(tmp_path, reader=Served())
        first = message(1, "look", "cat.png")
        home.hear(first)
        answering = replace(message(2, "well?"), files=first.files)
        await asked(home, answering)
        assert [one.name for one in turn(home).media] == ["cat.png"]

    async def test_voice_messages_are_not_among_them(self, tmp_path: Path) -> None:
        served = Served()
        home = house(tmp_path, reader=served)
        await asked(home, inbound(1, "hello", files=(ref(1, "voice.ogg", voice=True),)))
        assert (served.read_names, named(home)) == ([], [])


class TestRoom:
    @pytest.mark.parametrize(
        ("older", "said_so"), [(False, ["“b.png” is more than I can show the model"]), (True, [])]
    )
    async def test_is_for_so_many_tokens_at_once(self, older: bool, said_so: list[str]) -> None:
        served = Served()
        files = [Wanted(ref(1, name), said(1), OWN) for name in ("a.png", "b.png")]
        files[1] = replace(files[1], older=older)
        read = []
        shelf = Shelf(served, clock=lambda: 0, most=1_000)
        for one in files:
            task = shelf.read(one.file, Origin(one.said, private=False), keep=False)
            assert task is not None
            read.append((one, await task))
        made = arranged(read, Room(tokens=1, older_tokens=1))
        assert [one.name for one in made.media] == ["a.png"]
        assert [one.partition(" at once")[0] for one in made.notices] == said_so

    @pytest.mark.parametrize(("pages", "is_shown"), [(48, True), (49, False)])
    def test_is_named_in_pages_to_whoever_sends_too_many(self, pages: int, is_shown: bool) -> None:
        """By default, with 128,000 tokens of context."""
        paper = Encoded("paper.pdf", "application/pdf", "JVBERi0=", pages * TOKENS_A_PAGE, pages=pages)
        made = arranged([(Wanted(ref(1, "paper.pdf"), said(1), OWN), paper)], Room(128_000 * 3 // 4))
        assert bool(made.media) == is_shown
        assert is_shown or made.notices == (
            "“paper.pdf” has 49 pages; I can show the model about 48 at once. Please send those that matter.",
        )

    async def test_in_a_request_is_looked_at_before_documents_are_read(self, tmp_path: Path) -> None:
        """Of ten files of 10 MB one can be shown, and all ten were downloaded and kept in RAM."""
        served = Served()
        home = house(tmp_path, reader=served)
        papers = [replace(ref(1, f"{n}.pdf"), size=7_000_000, type="application/pdf") for n in range(4)]
        small = replace(ref(1, "5.pdf"), size=1_000_000, type="application/pdf")
        reply = await asked(home, inbound(1, "look", files=(*papers, small)))
        assert served.read_names == ["0.pdf", "1.pdf", "5.pdf"]
        assert [line for line in reply.text.splitlines() if ".pdf" in line] == [
            f"“{n}.pdf” is more than I can show the model at once. Please send it by itself, or less of it."
            for n in (2, 3)
        ]

    async def test_for_sentences_about_files_is_small(self, tmp_path: Path) -> None:
        home = house(tmp_path, reader=Served(), bounds=Bounds(each=1))
        reply = await asked(home, message(1, "look", *(f"{n}.txt" for n in range(10))))
        told = [line for line in reply.text.splitlines() if "read" in line]
        assert [line[:7] for line in told[:-1]] == [f"“{n}.txt”" for n in range(1, 6)]
        assert told[-1] == "I couldn't read 4 more of the files either."


class TestAChangeInTheChat:
    @pytest.mark.parametrize("how", ["deleted", "edited"])
    async def test_takes_the_file_at_once(self, tmp_path: Path, how: str) -> None:
        served = Served()
        home = house(tmp_path, reader=served)
        one = message(1, "look", "cat.png")
        await asked(home, one)
        if how == "deleted":
            home.talk.listener.forget({"1"}, one.session_key)
        else:
            home.talk.listener.amend(said(1, text="look"), one.session_key)  # which has no file any more
        assert shelf_of(home).size == 0
        await asked(home, message(2, "and now?"))
        assert (turn(home).media, served.read_names) == ((), ["cat.png"])

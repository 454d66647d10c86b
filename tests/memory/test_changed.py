"""Which ledgers changed since when: found once by listing, and then told by whoever writes."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from discoclaw.memory.cursors import Cursors
from discoclaw.memory.status import status_of
from discoclaw.memory.subjects import follow
from discoclaw.memory.subjects.follow import Follower
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import CURSORS, Mark
from tests.memory.kit import ANN, BOB, remember

EVE = "user-789"


async def everything(memory: Memory, mark: Mark = None) -> tuple[list[str], Mark]:
    """All that changed since a mark, part by part."""
    found, part = list[str](), True
    while part:
        some, mark = memory.ledgers.since(mark)
        found, part = found + some, bool(some)
    return found, mark


@pytest.mark.every_store
class TestWhatChanged:
    async def test_is_what_was_written_since_also_before_and_after_a_restart(
        self, restart: Callable[[], Memory]
    ) -> None:
        memory = restart()
        await memory.change(ANN, "why", remember("likes tea"))
        found, mark = await everything(memory)
        assert found == [ANN]
        await memory.change(BOB, "why", remember("likes mate"))
        assert memory.ledgers.since(mark)[0] == [BOB]
        later = restart()
        assert later.ledgers.since(mark)[0] == [BOB]
        await later.change(ANN, "why", remember("likes mate"))
        found, newer = await everything(later, mark)
        assert found == [BOB, ANN]
        assert restart().ledgers.since(newer)[0] == []

    async def test_is_found_although_nobody_told_of_it(self, restart: Callable[[], Memory]) -> None:
        """The program was killed between the commit and the next answer, or another program wrote."""
        memory = restart()
        for subject in (ANN, BOB):
            await memory.change(subject, "why", remember("likes tea"))
        _, mark = await everything(memory)
        other = restart()
        await other.change(BOB, "why", remember("likes mate"))
        await other.change(EVE, "why", remember("likes mate"))
        assert sorted(restart().ledgers.since(mark)[0]) == [BOB, EVE]

    async def test_names_nobody_who_was_erased(self, restart: Callable[[], Memory]) -> None:
        memory = restart()
        for subject in (ANN, BOB):
            await memory.change(subject, "why", remember("likes tea"))
        _, mark = await everything(memory)
        await memory.change(ANN, "why", remember("likes mate"))
        await memory.erase(ANN)
        assert ANN not in memory.ledgers.since(mark)[0]
        cursors = memory.disk.documents(CURSORS)
        assert ANN.encode() not in b"".join(cursors.read_all().values())
        assert ANN not in restart().ledgers.since(None)[0]


class TestTheIndex:
    async def test_is_continued_with_the_changes_alone(
        self, restart: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(follow, "MOST_RECENT", 3)
        memory = restart()
        marks = [(await everything(memory))[1]]
        for number in range(10):
            await memory.change(f"user-{number % 5}", "why", remember(f"thing {number}"))
            marks.append((await everything(memory, marks[-1]))[1])
            for since, mark in enumerate(marks):
                expected = list(dict.fromkeys(f"user-{one % 5}" for one in range(number, since - 1, -1)))[
                    ::-1
                ]
                assert restart().ledgers.since(mark)[0] == memory.ledgers.since(mark)[0] == expected

    @pytest.mark.parametrize("content", [b"", b"[]", b'{"store": "a", "last": 1, "ledgers": {"a": 1}}'])
    async def test_that_is_lost_means_that_all_changed(
        self, restart: Callable[[], Memory], content: bytes
    ) -> None:
        memory = restart()
        for subject in (ANN, BOB):
            await memory.change(subject, "why", remember("likes tea"))
        _, mark = await everything(memory)
        memory.disk.documents(CURSORS).write("ledgers.json", content)
        assert sorted(restart().ledgers.since(mark)[0]) == [ANN, BOB]

    async def test_that_cannot_be_saved_moves_no_mark(
        self, restart: Callable[[], Memory], root: Path
    ) -> None:
        memory = restart()
        await memory.change(ANN, "why", remember("likes tea"))
        (root / "cursors").write_text("a file where the folder should be")
        assert memory.ledgers.since(None) == memory.ledgers.since(None) == ([ANN], None)
        (root / "cursors").unlink()
        found, mark = memory.ledgers.since(None)
        assert found == [ANN] and mark is not None

    async def test_takes_over_the_mark_of_an_earlier_version(self, restart: Callable[[], Memory]) -> None:
        memory = restart()
        for subject in (ANN, BOB):
            await memory.change(subject, "why", remember("likes tea"))
        sizes = dict(memory.ledgers.by_age())
        folder = memory.disk.documents(CURSORS)
        folder.write("follow-board.json", json.dumps({"done": {}, "todo": []}).encode())
        folder.write("follow-board-mark.json", json.dumps({"mark": {**sizes, BOB: 1}}).encode())
        shown = list[str]()

        async def show(subject: str) -> None:
            shown.append(subject)

        later = restart()
        await self.caught_up(later, show)
        assert shown == [BOB]
        assert "follow-board-mark.json" not in folder.names()
        assert status_of(later.disks).behind == {"board": 0}

    async def test_is_asked_for_a_part_at_a_time_even_if_a_whole_part_fails(
        self, restart: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(follow, "MOST_AT_ONCE", 3)
        memory = restart()
        for number in range(10):
            await memory.change(f"user-{number}", "why", remember("likes tea"))
        tried = list[str]()

        async def fail(subject: str) -> None:
            tried.append(subject)
            raise ConnectionError("the board is not there")

        await self.caught_up(memory, fail)
        assert tried == [f"user-{number}" for number in range(10)]
        assert status_of(memory.disks).behind == {"board": 10}

    async def caught_up(self, memory: Memory, mirror: Callable[[str], Awaitable[None]]) -> None:
        follower = Follower(
            "board", mirror, ledgers=memory.ledgers, cursors=Cursors(memory.disk.documents(CURSORS))
        )
        await follower.start()
        await follower.catch_up()
        await follower.settle()
        await follower.close()

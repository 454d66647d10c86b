"""Followers mirror what changed, at their own pace, and the writer never learns of their troubles."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from discoclaw.memory.cursors import Cursors
from discoclaw.memory.status import status_of
from discoclaw.memory.stores import Disks
from discoclaw.memory.subjects.follow import Follower
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.port import CURSORS
from tests.memory.kit import ANN, BOB, Clock, remember, tell_nobody, texts

Follow = Callable[..., Awaitable[Follower]]


class Board:
    """A mirror: what it shows of each subject. It fails as often as told, and then works."""

    def __init__(self, memory: Memory, *, failures: int = 0) -> None:
        self.shown: dict[str, list[str]] = {}
        self.tried: list[tuple[str, float]] = []
        self._memory = memory
        self._failures = failures

    async def mirror(self, subject: str) -> None:
        self.tried.append((subject, time.monotonic()))
        if self._failures > 0:
            self._failures -= 1
            raise ConnectionError("the board is not there")
        self.shown[subject] = await texts(self._memory, subject)

    @property
    def subjects(self) -> list[str]:
        return [subject for subject, _ in self.tried]


@pytest.fixture
def follow(memory: Memory) -> Follow:
    """A follower of the memory as a start makes it: it knows only the cursors on disk."""

    async def start(board: Board, *, retry_s: float = 0.01) -> Follower:
        tell_nobody(memory)  # another one before it hears nothing any more
        follower = Follower(
            "board",
            board.mirror,
            ledgers=memory.ledgers,
            cursors=Cursors(memory.disk.documents(CURSORS)),
            retry_s=retry_s,
        )
        memory.join(follower)
        await follower.start()
        return follower

    return start


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not done():  # noqa: ASYNC110 - it is the mirror's own pace that is watched
            await asyncio.sleep(0.005)


class TestHowFarItIs:
    @pytest.mark.every_store
    async def test_counts_what_is_not_mirrored_as_it_is_now(self, memory: Memory, follow: Follow) -> None:
        board = Board(memory, failures=1)
        follower = await follow(board, retry_s=60)
        await follower.catch_up()
        await follower.settle()
        assert status_of(memory.disks).behind == {"board": 0}
        await memory.change(ANN, "why", remember("likes tea"))  # which the board refuses for now
        await memory.change(BOB, "why", remember("likes coffee"))
        await follower.settle()
        assert board.subjects == [ANN, BOB]
        assert status_of(memory.disks).behind == {"board": 1}
        await follower.close()
        await memory.change(BOB, "why", remember("likes cake"))
        assert status_of(memory.disks).behind == {"board": 2}


class TestWhatChangesIsMirrored:
    async def test_many_changes_are_few_mirrorings_and_the_last_state_shows(
        self, memory: Memory, follow: Follow
    ) -> None:
        board = Board(memory)
        follower = await follow(board)
        await asyncio.gather(*(memory.change(ANN, "why", remember(f"thing {n}")) for n in range(20)))
        await follower.settle()
        assert set(board.shown[ANN]) == {f"thing {n}" for n in range(20)}
        assert len(board.tried) <= 20

    async def test_a_change_made_during_the_mirroring_is_mirrored_too(
        self, memory: Memory, follow: Follow
    ) -> None:
        board = Board(memory)

        async def slow(subject: str) -> None:
            await board.mirror(subject)
            if len(board.tried) == 1:
                await memory.change(ANN, "why", remember("likes mate"))

        cursors = Cursors(memory.disk.documents(CURSORS))
        follower = Follower("board", slow, ledgers=memory.ledgers, cursors=cursors)
        memory.join(follower)
        await follower.start()
        await memory.change(ANN, "why", remember("likes tea"))
        await follower.settle()
        assert board.shown == {ANN: ["likes tea", "likes mate"]}


class TestAFailureIsTriedAgain:
    async def test_until_it_works_with_longer_and_longer_pauses(self, memory: Memory, follow: Follow) -> None:
        board = Board(memory, failures=4)
        await follow(board, retry_s=0.02)
        await memory.change(ANN, "why", remember("likes tea"))
        await until(lambda: ANN in board.shown)
        moments = [moment for _, moment in board.tried]
        pauses = [later - earlier for earlier, later in itertools.pairwise(moments)]
        for pause, least in zip(pauses, (0.02, 0.04, 0.08, 0.16), strict=True):
            assert pause >= least * 0.9

    async def test_other_subjects_get_their_turn(self, memory: Memory, follow: Follow) -> None:
        for subject in (ANN, BOB):
            await memory.change(subject, "why", remember("likes tea"))
        board = Board(memory, failures=1)
        await (await follow(board)).catch_up()
        await until(lambda: len(board.shown) == 2)
        failed, other, again = board.subjects
        assert failed == again != other

    async def test_closing_during_a_pause_is_quick_and_nothing_is_forgotten(
        self, memory: Memory, follow: Follow
    ) -> None:
        follower = await follow(Board(memory, failures=1), retry_s=30)
        await memory.change(ANN, "why", remember("likes tea"))
        await follower.settle()
        started = time.monotonic()
        await follower.close()
        assert time.monotonic() - started < 1
        board = Board(memory)
        later = await follow(board)
        await later.catch_up()
        await later.settle()
        assert board.subjects == [ANN]

    async def test_nothing_starts_after_closing(self, memory: Memory, follow: Follow) -> None:
        board = Board(memory)
        follower = await follow(board)
        await follower.close()
        await memory.change(ANN, "why", remember("likes tea"))
        await follower.settle()
        assert board.tried == []


class TestARestartCatchesUp:
    @pytest.fixture
    async def mirrored(self, memory: Memory, follow: Follow) -> None:
        """Two subjects were mirrored; then the program stopped."""
        follower = await follow(Board(memory))
        await follower.catch_up()
        await memory.change(ANN, "why", remember("likes tea"))
        await memory.change(BOB, "why", remember("likes mate"))
        await follower.settle()
        await follower.close()
        tell_nobody(memory)

    @pytest.mark.usefixtures("mirrored")
    async def test_with_only_what_changed_meanwhile(self, memory: Memory, follow: Follow) -> None:
        await memory.change(BOB, "why", remember("likes hiking"))
        assert await self.caught_up(memory, follow) == [BOB]
        assert await self.caught_up(memory, follow) == []

    @pytest.mark.usefixtures("mirrored")
    async def test_with_everything_when_the_cursor_is_lost(self, memory: Memory, follow: Follow) -> None:
        assert memory.disk.documents(CURSORS).remove(["follow-board.json"]) == (1, [])
        assert sorted(await self.caught_up(memory, follow)) == [ANN, BOB]
        assert await self.caught_up(memory, follow) == []

    @pytest.mark.usefixtures("mirrored")
    @pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"[" * 100_000])
    async def test_with_everything_when_the_cursor_is_no_cursor(
        self, memory: Memory, follow: Follow, content: bytes
    ) -> None:
        memory.disk.documents(CURSORS).write("follow-board.json", content)
        assert sorted(await self.caught_up(memory, follow)) == [ANN, BOB]

    async def test_a_cursor_that_can_not_be_saved_is_only_more_work(
        self, memory: Memory, root: Path, follow: Follow
    ) -> None:
        (root / "cursors").write_text("a file where the folder should be")
        await memory.change(ANN, "why", remember("likes tea"))
        assert await self.caught_up(memory, follow) == [ANN]
        assert await self.caught_up(memory, follow) == [ANN]

    async def caught_up(self, memory: Memory, follow: Follow) -> list[str]:
        """Which subjects a new start mirrors."""
        board = Board(memory)
        follower = await follow(board)
        await follower.catch_up()
        await follower.settle()
        await follower.close()
        tell_nobody(memory)
        return board.subjects


class TestCursors:
    async def test_a_forgotten_one_is_read_again(self, fresh: Callable[[], Disks], clock: Clock) -> None:
        cursors = Cursors(fresh().used.documents(CURSORS))
        await cursors.put("a", {"at": clock.now})
        cursors.drop("a")
        cursors.drop("never known")
        assert await cursors.get("a") == {"at": clock.now}

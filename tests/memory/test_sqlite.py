"""The store as one database: what becomes of its file when it is damaged, moved, locked or switched."""

import asyncio
import json
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from discoclaw.core.errors import FolderInUse, MemoryFault
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.stores import Disks, Store, disks
from discoclaw.memory.subjects import inspect
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.plain import FilesDisk
from discoclaw.store.port import CURSORS, ROLLING
from discoclaw.store.sqlite import SqliteDisk
from tests.memory.kit import ANN, BOB, STAMP, Clock, fingerprint, remember, start_child, texts

Restart = Callable[[], Memory]


@pytest.fixture
def store() -> Store:
    return "sqlite"


@pytest.fixture
def file(root: Path) -> Path:
    return root / "memory.sqlite"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a database with two people in it; to be copied."""

    async def fill() -> None:
        for number in range(60):
            await memory.change(ANN, "why", remember(f"thing {number}"))
        await memory.change(BOB, "why", remember("likes mate"))
        await Choices(memory.disk).choose("77", opted_out=True)

    root = tmp_path_factory.mktemp("made") / "memory"
    memory = Memory(disks("sqlite", root), clock=Clock())
    memory.open()
    asyncio.run(fill())
    memory.close()
    return root


@pytest.fixture
def closed(root: Path, made: Path, file: Path) -> Path:
    """A database with two people in it that nobody has open; its file."""
    shutil.copytree(made, root)
    return file


class TestTheFile:
    async def test_it_is_the_only_one_but_for_the_lock_and_caches(
        self, memory: Memory, root: Path, file: Path
    ) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        memory.close()
        assert sorted(path.name for path in root.iterdir()) == [
            ".lock",
            "memory.sqlite",
            "version.json",
        ]
        assert not memory.durable_folder.exists()

    async def test_any_tool_reads_the_lines_as_they_are(self, closed: Path) -> None:
        with closing(sqlite3.connect(closed)) as db:
            query = "SELECT line FROM lines JOIN logs ON log = logs.id WHERE name = 'ledger/user-456.jsonl'"
            ((line,),) = db.execute(query).fetchall()
        assert json.loads(line)["events"][0]["object"] == "likes mate"

    async def test_it_is_ours_alone(self, memory: Memory, file: Path) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.glob("memory.sqlite*")}
        assert found == dict.fromkeys([file.name, f"{file.name}-wal", f"{file.name}-shm"], 0o600)

    async def test_each_commit_is_synced(self, memory: Memory) -> None:
        assert isinstance(memory.disk, SqliteDisk)
        with memory.disk.reading() as db:
            assert db is not None
            said = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
        assert said == [b"wal", 2]

    async def test_it_is_looked_at_by_another_process_while_the_bot_writes(
        self, memory: Memory, fresh: Callable[[], Disks]
    ) -> None:
        outside = fresh().used
        for number in range(5):
            await memory.change(ANN, "why", remember(f"thing {number}"))
            looked = inspect.held(outside, ANN)
            assert (looked.view, looked.faults) == (await memory.view(ANN), ())
        assert inspect.subjects(outside) == [ANN]

    def test_looking_where_there_is_none_makes_none(self, root: Path) -> None:
        assert inspect.subjects(disks("sqlite", root).used) == []
        assert inspect.unfinished(disks("sqlite", root).used) == set()
        assert not root.exists()


class TestTwoProcesses:
    def test_a_second_one_that_writes_is_refused(self, root: Path, restart: Restart) -> None:
        with start_child("hold", root) as first:
            assert first.stdout is not None
            assert "held" in first.stdout.readline()
            try:
                with pytest.raises(FolderInUse):
                    restart().open()
            finally:
                first.kill()

    async def test_a_lock_of_another_program_is_a_fault_that_says_so(
        self, memory: Memory, file: Path
    ) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        assert isinstance(memory.disk, SqliteDisk)
        with memory.disk.reading() as db:
            assert db is not None
            db.execute("PRAGMA busy_timeout = 10")  # else it waits for five seconds
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(MemoryFault, match=r"memory\.sqlite: another program has locked it"):
                await memory.change(ANN, "why", remember("likes mate"))
            other.execute("ROLLBACK")
        assert await texts(memory) == ["likes tea"]
        await memory.change(ANN, "why", remember("likes mate"))

    async def test_a_file_that_was_moved_away_takes_nothing(self, memory: Memory, file: Path) -> None:
        await memory.change(ANN, "why", remember("likes tea"))
        for path in file.parent.glob("memory.sqlite*"):
            path.rename(path.with_name(path.name.replace("memory", "gone")))
        with pytest.raises(MemoryFault, match="changed by somebody else"):
            await memory.change(ANN, "why", remember("likes mate"))
        assert await memory.change(BOB, "why", remember("anew"))
        with closing(SqliteDisk(file.parent)) as disk:
            assert disk.ledgers.by_age()[0][0] == BOB


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "no database": lambda content: b"no database" * 1000,
    "its first page": lambda content: content[:100] + b"\xff" * 3996 + content[4096:],
    "a page of it": lambda content: content[: 6 * 4096] + b"\xff" * 4096 + content[7 * 4096 :],
    "the words of its schema": lambda content: content.replace(b"CREATE TABLE", b"CR\xc8ATE TABLE"),
    "its second half": lambda content: content[: len(content) // 2],
}


class TestADamagedFile:
    @pytest.fixture(params=DAMAGES)
    def damaged(self, request: pytest.FixtureRequest, closed: Path) -> Path:
        closed.write_bytes(DAMAGES[request.param](closed.read_bytes()))
        return closed

    def test_stops_the_start_with_the_way_out_and_is_not_touched(
        self, damaged: Path, restart: Restart
    ) -> None:
        before = damaged.read_bytes()
        for _ in range(2):
            with pytest.raises(MemoryFault, match=r"memory\.sqlite is damaged .*backup.*verify --repair"):
                restart().open()
        assert damaged.read_bytes() == before
        assert list(damaged.parent.glob("*corrupt*")) == []

    async def test_a_rescue_keeps_it_until_the_next_erasing_and_makes_one_that_opens(
        self, damaged: Path, restart: Restart
    ) -> None:
        before = damaged.read_bytes()
        said = restart().rescue()
        (aside,) = damaged.parent.glob("memory.sqlite.corrupt-*")
        assert aside.name == f"memory.sqlite.corrupt-{STAMP}"
        assert aside.read_bytes() == before
        assert str(aside) in said[0]
        assert "other texts were saved" in said[1]
        later = restart()
        later.open()
        await later.view(BOB)
        assert await later.change("user-9", "why", remember("anew"))
        await later.erase("user-9")  # an erasing of anybody removes the copies
        later.close()
        assert list(damaged.parent.glob("*corrupt*")) == []
        assert restart().rescue() == []


class TestAFileThatIsGone:
    """SQLite would drop its log, which has the latest changes, and begin anew without a word."""

    @pytest.mark.parametrize("emptied", [False, True])
    def test_stops_the_start_while_its_log_is_there(
        self, closed: Path, restart: Restart, emptied: bool
    ) -> None:
        log = closed.with_name("memory.sqlite-wal")
        closed.unlink()
        if emptied:
            closed.touch()
        log.write_bytes(b"what somebody said")
        with pytest.raises(MemoryFault, match=r"it is gone, and its log is not.*backup.*verify --repair"):
            restart().open()
        assert log.read_bytes() == b"what somebody said"
        assert "not everything could be read" in restart().rescue()[1]
        (aside,) = closed.parent.glob("memory.sqlite.corrupt-*")
        assert aside.read_bytes() == b"what somebody said"
        later = restart()
        later.open()
        later.close()

    def test_without_a_log_it_is_one_that_was_never_written(self, closed: Path, restart: Restart) -> None:
        closed.write_bytes(b"")
        later = restart()
        later.open()
        assert later.ledgers.by_age() == []
        later.close()


class TestWhatARescueSaves:
    async def test_is_everything_that_can_be_read(self, closed: Path, restart: Restart) -> None:
        """One page of Ann's lines is lost, and nothing else."""
        content, place = closed.read_bytes(), 0
        while b'"thing 30"' not in content[place : place + 4096]:
            place += 4096
        closed.write_bytes(content[:place] + b"\xff" * 4096 + content[place + 4096 :])
        assert "not everything could be read" in restart().rescue()[1]
        later = restart()
        later.open()
        assert await texts(later, BOB) == ["likes mate"]
        saved = await texts(later)
        assert "thing 0" in saved
        assert "thing 59" in saved
        assert "thing 30" not in saved
        with pytest.raises(MemoryFault, match="repair"):  # commits are missing, which is damage of the ledger
            await later.change(ANN, "why", remember("more"))
        choices = Choices(later.disk)
        choices.load()
        assert choices.opted_out("77")
        later.close()

    async def test_also_from_the_wal_of_a_killed_process(
        self, closed: Path, root: Path, clock: Clock, restart: Restart
    ) -> None:
        first = Memory(disks("sqlite", root), clock=clock)
        first.open()
        await first.change(BOB, "why", remember("in the WAL"))
        rescued = []
        for page in range(3, closed.stat().st_size // 4096):
            killed = root.parent / f"killed-{page}"
            shutil.copytree(root, killed)
            content = closed.read_bytes()
            (killed / closed.name).write_bytes(
                content[: page * 4096] + b"\xff" * 4096 + content[(page + 1) * 4096 :]
            )
            memory = Memory(disks("sqlite", killed), clock=clock)
            if memory.rescue():  # else the WAL has a newer picture of that page
                kept = killed / f"{closed.name}.corrupt-{STAMP}-wal"
                assert kept.read_bytes() == (root / f"{closed.name}-wal").read_bytes()
                rescued.append("in the WAL" in await texts(memory, BOB))
                memory.close()
        first.close()
        assert rescued.count(True) > len(rescued) / 2 > 0


class TestAFileThatIsNotOurs:
    @pytest.mark.parametrize(
        ("made", "why"),
        [
            ("PRAGMA user_version = 2", r"has version 2.*update it"),
            ("CREATE TABLE songs (name TEXT)", r"another program; move it away"),
            (None, r"memory\.sqlite"),
        ],
        ids=["of a newer version", "of another program", "a folder in its place"],
    )
    def test_stops_the_start_and_is_left_as_it_is(
        self, made: str | None, why: str, file: Path, restart: Restart
    ) -> None:
        file.parent.mkdir(parents=True)
        if made is None:
            file.mkdir()
        else:
            with closing(sqlite3.connect(file)) as db:
                db.execute(made)
        before = file.read_bytes() if made else b""
        with pytest.raises(MemoryFault, match=why):
            restart().open()
        assert made is None or file.read_bytes() == before


class TestNothingRemovedIsLeft:
    def test_not_even_where_rows_once_were(self, root: Path, file: Path) -> None:
        """Rows that grow, shrink and go leave copies in pages that SQLite reorganises."""
        disk, dice = SqliteDisk(root), random.Random(1)
        folder = disk.documents(CURSORS)
        left = 0
        for _ in range(3):
            for _ in range(600):
                who = dice.choice(["CANARY", "other"])
                size = dice.choice([1, 20, 200, 900, 3000])
                folder.write(f"{dice.randrange(150)}-{who}.json", f"{who} ".encode() + b"y" * size)
            folder.remove([name for name in folder.names() if "CANARY" in name])
            left += self.canaries(file)
            disk.wipe()
            assert self.canaries(file) == 0
        assert left > 0  # else this proves nothing
        assert len(folder.names()) > 100
        disk.close()

    def canaries(self, file: Path) -> int:
        return sum(path.read_bytes().count(b"CANARY") for path in file.parent.glob("memory.sqlite*"))

    async def test_an_erasing_reaches_what_another_store_still_holds(self, root: Path, clock: Clock) -> None:
        stores: tuple[Store, ...] = ("files", "sqlite")
        for store in stores:
            memory = Memory(disks(store, root), clock=clock)
            memory.open()
            await memory.change(ANN, "why", remember(f"CANARY in {store}"))
            await memory.change(BOB, "why", remember("likes mate"))
            memory.close()
        memory = Memory(disks("sqlite", root), clock=clock)
        memory.open()
        await memory.erase(ANN)
        memory.close()
        assert not any(b"CANARY" in path.read_bytes() for path in root.rglob("*") if path.is_file())
        for store in stores:
            with disks(store, root) as stored:
                assert inspect.subjects(stored.used) == [BOB]


class TestTheStoreIsSwitched:
    """What people decided comes along; what is remembered is left where it is, and that is said."""

    @pytest.fixture
    def starts(self, root: Path, clock: Clock) -> Iterator[Callable[[Store], tuple[Memory, Choices]]]:
        opened: list[Memory] = []

        def start(store: Store) -> tuple[Memory, Choices]:
            for one in opened:
                one.close()
            memory = Memory(disks(store, root), clock=clock)
            memory.open()
            opened.append(memory)
            choices = Choices(memory.disk)
            choices.load()
            return memory, choices

        yield start
        for one in opened:
            one.close()

    async def test_who_opted_out_and_was_erased_stays_so(
        self, starts: Callable[[Store], tuple[Memory, Choices]], root: Path
    ) -> None:
        memory, choices = starts("files")
        await choices.choose("1", opted_out=True)
        at = (await memory.erase(ANN)).at
        for store in ("sqlite", "files", "none", "sqlite", "none", "files"):
            memory, choices = starts(store)  # type: ignore[arg-type]
            assert choices.opted_out("1")
            assert memory.erased_at(ANN) == at
            assert memory.erased_at(BOB) == -1

    async def test_it_is_in_one_place_only_so_that_a_later_word_counts(
        self, starts: Callable[[Store], tuple[Memory, Choices]]
    ) -> None:
        _, choices = starts("files")
        await choices.choose("1", opted_out=True)
        _, choices = starts("sqlite")
        await choices.choose("1", opted_out=False)
        await choices.choose("2", opted_out=True)
        for store in ("sqlite", "files"):
            _, choices = starts(store)  # type: ignore[arg-type]
            assert [choices.opted_out(user) for user in ("1", "2")] == [False, True]

    async def test_memories_stay_where_they_are_and_that_is_said(
        self,
        starts: Callable[[Store], tuple[Memory, Choices]],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        memory, _ = starts("files")
        await memory.change(ANN, "why", remember("likes tea"))
        assert caplog.records == []
        memory, _ = starts("sqlite")
        assert await texts(memory) == []
        (warning,) = [one.getMessage() for one in caplog.records]
        assert warning.startswith("1 person has memories in the store 'files', which is not used")
        memory, _ = starts("files")
        assert await texts(memory) == ["likes tea"]

    def test_a_database_beside_that_nobody_can_read_stops_the_start(
        self, starts: Callable[[Store], tuple[Memory, Choices]], file: Path
    ) -> None:
        """It may say who opted out."""
        starts("files")
        file.write_bytes(b"no database" * 1000)
        with pytest.raises(MemoryFault, match=r"memory\.sqlite is damaged.*it says who opted out"):
            starts("files")


class TestNone:
    @pytest.fixture
    def store(self) -> Store:
        return "none"

    async def test_nothing_is_remembered_of_anybody(self, memory: Memory, root: Path, clock: Clock) -> None:
        before = fingerprint(root)
        assert (await memory.view(ANN)).items == {}
        with pytest.raises(MemoryFault, match="memory is off"):
            await memory.change(ANN, "why", remember("likes tea"))
        rolling = RollingMemory(
            memory.disk.documents(ROLLING), cursors=Cursors(memory.disk.documents(CURSORS)), clock=clock
        )
        with pytest.raises(MemoryFault, match="memory is off"):
            await rolling.put("discord:dm:1", "a talk", generation=await rolling.generation("discord:dm:1"))
        assert memory.ledgers.by_age() == inspect.subjects(memory.disk) == []
        assert fingerprint(root) == before
        assert not memory.disk.remembers

    async def test_what_lies_there_from_before_is_not_read_and_can_be_erased(
        self, root: Path, clock: Clock, fresh: Callable[[], Disks]
    ) -> None:
        files = Memory(root, clock=clock)
        files.open()
        await files.change(ANN, "why", remember("CANARY"))
        files.close()
        memory = Memory(fresh(), clock=clock)
        memory.open()
        assert await texts(memory) == []
        assert FilesDisk(root).ledgers.by_age()
        await memory.erase(ANN)
        memory.close()
        assert not any(b"CANARY" in path.read_bytes() for path in root.rglob("*") if path.is_file())
        assert FilesDisk(root).ledgers.by_age() == []

    async def test_a_cursor_of_the_program_itself_is_kept(
        self, memory: Memory, fresh: Callable[[], Disks]
    ) -> None:
        await Cursors(memory.disk.documents(CURSORS)).put("commands", {"hash": "x"})
        assert await Cursors(fresh().used.documents(CURSORS)).get("commands") == {"hash": "x"}

"""The store in PostgreSQL while its server dies, hangs, refuses or loses the answer to a commit."""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from discoclaw.core.errors import Overtaken
from discoclaw.store.port import CURSORS, LEDGERS, NO_LOG, Head
from discoclaw.store.postgres.connection import Connection, Unsure
from discoclaw.store.postgres.disk import PostgresDisk
from tests.memory.child import full_at
from tests.memory.kit import ANN, STAMP
from tests.servers.line import Line
from tests.servers.postgres import Postgres

KILLS = 10
Act = Callable[[PostgresDisk, Head], object]


@pytest.fixture
def disk(database: str) -> Iterator[PostgresDisk]:
    """A store on the server itself."""
    disk = PostgresDisk(database)
    disk.open()
    yield disk
    disk.close()


@pytest.fixture
def line(postgres: Postgres) -> Iterator[Line]:
    with Line(postgres.port) as line:
        yield line


@pytest.fixture
def far(disk: PostgresDisk, database: str, line: Line) -> Iterator[PostgresDisk]:
    """The same store behind that line."""
    far = PostgresDisk(line.url(database))
    yield far
    far.close()


ACTS: dict[str, Act] = {
    "append": lambda disk, head: disk.ledgers.log(ANN).append(b"two\n", after=head),
    "first append": lambda disk, head: disk.ledgers.log("user-9").append(b"two\n", after=NO_LOG),
    "replace": lambda disk, head: disk.ledgers.log(ANN).replace(b"two\n"),
    "replace what is known": lambda disk, head: disk.ledgers.log(ANN).replace(b"two\n", after=head),
    "cut": lambda disk, head: disk.ledgers.log(ANN).cut(2),
    "keep aside": lambda disk, head: disk.ledgers.log(ANN).keep_aside("torn", STAMP),
    "write": lambda disk, head: disk.documents(CURSORS).write("x", b"two"),
    "change": lambda disk, head: disk.documents(CURSORS).change("x", lambda now: (now or b"") + b"two"),
    "remove": lambda disk, head: disk.documents(CURSORS).remove(["x"]),
}


def state(disk: PostgresDisk) -> object:
    """All that a store holds."""
    logs = {subject: disk.ledgers.log(subject).load()[0] for subject, _ in disk.ledgers.by_age()}
    folders = [disk.documents(folder) for folder in (CURSORS, LEDGERS, "")]
    return logs, [folder.names() for folder in folders], {n: folders[0].read(n) for n in folders[0].names()}


def furnish(disk: PostgresDisk) -> Head:
    disk.documents(LEDGERS).remove([f"{ANN}.jsonl", "user-9.jsonl", f"{ANN}.jsonl.torn-{STAMP}"])
    disk.documents(CURSORS).write("x", b"one")
    return disk.ledgers.log(ANN).append(b"one\n", after=NO_LOG)


class TestACommitOfWhichTheAnswerIsLost:
    @pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
    @pytest.mark.parametrize("arrives", [True, False], ids=["written", "not written"])
    def test_is_done_once(
        self, disk: PostgresDisk, far: PostgresDisk, line: Line, act: Act, arrives: bool
    ) -> None:
        outcome = act(disk, furnish(disk))
        expected = state(disk)
        head = furnish(disk)
        several = act in (ACTS["replace"], ACTS["replace what is known"], ACTS["cut"], ACTS["remove"])
        far.ledgers.log(ANN).head()
        (line.cut_after if arrives else line.cut_before)(b"COMMIT" if several else b"INTO changes")
        again = act(far, head)
        assert line.sprung.is_set()
        assert state(disk) == expected
        if isinstance(outcome, Head) and isinstance(again, Head):
            assert outcome.size == again.size
            assert again == disk.ledgers.log("user-9" if act is ACTS["first append"] else ANN).head()
        elif not isinstance(outcome, Head):
            assert str(again).replace(str(far.tables.path), "") == str(outcome).replace(
                str(disk.tables.path), ""
            )

    def test_and_overwritten_meanwhile_is_not_written_again(
        self, disk: PostgresDisk, far: PostgresDisk, line: Line, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder, looked = disk.documents(CURSORS), far.tables._outcome

        def look(attempt: int) -> int:
            folder.change("x", lambda now: (now or b"") + b" and theirs")
            return looked(attempt)

        monkeypatch.setattr(far.tables, "_outcome", look)  # between the commit and the look at it
        far.tables.prepare()
        line.cut_after(b"INTO changes")
        far.documents(CURSORS).write("x", b"ours")
        assert folder.read("x") == b"ours and theirs"

    def test_while_nobody_can_look_says_that_it_may_or_may_not_be_written(
        self, postgres: Postgres, database: str, disk: PostgresDisk, far: PostgresDisk, line: Line
    ) -> None:
        name = urlsplit(database).path.lstrip("/")
        log = far.ledgers.log(ANN)
        head = log.head()
        postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        line.cut_after(b"INTO changes")
        with pytest.raises(Unsure, match=r"it may or may not be written: PostgreSQL 127\.0\.0\.1"):
            log.append(b"one\n", after=head)
        postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert log.read() == b"one\n"


class TestAServerThatIsKilled:
    def test_under_writers_keeps_what_was_acknowledged_once(
        self, postgres: Postgres, database: str, disk: PostgresDisk
    ) -> None:
        acknowledged: list[bytes] = []
        over, written = threading.Event(), threading.Semaphore(0)

        def write(number: int) -> None:
            own = PostgresDisk(database)
            log = own.ledgers.log(ANN)
            for count in itertools.count():
                if over.is_set():
                    break
                line = b"%d %d\n" % (number, count)
                try:
                    log.append(line, after=log.head())
                except (OSError, Overtaken):
                    over.wait(0.01)  # so that the server gets the processor
                else:
                    acknowledged.append(line)
                    written.release()
            own.close()

        with ThreadPoolExecutor(4) as writers:
            done = [writers.submit(write, number) for number in range(4)]
            for _ in range(KILLS):
                for _ in range(25):
                    assert written.acquire(timeout=60)
                postgres.kill9()
                postgres.start()
            over.set()
        for one in done:
            one.result()
        lines = disk.ledgers.log(ANN).read().splitlines(keepends=True)
        assert len(lines) == len(set(lines))
        assert set(acknowledged) <= set(lines)

    def test_and_back_is_used_again_at_once(self, postgres: Postgres, disk: PostgresDisk) -> None:
        log = disk.ledgers.log(ANN)
        head = log.append(b"one\n", after=NO_LOG)
        postgres.restart()
        head = log.append(b"two\n", after=head)
        postgres.kill9()
        # Right after a kill, a connection was seen to be accepted and closed before connections were refused.
        gone = "nothing listens there; start the database server|it closes new connections"
        with pytest.raises(OSError, match=gone):
            log.read()
        postgres.start()
        log.append(b"three\n", after=head)
        assert log.read() == b"one\ntwo\nthree\n"

    def test_or_says_nothing_is_given_up_and_used_again_later(
        self, postgres: Postgres, disk: PostgresDisk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Connection, "silence_s", 0.2)
        log = disk.ledgers.log(ANN)
        head = log.head()
        postgres.pause()
        with pytest.raises(OSError, match="it doesn't answer"):
            log.read()
        postgres.resume()
        log.append(b"one\n", after=head)
        assert log.read() == b"one\n"


class TestAServerThatRefuses:
    def test_writes_is_still_read(self, postgres: Postgres, disk: PostgresDisk) -> None:
        log = disk.ledgers.log(ANN)
        head = log.append(b"one\n", after=NO_LOG)
        postgres.read_only(True)
        for act in ACTS.values():
            if act is not ACTS["remove"]:
                with pytest.raises(OSError, match="the database only takes reads; use the primary server"):
                    act(disk, head)
        assert disk.documents(CURSORS).remove(["x"])[1] != []
        assert log.read() == b"one\n"
        postgres.read_only(False)
        log.append(b"two\n", after=head)

    def test_connections_says_so(self, postgres: Postgres, disk: PostgresDisk) -> None:
        disk.close()
        postgres.execute("ALTER ROLE discoclaw CONNECTION LIMIT 0")
        try:
            with pytest.raises(OSError, match="no connection left; raise its max_connections"):
                disk.ledgers.by_age()
        finally:
            postgres.execute("ALTER ROLE discoclaw CONNECTION LIMIT -1")
        assert disk.ledgers.by_age() == []

    def test_more_on_a_full_disk_keeps_what_is_there_and_goes_on_when_there_is_space(
        self, other_postgres: Callable[..., Postgres], request: pytest.FixtureRequest
    ) -> None:
        with full_at(4 << 20):  # which the server inherits: no file of its grows beyond that
            server = other_postgres()
        request.addfinalizer((disk := PostgresDisk(server.new_database())).close)
        log = disk.ledgers.log(ANN)
        head = log.append(b"one\n", after=NO_LOG)
        big = b"".join(b"%d %s\n" % (number, b"x" * 990) for number in range(8_000))
        with pytest.raises(OSError, match="the disk of the database server is full"):
            log.append(big, after=head)
        assert log.load() == (b"one\n", head)
        server.restart()
        log.append(big, after=head)
        assert log.read() == b"one\n" + big

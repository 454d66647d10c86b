"""The store in PostgreSQL: its tables, what several processes see of each other, and what stops a start."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from discoclaw.core.errors import LeaseLost, MemoryFault, NewerSchema, Overtaken, SettingsError
from discoclaw.memory import stores
from discoclaw.memory.people.choices import Choices
from discoclaw.settings import load
from discoclaw.store.port import CURSORS, LEDGERS, NO_LOG, Log, rewrite
from discoclaw.store.postgres import connection, schema
from discoclaw.store.postgres.disk import PostgresDisk
from discoclaw.store.postgres.tables import Seen
from tests.cli.shell import REPOSITORY
from tests.memory.kit import ANN, BOB, STAMP
from tests.servers.postgres import Postgres
from tests.tables import naming

Disks = Callable[[], PostgresDisk]


@pytest.fixture
def disks(prepared_database: str) -> Iterator[Disks]:
    """The same store, as one process after another has it."""
    made: list[PostgresDisk] = []

    def find() -> PostgresDisk:
        made.append(PostgresDisk(prepared_database))
        return made[-1]

    yield find
    for one in made:
        one.close()


@pytest.fixture
def disk(disks: Disks) -> PostgresDisk:
    return disks()


@pytest.fixture
def log(disk: PostgresDisk) -> Log:
    return disk.ledgers.log(ANN)


@pytest.fixture
def empty(postgres: Postgres) -> Iterator[str]:
    """The URL of a database without tables."""
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


def opened(url: str) -> None:
    """Open a store, and close it again."""
    disk = PostgresDisk(url)
    try:
        disk.open()
    finally:
        disk.close()


class TestTheTables:
    def test_are_made_once_by_processes_that_start_at_once(self, empty: str) -> None:
        with ThreadPoolExecutor(8) as processes:
            list(processes.map(lambda _: opened(empty), range(8)))
        with psycopg.connect(empty) as db:
            found = db.execute("SELECT count(*), max(version) FROM discoclaw").fetchone()
        assert found == (1, len(schema.STEPS))

    def test_of_an_older_version_are_brought_forward_with_what_is_in_them(self, empty: str) -> None:
        opened(empty)
        disk = PostgresDisk(empty)
        disk.documents("").write("x", b"kept")
        schema.prepare(disk.database, (*schema.STEPS, ("ALTER TABLE documents ADD more text",)))
        assert disk.documents("").read("x") == b"kept"
        disk.close()
        with psycopg.connect(empty) as db:
            assert db.execute("SELECT more FROM documents").fetchall() == [(None,)]

    def test_a_process_of_an_older_version_goes_on_beside_newer_ones(self, empty: str) -> None:
        disk = PostgresDisk(empty)
        schema.prepare(disk.database, schema.STEPS[:1])
        with psycopg.connect(empty, autocommit=True) as older:
            older.execute(
                "INSERT INTO processes (kind, host, pid, program, until, seen) VALUES ('bot', 'h', 1, '1', "
                "clock_timestamp() + interval '1 h', 0)"
            )
            older.execute("INSERT INTO leases (name, process, epoch) VALUES ('mirror', 1, 1)")
            disk.open()
            rows = disk.rows(3600.0)
            disk.presence.process, *_ = rows.enter("bot")
            fence = "SELECT fence(1, '{mirror}', '{1}', 2.0)"
            older.execute(fence)
            assert not rows.take("mirror")
            assert rows.behind(1 << 62) == [1]
            assert rows.take("shard/0/1")
            # As it looks whether the holder of a lease is dead.
            older.execute("UPDATE processes SET until = '-infinity' WHERE until < clock_timestamp()")
            disk.documents("").write("x", b"ours")
            older.execute("UPDATE processes SET until = clock_timestamp() WHERE id = 1")
            assert rows.take("mirror")
            with pytest.raises(psycopg.Error, match="no longer counted on"):
                older.execute(fence)
            assert rows.behind(1 << 62) == []
        rows.beating.close()
        disk.close()

    def test_of_a_newer_version_are_refused_and_left_as_they_are(self, empty: str) -> None:
        opened(empty)
        with psycopg.connect(empty) as db:
            db.execute("UPDATE discoclaw SET version = 7")
        with pytest.raises(NewerSchema, match="have version 7, newer than this program; update it"):
            opened(empty)

    def test_that_could_not_all_be_made_are_none(self, empty: str) -> None:
        with psycopg.connect(empty) as db:
            db.execute("CREATE TABLE claims (mine int)")
        with pytest.raises(OSError, match="it has a table of another program; create a database"):
            opened(empty)
        with psycopg.connect(empty) as db:
            assert db.execute("SELECT to_regclass('documents')").fetchone() == (None,)

    def test_in_a_copy_of_the_database_say_nothing_of_who_used_the_original(
        self, postgres: Postgres, empty: str
    ) -> None:
        disk = PostgresDisk(empty)
        disk.ledgers.log(ANN).append(b"one\n", after=NO_LOG)
        _, mark = disk.ledgers.since(None)
        with psycopg.connect(empty) as db:
            db.execute(
                "INSERT INTO processes (kind, host, pid, program, until) "
                "VALUES ('bot', 'h', 1, 'v', now() + interval '1 day')"
            )
        disk.close()
        url = postgres.new_database(like=empty)
        copy = PostgresDisk(url)
        assert copy.ledgers.since(mark)[0] == [ANN]  # looks at all: its marks mean nothing here
        copy.close()
        with psycopg.connect(url) as db:
            assert db.execute("SELECT count(*) FROM processes").fetchone() == (0,)
        postgres.drop_database(url)


class TestWhatStopsAStart:
    def test_a_server_that_is_too_old(self, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "OLDEST", 99)
        with pytest.raises(MemoryFault, match=r"version \d+ is too old; update to 99 or later"):
            opened(empty)

    def test_an_encoding_that_not_every_text_has(self, postgres: Postgres) -> None:
        postgres.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0 OWNER discoclaw"
        )
        with pytest.raises(MemoryFault, match="has the encoding LATIN1; create one with ENCODING 'UTF8'"):
            opened(postgres.url("latin"))
        postgres.drop_database(postgres.url("latin"))

    def test_a_missing_database_or_user(self, empty: str) -> None:
        with pytest.raises(OSError, match=r"there is no database 'gone'; create it \(CREATE DATABASE"):
            opened(urlsplit(empty)._replace(path="/gone").geturl())
        with pytest.raises(OSError, match=r"there is no user 'nemo'; create it \(CREATE ROLE"):
            opened(empty.replace("discoclaw@", "nemo@"))

    def test_a_missing_right(self, postgres: Postgres, empty: str) -> None:
        postgres.execute("CREATE ROLE guest LOGIN")
        with pytest.raises(OSError, match="a right is missing; let this user own the database"):
            opened(empty.replace("discoclaw@", "guest@"))

    def test_nobody_who_listens(self) -> None:
        with pytest.raises(OSError, match="nothing listens there; start the database server"):
            opened("postgresql://discoclaw@127.0.0.1:1/x")

    def test_a_wrong_password_none_and_a_server_that_wants_encryption(
        self, other_postgres: Callable[..., Postgres]
    ) -> None:
        server = other_postgres()
        (server.folder / "data" / "pg_hba.conf").write_text(
            "host all postgres 127.0.0.1/32 trust\nhostssl all safe 127.0.0.1/32 trust\n"
            "host all keyed 127.0.0.1/32 scram-sha-256\n"
        )
        server.restart()
        server.execute("CREATE ROLE keyed LOGIN PASSWORD 'right'")
        server.execute("CREATE ROLE safe LOGIN")
        url = server.url()
        for user, why in (
            ("keyed:Geheim", "the password or the user is wrong; see DISCOCLAW_STORE"),
            ("keyed", "it wants a password; put one into DISCOCLAW_STORE"),
            ("safe", "it accepts no connection without encryption; add ?sslmode=require"),
        ):
            with pytest.raises(OSError) as refused:
                opened(url.replace("discoclaw@", f"{user}@"))
            assert why in str(refused.value)
            assert "Geheim" not in str(refused.value)
            assert "\n" not in str(refused.value)

    def test_an_address_that_is_none_is_refused_without_showing_it(self) -> None:
        for address in (
            "postgresql://u:Geheim@x@host/db",
            "postgresql://u:Gehe/im@host/db",
            "postgresql://u:Geheim@host",
            "postgres:u:Geheim@host/db",
            "mysql://u:Geheim@host/db",
        ):
            with naming(address):
                with pytest.raises(
                    SettingsError, match=r"^DISCOCLAW_STORE=…: must .*postgresql://user:password@host"
                ) as no:
                    load(store=address)
                assert "Gehe" not in str(no.value)

    def test_nor_do_settings_or_the_database_library_show_it(self) -> None:
        for address in ("postgresql://u:Geheim%zz@host/db", "postgresql://u:Geheim@host/db?nonsense=Geheim"):
            settings = load(store=address)
            assert "Geheim" not in repr(settings) + str(settings.model_dump())
            with pytest.raises(MemoryFault, match="DISCOCLAW_STORE isn't an address of a database") as no:
                PostgresDisk(address)
            assert "Geheim" not in str(no.value)

    def test_a_missing_package_says_how_to_install_it(self, tmp_path: Path) -> None:
        code = "import sys; sys.modules['psycopg'] = None; from discoclaw.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, "memory", "list"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(REPOSITORY), "DISCOCLAW_STORE": "postgresql://u:Geheim@host/db"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.count("\n") == 2, done.stderr  # the other line names the data folder
        assert "run `pip install 'discoclaw[postgres]'`" in done.stderr


class TestDecisionsFromBefore:
    def test_are_moved_by_processes_that_start_at_once_and_none_is_lost(
        self, prepared_database: str, tmp_path: Path
    ) -> None:
        """Each has a data folder of its own, with files from when it ran alone."""
        for number in range(4):
            files = stores.disks("files", tmp_path / str(number))
            choices = Choices(files.used)
            choices.load()
            asyncio.run(choices.choose(str(number), opted_out=True))
            asyncio.run(choices.choose("7", opted_out=number == 2))

        def start(number: int) -> None:
            with stores.disks(prepared_database, tmp_path / str(number)) as found:
                found.open()

        with ThreadPoolExecutor(4) as processes:
            list(processes.map(start, range(4)))
        with stores.disks(prepared_database, tmp_path / "later") as found:
            choices = Choices(found.used)
            choices.load()
            assert all(choices.opted_out(user) for user in ("0", "1", "2", "3", "7"))
        assert not list(tmp_path.rglob("choices.json"))


class TestALogOfSeveralProcesses:
    def test_loses_no_line_and_stays_one_line(self, disks: Disks) -> None:
        def write(number: int) -> None:
            log = disks().ledgers.log(ANN)
            for count in range(25):
                line = b"%d %d\n" % (number, count)
                rewrite(log, lambda before, line=line: before + line)  # type: ignore[misc]

        with ThreadPoolExecutor(4) as processes:
            list(processes.map(write, range(4)))
        lines = disks().ledgers.log(ANN).read().splitlines()
        assert len(lines) == len(set(lines)) == 100
        for number in range(4):
            assert [one for one in lines if one.startswith(b"%d " % number)] == [
                b"%d %d" % (number, count) for count in range(25)
            ]

    def test_that_was_written_anew_to_an_equal_length_takes_nothing(self, log: Log, disks: Disks) -> None:
        head = log.append(b"one\n", after=NO_LOG)
        disks().ledgers.log(ANN).replace(b"two\n")
        with pytest.raises(Overtaken):
            log.append(b"more\n", after=head)
        assert log.load(head) == (b"two\n", log.head())
        again = log.head()
        other = disks().ledgers.log(ANN)
        other.append(b"x\n", after=again)
        other.cut(again.size)
        with pytest.raises(Overtaken):
            log.append(b"more\n", after=again)

    def test_what_follows_a_head_is_read_alone(self, log: Log) -> None:
        head = log.append(b"one\ntwo\n", after=NO_LOG)
        log.append(b"three\n", after=head)
        assert log.load(head) == (b"three\n", log.head())
        assert log.load() == (b"one\ntwo\nthree\n", log.head())
        assert log.load(head._replace(size=9)) == (b"hree\n", log.head())

    @pytest.mark.parametrize("begin", [b"", b"one\n"])
    def test_that_others_wrote_to_is_not_replaced(self, log: Log, disks: Disks, begin: bytes) -> None:
        head = log.append(begin, after=NO_LOG) if begin else NO_LOG
        other = disks().ledgers.log(ANN)
        other.replace(b"two\n", after=head)
        with pytest.raises(Overtaken):
            log.replace(b"ours\n", after=head)
        assert log.read() == b"two\n"

    def test_is_rewritten_on_what_others_wrote_meanwhile(self, log: Log, disks: Disks) -> None:
        head = log.append(b"one\n", after=NO_LOG)
        other, seen = disks().ledgers.log(ANN), list[bytes]()

        def anew(before: bytes) -> bytes:
            if not seen:
                other.append(b"two\n", after=head)
            seen.append(before)
            return before[::-1]

        rewrite(log, anew)
        assert seen == [b"one\n", b"one\ntwo\n"]
        assert log.read() == b"\nowt\neno"

    def test_one_of_several_megabytes_comes_back_as_it_was(self, log: Log) -> None:
        content = b"".join(b"%d %s\n" % (number, b"x" * 999) for number in range(5_000))
        head = log.append(content, after=NO_LOG)
        assert log.load() == (content, head)
        log.replace(content[::-1])
        assert log.read() == content[::-1]

    def test_a_torn_line_is_cut_off_to_the_byte(self, log: Log) -> None:
        log.replace(b"one\ntw")
        log.cut(5)
        assert log.read() == b"one\nt"

    def test_that_lost_lines_says_so_and_goes_on_with_what_is_left(
        self, log: Log, disk: PostgresDisk, prepared_database: str
    ) -> None:
        log.append(b"one\ntwo\nthree\n", after=NO_LOG)
        assert disk.check() is None
        with psycopg.connect(prepared_database) as db:
            db.execute("DELETE FROM lines WHERE position = 4")
        with pytest.raises(OSError, match=r"is damaged \(10 of 14 bytes\); see `memory verify`"):
            log.read()
        assert "lines are missing; restore a backup" in str(disk.check())
        (step,) = disk.rescue(STAMP)
        assert "had lost lines; it goes on with what is left" in step
        assert (log.read(), disk.check()) == (b"one\nthree\n", None)
        assert disk.documents(LEDGERS).read(f"{ANN}.jsonl.damaged-{STAMP}") == b"one\nthree\n"


class TestATextOfSeveralProcesses:
    @pytest.mark.parametrize("begin", [None, b"0"])
    def test_loses_no_change(self, disks: Disks, begin: bytes | None) -> None:
        if begin is not None:
            disks().documents(CURSORS).write("count", begin)

        def count(_: int) -> None:
            folder = disks().documents(CURSORS)
            for _ in range(25):
                folder.change("count", lambda now: b"%d" % (int(now or b"0") + 1))

        with ThreadPoolExecutor(4) as processes:
            list(processes.map(count, range(4)))
        assert disks().documents(CURSORS).read("count") == b"100"

    def test_that_is_left_as_it_is_is_not_made(self, disk: PostgresDisk) -> None:
        folder = disk.documents(CURSORS)
        assert folder.change("x", lambda now: None) is None
        assert folder.names() == []
        folder.write("x", b"1")
        assert folder.change("x", lambda now: now) == b"1"

    def test_a_fault_of_the_work_is_its_own_and_changes_nothing(self, disk: PostgresDisk) -> None:
        def fail(now: bytes | None) -> bytes:
            raise ValueError("no number")

        with pytest.raises(ValueError, match="no number"):
            disk.documents(CURSORS).change("x", fail)
        assert disk.documents(CURSORS).names() == []

    @pytest.mark.parametrize("name", ["a\0b", "a\ud800b"], ids=["NUL", "surrogate"])
    def test_a_name_that_no_database_can_store_is_refused(self, disk: PostgresDisk, name: str) -> None:
        for act in (disk.documents("").read, lambda name: disk.documents("").write(name, b"")):
            with pytest.raises(OSError):
                act(name)


class TestWhatChanged:
    def test_is_known_to_followers_at_once_and_nothing_is_skipped_that_commits_late(
        self, disk: PostgresDisk, prepared_database: str
    ) -> None:
        disk.ledgers.log(ANN).append(b"one\n", after=NO_LOG)
        subjects, mark = disk.ledgers.since(None)
        assert subjects == [ANN]
        with psycopg.connect(prepared_database) as late:
            late.execute("INSERT INTO changes (name, version) VALUES ('ledger/user-7.jsonl', 1)")
            disk.ledgers.log(BOB).append(b"one\n", after=NO_LOG)
            between, mark = disk.ledgers.since(mark)
        disk.ledgers.log("bot").append(b"one\n", after=NO_LOG)
        after, mark = disk.ledgers.since(mark)
        assert BOB in between
        assert set(between + after) == {"user-7", BOB, "bot"}
        assert disk.ledgers.since(mark)[0] == []

    def test_of_which_some_was_forgotten_means_to_look_at_all(
        self, disk: PostgresDisk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, mark = disk.ledgers.since(None)
        for subject in (ANN, BOB):
            disk.ledgers.log(subject).append(b"one\n", after=NO_LOG)
        assert disk.ledgers.since(mark)[0] == [ANN, BOB]
        with psycopg.connect(_address(disk), autocommit=True) as db:
            db.execute("DELETE FROM changes")
            db.execute("UPDATE discoclaw SET forgotten = pg_current_xact_id()::text::bigint")
        assert disk.ledgers.since(mark)[0] == [ANN, BOB]

    def test_is_stale_where_a_read_finds_it_and_differs_where_it_is_asked(
        self, disk: PostgresDisk, disks: Disks
    ) -> None:
        other, names = disks(), ["cursors/x", f"ledger/{ANN}.jsonl"]
        disk.documents(CURSORS).write("x", b"1")
        disk.ledgers.log(ANN).head()
        assert disk.seen.differing(disk.versions(names)) == set()
        other.documents(CURSORS).write("x", b"2")
        other.ledgers.log(ANN).append(b"one\n", after=NO_LOG)
        assert disk.seen.differing(disk.versions(names)) == set(names)
        disk.documents(CURSORS).read("x")
        disk.ledgers.log(ANN).load()
        assert disk.seen.differing(disk.versions(names)) == set()
        assert disk.seen.take_stale() == set(names)
        assert disk.seen.take_stale() == set()
        other.documents(CURSORS).remove(["x"])
        assert disk.versions(["cursors/x"]) == {"cursors/x": 0}
        assert disk.seen.differing({"cursors/x": 0}) == {"cursors/x"}

    def test_of_more_texts_than_are_kept_the_rest_counts_as_changed(self) -> None:
        seen = Seen(most=2)
        seen.read("a", 1)
        assert seen.differing({"a": 1, "new": 5, "none": 0}) == {"new"}
        seen.read("b", 2)
        seen.wrote("c", 3)
        assert seen.differing({"a": 1, "b": 2, "c": 3}) == {"a"}


class TestTheFence:
    def acts(self, disk: PostgresDisk) -> list[Callable[[], object]]:
        log, folder = disk.ledgers.log(ANN), disk.documents(CURSORS)
        head = log.head()
        return [
            lambda: log.append(b"late\n", after=head),
            lambda: log.replace(b"late\n"),
            lambda: log.replace(b"late\n", after=head),
            lambda: log.cut(0),
            lambda: log.keep_aside("torn", STAMP),
            lambda: folder.write("x", b"late"),
            lambda: folder.change("x", lambda now: b"late"),
            lambda: folder.remove(["x"]),
            lambda: folder.keep_aside("x", "torn", STAMP),
        ]

    def test_refuses_whatever_a_process_writes_that_nobody_counts_on(
        self, disk: PostgresDisk, disks: Disks
    ) -> None:
        other = disks()
        disk.ledgers.log(ANN).append(b"one\n", after=NO_LOG)
        disk.documents(CURSORS).write("x", b"one")
        acts = self.acts(disk)
        with psycopg.connect(_address(disk)) as db:
            row = db.execute(
                "INSERT INTO processes (kind, host, pid, program, until) VALUES ('bot', 'h', 1, 'v', "
                "'-infinity') RETURNING id"
            ).fetchone()
        assert row
        disk.database.presence.process = row[0]
        for act in acts:
            with pytest.raises(LeaseLost, match="nothing was written"):
                act()
        assert other.ledgers.log(ANN).read() == b"one\n"
        assert other.documents(CURSORS).read("x") == b"one"
        assert other.documents(LEDGERS).names() == [f"{ANN}.jsonl"]
        assert other.documents(CURSORS).names() == ["x"]


def _address(disk: PostgresDisk) -> str:
    return disk.database._address

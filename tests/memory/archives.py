"""Archives to test with, of each kind, and what is in them."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from discoclaw.search.archive import Archive
from discoclaw.search.archive_file import ArchiveFile
from discoclaw.search.archive_tables import ArchiveTables, key_of
from discoclaw.store.postgres.connection import Database
from discoclaw.store.postgres.tables import Tables
from tests.memory.kit import Clock

TABLES = ("entries", "terms", "words", "vectors", "signs", "unembedded")


class InFile(Archive):
    """An archive in a file."""

    engine: ArchiveFile

    def __init__(self, path: Path) -> None:
        super().__init__(ArchiveFile(path, clock=Clock()))
        self.path = path


class Kept(Archive):
    """An archive in PostgreSQL that closes its connections too."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(url)
        super().__init__(ArchiveTables(Tables(self.database)))

    def close(self) -> None:
        self.database.close()


def archive_at(where: Path | str) -> Archive:
    """The archive in a file, or at the URL of a database; made if there is none."""
    return InFile(where) if isinstance(where, Path) else Kept(where)


def again(archive: Archive) -> Archive:
    """The same archive as another process has it."""
    assert isinstance(archive, Kept | InFile)
    return archive_at(archive.url if isinstance(archive, Kept) else archive.path)


def emptied(archive: Archive) -> Archive:
    """The same archive with nothing in it."""
    if isinstance(archive, Kept):
        with archive.database.connection() as db:
            for table in (*TABLES, "state"):  # to truncate them takes ten times as long
                db.execute(f"DELETE FROM archive_{table}")
            db.execute("INSERT INTO archive_state DEFAULT VALUES")
        archive.engine.dims = None
    elif isinstance(archive, InFile):
        archive.close()
        for path in archive.path.parent.glob(f"{archive.path.name}*"):
            path.unlink()
    return archive


def database_of(archive: Archive) -> Database:
    """The database that an archive lies in."""
    assert isinstance(archive.engine, ArchiveTables)
    return archive.engine.tables.database


def rows(archive: Archive, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query; a table is named as in SQLite."""
    if isinstance(archive.engine, ArchiveTables):
        for table in TABLES:
            sql = sql.replace(f" {table}", f" archive_{table}")
    return archive.engine.read(lambda db: db.rows(sql), [])


def texts(archive: Archive) -> list[str]:
    """All texts, the oldest first."""
    return [str(text) for (text,) in rows(archive, "SELECT text FROM entries ORDER BY id")]


def sound(archive: Archive) -> tuple[int, int]:
    """Check the index against the rows; returns the totals as they are kept, checked against the rows too."""
    if isinstance(archive.engine, ArchiveTables):
        return _sound_in_postgres(database_of(archive))
    assert isinstance(archive.engine, ArchiveFile)
    archive.close()
    if not archive.engine.path.exists():
        return 0, 0
    with closing(sqlite3.connect(archive.engine.path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        totals = connection.execute("SELECT entries, terms FROM totals").fetchone()
        counted = connection.execute("SELECT count(*), coalesce(sum(length), 0) FROM entries").fetchone()
        assert totals == counted
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(totals[0]), int(totals[1])


def _sound_in_postgres(database: Database) -> tuple[int, int]:
    with database.connection() as db:
        one = "cardinality(string_to_array(terms, ' '))"
        (kept,) = db.execute("SELECT entries, length, tokens FROM archive_state").fetchall()
        sql = (
            f"""SELECT count(*), coalesce(sum(length), 0), coalesce(sum(1 + {one}), 0) FROM archive_entries"""
        )
        assert db.execute(sql).fetchall() == [kept]
        told = []
        for seq, place, terms in db.execute("SELECT seq, place, terms FROM archive_entries").fetchall():
            spoken = terms.split(" ") if terms else []
            told += [(seq, place, key_of(one), spoken.count(one), len(spoken)) for one in set(spoken)]
        sql = """SELECT w.seq, w.place, t.term, w.times, w.tokens
            FROM archive_words w JOIN archive_terms t ON t.id = w.term"""
        words = db.execute(sql).fetchall()
        assert sorted(words) == sorted(told)
        sql = "SELECT count(*) FROM archive_words"
        assert db.execute(sql).fetchall() == [(len(words),)]
        counted: dict[str, int] = {}
        for _, _, term, *_ in words:
            counted[term] = counted.get(term, 0) + 1
        assert dict(db.execute("SELECT term, entries FROM archive_terms").fetchall()) == counted
        for table in ("vectors", "signs", "unembedded"):
            sql = f"""SELECT count(*) FROM archive_{table} x
                WHERE NOT EXISTS (SELECT FROM archive_entries e WHERE e.id = x.id)"""
            assert db.execute(sql).fetchall() == [(0,)]
        sql = """SELECT count(*) FROM archive_vectors FULL JOIN archive_signs USING (id)
            WHERE vector IS NULL OR signs IS NULL"""
        assert db.execute(sql).fetchall() == [(0,)]
        return int(kept[0]), int(kept[1])


def holding(archive: Archive, words: Iterable[str]) -> list[str]:
    """The tables of an archive in PostgreSQL that show any of these words, in whatever case."""
    found = []
    for table in TABLES:
        sql = f"SELECT string_agg(lower(t::text), ' ') FROM archive_{table} AS t"
        ((content,),) = database_of(archive).read(lambda db, sql=sql: db.execute(sql).fetchall())  # type: ignore[misc]
        found += [table for word in words if word.lower() in (content or "")]
    return found

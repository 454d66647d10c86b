"""One statement does the same in SQLite and in PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from discoclaw.store.port import Sql
from discoclaw.store.postgres.connection import Database


@pytest.fixture(params=["sqlite", "postgres"])
def sql(request: pytest.FixtureRequest) -> Iterator[Sql]:
    """A connection with the table `our_rows`."""
    if request.param == "sqlite":
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as lite:
            lite.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT, body BLOB, done INTEGER)")
            yield Sql(lite, prefix="our_")
        return
    database = Database(request.getfixturevalue("database"))
    with closing(database), database.connection() as db:
        db.execute("CREATE TABLE our_rows (id bigint PRIMARY KEY, text text, body bytea, done boolean)")
        yield Sql(db, prefix="our_")


ROWS = [
    {"id": number, "text": text, "body": bytes([number]), "done": number > 2}
    for number, text in enumerate(["Äh", "100 %", "é'\"{},\\", "a:b"], start=1)
]
INSERT = "INSERT INTO our_rows (id, text, body, done) VALUES (:id, :text, :body, :done)"


def test_values_and_lists(sql: Sql) -> None:
    sql.many(INSERT, ROWS)
    sql.many(INSERT, [])
    assert sql.rows("SELECT id, text, body FROM our_rows ORDER BY id") == [
        (row["id"], row["text"], row["body"]) for row in ROWS
    ]
    assert sql.one("SELECT text FROM our_rows WHERE id = :id AND NOT done", id=2) == ("100 %",)
    assert sql.one("SELECT text FROM our_rows WHERE id = :id", id=9) is None
    assert sql.rows("SELECT id FROM our_rows WHERE text LIKE '100 %' OR done ORDER BY 1") == [
        (2,),
        (3,),
        (4,),
    ]
    for ids, found, others in (([1, 3], [1, 3], [2, 4]), ((), [], [1, 2, 3, 4]), (range(400_000), None, [])):
        listed = list(ids)
        rows = [
            one for (one,) in sql.rows("SELECT id FROM our_rows WHERE id IN :ids ORDER BY id", ids=listed)
        ]
        assert rows == ([1, 2, 3, 4] if found is None else found)
        rows = [
            one for (one,) in sql.rows("SELECT id FROM our_rows WHERE id NOT IN :ids ORDER BY 1", ids=listed)
        ]
        assert rows == others
    texts = [str(row["text"]) for row in ROWS[1:]]
    assert sql.rows("SELECT id FROM our_rows WHERE text IN :texts ORDER BY id", texts=texts) == [
        (2,),
        (3,),
        (4,),
    ]
    each = "SELECT value FROM EACH :texts::text[] WHERE value <> :not ORDER BY length(value), value"
    assert sql.rows(each, **{"texts": texts, "not": "a:b"}) == [("100 %",), ("é'\"{},\\",)]
    assert sql.rows(each, **{"texts": [], "not": ""}) == []


def test_changes(sql: Sql) -> None:
    sql.many(INSERT, ROWS)
    assert sql.run("UPDATE our_rows SET text = :text WHERE id IN :ids", text="x", ids=[1, 2, 7]) == 2
    assert sql.run("DELETE FROM our_rows WHERE NOT done") == 2
    upsert = """INSERT INTO our_rows (id, text, done) SELECT :id::bigint, :text::text, true WHERE true
        ON CONFLICT (id) DO UPDATE SET text = excluded.text"""
    sql.many(upsert, [{"id": 3, "text": "three"}, {"id": 8, "text": "eight"}])
    query = 'SELECT id, lower(text COLLATE "C") FROM our_rows WHERE id <> 4 ORDER BY id FOR UPDATE'
    assert sql.rows(query) == [(3, "three"), (8, "eight")]

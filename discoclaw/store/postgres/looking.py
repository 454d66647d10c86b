"""Looks at a database before anything is done with it: one look, which makes no tables. Blocking."""

from dataclasses import dataclass

from discoclaw.store.postgres import schema
from discoclaw.store.postgres.connection import Connection, Database
from discoclaw.store.postgres.errors import as_ours

_ABOUT = """
    SELECT current_setting('server_version'),
        pg_is_in_recovery() OR current_setting('transaction_read_only')::bool,
        has_schema_privilege(current_schema(), 'CREATE'), pg_database_size(current_database()),
        to_regclass('discoclaw') IS NOT NULL
"""
_MAY_WRITE = """
    SELECT bool_and(has_table_privilege(name, 'SELECT, INSERT, UPDATE, DELETE'))
    FROM unnest(%s::text[]) AS name
"""
_TABLES = ["documents", "logs", "lines", "changes", "processes", "leases", "claims"]


@dataclass(frozen=True, slots=True)
class Look:
    """A database. `tables` is the version of its tables, None if there are none; `newest` is this program's.

    `may_write`: this user may change what is in them, or make them where there are none. `size` is in bytes.
    """

    where: str
    server: str
    read_only: bool
    may_write: bool
    size: int
    tables: int | None
    newest: int = len(schema.STEPS)


def look(url: str) -> Look:
    """Look at the database of an address. Raises OSError and MemoryFault, which never show its password."""
    database = Database(url, most=1)
    try:
        with database.connection() as db, as_ours(database.where):
            return _look(db, database.where)
    finally:
        database.close()


def _look(db: Connection, where: str) -> Look:
    row = db.execute(_ABOUT).fetchone()
    assert row is not None
    server, read_only, may_make, size, there = row
    tables, may_write = None, bool(may_make)
    if there:
        found = db.execute("SELECT version FROM discoclaw").fetchone()
        tables = int(found[0]) if found else 0
        if tables == len(schema.STEPS):  # another version may have other tables
            allowed = db.execute(_MAY_WRITE, (_TABLES,)).fetchone()
            may_write = bool(allowed and allowed[0])
    return Look(where, server, bool(read_only), may_write, int(size), tables)

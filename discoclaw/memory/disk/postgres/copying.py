"""The tables of the archive as files, and back: what COPY writes. Blocking; raises psycopg.Error."""

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from discoclaw.memory.disk.postgres.archive import COUNTED, TABLES
from discoclaw.memory.disk.postgres.connection import Connection

_AT_ONCE = 1 << 20


def copy_out(db: Connection, table: str, file: BinaryIO) -> None:
    """Write the rows of a table to a file."""
    with db.cursor().copy(f"COPY {table} TO STDOUT") as rows:
        for part in rows:
            file.write(part)


def copy_in(db: Connection, files: Mapping[str, Path]) -> None:
    """Replace the rows of all tables by those in files, by the names of the tables."""
    db.execute(f"TRUNCATE {', '.join(TABLES)}")
    for table in TABLES:
        with files[table].open("rb") as file, db.cursor().copy(f"COPY {table} FROM STDIN") as rows:
            while part := file.read(_AT_ONCE):
                rows.write(part)
    for table, column in COUNTED:
        newest = f"(SELECT max({column}) FROM {table})"
        db.execute(f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {newest})")

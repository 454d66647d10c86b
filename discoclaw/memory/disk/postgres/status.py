"""Reads who uses the store: its processes, what each has and waits for, and how much there is. Blocking.

All ages are by the database's clock, so machines whose clocks differ are shown as they are.
"""

from discoclaw.memory.disk.members import LeaseState, ProcessState, Together
from discoclaw.memory.disk.postgres.connection import Connection

_PROCESSES = """
    SELECT id, kind, host, pid, program, until > clock_timestamp(),
        extract(epoch FROM clock_timestamp() - started)::float8,
        extract(epoch FROM clock_timestamp() - heard)::float8,
        extract(epoch FROM clock_timestamp() - fed)::float8, waits
    FROM processes ORDER BY id
"""
_LEASES = (
    "SELECT name, epoch, extract(epoch FROM clock_timestamp() - since)::float8 FROM leases ORDER BY name"
)
_SIZE = "SELECT pg_database_size(current_database())"


def together(db: Connection) -> Together:
    """The processes that use a store now. Raises psycopg.Error."""
    processes = [ProcessState._make(row) for row in db.execute(_PROCESSES).fetchall()]
    leases = [LeaseState._make(row) for row in db.execute(_LEASES).fetchall()]
    row = db.execute(_SIZE).fetchone()
    assert row is not None
    return Together(tuple(processes), tuple(leases), int(row[0]))

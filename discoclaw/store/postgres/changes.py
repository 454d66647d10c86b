"""The changes of the store, in the order in which they were made.

A position is the number of a transaction: those below it have ended, and their changes were returned. What
ended above it was returned too, and is once more the next time, because an older transaction that still runs
may add to what is there. Other databases of the same server count too: one that runs for an hour there has
the changes of an hour returned again.
"""

from typing import NamedTuple

from discoclaw.store.postgres.connection import Connection

KEPT = 1_000_000
"""Changes that are kept for followers, about 150 MB. Whoever comes later looks at everything."""

NEVER = 1 << 62
"""A position that no transaction has reached: nothing is returned but the position of now."""

_SINCE = """
    SELECT below::text::bigint, cluster, forgotten, changes.name, changes.process FROM (
        SELECT pg_snapshot_xmin(pg_current_snapshot()) AS below, cluster, forgotten FROM discoclaw
    ) AS now
    LEFT JOIN changes ON changes.xid >= %s::text::xid8 AND changes.name <> ''
    ORDER BY changes.id
"""
_FORGOTTEN = """
    WITH old AS (DELETE FROM changes WHERE id <= (SELECT max(id) FROM changes) - %s RETURNING xid)
    UPDATE discoclaw SET forgotten = greatest(forgotten, (SELECT max(xid)::text::bigint + 1 FROM old))
    WHERE EXISTS (SELECT FROM old)
"""
AWAY = "1 day"
"""How long the names are kept for a process that is not heard from: it may be cut off, and come back with
what it had in RAM and on its machine."""

_HIDDEN = f"""
    UPDATE changes SET name = '' WHERE name <> '' AND xid < least(
        pg_snapshot_xmin(pg_current_snapshot()),
        (SELECT min(seen)::text::xid8 FROM processes
            WHERE heard > clock_timestamp() - interval '{AWAY}' AND processes.id <> changes.process)
    ) AND NOT EXISTS (SELECT FROM documents WHERE documents.name = changes.name)
    AND NOT EXISTS (SELECT FROM logs WHERE logs.name = changes.name)
"""

_DEAD = "until = '-infinity'"
_LEFT_BEHIND = (
    f"DELETE FROM leases WHERE name NOT LIKE 'shard/%' AND epoch IN (SELECT id FROM processes WHERE {_DEAD})",
    f"UPDATE processes SET waits = '{{}}' WHERE {_DEAD} AND waits <> '{{}}'",
)


class Changed(NamedTuple):
    """The names that changed since a position, each with the process (0: none) that wrote it, and the next
    position. `complete` is false if changes since then may be missing: everything may have changed."""

    names: list[tuple[str, int]]
    position: int
    cluster: str
    complete: bool


def since(db: Connection, position: int) -> Changed:
    """The changes since a position. Raises psycopg.Error."""
    rows = db.execute(_SINCE, (position,)).fetchall()
    below, cluster, forgotten, *_ = rows[0]
    names = [(name, process) for *_, name, process in rows if name is not None]
    return Changed(names, below, cluster, forgotten <= position <= below)


def forget(db: Connection, kept: int = KEPT) -> None:
    """Remove all but the newest changes. Raises psycopg.Error."""
    db.execute(_FORGOTTEN, (kept,))


def hide(db: Connection) -> None:
    """Remove the names of texts that are gone, where no process needs them any more: they name a person.

    So do the leases that a dead process had, or waited for. Raises psycopg.Error.
    """
    for statement in (_HIDDEN, *_LEFT_BEHIND):
        db.execute(statement)

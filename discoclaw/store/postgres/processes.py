"""The rows by which processes that share a store know about each other. Blocking.

    processes  one row a process: alive as long as `until` lies ahead of the database's clock
    leases     one row a lease; it lives as long as its process, and is never renewed by itself
    claims     one row a message that some process handles
    changes    what was written, read by every process in the order of transactions (`Page`)

A position in `changes` is a transaction's number: all below it have ended, so none is missed. No machine's
clock is compared with another's. Every method raises OSError.
"""

import os
import socket
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from discoclaw import __version__
from discoclaw.store.members import SHARDS, Claimed, Entered, Member, Page, State
from discoclaw.store.postgres import changes
from discoclaw.store.postgres.connection import Connection, Database
from discoclaw.store.postgres.errors import as_ours

T = TypeVar("T")

CLAIMS_KEPT = "3 days"
"""Longer than Discord sends anything again, and than the messages that are read after an absence."""
ANSWERED_IN = "30 minutes"
"""Longer than a message waits for its answer. A process with a new epoch keeps its claims of that time."""
DEAD_KEPT = "10 minutes"
"""How long `discoclaw status` shows a process that ended without saying so, once others have its shards."""
PRUNED_AT_ONCE = 10_000

_ALIVE = "until > clock_timestamp()"
_HEARD_LATELY = (
    f"SELECT FROM processes WHERE id = %s AND heard > clock_timestamp() - interval '{changes.AWAY}'"
)
"""Finds a process for which the names of removed texts were kept; see `changes.hide`."""


class ProcessRows:
    """The rows, as one process uses them. `lease_s` is how long it counts as alive after each renewal.

    See `store/members`. Renewing and reading the feed have a connection of their own, which one thread uses,
    so that they wait for nothing else that this process does.
    """

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database = database
        self._own: Connection | None = None
        self.lease_s = lease_s

    # ------------------------------------------------------------------ for one thread: being alive

    def enter(self, member: Member) -> Entered:
        return self._on_own(lambda db: _enter(db, member, self.lease_s))

    def enter_again(self, member: Member, before: int, position: int, leases: Collection[str]) -> Entered:
        def work(db: Connection) -> Entered:
            with db.transaction():
                now = _enter(db, member, self.lease_s)
                db.execute("UPDATE processes SET seen = %s WHERE id = %s", (position, now.epoch))
                missed = not db.execute(_HEARD_LATELY, (before,)).rowcount
                kept = frozenset[str]() if missed else _handed_on(db, before, now.epoch, leases)
                _leave(db, before)
                overtaken = any(name.startswith(SHARDS) for name in {*leases} - kept)
                if overtaken:
                    _leave(db, now.epoch)
            return Entered(now.epoch, position, kept, missed, overtaken)

        return self._on_own(work)

    def renew(self, epoch: int, state: State) -> bool:
        found = self._on_own(
            lambda db: db.execute(
                "UPDATE processes SET until = clock_timestamp() + make_interval(secs => %s),"
                " heard = clock_timestamp(), seen = %s, fed = to_timestamp(%s), waits = %s"
                f" WHERE id = %s AND {_ALIVE}",
                (self.lease_s, state.position, state.fed, list(state.waits), epoch),
            )
        )
        return found.rowcount == 1

    def page(self, epoch: int, position: int) -> Page:
        return self._on_own(lambda db: _page(db, epoch, position))

    def prune(self) -> int:
        return self._on_own(_prune)

    def leave(self, epoch: int) -> None:
        def work(db: Connection) -> None:
            with db.transaction():
                _leave(db, epoch)

        self._on_own(work)

    def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.close()

    def _on_own(self, work: Callable[[Connection], T]) -> T:
        if self._own is None:
            self._own = self._database.connect()
            self._own.silence_s = self.lease_s  # an answer after that would come too late
        try:
            with as_ours(self._database.where):
                return work(self._own)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ for any thread: leases and claims

    def newest(self) -> int:
        # A number of its own: the snapshot's `xmax` may be below a transaction that has begun.
        return int(self._rows("SELECT pg_current_xact_id()::text::bigint")[0][0])

    def behind(self, position: int, epoch: int) -> list[int]:
        self._database.read(_bury)
        rows = self._rows(
            f"SELECT id FROM processes WHERE seen < %s AND id <> %s AND {_ALIVE}", (position, epoch)
        )
        return [one for (one,) in rows]

    def under_way(self, position: int) -> list[int]:
        query = (
            "SELECT xid::text::bigint FROM pg_snapshot_xip(pg_current_snapshot()) AS xid"
            " WHERE xid < %s::text::xid8"
        )
        return [one for (one,) in self._rows(query, (position,))]

    def hide(self) -> None:
        self._database.write(changes.hide)

    def take(self, name: str, epoch: int) -> bool:
        return self._database.read(lambda db: _taken(db, name, epoch))

    def release(self, names: Collection[str], epoch: int) -> None:
        self._rows("DELETE FROM leases WHERE name = ANY (%s) AND epoch = %s", (list(names), epoch))

    def holders(self, prefix: str, epoch: int) -> dict[str, str]:
        rows = self._rows(
            "SELECT name, format('process %%s on %%s, pid %%s', id, host, pid) FROM leases"
            " JOIN processes ON id = leases.epoch"
            f" WHERE starts_with(name, %s) AND id <> %s AND {_ALIVE} ORDER BY name",
            (prefix, epoch),
        )
        return dict(rows)

    def claim(self, messages: Collection[int], epoch: int, names: Collection[str]) -> Claimed:
        about = {"messages": list(messages), "epoch": epoch, "names": list(names)}
        rows = self._database.read(lambda db: db.execute(_CLAIM, about).fetchall(), spare=True)
        versions = dict.fromkeys(names, 0)
        versions |= {name: version for _, name, version in rows if name is not None}
        return Claimed({message for message, *_ in rows if message is not None}, versions)

    def _rows(self, query: str, parameters: Any = ()) -> list[Any]:
        def ask(db: Connection) -> list[Any]:
            found = db.execute(query, parameters)
            return found.fetchall() if found.description else []

        return self._database.read(ask)


VERSIONS = " UNION ALL ".join(
    f"SELECT name, version FROM {table} WHERE name = ANY (%(names)s)" for table in ("documents", "logs")
)
"""The versions of the texts called `names`, as far as they exist."""

_CLAIM = f"""WITH claimed AS (
    INSERT INTO claims (message, process) SELECT unnest(%(messages)s::bigint[]), %(epoch)s
    ON CONFLICT (message) DO UPDATE SET process = excluded.process, at = clock_timestamp()
        WHERE claims.process = excluded.process
        OR NOT EXISTS (SELECT FROM processes WHERE id = claims.process AND {_ALIVE})
    RETURNING message
)
SELECT message, NULL, NULL FROM claimed
UNION ALL SELECT NULL, name, version FROM ({VERSIONS}) AS found"""


def _enter(db: Connection, member: Member, lease_s: float) -> Entered:
    row = _row(
        db,
        "INSERT INTO processes (kind, host, pid, program, until, seen)"
        " VALUES (%s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s),"
        " pg_snapshot_xmin(pg_current_snapshot())::text::bigint) RETURNING id, seen",
        (member.kind, socket.gethostname(), os.getpid(), __version__, lease_s),
    )
    return Entered(*row)


def _handed_on(db: Connection, before: int, epoch: int, leases: Collection[str]) -> frozenset[str]:
    """Let a new epoch have what is left of the leases and claims of an older one. Returns these leases."""
    kept = db.execute(
        "UPDATE leases SET process = %(new)s, epoch = %(new)s"
        " WHERE epoch = %(old)s AND name = ANY (%(names)s) RETURNING name",
        {"new": epoch, "old": before, "names": list(leases)},
    ).fetchall()
    db.execute(
        "UPDATE claims SET process = %s WHERE process = %s"
        f" AND at > clock_timestamp() - interval '{ANSWERED_IN}'",
        (epoch, before),
    )
    return frozenset(name for (name,) in kept)


def _page(db: Connection, epoch: int, position: int) -> Page:
    """One statement, so it sees one moment."""
    rows = db.execute(
        """WITH bound AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS upto),
        found AS (
            SELECT name, max(changes.version) AS newest FROM changes, bound
            WHERE xid >= %(position)s::text::xid8 AND xid < upto AND process <> %(epoch)s AND name <> ''
            GROUP BY name
        )
        SELECT upto::text::bigint, extract(epoch FROM clock_timestamp())::float8,
            forgotten <= %(position)s, name, newest
        FROM bound CROSS JOIN discoclaw LEFT JOIN found ON true""",
        {"position": position, "epoch": epoch},
    ).fetchall()
    upto, now, complete, *_ = rows[0]
    names = {name: newest for *_, name, newest in rows if name is not None}
    if not complete:  # those that no reader of one person's texts would ask for
        names |= dict(db.execute(_EVERYBODYS).fetchall())
    return Page(names, max(upto, position), now, complete)


_EVERYBODYS = (
    "SELECT name, version FROM documents WHERE name !~ '^(ledger|rolling|profiles|groups|cursors|tools)/'"
)


def _prune(db: Connection) -> int:
    with db.transaction():
        changes.forget(db)
    db.execute(
        "DELETE FROM claims WHERE message IN (SELECT message FROM claims"
        f" WHERE at < clock_timestamp() - interval '{CLAIMS_KEPT}' LIMIT %s)",
        (PRUNED_AT_ONCE,),
    )
    return _remove_dead(db)


def _row(db: Connection, query: str, parameters: Any = ()) -> Any:
    return db.execute(query, parameters).fetchone()


def _taken(db: Connection, name: str, epoch: int) -> bool:
    values = {"name": name, "epoch": epoch}
    ours, holder, alive = _row(
        db,
        f"""WITH taken AS (
            INSERT INTO leases (name, process, epoch) SELECT %(name)s, id, id FROM processes
            WHERE id = %(epoch)s AND {_ALIVE} ON CONFLICT DO NOTHING RETURNING epoch
        )
        SELECT EXISTS (SELECT FROM taken) OR held.epoch = %(epoch)s, held.epoch, {_ALIVE}
        FROM (VALUES (1)) AS one LEFT JOIN leases AS held ON held.name = %(name)s
        LEFT JOIN processes ON processes.id = held.epoch""",
        values,
    )
    if ours:
        return True
    if alive or holder is None:
        return False
    # First it is certain that the holder cannot renew itself any more, then that nothing it wrote under the
    # lease is still being committed: each statement waits for the row.
    with db.transaction():
        _bury(db, holder)
        return (
            db.execute(
                f"""UPDATE leases SET process = %(epoch)s, epoch = %(epoch)s, since = clock_timestamp()
                WHERE name = %(name)s AND epoch = %(holder)s
                AND NOT EXISTS (SELECT FROM processes WHERE id = %(holder)s AND {_ALIVE})
                AND EXISTS (SELECT FROM processes WHERE id = %(epoch)s AND {_ALIVE})""",
                {**values, "holder": holder},
            ).rowcount
            == 1
        )


def _bury(db: Connection, process: int | None = None) -> None:
    """Make sure that processes that are no longer alive, or one of them, stay so whatever a clock does."""
    db.execute(
        "UPDATE processes SET until = '-infinity' WHERE until < clock_timestamp() AND until > '-infinity'"
        " AND (%(process)s::bigint IS NULL OR id = %(process)s)",
        {"process": process},
    )


def _leave(db: Connection, epoch: int) -> None:
    db.execute("DELETE FROM leases WHERE epoch = %s", (epoch,))
    db.execute("DELETE FROM processes WHERE id = %s", (epoch,))


def _remove_dead(db: Connection) -> int:
    """Remove processes that ended without saying so, and their leases. Lost shards stay, to be shown.

    Returns how many processes.
    """
    dead = (
        f"SELECT id FROM processes WHERE NOT {_ALIVE} AND heard < clock_timestamp() - interval '{DEAD_KEPT}'"
    )
    db.execute(f"DELETE FROM leases WHERE name NOT LIKE 'shard/%%' AND epoch IN ({dead})", ())
    return db.execute(
        f"DELETE FROM processes WHERE id IN ({dead})"
        " AND NOT EXISTS (SELECT FROM leases WHERE epoch = processes.id)"
    ).rowcount

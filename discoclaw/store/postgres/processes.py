"""The rows by which processes that share a store know about each other. Blocking.

    processes  one row a process: alive as long as `until` lies ahead of the database's clock
    leases     one row a lease; it lives as long as its process, and is never renewed by itself
    claims     one row a message that some process handles
    changes    what was written, read by every process in the order of transactions

A position in `changes` is the number of a transaction: those below it have ended, and their changes were
returned, so none is missed. `changed` also returns what ended above it, and once more the next time, because
an older transaction that still runs may add to what is there. Other databases of the same server count too:
one that runs for an hour there has the changes of an hour returned again.

No machine's clock is compared with another's. Methods raise OSError, and functions psycopg.Error.
"""

import os
import socket
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar

from discoclaw import __version__
from discoclaw.store.postgres.connection import Connection, Database, as_ours
from discoclaw.store.sharing import (
    SHARDS,
    Claimed,
    Entered,
    LeaseState,
    Member,
    Page,
    ProcessState,
    State,
    Together,
)

T = TypeVar("T")

CLAIMS_KEPT = "3 days"
"""Longer than Discord sends anything again, and than the messages that are read after an absence."""
ANSWERED_IN = "30 minutes"
"""Longer than a message waits for its answer. A process with a new epoch keeps its claims of that time."""
DEAD_KEPT = "10 minutes"
"""How long `discoclaw status` shows a process that ended without saying so, once others have its shards."""
AWAY = "1 day"
"""How long the names of removed texts are kept for a process that is not heard from: it may be cut off, and
come back with what it had in RAM and on its machine."""
PRUNED_AT_ONCE = 10_000
KEPT = 1_000_000
"""Changes that are kept for followers, about 150 MB. Whoever comes later looks at everything."""
NEVER = 1 << 62
"""A position that no transaction has reached: nothing is returned but the position of now."""

_ALIVE = "until > clock_timestamp()"
_DEAD = "until = '-infinity'"

VERSIONS = " UNION ALL ".join(
    f"SELECT name, version FROM {table} WHERE name = ANY (%(names)s)" for table in ("documents", "logs")
)
"""The versions of the texts called `names`, as far as they exist."""


class ProcessRows:
    """The rows, as one process uses them. `lease_s` is how long it counts as alive after each renewal.

    Renewing and reading the feed have a connection of their own, which one thread uses, so that they wait for
    nothing else that this process does.
    """

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database = database
        self._own: Connection | None = None
        self.lease_s = lease_s

    # ------------------------------------------------------------------ for one thread: being alive

    def enter(self, member: Member) -> Entered:
        """Register a process."""
        return self._on_own(lambda db: _enter(db, member, self.lease_s))

    def enter_again(self, member: Member, before: int, position: int, leases: Collection[str]) -> Entered:
        """Register a process whose epoch `before` has ended, with those of its leases that nobody took.

        Not if it had one of its shards no longer: what it claimed is then free, and so are its leases.
        """
        heard = f"SELECT FROM processes WHERE id = %s AND heard > clock_timestamp() - interval '{AWAY}'"

        def work(db: Connection) -> Entered:
            with db.transaction():
                now = _enter(db, member, self.lease_s)
                db.execute("UPDATE processes SET seen = %s WHERE id = %s", (position, now.epoch))
                missed = not db.execute(heard, (before,)).rowcount
                kept = frozenset[str]() if missed else _handed_on(db, before, now.epoch, leases)
                _leave(db, before)
                overtaken = any(name.startswith(SHARDS) for name in {*leases} - kept)
                if overtaken:
                    _leave(db, now.epoch)
            return Entered(now.epoch, position, kept, missed, overtaken)

        return self._on_own(work)

    def renew(self, epoch: int, state: State) -> bool:
        """Renew a process. False if the others no longer count on it: it needs a new epoch."""
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
        """The changes of other processes since a position."""
        return self._on_own(lambda db: _page(db, epoch, position))

    def prune(self) -> int:
        """Remove what nobody needs any more, at most so much at once. Returns how many processes."""
        return self._on_own(_prune)

    def leave(self, epoch: int) -> None:
        """Take a process and its leases away: others can have them at once."""

        def work(db: Connection) -> None:
            with db.transaction():
                _leave(db, epoch)

        self._on_own(work)

    def close(self) -> None:
        """Close the connection that the methods above use."""
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
        """The position after everything that was committed or begun so far."""
        # A number of its own: the snapshot's `xmax` may be below a transaction that has begun.
        return int(self._rows("SELECT pg_current_xact_id()::text::bigint")[0][0])

    def behind(self, position: int, epoch: int) -> list[int]:
        """The other processes that have not read up to a position, and may still write."""
        self._database.read(_bury)
        query = f"SELECT id FROM processes WHERE seen < %s AND id <> %s AND {_ALIVE}"
        return [one for (one,) in self._rows(query, (position, epoch))]

    def under_way(self, position: int) -> list[int]:
        """The transactions below a position that have not ended; one may be a dead process's."""
        query = (
            "SELECT xid::text::bigint FROM pg_snapshot_xip(pg_current_snapshot()) AS xid"
            " WHERE xid < %s::text::xid8"
        )
        return [one for (one,) in self._rows(query, (position,))]

    def hide(self) -> None:
        """Remove the names of removed texts, as far as no process needs them any more. Takes seconds."""
        self._database.write(hide)

    def take(self, name: str, epoch: int) -> bool:
        """Take a lease that nobody has, or only a process that is no longer alive. May be called again."""
        return self._database.read(lambda db: _taken(db, name, epoch))

    def release(self, names: Collection[str], epoch: int) -> None:
        """Give leases back; those that others have stay theirs."""
        self._rows("DELETE FROM leases WHERE name = ANY (%s) AND epoch = %s", (list(names), epoch))

    def holders(self, prefix: str, epoch: int) -> dict[str, str]:
        """The leases of other living processes whose names begin so, and who has each."""
        rows = self._rows(
            "SELECT name, format('process %%s on %%s, pid %%s', id, host, pid) FROM leases"
            " JOIN processes ON id = leases.epoch"
            f" WHERE starts_with(name, %s) AND id <> %s AND {_ALIVE} ORDER BY name",
            (prefix, epoch),
        )
        return dict(rows)

    def claim(self, messages: Collection[int], epoch: int, names: Collection[str]) -> Claimed:
        """Claim messages, each of which is given once, and return the versions of texts, in one question.

        May be called again: what this process claimed stays its own. What a dead one claimed is free.
        """
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


# ---------------------------------------------------------------------- being alive


def _enter(db: Connection, member: Member, lease_s: float) -> Entered:
    row = db.execute(
        "INSERT INTO processes (kind, host, pid, program, until, seen)"
        " VALUES (%s, %s, %s, %s, clock_timestamp() + make_interval(secs => %s),"
        " pg_snapshot_xmin(pg_current_snapshot())::text::bigint) RETURNING id, seen",
        (member.kind, socket.gethostname(), os.getpid(), __version__, lease_s),
    ).fetchone()
    assert row is not None
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


def _bury(db: Connection, process: int | None = None) -> None:
    """Make sure that processes that are no longer alive, or one of them, stay so whatever a clock does."""
    db.execute(
        f"UPDATE processes SET {_DEAD} WHERE until < clock_timestamp() AND until > '-infinity'"
        " AND (%(process)s::bigint IS NULL OR id = %(process)s)",
        {"process": process},
    )


def _leave(db: Connection, epoch: int) -> None:
    db.execute("DELETE FROM leases WHERE epoch = %s", (epoch,))
    db.execute("DELETE FROM processes WHERE id = %s", (epoch,))


def _prune(db: Connection) -> int:
    with db.transaction():
        db.execute(
            "WITH old AS (DELETE FROM changes WHERE id <= (SELECT max(id) FROM changes) - %s RETURNING xid)"
            " UPDATE discoclaw SET"
            " forgotten = greatest(forgotten, (SELECT max(xid)::text::bigint + 1 FROM old))"
            " WHERE EXISTS (SELECT FROM old)",
            (KEPT,),
        )
    db.execute(
        "DELETE FROM claims WHERE message IN (SELECT message FROM claims"
        f" WHERE at < clock_timestamp() - interval '{CLAIMS_KEPT}' LIMIT %s)",
        (PRUNED_AT_ONCE,),
    )
    # Of processes that ended without saying so, lost shards stay, to be shown.
    dead = (
        f"SELECT id FROM processes WHERE NOT {_ALIVE} AND heard < clock_timestamp() - interval '{DEAD_KEPT}'"
    )
    db.execute(f"DELETE FROM leases WHERE name NOT LIKE '{SHARDS}%%' AND epoch IN ({dead})", ())
    return db.execute(
        f"DELETE FROM processes WHERE id IN ({dead})"
        " AND NOT EXISTS (SELECT FROM leases WHERE epoch = processes.id)"
    ).rowcount


# ---------------------------------------------------------------------- leases and claims

_CLAIM = f"""WITH claimed AS (
    INSERT INTO claims (message, process) SELECT unnest(%(messages)s::bigint[]), %(epoch)s
    ON CONFLICT (message) DO UPDATE SET process = excluded.process, at = clock_timestamp()
        WHERE claims.process = excluded.process
        OR NOT EXISTS (SELECT FROM processes WHERE id = claims.process AND {_ALIVE})
    RETURNING message
)
SELECT message, NULL, NULL FROM claimed
UNION ALL SELECT NULL, name, version FROM ({VERSIONS}) AS found"""


def _taken(db: Connection, name: str, epoch: int) -> bool:
    values = {"name": name, "epoch": epoch}
    row = db.execute(
        f"""WITH taken AS (
            INSERT INTO leases (name, process, epoch) SELECT %(name)s, id, id FROM processes
            WHERE id = %(epoch)s AND {_ALIVE} ON CONFLICT DO NOTHING RETURNING epoch
        )
        SELECT EXISTS (SELECT FROM taken) OR held.epoch = %(epoch)s, held.epoch, {_ALIVE}
        FROM (VALUES (1)) AS one LEFT JOIN leases AS held ON held.name = %(name)s
        LEFT JOIN processes ON processes.id = held.epoch""",
        values,
    ).fetchone()
    assert row is not None
    ours, holder, alive = row
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


# ---------------------------------------------------------------------- changes


class Changed(NamedTuple):
    """The `names` that changed since a position, in order, and the next position.

    `complete` is false if changes since then may be missing: everything may have changed.
    """

    names: list[str]
    position: int
    cluster: str
    complete: bool


def changed(db: Connection, position: int) -> Changed:
    """The changes of all processes since a position."""
    rows = db.execute(
        """SELECT below::text::bigint, cluster, forgotten, changes.name FROM (
            SELECT pg_snapshot_xmin(pg_current_snapshot()) AS below, cluster, forgotten FROM discoclaw
        ) AS now
        LEFT JOIN changes ON changes.xid >= %s::text::xid8 AND changes.name <> ''
        ORDER BY changes.id""",
        (position,),
    ).fetchall()
    below, cluster, forgotten, _ = rows[0]
    names = [name for *_, name in rows if name is not None]
    return Changed(names, below, cluster, forgotten <= position <= below)


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
        others = "^(ledger|rolling|profiles|groups|cursors|tools)/"
        names |= dict(db.execute(f"SELECT name, version FROM documents WHERE name !~ '{others}'").fetchall())
    return Page(names, max(upto, position), now, complete)


def hide(db: Connection) -> None:
    """Remove the names of texts that are gone, where no process needs them any more: they name a person.

    So do the leases that a dead process had, or waited for.
    """
    for statement in (
        f"""UPDATE changes SET name = '' WHERE name <> '' AND xid < least(
            pg_snapshot_xmin(pg_current_snapshot()),
            (SELECT min(seen)::text::xid8 FROM processes
                WHERE heard > clock_timestamp() - interval '{AWAY}' AND processes.id <> changes.process)
        ) AND NOT EXISTS (SELECT FROM documents WHERE documents.name = changes.name)
        AND NOT EXISTS (SELECT FROM logs WHERE logs.name = changes.name)""",
        f"DELETE FROM leases WHERE name NOT LIKE '{SHARDS}%'"
        f" AND epoch IN (SELECT id FROM processes WHERE {_DEAD})",
        f"UPDATE processes SET waits = '{{}}' WHERE {_DEAD} AND waits <> '{{}}'",
    ):
        db.execute(statement)


# ---------------------------------------------------------------------- what an admin sees


def together(db: Connection) -> Together:
    """The processes that use a store now, what each has and waits for, and how much there is."""
    processes = db.execute(
        f"""SELECT id, kind, host, pid, program, {_ALIVE},
            extract(epoch FROM clock_timestamp() - started)::float8,
            extract(epoch FROM clock_timestamp() - heard)::float8,
            extract(epoch FROM clock_timestamp() - fed)::float8, waits
        FROM processes ORDER BY id"""
    ).fetchall()
    leases = db.execute(
        "SELECT name, epoch, extract(epoch FROM clock_timestamp() - since)::float8 FROM leases ORDER BY name"
    ).fetchall()
    row = db.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return Together(tuple(map(ProcessState._make, processes)), tuple(map(LeaseState._make, leases)), row[0])

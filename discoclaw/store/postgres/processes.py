"""The rows by which processes that share a store know about each other. Blocking.

    processes  one row a process: its right to write, until it leaves or somebody *replaces* it
    beats      one row a process: until when it counts as alive, by the database's clock, and what it has read
    leases     one row a lease; it lives as long as its process, and is never renewed by itself
    claims     one row a message that some process handles
    changes    what was written, read by every process in the order of transactions

Whoever needs what a silent process has replaces it, for good: it gets neither its leases nor its claims
back, and writes nothing more. Each transaction that writes locks its process's row (`schema`), so it has
ended by then. A process replaces others only while it has been heard from itself for a while without a break:
after a fault of the server or its clock, all are silent.

A position in `changes` is the number of a transaction: those below it have ended, and their changes were
returned, so none is missed: whoever stands there has let go of all that was changed before. Followers also
get what ended above it, and once more the next time, because an older transaction that still runs may add to
what is there. Other databases of the same server count too: one that runs for an hour there has the changes
of an hour returned again.

No machine's clock is compared with another's. Methods raise OSError, and functions psycopg.Error.
"""

import os
import socket
from collections.abc import Collection, Mapping
from typing import NamedTuple

from discoclaw import __version__
from discoclaw.store.port import SHARDS, LeaseState, ProcessState, Together
from discoclaw.store.postgres.connection import FENCE, Connection, Database, as_ours

CLAIMS_KEPT = "3 days"
"""Longer than Discord sends anything again, and than the messages that are read after an absence."""
DEAD_KEPT = "10 minutes"
"""How long `discoclaw status` shows a process that ended without saying so, once others have its shards."""
PRUNED_AT_ONCE = 10_000
KEPT = 1_000_000
"""Changes that are kept for followers, about 150 MB. Whoever comes later looks at everything."""
GRACE = 0.6
"""For how much of `lease_s` a process must have lived before it replaces others: longer than any of them
needs to be heard from again when the server is back."""
NEVER = 1 << 62
"""A position that no transaction has reached: nothing is returned but the position of now."""

_COUNTS = "until > '-infinity'"
"""True of a process that was not replaced, in `processes` and in `members`."""

VERSIONS = " UNION ALL ".join(
    f"SELECT name, version FROM {table} WHERE name = ANY (%(names)s)" for table in ("documents", "logs")
)
"""The versions of the texts called `names`, as far as they exist."""


class Page(NamedTuple):
    """The texts that changed since a position, each where it last changed, with their newest versions.

    `position` is the next one, which means something in this `cluster`; `read_at` is the database's time (s).
    `complete` is False if changes since then may be missing: any text may have changed.
    """

    names: dict[str, int]
    position: int
    cluster: str
    read_at: float
    complete: bool


class Claimed(NamedTuple):
    """The messages that are this process's by now, and the versions of texts (0: it does not exist)."""

    messages: Collection[int]
    versions: Mapping[str, int]


class ProcessRows:
    """The rows, as one process uses them. `lease_s` is how long it counts as alive after each beat.

    `beating` and `feed` are the connections of the thread that beats and of the one that reads the feed.
    """

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database = database
        self.lease_s = lease_s
        self.beating, self.feed = database.beside(lease_s), database.beside(lease_s)

    @property
    def _own(self) -> int:
        return self._database.presence.process

    # ------------------------------------------------------------------ being alive

    def enter(self, kind: str) -> tuple[int, int, float]:
        """Register a process: a "bot", or a "tool" of the terminal.

        Returns its number, the position from which it hears of changes, and the database's time (s).
        """
        # Tried once: if the answer is lost, it may be registered.
        with as_ours(self.beating.where), self.beating.connection() as db:
            ((process, position, now),) = db.execute(
                """WITH entered AS (
                    INSERT INTO processes (kind, host, pid, program, until)
                    VALUES (%s, %s, %s, %s, 'infinity') RETURNING id
                )
                INSERT INTO beats (process, until, seen)
                SELECT id, clock_timestamp() + make_interval(secs => %s),
                    pg_snapshot_xmin(pg_current_snapshot())::text::bigint
                FROM entered RETURNING process, seen, extract(epoch FROM fed)::float8""",
                (kind, socket.gethostname(), os.getpid(), __version__, self.lease_s),
            ).fetchall()
        return process, position, now

    def beat(self, position: int, fed: float, waits: Collection[str] = ()) -> bool:
        """Say that this process lives. False if it was replaced.

        It has let go of all that transactions below `position` changed, as it read at `fed` (the database's
        time, s), and waits for these leases.
        """
        query = f"""UPDATE beats SET until = clock_timestamp() + make_interval(secs => %s),
            since = CASE WHEN until > clock_timestamp() THEN since ELSE clock_timestamp() END,
            heard = clock_timestamp(), seen = %s, fed = to_timestamp(%s), waits = %s
            WHERE process = %s AND {_COUNTS}"""
        about = (self.lease_s, position, fed, list(waits), self._own)
        return self.beating.read(lambda db: db.execute(query, about).rowcount) == 1

    def leave(self) -> None:
        """Take this process and its leases away: others can have them at once."""
        query = """WITH lost AS (DELETE FROM leases WHERE epoch = %(own)s),
            silent AS (DELETE FROM beats WHERE process = %(own)s)
            DELETE FROM processes WHERE id = %(own)s"""
        self.beating.rows(query, {"own": self._own})

    def replace(self, *processes: int, silent_for: str = "0") -> int:
        """Replace silent processes, of these if any are given; those that live stay. Returns how many.

        It waits for nobody: one that writes at this moment, or says that it lives, stays for now.
        """
        # A beat that comes right after that waits for the row, and then finds that it is too late.
        return self._database.read(
            lambda db: (
                db.execute(
                    f"""WITH silent AS (
                    SELECT process FROM beats WHERE until < clock_timestamp() AND {_COUNTS}
                    AND heard < clock_timestamp() - %(silent_for)s::interval AND EXISTS (
                        SELECT FROM beats AS ours WHERE ours.process = %(own)s
                        AND ours.until > clock_timestamp()
                        AND ours.since < clock_timestamp() - make_interval(secs => %(grace)s)
                    ) FOR UPDATE SKIP LOCKED
                ), gone AS (
                    SELECT id FROM processes WHERE {_COUNTS}
                    AND (id = ANY (%(processes)s::bigint[]) OR %(processes)s::bigint[] = '{{}}')
                    AND (id IN (SELECT process FROM silent) OR until < clock_timestamp())
                    FOR UPDATE SKIP LOCKED
                ), ended AS (
                    UPDATE beats SET until = '-infinity', waits = '{{}}' FROM gone WHERE process = id
                )
                UPDATE processes SET until = '-infinity' FROM gone WHERE processes.id = gone.id""",
                    {
                        "own": self._own,
                        "processes": list(processes),
                        "silent_for": silent_for,
                        "grace": self.lease_s * GRACE,
                    },
                ).rowcount
            )
        )

    def prune(self) -> int:
        """Remove what nobody needs any more, at most so much at once. Returns how many processes."""

        def work(db: Connection) -> int:
            with db.transaction():
                db.execute(
                    "WITH old AS"
                    " (DELETE FROM changes WHERE id <= (SELECT max(id) FROM changes) - %s RETURNING xid)"
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
            gone = db.execute(
                f"""DELETE FROM processes USING members WHERE processes.id = members.id
                AND NOT members.{_COUNTS}
                AND members.heard < clock_timestamp() - interval '{DEAD_KEPT}'
                AND NOT EXISTS (SELECT FROM leases WHERE epoch = members.id)"""
            ).rowcount
            db.execute("DELETE FROM beats WHERE NOT EXISTS (SELECT FROM processes WHERE id = process)")
            return gone

        return self.replace(silent_for=DEAD_KEPT) + self._database.read(work)

    # ------------------------------------------------------------------ what others changed

    def page(self, position: int) -> Page:
        """The changes of other processes since a position; without a `complete` list, all that may concern
        more than one person."""

        def work(db: Connection) -> Page:
            page = changed(db, position, besides=self._own)
            if not page.complete:  # those that no reader of one person's texts would ask for
                others = "^(ledger|rolling|profiles|groups|cursors|tools)/"
                query = f"SELECT name, version FROM documents WHERE name !~ '{others}'"
                page.names.update(db.execute(query).fetchall())
            return page

        return self.feed.read(work)

    def newest(self) -> int:
        """The position after everything that was committed or begun so far."""
        # A number of its own: the snapshot's `xmax` may be below a transaction that has begun.
        return int(self._database.rows("SELECT pg_current_xact_id()::text::bigint")[0][0])

    def behind(self, position: int) -> list[int]:
        """The other processes that have not read up to a position, and may still write."""
        query = f"SELECT id FROM members WHERE seen < %s AND id <> %s AND {_COUNTS}"
        if found := [one for (one,) in self._database.rows(query, (position, self._own))]:
            self.replace(*found)
        return found

    def hide(self) -> None:
        """Remove the names of removed texts, as far as no process needs them any more. Takes seconds."""
        self._database.write(hide)

    # ------------------------------------------------------------------ leases and claims

    def take(self, name: str) -> bool:
        """Take a lease that nobody has, or only a process that is silent. May be called again.

        Raises LeaseLost if this process was replaced.
        """
        about = {"own": self._own, "name": name}
        if (holder := self._database.rows(_TAKE, about)[0][0]) and self.replace(holder):
            holder = self._database.rows(_TAKE, about)[0][0]
        return holder is None

    def release(self, name: str) -> None:
        """Give a lease back; one that another process has stays its own."""
        self._database.rows("DELETE FROM leases WHERE name = %s AND epoch = %s", (name, self._own))

    def holders(self, prefix: str) -> dict[str, str]:
        """The leases of other living processes whose names begin so, and who has each."""
        rows = self._database.rows(
            "SELECT name, format('process %%s on %%s, pid %%s', id, host, pid) FROM leases"
            " JOIN members ON id = epoch"
            " WHERE starts_with(name, %s) AND id <> %s AND until > clock_timestamp() ORDER BY name",
            (prefix, self._own),
        )
        return dict(rows)

    def claim(self, messages: Collection[int], names: Collection[str]) -> Claimed:
        """Claim messages, each of which is given once, and return the versions of texts, in one question.

        May be called again: what this process claimed stays its own. What one claimed that was replaced or
        left is free. Raises LeaseLost if this process was replaced.
        """
        about = {"messages": list(messages), "own": self._own, "names": list(names)}
        rows = self._database.rows(_CLAIM, about, spare=True)
        versions = dict.fromkeys(names, 0)
        versions |= {name: version for _, name, version in rows if name is not None}
        return Claimed({message for message, *_ in rows if message is not None}, versions)


_FREE = f"NOT EXISTS (SELECT FROM processes WHERE id = {{}} AND {_COUNTS})"

_TAKE = f"""WITH taken AS (
    INSERT INTO leases (name, process, epoch) SELECT %(name)s, %(own)s, %(own)s FROM {FENCE}
    ON CONFLICT (name) DO UPDATE SET process = excluded.process, epoch = excluded.epoch,
        since = CASE WHEN leases.epoch = excluded.epoch THEN leases.since ELSE clock_timestamp() END
        WHERE leases.epoch = excluded.epoch OR {_FREE.format("leases.epoch")}
    RETURNING 1
)
SELECT CASE WHEN NOT EXISTS (SELECT FROM taken) THEN coalesce(
    (SELECT epoch FROM leases WHERE name = %(name)s), 0
) END"""
"""Returns NULL, or who has the lease; 0 if it was given or taken at this moment."""

_CLAIM = f"""WITH claimed AS (
    INSERT INTO claims (message, process) SELECT unnest(%(messages)s::bigint[]), %(own)s FROM {FENCE}
    ON CONFLICT (message) DO UPDATE SET process = excluded.process, at = clock_timestamp()
        WHERE claims.process = excluded.process OR {_FREE.format("claims.process")}
    RETURNING message
)
SELECT message, NULL, NULL FROM claimed
UNION ALL SELECT NULL, name, version FROM ({VERSIONS}) AS found"""


# ---------------------------------------------------------------------- changes


def changed(db: Connection, position: int, *, besides: int | None = None) -> Page:
    """The changes of all processes since a position; or those of all `besides` one, as far as they ended.

    One statement, so it sees one moment.
    """
    rows = db.execute(
        """SELECT below::text::bigint, cluster, extract(epoch FROM clock_timestamp())::float8,
            forgotten <= %(position)s AND %(position)s <= below::text::bigint, changes.name, changes.version
        FROM (
            SELECT pg_snapshot_xmin(pg_current_snapshot()) AS below, cluster, forgotten FROM discoclaw
        ) AS now
        LEFT JOIN changes ON changes.xid >= %(position)s::text::xid8 AND changes.name <> ''
            AND (%(besides)s::bigint IS NULL OR xid < below AND process <> %(besides)s)
        ORDER BY changes.id""",
        {"position": position, "besides": besides},
    ).fetchall()
    below, cluster, now, complete, *_ = rows[0]
    names = dict[str, int]()
    for *_, name, version in rows:
        if name is not None:
            names[name] = max(version, names.pop(name, 0))
    return Page(names, below, cluster, now, complete)


def hide(db: Connection) -> None:
    """Remove the names of texts that are gone, where no process needs them any more: they name a person.

    So do the leases that a replaced process had.
    """
    db.execute(
        f"""UPDATE changes SET name = '' WHERE name <> '' AND xid < least(
            pg_snapshot_xmin(pg_current_snapshot()),
            (SELECT min(seen)::text::xid8 FROM members WHERE {_COUNTS} AND id <> changes.process)
        ) AND NOT EXISTS (SELECT FROM documents WHERE documents.name = changes.name)
        AND NOT EXISTS (SELECT FROM logs WHERE logs.name = changes.name)"""
    )
    db.execute(f"DELETE FROM leases WHERE NOT starts_with(name, '{SHARDS}') AND {_FREE.format('epoch')}")


# ---------------------------------------------------------------------- what an admin sees


def together(db: Connection) -> Together:
    """The processes that use a store now, what each has and waits for, and how much there is."""
    processes = db.execute(
        """SELECT id, kind, host, pid, program, until > clock_timestamp(),
            extract(epoch FROM clock_timestamp() - started)::float8,
            extract(epoch FROM clock_timestamp() - heard)::float8,
            extract(epoch FROM clock_timestamp() - fed)::float8, waits
        FROM members ORDER BY id"""
    ).fetchall()
    leases = db.execute(
        "SELECT name, epoch, extract(epoch FROM clock_timestamp() - since)::float8 FROM leases ORDER BY name"
    ).fetchall()
    row = db.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return Together(tuple(map(ProcessState._make, processes)), tuple(map(LeaseState._make, leases)), row[0])

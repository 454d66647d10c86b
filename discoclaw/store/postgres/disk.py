"""The store in PostgreSQL: the same names and the same bytes as the plain files, for several processes.

There is no durable file to edit by hand, and snapshots stay beside (`data/cache`), since they can be lost.
What was acknowledged outlives a crash of the server; of a server that fails over to another one, only where
that one is synchronous (docs/admins/postgresql.md). Blocking. Knows nothing about what the bytes mean.
"""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import psycopg

from discoclaw.core.errors import Overtaken, Refused
from discoclaw.store.fence import Presence
from discoclaw.store.members import LeaseState, ProcessState, Together
from discoclaw.store.port import (
    LEDGERS,
    NO_LOG,
    Disk,
    Documents,
    Head,
    Held,
    Ledgers,
    Log,
    Mark,
    is_log,
)
from discoclaw.store.postgres import changes, schema
from discoclaw.store.postgres.archive import COUNTED, TABLES
from discoclaw.store.postgres.connection import FENCE, Connection, Database, Row
from discoclaw.store.postgres.documents import PostgresDocuments, end_of
from discoclaw.store.postgres.errors import as_ours, is_lost
from discoclaw.store.postgres.processes import VERSIONS, ProcessRows
from discoclaw.store.postgres.tables import NOTED, Parameters, Tables

log = logging.getLogger(__name__)

_PREFIX, _ENDING = f"{LEDGERS}/", ".jsonl"

_DAMAGED = """
    SELECT name FROM logs WHERE size <> coalesce((SELECT sum(length(line)) FROM lines WHERE log = logs.id), 0)
    ORDER BY name
"""


class PostgresDisk:
    """The tables of one database."""

    name = "postgresql"
    remembers = True
    shared = True
    durable: Path | None = None

    def __init__(self, where: str | Database) -> None:
        self.database = Database(where) if isinstance(where, str) else where
        self.tables = Tables(self.database)
        self.seen = self.tables.seen
        self.presence = self.database.presence
        self.ledgers: Ledgers = _Ledgers(self.tables)

    @property
    def in_touch(self) -> bool:
        return self.presence.in_touch

    def documents(self, folder: str) -> Documents:
        return PostgresDocuments(self.tables, f"{folder}/" if folder else "")

    def log(self, name: str) -> Log:
        return PostgresLog(self.tables, name)

    def versions(self, names: Collection[str]) -> dict[str, int]:
        """The versions of these texts now; 0 for one that does not exist. Raises OSError."""
        about = {"names": list(names)}
        found = self.tables.read(lambda db: db.execute(VERSIONS, about).fetchall())
        return dict.fromkeys(names, 0) | dict(found)

    def rows(self, lease_s: float) -> ProcessRows:
        """The rows by which its processes know about each other."""
        return ProcessRows(self.database, lease_s)

    def together(self) -> Together:
        """The processes that use the store now. Raises OSError."""
        return self.tables.read(together)

    def open(self) -> None:
        self.tables.prepare()

    def check(self) -> str | None:
        """Compare the length of every log with its lines; PostgreSQL finds other damage when it reads."""
        if not (damaged := self._damaged()):
            return None
        more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
        return (
            f"{self.tables.path / damaged[0]}{more} is damaged: lines are missing; restore a backup of the "
            "database, or let `discoclaw memory verify --repair` go on with what is left"
        )

    def rescue(self, stamp: str) -> list[str]:
        steps = []
        for name in self._damaged():
            held = HeldLog(self.tables, name)
            try:
                aside = PostgresDocuments(self.tables, "").put_aside(name, held.left, "damaged", stamp)
                held.replace(held.left)
            finally:
                held.release()
            steps.append(f"{name} had lost lines; it goes on with what is left, which is kept as {aside}")
        return steps

    def _damaged(self) -> list[str]:
        """The names of the logs that are not as long as they should be. Raises OSError."""
        self.tables.prepare()
        with self.database.patient() as db:
            return [name for (name,) in db.execute(_DAMAGED).fetchall()]

    def close(self) -> None:
        self.database.close()

    def wipe(self) -> None:
        """Remove the names of removed texts from the list of changes.

        PostgreSQL reuses the space of removed rows in its own time (docs/admins/postgresql.md).
        """
        self.tables.write(changes.hide)

    @contextmanager
    def frozen(self, beside: Path) -> Iterator[Disk]:
        self.tables.prepare()
        with pinned(self.database, SNAPSHOT) as database:
            yield PostgresDisk(database)

    @property
    def tables_beside(self) -> Mapping[str, str]:
        """The tables of the archive, by the names of their files: "1.archive_words", with their version."""
        return {f"{len(schema.STEPS)}.{table}": table for table in TABLES}

    def copy_out(self, table: str, file: BinaryIO) -> None:
        self.tables.read(lambda db: copy_out(db, table, file))

    def fill(self, texts: Iterable[tuple[str, bytes]], tables: Mapping[str, Path] | None = None) -> None:
        self.tables.prepare()
        with pinned(self.database, ALONE) as database:
            database.read(_alone)
            whole = PostgresDisk(database)
            if any(size for _, size in whole.ledgers.by_age()):
                raise Refused(f"{self.database.where} has memories already; nothing was written to it")
            for name, content in texts:
                if is_log(name):
                    whole.log(name).replace(content)
                else:
                    whole.documents("").write(name, content)
            if tables:
                if database.read(lambda db: db.execute("SELECT FROM archive_entries LIMIT 1").rowcount):
                    raise Refused(f"{self.database.where} has an archive already; nothing was written to it")
                database.read(lambda db: copy_in(db, tables))
            database.read(schema.settle_in)


def _alone(db: Connection) -> None:
    """Keep processes of the bot from beginning until the transaction ends. Raises Refused if one is there."""
    db.execute("LOCK TABLE processes IN SHARE ROW EXCLUSIVE MODE")
    alive = db.execute("SELECT host, pid FROM processes WHERE until > clock_timestamp()").fetchone()
    if alive is not None:
        raise Refused(f"process {alive[1]} on {alive[0]} uses the database; stop all processes first")


class _Ledgers:
    """A mark is the position in `changes`, and the cluster in which it means something."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def log(self, subject: str) -> Log:
        return PostgresLog(self._tables, f"{_PREFIX}{subject}{_ENDING}")

    def by_age(self) -> list[tuple[str, int]]:
        query = "SELECT name, size FROM logs WHERE name >= %s AND name < %s ORDER BY version"
        found = self._tables.read(lambda db: db.execute(query, (_PREFIX, end_of(_PREFIX))).fetchall())
        return [(_subject(name), size) for name, size in found if name.endswith(_ENDING)]

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        known = mark if isinstance(mark, dict) else {}
        position, cluster = known.get("position"), known.get("cluster")
        begin = position if isinstance(position, int) else changes.NEVER
        found = self._tables.read(lambda db: changes.since(db, begin))
        now: Mark = {"position": found.position, "cluster": found.cluster}
        if not found.complete or cluster != found.cluster:
            return [subject for subject, _ in self.by_age()], now
        names = dict.fromkeys(reversed([name for name, _ in found.names]))  # each where it last changed
        return [_subject(name) for name in reversed(names) if _is_ledger(name)], now


def _is_ledger(name: str) -> bool:
    return name.startswith(_PREFIX) and name.endswith(_ENDING)


def _subject(name: str) -> str:
    return name.removeprefix(_PREFIX).removesuffix(_ENDING)


# ---------------------------------------------------------------------- one transaction

T = TypeVar("T")

SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""Every statement sees the same moment. It keeps nobody from writing."""
ALONE = "BEGIN"

_MAY_IDLE = "SELECT set_config('idle_in_transaction_session_timeout', '0', false)"


class Pinned(Database):
    """A database on one connection, in one transaction that others end. For one thread."""

    def __init__(self, like: Database, db: Connection) -> None:
        self.presence = Presence()
        self.place, self.where = like.place, like.where
        self._db = db

    def read(self, work: Callable[[Connection], T], *, spare: bool = False) -> T:
        with as_ours(self.where):
            return work(self._db)

    def write(self, work: Callable[[Connection], T], *, fenced: bool = True) -> T:
        return self.read(work)

    def close(self) -> None:
        """Do nothing: whoever began the transaction ends it."""


@contextmanager
def pinned(database: Database, begin: str) -> Iterator[Pinned]:
    """The database within one transaction, which is committed unless the block raises. Raises OSError."""
    with database.patient() as db:
        db.execute(begin)
        db.execute(_MAY_IDLE)  # with this first statement of the transaction the moment of a snapshot comes
        try:
            yield Pinned(database, db)
            db.execute("COMMIT")
        except BaseException:
            if not db.closed:
                db.execute("ROLLBACK")
            raise


# ---------------------------------------------------------------------- a log as rows


AT_ONCE = 1 << 21
"""Bytes of lines in one statement: half of what PostgreSQL keeps in memory before it needs a file."""

_LOCK = "SELECT FROM logs WHERE name = %s FOR UPDATE"
_HEAD = "SELECT size, generation, version FROM logs WHERE name = %s"
_LOAD = """
    SELECT logs.size, generation, version, line FROM logs LEFT JOIN lines ON log = logs.id AND position >=
        CASE WHEN logs.generation = %(generation)s AND logs.size >= %(size)s THEN %(size)s ELSE 0 END
    WHERE name = %(name)s ORDER BY position
"""
# An empty log is as good as none: whoever knows of none may write to it. Its generation is then its version,
# so that both can be found again by the number of the attempt.
_BEGUN = """
    INSERT INTO logs (name, size, generation, version)
    SELECT %(name)s, %(length)s, v, v FROM (SELECT nextval('versions') AS v) AS next
    ON CONFLICT (name) DO UPDATE SET size = excluded.size, generation = excluded.version,
        version = excluded.version WHERE logs.size = 0
"""
_GROWN = """
    UPDATE logs SET size = size + %(length)s, version = nextval('versions')
    WHERE name = %(name)s AND size = %(size)s AND generation = %(generation)s
"""
_RENEWED = """
    INSERT INTO logs (name, size) VALUES (%(name)s, %(length)s) ON CONFLICT (name)
    DO UPDATE SET size = excluded.size, generation = excluded.generation, version = excluded.version
"""
_CUT = """
    UPDATE logs SET size = %(size)s, generation = nextval('versions'), version = nextval('versions')
    WHERE name = %(name)s AND size > %(size)s
"""
_LINES = "unnest(%(positions)b::bigint[], %(lines)b::bytea[]) AS u (p, l)"
_ADDED = f"INSERT INTO lines (log, position, line) SELECT %(log)s, p, l FROM {_LINES}"
_APPENDED = f"""
    WITH head AS ({{head}} RETURNING id, generation, version),
    added AS (INSERT INTO lines (log, position, line) SELECT id, p, l FROM head, {_LINES}),
    noted AS ({NOTED} SELECT %(name)s, version, %(own)s, %(attempt)s FROM head)
    SELECT version, generation, id, {FENCE} FROM head
"""
_NOTED = f"{NOTED} VALUES (%(name)s, %(version)s, %(own)s, %(attempt)s)"

Write = Callable[[Connection, Parameters], T]


class PostgresLog:
    """A log."""

    def __init__(self, tables: Tables, name: str) -> None:
        self.tables = tables
        self.name = name

    @property
    def path(self) -> Path:
        return self.tables.path / self.name

    def read(self) -> bytes:
        return self.load()[0]

    def size(self) -> int:
        return self.head().size

    def head(self) -> Head:
        row = self.tables.read(lambda db: db.execute(_HEAD, (self.name,)).fetchone())
        self.tables.seen.read(self.name, row[2] if row else 0)
        return Head(row[0], row[1]) if row else NO_LOG

    def load(self, since: Head = NO_LOG) -> tuple[bytes, Head]:
        return self._loaded(self.tables.read(lambda db: self._rows(db, since)), since)

    def _rows(self, db: Connection, since: Head) -> list[Row]:
        return db.execute(_LOAD, self._about(since), binary=True).fetchall()

    def _about(self, head: Head) -> Parameters:
        return {"name": self.name, "size": head.size, "generation": head.generation}

    def _loaded(self, rows: Sequence[Row], since: Head) -> tuple[bytes, Head]:
        """The result of `load` from the rows after a head."""
        if not rows:
            self.tables.seen.read(self.name, 0)
            return b"", NO_LOG
        size, generation, version, _ = rows[0]
        head = Head(size, generation)
        self.tables.seen.read(self.name, version)
        content = b"".join(line for *_, line in rows if line is not None)
        begin = since.size if head.reaches(since) else 0
        if begin + len(content) != size:
            if begin:  # that head may end within a line
                content, head = self.load()
                return content[since.size :] if head.reaches(since) else content, head
            raise OSError(f"{self.path} is damaged ({len(content)} of {size} bytes); see `memory verify`")
        return content, head

    def append(self, content: bytes, *, after: Head) -> Head:
        first, *more = _parts(content, after.size)
        query = _APPENDED.format(head=_GROWN if after.size else _BEGUN)
        about = self._about(after) | {"length": len(content)}

        def put(db: Connection, given: Parameters) -> tuple[int, int] | None:
            row = db.execute(query, given | about | first, binary=True).fetchone()
            if row is None:
                return None
            version, generation, log, _ = row
            for part in more:
                db.execute(_ADDED, part | {"log": log}, binary=True)
            return version, generation

        found = self._once(
            put,
            lambda version: (version, after.generation if after.size else version),
            at_once=not more,
            compares=True,
        )
        if found is None:
            size = self.size()
            raise Overtaken(f"{self.path} was changed by somebody else ({size} bytes, not {after.size})")
        version, generation = found
        self.tables.seen.wrote(self.name, version)
        return Head(after.size + len(content), generation)

    def hold(self, since: Head = NO_LOG) -> tuple[Held, bytes, Head]:
        held = HeldLog(self.tables, self.name, since)
        try:
            return held, *self._loaded(held.rows, since)
        except BaseException:
            held.release()
            raise

    def cut(self, size: int) -> None:
        def put(db: Connection, given: Parameters) -> int:
            given |= {"name": self.name, "size": size}
            if (row := db.execute(f"{_CUT} RETURNING id, version", given).fetchone()) is None:
                return 0
            where = "WHERE log = %(log)s AND position"
            given |= {"log": row[0], "version": row[1]}
            db.execute(f"DELETE FROM lines {where} >= %(size)s", given)
            last = f"(SELECT max(position) FROM lines {where} < %(size)s)"
            db.execute(
                f"UPDATE lines SET line = substr(line, 1, (%(size)s - position)::int) {where} = {last}", given
            )
            db.execute(_NOTED, given)
            return int(row[1])

        if version := self._once(put, lambda version: version):
            self.tables.seen.wrote(self.name, version)

    def replace(self, content: bytes) -> None:
        def put(db: Connection, given: Parameters) -> int:
            given |= {"name": self.name, "length": len(content)}
            row = db.execute(f"{_RENEWED} RETURNING id, version", given).fetchone()
            log, version = row or (0, 0)
            db.execute("DELETE FROM lines WHERE log = %s", (log,))
            for part in _parts(content, 0):
                db.execute(_ADDED, part | {"log": log}, binary=True)
            db.execute(_NOTED, given | {"version": version})
            return int(version)

        self.tables.seen.wrote(self.name, self._once(put, lambda version: version))

    def keep_aside(self, label: str, stamp: str) -> Path:
        return PostgresDocuments(self.tables, "").put_aside(self.name, self.read(), label, stamp)

    def _once(
        self, put: Write[T], landed: Callable[[int], T], *, at_once: bool = False, compares: bool = False
    ) -> T:
        """Write in one transaction, or with one statement; see `Tables.once`.

        What `compares` may be written without the hold that it was begun under.
        """

        def write(given: Parameters) -> T:
            run = self.tables.write_at_once if at_once else self.tables.write
            return run(lambda db: put(db, given))

        return self.tables.once(write, landed)


@contextmanager
def _until_lost() -> Iterator[None]:
    """End quietly where the connection is lost: what was written on it is gone with it."""
    try:
        yield
    except psycopg.Error as error:
        if not is_lost(error):
            raise


class HeldLog(PostgresLog):
    """A log the row of which is locked, on a connection of its own. `rows` is what it has after a head."""

    def __init__(self, tables: Tables, name: str, since: Head = NO_LOG) -> None:
        super().__init__(tables, name)
        tables.prepare()
        self._db: Connection | None = tables.database.take(hold=True)
        try:
            with as_ours(tables.database.where):
                self.rows = self._lock(self._db, since)
        except BaseException:
            self.release()
            raise

    @property
    def left(self) -> bytes:
        """The lines that there are, whether they are all or not."""
        return b"".join(line for *_, line in self.rows if line is not None)

    def _lock(self, db: Connection, since: Head) -> list[Row]:
        """Lock the row, and return what there is after a head.

        One statement for both would read what was there before it waited. A pipeline of both would let the
        server wait for the rest of it, if this process is stopped meanwhile, without ending the transaction.
        """
        db.execute("BEGIN")
        while not db.execute(_LOCK, (self.name,)).rowcount:
            made = "INSERT INTO logs (name) VALUES (%s) ON CONFLICT DO NOTHING"
            if db.execute(made, (self.name,)).rowcount:
                return []
        return self._rows(db, since)

    def release(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            self.tables.database.give(db, hold=True)

    def _once(
        self, put: Write[T], landed: Callable[[int], T], *, at_once: bool = False, compares: bool = False
    ) -> T:
        database, held = self.tables.database, self._db is not None

        def write(given: Parameters) -> T:
            try:
                if self._db is not None:
                    with as_ours(database.where), _until_lost():
                        outcome = put(self._db, given)
                        database.commit(self._db, fenced=not at_once)  # one statement has asked the fence
                        return outcome
            finally:
                self.release()
            if held and not compares:  # somebody else may have written since it was read
                raise OSError(f"{database.where}: the connection broke off; nothing was written")
            return self.tables.write(lambda db: put(db, given))

        return self.tables.once(write, landed)


def _parts(content: bytes, at: int) -> Iterator[dict[str, Any]]:
    """The lines of a content, each with its newline and the byte at which it begins, for statements."""
    *whole, rest = content.split(b"\n")
    lines = [line + b"\n" for line in whole] + ([rest] if rest else [])
    part: list[bytes] = []
    length = 0
    for line in lines:
        if length + len(line) > AT_ONCE and part:
            yield _part(part, at)
            at, part, length = at + length, [], 0
        part.append(line)
        length += len(line)
    yield _part(part, at)


def _part(lines: list[bytes], at: int) -> dict[str, Any]:
    positions = list(itertools.accumulate(map(len, lines), initial=at))[:-1]
    return {"positions": positions, "lines": lines}


# The tables of the archive as files, and back: what COPY writes. Blocking; raises psycopg.Error.

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


# Reads who uses the store: its processes, what each has and waits for, and how much there is. Blocking.

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

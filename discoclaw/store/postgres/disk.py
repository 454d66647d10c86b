"""The store in PostgreSQL: the same names and the same bytes as the plain files, for several processes.

There is no durable file to edit by hand, and snapshots stay beside (`data/cache`), since they can be lost.
What was acknowledged outlives a crash of the server; of a server that fails over to another one, only where
that one is synchronous (docs/admins/postgresql.md). Blocking. Knows nothing about what the bytes mean.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from discoclaw.core.errors import Refused
from discoclaw.store.port import (
    LEDGERS,
    Disk,
    Documents,
    Ledgers,
    Log,
    Mark,
    Presence,
    Together,
    inside,
    is_log,
    subject_of,
)
from discoclaw.store.postgres import processes, schema
from discoclaw.store.postgres.connection import Connection, Database, as_ours
from discoclaw.store.postgres.processes import ProcessRows
from discoclaw.store.postgres.tables import PostgresDocuments, PostgresLog, Tables

T = TypeVar("T")


class PostgresDisk(Disk):
    """The tables of one database."""

    name = "postgresql"
    shared = True

    def __init__(self, where: str | Database) -> None:
        self.database = Database(where) if isinstance(where, str) else where
        self.tables = Tables(self.database)
        self.seen = self.tables.seen
        self.presence = self.database.presence
        self.ledgers = _Ledgers(self)

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
        self.tables.prepare()
        return dict.fromkeys(names, 0) | dict(self.database.rows(processes.VERSIONS, about))

    def rows(self, lease_s: float) -> ProcessRows:
        """The rows by which its processes know about each other."""
        return ProcessRows(self.database, lease_s)

    def together(self) -> Together:
        """The processes that use the store now. Raises OSError."""
        return self.tables.read(processes.together)

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
            damaged = PostgresLog(self.tables, name)
            head, left = damaged.head(), damaged.load_damaged()
            aside = self.documents("").put_aside(name, left, "damaged", stamp)
            damaged.replace(left, after=head)
            steps.append(f"{name} had lost lines; it goes on with what is left, which is kept as {aside}")
        return steps

    def _damaged(self) -> list[str]:
        """The names of the logs that are not as long as they should be. Raises OSError."""
        self.tables.prepare()
        with self.database.patient() as db:
            found = db.execute(
                "SELECT name FROM logs"
                " WHERE size <> coalesce((SELECT sum(length(line)) FROM lines WHERE log = logs.id), 0)"
                " ORDER BY name"
            )
            return [name for (name,) in found.fetchall()]

    def close(self) -> None:
        self.database.close()

    def wipe(self) -> None:
        """Remove the names of removed texts from the list of changes.

        PostgreSQL reuses the space of removed rows in its own time (docs/admins/postgresql.md).
        """
        self.tables.write(processes.hide)

    @contextmanager
    def frozen(self, beside: Path) -> Iterator[Disk]:
        self.tables.prepare()
        with pinned(self.database, SNAPSHOT) as database:
            yield PostgresDisk(database)

    @property
    def tables_beside(self) -> Mapping[str, str]:
        """The tables of the archive, by the names of their files: "1.archive_words", with their version."""
        return {f"{len(schema.STEPS)}.{table}": table for table in schema.TABLES}

    def copy_out(self, table: str, file: BinaryIO) -> None:
        """Write a table to a file. Raises OSError."""

        def copy(db: Connection) -> None:
            with db.cursor().copy(f"COPY {table} TO STDOUT") as rows:
                for part in rows:
                    file.write(part)

        self.tables.read(copy)

    def fill(self, texts: Iterable[tuple[str, bytes]], tables: Mapping[str, Path] | None = None) -> None:
        """Write logs and other texts by their names in the store, and the files of all tables by the names of
        these: all or nothing.

        Raises Refused if a process uses the store or it has ledgers, or an archive of its own; and OSError.
        """
        self.tables.prepare()
        with pinned(self.database, "BEGIN") as database:
            # No process of the bot begins until the transaction ends.
            database.rows("LOCK TABLE processes IN SHARE ROW EXCLUSIVE MODE")
            query = "SELECT host, pid FROM members WHERE until > clock_timestamp()"
            for host, pid in database.rows(query):
                raise Refused(f"process {pid} on {host} uses the database; stop all processes first")
            whole = PostgresDisk(database)
            if any(size for _, size in whole.ledgers.by_age()):
                raise Refused(f"{self.database.where} has memories already; nothing was written to it")
            for name, content in texts:
                if is_log(name):
                    whole.log(name).replace(content)
                else:
                    whole.documents("").write(name, content)
            if tables:
                if database.rows("SELECT FROM archive_entries LIMIT 1"):
                    raise Refused(f"{self.database.where} has an archive already; nothing was written to it")
                database.read(lambda db: _copy_in(db, tables))
            database.read(schema.settle_in)


class _Ledgers(Ledgers):
    """A mark is the position in `changes`, and the cluster in which it means something."""

    _disk: PostgresDisk

    def by_age(self) -> list[tuple[str, int]]:
        query = "SELECT name, size FROM logs WHERE name >= %(first)s AND name < %(end)s ORDER BY version"
        found = self._disk.tables.read(lambda db: db.execute(query, inside(f"{LEDGERS}/")).fetchall())
        sizes = ((subject_of(name), size) for name, size in found)
        return [(subject, size) for subject, size in sizes if subject is not None]

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        known = mark if isinstance(mark, dict) else {}
        position, cluster = known.get("position"), known.get("cluster")
        begin = position if isinstance(position, int) else processes.NEVER
        found = self._disk.tables.read(lambda db: processes.changed(db, begin))
        now: Mark = {"position": found.position, "cluster": found.cluster}
        if not found.complete or cluster != found.cluster:
            return [subject for subject, _ in self.by_age()], now
        return [subject for name in found.names if (subject := subject_of(name)) is not None], now


# ---------------------------------------------------------------------- one transaction

SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""Every statement sees the same moment. It keeps nobody from writing."""


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
        # With this first statement of the transaction the moment of a snapshot comes.
        db.execute("SELECT set_config('idle_in_transaction_session_timeout', '0', false)")
        try:
            yield Pinned(database, db)
            db.execute("COMMIT")
        except BaseException:
            if not db.closed:
                db.execute("ROLLBACK")
            raise


# ---------------------------------------------------------------------- the archive's tables


def _copy_in(db: Connection, files: Mapping[str, Path]) -> None:
    """Replace the rows of all tables by those in files, as COPY wrote them. Raises psycopg.Error."""
    db.execute(f"TRUNCATE {', '.join(schema.TABLES)}")
    for table in schema.TABLES:
        with files[table].open("rb") as file, db.cursor().copy(f"COPY {table} FROM STDIN") as rows:
            while part := file.read(1 << 20):
                rows.write(part)
    for table, column in schema.COUNTED:
        newest = f"(SELECT max({column}) FROM {table})"
        db.execute(f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {newest})")

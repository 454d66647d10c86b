"""The store in PostgreSQL: the same names and the same bytes as the plain files, for several processes.

There is no durable file to edit by hand, and snapshots stay beside (`data/cache`), since they can be lost.
What was acknowledged outlives a crash of the server; of a server that fails over to another one, only where
that one is synchronous (docs/admins/postgresql.md). Blocking. Knows nothing about what the bytes mean.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from discoclaw.core.errors import Refused
from discoclaw.memory.disk.members import Together
from discoclaw.memory.disk.port import LEDGERS, Disk, Documents, Ledgers, Log, Mark, is_log
from discoclaw.memory.disk.postgres import changes, copying, schema, status
from discoclaw.memory.disk.postgres.archive import TABLES
from discoclaw.memory.disk.postgres.connection import Connection, Database
from discoclaw.memory.disk.postgres.documents import PostgresDocuments, end_of
from discoclaw.memory.disk.postgres.logs import HeldLog, PostgresLog
from discoclaw.memory.disk.postgres.pinned import ALONE, SNAPSHOT, pinned
from discoclaw.memory.disk.postgres.processes import VERSIONS, ProcessRows
from discoclaw.memory.disk.postgres.tables import Tables

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
        """Who uses the store now. Raises OSError."""
        return self.tables.read(status.together)

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
        self.tables.read(lambda db: copying.copy_out(db, table, file))

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
                database.read(lambda db: copying.copy_in(db, tables))
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

"""The tables as logs and documents: prepared at the first use, and each write known by its number.

Each write carries the number of its attempt into `changes`, where it is unique. If the connection breaks off
meanwhile, nobody knows whether it was written. Then `_outcome` inserts the same number: that waits for the
transaction if it is still under way, and afterwards the number is there, because it was written, or is taken,
so that it never can be. Comparing contents would not tell whether somebody else wrote the same, or over it.

A write of a document, and an append, is one statement. Knows nothing about what the bytes mean.
"""

import itertools
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from discoclaw.store.port import NO_LOG, Documents, Head, Log, inside, overtaken
from discoclaw.store.postgres import schema
from discoclaw.store.postgres.connection import FENCE, Connection, Database, Row, Unsure
from discoclaw.store.threads import WRITES

T = TypeVar("T")

Parameters: TypeAlias = dict[str, Any]


_NOTED = "INSERT INTO changes (name, version, process, attempt)"
"""How a statement that writes begins its note about that."""


class Tables:
    """The tables of a database, and which versions in them this process has seen."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.seen = Seen()
        self.path = Path(f"postgresql:/{database.place}")
        self._attempts = itertools.count(secrets.randbits(62))
        self._preparing = threading.Lock()
        self._prepared = False

    def prepare(self) -> None:
        """Make the tables, or bring them to this version, once. Raises OSError, MemoryFault."""
        if not self._prepared:
            with self._preparing:
                if not self._prepared:
                    schema.prepare(self.database)
                    self._prepared = True

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` reads; see `Database.read`."""
        self.prepare()
        return self.database.read(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Let `work` write in one transaction; see `Database.write`."""
        self.prepare()
        return self.database.write(work)

    def once(
        self,
        write: Callable[[Connection, Parameters], T],
        landed: Callable[[int], T],
        *,
        at_once: bool = False,
    ) -> T:
        """Return what `write` returns, given the parameters of an attempt; it writes in one transaction.

        `at_once`: it writes with a single statement, which is a transaction and asks the fence. If the answer
        to its commit is lost and it was written, return `landed` of the version; if it was not, write once
        more. Raises OSError, of which Unsure if that cannot be told now, and LeaseLost.
        """
        with WRITES.noted():
            for _ in range(2):
                given = {"own": self.database.presence.process, "attempt": next(self._attempts)}

                def run(db: Connection, given: Parameters = given) -> T:
                    if not at_once:
                        return write(db, given)
                    with self.database.unsure():
                        return write(db, given)

                try:
                    return self.read(run) if at_once else self.write(run)
                except Unsure:
                    if version := self._outcome(given["attempt"]):
                        return landed(version)
            raise OSError(f"{self.database.where}: the connection broke off, twice; nothing was written")

    def _outcome(self, attempt: int) -> int:
        """The version that an attempt wrote; 0 if it did not, and never will. Raises Unsure."""

        def look(db: Connection) -> int:
            taken = "INSERT INTO changes (name, version, attempt) VALUES ('', 0, %s) ON CONFLICT DO NOTHING"
            db.execute(taken, (attempt,))
            row = db.execute("SELECT version FROM changes WHERE attempt = %s", (attempt,)).fetchone()
            return int(row[0]) if row else 0

        try:
            return self.database.write(look, fenced=False)
        except OSError as error:
            raise Unsure(f"it may or may not be written: {error}") from error


# ---------------------------------------------------------------------- a log as rows


_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
AT_ONCE = 1 << 21
"""Bytes of lines in one statement: half of what PostgreSQL keeps in memory before it needs a file."""

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
    UPDATE logs SET size = %(length)s, generation = nextval('versions'), version = nextval('versions')
    WHERE name = %(name)s AND size = %(size)s AND generation = %(generation)s
"""
_WRITTEN_ANEW = """
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
    noted AS ({_NOTED} SELECT %(name)s, version, %(own)s, %(attempt)s FROM head)
    SELECT version, generation, id, {FENCE} FROM head
"""
_NOTE = f"{_NOTED} VALUES (%(name)s, %(version)s, %(own)s, %(attempt)s)"


class PostgresLog(Log):
    """A log."""

    def __init__(self, tables: Tables, name: str) -> None:
        self._tables = tables
        self._name = name

    @property
    def path(self) -> Path:
        return self._tables.path / self._name

    @property
    def beside(self) -> Documents:
        folder, slash, _ = self._name.rpartition("/")
        return PostgresDocuments(self._tables, folder + slash)

    def head(self) -> Head:
        row = self._tables.read(lambda db: db.execute(_HEAD, (self._name,)).fetchone())
        self._tables.seen.read(self._name, row[2] if row else 0)
        return Head(row[0], row[1]) if row else NO_LOG

    def read(self) -> bytes:
        return self.load()[0]

    def load(self, since: Head = NO_LOG) -> tuple[bytes, Head]:
        return self._loaded(self._tables.read(lambda db: self._rows(db, since)), since)

    def append(self, content: bytes, *, after: Head) -> Head:
        first, *more = _parts(content, after.size)
        query = _APPENDED.format(head=_GROWN if after.size else _BEGUN)
        about = self._about(after) | {"length": len(content)} | first

        def put(db: Connection, given: Parameters) -> tuple[int, int] | None:
            row = db.execute(query, given | about, binary=True).fetchone()
            if row is None:
                return None
            version, generation, log, _ = row
            for part in more:
                db.execute(_ADDED, part | {"log": log}, binary=True)
            return version, generation

        def landed(version: int) -> tuple[int, int]:
            return version, after.generation if after.size else version

        found = self._tables.once(put, landed, at_once=not more)
        if found is None:
            raise overtaken(self.path, self.head(), after)
        version, generation = found
        self._tables.seen.wrote(self._name, version)
        return Head(after.size + len(content), generation)

    def cut(self, size: int) -> None:
        def put(db: Connection, given: Parameters) -> int:
            given |= {"name": self._name, "size": size}
            if (row := db.execute(f"{_CUT} RETURNING id, version", given).fetchone()) is None:
                return 0
            where = "WHERE log = %(log)s AND position"
            given |= {"log": row[0], "version": row[1]}
            db.execute(f"DELETE FROM lines {where} >= %(size)s", given)
            last = f"(SELECT max(position) FROM lines {where} < %(size)s)"
            db.execute(
                f"UPDATE lines SET line = substr(line, 1, (%(size)s - position)::int) {where} = {last}", given
            )
            db.execute(_NOTE, given)
            return int(row[1])

        if version := self._tables.once(put, lambda version: version):
            self._tables.seen.wrote(self._name, version)

    def replace(self, content: bytes, *, after: Head | None = None) -> None:
        query, about = _WRITTEN_ANEW, {"name": self._name, "length": len(content)}
        if after is not None:
            query, about = _RENEWED if after.size else _BEGUN, about | self._about(after)

        def put(db: Connection, given: Parameters) -> int:
            given |= about
            if (row := db.execute(f"{query} RETURNING id, version", given).fetchone()) is None:
                return 0
            log, version = row
            db.execute("DELETE FROM lines WHERE log = %s", (log,))
            for part in _parts(content, 0):
                db.execute(_ADDED, part | {"log": log}, binary=True)
            db.execute(_NOTE, given | {"version": version})
            return int(version)

        if not (version := self._tables.once(put, lambda version: version)):
            raise overtaken(self.path, self.head(), after or NO_LOG)
        self._tables.seen.wrote(self._name, version)

    def load_damaged(self) -> bytes:
        """The lines that there are, whether they are all or not. Raises OSError."""
        rows = self._tables.read(lambda db: self._rows(db, NO_LOG))
        return b"".join(line for *_, line in rows if line is not None)

    # ------------------------------------------------------------------ inside

    def _rows(self, db: Connection, since: Head) -> list[Row]:
        return db.execute(_LOAD, self._about(since), binary=True).fetchall()

    def _about(self, head: Head) -> Parameters:
        return {"name": self._name, "size": head.size, "generation": head.generation}

    def _loaded(self, rows: Sequence[Row], since: Head) -> tuple[bytes, Head]:
        """The result of `load` from the rows after a head."""
        if not rows:
            self._tables.seen.read(self._name, 0)
            return b"", NO_LOG
        size, generation, version, _ = rows[0]
        head = Head(size, generation)
        self._tables.seen.read(self._name, version)
        content = b"".join(line for *_, line in rows if line is not None)
        begin = since.size if head.reaches(since) else 0
        if begin + len(content) != size:
            if begin:  # that head may end within a line
                content, head = self.load()
                return content[since.size :] if head.reaches(since) else content, head
            raise OSError(f"{self.path} is damaged ({len(content)} of {size} bytes); see `memory verify`")
        return content, head


def _parts(content: bytes, at: int) -> Iterator[dict[str, Any]]:
    """The lines of a content, each with its newline and the byte at which it begins, for statements."""
    positions, lines, length = list[int](), list[bytes](), 0
    for line in _LINE.findall(content):
        if length + len(line) > AT_ONCE and lines:
            yield {"positions": positions, "lines": lines}
            positions, lines, length = [], [], 0
        positions.append(at)
        lines.append(line)
        at, length = at + len(line), length + len(line)
    yield {"positions": positions, "lines": lines}


# ---------------------------------------------------------------------- documents

_PUT = f"""
    WITH kept AS (
        INSERT INTO documents (name, content) VALUES (%(name)s, %(content)b) ON CONFLICT {{}}
        RETURNING version
    ), noted AS ({_NOTED} SELECT %(name)s, version, %(own)s, %(attempt)s FROM kept)
    SELECT version, {FENCE} FROM kept
"""
_WRITTEN = _PUT.format("(name) DO UPDATE SET content = excluded.content, version = nextval('versions')")
_ADDED_TEXT = _PUT.format("DO NOTHING")
_REPLACED = f"""
    WITH kept AS (
        UPDATE documents SET content = %(content)b, version = nextval('versions')
        WHERE name = %(name)s AND content = %(before)b RETURNING version
    ), noted AS ({_NOTED} SELECT %(name)s, version, %(own)s, %(attempt)s FROM kept)
    SELECT version, {FENCE} FROM kept
"""
_REMOVED = f"""
    WITH texts AS (DELETE FROM documents WHERE name = ANY (%(names)s) RETURNING name),
    gone AS (SELECT name FROM texts UNION ALL SELECT unnest(%(logs)s::text[])),
    noted AS ({_NOTED} SELECT name, nextval('versions'), %(own)s,
        CASE WHEN row_number() OVER () = 1 THEN %(attempt)s::bigint END FROM gone)
    SELECT name FROM gone
"""
_INSIDE = "name >= %(first)s AND name < %(end)s"


class PostgresDocuments(Documents):
    """The texts of a folder; `prefix` is its name with a slash, or empty."""

    def __init__(self, tables: Tables, prefix: str) -> None:
        self._tables = tables
        self._prefix = prefix

    @property
    def folder(self) -> Path:
        return self._tables.path / self._prefix

    @property
    def in_touch(self) -> bool:
        return self._tables.database.presence.in_touch

    def names(self) -> list[str]:
        query = f"SELECT name FROM documents WHERE {_INSIDE} UNION SELECT name FROM logs WHERE {_INSIDE}"
        found = self._tables.read(lambda db: db.execute(query, inside(self._prefix)).fetchall())
        return sorted({name.removeprefix(self._prefix).partition("/")[0] for (name,) in found})

    def read(self, name: str) -> bytes:
        full = self._prefix + name
        query = "SELECT content, version FROM documents WHERE name = %s"
        row = self._tables.read(lambda db: db.execute(query, (full,), binary=True).fetchone())
        self._tables.seen.read(full, row[1] if row else 0)
        if row is None:
            raise FileNotFoundError(f"{self.folder / name} is not there")
        return bytes(row[0])

    def read_all(self) -> dict[str, bytes]:
        # Not noted as seen: there may be more of them than are kept, and a turn asks for each that it needs.
        query, about = f"SELECT name, content FROM documents WHERE {_INSIDE}", inside(self._prefix)
        found = self._tables.read(lambda db: db.execute(query, about, binary=True).fetchall())
        texts = {name.removeprefix(self._prefix): bytes(content) for name, content in found}
        return {name: texts[name] for name in sorted(texts) if "/" not in name}

    def write(self, name: str, content: bytes) -> None:
        self._put(_WRITTEN, name, content)

    def replace(self, name: str, content: bytes, before: bytes | None) -> bool:
        return self._put(_ADDED_TEXT if before is None else _REPLACED, name, content, before)

    def _put(self, query: str, name: str, content: bytes, before: bytes | None = None) -> bool:
        """Write a text with a statement. Returns False if it wrote none."""
        full = self._prefix + name
        about = {"name": full, "content": content} | ({"before": before} if before is not None else {})

        def put(db: Connection, given: Parameters) -> int | None:
            row = db.execute(query, given | about).fetchone()
            return row[0] if row else None

        if (version := self._tables.once(put, lambda version: version, at_once=True)) is None:
            return False
        self._tables.seen.wrote(full, version)
        return True

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        wanted = [self._prefix + name for name in names]
        if not wanted:
            return 0, []

        def put(db: Connection, given: Parameters) -> int:
            query = "DELETE FROM logs WHERE name = ANY (%s) RETURNING id, name"
            found = db.execute(query, (wanted,)).fetchall()
            db.execute("DELETE FROM lines WHERE log = ANY (%s)", ([log for log, _ in found],))
            logs = [name for _, name in found]
            return db.execute(_REMOVED, given | {"names": wanted, "logs": logs}).rowcount

        try:
            count = self._tables.once(put, lambda version: len(wanted))
        except OSError as error:
            return 0, [f"{self._tables.path / name}: {error}" for name in wanted]
        for name in wanted:
            self._tables.seen.wrote(name, 0)
        return count, []


# ---------------------------------------------------------------------- the versions seen

MOST = 100_000
"""The most names with a version, about 15 MB. If there are more, those left out count as changed."""


class Seen:
    """The versions that this process knows. 0 is the version of a text that does not exist."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._versions: dict[str, int] = {}
        self._stale: set[str] = set()
        self._forgot = False

    def read(self, name: str, version: int) -> None:
        """Note the version that a read found."""
        with self._lock:
            if self._versions.get(name, version) != version:
                self._stale.add(name)
            self._note(name, version)

    def wrote(self, name: str, version: int) -> None:
        """Note the version that was written here."""
        with self._lock:
            self._note(name, version)

    def differing(self, versions: Mapping[str, int]) -> set[str]:
        """The texts, of these, that have another version than was seen here, or that were never seen.

        What was never seen may be known not to exist, such as what somebody chose.
        """
        with self._lock:
            return {
                name
                for name, version in versions.items()
                if self._versions.get(name, None if self._forgot else 0) != version
            }

    def unseen(self, versions: Mapping[str, int]) -> set[str]:
        """The texts, of these, that were not seen here in just this version."""
        with self._lock:
            return {name for name, version in versions.items() if self._versions.get(name) != version}

    def names(self) -> set[str]:
        """All texts of which a version is known."""
        with self._lock:
            return set(self._versions)

    def take_stale(self) -> set[str]:
        """The stale texts; the next call returns only those that became stale since."""
        with self._lock:
            stale, self._stale = self._stale, set()
            return stale

    def _note(self, name: str, version: int) -> None:
        self._versions.pop(name, None)  # so that it counts as the newest
        self._versions[name] = version
        if len(self._versions) > self._most:
            del self._versions[next(iter(self._versions))]
            self._forgot = True

"""The texts of a folder as rows. A write is one statement; `change` has the row locked meanwhile."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from discoclaw.store.port import Change
from discoclaw.store.postgres.connection import FENCE, Connection
from discoclaw.store.postgres.tables import NOTED, Parameters, Tables

_WRITTEN = f"""
    WITH kept AS (
        INSERT INTO documents (name, content) VALUES (%(name)s, %(content)b) ON CONFLICT (name)
        DO UPDATE SET content = excluded.content, version = nextval('versions') RETURNING version
    ), noted AS ({NOTED} SELECT %(name)s, version, %(own)s, %(attempt)s FROM kept)
    SELECT version, {FENCE} FROM kept
"""
_ASIDE = f"""
    WITH kept AS (
        INSERT INTO documents (name, content) VALUES (%(name)s, %(content)b) ON CONFLICT DO NOTHING
        RETURNING version
    ), noted AS ({NOTED} SELECT %(name)s, version, %(own)s, %(attempt)s FROM kept)
    SELECT version, {FENCE} FROM kept
"""
_LOCKED = "SELECT content, version FROM documents WHERE name = %s FOR UPDATE"
_REMOVED = f"""
    WITH texts AS (DELETE FROM documents WHERE name = ANY (%(names)s) RETURNING name),
    gone AS (SELECT name FROM texts UNION ALL SELECT unnest(%(logs)s::text[])),
    noted AS ({NOTED} SELECT name, nextval('versions'), %(own)s,
        CASE WHEN row_number() OVER () = 1 THEN %(attempt)s::bigint END FROM gone)
    SELECT name FROM gone
"""


@dataclass(frozen=True, slots=True)
class PostgresDocuments:
    """One folder; `prefix` is its name with a slash, or empty."""

    tables: Tables
    prefix: str

    @property
    def in_touch(self) -> bool:
        return self.tables.database.presence.in_touch

    @property
    def folder(self) -> Path:
        return self.tables.path / self.prefix

    def names(self) -> list[str]:
        query = "SELECT name FROM documents WHERE starts_with(name, %(p)s) AND name >= %(p)s AND name < %(e)s"
        query += f" UNION {query.replace('documents', 'logs')}"
        about = {"p": self.prefix, "e": end_of(self.prefix)}
        found = self.tables.read(lambda db: db.execute(query, about).fetchall())
        return sorted({name.removeprefix(self.prefix).partition("/")[0] for (name,) in found})

    def read(self, name: str) -> bytes:
        full = self.prefix + name
        query = "SELECT content, version FROM documents WHERE name = %s"
        row = self.tables.read(lambda db: db.execute(query, (full,), binary=True).fetchone())
        self.tables.seen.read(full, row[1] if row else 0)
        if row is None:
            raise FileNotFoundError(f"{self.folder / name} is not there")
        return bytes(row[0])

    def read_all(self) -> dict[str, bytes]:
        # Not noted as seen: there may be more of them than are kept, and a turn asks for each that it needs.
        query = "SELECT name, content FROM documents WHERE starts_with(name, %s) AND name >= %s AND name < %s"
        about = (self.prefix, self.prefix, end_of(self.prefix))
        found = self.tables.read(lambda db: db.execute(query, about, binary=True).fetchall())
        texts = {name.removeprefix(self.prefix): bytes(content) for name, content in found}
        return {name: texts[name] for name in sorted(texts) if "/" not in name}

    def write(self, name: str, content: bytes) -> None:
        self._put(_WRITTEN, name, content)

    def _put(self, query: str, name: str, content: bytes) -> bool:
        """Write a text with a statement. Returns False if it wrote none."""
        full = self.prefix + name

        def put(given: Parameters) -> int | None:
            given |= {"name": full, "content": content}
            row = self.tables.write_at_once(lambda db: db.execute(query, given).fetchone())
            return row[0] if row else None

        if (version := self.tables.once(put, lambda version: version)) is None:
            return False
        self.tables.seen.wrote(full, version)
        return True

    def change(self, name: str, work: Change) -> bytes | None:
        full = self.prefix + name
        made: bytes | None = None

        def put(given: Parameters) -> tuple[bytes | None, int]:
            def within(db: Connection) -> tuple[bytes | None, int]:
                nonlocal made
                before, known = _locked(db, full)
                self.tables.seen.read(full, known)
                made = work(before)
                if made is None or made == before:
                    db.execute("ROLLBACK")  # the row that may have been made for it
                    db.execute("BEGIN")
                    return before, known
                row = db.execute(_WRITTEN, given | {"name": full, "content": made}, binary=True).fetchone()
                return made, row[0] if row else 0

            return self.tables.write(within)

        after, version = self.tables.once(put, lambda version: (made, version))
        self.tables.seen.wrote(full, version)
        return after

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        wanted = [self.prefix + name for name in names]
        if not wanted:
            return 0, []

        def put(given: Parameters) -> int:
            def within(db: Connection) -> int:
                query = "DELETE FROM logs WHERE name = ANY (%s) RETURNING id, name"
                found = db.execute(query, (wanted,)).fetchall()
                db.execute("DELETE FROM lines WHERE log = ANY (%s)", ([log for log, _ in found],))
                logs = [name for _, name in found]
                return db.execute(_REMOVED, given | {"names": wanted, "logs": logs}).rowcount

            return self.tables.write(within)

        try:
            count = self.tables.once(put, lambda version: len(wanted))
        except OSError as error:
            return 0, [f"{self.tables.path / name}: {error}" for name in wanted]
        for name in wanted:
            self.tables.seen.wrote(name, 0)
        return count, []

    def keep_aside(self, name: str, label: str, stamp: str) -> Path:
        return self.put_aside(name, self.read(name), label, stamp)

    def put_aside(self, name: str, content: bytes, label: str, stamp: str) -> Path:
        """Write a copy under the first name that is free."""
        aside, count = f"{name}.{label}-{stamp}", 1
        while not self._put(_ASIDE, aside, content):
            count += 1
            aside = f"{name}.{label}-{stamp}-{count}"
        return self.folder / aside


def _locked(db: Connection, name: str) -> tuple[bytes | None, int]:
    """A text and its version, which nobody else writes until the transaction ends; None if there is none.

    A text that does not exist gets an empty row, for which others wait too.
    """
    while True:
        if (row := db.execute(_LOCKED, (name,), binary=True).fetchone()) is not None:
            return bytes(row[0]), row[1]
        made = "INSERT INTO documents (name, content) VALUES (%s, '') ON CONFLICT DO NOTHING"
        if db.execute(made, (name,)).rowcount:
            return None, 0


def end_of(prefix: str) -> str:
    """The first name after all that begin with a prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\U0010ffff"

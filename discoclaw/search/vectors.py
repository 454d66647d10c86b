"""The cache of vectors, so that an embedding provider is asked only once for each text.

Each owner, model and text has one row, with the text's SHA-256 instead of the text. What was measured of a
model has a row, too. The file is always safe to delete, and is built again when it is damaged. A subject's
vectors are destroyed with their memory, since a vector reveals nearly as much as its words. Everything
blocks, and works without numpy, so that an erasing also works after vectors are switched off. Independent of
providers and of ranking.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from discoclaw.core.errors import MemoryFault
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged, Readable
from discoclaw.store.database import (
    FAULTS,
    Database,
    checkpoint,
    code_of,
    connect,
    remove,
    rows_of,
    transaction,
    version_of,
)
from discoclaw.store.files import in_thread

log = logging.getLogger(__name__)
T = TypeVar("T")

MOST_ROWS = 20_000
"""The most vectors of one owner; beyond that the oldest are removed."""
VERSION = 1
_SCHEMA = """
CREATE TABLE vectors (
    owner TEXT NOT NULL, model TEXT NOT NULL, hash BLOB NOT NULL, dims INTEGER NOT NULL, vector BLOB NOT NULL,
    PRIMARY KEY (owner, model, hash)
)
"""
_MODELS = """
CREATE TABLE IF NOT EXISTS models (
    model TEXT PRIMARY KEY, sample BLOB NOT NULL, probe BLOB NOT NULL, floor REAL NOT NULL
)
"""
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)
"""Codes of a file that isn't a database, a damaged one, or one of other tables."""


def hash_of(text: str) -> bytes:
    """The key of a text in the cache: 32 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement of a model: its `floor`, by the texts with the hash `sample`.

    `probe` is the vector that it gave to one of them, as bytes.
    """

    sample: bytes
    probe: bytes
    floor: float


class VectorCache(Derived):
    """Vectors as bytes (float32 in the machine's order) by their text's hash. `path` None: in RAM alone."""

    name = "vectors"
    local = True

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._database = Database(
            lambda: connect(path, prepare=_make),
            discard=self._rebuild,
            damaged=lambda error: code_of(error) in _BROKEN,
        )
        self._erasings: dict[str, int] = {}

    def audit(self) -> Iterator[Readable]:
        """The texts' hashes: a vector can be turned back into about what it was made from."""
        for owner, digest in rows_of(self._path, "SELECT owner, hash FROM vectors") if self._path else ():
            yield Readable(str(self._path), owner=owner, digest=digest)

    def load(self, owner: str, model: str) -> dict[bytes, bytes]:
        """Return an owner's vectors, all of the newest one's length. Raises MemoryFault."""
        sql = "SELECT hash, vector, dims FROM vectors WHERE owner = ? AND model = ? ORDER BY rowid"
        rows = self._rows(sql, owner, model)
        dims = rows[-1][2] if rows else 0
        return {
            key: vector
            for key, vector, count in rows
            if isinstance(key, bytes) and isinstance(vector, bytes) and len(vector) == 4 * dims == 4 * count
        }

    def erasings(self, owner: str) -> int:
        """How often an owner was erased here, or took something back: a token for `put`. Never blocks."""
        return self._erasings.get(owner, 0)

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        """Remove the vectors of texts that a person took back, and make `put` fail for earlier requests.

        What is only private now stays: who may see an item is asked before its vector is used. Of somebody
        who is erased, they are destroyed byte for byte, or the whole cache if that is impossible.
        """
        if phase == "ram":
            self._erasings[purge.subject] = self.erasings(purge.subject) + 1
        elif phase == "disk" and purge.erases:
            return in_thread(self._erase, purge.subject)
        elif phase == "disk" and not purge.open_only:
            gone = set(map(hash_of, purge.texts))
            return in_thread(self._remove, purge.subject, lambda key: purge.everything or key in gone)
        return None

    def keep_only(self, owner: str, hashes: Collection[bytes]) -> None:
        """Remove an owner's vectors of all other texts. Raises MemoryFault."""
        self._remove(owner, lambda key: key not in hashes)

    def put(self, owner: str, model: str, vectors: Mapping[bytes, bytes], *, erasings: int) -> bool:
        """Store vectors, all of one length. Those of other models, or of another length, are removed.

        Returns False, storing nothing, if the owner was erased, or took something back, since `erasings` was
        called. Raises MemoryFault.
        """
        if not vectors:
            return True
        dims = len(next(iter(vectors.values()))) // 4
        rows = [(owner, model, key, dims, vector) for key, vector in vectors.items()]

        def work(db: sqlite3.Connection) -> bool:
            if self.erasings(owner) != erasings:
                return False
            with transaction(db):
                db.execute(
                    "DELETE FROM vectors WHERE owner = ? AND (model <> ? OR dims <> ?)", (owner, model, dims)
                )
                db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", rows)
                db.execute(
                    "DELETE FROM vectors WHERE owner = :owner AND rowid <= (SELECT rowid FROM vectors"
                    " WHERE owner = :owner ORDER BY rowid DESC LIMIT 1 OFFSET :most)",
                    {"owner": owner, "most": MOST_ROWS},
                )
            return True

        return self._do(work)

    def measured(self, model: str) -> Measured | None:
        """Return what was measured of a model, None if nothing was. Raises MemoryFault."""
        for row in self._rows("SELECT sample, probe, floor FROM models WHERE model = ?", model):
            if all(map(isinstance, row, (bytes, bytes, float))) and len(row[1]) % 4 == 0:
                return Measured(*row)
        return None

    def keep_measured(self, model: str, measured: Measured) -> None:
        """Store what was measured of a model. Raises MemoryFault."""
        row = (model, measured.sample, measured.probe, measured.floor)
        self._rows("INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?)", *row)

    def drop_model(self, model: str) -> None:
        """Remove everybody's vectors by a model, to be made again. Raises MemoryFault."""
        self._rows("DELETE FROM vectors WHERE model = ?", model)

    def close(self) -> None:
        """Release the file until its next use."""
        self._database.close()

    # ------------------------------------------------------------------ inside

    def _remove(self, owner: str, goes: Callable[[bytes], bool]) -> None:
        """Destroy those of an owner's vectors whose text's hash `goes`. Raises MemoryFault."""

        def work(db: sqlite3.Connection) -> None:
            known = db.execute("SELECT DISTINCT hash FROM vectors WHERE owner = ?", (owner,)).fetchall()
            gone = [(owner, key) for (key,) in known if goes(key)]
            db.executemany("DELETE FROM vectors WHERE owner = ? AND hash = ?", gone)
            checkpoint(db, wait=False)

        if self._is_there():
            self._do(work)

    def _is_there(self) -> bool:
        return self._database.is_open or (self._path is not None and self._path.exists())

    def _erase(self, owner: str) -> Purged:
        with self._database.lock:
            self._erasings[owner] = self.erasings(owner) + 1
            try:
                return Purged(self._destroy(owner))
            except OSError as error:
                return Purged(left=(f"{self._path}: {error.strerror or error}",))

    def _destroy(self, owner: str) -> int:
        if not self._is_there():
            self._discard()  # of a cache that is not there, nothing may lie beside it either
            return 0
        try:
            db = self._database.open()
            count = db.execute("DELETE FROM vectors WHERE owner = ?", (owner,)).rowcount
            if checkpoint(db, wait=False):
                return count
            why: object = "somebody else reads it"
        except FAULTS as error:
            why = error
        log.warning("%s: the cache of vectors is destroyed as a whole (%s)", self._path, why)
        self._discard()
        return 1

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work on the file, locked; once more on a new file if it is damaged. Raises MemoryFault."""
        try:
            return self._database.run(work)
        except (*FAULTS, OSError) as error:
            raise MemoryFault(f"the cache of vectors cannot be used: {error}") from error

    def _rows(self, sql: str, *given: object) -> list[tuple[Any, ...]]:
        return self._do(lambda db: db.execute(sql, given).fetchall())

    def _rebuild(self, error: Exception) -> None:
        log.warning("%s is damaged (%s); it is a cache, and built anew", self._path, error)
        self._discard()

    def _discard(self) -> None:
        """Remove the file and those that SQLite put beside it. Raises OSError."""
        self._database.close()
        if self._path is not None:
            remove(self._path)


def _make(db: sqlite3.Connection) -> None:
    """Create the tables. Those of another version are dropped: their content can be computed again."""
    if version_of(db) == VERSION:
        db.execute(_MODELS)  # a file of an earlier release has only the vectors, which are worth keeping
        return
    with transaction(db):
        db.execute("DROP TABLE IF EXISTS vectors")
        db.execute("DROP TABLE IF EXISTS models")
        db.execute(_SCHEMA)
        db.execute(_MODELS)
        db.execute(f"PRAGMA user_version = {VERSION}")

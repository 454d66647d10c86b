"""The tables as logs and documents use them: prepared at the first use, and written once.

Each write carries the number of its attempt into `changes`, where it is unique. If the connection breaks off
meanwhile, nobody knows whether it was written. Then `_outcome` inserts the same number: that waits for the
transaction if it is still under way, and afterwards the number is there, because it was written, or is taken,
so that it never can be. Comparing contents would not tell whether somebody else wrote the same, or over it.
"""

import itertools
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from discoclaw.store.postgres import schema
from discoclaw.store.postgres.connection import Connection, Database
from discoclaw.store.postgres.errors import Unsure
from discoclaw.store.threads import WRITES

T = TypeVar("T")

Parameters: TypeAlias = dict[str, Any]

NOTED = "INSERT INTO changes (name, version, process, attempt)"
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

    def write_at_once(self, work: Callable[[Connection], T]) -> T:
        """Let `work` write with a single statement, which is a transaction and asks the fence."""

        def run(db: Connection) -> T:
            with self.database.unsure():
                return work(db)

        return self.read(run)

    def once(self, write: Callable[[Parameters], T], landed: Callable[[int], T]) -> T:
        """Return what `write` returns, given the parameters of an attempt.

        If the answer to its commit is lost and it was written, return `landed` of the version; if it was not,
        write once more. Raises OSError, of which Unsure if that cannot be told now, and LeaseLost.
        """
        with WRITES.noted():
            return self._written(write, landed)

    def _written(self, write: Callable[[Parameters], T], landed: Callable[[int], T]) -> T:
        for _ in range(2):
            given = self.database.fence() | {"attempt": next(self._attempts)}
            try:
                return write(given)
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

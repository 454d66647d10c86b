"""One transaction in which everything is read or written: a copy of a whole store, or a store that is filled.

Blocking. Knows nothing about what is in the tables.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from discoclaw.memory.disk.fence import Presence
from discoclaw.memory.disk.postgres.connection import Connection, Database
from discoclaw.memory.disk.postgres.errors import as_ours

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

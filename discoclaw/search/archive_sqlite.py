"""The archive as one SQLite file. Everything here blocks.

What is deleted leaves the bytes of the file and of its log, too. One connection writes and one reads, each
used by one thread at a time, so neither waits for the other. A damaged file is kept aside and a new one
started, since it holds little that Discord does not have. Disk failures become `MemoryFault`. The tables are
in `archive_sqlite_rows`, the queries in `archive_sqlite_reader`.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TypeVar

from discoclaw.core.audit import Readable
from discoclaw.core.consent import ALWAYS, NEVER, Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.ports import Clock
from discoclaw.core.taken_back import Withdrawal
from discoclaw.memory.disk.database import (
    FAULTS,
    Database,
    check_ours,
    checkpoint,
    connect,
    is_damage,
    make_tables,
    rows_of,
    set_aside,
    transaction,
    version_of,
)
from discoclaw.memory.disk.files import stamp_of
from discoclaw.search.archive import Archive
from discoclaw.search.archive_queries import Reader
from discoclaw.search.archive_rows import Change, Put, Words, make
from discoclaw.search.archive_sqlite_reader import SqliteReader
from discoclaw.search.archive_sqlite_rows import (
    FORGET_WORDS,
    SCHEMA,
    VERSION,
    SqliteWriter,
)
from discoclaw.search.archive_sqlite_vectors import SqliteVectors
from discoclaw.search.archive_withdrawing import remains_of, withdraw
from discoclaw.search.fulltext import PAGES, orphans

log = logging.getLogger(__name__)
T = TypeVar("T")

CACHE_KIB = 16_000
"""The cache size for the reading connection."""
READABLE = "SELECT id, session_key, author_id, text, sent_at, by_us, to_id FROM entries"
INDEXED = "SELECT place || ' ' || terms FROM entries"
CLOSE_S = 5.0
"""How long closing waits for whoever is using the file."""


class SqliteArchive(Archive):
    """The archive at `path`. Opened at its first use; there is no file before the first entry."""

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        # Code that needs both locks takes the writer's first.
        self._writer = Database(self._open_to_write, discard=self._set_aside)
        self._reader = Database(self._open_to_read)
        self._files = 0
        """Counts the files so far, so that a reader who finds damage reports it only for the file it read."""
        self.vectors: SqliteVectors = SqliteVectors(self)

    def readable(self) -> Iterator[Readable]:
        for row in rows_of(self.path, READABLE):
            message, session, author, text, sent_at, by_us, to = row
            author, to = ("-", to) if by_us else (author, "")
            yield Readable(str(self.path), text, session, "", author, to, str(message), sent_at)
        pages = rows_of(self.path, PAGES.format(index="words"))
        yield from (Readable(str(self.path), one) for one in orphans(rows_of(self.path, INDEXED), pages))

    # ------------------------------------------------------------------ writing

    def write(self, changes: Sequence[Change], *, words: Words, consent: Consent) -> None:
        def work(writer: SqliteWriter) -> None:
            for change in changes:
                make(writer, change, words, consent)

        # Without a file there is nothing to change or to delete.
        if any(isinstance(change, Put) for change in changes) or self._there():
            self._alone(partial(self._written, work, surely=False))

    def purge(self, before_ms: int) -> int:
        self._remove_copies(before_ms)
        return self._removed(lambda writer: writer.remove("sent_at < ?", (before_ms,)))

    def drop_channel(self, channel_id: str) -> int:
        where = "channel_id = ? OR group_id = ?"
        return self._removed(lambda writer: writer.remove(where, (channel_id, channel_id)))

    def sweep(self, consent: Consent) -> int:
        def work(writer: SqliteWriter) -> None:
            for person in writer.people():
                if person and (until := consent.cutoff(person)) > NEVER:
                    writer.remove_person(person, until)

        return self._removed(work)

    def erase_person(self, user_id: str) -> int:
        gone = self._removed(lambda writer: writer.remove_person(user_id, ALWAYS), anew=True)
        self._remove_copies()  # nobody can tell whose words a damaged file contains
        return gone

    def take_out(self, withdrawal: Withdrawal) -> int:
        def work(writer: SqliteWriter) -> list[bytes] | None:
            if not withdrawal.everything:
                return remains_of(withdraw(writer, withdrawal), withdrawal)
            writer.remove_person(withdrawal.user_id, withdrawal.at)
            return None

        gone = self._removed(work)
        if not withdrawal.open_only:
            self._remove_copies()  # nobody can tell whose words a damaged file contains
        return gone

    def _removed(self, work: Callable[[SqliteWriter], list[bytes] | None], *, anew: bool = False) -> int:
        """Destroy every byte of the rows that `work` deletes or replaces. Returns how many there were.

        It returns further bytes that must not be left. `anew`: the file is written anew in any case. Raises
        MemoryFault if bytes may be left, which the next call or start destroys.
        """
        return self.change(partial(self._written, work, anew=anew), 0)

    def _written(
        self,
        work: Callable[[SqliteWriter], list[bytes] | None],
        connection: sqlite3.Connection,
        *,
        anew: bool = False,
        surely: bool = True,
    ) -> int:
        """As `_removed`; unless `surely`, bytes may be left for the next call. Raises sqlite3.Error."""
        (left,) = connection.execute("PRAGMA application_id").fetchone()  # by a run that was killed
        writer = SqliteWriter(connection)
        with transaction(connection):  # with the index, so that a kill leaves no word in it
            remains = work(writer) or []
            if writer.gone:
                connection.execute(FORGET_WORDS)
                connection.execute("PRAGMA application_id = 1")
        if writer.gone or (surely and (left or anew)):
            try:
                if left or anew or not checkpoint(connection) or self._has([*remains, *writer.gone]):
                    _destroy(connection)
                connection.execute("PRAGMA application_id = 0")
            except sqlite3.Error as error:
                if surely:
                    raise
                log.warning("%s may still have words of edited or deleted messages: %s", self.path, error)
        return len(writer.gone)

    # ------------------------------------------------------------------ reading

    def ask(self, work: Callable[[Reader], T], nothing: T) -> T:
        return self.read(lambda connection: work(SqliteReader(connection, self.vectors.known)), nothing)

    def read(self, look: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Return what a query finds, or `nothing` if there is no archive. Raises MemoryFault."""
        seen = self._files
        try:
            return self._reader.run(look)
        except _NoArchive:
            return nothing
        except (*FAULTS, OSError) as error:
            if is_damage(error):
                with self._writer.lock:
                    if seen == self._files:
                        self._set_aside(error)
            raise MemoryFault(f"{self.path.name} cannot be read: {error}") from error

    def close(self) -> None:
        if not self._writer.close(CLOSE_S):
            log.warning("%s is still being written; it is left open", self.path.name)
            return
        self._reader.close(CLOSE_S)

    def change(self, work: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Return what work on the writing connection returns; `nothing` if there is no archive.

        Raises MemoryFault.
        """
        return self._alone(work) if self._there() else nothing

    # ------------------------------------------------------------------ the file

    def _there(self) -> bool:
        return self.path.exists()

    def _alone(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work on the writing connection; if the file is damaged, repeat it once on a new one."""

        def watched(connection: sqlite3.Connection) -> T:
            try:
                return work(connection)
            finally:
                self.vectors.watch(connection)

        try:
            return self._writer.run(watched)
        except (*FAULTS, OSError) as error:
            raise MemoryFault(f"{self.path.name} cannot be used: {error}") from error

    def _check(self, connection: sqlite3.Connection) -> None:
        check_ours(connection, VERSION, self.path.name)

    def _open_to_write(self) -> sqlite3.Connection:
        def prepare(connection: sqlite3.Connection) -> None:
            make_tables(connection, SCHEMA, VERSION)

        return connect(self.path, check=self._check, prepare=prepare)

    def _open_to_read(self) -> sqlite3.Connection:
        if not self._there():
            raise _NoArchive

        def prepare(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA query_only = ON")
            if not version_of(connection):  # it is just being made
                raise _NoArchive

        return connect(self.path, check=self._check, prepare=prepare, cache_kib=CACHE_KIB)

    def _set_aside(self, error: Exception) -> None:
        """Rename a damaged file. The caller has the writer's lock. Raises OSError."""
        self.close()
        aside = set_aside(self.path, stamp_of(self._clock()))
        self._files += 1
        log.error(
            "%s is damaged (%s); it is kept as %s, and a new one is begun", self.path, error, aside.name
        )

    def _has(self, remains: Sequence[bytes]) -> bool:
        """Whether the file may have any of these bytes. It mostly has not, and `VACUUM` costs far more."""
        if len(remains) > 100:  # then that is faster
            return True
        with self.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return any(content.find(one) >= 0 for one in remains)

    def _remove_copies(self, before_ms: int | None = None) -> None:
        """Remove damaged files that were kept; with a time (ms), only those from before it."""
        try:
            for path in sorted(self.path.parent.glob(f"{self.path.name}.corrupt-*")):
                if before_ms is None or path.stat().st_mtime_ns < before_ms * 1_000_000:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise MemoryFault(f"a damaged archive that was kept cannot be removed: {error}") from error


def _destroy(connection: sqlite3.Connection) -> None:
    """Destroy all remains of deleted rows. Raises sqlite3.Error if some may be left.

    Rows are overwritten in place, but the index has words of them until its parts are merged, and a
    rearranged page may contain a second copy of a row.
    """
    connection.execute(FORGET_WORDS)
    connection.execute("VACUUM")
    if not checkpoint(connection):
        raise sqlite3.OperationalError("somebody reads the archive, so its log cannot be emptied")


class _NoArchive(Exception):
    """There is no archive, because nothing was ever written."""

"""The archive as one SQLite file. Everything here blocks.

What is deleted leaves the bytes of the file and of its log, too. One connection writes and one reads, each
used by one thread at a time, so neither waits for the other. A damaged file is kept aside and a new one
started, since it holds little that Discord does not have. Disk failures become `MemoryFault`. The tables are
in `archive_sqlite_rows`, the queries in `archive_sqlite_reader`.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TypeVar

from discoclaw.core.audit import Readable
from discoclaw.core.consent import NEVER, Consent
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
    forget_words,
    remove,
)
from discoclaw.search.archive_sqlite_vectors import SqliteVectors
from discoclaw.search.archive_withdrawing import remains_of, withdraw

log = logging.getLogger(__name__)
T = TypeVar("T")

CACHE_KIB = 16_000
"""The cache size for the reading connection."""
READABLE = "SELECT id, session_key, author_id, text, sent_at, by_us, to_id FROM entries"
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

    # ------------------------------------------------------------------ writing

    def write(self, changes: Sequence[Change], *, words: Words, consent: Consent) -> None:
        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                writer = SqliteWriter(connection)
                for change in changes:
                    make(writer, change, words, consent)

        # Without a file there is nothing to change or to delete.
        if any(isinstance(change, Put) for change in changes) or self._there():
            self._alone(work)

    def purge(self, before_ms: int) -> int:
        self._remove_copies(before_ms)
        if not self._there():
            return 0

        def work(connection: sqlite3.Connection) -> int:
            with transaction(connection):
                gone = connection.execute("DELETE FROM entries WHERE sent_at < ?", (before_ms,)).rowcount
            if gone:
                forget_words(connection)
            return gone

        return self._alone(work)

    def drop_channel(self, channel_id: str) -> int:
        def work(connection: sqlite3.Connection) -> int:
            with transaction(connection):
                where = "channel_id = ? OR group_id = ?"
                found = connection.execute(f"DELETE FROM entries WHERE {where}", (channel_id, channel_id))
            return found.rowcount

        return self.change(work, 0)

    def sweep(self, consent: Consent) -> int:
        def work(connection: sqlite3.Connection) -> int:
            people = connection.execute("SELECT author_id FROM entries UNION SELECT to_id FROM entries")
            until = {person: consent.cutoff(person) for (person,) in people.fetchall() if person}
            with transaction(connection):
                gone = [remove(connection, person, at) for person, at in until.items() if at > NEVER]
            if sum(gone):
                _destroy(connection)
            return sum(gone)

        return self.change(work, 0)

    def erase_person(self, user_id: str) -> int:
        """Destroy every byte of a person's messages, their direct messages, and the answers to them.

        Returns how many entries there were. Raises MemoryFault if bytes may be left; it can then be repeated.
        """
        if not self._there():
            self._remove_copies()
            return 0

        def work(connection: sqlite3.Connection) -> int:
            with transaction(connection):
                gone = remove(connection, user_id)
            _destroy(connection)
            return gone

        gone = self._alone(work)
        self._remove_copies()  # nobody can tell whose words a damaged file contains
        return gone

    def take_out(self, withdrawal: Withdrawal) -> int:
        """Destroy every byte of what a person took back.

        Returns how many entries there were. Raises MemoryFault if bytes may be left; it can then be repeated.
        """
        if not self._there():
            self._remove_copies()
            return 0

        def work(connection: sqlite3.Connection) -> int:
            if withdrawal.everything:
                with transaction(connection):
                    gone = remove(connection, withdrawal.user_id, withdrawal.at)
                if gone:
                    _destroy(connection)
                return gone
            with transaction(connection):  # with the index, so that a kill leaves nothing half done
                texts = withdraw(SqliteWriter(connection), withdrawal)
                if texts:
                    connection.execute(FORGET_WORDS)
            if texts and checkpoint(connection) and self._has(remains_of(texts, withdrawal)):
                _destroy(connection)
            return len(texts)

        gone = self._alone(work)
        if not withdrawal.open_only:
            self._remove_copies()  # nobody can tell whose words a damaged file contains
        return gone

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

    def _has(self, remains: Iterable[bytes]) -> bool:
        """Whether the file has any of these bytes. It mostly has not, and `VACUUM` costs far more."""
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
    forget_words(connection)
    connection.execute("VACUUM")
    if not checkpoint(connection):
        raise sqlite3.OperationalError("somebody reads the archive, so its log cannot be emptied")


class _NoArchive(Exception):
    """There is no archive, because nothing was ever written."""

"""The archive: what was said, kept as rows that can be searched. One SQLite file; everything here blocks.

Each connection is used by one thread at a time: one writes, one reads, and neither waits for the other. A
damaged file is kept aside, since it holds little that Discord does not have, and a new one is begun. Faults
of the disk are `MemoryFault`. The tables are `archive_rows`, the questions `archive_look`; knows nothing
about ranking, nor about who decides what is kept.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from discoclaw.core.consent import NEVER, Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import Erasure, PersonalData, Removed
from discoclaw.core.ports import Clock
from discoclaw.core.subject import user_of
from discoclaw.memory.disk.database import FAULTS, connect
from discoclaw.memory.disk.files import stamp_of
from discoclaw.search.archive_rows import (
    Change,
    Words,
    checkpoint,
    forget_words,
    make,
    prepare,
    remove,
    transaction,
    version_of,
)

log = logging.getLogger(__name__)
T = TypeVar("T")

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BESIDE = ("-wal", "-shm")
CACHE_KIB = 16_000
"""RAM for pages of the file, for reading."""
CLOSE_S = 5.0
"""So long is waited for whoever uses the file when it is to be closed."""


class Archive(PersonalData):
    """The archive at `path`. Opened when first used; there is no file before the first entry."""

    name = "archive"

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.RLock()  # the writer's; taken before the reader's where both are needed
        self._writing: sqlite3.Connection | None = None
        self._reader_lock = threading.Lock()
        self._reading: sqlite3.Connection | None = None
        self._files = 0
        """How many files there have been: whoever finds one damaged means the one they read."""

    # ------------------------------------------------------------------ writing

    def write(self, changes: Sequence[Change], *, words: Words, consent: Consent) -> None:
        """Make changes, all of them or none. Raises MemoryFault.

        `consent` is asked in the last moment whether an entry may be kept: somebody may have been erased.
        """

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                for change in changes:
                    make(connection, change, words, consent)

        self._alone(work)

    def purge(self, before_ms: int) -> int:
        """Remove what was said before a time (ms). Returns how many entries. Raises MemoryFault."""
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
        """Remove what was said in a channel, or a thread, that is gone. Raises MemoryFault."""

        def work(connection: sqlite3.Connection) -> int:
            with transaction(connection):
                where = "channel_id = ? OR group_id = ?"
                found = connection.execute(f"DELETE FROM entries WHERE {where}", (channel_id, channel_id))
            return found.rowcount

        return self._alone(work) if self._there() else 0

    def sweep(self, consent: Consent) -> int:
        """Remove what may no longer be kept of what people said, or were told.

        Returns how many entries. Raises MemoryFault.
        """

        def work(connection: sqlite3.Connection) -> int:
            people = connection.execute("SELECT author_id FROM entries UNION SELECT to_id FROM entries")
            until = {person: consent.cutoff(person) for (person,) in people.fetchall() if person}
            with transaction(connection):
                gone = [remove(connection, person, at) for person, at in until.items() if at > NEVER]
            if sum(gone):
                _destroy(connection)
            return sum(gone)

        return self._alone(work) if self._there() else 0

    def erase_person(self, user_id: str) -> int:
        """Destroy every byte of what a person said, of their direct messages, and of our answers to them.

        Returns how many entries there were. Raises MemoryFault when bytes may be left; again is then fine.
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
        self._remove_copies()  # of a damaged file nobody can tell whose words it holds
        return gone

    def erase(self, erasure: Erasure) -> Removed:
        """Destroy what there is of a person; all of it counts as one note."""
        user_id = user_of(erasure.subject)
        try:
            return Removed(min(1, self.erase_person(user_id))) if user_id is not None else Removed()
        except MemoryFault as fault:
            return Removed(left=(str(fault),))

    # ------------------------------------------------------------------ reading

    def read(self, look: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """What a question finds; `nothing` without an archive. Raises MemoryFault."""
        seen = self._files
        try:
            with self._reader_lock:
                if self._reading is None:
                    self._reading = self._open_to_read()
                try:
                    return look(self._reading) if self._reading is not None else nothing
                except FAULTS:
                    self._stop_reading()
                    raise
        except (*FAULTS, OSError) as error:
            if _is_damage(error):
                with self._lock:
                    if seen == self._files:
                        self._set_aside(error)
            raise MemoryFault(f"{self.path.name} can not be read: {error}") from error

    def close(self) -> None:
        """Let go of the file. It is opened again when it is used again."""
        if not self._lock.acquire(timeout=CLOSE_S):
            log.warning("%s is still being written; it is left open", self.path.name)
            return
        try:
            if self._reader_lock.acquire(timeout=CLOSE_S):
                try:
                    self._stop_reading()
                finally:
                    self._reader_lock.release()
            self._stop_writing()
        finally:
            self._lock.release()

    # ------------------------------------------------------------------ the file

    def _there(self) -> bool:
        return self.path.exists()

    def _alone(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work with the connection that writes; on a damaged file, once more with a new one."""
        with self._lock:
            try:
                try:
                    return self._tried(work)
                except FAULTS as error:
                    if not _is_damage(error):
                        raise
                    self._set_aside(error)
                    return self._tried(work)
            except (*FAULTS, OSError) as error:
                raise MemoryFault(f"{self.path.name} can not be used: {error}") from error

    def _tried(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._writing is None:
                self._writing = connect(self.path)
                prepare(self._writing)
            return work(self._writing)
        except BaseException:
            self._stop_writing()
            raise

    def _open_to_read(self) -> sqlite3.Connection | None:
        if not self._there():
            return None
        connection = connect(self.path)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            version = version_of(connection)
        except BaseException:
            connection.close()
            raise
        if version:
            return connection
        connection.close()  # it is just being made
        return None

    def _stop_reading(self) -> None:
        if self._reading is not None:
            _close(self._reading)
        self._reading = None

    def _stop_writing(self) -> None:
        if self._writing is not None:
            _close(self._writing)
        self._writing = None

    def _set_aside(self, error: Exception) -> None:
        """Keep a damaged file under another name. The caller has the writer's lock. Raises OSError."""
        self.close()
        stamp, number = stamp_of(self._clock()), 1
        aside = self.path.with_name(f"{self.path.name}.corrupt-{stamp}")
        while aside.exists():
            number += 1
            aside = self.path.with_name(f"{self.path.name}.corrupt-{stamp}-{number}")
        for suffix in _BESIDE:
            with suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
        with suppress(FileNotFoundError):
            self.path.rename(aside)
        self._files += 1
        log.error(
            "%s is damaged (%s); it is kept as %s, and a new one is begun", self.path, error, aside.name
        )

    def _remove_copies(self, before_ms: int | None = None) -> None:
        """Remove damaged files that were kept; only those from before a time (ms), if one is given."""
        try:
            for path in sorted(self.path.parent.glob(f"{self.path.name}.corrupt-*")):
                if before_ms is None or path.stat().st_mtime_ns < before_ms * 1_000_000:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise MemoryFault(f"a damaged archive that was kept can not be removed: {error}") from error


def _destroy(connection: sqlite3.Connection) -> None:
    """Leave no byte of what was deleted. Raises sqlite3.Error when some may be left.

    Rows are overwritten where they lay, but the index has words of them until its parts are merged, and a
    page that was rearranged may have a second copy of a row.
    """
    forget_words(connection)
    connection.execute("VACUUM")
    if not checkpoint(connection):
        raise sqlite3.OperationalError("somebody reads the archive, so its log can not be emptied")


def _is_damage(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, UnicodeDecodeError) or (isinstance(code, int) and code & 0xFF in _DAMAGED)


def _close(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        connection.close()

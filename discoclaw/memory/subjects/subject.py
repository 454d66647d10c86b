"""One subject's ledger with the file beside it, which shows HEAD's branch and which a person may edit.

The ledger is authoritative, and not every store has such a durable file. When it differs from what the bot
last wrote, `reconcile` finds out why. An edit becomes a commit. A file that shows an older commit (after a
crash between the two writes) is renewed. An unreadable file is kept aside, and one of a newer version is
never touched. A file from before the memory was erased, which an editor saved late or a backup brought back,
counts only for what was added to it by hand: its old items stay erased, and no copy of it is kept. To bring
such an item back, remove its `createdAt`. Blocking; callers hold the subject's lock and run this in a thread.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from discoclaw.core.errors import MemoryFault, NewerSchema
from discoclaw.core.event import Record
from discoclaw.core.idle import IdleMap
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.ports import Clock
from discoclaw.core.privacy import DmPrivacy, kept_private, presumed_private
from discoclaw.core.subject import group_of, user_of
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.memory.changes import Listener
from discoclaw.memory.subjects import durable_file
from discoclaw.memory.subjects.hand_edit import base_of, edit_of, file_alone, pictured
from discoclaw.memory.subjects.ledger import decode
from discoclaw.memory.subjects.views import SubjectViews
from discoclaw.store.files import (
    Linked,
    Stamp,
    keep_aside,
    read_plain,
    safe_id,
    stamp_now,
    stamp_of,
    sync_folder,
    write_atomic,
)
from discoclaw.store.port import Log, subject_of

log = logging.getLogger(__name__)


class SubjectFiles(SubjectViews):
    """A subject loaded from disk. Raises OSError if the ledger is unreadable.

    `erased_at` is when (ms) the memory was erased; -1 when never. `dm_privacy` decides what becomes private
    of a file that is taken over. For the rest, see `SubjectViews`.
    """

    def __init__(
        self,
        subject: str,
        ledger: Path | Log,
        durable: Path | None,
        max_items: int,
        cached: Path | None = None,
        *,
        erased_at: int = -1,
        records: Sequence[Record] | None = None,
        dm_privacy: Callable[[], DmPrivacy] = lambda: "balanced",
    ) -> None:
        super().__init__(subject, ledger, cached, records=records)
        self._erased_at = erased_at
        self._dm_privacy = dm_privacy
        self._durable = durable
        self._max_items = max_items
        self._left_alone = False  # whether the durable file is a link, or of an unknown, newer version
        self._seen: Stamp = (-1, -1, -1)
        self._renderer = durable_file.Renderer()

    def current(self) -> bool:
        """Whether the durable file is unchanged since the last look (one `stat`)."""
        return self._durable is None or stamp_now(self._durable) == self._seen

    def record(self, records: Sequence[Record], now_ms: int, after: View | None = None) -> None:
        """Append records and renew the durable file. `after` is the view including the last one, if known.

        Raises MemoryFault when the ledger refuses them; nothing is then changed. If the durable file cannot
        be written, that is only a warning: the commit is valid, and the file follows later.
        """
        before = self.view.updated_at
        super().record(records, now_ms, after)
        if self.view.updated_at == before:
            return  # a branch other than HEAD's
        if self.current():
            self._write_durable(self._seen)
        else:  # somebody saved the file at this very moment
            self.reconcile(now_ms)

    def reconcile(self, now_ms: int) -> bool:
        """Make view and durable file agree again. Returns whether an edit was adopted.

        A failing disk is only a warning: the file stays as it is, and the next look tries again.
        """
        try:
            return self._reconcile(now_ms)
        except (OSError, MemoryFault) as error:
            log.warning("%s: the durable file could not be brought in line: %s", self.subject, error)
            return False

    def _reconcile(self, now_ms: int) -> bool:
        path = self._durable
        if path is None:
            return False
        seen, self._left_alone = stamp_now(path), False
        if seen is None:
            self._seen, self._beside = None, None
            if self._has_records:
                self._write_durable(None)
            return False
        try:
            content = read_plain(path)
        except Linked as linked:
            self._leave_alone(path, seen, str(linked))
            return False
        if content == self._renderer.render(self.view):
            self._seen = seen
            return False
        try:
            file = durable_file.parse(content, now_ms=now_ms)
        except NewerSchema as newer:
            self._leave_alone(path, seen, str(newer))
            return False
        except durable_file.Unreadable as unreadable:
            self._replace_unreadable(path, seen, str(unreadable), stamp_of(now_ms))
            return False
        if self._is_erased(file):
            kept = tuple(item for item in file.items if item.created_at > self._erased_at)
            log.warning("%s: %d items that were erased are left out", path, len(file.items) - len(kept))
            file = replace(file, items=kept)
        if self._ledger.damage:
            self._beside = file_alone(file, self.view)
            self._seen = seen
            return False
        adopted = self._take(path, file, content, now_ms)
        if self._is_erased(file) and not self._has_records:
            self._remove_durable(path, seen)
        else:
            self._write_durable(seen)
        return adopted

    def _leave_alone(self, path: Path, seen: Stamp, why: str) -> None:
        log.error("%s is left as it is and no longer written: %s", path, why)
        self._left_alone, self._seen = True, seen

    def _replace_unreadable(self, path: Path, seen: Stamp, why: str, stamp: str) -> None:
        aside = keep_aside(path, "corrupt", stamp)
        log.error("%s cannot be read: %s; it is kept as %s", path, why, aside.name)
        if self._ledger.damage:
            self._seen = stamp_now(path)
        elif self._has_records:
            self._write_durable(seen)
        else:
            path.unlink()
            sync_folder(path.parent)
            self._seen = None

    def _take(self, path: Path, file: durable_file.DurableFile, content: bytes, now_ms: int) -> bool:
        """Handle a file that differs from the view."""
        if self._is_erased(file):
            return self._adopt(file, content, now_ms)
        if self._is_foreign(file):
            keep_aside(path, f"v{file.version}", stamp_of(now_ms))
        if file.rejected:
            aside = keep_aside(path, "rejected", stamp_of(now_ms))
            log.error("%s: %s; the file is kept as %s", path, "; ".join(file.rejected), aside.name)
        return self._adopt(file, content, now_ms)

    def _adopt(self, file: durable_file.DurableFile, content: bytes, now_ms: int) -> bool:
        """Record what a person changed in the file. Returns whether anything changed."""
        foreign = self._is_foreign(file) or self._is_erased(file)
        base, branch = (View(), self.branches.current) if foreign else self._base(file, content)
        commit = edit_of(
            file,
            base,
            self.branch_view(branch),
            branch=branch,
            foreign=foreign,
            now_ms=self.branches.next_ms(now_ms),
            max_items=self._max_items,
            rule=self._dm_privacy(),
        )
        if commit is None:
            return False
        super().record([commit], now_ms)
        made = "taken over from a file" if foreign else "made by hand"
        if secret := len(presumed_private([commit])):  # the command line shows warnings
            text = kept_private(secret)
            log.warning("%s: %d changes were %s, %s", self.subject, len(commit.events), made, text)
        else:
            log.info("%s: %d changes %s were adopted", self.subject, len(commit.events), made)
        return True

    @property
    def _has_records(self) -> bool:
        """Whether there is a ledger at all; HEAD's branch may be empty while others are not."""
        return self.branches.last_ms > 0

    def _is_foreign(self, file: durable_file.DurableFile) -> bool:
        """Whether a file was not written here: another program wrote it, or the ledger is lost."""
        return file.version != durable_file.VERSION or not self._has_records

    def _is_erased(self, file: durable_file.DurableFile) -> bool:
        """Whether a file shows erased content, edited or not."""
        return file.updated_at <= self._erased_at

    def _remove_durable(self, path: Path, seen: Stamp) -> None:
        """Remove a file that has nothing left in it, unless it was saved since it had the stamp `seen`."""
        if stamp_now(path) == seen:
            path.unlink()
            sync_folder(path.parent)
            self._seen = None

    def _base(self, file: durable_file.DurableFile, content: bytes) -> tuple[View, str]:
        """The view to compare a file with, and the branch that an edit of it belongs to; see `base_of`."""
        lines = self._ledger.lines.read()[: self._ledger.size]
        last = decode(lines[lines.rfind(b"\n", 0, -1) + 1 :]).records
        in_time = [ms_of_iso(one.timestamp) for one in last] == [self.branches.last_ms]
        if in_time and file.updated_at == self.view.updated_at:
            return self.view, self.branches.current  # no record came late, so the writer knew all of them
        # History is not kept in RAM; edits of old files are rare.
        return base_of(pictured(decode(lines).records, file, content), self.branches)

    def _write_durable(self, seen: Stamp) -> None:
        """Renew the file, unless it was saved since it had the stamp `seen`: the next read adopts that."""
        path = self._durable
        if path is None or self._left_alone or self._ledger.damage:
            return  # a file beside a damaged ledger may know more than the ledger
        try:
            written = write_atomic(
                path, self._renderer.render(self.view), still=lambda: stamp_now(path) == seen
            )
        except OSError as error:
            log.warning("%s could not be written (%s); the ledger has the change", path, error)
            return
        if written is not None:
            self._seen = written


# ----------------------------------------------------------------------
# The subjects that are in RAM, each with its own lock.

_SWEEP_MS = 60_000


@dataclass(slots=True)
class Entry:
    """One subject in RAM. `files` is None until first use."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    files: SubjectFiles | None = None
    users: int = 0
    """How many callers hold the lock or wait for it; the entry stays in RAM until there are none."""
    stale: bool = False
    """Whether another process recorded something since the files were read."""
    contended: bool = False
    """Whether another process was faster lately: whoever writes next takes the log for itself first."""


@asynccontextmanager
async def locked(entry: Entry) -> AsyncIterator[None]:
    """Hold the entry's lock; waiting for it already keeps the entry from being evicted."""
    entry.users += 1
    try:
        async with entry.lock:
            yield
    finally:
        entry.users -= 1


class Entries(PersonalData, Listener):
    """Subjects by name. They leave RAM after `idle_ms`."""

    name = "views in RAM"

    def __init__(self, *, clock: Clock, idle_ms: int) -> None:
        self._clock = clock
        self._entries: IdleMap[Entry] = IdleMap(
            lambda subject: Entry(),
            idle_ms=idle_ms,
            created=lambda subject: log.debug("%s: into memory", subject),
            evicted=lambda subject, entry: log.debug("%s: out of memory, idle", subject),
        )
        self._swept = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, subject: str) -> bool:
        return self._entries.peek(subject) is not None

    def use(self, subject: str) -> Entry:
        """Return the entry of a subject, created if missing. Raises MemoryFault for an invalid name."""
        now = self._clock()
        if now - self._swept > _SWEEP_MS:
            self._swept = now
            self.evict_idle()
        return self._entries.use(safe_id(subject), now)

    def peek(self, subject: str) -> Entry | None:
        """The entry of a subject if it is in RAM; that is no use of it."""
        return self._entries.peek(subject)

    def drop_unused(self, subject: str) -> None:
        """Evict a subject, unless somebody is using it."""
        entry = self._entries.peek(subject)
        if entry is not None and entry.users == 0:
            self._entries.drop(subject)

    def evict_idle(self) -> list[str]:
        """Evict idle subjects now; they are read from disk when used again."""
        return self._entries.evict_idle(self._clock(), busy=lambda entry: entry.users > 0)

    async def renewed(self, names: Collection[str]) -> None:
        """Have what another process recorded taken in before a subject is next used."""
        for name in names:
            subject = subject_of(name)
            if subject is not None and (entry := self._entries.peek(subject)) is not None:
                entry.stale = True

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """Keep everybody from writing groups' memories while a person is removed; they are then read again.

        A group that is not in use needs no lock: whoever opens it later finds the tombstone.
        """
        if user_of(erasure.subject) is None:
            yield
            return
        try:
            async with AsyncExitStack() as stack:
                for entry in self._groups():
                    await stack.enter_async_context(locked(entry))
                    entry.files = None
                yield
        finally:
            for entry in self._groups():  # newly opened ones may have read what is erased now
                async with locked(entry):
                    entry.files = None

    def _groups(self) -> list[Entry]:
        groups = (self._entries.peek(key) for key in self._entries if group_of(key) is not None)
        return [entry for entry in groups if entry is not None]

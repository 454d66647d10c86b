"""One subject's two files and the resulting view: the ledger, which is authoritative, and the durable file.

Not every store has a durable file. It shows HEAD's branch, and a person may edit it. When it differs from
what the bot last wrote, `reconcile` finds out why. An edit becomes a commit. A file that shows an older
commit (after a crash between the two writes) is renewed. An unreadable file is kept aside, and one of a newer
version is never touched. A file from before the memory was erased, which an editor saved late or a backup
brought back, counts only for what was added to it by hand: its old items stay erased, and no copy of it is
kept. To bring such an item back, remove its `createdAt`. Blocking; callers hold the subject's lock and run
this in a thread.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from discoclaw.core.errors import MemoryFault, NewerSchema
from discoclaw.core.event import Record
from discoclaw.core.history import MAIN, Branches, History, as_shown
from discoclaw.core.presumed import kept_private, presumed_private
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.memory.disk.files import (
    Linked,
    Stamp,
    keep_aside,
    read_plain,
    stamp_now,
    stamp_of,
    sync_folder,
    write_atomic,
)
from discoclaw.memory.disk.plain import log_at
from discoclaw.memory.disk.port import Head, Held, Log
from discoclaw.memory.subjects import durable_file, snapshot
from discoclaw.memory.subjects.growth import applied, follows
from discoclaw.memory.subjects.hand_edit import base_of, edit_of, file_alone, pictured
from discoclaw.memory.subjects.ledger import Ledger, Loaded, begun, decode, read

log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 200
"""The most records read beyond a snapshot; folding them costs about 20 ms."""


class SubjectFiles:
    """A subject loaded from disk. Raises OSError if the ledger is unreadable.

    `view` is what HEAD's branch says now; `branches` are all of them. `cached` is where a snapshot of a long
    ledger is kept, if anywhere. `erased_at` is when (ms) the memory was erased; -1 when never. `records`, if
    given, are what the ledger is written from first: they are verified, so they are not read again.
    `dm_privacy` decides what becomes private of a file that is taken over.
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
        self.subject = subject
        self._erased_at = erased_at
        self._dm_privacy = dm_privacy
        self.branches = Branches()
        self._views: dict[str, View] = {}
        self._durable = durable
        self._max_items = max_items
        self._cached = cached
        self._unsaved = 0  # records that are not in the snapshot
        self._left_alone = False  # whether the durable file is a link, or of an unknown, newer version
        self._seen: Stamp = (-1, -1, -1)
        self._renderer = durable_file.Renderer()
        self._beside: View | None = None  # what the file alone says, beside a damaged ledger
        lines = log_at(ledger)
        self._lines = lines
        self._ledger = self._load(lines) if records is None else self._begin(lines, *begun(lines, records))

    @property
    def view(self) -> View:
        """The current view of HEAD's branch."""
        return self._beside or as_shown(self.branch_view(self.branches.current), self.branches)

    def branch_view(self, name: str) -> View:
        """The current view of a branch; `main`'s if there is no such branch yet. Raises OSError.

        If it is not in RAM, all branches are loaded: a caller that wants one after another reads the disk
        only once.
        """
        if self._beside is not None:
            return self._beside
        views, branches = self._views, self.branches
        branch = branches.all.get(name) or branches.all[MAIN]
        if branch.name not in views:
            history = self.history()
            for one in branches.all.values():
                views.setdefault(one.name, history.view(one.head))
        return views[branch.name]

    def in_ram(self, name: str) -> bool:
        """Whether a branch's view is available without reading the disk."""
        return self._beside is not None or (name if name in self.branches.all else MAIN) in self._views

    def history(self) -> History:
        """The full history, read from disk, since it is not kept in RAM. Raises OSError."""
        return read(self._ledger.lines).history

    def next_ms(self, now_ms: int) -> int:
        """The time for the next record."""
        return self.branches.next_ms(now_ms)

    def _load(self, lines: Log) -> Ledger:
        content, head = lines.load()
        ledger = self._continue(lines, content, head.generation)
        if ledger is None:
            return self._begin(lines, decode(content, generation=head.generation), content)
        self._save_snapshot(ledger)
        return ledger

    def _begin(self, lines: Log, loaded: Loaded, content: bytes) -> Ledger:
        """Begin with what a ledger, whose bytes are `content`, holds."""
        history = loaded.history
        branches = history.branches
        views = {branches.current: history.view(branches.all[branches.current].head)}
        # At once, for others read meanwhile.
        self.branches, self._views, self._unsaved = branches, views, len(loaded.records)
        ledger = Ledger(lines, loaded, hashlib.sha256(memoryview(content)[: loaded.size]))
        self._save_snapshot(ledger)
        return ledger

    def _continue(self, lines: Log, content: bytes, generation: int) -> Ledger | None:
        """Load from the snapshot and the lines after it; None if that is impossible."""
        if self._cached is None or len(content) < 100_000 or (known := snapshot.load(self._cached)) is None:
            return None
        hashed = hashlib.sha256(memoryview(content)[: known.size])
        if hashed.hexdigest() != known.digest:
            return None
        heads = frozenset(b.head for b in known.branches.all.values() if b.head is not None)
        rest = decode(content[known.size :], known=heads, generation=generation)
        if rest.damage:
            return None
        branches, views = known.branches, {known.branches.current: known.view}
        for record in rest.records:
            if not follows(record, branches):
                return None
            branches = applied(record, branches, views)
        if branches.current not in views:
            return None  # HEAD moved to a branch whose view is not in the snapshot
        self.branches, self._views, self._unsaved = branches, views, len(rest.records)
        hashed.update(memoryview(content)[known.size : known.size + rest.size])
        return Ledger(lines, replace(rest, size=known.size + rest.size), hashed)

    def _save_snapshot(self, ledger: Ledger) -> None:
        if self._cached is not None and self._unsaved >= SNAPSHOT_EVERY and not ledger.damage:
            view = self.branch_view(self.branches.current)
            snapshot.save(self._cached, snapshot.Snapshot(ledger.size, ledger.digest, self.branches, view))
            self._unsaved = 0

    # ------------------------------------------------------------------ other processes

    def catch_up(self) -> None:
        """Take in what other processes recorded meanwhile. Raises OSError."""
        self._take_in(*self._lines.load(self._ledger.head))

    def _take_in(self, tail: bytes, head: Head) -> None:
        """Take in the lines that follow what is known, or all lines, as `Log.load` returned them."""
        before = self._ledger.head
        if head == before:
            return
        heads = frozenset(b.head for b in self.branches.all.values() if b.head is not None)
        new = decode(tail, known=heads, generation=head.generation) if head.reaches(before) else None
        if new is None or new.damage or new.torn or self._ledger.damage:
            self._ledger = self._load(self._ledger.lines)
            return
        self._ledger.grew(tail, head)
        self._follow(new.records)

    def hold(self) -> bool:
        """Keep other processes from recording, until the next record here or `release`. Raises OSError.

        Returns whether they recorded anything since the last look.
        """
        before = self._ledger.head
        self._ledger.lines, tail, head = self._lines.hold(before)
        self._take_in(tail, head)
        return head != before

    def release(self) -> None:
        """Let other processes record again. Raises OSError."""
        held, self._ledger.lines = self._ledger.lines, self._lines
        if isinstance(held, Held):
            held.release()

    def current(self) -> bool:
        """Whether the durable file is unchanged since the last look (one `stat`)."""
        return self._durable is None or stamp_now(self._durable) == self._seen

    def record(self, records: Sequence[Record], now_ms: int, after: View | None = None) -> None:
        """Append records and renew the durable file. `after` is the view including the last one, if known.

        Raises MemoryFault when the ledger refuses them; nothing is then changed. If the durable file cannot
        be written, that is only a warning: the commit is valid, and the file follows later.
        """
        before = self.view.updated_at
        self._append(records, now_ms, after)
        if self._unsaved >= SNAPSHOT_EVERY:
            self._save_snapshot(self._ledger)
        if self.view.updated_at == before:
            return  # a branch other than HEAD's
        if self.current():
            self._write_durable(self._seen)
        else:  # somebody saved the file at this very moment
            self.reconcile(now_ms)

    def _append(self, records: Sequence[Record], now_ms: int, after: View | None = None) -> None:
        self._ledger.append(*records, stamp=stamp_of(now_ms))
        self._follow(records, after)

    def _follow(self, records: Sequence[Record], after: View | None = None) -> None:
        """Take over records that are in the ledger now."""
        self._unsaved += len(records)
        for record in records:
            if not follows(record, self.branches):
                self._ledger = self._load(self._ledger.lines)  # from another replica, so reorder everything
                return
            self.branches = applied(record, self.branches, self._views, after)

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
        self._append([commit], now_ms)
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
        """What a file is compared with, and the branch that an edit of it belongs to; see `base_of`."""
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

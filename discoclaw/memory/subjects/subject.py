"""One subject: its ledger, the views of it that are in use, and the durable file that shows HEAD's branch.

What always holds:

1  The ledger is the truth. A record is on disk before anything here shows it, and only lines are appended,
   behind the head that we know: whoever was overtaken by another process hears of it (`Overtaken`).
2  A torn last line is kept aside before the next append. Nothing is appended to a damaged ledger.
3  A view is what its branch's chain of commits adds up to. HEAD's is in RAM, and those of other branches that
   somebody used; the history is not. A long ledger is read from a snapshot and the lines after it, if the
   snapshot was made from these bytes.
4  The durable file follows the ledger: a commit is two synced writes. Not every store has such files. If one
   differs from what was last written, `reconcile` finds out why. An edit becomes a commit. A file that shows
   an older state (after a crash between the two writes) is renewed. An unreadable one is kept aside, and a
   link, or one of a newer version, is never touched.
5  A file from before the memory was erased, which an editor saved late or a backup brought back, counts only
   for what was added to it by hand: its old items stay erased, and no copy of it is kept. To bring such an
   item back, remove its `createdAt`.

Blocking; callers hold the subject's lock and run this in a thread. Others may read `view` and `branches`
meanwhile.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from discoclaw.core.errors import MemoryFault, NewerSchema, faulting
from discoclaw.core.event import Commit, Record, encode_line
from discoclaw.core.history import MAIN, Branch, Branches, History, as_shown
from discoclaw.core.item import Item
from discoclaw.core.pending import Pending
from discoclaw.core.privacy import DmPrivacy, kept_private, presumed_private
from discoclaw.core.purge import TakenBack
from discoclaw.core.reminder import Reminder
from discoclaw.core.text import normalise
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import Conflict, View
from discoclaw.memory.subjects import durable_file, ledger
from discoclaw.memory.subjects.durable_file import DurableFile, Unreadable
from discoclaw.memory.subjects.ledger import Loaded, begun, decode, read
from discoclaw.store.files import (
    Linked,
    Stamp,
    read_plain,
    stamp_now,
    stamp_of,
    sync_folder,
    write_atomic,
)
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import Head, Log

log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 200
"""The most records read beyond a snapshot; folding them costs about 20 ms."""
LONG = 100_000
"""A ledger of fewer bytes is read without a snapshot."""


class Subject:
    """A subject loaded from disk. Raises OSError if the ledger is unreadable.

    `durable` is the file beside the ledger, `cached` the place of its snapshot, if there are any. A branch
    has at most `max_items`. `erased_at` is when (ms) the memory was erased; -1 when never. `dm_privacy`
    decides what becomes private of a file that is taken over. `records`, if given, are what the ledger is
    written from first: they are verified, so they are not read again.
    """

    def __init__(
        self,
        name: str,
        lines: Log,
        durable: Path | None = None,
        cached: Path | None = None,
        *,
        max_items: int,
        erased_at: int = -1,
        dm_privacy: Callable[[], DmPrivacy] = lambda: "balanced",
        records: Sequence[Record] | None = None,
    ) -> None:
        self.name = name
        self._now: tuple[Branches, Mapping[str, View]] = Branches(), {}  # in one: others read it meanwhile
        self._log = lines
        self._head = Head()
        self._hash = hashlib.sha256()  # of the lines up to there
        self._damage = ""
        self._torn = 0
        self._cached = cached
        self._unsaved = 0  # records that are not in the snapshot
        self._durable = durable
        self._beside: View | None = None  # what the file says beside a damaged ledger, instead of its views
        self._left_alone = False  # whether the file is a link, or of an unknown, newer version
        self._seen: Stamp = (-1, -1, -1)
        self._renderer = durable_file.Renderer()
        self._max_items = max_items
        self._erased_at = erased_at
        self._dm_privacy = dm_privacy
        if records is None:
            self._load()
        else:
            self._begin(*begun(lines, records))

    # ------------------------------------------------------------------ reading

    @property
    def branches(self) -> Branches:
        """All branches, and which of them is HEAD's."""
        return self._now[0]

    @property
    def view(self) -> View:
        """The current view of HEAD's branch."""
        branches, views = self._now
        return self._beside or as_shown(views[branches.current], branches)

    def in_ram(self, name: str) -> bool:
        """Whether a branch's view is available without reading the disk."""
        branches, views = self._now
        return self._beside is not None or (name if name in branches.all else MAIN) in views

    def branch_view(self, name: str) -> View:
        """The current view of a branch; `main`'s if there is no such branch yet. Raises OSError.

        If it is not in RAM, all branches are loaded: a caller that wants one after another reads the disk
        only once.
        """
        branches, views = self._now
        if self._beside is not None or name == branches.current:
            return self.view
        if not self.in_ram(name):
            views = self._views_of(branches, views)
            self._now = branches, views
        return views[name if name in branches.all else MAIN]

    def _views_of(self, branches: Branches, known: Mapping[str, View]) -> Mapping[str, View]:
        """The views of all branches; those that are not known are read from disk. Raises OSError."""
        history = self.history()
        return {one.name: known.get(one.name) or history.view(one.head) for one in branches.all.values()}

    def history(self) -> History:
        """The full history, read from disk, since it is not kept in RAM. Raises OSError."""
        return read(self._log).history

    def current(self) -> bool:
        """Whether the durable file is unchanged since the last look (one `stat`)."""
        return self._durable is None or stamp_now(self._durable) == self._seen

    # ------------------------------------------------------------------ writing

    def record(self, records: Sequence[Record], now_ms: int, after: View | None = None) -> None:
        """Append records and renew the durable file. `after` is the view including the last one, if known.

        Raises MemoryFault when the ledger refuses them; nothing is then changed. If the durable file cannot
        be written, that is only a warning: the commit is valid, and the file follows later.
        """
        before = self.view.updated_at
        self._append(records, now_ms, after)
        if self.view.updated_at == before:
            return  # a branch other than HEAD's
        if self.current():
            self._write_durable(self._seen)
        else:  # somebody saved the file at this very moment
            self.reconcile(now_ms)

    def _append(self, records: Sequence[Record], now_ms: int, after: View | None = None) -> None:
        """Write records durably, all or nothing, and take them over. Raises MemoryFault."""
        path = self._log.path
        if self._damage:
            raise MemoryFault(
                f"{path.name}, {self._damage}; nothing is recorded until it is repaired: "
                "stop the bot and run `discoclaw memory verify --repair`"
            )
        content = b"".join(map(encode_line, records))
        with faulting(f"{path.name} could not be written"):
            if self._torn:
                aside = self._log.keep_aside("torn", stamp_of(now_ms))
                self._log.cut(self._head.size)
                ledger.log.warning("%s: the torn last line is kept in %s", path, aside.name)
                self._torn = 0
            head = self._log.append(content, after=self._head)
        self._follow(records, content, head, after)

    def _follow(
        self, records: Sequence[Record], content: bytes, head: Head, after: View | None = None
    ) -> None:
        """Take over records that are in the ledger now. `content` are their lines, up to `head`."""
        self._head = head
        self._hash.update(content)
        self._unsaved += len(records)
        branches, views = self._now
        for record in records:
            if not follows(record, branches):  # it is from another replica: order everything anew
                self._load()
                return
            branches, views = applied(record, branches, views, after)
        if branches.current not in views:
            views = self._views_of(branches, views)
        self._now = branches, views
        self._save_snapshot()

    # ------------------------------------------------------------------ loading

    def _load(self) -> None:
        """Read the ledger: the snapshot and the lines after it or, where that is impossible, all lines."""
        content, head = self._log.load()
        if not self._resume(content, head.generation):
            self._begin(decode(content, generation=head.generation), content)

    def _begin(self, loaded: Loaded, content: bytes) -> None:
        """Begin with what a ledger, whose bytes are `content`, holds."""
        history, digest = loaded.history, hashlib.sha256(memoryview(content)[: loaded.size])
        branches = history.branches
        head = branches.all[branches.current]
        self._set(branches, {head.name: history.view(head.head)}, loaded, digest)

    def _resume(self, content: bytes, generation: int) -> bool:
        """Begin with the snapshot and the lines after it. Returns whether that was possible."""
        if self._cached is None or len(content) < LONG or (known := load(self._cached)) is None:
            return False
        digest = hashlib.sha256(memoryview(content)[: known.size])
        if digest.hexdigest() != known.digest:
            return False
        branches = known.branches
        views: Mapping[str, View] = {branches.current: known.view}
        rest = decode(content[known.size :], known=_heads(branches), generation=generation)
        if rest.damage:
            return False
        for record in rest.records:
            if not follows(record, branches):
                return False
            branches, views = applied(record, branches, views)
        if branches.current not in views:
            return False  # HEAD moved to a branch whose view is not in the snapshot
        rest = replace(rest, size=known.size + rest.size)
        digest.update(memoryview(content)[known.size : rest.size])
        self._set(branches, views, rest, digest)
        return True

    def _set(
        self, branches: Branches, views: Mapping[str, View], loaded: Loaded, digest: "hashlib._Hash"
    ) -> None:
        self._now, self._unsaved = (branches, views), len(loaded.records)
        self._head, self._hash, self._torn = loaded.head, digest, loaded.torn
        self._damage = str(loaded.damage[0]) if loaded.damage else ""
        path = self._log.path
        if loaded.torn:
            ledger.log.warning("%s: a torn last line of %d bytes is left out", path, loaded.torn)
        for one in loaded.damage:
            text = "%s, %s; the other lines are used and nothing is appended until repaired"
            ledger.log.error(text, path, one)
        self._save_snapshot()

    def _save_snapshot(self) -> None:
        if self._cached is not None and self._unsaved >= SNAPSHOT_EVERY and not self._damage:
            size, digest, (branches, views) = self._head.size, self._hash.hexdigest(), self._now
            save(self._cached, Snapshot(size, digest, branches, views[branches.current]))
            self._unsaved = 0

    # ------------------------------------------------------------------ other processes

    def catch_up(self) -> None:
        """Take in what other processes recorded meanwhile. Raises OSError."""
        tail, head = self._log.load(self._head)
        if head == self._head:
            return
        new = None
        if head.reaches(self._head) and not self._damage:
            new = decode(tail, known=_heads(self.branches), generation=head.generation)
        if new is None or new.damage or new.torn:
            self._load()
        else:
            self._follow(new.records, tail, head)

    # ------------------------------------------------------------------ the durable file

    def reconcile(self, now_ms: int) -> bool:
        """Make view and durable file agree again. Returns whether an edit was adopted.

        A failing disk is only a warning: the file stays as it is, and the next look tries again.
        """
        try:
            return self._durable is not None and self._reconcile(self._durable, now_ms)
        except (OSError, MemoryFault) as error:
            log.warning("%s: the durable file could not be brought in line: %s", self.name, error)
            return False

    def _reconcile(self, path: Path, now_ms: int) -> bool:
        seen, self._left_alone, stamp = stamp_now(path), False, stamp_of(now_ms)
        if seen is None:
            self._seen = self._beside = None
            if self._has_records:
                self._write_durable(None)
            return False
        try:
            content = read_plain(path)
            if content == self._renderer.render(self.view):
                self._seen = seen
                return False
            file = durable_file.parse(content, now_ms=now_ms)
        except (Linked, NewerSchema) as why:
            log.error("%s is left as it is and no longer written: %s", path, why)
            self._left_alone, self._seen = True, seen
            return False
        except Unreadable as why:
            aside = FileDocuments(path.parent).keep_aside(path.name, "corrupt", stamp)
            log.error("%s cannot be read: %s; it is kept as %s", path, why, aside.name)
            if self._damage:
                self._seen = seen
            elif self._has_records:
                self._write_durable(seen)
            else:
                self._remove_durable(path, seen)
            return False
        erased = file.updated_at <= self._erased_at  # edited since or not
        if erased:
            kept = tuple(item for item in file.items if item.created_at > self._erased_at)
            log.warning("%s: %d items that were erased are left out", path, len(file.items) - len(kept))
            file = replace(file, items=kept)
        if self._damage:
            self._beside, self._seen = durable_file.file_alone(file, self.view), seen
            return False
        foreign = file.version != durable_file.VERSION or not self._has_records
        if foreign and not erased:
            FileDocuments(path.parent).keep_aside(path.name, f"v{file.version}", stamp)
        if file.rejected and not erased:
            aside = FileDocuments(path.parent).keep_aside(path.name, "rejected", stamp)
            log.error("%s: %s; the file is kept as %s", path, "; ".join(file.rejected), aside.name)
        adopted = self._adopt(file, content, now_ms, foreign=foreign or erased)
        if erased and not self._has_records:
            self._remove_durable(path, seen)
        else:
            self._write_durable(seen)
        return adopted

    def _adopt(self, file: DurableFile, content: bytes, now_ms: int, *, foreign: bool) -> bool:
        """Record what a person changed in the file. Returns whether anything changed.

        A `foreign` one was not written here: another program wrote it, or the ledger is lost or erased.
        """
        commit = durable_file.edit_of(
            file,
            None if foreign else self._shown_by(file, content),
            self.branches,
            self.branch_view,
            foreign=foreign,
            now_ms=now_ms,
            max_items=self._max_items,
            rule=self._dm_privacy(),
        )
        if commit is None:
            return False
        self._append([commit], now_ms)
        made = "taken over from a file" if foreign else "made by hand"
        if secret := len(presumed_private([commit])):  # the command line shows warnings
            text = kept_private(secret)
            log.warning("%s: %d changes were %s, %s", self.name, len(commit.events), made, text)
        else:
            log.info("%s: %d changes %s were adopted", self.name, len(commit.events), made)
        return True

    def _shown_by(self, file: DurableFile, content: bytes) -> tuple[View, str] | None:
        """The view that a file shows, or showed before it was edited, and its branch; see `shown_by`."""
        lines = self._log.read()[: self._head.size]
        last = decode(lines[lines.rfind(b"\n", 0, -1) + 1 :]).records
        in_time = [ms_of_iso(one.timestamp) for one in last] == [self.branches.last_ms]
        if in_time and file.updated_at == self.view.updated_at:
            return self.view, self.branches.current  # no record came late, so the writer knew all of them
        return durable_file.shown_by(decode(lines).records, file, content)  # edits of old files are rare

    @property
    def _has_records(self) -> bool:
        """Whether there is a ledger at all; HEAD's branch may be empty while others are not."""
        return self.branches.last_ms > 0

    def _remove_durable(self, path: Path, seen: Stamp) -> None:
        """Remove a file that has nothing left in it, unless it was saved since it had the stamp `seen`."""
        if stamp_now(path) == seen:
            path.unlink()
            sync_folder(path.parent)
            self._seen = None

    def _write_durable(self, seen: Stamp) -> None:
        """Renew the file, unless it was saved since it had the stamp `seen`: the next read adopts that."""
        path = self._durable
        if path is None or self._left_alone or self._damage:
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


# ---------------------------------------------------------------------- the next record


def follows(record: Record, branches: Branches) -> bool:
    """Whether a record comes after those that made `branches`."""
    if ms_of_iso(record.timestamp) <= branches.last_ms:
        return False
    if isinstance(record, Commit):
        known = branches.all.get(record.branch)
        return known is not None and known.head == record.parent_id
    made_again = record.action == "create" and record.branch in branches.all
    return not made_again and record.action not in ("union", "mend")


def applied(
    record: Record, branches: Branches, views: Mapping[str, View], after: View | None = None
) -> tuple[Branches, Mapping[str, View]]:
    """The branches, and the views that are in RAM, after the next record.

    `after` is used as the view with the record if it belongs to that very commit.
    """
    here = views.get(record.branch)
    if isinstance(record, Commit):
        if here is not None:
            known = after if after is not None and after.head == record.id else here.after(record)
            views = {**views, record.branch: known}
    elif record.action == "create":
        start = next((one for one in views.values() if one.head == record.head), None)
        views = {**views, record.branch: start} if start is not None else views
    elif record.action == "delete" and record.branch != MAIN:
        views = {name: view for name, view in views.items() if name != record.branch}
    return branches.after(record), views


def _heads(branches: Branches) -> frozenset[str]:
    return frozenset(one.head for one in branches.all.values() if one.head is not None)


# ---------------------------------------------------------------------- snapshots
# A cache in a plain file: the SHA-256 of its second line, and that line, which is JSON.

VERSION: Final = 8
"""The version of a snapshot's format."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The branches and HEAD's view after the first `size` bytes of a ledger, whose SHA-256 is `digest`."""

    size: int
    digest: str
    branches: Branches
    view: View


@dataclass(frozen=True, slots=True)
class _View:
    """A view's fields, where those that can be computed from their values have no keys."""

    items: tuple[Item, ...]
    last_event: Mapping[str, str]
    triples: Mapping[str, str]
    conflicts: tuple[Conflict, ...]
    forgotten: Mapping[str, int]
    sources: Mapping[str, tuple[str, ...]]
    taken_back: tuple[TakenBack, ...]
    head: str | None
    updated_at: int
    commits: int
    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True)
class _File:
    version: int
    size: int
    digest: str
    branches: tuple[Mapping[str, Branch], str, tuple[tuple[int, str], ...], int, int, Mapping[str, Reminder]]
    view: _View


@cache
def _json() -> TypeAdapter[_File]:
    return TypeAdapter(_File)  # takes 0.1 s, for which nobody waits who has only short ledgers


def save(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot. A failing disk is only a warning: nothing is lost without a snapshot."""
    at, view = snapshot.branches, snapshot.view
    given = {field.name: getattr(view, field.name) for field in fields(_View)}
    items, taken = tuple(view.items.values()), tuple(view.taken_back.values())
    kept = _View(**{**given, "items": items, "taken_back": taken})
    branches = at.all, at.current, at.moves, at.last_ms, at.turned_ms, at.reminders
    text = _json().dump_json(_File(VERSION, snapshot.size, snapshot.digest, branches, kept))
    try:
        write_atomic(path, b"%s\n%s\n" % (_seal(text), text))
    except OSError as error:
        log.warning("%s could not be written: %s", path, error)


def load(path: Path) -> Snapshot | None:
    """The snapshot in a file, or None if there is no usable one."""
    try:
        seal, _, text = path.read_bytes().rstrip(b"\n").partition(b"\n")
        if seal != _seal(text):
            return None
        file = _json().validate_json(text)
        if file.version != VERSION:
            return None
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    given = {field.name: getattr(file.view, field.name) for field in fields(_View)}
    items = {item.id: item for item in file.view.items}
    taken = {(one.item_id, normalise(one.text)): one for one in file.view.taken_back}
    view = View(**{**given, "items": items, "taken_back": taken})
    return Snapshot(file.size, file.digest, Branches(*file.branches), view)


def _seal(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()

"""One subject's ledger, and what it says: its branches, and the views of those that are in use.

A long ledger is read from a snapshot and the lines after it. Other processes may record in the same ledger:
`catch_up` takes that in, and `hold` keeps them from it. Blocking; callers hold the subject's lock and run
this in a thread. Knows nothing about the durable file.
"""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from discoclaw.core.event import Commit, Record
from discoclaw.core.history import MAIN, Branch, Branches, History, as_shown
from discoclaw.core.item import Facets, Item, Source
from discoclaw.core.pending import Pending
from discoclaw.core.purge import TakenBack
from discoclaw.core.text import normalise
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import Conflict, View
from discoclaw.memory.subjects.ledger import Ledger, Loaded, begun, decode, read
from discoclaw.store.files import stamp_of, write_atomic
from discoclaw.store.plain import log_at
from discoclaw.store.port import Head, Log

log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 200
"""The most records read beyond a snapshot; folding them costs about 20 ms."""


class SubjectViews:
    """A subject's ledger loaded from disk. Raises OSError if it is unreadable.

    `view` is what HEAD's branch says now; `branches` are all of them. `cached` is where a snapshot of a long
    ledger is kept, if anywhere. `records`, if given, are what the ledger is written from first: they are
    verified, so they are not read again.
    """

    def __init__(
        self,
        subject: str,
        ledger: Path | Log,
        cached: Path | None = None,
        *,
        records: Sequence[Record] | None = None,
    ) -> None:
        self.subject = subject
        self.branches = Branches()
        self._views: dict[str, View] = {}
        self._cached = cached
        self._unsaved = 0  # records that are not in the snapshot
        self._beside: View | None = None  # what is known beside a damaged ledger, instead of its views
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

    def record(self, records: Sequence[Record], now_ms: int, after: View | None = None) -> None:
        """Append records. `after` is the view including the last one, if known.

        Raises MemoryFault when the ledger refuses them; nothing is then changed.
        """
        self._ledger.append(*records, stamp=stamp_of(now_ms))
        self._follow(records, after)
        if self._unsaved >= SNAPSHOT_EVERY:
            self._save_snapshot(self._ledger)

    def _follow(self, records: Sequence[Record], after: View | None = None) -> None:
        """Take over records that are in the ledger now."""
        self._unsaved += len(records)
        for record in records:
            if not follows(record, self.branches):
                self._ledger = self._load(self._ledger.lines)  # from another replica, so reorder everything
                return
            self.branches = applied(record, self.branches, self._views, after)

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
        if self._cached is None or len(content) < 100_000 or (known := load(self._cached)) is None:
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
            save(self._cached, Snapshot(ledger.size, ledger.digest, self.branches, view))
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
        held.release()


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
    record: Record, branches: Branches, views: dict[str, View], after: View | None = None
) -> Branches:
    """The branches after the next record; the `views` in RAM are updated too.

    `after` is used as the view with the record if it belongs to that very commit.
    """
    if isinstance(record, Commit):
        if record.branch in views:
            if after is None or after.head != record.id:
                after = views[record.branch].after(record)
            views[record.branch] = after
    elif record.action == "create" and record.branch not in branches.all:
        for view in list(views.values()):
            if view.head == record.head:
                views[record.branch] = view
    elif record.action == "delete":
        views.pop(record.branch, None)
    return branches.after(record)


# ---------------------------------------------------------------------- snapshots

VERSION = 6
"""The version of a snapshot's format."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The branches and HEAD's view after the first `size` bytes of a ledger, whose SHA-256 is `digest`."""

    size: int
    digest: str
    branches: Branches
    view: View


def save(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot. A failing disk is only a warning: nothing is lost without a snapshot."""
    body = {
        "version": VERSION,
        "size": snapshot.size,
        "digest": snapshot.digest,
        "branches": asdict(snapshot.branches),
        "view": _view_to_json(snapshot.view),
    }
    text = json.dumps(body, ensure_ascii=False)
    try:
        write_atomic(path, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n".encode())
    except OSError as error:
        log.warning("%s could not be written: %s", path, error)


def load(path: Path) -> Snapshot | None:
    """The snapshot in a file, or None if there is no usable one."""
    try:
        seal, _, text = path.read_bytes().rstrip(b"\n").partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != seal:
            return None
        body = json.loads(text)
        if body["version"] != VERSION:
            return None
        branches, view = _branches(body["branches"]), _view_from_json(body["view"])
        return Snapshot(int(body["size"]), str(body["digest"]), branches, view)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _branches(value: Mapping[str, Any]) -> Branches:
    made = Branches(**value)
    return replace(
        made,
        all={name: Branch(**branch) for name, branch in value["all"].items()},
        moves=tuple((ms, name) for ms, name in value["moves"]),
    )


def _view_to_json(view: View) -> dict[str, Any]:
    return {
        **{name: getattr(view, name) for name in (*_PLAIN, "sources")},
        "items": [_item_to_json(item) for item in view.items.values()],
        "conflicts": [asdict(conflict) for conflict in view.conflicts],
        "taken_back": [asdict(one) for one in view.taken_back.values()],
        "pending": [[one.event_id, one.at, one.question, *_item_to_json(one.item)] for one in view.pending],
    }


_PLAIN = ("last_event", "triples", "forgotten", "head", "updated_at", "commits")


def _view_from_json(value: Mapping[str, Any]) -> View:
    items = [_item(body, facets) for body, facets in value["items"]]
    taken = [TakenBack(**{**one, "messages": tuple(one["messages"])}) for one in value["taken_back"]]
    return View(
        items={item.id: item for item in items},
        conflicts=tuple(Conflict(**conflict) for conflict in value["conflicts"]),
        sources={key: tuple(messages) for key, messages in value["sources"].items()},
        taken_back={(one.item_id, normalise(one.text)): one for one in taken},
        pending=tuple(Pending(key, _item(*item), at, asked) for key, at, asked, *item in value["pending"]),
        **{name: value[name] for name in _PLAIN},
    )


def _item_to_json(item: Item) -> list[dict[str, Any]]:
    return [item.to_json(), _facets_to_json(item.facets)]


def _facets_to_json(facets: Facets) -> dict[str, Any]:
    return {**asdict(facets), "links": sorted(facets.links)}


def _item(body: Mapping[str, Any], facets: Mapping[str, Any]) -> Item:
    triple = facets["triple"]
    return Item(
        id=body["id"],
        kind=body["kind"],
        text=body["text"],
        tags=tuple(body["tags"]),
        status=body["status"],
        source=Source.from_json(body["source"]),
        created_at=body["createdAt"],
        updated_at=body["updatedAt"],
        facets=Facets(
            **{**facets, "links": frozenset(facets["links"]), "triple": tuple(triple) if triple else None}
        ),
    )

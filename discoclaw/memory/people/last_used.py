"""When each item was last stored or found: statistics beside the ledger, which never changes for being read.

A touch is kept in RAM at once and written later, to one cursor a subject, `access-<subject>`, by whose name
an erasing finds it. What is not known counts as used when it was written, so the cursor can be lost; what
is on disk are ids of items that exist, and times, never words. Nobody who answers a person waits for it.
Knows nothing about what is done with the times.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.ports import Clock
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Listener
from discoclaw.memory.disk.cursors import Cursors, read
from discoclaw.memory.disk.files import session_name
from discoclaw.memory.disk.port import Documents
from discoclaw.memory.subjects.store import Memory

log = logging.getLogger(__name__)

MOST_ITEMS = 10_000
MOST_SUBJECTS = 2_000
"""Most subjects that stay in RAM when they are written."""


@dataclass(slots=True)
class _Seen:
    """One subject in RAM. `complete`: what was on disk is in it. `unsaved`: it knows more than the disk."""

    times: dict[str, int] = field(default_factory=dict)
    complete: bool = False
    unsaved: bool = False


class LastUsed(PersonalData, Listener):
    """Access times (ms) of items, by subject. What is committed to `memory` is used by that.

    `most_items` is for how many items of one subject times are kept, the newest ones.
    """

    name = "last-used times"

    def __init__(
        self, memory: Memory, cursors: Cursors, *, clock: Clock, most_items: int = MOST_ITEMS
    ) -> None:
        self._memory = memory
        self._cursors = cursors
        self._clock = clock
        self._most_items = most_items
        self._seen: dict[str, _Seen] = {}

    def touch(self, subject: str, item_ids: Iterable[str], *, at: int | None = None) -> None:
        """These items were stored or found, now or `at` (ms). Never blocks, and never makes a time older."""
        when = self._clock() if at is None else at
        seen: _Seen | None = None
        for item_id in item_ids:
            seen = seen or self._seen.setdefault(subject, _Seen())
            seen.times[item_id] = max(seen.times.get(item_id, 0), when)
            seen.unsaved = True

    def of(self, subject: str) -> Mapping[str, int]:
        """The times that are at hand, by item id. A missing one is that of the item's writing."""
        seen = self._seen.get(subject)
        return dict(seen.times) if seen is not None else {}

    def complete(self, subject: str) -> bool:
        """Whether what is at hand of a subject is all there is."""
        seen = self._seen.get(subject)
        return seen is not None and seen.complete

    async def load(self, subject: str) -> Mapping[str, int]:
        """All times of a subject, from disk if need be."""
        if not self.complete(subject):
            erased_at = self._memory.erased_at(subject)
            known = _times(await self._cursors.get(_cursor(subject)))
            if self._memory.erased_at(subject) == erased_at:
                seen = self._seen.setdefault(subject, _Seen())
                seen.times, seen.complete = _newer(known, seen.times), True
        return self.of(subject)

    async def flush(self) -> None:
        """Write what is new. What the disk does not take is written the next time."""
        for subject in [subject for subject, seen in self._seen.items() if seen.unsaved]:
            await self._save(subject)
        written = [subject for subject, seen in self._seen.items() if not seen.unsaved]
        for subject in written[: max(0, len(self._seen) - MOST_SUBJECTS)]:
            del self._seen[subject]

    # ------------------------------------------------------------------ inside

    async def _save(self, subject: str) -> None:
        seen, erased_at = self._seen.get(subject), self._memory.erased_at(subject)
        if seen is None:
            return
        try:
            existing = await self._existing(subject)
        except MemoryFault as fault:
            log.info("the access times of %s are written later: %s", subject, fault)
            return

        wanted = False

        def change(known: Mapping[str, object]) -> Mapping[str, object] | None:
            nonlocal wanted
            if self._seen.get(subject) is not seen or self._memory.erased_at(subject) != erased_at:
                return None  # erased meanwhile: nothing of it is written any more
            times = {key: at for key, at in _newer(_times(known), seen.times).items() if key in existing}
            newest = sorted(times, key=lambda key: (-times[key], key))[: self._most_items]
            seen.times = {key: times[key] for key in newest}
            seen.complete, seen.unsaved = True, False
            wanted = seen.times != known
            return dict(seen.times) if wanted else None

        written = await self._cursors.update(_cursor(subject), change)
        seen.unsaved = seen.unsaved or (wanted and not written)
        self._cursors.forget(_cursor(subject))  # what it says is in RAM here

    async def _existing(self, subject: str) -> Collection[str]:
        """The ids of all items of a subject, on whichever branch. Raises MemoryFault."""
        branches = await self._memory.branches(subject)
        return {key for name in branches.all for key in (await self._memory.view(subject, name)).items}

    def committed(self, subject: str, commit: Commit) -> None:
        """What a commit stores or finds out of is used by that."""
        ids = set()
        for event in commit.events:
            if event.event_type == "forget" and "link" not in event.ext:
                continue
            ids |= {event.ext.get("item", {}).get("id"), event.ext.get("link", {}).get("to")}
        self.touch(subject, sorted(one for one in ids if isinstance(one, str)))

    def forget(self, erasure: Erasure) -> None:
        self._seen.pop(erasure.subject, None)


def kept(documents: Documents, subject: str) -> Mapping[str, int]:
    """The times (ms) as they lie on disk, for who has no `LastUsed` at hand. Blocking."""
    return _times(read(documents, session_name(_cursor(subject))))


def _cursor(subject: str) -> str:
    return f"access-{subject}"


def _times(cursor: Mapping[str, object]) -> dict[str, int]:
    """The times a cursor has; whatever else stands in it is left out."""
    return {key: at for key, at in cursor.items() if isinstance(at, int) and valid_ms(at) and at > 0}


def _newer(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The later time of each item."""
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {**one, **other}}

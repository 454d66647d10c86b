"""When each item was last stored or found: statistics beside the ledger, which reading must not change.

A use is recorded in RAM at once and written later, to one cursor for each subject, `access-<subject>`; an
erasing finds it by that name. An item without a time counts as used when it was written, so the cursor may be
lost. On disk are only ids of existing items and times, never words. No reply waits for the disk.
Independent of what is done with the times.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.ports import Clock
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Listener
from discoclaw.memory.cursors import Cursors, read
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import session_name
from discoclaw.store.port import CURSORS, Documents

log = logging.getLogger(__name__)

MOST_ITEMS = 10_000
_PREFIX = "access-"
MOST_SUBJECTS = 2_000
"""The most subjects that stay in RAM after they are written."""


@dataclass(slots=True)
class _Seen:
    """One subject in RAM. `complete`: it includes what was on disk."""

    times: dict[str, int] = field(default_factory=dict)
    complete: bool = False


class LastUsed(PersonalData, Listener):
    """Times of use (ms) of items, by subject. A commit to `memory` counts as a use of its items.

    Times are stored for at most `most_items` items of a subject, the newest ones.
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
        self._unsaved: dict[str, None] = {}
        """The subjects of which RAM has more than the disk."""

    def touch(self, subject: str, item_ids: Iterable[str], *, at: int | None = None) -> None:
        """Record that items were stored or found, now or `at` (ms). Never blocks, never lowers a time."""
        when = self._clock() if at is None else at
        seen: _Seen | None = None
        for item_id in item_ids:
            seen = seen or self._seen.setdefault(subject, _Seen())
            seen.times[item_id] = max(seen.times.get(item_id, 0), when)
            self._unsaved[subject] = None

    def of(self, subject: str) -> Mapping[str, int]:
        """The times in RAM, by item id. An item without one was last used when it was written."""
        seen = self._seen.get(subject)
        return dict(seen.times) if seen is not None else {}

    def complete(self, subject: str) -> bool:
        """Whether RAM has all times of a subject."""
        seen = self._seen.get(subject)
        return seen is not None and seen.complete and self._cursors.documents.in_touch

    async def load(self, subject: str) -> Mapping[str, int]:
        """Return all times of a subject, from disk if need be."""
        if not self.complete(subject):
            erased_at = self._memory.erased_at(subject)
            known = _times(await self._cursors.get(_cursor(subject)))
            if self._memory.erased_at(subject) == erased_at:
                seen = self._seen.setdefault(subject, _Seen())
                seen.times = _newer(known, seen.times)
                seen.complete = self._cursors.documents.in_touch
        return self.of(subject)

    async def flush(self) -> None:
        """Write what is new. What the disk refuses is written the next time."""
        for subject in list(self._unsaved):
            await self._save(subject)
        written = (subject for subject in self._seen if subject not in self._unsaved)
        for subject in list(islice(written, max(0, len(self._seen) - MOST_SUBJECTS))):
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
                return None  # erased meanwhile, so nothing of it may be written
            times = {key: at for key, at in _newer(_times(known), seen.times).items() if key in existing}
            newest = sorted(times, key=lambda key: (-times[key], key))[: self._most_items]
            seen.times = {key: times[key] for key in newest}
            seen.complete = True
            self._unsaved.pop(subject, None)
            wanted = seen.times != known
            return dict(seen.times) if wanted else None

        written = await self._cursors.update(_cursor(subject), change)
        if wanted and not written and self._seen.get(subject) is seen:
            self._unsaved[subject] = None
        self._cursors.drop(_cursor(subject))  # its content is in RAM here already

    async def _existing(self, subject: str) -> Collection[str]:
        """The ids of all items of a subject, on every branch. Raises MemoryFault."""
        branches = await self._memory.branches(subject)
        return {key for name in branches.all for key in (await self._memory.view(subject, name)).items}

    def committed(self, subject: str, commit: Commit) -> None:
        """Count a commit as a use of the items it stores or expires."""
        ids = set()
        for event in commit.events:
            if event.event_type == "forget" and "link" not in event.ext:
                continue
            ids |= {event.ext.get("item", {}).get("id"), event.ext.get("link", {}).get("to")}
        self.touch(subject, sorted(one for one in ids if isinstance(one, str)))

    async def renewed(self, names: Collection[str]) -> None:
        """Have the times that another process wrote read before they are next needed."""
        begin = f"{CURSORS}/{_PREFIX}"
        for name in (one for one in names if one.startswith(begin)):
            if (seen := self._seen.get(name.removeprefix(begin).removesuffix(".json"))) is not None:
                seen.complete = False

    def forget(self, erasure: Erasure) -> None:
        self._seen.pop(erasure.subject, None)
        self._unsaved.pop(erasure.subject, None)


def kept(documents: Documents, subject: str) -> Mapping[str, int]:
    """The times (ms) on disk, for callers without a `LastUsed`. Blocking."""
    return _times(read(documents, session_name(_cursor(subject))))


async def bring(memory: Memory, cursors: Cursors, subject: str, times: Mapping[str, int]) -> None:
    """Note when items were last used elsewhere, for callers without a `LastUsed`. Lowers no time."""
    items = (await memory.view(subject)).items
    own = {key: at for key, at in _times(times).items() if key in items}
    if own:
        await cursors.update(_cursor(subject), lambda known: _newer(_times(known), own))


def _cursor(subject: str) -> str:
    return f"{_PREFIX}{subject}"


def _times(cursor: Mapping[str, object]) -> dict[str, int]:
    """The times in a cursor; anything else in it is ignored."""
    return {key: at for key, at in cursor.items() if isinstance(at, int) and valid_ms(at) and at > 0}


def _newer(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The later time of each item."""
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {**one, **other}}

"""When each item was last stored or found: statistics beside the ledger, which reading must not change.

A use is recorded in RAM at once and written later, to one cursor for each subject, `access-<subject>`; an
erasing finds it by that name. An item without a time counts as used when it was written, so the cursor may be
lost. On disk are only ids of existing items and times, never words. No reply waits for the disk.
Independent of what is done with the times.
"""

import logging
from collections.abc import Iterable, Mapping

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Listener
from discoclaw.memory.cursors import Cursor, Cursors, read
from discoclaw.memory.subjects.store import Memory
from discoclaw.store.files import session_name
from discoclaw.store.port import Documents

log = logging.getLogger(__name__)

MOST_ITEMS = 10_000
_PREFIX = "access-"

Times = Mapping[str, int]


class LastUsed(Derived, Listener):
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
        self._new: dict[str, dict[str, int]] = {}
        """The times that are not written yet, by subject."""

    def touch(self, subject: str, item_ids: Iterable[str], *, at: int | None = None) -> None:
        """Record that items were stored or found, now or `at` (ms). Never blocks, never lowers a time."""
        if new := dict.fromkeys(item_ids, self._clock() if at is None else at):
            self._new[subject] = _newer(self._new.get(subject, {}), new)

    def of(self, subject: str) -> Times:
        """The times in RAM, by item id. An item without one was last used when it was written."""
        return _newer(_times(self._cursors.in_ram(_cursor(subject))), self._new.get(subject, {}))

    def complete(self, subject: str) -> bool:
        """Whether RAM has all times of a subject."""
        return self._cursors.at_hand(_cursor(subject))

    async def load(self, subject: str) -> Times:
        """Return all times of a subject, from disk if need be; those in RAM if it can't be read."""
        await self._cursors.get(_cursor(subject))
        return self.of(subject)

    async def flush(self) -> None:
        """Write what is new. What the disk refuses is written the next time."""
        for subject in list(self._new):
            try:
                await self._save(subject)
            except MemoryFault as fault:
                log.info("the access times of %s are written later: %s", subject, fault)

    # ------------------------------------------------------------------ inside

    async def _save(self, subject: str) -> None:
        """Write what is new about a subject. Raises MemoryFault."""
        new, erased_at = self._new.get(subject), self._memory.erased_at(subject)
        if new is None:
            return  # erased while others' were written
        branches = (await self._memory.branches(subject)).all
        existing = {key for name in branches for key in (await self._memory.view(subject, name)).items}

        current = False

        def work(known: Cursor) -> Cursor | None:
            nonlocal current
            if self._new.get(subject) is not new or self._memory.erased_at(subject) != erased_at:
                return None  # erased meanwhile, so nothing of it may be written; or there is more
            times = {key: at for key, at in _newer(_times(known), new).items() if key in existing}
            newest = sorted(times, key=lambda key: (-times[key], key))[: self._most_items]
            after = {key: times[key] for key in newest}
            current = after == known
            return None if current else after

        written = await self._cursors.update(_cursor(subject), work)
        if (written or current) and self._new.get(subject) is new:
            del self._new[subject]

    def committed(self, subject: str, commit: Commit) -> None:
        """Count a commit as a use of the items it stores or expires."""
        ids = set()
        for event in commit.events:
            if event.event_type == "forget" and "link" not in event.ext:
                continue
            ids |= {event.ext.get("item", {}).get("id"), event.ext.get("link", {}).get("to")}
        self.touch(subject, sorted(one for one in ids if isinstance(one, str)))

    def purge(self, purge: Purge, phase: Phase) -> None:
        if phase == "ram" and purge.erases:
            self._new.pop(purge.subject, None)


def kept(documents: Documents, subject: str) -> Times:
    """The times (ms) on disk, for callers without a `LastUsed`. Blocking."""
    return _times(read(documents, session_name(_cursor(subject))))


async def bring(memory: Memory, cursors: Cursors, subject: str, times: Times) -> None:
    """Note when items were last used elsewhere, for callers without a `LastUsed`. Lowers no time."""
    items = (await memory.view(subject)).items
    own = {key: at for key, at in _times(times).items() if key in items}
    if own:
        await cursors.update(_cursor(subject), lambda known: _newer(_times(known), own))


def _cursor(subject: str) -> str:
    return f"{_PREFIX}{subject}"


def _times(value: object) -> dict[str, int]:
    """The times in a cursor; anything else in it is ignored."""
    cursor = value if isinstance(value, dict) else {}
    return {key: at for key, at in cursor.items() if isinstance(at, int) and valid_ms(at) and at > 0}


def _newer(one: Times, other: Times) -> dict[str, int]:
    """The later time of each item."""
    return {**one, **{key: max(one.get(key, 0), at) for key, at in other.items()}}

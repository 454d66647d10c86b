"""Erases a whole subject, dated after every record, and the bot's own memory where it rests on their words.

`erasing` does the work; this module determines the time of the erasing, and notifies the other parts.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from discoclaw.core.bot_memory import BOT, HUMAN
from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.idle import HOUR_MS
from discoclaw.core.item import tidy_tags
from discoclaw.core.ports import Clock
from discoclaw.core.subject import user_of
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.changes import Changes
from discoclaw.memory.disk.files import in_thread
from discoclaw.memory.disk.port import Ledgers
from discoclaw.memory.erasing.erase import Erased, Eraser
from discoclaw.memory.erasing.groups import newest
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.entries import Entries, locked

log = logging.getLogger(__name__)


class SubjectEraser:
    """Erases subjects from `entries` and, through `eraser`, from everywhere else."""

    def __init__(
        self,
        eraser: Eraser,
        entries: Entries,
        ledgers: Ledgers,
        tombstones: Tombstones,
        changes: Changes,
        *,
        clock: Clock,
    ) -> None:
        self._eraser = eraser
        self._entries = entries
        self._ledgers = ledgers
        self._tombstones = tombstones
        self._changes = changes
        self._clock = clock

    async def erase(
        self, subject: str, asked_at: int, history: Callable[[str], Awaitable[History]]
    ) -> Erased:
        """Erase a subject, and the bot's own memory if that rests on their words (see `history`)."""
        # Before it, so that being killed in between leaves nothing; and after, for what was added meanwhile.
        before = await self._erase_soul_of(subject, asked_at, history)
        erased = await self._erase(subject, asked_at)
        soul = await self._erase_soul_of(subject, asked_at, history) or before
        return erased if soul is None else replace(erased, left=(*erased.left, *soul.left), soul=True)

    async def _erase_soul_of(
        self, subject: str, asked_at: int, history: Callable[[str], Awaitable[History]]
    ) -> Erased | None:
        """Erase the bot's own memory if anything in it rests on a person's words; otherwise return None."""
        user = user_of(subject)
        if user is None:
            return None
        known = BOT in self._entries
        try:
            commits = (await history(BOT)).commits.values()
            theirs = any(_rests_on(commit, user) for commit in commits)
        except MemoryFault as fault:
            log.error("the bot's own memory cannot be read, so it goes along with %s: %s", subject, fault)
            theirs = True
        if theirs:
            return await self._erase(BOT, asked_at)
        if not known:
            self._entries.drop_unused(BOT)  # it was opened only for this check
        return None

    async def _erase(self, subject: str, asked_at: int) -> Erased:
        entry = self._entries.use(subject)
        async with locked(entry):
            files, entry.files = entry.files, None
            last = files.branches.last_ms if files is not None else await in_thread(self._last_ms, subject)
            last = max(last, await in_thread(self._last_in_groups, subject))
            now = self._clock()
            # Records may be ahead of the clock, but one of the year 9999 must not bar learning till then.
            since = self._tombstones.erased_at(subject)
            at = max(now, asked_at, min(last, now + HOUR_MS), since + 1)
            erased = await self._eraser.erase(subject, at)
        self._entries.drop_unused(subject)
        for one in (subject, *erased.groups):
            self._changes.recorded(one)
        return erased

    def _last_in_groups(self, subject: str) -> int:
        """The time (ms) of the newest group record resting on a person's words, as far as readable."""
        user = user_of(subject)
        try:
            return newest(self._ledgers, user) if user is not None else 0
        except OSError:
            return 0

    def _last_ms(self, subject: str) -> int:
        """The time of a subject's newest record, as far as it can be read."""
        try:
            records = ledger.read(self._ledgers.log(subject)).records
        except OSError:
            return 0
        return max((ms_of_iso(record.timestamp) for record in records), default=0)


def _rests_on(commit: Commit, user: str) -> bool:
    """Whether a commit of the bot's own memory is attributed to a person's words, or is about them.

    An item that was imported without its history is attributed only by its tag, which names the person.
    """
    tagged = (tidy_tags(event.ext.get("item", {}).get("tags")) for event in commit.events)
    return commit.metadata.get(HUMAN) == user or any(user in tags for tags in tagged)

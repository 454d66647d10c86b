"""Hears of erasings that another process carries out, and drops what only this process has.

It hears of the intent twice. First it says which conversations it knows to have words of the person, drops
them from RAM and from this machine, and waits until what is being written is done. When the files are gone,
it drops what it may have read meanwhile. Of an erasing that took place while it was cut off, only the
tombstone is left. See `erase`.
"""

import logging
from collections.abc import Collection

from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import Erasure, Registry, Removed
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.erasing.intents import Intent, Intents
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.store.files import in_thread


class Hearing:
    """Follows the erasings of other processes, in the registered parts and in `cursors`."""

    def __init__(
        self, intents: Intents, tombstones: Tombstones, personal: Registry, cursors: Cursors
    ) -> None:
        self._intents = intents
        self._tombstones = tombstones
        self._personal = personal
        self._cursors = cursors
        self._followed: dict[str, int] = {}
        """The times (ms) of the erasings that were followed to their end, by subject."""

    def catch_up(self) -> None:
        """Read the tombstones that other processes added. Blocking. Raises MemoryFault."""
        self._tombstones.catch_up()

    async def heard(self, subject: str) -> bool:
        """Drop everything about a subject that another process erases, here and on this machine.

        The caller holds the subject's lock. Returns whether the erasing is unfinished. Raises MemoryFault; it
        is then to be called again before this process counts as having heard of it.
        """
        before = self._intents.pending.get(subject)
        intent = await in_thread(self._intents.read_again, subject)
        unfinished = intent is not None and intent.at is not None
        going = intent if unfinished else before
        if going is None or going.at is None:
            going = await in_thread(self._missed, subject, self._personal.in_ram(subject))
        if going is not None and going.at is not None:
            self._intents.take(subject, going)  # so that nobody reads anything of it again
            if unfinished:
                known = self._personal.in_ram(subject)
                going = await in_thread(self._add, going, going.at, known)
            await self._let_go(going.erasure(going.at or 0))
            if not unfinished:
                self._followed[subject] = going.at or 0
        self._intents.take(subject, intent)
        return unfinished

    def _missed(self, subject: str, known: Collection[str]) -> Intent | None:
        """An erasing that began and ended while this process was cut off. Raises MemoryFault."""
        self._tombstones.catch_up()
        at = self._tombstones.erased_at(subject)
        new = at > self._followed.get(subject, -1)
        return Intent(subject, at, tuple(sorted(known))) if new else None

    async def _let_go(self, erasure: Erasure) -> None:
        async with self._cursors.alone():
            forget(self._personal, erasure)
            async with self._personal.exclusive(erasure):
                left = await in_thread(self._erase_here, erasure)
        if left:
            raise MemoryFault(f"{erasure.subject}: this machine still has what was erased: {'; '.join(left)}")

    def _add(self, intent: Intent, at: int, known: Collection[str]) -> Intent:
        """Count a subject as erased, and add to the intent what only this process knows."""
        try:
            self._tombstones.note(intent.subject, at)
            return self._intents.widen(intent, known, self._personal.outside(intent.subject))
        except OSError as error:
            raise MemoryFault(f"the erasing of {intent.subject} could not be followed: {error}") from error

    def _erase_here(self, erasure: Erasure) -> tuple[str, ...]:
        """Remove what lies on this machine alone. Returns what could not be removed."""
        return sum((part.erase(erasure) for part in self._personal if part.local), Removed()).left


# The first step of an erasing that touches what people said: every registered part drops it from RAM.

log = logging.getLogger(__name__)


def forget(personal: Registry, erasure: Erasure) -> None:
    """Remove what all parts have in RAM. Never blocks."""
    for part in personal:
        try:
            part.forget(erasure)
        except Exception:  # deliberately broad: whatever fails in RAM, the files must go
            log.exception("%s: what %s has in RAM could not be removed", erasure.subject, part.name)

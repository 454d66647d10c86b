"""The mirror: brings what is on disk into the outbox, some minutes after it changed.

    a record is appended, a file changes  →  touch(unit)
    within `flush_s`, or at once for what a person asked to remember  →  views.look(unit)
    what differs from what is published  →  encrypted, signed, and put into the outbox in one transaction

It follows the ledger with a cursor that is kept in the outbox, together with what it led to. What changed
while the program was down is found at the start. A unit that fails is tried again, and the others go on; the
writer of memory never waits for any of it, and disk and processor are kept busy in threads only.

Where somebody erases their memory, everything that was published of it is overwritten with tombstones, and
asked to be deleted, before it is forgotten here. That is a step of the erasing (`memory/erase`), and done
again until it is done: from then on the outbox holds nothing of it, and delivers what is left to do. That a
relay deletes anything can only be requested. Knows nothing about relays.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection
from typing import Final

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.ports import Clock
from discoclaw.core.subject import dm_of, group_of, person_of, user_of, user_subject
from discoclaw.memory.changes import SESSION, Listener
from discoclaw.memory.disk.files import in_thread
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.outgoing.compare import Known, all_gone, difference, index
from discoclaw.nostr.outgoing.outbox import Outbox
from discoclaw.nostr.outgoing.scribe import Publication, Scribe
from discoclaw.nostr.outgoing.views import CHOSEN, NOTHING_SEEN, Look, Published, Views
from discoclaw.nostr.schemas import Pen
from discoclaw.work import RETRY_S, Worker

log = logging.getLogger(__name__)

STEP: Final = "nostr"
"""The step of an erasing that is done here."""
PURGE: Final = "purge"
"""The outbox's note that what was erased may be left in the files of our own relay: "1" then."""
INDEX_UNIT: Final = "index"
"""The unit of the events that say what else there is."""
SLICE: Final = 300
"""Events that are signed and put in one go: about a tenth of a second."""
_BY_HAND = ("command", "button")
_BY_TOOL = "memory_"


class Mirror(PersonalData, Listener):
    """Mirrors `memory` as `views` show it, signed by `pen`. `poke` is called when the outbox has news,
    `erased` when what is to be done about somebody's erasing is there.

    Nothing is published before `catch_up`, which finds all that changed until then: whoever recovers first
    lets the outbox know what is published already.
    """

    name = "mirror"

    def __init__(
        self,
        memory: Memory,
        views: Views,
        pen: Pen,
        outbox: Outbox,
        *,
        clock: Clock,
        flush_s: float = 300.0,
        gap_s: float = 1.0,
        retry_s: float = RETRY_S,
        poke: Callable[[], None] = lambda: None,
        erased: Callable[[], None] = lambda: None,
    ) -> None:
        self._memory = memory
        self._views = views
        self._pen = pen
        self._outbox = outbox
        self._poke = poke
        self._erased = erased
        self._scribe = Scribe(pen, clock=clock, versions=outbox.versions)
        self._flush_s = flush_s
        self._worker = Worker("nostr", self._work, gap_s=gap_s, retry_s=retry_s)
        self._awake = False
        self._stop = threading.Event()
        self._whole: set[str] = set()
        self._sessions: dict[str, frozenset[str]] = {}

    # ------------------------------------------------------------------ what is to be done

    def touch(self, unit: str, *, soon: bool = False) -> None:
        """Something of a unit changed on disk; `soon`: somebody waits for it. Never blocks."""
        if soon and self._awake:
            self._worker.note(unit, first=True)
        elif self._awake:
            self._worker.note(unit, self._flush_s)

    async def catch_up(self, *, whole: bool = False) -> None:
        """Queue everything that may have changed; `whole`: every record is compared, also those known."""
        self._awake = True
        for subject in self._memory.pending_erasures(STEP):
            self._worker.note(subject, first=True)
        try:
            units = await asyncio.to_thread(self._units)
            again = units if whole else await asyncio.to_thread(self._in_clear, units)
        except (OSError, MemoryFault) as error:
            log.warning("what changed meanwhile can not be found: %s", error)
            return
        self._whole.update(again)
        for unit in units:
            self._worker.note(unit)
        self._worker.note(INDEX_UNIT)

    async def push(self, *, whole: bool = False) -> None:
        """Bring everything into the outbox now, as far as that can be done; see `catch_up`."""
        await self.catch_up(whole=whole)
        self._worker.hurry()
        await self.settle()
        self._worker.hurry()  # the index, once all it is about is there
        await self.settle()

    @property
    def waiting(self) -> int:
        """How many units are still to be brought into the outbox."""
        return self._worker.waiting

    async def start(self) -> None:
        """Nothing to start: `catch_up` comes once it is known what is published already."""

    async def settle(self) -> None:
        """Wait until nothing is due; what was touched lately, or failed, waits for its time."""
        await self._worker.settle()

    async def close(self) -> None:
        """Stop; what is left is found again at the next start."""
        self._stop.set()
        await self._worker.close(0)

    # ------------------------------------------------------------------ what memory says

    def recorded(self, subject: str) -> None:
        self.touch(subject, soon=subject in self._memory.pending_erasures(STEP))

    def committed(self, subject: str, commit: Commit) -> None:
        by = str(commit.metadata.get("by"))
        if by in _BY_HAND or by.startswith(_BY_TOOL):
            self.touch(subject, soon=True)

    def written(self, unit: str) -> None:
        self.touch(unit)

    def chosen(self, user_id: str) -> None:
        self.touch(CHOSEN, soon=True)

    # ------------------------------------------------------------------ what an erasing asks

    def outside(self, subject: str) -> Collection[str]:
        return (STEP,)

    def forget(self, erasure: Erasure) -> None:
        """Which summaries went along, and are to be deleted on relays."""
        known = self._sessions.get(erasure.subject, frozenset())
        self._sessions[erasure.subject] = known | erasure.sessions

    # ------------------------------------------------------------------ one unit

    async def _work(self, unit: str) -> None:
        """Bring one unit up to date. Raises MemoryFault and OSError; it is then tried again."""
        if unit == INDEX_UNIT:
            if await in_thread(self._index):
                self._poke()
            return
        if unit in self._memory.pending_erasures(STEP):
            await self._erase(unit)
        if (why := self._memory.eraser.why_not(_whose(unit))) is not None:
            log.info("%s", why)  # what is left of it must not be published again
            return
        if await in_thread(self._flush, unit, whole=unit in self._whole):
            self._news()
        self._whole.discard(unit)

    def _news(self) -> None:
        self._poke()
        self._worker.note(INDEX_UNIT, self._flush_s)

    def _units(self) -> list[str]:
        """Every unit on disk. What is published of others is kept, which is said."""
        units = self._views.units()
        pending = self._memory.pending_erasures(STEP)
        here = {self._views.names.mark(unit) for unit in (*units, *pending)}
        lost = [mark for mark in self._outbox.units() if mark not in here and self._outbox.cursor(mark)]
        if lost:
            log.warning(
                "%d memories that are mirrored are not on this disk; nothing is deleted on relays, and "
                "`discoclaw nostr recover` looks for them there",
                len(lost),
            )
        return units

    def _in_clear(self, units: Collection[str]) -> list[str]:
        """Those of which something is in clear, where nothing may be any more. Blocking."""
        clear = set() if self._pen.in_clear else self._outbox.in_clear()
        return [unit for unit in units if self._views.names.mark(unit) in clear] if clear else []

    def _index(self) -> bool:
        """Publish what is new of the index; whether there was anything. Blocking."""
        return self._publish(INDEX_UNIT, index(self._outbox.index()), NOTHING_SEEN)

    def _flush(self, unit: str, *, whole: bool = False, erasing: bool = False) -> bool:
        """Publish what is new of a unit; whether there was anything. Blocking."""
        mark = self._views.names.mark(unit)
        seen = Published(self._outbox.cursor(mark), self._outbox.meta(_key(mark)) or "")
        if erasing and seen.size:  # however short the ledger is now: that is how it is to be
            self._outbox.put(mark, [], cursor=0)
            seen = NOTHING_SEEN
        look = self._views.look(unit, seen, whole=whole)
        return self._publish(unit, look, seen, erasing=erasing)

    def _publish(self, unit: str, look: Look, seen: Published, *, erasing: bool = False) -> bool:
        """Put into the outbox what differs from what is published; whether there was anything. Blocking."""
        mark = self._views.names.mark(unit)
        known = self._known(mark, look)
        found = difference(look, known, in_clear=self._pen.in_clear, erasing=erasing)
        if found.lost:
            log.warning(
                "%s: %d mirrored records are not on this disk; nothing is deleted on relays, and `discoclaw "
                "nostr recover` looks for them there",
                unit,
                found.lost,
            )
        plain = [change for change in found.changes if not change.purge]
        # What withholds or deletes is one transaction; of the rest each slice may stand for itself.
        self._put(mark, [change for change in found.changes if change.purge], at_once=erasing)
        for start in range(0, len(plain), SLICE):
            if self._stop.is_set():
                return bool(found.changes)  # found again at the next start
            self._put(mark, plain[start : start + SLICE])
        if look.seen != seen and look.seen.size:
            self._outbox.put(mark, [], cursor=look.seen.size)
            self._outbox.set_meta(_key(mark), look.seen.mark)
        return bool(found.changes)

    def _known(self, mark: str, look: Look) -> Known:
        """What is published of a unit, and under whatever address something is wanted."""
        known = dict(self._outbox.known(mark))
        for address in ((one.kind, one.d) for one in look.wanted):
            if address not in known and (row := self._outbox.latest(*address)) is not None:
                known[address] = row
        return known

    def _put(self, mark: str, changes: list[Publication], *, at_once: bool = False) -> None:
        if changes:
            self._outbox.put(mark, self._scribe.sign(changes, at_once=at_once))

    # ------------------------------------------------------------------ erasing

    async def _erase(self, subject: str) -> None:
        """Overwrite and delete what was published of somebody who was erased. Raises MemoryFault.

        Done twice it is done once. Groups are looked at too: records that rest on the person's words are gone
        from their ledgers. It is finished only when nothing of the person is left on the disk.
        """
        user_id = user_of(subject)
        own = [subject] if user_id is None else [subject, f"{SESSION}{dm_of(user_id)}"]
        for unit in own:
            await in_thread(self._overwrite, unit, subject)
        self._poke()
        self._worker.note(INDEX_UNIT)
        if self._memory.eraser.why_not(subject) is not None:
            return
        if user_id is not None:
            for unit in await in_thread(self._views.units):
                if group_of(unit) is not None:
                    await in_thread(self._flush, unit, whole=True, erasing=True)
                elif unit.startswith(SESSION):
                    self._worker.note(unit, first=True)
            for session in self._sessions.pop(subject, ()):
                await in_thread(self._flush, f"{SESSION}{session}", erasing=True)
        await self._memory.finish_step(subject, STEP)
        self._erased()

    def _overwrite(self, unit: str, subject: str) -> None:
        """Leave nothing of a unit in the outbox but tombstones and requests to delete. Blocking."""
        mark = self._views.names.mark(unit)
        changes = all_gone(self._outbox.known(mark))
        self._outbox.set_meta(PURGE, "1")  # before the erasing is done: nobody comes back to it then
        self._put(mark, changes, at_once=True)
        self._outbox.set_meta(_key(mark), "")
        self._outbox.forget(mark, about=[self._views.names.subject(subject)])
        if changes:
            log.info("%d published events are overwritten, and asked to be deleted", len(changes))


def _key(mark: str) -> str:
    """The name of the note of what was seen of a unit's ledger."""
    return f"ledger:{mark}"


def _whose(unit: str) -> str:
    """The subject whose erasing holds a unit up: of a person's direct messages that is the person."""
    if unit.startswith(SESSION):
        user_id = person_of(unit.removeprefix(SESSION))
        return user_subject(user_id) if user_id is not None else unit
    return unit

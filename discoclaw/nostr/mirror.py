"""The mirror: brings what is on disk into the outbox, some minutes after it changed.

    a record is appended, a file changes                        touch(unit)
    within `flush_s`, or at once if a person asked to remember  views.desired(unit)
    what differs from what is published                         encrypted, signed, put into the outbox

It follows each ledger with a cursor, which the outbox stores after the events it led to. After a kill in
between, records are compared once more, and nothing is signed twice. What changed while the program was
down is found at the start. A unit that fails is tried again while the others go on. The writer of memory
never waits for any of this: all disk and CPU work is in threads.

When somebody erases their memory, everything published about them is replaced with tombstones, and its
deletion requested, before it is forgotten here. This is a step of the erasure (`memory/erasing`) and
repeated until it succeeds. Afterwards the outbox holds only tombstones and deletion requests of it. A
relay may ignore a deletion request; but it has replaced the events. Knows nothing about relays.
"""

import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from discoclaw.core.errors import MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.ports import Clock
from discoclaw.core.purge import ON_RELAYS, Derived, Phase, Purge
from discoclaw.core.subject import dm_of, group_of, group_subject, person_of, user_of, user_subject
from discoclaw.memory.changes import SESSION, Listener
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.documents import CHOSEN
from discoclaw.nostr.outbox import Outbox, UnitInventory
from discoclaw.nostr.schemas import APP, INVENTORY, Codec, EventTemplate, Names
from discoclaw.nostr.signing import Change, EventSigner, difference, tombstones_of
from discoclaw.nostr.units import NOTHING_PUBLISHED, DesiredState, LedgerCursor, Views
from discoclaw.store.files import in_thread
from discoclaw.store.port import GROUPS, Disk
from discoclaw.work import RETRY_S, Worker

log = logging.getLogger(__name__)

STEP: Final = ON_RELAYS
"""The name of the erasure's step that is done here."""
PURGE: Final = "purge"
"""A note in the outbox: "1" while erased events may be left in the files of the embedded relay."""
INVENTORY_UNIT: Final = "index"
"""The unit of the events that list what is published."""
SLICE: Final = 300
"""Events that are signed and stored in one go: about a tenth of a second."""
_BY_HAND = ("command", "button", "deletion", "edit")
_BY_TOOL = "memory_"


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds: until a change is published, between two runs for one unit, and after a failure."""

    flush_s: float = 300.0
    gap_s: float = 1.0
    retry_s: float = RETRY_S


USUAL_PACE = Pace()


class Mirror(Derived, Listener):
    """Mirrors `memory`: computes its desired state with `views`, signs with `codec`, stores in `outbox`.

    `wake` is called when the outbox has something new, `erased` when the tombstones of an erasure are in it.
    `gap_s` is the least time between two runs of a unit, `retry_s` the first pause after a failure.

    Nothing is published before `catch_up`, which finds everything that changed until then. So a recovery
    can run first and tell the outbox what is published already.
    """

    name = "mirror"

    def __init__(
        self,
        memory: Memory,
        views: Views,
        codec: Codec,
        outbox: Outbox,
        *,
        clock: Clock,
        pace: Pace = USUAL_PACE,
        wake: Callable[[], None] = lambda: None,
        erased: Callable[[], None] = lambda: None,
    ) -> None:
        self._memory = memory
        self._views = views
        self._codec = codec
        self._outbox = outbox
        self._wake_delivery = wake
        self._erased = erased
        self._signer = EventSigner(codec, clock=clock, versions=outbox.versions)
        self._pace = pace
        self._sent: Callable[[], Awaitable[None]] | None = None
        self._worker = Worker("nostr", self._work, gap_s=pace.gap_s, retry_s=pace.retry_s)
        self._is_ready = False
        self._stop = threading.Event()
        self._full: set[str] = set()
        self._asked: set[str] = set()  # subjects whose files are still to follow an urgent commit
        self._sessions: dict[str, frozenset[str]] = {}

    # ------------------------------------------------------------------ what is to be done

    def touch(self, unit: str, *, urgent: bool = False) -> None:
        """Note that something of a unit changed on disk. `urgent`: a person waits for it. Never blocks."""
        if urgent and self._is_ready:
            self._worker.note(unit, first=True)
        elif self._is_ready:
            self._worker.note(unit, self._pace.flush_s)

    async def catch_up(self, *, full: bool = False) -> None:
        """Queue everything that may have changed.

        `full`: compare every record, also those before the cursor.
        """
        self._is_ready = True
        # Erasures first: nothing of an erased person may be published in between.
        for subject in self._memory.pending_erasures(STEP):
            self._worker.note(subject, first=True)
        keyed_hash = self._views.names.keyed_hash

        def look() -> tuple[list[str], list[str]]:
            """Every unit on disk, and those to compare fully. What is published of others is kept."""
            units, pending = self._views.units(), self._memory.pending_erasures(STEP)
            here = set(map(keyed_hash, (*units, *pending)))
            lost = [one for one in self._outbox.units() if one not in here and self._outbox.cursor(one)]
            if lost:
                log.warning(
                    "%d mirrored memories are not on this disk; they stay on the relays, and "
                    "`discoclaw nostr recover` brings them back",
                    len(lost),
                )
            if full or self._codec.allow_plaintext:
                return units, units if full else []
            clear = self._outbox.plaintext_units()  # which isn't allowed any more
            return units, [unit for unit in units if keyed_hash(unit) in clear]

        try:
            units, again = await in_thread(look)
        except (OSError, MemoryFault) as error:
            log.warning("cannot find out what changed while the program was down: %s", error)
            return
        self._full.update(again)
        for unit in units:
            self._worker.note(unit)
        self._worker.note(INVENTORY_UNIT)

    async def push(self, *, full: bool = False) -> None:
        """Bring everything into the outbox now, as far as possible. For `full` see `catch_up`."""
        await self.catch_up(full=full)
        self._worker.hurry()
        await self.settle()
        self._worker.hurry()  # the inventory, once everything it lists is there
        await self.settle()

    @property
    def waiting(self) -> int:
        """How many units wait to be brought into the outbox."""
        return self._worker.waiting

    def open(self, sent: Callable[[], Awaitable[None]]) -> None:
        """Work again after a close. An erasure is over once `sent`, which raises MemoryFault, lets it."""
        self._sent, self._is_ready = sent, False
        self._stop.clear()
        self._worker = Worker("nostr", self._work, gap_s=self._pace.gap_s, retry_s=self._pace.retry_s)

    async def start(self) -> None:
        """Do nothing: `catch_up` is called once it is known what is published already."""

    async def settle(self) -> None:
        """Wait until nothing is due now. What was touched recently, or failed, is not waited for."""
        await self._worker.settle()

    async def close(self) -> None:
        """Stop. What is left is found again at the next start."""
        self._is_ready = False
        self._stop.set()
        await self._worker.close(0)

    # ------------------------------------------------------------------ events of the memory

    def recorded(self, subject: str) -> None:
        self.touch(subject, urgent=subject in self._memory.pending_erasures(STEP))

    def committed(self, subject: str, commit: Commit) -> None:
        # Only what a person asked for is urgent; what the loops learn can wait for the next flush.
        by = str(commit.metadata.get("by"))
        if by in _BY_HAND or by.startswith(_BY_TOOL):
            self._asked.add(subject)
            self.touch(subject, urgent=True)

    def written(self, unit: str) -> None:
        # A profile is written after the commit that it shows, and perhaps after that was mirrored.
        self.touch(unit, urgent=unit in self._asked)
        self._asked.discard(unit)

    def chosen(self, user_id: str) -> None:
        self.touch(CHOSEN, urgent=True)

    # ------------------------------------------------------------------ erasures

    def outside(self, subject: str) -> Collection[str]:
        return (STEP,)

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Remember which summaries are erased with a person: their events have to go from relays too."""
        if phase == "ram" and purge.erases:
            known = self._sessions.get(purge.subject, frozenset())
            self._sessions[purge.subject] = known | purge.sessions

    # ------------------------------------------------------------------ one unit

    async def _work(self, unit: str) -> None:
        """Bring one unit up to date. Raises MemoryFault and OSError, after which the worker tries again."""
        if unit == INVENTORY_UNIT:
            desired = inventory(await in_thread(self._outbox.inventory))
            if await in_thread(self._publish, unit, desired, NOTHING_PUBLISHED):
                self._wake_delivery()
            return
        if unit in self._memory.pending_erasures(STEP):
            await self._erase(unit)
        subject = unit
        if unit.startswith(SESSION) and (user_id := person_of(unit.removeprefix(SESSION))) is not None:
            subject = user_subject(user_id)  # the erasure of a person holds up their direct messages
        if (why := self._memory.eraser.why_not(subject)) is not None:
            log.info("%s", why)  # an erasure is unfinished, and what it has left must not be published again
            return
        if await in_thread(self._flush, unit, full=unit in self._full):
            self._wake_delivery()
            self._worker.note(INVENTORY_UNIT, self._pace.flush_s)
        self._full.discard(unit)

    def _flush(self, unit: str, *, full: bool = False, erasing: bool = False) -> bool:
        """Publish what is new in a unit. Returns whether there was anything. Blocking."""
        unit_hash = self._views.names.keyed_hash(unit)
        seen = LedgerCursor(self._outbox.cursor(unit_hash), self._outbox.meta(_digest_note(unit_hash)) or "")
        if erasing and seen.size:  # a shorter ledger is intended here, and no sign of a lost disk
            self._outbox.put(unit_hash, [], cursor=0)
            seen = NOTHING_PUBLISHED
        desired = self._views.desired(unit, seen, full=full)
        return self._publish(unit, desired, seen, erasing=erasing)

    def _publish(
        self, unit: str, desired: DesiredState, seen: LedgerCursor, *, erasing: bool = False
    ) -> bool:
        """Put what differs from the published state into the outbox.

        Returns whether there was anything. Blocking.
        """
        unit_hash = self._views.names.keyed_hash(unit)
        published = dict(self._outbox.known(unit_hash))
        for address in ((one.kind, one.d) for one in desired.templates):
            # It may be listed under another unit: recovery doesn't always know whose tombstone it found.
            if address not in published and (row := self._outbox.latest(*address)) is not None:
                published[address] = row
        found = difference(desired, published, allow_plaintext=self._codec.allow_plaintext, erasing=erasing)
        if found.lost:
            log.warning(
                "%s: %d mirrored records are not on this disk; they stay on the relays, and "
                "`discoclaw nostr recover` brings them back",
                unit,
                found.lost,
            )
        plain = [change for change in found.changes if not change.purge]
        # What withholds or deletes is one transaction: half of it would leave something readable. Of the
        # rest, each slice is complete in itself.
        self._put(unit_hash, [change for change in found.changes if change.purge], erasing=erasing)
        for start in range(0, len(plain), SLICE):
            if self._stop.is_set():
                return bool(found.changes)  # found again at the next start
            self._put(unit_hash, plain[start : start + SLICE])
        if desired.ledger != seen and desired.ledger.size:
            self._outbox.put(unit_hash, [], cursor=desired.ledger.size)
            self._outbox.set_meta(_digest_note(unit_hash), desired.ledger.digest)
        return bool(found.changes)

    def _put(self, unit_hash: str, changes: list[Change], *, erasing: bool = False) -> None:
        if changes:
            self._outbox.put(unit_hash, self._signer.sign(changes, erasing=erasing))

    # ------------------------------------------------------------------ erasing

    async def _erase(self, subject: str) -> None:
        """Replace and delete what was published about somebody who was erased. Idempotent.

        Raises MemoryFault.

        Groups are published anew too: the erasure has removed records from their ledgers that rest on the
        person's words. The step is finished only when nothing about the person is left on the disk.
        """
        user_id = user_of(subject)
        own = [subject] if user_id is None else [subject, f"{SESSION}{dm_of(user_id)}"]

        def overwrite(unit: str) -> None:
            """Replace a unit in the outbox with tombstones and deletion requests."""
            unit_hash = self._views.names.keyed_hash(unit)
            changes = tombstones_of(self._outbox.known(unit_hash).values())
            self._outbox.set_meta(PURGE, "1")  # before the step ends: nothing would remind us then
            self._put(unit_hash, changes, erasing=True)
            self._outbox.set_meta(_digest_note(unit_hash), "")
            self._outbox.forget(unit_hash, about=[self._views.names.subject(subject)])
            if changes:
                log.info("replaced %d published events and requested their deletion", len(changes))

        for unit in own:
            await in_thread(overwrite, unit)
        self._wake_delivery()
        self._worker.note(INVENTORY_UNIT)
        if self._memory.eraser.why_not(subject) is not None:
            return
        if user_id is not None:
            for unit in await in_thread(self._views.units):
                if group_of(unit) is not None:
                    await in_thread(self._flush, unit, full=True, erasing=True)
                elif unit.startswith(SESSION):
                    self._worker.note(unit, first=True)
            for session in self._sessions.pop(subject, ()):
                await in_thread(self._flush, f"{SESSION}{session}", erasing=True)
        if self._sent is not None:
            await self._sent()
        await self._memory.finish_step(subject, STEP)
        self._erased()


def _digest_note(unit_hash: str) -> str:
    """The outbox's note with the hash of a unit's published ledger."""
    return f"ledger:{unit_hash}"


# ---------------------------------------------------------------------- the inventory

MAX_UNITS: Final = 250
"""Units in one event of the inventory. At about 130 bytes each, that stays below the size limit."""


def inventory(units: Mapping[str, UnitInventory]) -> DesiredState:
    """The events that say what is published of every unit.

    With them, recovery notices a relay that serves less.

    Units are sharded by the first hex digits of their hash, as many as needed for each shard to fit an event.
    """
    digits = 1
    while max(Counter(unit[:digits] for unit in units).values(), default=0) > MAX_UNITS:
        digits += 1
    shards: dict[str, dict[str, list[object]]] = {}
    for unit, one in sorted(units.items()):
        shards.setdefault(unit[:digits], {})[unit] = [one.records, one.digest, one.newest]
    templates = [
        EventTemplate(APP, f"{INVENTORY}{shard}", {"units": found}) for shard, found in sorted(shards.items())
    ]
    return DesiredState(views=tuple(templates), complete=frozenset({APP}))


# ----------------------------------------------------------------------
# Whether an erasure needs a step on relays although no mirror is running: something was published before.


class RelayCopies(Derived):
    """The copies on relays, according to the outbox at `outbox`.

    An erasure needs the step if the outbox has anything of a subject, or of any group: a group's memory
    may rest on the subject's words. Without `names` (there is no key), or if the outbox can't be read,
    nobody can tell; then the step is needed as soon as the outbox has anything. The outbox may also be
    `elsewhere`, on the machine of another process.
    """

    name = "copies on relays"

    def __init__(
        self, outbox: Path, disk: Disk, names: Callable[[], Names | None], *, elsewhere: bool = False
    ) -> None:
        self._elsewhere = elsewhere
        self._outbox = outbox
        self._disk = disk
        self._names = names

    def outside(self, subject: str) -> Collection[str]:
        if self._elsewhere:
            return (STEP,)
        if not self._outbox.exists():
            return ()
        names = self._names()
        try:
            with closing(Outbox.to_read(self._outbox, tidy=True)) as outbox:
                published = set(outbox.units())
            if names is None:
                return (STEP,) if published else ()
            units = [subject]
            if (user_id := user_of(subject)) is not None:
                units.append(f"{SESSION}{dm_of(user_id)}")
                units += [one for one, _ in self._disk.ledgers.by_age() if group_of(one) is not None]
                channels = self._disk.documents(GROUPS).names()
                units += [group_subject(name.removesuffix(".json")) for name in channels]
            return (STEP,) if published.intersection(map(names.keyed_hash, units)) else ()
        except (MemoryFault, OSError):
            return (STEP,)

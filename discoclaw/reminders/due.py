"""Who is due next, and giving each reminder to its person once.

The ledgers are the truth. From them come two kinds of cursors, which may be lost:

    reminder-<user id>   `next`: when (ms) that person is next due; `claim`: what is being sent to them
    reminders            `people`: how many of those there are; `zone`: of whoever has told us none

If these don't agree, all ledgers are looked at again. `Reminding.look` follows the ledgers, so it doesn't
matter who changed a reminder, by a command, an undo or another process. Only the earliest time is waited for,
and while nobody has a reminder, nothing runs. A wall clock may be put forward, so the wait is looked at once
a minute; nothing is due before it is, whatever the clock did.

Once each, whenever the process is killed:

    1  the claim is written: which reminders, due when
    2  the message is sent, with a nonce that the claim gives, so Discord drops a quick repeat
    3  the ledger gets "delivered", with the time when a repeating one is due again
    4  the claim goes

A claim that is found is one of a run that ended in between: the channel is looked at for its message before
it is sent again. So it is for all that is late, since a claim may be lost, and a ledger may be restored that
doesn't know yet that it was sent. One process at a time does this (`app/services.Sole`). Knows nothing about
Discord.
"""

import asyncio
import hashlib
import heapq
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.reminder import Reminder
from discoclaw.core.subject import user_of, user_subject
from discoclaw.core.text import utf16_length
from discoclaw.core.zones import zone_of
from discoclaw.memory.changes import Listener
from discoclaw.memory.cursors import Cursor, Cursors, read_surely
from discoclaw.memory.kept import JSON, json_names
from discoclaw.memory.subjects.follow import Follower
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.reminders.when import due, later
from discoclaw.store.files import read_in_thread
from discoclaw.work import Worker

log = logging.getLogger(__name__)

OLD_MS: Final = 86_400_000
"""Reminders that are later than this come as one message for each place."""
LATE_MS: Final = 60_000
"""One that is later than this may have been sent already."""
MOST_APART: Final = 3
"""So many that are due at once in one place come as messages of their own; more as one."""
MOST_TOGETHER: Final = 20
ROOM: Final = 1_750
AROUND: Final = 40
"""How many characters the reminders in one message may have, and what stands around each."""
LOOK_S: Final = 60.0
"""How often a wait for the next time is looked at, because a wall clock may be put forward."""
RETRY_S: Final = 15.0
LONGEST_S: Final = 300.0
AT_ONCE: Final = 4
PREFIX: Final = "reminder-"
ALL: Final = "reminders"

Given: TypeAlias = Literal["sent", "held"]
"""What became of a message: `held` if its person can't be reached in any way."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Reminders that are due in one place, as one message. `due` are their times (ms), in the same order.

    `token` is the same for each try. `since` (ms) is when the message may first have been sent, if that may
    have been done already; else None.
    """

    user_id: str
    reminders: Sequence[Reminder]
    due: Sequence[int]
    now_ms: int
    zone: tzinfo
    token: str
    since: int | None = None


Send: TypeAlias = Callable[[Delivery], Awaitable[Given]]
"""Gives reminders to their person. Raises ChatError if that is to be tried again."""


class Reminding(Derived, Listener):
    """Gives people their reminders. `zone` is that of those who have told us none."""

    name = "reminders that are due"

    def __init__(
        self,
        memory: AnyMemory,
        cursors: Cursors,
        opted_out: Callable[[str], bool],
        send: Send,
        *,
        zone: tzinfo,
        clock: Clock,
    ) -> None:
        self._memory = memory
        self._cursors = cursors
        self._opted_out = opted_out
        self._send = send
        self._zone = zone
        self._clock = clock
        self._next: dict[str, int] = {}
        """When (ms) each person is next due."""
        self._order: list[tuple[int, str]] = []
        """The same as a heap, with times that no longer count."""
        self._follower = Follower("reminders", self.look, ledgers=memory.ledgers, cursors=cursors)
        self._worker = self._new_worker()
        self._unsaved: set[str] = set()
        """Whose time the disk refused."""
        self._giving: set[str] = set()
        self._looking = asyncio.Lock()
        """Held while it is found out when somebody is next due, so that the newest answer is the last."""
        self._timer: asyncio.TimerHandle | None = None
        self._reached = False
        """Whether Discord can be reached, so that what is due can be given."""

    def _new_worker(self) -> Worker[str]:
        return Worker("reminders", self._give, at_once=AT_ONCE, retry_s=RETRY_S, longest_s=LONGEST_S)

    # ------------------------------------------------------------------ the lifecycle

    async def start(self) -> None:
        """Read who is due when. What is due is given as soon as Discord can be reached (`ready`)."""
        known, whole = await read_in_thread(self._read)
        if not whole:
            await self._cursors.remove(["follow-reminders"])  # so that it looks at all ledgers
        self._next, self._order = {}, []
        for user_id, at in known.items():
            self._note(user_id, at)
        self._worker = self._new_worker()
        await self._worker.start()
        await self._follower.start()

    async def ready(self) -> None:
        """Discord can be reached: take in what changed since the last run, and give what is due."""
        if self._follower.started:
            self._reached = True
            self._begin_due()
            await self._follower.catch_up()

    async def settle(self) -> None:
        """Wait until everything that is due was given, or tried in vain."""
        await self._follower.settle()
        self._begin_due()
        self._worker.hurry()
        await self._worker.settle()
        await self._follower.settle()

    async def close(self) -> None:
        """Stop; the next start finds what is left."""
        self._reached = False
        self._begin_due()
        await self._worker.close()
        await self._follower.close()

    # ------------------------------------------------------------------ who is due when

    def recorded(self, subject: str) -> None:
        self._follower.recorded(subject)

    async def renewed(self, names: Collection[str]) -> None:
        await self._follower.renewed(names)

    def chosen(self, user_id: str) -> None:
        self._follower.touch(user_subject(user_id))

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Forget when somebody is due who was erased. Their cursors go with them."""
        if purge.erases and phase == "ram":
            self._next.pop(purge.user_id, None)

    async def look(self, subject: str) -> None:
        """Find out when a person is next due, and remember it. Raises MemoryFault and OSError."""
        user_id = user_of(subject)
        if user_id is None or user_id in self._giving:  # what is being given is looked at afterwards
            return
        async with self._looking:
            times = [at for _, at in await self._waiting(subject)]
            await self._set(user_id, min(times, default=None))

    async def zone_of(self, subject: str) -> tzinfo:
        """The zone by whose clock a person's reminders are due, wherever they are said."""
        return zone_of((await self._memory.view(subject)).active(), self._zone, in_dm=True)

    async def _waiting(self, subject: str) -> list[tuple[Reminder, int]]:
        """A person's reminders that are still to be given, each with its time (ms), the earliest first."""
        reminders = (await self._memory.branches(subject)).reminders
        if not reminders or self._opted_out(user_of(subject) or ""):
            return []
        zone = await self.zone_of(subject)
        found = [(one, due(one, zone)) for one in reminders.values() if one.rule or not one.held]
        return sorted(found, key=lambda pair: (pair[1], pair[0].id))

    async def _set(self, user_id: str, at: int | None) -> None:
        if self._next.get(user_id) == at and user_id not in self._unsaved:
            return
        known = len(self._next)
        self._next.pop(user_id, None)
        if at is None:
            await self._cursors.remove([f"{PREFIX}{user_id}"])
        else:
            self._note(user_id, at)
            self._unsaved.add(user_id)
            await self._update(user_id, lambda row: {**row, "next": at})
        self._unsaved.discard(user_id)
        if len(self._next) != known:
            await self._cursors.put(ALL, {"people": len(self._next), "zone": str(self._zone)})

    def _note(self, user_id: str, at: int) -> None:
        self._next[user_id] = at
        heapq.heappush(self._order, (at, user_id))
        if self._order[0] == (at, user_id):
            self._begin_due()

    async def _update(self, user_id: str, change: Callable[[Cursor], Cursor]) -> None:
        """Change a person's cursor. Raises OSError if it can't be written."""
        if not await self._cursors.update(f"{PREFIX}{user_id}", change):
            raise OSError(f"when {user_id} is due could not be written")

    def _read(self) -> tuple[dict[str, int], bool]:
        """When each person is due by the cursors, and whether these are all. Blocking. Raises OSError."""
        folder = self._cursors.documents
        everybody = read_surely(folder, f"{ALL}{JSON}")
        found: dict[str, int] = {}
        for name in json_names(folder) if everybody.get("people") else ():
            if name.startswith(PREFIX):
                at = read_surely(folder, name).get("next")
                if isinstance(at, int):
                    found[name.removeprefix(PREFIX).removesuffix(JSON)] = at
        whole = everybody.get("people", 0) == len(found)
        return found, whole and everybody.get("zone", str(self._zone)) == str(self._zone)

    # ------------------------------------------------------------------ waiting

    def _begin_due(self) -> None:
        """Have everybody given what is due, and wake up for whoever is next. Never blocks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_ms = self._clock()
        while self._order and self._reached:
            at, user_id = self._order[0]
            if self._next.get(user_id) == at and at > now_ms:
                wait_s = min((at - now_ms) / 1000, LOOK_S)
                self._timer = asyncio.get_running_loop().call_later(wait_s, self._begin_due)
                return
            heapq.heappop(self._order)
            if self._next.get(user_id) == at:  # else it was changed since
                self._worker.note(user_id)

    # ------------------------------------------------------------------ giving

    async def _give(self, user_id: str) -> None:
        """Give a person what is due. Raises ChatError, MemoryFault and OSError; it is then tried again."""
        self._giving.add(user_id)
        subject = user_subject(user_id)
        try:
            while (one := await self._taken(subject)) is not None:
                given = await self._send(one)
                done = partial(_noted, one=one, given=given)
                await self._memory.change(subject, "a reminder was due", done, by=ALL)
        finally:
            self._giving.discard(user_id)
        async with self._looking:
            waiting = await self._waiting(subject)
            at = min((at for _, at in waiting), default=None)
            if at is not None and at == self._next.get(user_id):
                self._note(user_id, at)  # a clock was put back, and it is no longer waited for
            await self._set(user_id, at)
        row = await self._cursors.get(f"{PREFIX}{user_id}")
        if "claim" in row and not _claimed(row, waiting):
            await self._update(user_id, lambda known: {"next": known["next"]} if "next" in known else {})

    async def _taken(self, subject: str) -> Delivery | None:
        """What is to be sent next: what a killed run may have sent already, or what is due now, claimed."""
        user_id, now_ms, erased_at = user_of(subject) or "", self._clock(), self._memory.erased_at(subject)
        waiting = await self._waiting(subject)
        zone = await self.zone_of(subject)
        row = await self._cursors.get(f"{PREFIX}{user_id}")
        batch = [(one, at) for one, at in waiting if at <= now_ms]
        if again := _claimed(row, batch):
            some, times = zip(*again, strict=True)
            claim: Any = row["claim"]
            return Delivery(user_id, some, times, now_ms, zone, str(claim["token"]), int(claim["at"]))
        if not batch:
            return None
        some, times = zip(*_together(batch, now_ms), strict=True)
        events = [one.event for one in some]
        token = hashlib.sha256(" ".join([user_id, *events]).encode()).hexdigest()[:16]
        if self._memory.erased_at(subject) != erased_at:
            return None
        new = {"token": token, "events": events, "at": now_ms}
        await self._update(user_id, lambda row: {**row, "claim": new})
        since = times[0] if times[0] < now_ms - LATE_MS else None
        return Delivery(user_id, some, times, now_ms, zone, token, since)


def _together(batch: Sequence[tuple[Reminder, int]], now_ms: int) -> Sequence[tuple[Reminder, int]]:
    """Those of the reminders that are due (not empty) which the next message has, as many as it can hold."""
    here = [pair for pair in batch if _place(pair[0]) == _place(batch[0][0])]
    old = [pair for pair in here if pair[1] < now_ms - OLD_MS]
    some, room = list[tuple[Reminder, int]](), ROOM
    for one, at in old if len(old) > 1 else here if len(here) > MOST_APART else here[:1]:
        room -= (
            utf16_length(one.text) + sum(not char.isalnum() for char in one.text) + len(" <t:1700000000:f> ")
        )
        if some and (room < 0 or len(some) == MOST_TOGETHER):
            break
        some.append((one, at))
    return some


def _claimed(row: Cursor, waiting: Iterable[tuple[Reminder, int]]) -> list[tuple[Reminder, int]]:
    """Those of the reminders that a cursor's claim is about, as they were when it was made."""
    match row.get("claim"):
        case {"token": str(), "events": list(events), "at": int()}:
            return [pair for pair in waiting if pair[0].event in events]
    return []


def _place(reminder: Reminder) -> tuple[str, bool]:
    return reminder.channel, reminder.private


def _noted(draft: Draft, one: Delivery, given: Given) -> None:
    """Note in the ledger that reminders were given. One that was changed meanwhile is due once more."""
    origin = Origin("inferred", evidence="it was due")
    for reminder in one.reminders:
        if draft.reminders.get(reminder.id) != reminder:
            continue
        after = later(reminder, one.now_ms, one.zone)
        if given == "held":
            draft.remind(replace(after or reminder, held=True), origin, "held")
        else:
            gone = after is None
            draft.remind(replace(after or reminder, held=False), origin, "delivered", gone=gone)

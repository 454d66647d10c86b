"""Erasing: removes every byte stored about a person, however often the program is killed in the middle.

1  the intent     erasing/<subject>.json {subject, at, sessions, todo}, synced before anything is touched
2  the tombstone  nothing said or recorded up to `at` is learned or imported again (`tombstones`)
    3  RAM            every registered part drops the person's words 4  the files      every registered
    part removes its files, while no part writes anything about the person 5  outside        what has to
    be removed elsewhere (`todo`: a message in the chat) is removed by the part responsible, with retries
    until it is done; by then the intent has only {subject, todo} 6  the intent     is removed

Step 4 covers every store that exists, in use or not. Every step can safely be repeated, and `resume`
finishes interrupted ones at the start. Until step 4 is done nothing is remembered about the person,
because files that the disk still holds could otherwise be read back as memory. If the intent cannot be
written, that is a fault, and nothing has happened.

Where several processes share the store, one of them erases at a time, under the lease LEASE. The others hear
of the intent (`hearing`): they drop what they have in RAM and on their own machine, wait until nothing is
being written about the person, and add the conversations that only they know to the intent. Step 4 begins
when all of them have. After it they drop once more what they may have read meanwhile. Whoever has the lease
next finishes what a killed process left.

Kept on purpose: other people's ledgers, and those of groups without the person's words, byte for byte;
the person's choices about being remembered, which outlive the memory; and what the bot does not own: the
talk in the chat, backups, exports, logs. A durable file saved after the erasing is the person's own edit,
but only its new items count: the old ones stay erased (see `subject`). Independent of Discord.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import Erasure, Registry, Removed
from discoclaw.core.processes import Processes
from discoclaw.core.subject import group_of
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.erasing.groups import EVERY, newest
from discoclaw.memory.erasing.hearing import forget
from discoclaw.memory.erasing.intents import Intent, Intents
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.store.files import in_thread
from discoclaw.store.port import Disk

log = logging.getLogger(__name__)

LEASE: Final = "erasing"
"""The lease of a process while it erases. It is taken before any lock, since the others may need theirs."""
OTHERS_S: Final = 10.0
"""The longest that an erasing waits for other processes at a time: twice as long as a dead one counts."""


@dataclass(frozen=True, slots=True)
class Erased:
    """The result of an erasing. `removed` counts files and entries: 0 if there was nothing.

    `sessions` are the conversations whose summaries were removed, `left` what could not be removed and why,
    `todo` the outside steps that remain. `soul`: the bot's personality was erased too. `groups` are the
    subjects of the groups that had words of the person. `waiting`: another process has not yet dropped what
    it has; it is waited for in the background.
    """

    subject: str
    at: int
    removed: int
    sessions: tuple[str, ...]
    left: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    soul: bool = False
    groups: tuple[str, ...] = ()
    waiting: bool = False


class Eraser:
    """Erases subjects from the registered parts. Callers hold the subject's lock, and the data folder.

    `cursors` say which summaries have words of a person, so nobody may write one from the first step to the
    last. `processes` share the disk.
    """

    def __init__(
        self,
        disk: Disk,
        intents: Intents,
        tombstones: Tombstones,
        personal: Registry,
        cursors: Cursors,
        processes: Processes,
    ) -> None:
        self._disk = disk
        self._intents = intents
        self._tombstones = tombstones
        self._personal = personal
        self._cursors = cursors
        self._processes = processes

    def newest_in_groups(self, user: str) -> int:
        """The time (ms) of the newest group record resting on a person's words. Blocking. Raises OSError."""
        return newest(self._disk, user)

    @property
    def pending(self) -> Mapping[str, Intent]:
        """The unfinished erasings, by subject."""
        return self._intents.pending

    def resume(self, now_ms: int) -> None:
        """Read the tombstones, and finish interrupted erasings.

        In a store that is shared they may be under way in another process: they are finished later. Blocking;
        call it before anything else is running. Raises MemoryFault.
        """
        if self._disk.shared:
            self.catch_up(now_ms)
            return
        self._tombstones.load()
        try:
            intents = self._intents.load(now_ms)
            for intent in intents:
                if intent.at is not None:
                    self._tombstones.add(intent.subject, intent.at)
        except OSError as error:
            raise MemoryFault(f"an erasing that was interrupted cannot be finished: {error}") from error
        for intent in intents:
            if intent.at is not None and not self._finish(intent, intent.erasure(intent.at)).left:
                log.info("%s: the erasing that was interrupted is finished", intent.subject)
        if waiting := [one for one in self.pending.values() if one.at is None]:
            steps = sorted({step for one in waiting for step in one.todo})
            log.info("%d erasings wait for a step outside: %s", len(waiting), ", ".join(steps))

    def catch_up(self, now_ms: int) -> None:
        """Read what other processes erase, if there are any. Blocking. Raises MemoryFault."""
        if not self._disk.shared:
            return
        try:
            self._tombstones.catch_up()
            for intent in self._intents.load(now_ms):
                if intent.at is not None:
                    self._tombstones.note(intent.subject, intent.at)
        except OSError as error:
            raise MemoryFault(f"what other processes erase cannot be read: {error}") from error

    def why_not(self, subject: str) -> str | None:
        """Why nothing may be remembered about a subject now; None if it may."""
        stuck = {group for intent in self.pending.values() for group in intent.stuck}
        if group_of(subject) is not None and {subject, EVERY} & stuck:
            return f"{subject} has words of somebody who was erased, which could not be removed (see the log)"
        intent = self.pending.get(subject)
        if intent is None or intent.at is None:
            return None
        return (
            f"{subject} was erased, and not everything could be removed (see the log); "
            "nothing is remembered until that is done: erase once more, or start again"
        )

    async def erase(self, subject: str, at: int, newest: Callable[[], int]) -> Erased:
        """Erase a subject. Raises MemoryFault if that cannot even be recorded; nothing has happened then.

        `newest` returns the time (ms) of what another process recorded last, which is erased too.
        """
        known = self._personal.in_ram(subject)
        async with self._cursors.alone():
            intent = await in_thread(self._begin, subject, at, known)
            forget(self._personal, intent.erasure(at))
            if not self._processes.shared:
                return await self._removed(intent, at)
        return await self._go_on(intent, at, newest)

    async def finish(self, subject: str, newest: Callable[[], int]) -> Erased | None:
        """Finish the erasing of a subject that another process began; None if there is none any more.

        Raises MemoryFault.
        """
        intent = await in_thread(self._intents.read_again, subject)
        self._intents.take(subject, intent)
        if intent is None or intent.at is None:
            return None
        forget(self._personal, intent.erasure(intent.at))
        return await self._go_on(intent, intent.at, newest)

    async def _go_on(self, intent: Intent, at: int, newest: Callable[[], int]) -> Erased:
        """Remove the files once no other process has anything of it in RAM. Raises MemoryFault."""
        subject = intent.subject
        while await self._all_know():
            more = await in_thread(self._widened, intent, newest)
            if more == intent:
                async with self._cursors.alone():
                    erased = await self._removed(intent, at)
                heard = await self._all_know()
                await in_thread(self._wiped)  # again: it names the texts that are gone until all know it
                return replace(erased, waiting=not heard)
            intent, at = more, at if more.at is None else more.at
            forget(self._personal, intent.erasure(at))
        return Erased(subject, at, 0, intent.sessions, todo=intent.todo, waiting=True)

    def _wiped(self) -> None:
        try:
            self._disk.wipe()
        except OSError as error:
            log.warning("some names of texts that were erased are left: %s", error)

    async def _all_know(self) -> bool:
        """Wait until the others let go of what was written so far; False if that takes too long."""
        try:
            async with asyncio.timeout(OTHERS_S):
                await self._processes.all_know()
        except TimeoutError:
            log.warning("an erasing waits for another process, which has not dropped what it has yet")
            return False
        return True

    async def _removed(self, intent: Intent, at: int) -> Erased:
        """Remove the files while no part writes. The caller keeps everybody from writing cursors."""
        erasure = intent.erasure(at)
        async with self._personal.exclusive(erasure):
            return await in_thread(self._finish, intent, erasure)

    def step_done(self, subject: str, step: str) -> None:
        """Record that an outside step is done. Blocking. Raises MemoryFault if that fails."""
        try:
            intent = self._intents.now(subject)
            if intent is None or step not in intent.todo:
                return
            self._intents.keep(replace(intent, todo=tuple(one for one in intent.todo if one != step)))
        except OSError as error:
            raise MemoryFault(f"a step of an erasing could not be noted: {error}") from error

    # ------------------------------------------------------------------ inside

    def _widened(self, intent: Intent, newest: Callable[[], int]) -> Intent:
        """The intent with what the others added to it, or recorded before they heard of it."""
        try:
            there = self._intents.now(intent.subject) or intent
            sessions, at = {*intent.sessions, *there.sessions}, max(intent.at or 0, newest())
            for part in self._personal:
                sessions.update(part.sessions_on_disk(intent.subject))
            steps = {*intent.todo, *there.todo}
            wide = replace(intent, at=at, sessions=tuple(sorted(sessions)), todo=tuple(sorted(steps)))
            self._tombstones.add(intent.subject, at)
            if wide != there:
                self._intents.keep(wide)
            return wide
        except OSError as error:
            raise MemoryFault(f"the erasing of {intent.subject} could not go on: {error}") from error

    def _begin(self, subject: str, at: int, known: Collection[str]) -> Intent:
        """Record durably what is to be erased: from here on it will be finished."""
        try:
            before = self._intents.now(subject) or Intent(subject, None)
            sessions = {*before.sessions, *known}
            for part in self._personal:
                sessions.update(part.sessions_on_disk(subject))
            steps = {*before.todo, *self._personal.outside(subject)}
            intent = Intent(subject, at, tuple(sorted(sessions)), tuple(sorted(steps)))
            self._intents.keep(intent)
        except OSError as error:
            raise MemoryFault(f"the erasing could not be noted, so nothing was erased: {error}") from error
        try:
            self._tombstones.add(subject, at)
        except (OSError, MemoryFault) as error:
            with contextlib.suppress(OSError):  # else the next start does it; nothing is used until then
                self._intents.keep(before)
            raise MemoryFault(f"the erasing could not be noted, so nothing was erased: {error}") from error
        return intent

    def _finish(self, intent: Intent, erasure: Erasure) -> Erased:
        """Remove the files. The complete intent stays if the disk does not let all of them go."""
        done = sum((part.erase(erasure) for part in self._personal), Removed())
        for one in done.left:
            log.error(
                "%s: could not be erased, and is tried again at the next start: %s", intent.subject, one
            )
        if done.left:
            self._keep_stuck(intent, done.stuck)
        else:
            try:
                self._intents.keep(Intent(intent.subject, None, (), intent.todo))
            except OSError as error:
                log.warning("%s: erased, which could not be noted (%s)", intent.subject, error)
                done += Removed(left=(f"the note of the erasing: {error}",))
        return Erased(
            intent.subject,
            erasure.at,
            done.count,
            intent.sessions,
            done.left,
            intent.todo,
            groups=tuple(sorted(done.changed)),
        )

    def _keep_stuck(self, intent: Intent, groups: Collection[str]) -> None:
        """Note the groups that still have the person's words, for every process."""
        stuck = replace(intent, stuck=tuple(sorted(groups)))
        try:
            self._intents.keep(stuck)
        except OSError as error:
            log.warning(
                "%s: that groups still have something of it is known here alone: %s", intent.subject, error
            )
            self._intents.take(intent.subject, stuck)

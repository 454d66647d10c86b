"""Erasing: removes every byte stored about a person, however often the program is killed in the middle.

    1  the intent     erasing/<subject>.json {subject, at, sessions, todo, stuck}, synced before anything else
    2  the tombstone  nothing said or recorded up to `at` is learned or imported again (`tombstones`)
    3  RAM            every registered part drops the person's words
    4  the files      every registered part removes its files, while no part writes about the person
    5  outside        what has to be removed elsewhere (`todo`: a message in the chat) is removed by the part
                      responsible, with retries until it is done; the intent has only {subject, todo} by then
    6  the intent     is removed

Step 4 covers every store that exists, in use or not. Every step can safely be repeated, and `resume`
finishes interrupted ones at the start. Until step 4 is done nothing is remembered about the person,
because files that the disk still holds could otherwise be read back as memory. If the intent cannot be
written, that is a fault, and nothing has happened.

Where several processes share the store, one of them erases at a time, under the lease LEASE. The others hear
of the intent twice (`heard`). First they add the conversations that only they know to the intent, drop what
they have in RAM and on their own machine, and wait until nothing is being written about the person. Step 4
begins when all of them have. After it they drop once more what they may have read meanwhile. Whoever has the
lease next finishes what a killed process left. Of an erasing that took place while a process was cut off, it
finds only the tombstone.

Kept on purpose: other people's ledgers, and those of groups without the person's words, byte for byte;
the person's choices about being remembered, which outlive the memory; and what the bot does not own: the
talk in the chat, backups, exports, logs. A durable file saved after the erasing is the person's own edit,
but only its new items count: the old ones stay erased (see `subject`). Independent of Discord.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from discoclaw.core.errors import MemoryFault
from discoclaw.core.processes import Processes
from discoclaw.core.purge import Purge, Purged, erasing
from discoclaw.core.subject import group_of
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Registry
from discoclaw.memory.cursors import Cursors, parsed, read, texts_of
from discoclaw.memory.erasing.groups import EVERY, newest
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.kept import JSON, called, faulting, json_names
from discoclaw.store.files import in_thread, render_json, safe_id
from discoclaw.store.port import INTENTS, Disk

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


@dataclass(frozen=True, slots=True)
class Intent:
    """An erasing to be done: everything about `subject` until `at` (ms), and these conversations' summaries.

    `todo` are the outside steps. `at` is None when only those are left. `stuck` are the groups that a process
    tried to remove the person from, and could not.
    """

    subject: str
    at: int | None
    sessions: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()

    def purge(self, at: int) -> Purge:
        """The erasing, in the form that the registered parts take."""
        return erasing(self.subject, at, self.sessions, self.todo)

    def to_json(self) -> dict[str, object]:
        outside: dict[str, object] = {"subject": self.subject, "todo": list(self.todo)}
        if self.at is None:
            return outside
        stuck: dict[str, object] = {"stuck": list(self.stuck)} if self.stuck else {}
        return {**outside, "at": self.at, "sessions": list(self.sessions), **stuck}


def subject_in(name: str) -> str | None:
    """The subject whose intent has this path in the store; None if it is something else's."""
    folder, _, file = name.partition("/")
    return file.removesuffix(JSON) if folder == INTENTS and file.endswith(JSON) else None


class _Intents:
    """The intents of a store. `pending` are those on disk, by subject. Everything blocks."""

    def __init__(self, disk: Disk) -> None:
        self.pending: dict[str, Intent] = {}
        self._disk = disk
        self._folder = disk.documents(INTENTS)

    def load(self, now_ms: int) -> list[Intent]:
        """Read the intents; an unreadable one is dated now. Raises OSError."""
        found = list(self._on_disk(now_ms))
        self.pending |= {intent.subject: intent for intent in found}
        return found

    def now(self, subject: str) -> Intent | None:
        """The intent of a subject; read again where other processes write too. Raises OSError."""
        if not self._disk.shared:
            return self.pending.get(subject)
        try:
            content = self._folder.read(f"{safe_id(subject)}{JSON}")
        except FileNotFoundError:
            return None
        return _intent(subject, parsed(content), None)

    def read_again(self, subject: str) -> Intent | None:
        """The same. Raises MemoryFault."""
        with faulting(f"the erasing of {subject} cannot be read"):
            return self.now(subject)

    def take(self, subject: str, intent: Intent | None) -> None:
        """Take over what another process did about a subject's intent; None: it is gone."""
        if intent is None:
            self.pending.pop(subject, None)
        else:
            self.pending[subject] = intent

    def widen(self, intent: Intent, sessions: Collection[str], todo: Collection[str]) -> Intent:
        """Add conversations and steps to the intent of another process, if it is still being carried out.

        Returns the intent with them. Raises OSError.
        """

        def wider(content: bytes | None) -> bytes | None:
            there = _intent(intent.subject, parsed(content or b""), None)
            wide = _with(there, sessions, todo)
            return render_json(wide.to_json()) if there.at is not None and wide != there else None

        self._folder.change(f"{safe_id(intent.subject)}{JSON}", wider)
        return _with(intent, sessions, todo)

    def keep(self, intent: Intent) -> None:
        """Write the intent, or remove it if nothing is left to do. Raises OSError; then nothing changes."""
        name = f"{safe_id(intent.subject)}{JSON}"
        if intent.at is not None or intent.todo:
            self._folder.write(name, render_json(intent.to_json()))
            self.pending[intent.subject] = intent
            return
        _, left = self._folder.remove(called(self._folder, {name}))
        if left:
            raise OSError("; ".join(left))
        self.pending.pop(intent.subject, None)
        try:
            self._disk.wipe()
        except OSError as error:
            log.warning("the bytes of the note that somebody was erased are left: %s", error)

    def _on_disk(self, now_ms: int) -> Iterator[Intent]:
        """The intents on disk; the file name identifies the subject of an unreadable one."""
        for name in json_names(self._folder):
            subject = safe_id(name.removesuffix(JSON))
            yield _intent(subject, read(self._folder, name), now_ms)


def _intent(subject: str, value: Mapping[str, object], now_ms: int | None) -> Intent:
    """The intent in a file; an unreadable one is dated `now_ms`."""
    at = value.get("at", None if value else now_ms)
    at = at if at is None or valid_ms(at) else now_ms
    sessions, todo, stuck = (tuple(texts_of(value, key)) for key in ("sessions", "todo", "stuck"))
    return Intent(subject, at, sessions, todo, stuck)


def _with(intent: Intent, sessions: Collection[str], todo: Collection[str]) -> Intent:
    more = sorted({*intent.sessions, *sessions}), sorted({*intent.todo, *todo})
    return replace(intent, sessions=tuple(more[0]), todo=tuple(more[1]))


class Eraser:
    """Erases subjects from the registered parts. Callers hold the subject's lock, and the data folder.

    `cursors` say which summaries have words of a person, so nobody may write one from the first step to the
    last. `processes` share the disk.
    """

    def __init__(
        self,
        disk: Disk,
        tombstones: Tombstones,
        personal: Registry,
        cursors: Cursors,
        processes: Processes,
    ) -> None:
        self._disk = disk
        self._intents = _Intents(disk)
        self._tombstones = tombstones
        self._personal = personal
        self._cursors = cursors
        self._processes = processes
        self._followed: dict[str, int] = {}
        """The times (ms) of other processes' erasings that were followed to their end, by subject."""

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
        with faulting("an erasing that was interrupted cannot be finished"):
            intents = self._intents.load(now_ms)
            for intent in intents:
                if intent.at is not None:
                    self._tombstones.add(intent.subject, intent.at)
        for intent in intents:
            if intent.at is not None and not self._finish(intent, intent.purge(intent.at)).left:
                log.info("%s: the erasing that was interrupted is finished", intent.subject)
        if waiting := [one for one in self.pending.values() if one.at is None]:
            steps = sorted({step for one in waiting for step in one.todo})
            log.info("%d erasings wait for a step outside: %s", len(waiting), ", ".join(steps))

    def catch_up(self, now_ms: int) -> None:
        """Read what other processes erase, if there are any. Blocking. Raises MemoryFault."""
        if not self._disk.shared:
            return
        with faulting("what other processes erase cannot be read"):
            self._tombstones.catch_up()
            for intent in self._intents.load(now_ms):
                if intent.at is not None:
                    self._tombstones.note(intent.subject, intent.at)

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
            self._personal.purge_ram(intent.purge(at))
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
        self._personal.purge_ram(intent.purge(intent.at))
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
            self._personal.purge_ram(intent.purge(at))
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
        purge = intent.purge(at)
        async with self._personal.exclusive(purge):
            return await in_thread(self._finish, intent, purge)

    def step_done(self, subject: str, step: str) -> None:
        """Record that an outside step is done. Blocking. Raises MemoryFault if that fails."""
        with faulting("a step of an erasing could not be noted"):
            intent = self._intents.now(subject)
            if intent is not None and step in intent.todo:
                self._intents.keep(replace(intent, todo=tuple(one for one in intent.todo if one != step)))

    # ------------------------------------------------------------------ what other processes erase

    async def heard(self, subject: str) -> bool:
        """Drop everything about a subject that another process erases, here and on this machine.

        The caller holds the subject's lock. Returns whether the erasing is unfinished. Raises MemoryFault; it
        is then to be called again before this process counts as having heard of it.
        """
        before = self.pending.get(subject)
        intent = await in_thread(self._intents.read_again, subject)
        unfinished = intent is not None and intent.at is not None
        going = intent if unfinished else before
        if going is None or going.at is None:
            going = await in_thread(self._missed, subject, self._personal.in_ram(subject))
        if going is not None and going.at is not None:
            self._intents.take(subject, going)  # so that nobody reads anything of it again
            if unfinished:
                going = await in_thread(self._add, going, going.at, self._personal.in_ram(subject))
            await self._drop(going.purge(going.at or 0))
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

    def _add(self, intent: Intent, at: int, known: Collection[str]) -> Intent:
        """Count a subject as erased, and add to the intent what only this process knows."""
        with faulting(f"the erasing of {intent.subject} could not be followed"):
            self._tombstones.note(intent.subject, at)
            return self._intents.widen(intent, known, self._personal.outside(intent.subject))

    async def _drop(self, purge: Purge) -> None:
        """Remove what this process has in RAM, and on a machine of its own. Raises MemoryFault."""
        async with self._cursors.alone():
            self._personal.purge_ram(purge)
            async with self._personal.exclusive(purge):
                left = (await in_thread(partial(self._personal.erase, purge, local=True))).left
        if left:
            raise MemoryFault(f"{purge.subject}: this machine still has what was erased: {'; '.join(left)}")

    # ------------------------------------------------------------------ inside

    def _widened(self, intent: Intent, newest: Callable[[], int]) -> Intent:
        """The intent with what the others added to it, or recorded before they heard of it."""
        with faulting(f"the erasing of {intent.subject} could not go on"):
            there = self._intents.now(intent.subject) or intent
            at = max(intent.at or 0, newest())
            sessions = {*there.sessions, *self._personal.on_disk(intent.subject)}
            wide = _with(replace(intent, at=at), sessions, there.todo)
            self._tombstones.add(intent.subject, at)
            if wide != there:
                self._intents.keep(wide)
            return wide

    def _begin(self, subject: str, at: int, known: Collection[str]) -> Intent:
        """Record durably what is to be erased: from here on it will be finished."""
        with faulting("the erasing could not be noted, so nothing was erased"):
            before = self._intents.now(subject) or Intent(subject, None)
            sessions = {*known, *self._personal.on_disk(subject)}
            intent = _with(replace(before, at=at, stuck=()), sessions, self._personal.outside(subject))
            self._intents.keep(intent)
        try:
            self._tombstones.add(subject, at)
        except (OSError, MemoryFault) as error:
            with contextlib.suppress(OSError):  # else the next start does it; nothing is used until then
                self._intents.keep(before)
            raise MemoryFault(f"the erasing could not be noted, so nothing was erased: {error}") from error
        return intent

    def _finish(self, intent: Intent, purge: Purge) -> Erased:
        """Remove the files. The complete intent stays if the disk does not let all of them go."""
        done = self._personal.erase(purge)
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
                done += Purged(left=(f"the note of the erasing: {error}",))
        return Erased(
            intent.subject,
            purge.at,
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

"""Erasing: removes every byte stored about a person, however often the program is killed in the middle.

    1  the intent     erasing/<subject>.json {subject, at, sessions, todo, stuck}, synced before anything else
    2  the tombstone  nothing said or recorded up to `at` is learned or imported again (`tombstones`)
    3  RAM            every registered part drops the person's words
    4  disk           every registered part ends what it is writing, and removes its own; then the store's
                      files go, and the parts read again what they need
    5  outside        what has to be removed elsewhere (`todo`: a message in the chat) is removed by the part
                      responsible, with retries until it is done; the intent has only {subject, todo} by then
    6  the intent     is removed

Step 4 covers every store that exists, in use or not. Every step can safely be repeated: `resume` finishes
interrupted ones at the start, in the same way, and the worker of all purges (`memory/purge`) what was left by
a process that is gone, or by a disk that failed. Until step 4 is done nothing is remembered about the
person, because files that the disk still holds could otherwise be read back as memory. If the intent cannot
be written, that is a fault, and nothing has happened.

Where several processes share the store, one of them erases at a time, under the lease LEASE. The others hear
of the intent twice (`renewed`). First they add the conversations that only they know to the intent, drop what
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
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from discoclaw.core.errors import MemoryFault, faulting
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.idle import HOUR_MS
from discoclaw.core.item import tidy_tags
from discoclaw.core.ports import Clock, Processes
from discoclaw.core.purge import Purge, Purged, erasing
from discoclaw.core.subject import BOT, HUMAN, group_of, user_of
from discoclaw.core.times import ms_of_iso, valid_ms
from discoclaw.memory.changes import Changes, Listener
from discoclaw.memory.cursors import Cursors, parsed, read, texts_of
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.erasing.groups import EVERY, newest
from discoclaw.memory.erasing.store_files import Registry
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.kept import JSON, called, json_names
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.entries import Entries
from discoclaw.store.files import in_thread, read_in_thread, render_json, safe_id
from discoclaw.store.port import INTENTS, Disk, Ledgers

log = logging.getLogger(__name__)
T = TypeVar("T")

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

    @property
    def unfinished(self) -> bool:
        """Whether more is left than outside steps."""
        return self.at is not None

    @property
    def purge(self) -> Purge:
        """The erasing, in the form that the registered parts take."""
        assert self.at is not None, "only outside steps are left"
        return erasing(self.subject, self.at, self.sessions, self.todo)

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


class Intents:
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
        """The intent of a subject; read again where other processes write too. Raises MemoryFault."""
        if not self._disk.shared:
            return self.pending.get(subject)
        with faulting(f"the erasing of {subject} cannot be read"):
            content = self._folder.find(f"{safe_id(subject)}{JSON}")
        return _intent(subject, parsed(content), None) if content is not None else None

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
            there = _intent(intent.subject, parsed(content), None)
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


class Eraser(Listener):
    """Erases subjects from everywhere.

    `personal` are the parts that it visits. `cursors` say which summaries have words of a person, so nobody
    may write one from the first step to the last. In a store that several `processes` share it follows their
    erasings too. Only `resume` needs no event loop.
    """

    def __init__(
        self,
        disk: Disk,
        ledgers: Ledgers,
        entries: Entries,
        marks: Tombstones,
        personal: Registry,
        cursors: Cursors,
        changes: Changes,
        processes: Processes,
        *,
        clock: Clock,
    ) -> None:
        self._disk = disk
        self._ledgers = ledgers
        self._entries = entries
        self._intents = Intents(disk)
        self._tombstones = marks
        self._personal = personal
        self._cursors = cursors
        self._changes = changes
        self._processes = processes
        self._clock = clock
        self._ours: set[str] = set()
        """Subjects that this process is erasing."""
        self._followed: dict[str, int] = {}
        """The times (ms) of other processes' erasings that were followed to their end, by subject."""

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
            if intent.unfinished and not _run(self._removed(intent)).left:
                log.info("%s: the erasing that was interrupted is finished", intent.subject)
        if waiting := [one for one in self.pending.values() if one.at is None]:
            steps = sorted({step for one in waiting for step in one.todo})
            log.info("%d erasings wait for a step outside: %s", len(waiting), ", ".join(steps))

    def unfinished(self) -> list[str]:
        """The subjects of whom something is left that this process isn't removing just now."""
        return [
            one.subject for one in self.pending.values() if one.unfinished and one.subject not in self._ours
        ]

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
            "that is tried again and again, and nothing is remembered until it is done"
        )

    # ------------------------------------------------------------------ erasing

    async def finish(self, subject: str) -> None:
        """Finish an erasing that a failing disk, or another process, left. Raises MemoryFault if it stays."""
        async with self._leased(subject), self._emptied(subject):
            intent = await in_thread(self._intents.now, subject)
            self._intents.take(subject, intent)
            if intent is None or not intent.unfinished:
                return
            erased = await self._carried_out(lambda: intent)
        self._tell(erased)
        if erased.left or erased.waiting:
            raise MemoryFault("; ".join(erased.left) or "another process has not dropped what it has yet")
        log.info("%s: the erasing that was interrupted is finished", subject)

    async def erase(
        self, subject: str, asked_at: int, history: Callable[[str], Awaitable[History]]
    ) -> Erased:
        """Erase a subject, and the bot's own memory if that rests on their words (see `history`).

        It is dated after every record. Raises MemoryFault if that cannot even be recorded; nothing has
        happened then.
        """
        # Before it, so that being killed in between leaves nothing; and after, for what was added meanwhile.
        before = await self._erase_soul_of(subject, asked_at, history)
        erased = await self._erase(subject, asked_at)
        try:
            soul = await self._erase_soul_of(subject, asked_at, history) or before
        except MemoryFault as fault:  # what they asked for is done all the same
            log.warning("%s: whether the bot's own memory has anything new of it: %s", subject, fault)
            soul = before
        if soul is None:
            return erased
        waiting = erased.waiting or soul.waiting
        return replace(erased, left=(*erased.left, *soul.left), soul=True, waiting=waiting)

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
            if self._processes.shared and isinstance(fault.__cause__, OSError):
                raise  # the database is away, which says nothing about what it holds
            log.error("the bot's own memory cannot be read, so it goes along with %s: %s", subject, fault)
            theirs = True
        if theirs:
            return await self._erase(BOT, asked_at)
        if not known:
            self._entries.drop_unused(BOT)  # it was opened only for this check
        return None

    async def _erase(self, subject: str, asked_at: int) -> Erased:
        async with self._leased(subject), self._emptied(subject) as last:
            last = await in_thread(self._newest, subject, last)
            at = max(self._clock(), asked_at, last, self._tombstones.erased_at(subject) + 1)
            erased = await self._carried_out(partial(self._begin, subject, at))
        self._tell(erased)
        return erased

    def _tell(self, erased: Erased) -> None:
        for one in (erased.subject, *erased.groups):
            self._changes.recorded(one)

    async def step_done(self, subject: str, step: str) -> None:
        """Record that an outside step is done. Raises MemoryFault if that fails."""

        def note() -> None:
            with faulting("a step of an erasing could not be noted"):
                intent = self._intents.now(subject)
                if intent is not None and step in intent.todo:
                    self._intents.keep(replace(intent, todo=tuple(one for one in intent.todo if one != step)))

        async with self._processes.lease(LEASE), self._entries.use(subject).locked():
            await in_thread(note)

    @asynccontextmanager
    async def _leased(self, subject: str) -> AsyncIterator[None]:
        """Be the only process that erases. It comes before every lock, since others may wait for theirs."""
        async with self._processes.lease(LEASE):
            self._ours.add(subject)
            try:
                yield
            finally:
                self._ours.discard(subject)

    @asynccontextmanager
    async def _emptied(self, subject: str) -> AsyncIterator[int | None]:
        """Hold a subject's lock, with nothing of it in RAM. Gives the time of its newest record, if known."""
        entry = self._entries.use(subject)
        async with entry.locked():
            one, entry.subject = entry.subject, None
            yield one.branches.last_ms if one is not None and not entry.stale else None
        self._entries.drop_unused(subject)

    def _begin(self, subject: str, at: int) -> Intent:
        """Record durably what is to be erased: from here on it will be finished."""
        with faulting("the erasing could not be noted, so nothing was erased"):
            before = self._intents.now(subject) or Intent(subject, None)
            sessions = self._personal.sessions_on_disk(subject)
            intent = _with(replace(before, at=at, stuck=()), sessions, self._personal.outside(subject))
            self._intents.keep(intent)
        try:
            self._tombstones.add(subject, at)
        except (OSError, MemoryFault) as error:
            with suppress(OSError):  # else the next start does it; nothing is used until then
                self._intents.keep(before)
            raise MemoryFault(f"the erasing could not be noted, so nothing was erased: {error}") from error
        return intent

    async def _carried_out(self, begin: Callable[[], Intent]) -> Erased:
        """Carry out what `begin` returns, which blocks. Raises MemoryFault."""
        async with self._cursors.alone():
            intent = self._left_ram(await in_thread(begin))
            if not self._processes.shared:
                return await self._removed(intent)
        while await self._all_know():
            more = await in_thread(self._widened, intent)
            if more == intent:
                async with self._cursors.alone():
                    erased = await self._removed(intent)
                heard = await self._all_know()
                try:  # again: it names the texts that are gone until all know it
                    await in_thread(self._disk.wipe)
                except OSError as error:
                    log.warning("some names of texts that were erased are left: %s", error)
                return replace(erased, waiting=not heard)
            intent = more
            self._personal.ram(intent.purge)
        return Erased(intent.subject, intent.purge.at, 0, intent.sessions, todo=intent.todo, waiting=True)

    def _left_ram(self, intent: Intent) -> Intent:
        """Have everything leave RAM. Returns the intent with the conversations that only RAM knew.

        It isn't noted that these are concerned: after a kill, no RAM has anything of them.
        """
        known = self._personal.ram(intent.purge).sessions
        if known <= {*intent.sessions}:
            return intent
        intent = _with(intent, known, ())
        self._personal.ram(intent.purge)
        return intent

    async def _all_know(self) -> bool:
        """Wait until the others let go of what was written so far; False if that takes too long."""
        try:
            async with asyncio.timeout(OTHERS_S):
                await self._processes.all_know()
        except TimeoutError:
            log.warning("an erasing waits for another process, which has not dropped what it has yet")
            return False
        return True

    def _widened(self, intent: Intent) -> Intent:
        """The intent with what the others added to it, or recorded before they heard of it."""
        with faulting(f"the erasing of {intent.subject} could not go on"):
            there = self._intents.now(intent.subject) or intent
            at = max(intent.at or 0, self._newest(intent.subject))
            sessions = {*there.sessions, *self._personal.sessions_on_disk(intent.subject)}
            wide = _with(replace(intent, at=at), sessions, there.todo)
            self._tombstones.add(intent.subject, at)
            if wide != there:
                self._intents.keep(wide)
            return wide

    async def _removed(self, intent: Intent) -> Erased:
        """Remove it from the disk. The caller keeps everybody from writing cursors."""
        purge = intent.purge
        try:
            done = await self._personal.disk(purge)
        finally:
            self._personal.done(purge)
        return await in_thread(self._finish, intent, done)

    def _finish(self, intent: Intent, done: Purged) -> Erased:
        """Note what was removed. The complete intent stays if the disk does not let all of it go."""
        subject = intent.subject
        for one in done.left:
            log.error("%s: could not be erased, and is tried again: %s", subject, one)
        if done.left:
            stuck = replace(intent, stuck=tuple(sorted(done.stuck)))  # for every process
            try:
                self._intents.keep(stuck)
            except OSError as error:
                log.warning("%s: what groups still have of it is known here alone: %s", subject, error)
                self._intents.take(subject, stuck)
        else:
            try:
                self._intents.keep(Intent(subject, None, (), intent.todo))
            except OSError as error:
                log.warning("%s: erased, which could not be noted (%s)", subject, error)
                done += Purged(left=(f"the note of the erasing: {error}",))
        return Erased(
            subject,
            intent.purge.at,
            done.count,
            intent.sessions,
            done.left,
            intent.todo,
            groups=tuple(sorted(done.changed)),
        )

    def _newest(self, subject: str, last: int | None = None) -> int:
        """The time (ms) of the newest record that has to go, as far as readable. Blocking.

        Records may be ahead of the clock, but one of the year 9999 must not bar learning till then: it is at
        most an hour from now. `last` is the newest of the subject's own ledger, if it is known.
        """
        user, times = user_of(subject), [last or 0]
        if last is None:
            with suppress(OSError):
                records = ledger.read(self._ledgers.log(subject)).records
                times += (ms_of_iso(record.timestamp) for record in records)
        if user is not None:  # groups remember what rests on a person's words
            with suppress(OSError):
                times.append(newest(self._disk, user))
        return min(max(times), self._clock() + HOUR_MS)

    # ------------------------------------------------------------------ what other processes erase

    async def renewed(self, names: Collection[str]) -> None:
        """Follow what other processes erase. Raises MemoryFault; it is then to be called again."""
        if tombstones.FILE in names:
            await read_in_thread(self._tombstones.catch_up)
        for subject in sorted({one for one in map(subject_in, names) if one is not None} - self._ours):
            async with self._emptied(subject):
                await self._heard(subject)

    async def _heard(self, subject: str) -> None:
        """Drop everything about a subject that another process erases, here and on this machine.

        The caller holds the subject's lock. Raises MemoryFault; it is then to be called again before this
        process counts as having heard of it.
        """
        before = self.pending.get(subject)
        intent = await in_thread(self._intents.now, subject)
        unfinished = intent is not None and intent.unfinished
        going = intent if unfinished else before
        if going is None or not going.unfinished:
            going = await in_thread(self._missed, subject)
        if going is not None:
            if before is not None:  # RAM knew of these when this was called before
                going = _with(going, before.sessions, ())
            async with self._cursors.alone():
                self._intents.take(subject, going)  # so that nobody reads anything of it again
                going = self._left_ram(going)
                self._intents.take(subject, going)
                if unfinished:
                    going = await in_thread(self._add, going)
                    self._personal.ram(going.purge)
                purge = going.purge
                # The caller has a group's own lock. What is over leaves what came afterwards in the store.
                waiting = self._entries.groups_alone() if purge.user_id else nullcontext()
                async with waiting:  # until what is being written to a group is written
                    done = await self._personal.disk(
                        purge, local=None if unfinished else True, elsewhere=True
                    )
                self._personal.done(purge)
            if done.left:
                raise MemoryFault(
                    f"{subject}: this machine still has what was erased: {'; '.join(done.left)}"
                )
            if not unfinished:
                self._followed[subject] = purge.at
        self._intents.take(subject, intent)

    def _missed(self, subject: str) -> Intent | None:
        """An erasing that began and ended while this process was cut off. Raises MemoryFault."""
        self._tombstones.catch_up()
        at = self._tombstones.erased_at(subject)
        return Intent(subject, at) if at > self._followed.get(subject, -1) else None

    def _add(self, intent: Intent) -> Intent:
        """Count a subject as erased, and add to the intent what only this process knows."""
        with faulting(f"the erasing of {intent.subject} could not be followed"):
            self._tombstones.note(intent.subject, intent.purge.at)
            return self._intents.widen(intent, intent.sessions, self._personal.outside(intent.subject))


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run asynchronous work to its end, in a thread and a loop of its own. Blocking."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _rests_on(commit: Commit, user: str) -> bool:
    """Whether a commit of the bot's own memory is attributed to a person's words, or is about them.

    An item that was imported without its history is attributed only by its tag, which names the person.
    """
    tagged = (tidy_tags(event.ext.get("item", {}).get("tags")) for event in commit.events)
    return commit.metadata.get(HUMAN) == user or any(user in tags for tags in tagged)

"""The memory of all subjects: views in RAM, each subject behind its own lock, backed by its files.

What always holds:

1  Reading is a look into RAM (and one `stat`, so that an edit by hand takes effect at once). It never waits
   for a writer.
2  Whoever writes a subject holds its lock, in whichever part of the program: draft on the newest view, append
   the commit, renew the durable file, publish the new view, notify the followers. So a person who talks in
   two channels, a command and a loop never lose each other's update.
3  In a store that processes share, what was drafted on an older state is refused there and drafted again.
   Nothing is recorded while the store is out of touch.
4  Erasing goes through here too: whoever was waiting for the lock then finds an empty memory, and records
   from before the erasing are refused.

`subject` knows how one of them lies on disk. Independent of Discord, models and prompts.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from discoclaw.core.consent import NEVER
from discoclaw.core.draft import Draft
from discoclaw.core.errors import MemoryFault, Overtaken, Refused, faulting
from discoclaw.core.event import Commit, Record, Ref
from discoclaw.core.history import PEOPLE, Branches, History, branch_name
from discoclaw.core.idle import HOUR_MS
from discoclaw.core.ports import ALONE, Clock, Processes
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.purge import Derived
from discoclaw.core.subject import BOT, group_of, user_of, user_subject
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.changes import Changes, Listener
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.erasing.erase import Erased, Eraser
from discoclaw.memory.erasing.groups import unerased
from discoclaw.memory.erasing.store_files import Registry, files_beside, files_of
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.folder import DataFolder
from discoclaw.memory.stores import Disks, NoLedgers, bring_decisions, disks_at
from discoclaw.memory.subjects.entries import Entries, Entry
from discoclaw.memory.subjects.follow import Numbered
from discoclaw.memory.subjects.subject import Subject
from discoclaw.store.files import in_thread, read_in_thread, to_its_end
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import CURSORS, LEDGERS, TRIES, Disk, Ledgers, rest

log = logging.getLogger(__name__)

T = TypeVar("T")

Attempt: TypeAlias = Callable[[Subject], Awaitable[tuple[T, Sequence[Record], View | None]]]
"""Drafts records on a subject as it is now. Returns its outcome for whoever asked, the records to append, and
the view including the last of them, if known."""


class Memory:
    """The views of subjects, and the only way to change them, on stores or files below `data/memory`.

    `personal` are the parts that an erasing visits: those in the stores are registered here, all others by
    whoever builds them (`join`). `changes` notifies listeners of new records. Idle subjects leave RAM after
    `idle_ms`. `cursors` are the store's by default. `dm_privacy` decides what becomes private of a durable
    file that is taken over. `processes` share the store.
    """

    def __init__(
        self,
        where: Path | Disks,
        *,
        clock: Clock,
        max_items: int = 200,
        idle_ms: int = HOUR_MS,
        cursors: Cursors | None = None,
        dm_privacy: Callable[[], DmPrivacy] = lambda: "balanced",
        processes: Processes = ALONE,
        changes: Changes | None = None,
    ) -> None:
        self.disks = disks = disks_at(where)
        self.disk = disks.used
        numbered = () if self.disk.shared else (Numbered(self.disk),)
        self.ledgers: Ledgers = numbered[0] if numbered else self.disk.ledgers
        self.ledger_folder = disks.root / LEDGERS
        self.durable_folder = self.disk.durable or disks.root / "durable"
        self.changes = changes or Changes()
        self._clock = clock
        self.max_items = max_items
        self._folder = DataFolder(disks, clock=clock)
        self.tombstones = Tombstones(self.disk)
        self._entries = Entries(clock=clock, idle_ms=idle_ms)
        self._dm_privacy = dm_privacy
        self._snapshots = disks.root.parent / "cache" / "views"
        cache = FileDocuments(self._snapshots)
        files = files_of(self.disk, cache, self._entries)
        files += [part for disk in disks.beside for part in files_of(disk, cache, local=True)]
        files += files_beside(cache, disks.listed, shared=self.disk.shared)
        folders = [disk.documents(CURSORS) for disk in (self.disk, *disks.beside)]
        self.personal = Registry(files, folders)
        cursors = cursors or Cursors(self.disk.documents(CURSORS))
        self.eraser = Eraser(
            self.disk,
            self.ledgers,
            self._entries,
            self.tombstones,
            self.personal,
            cursors,
            self.changes,
            processes,
            clock=clock,
        )
        self.changes.add(*numbered, self.eraser, self._entries, cursors)

    def join(self, *parts: Derived | Listener) -> None:
        """Register parts: an erasing visits those with personal data, and listeners are told of changes."""
        self.personal.add(*(one for one in parts if isinstance(one, Derived)))
        self.changes.add(*(one for one in parts if isinstance(one, Listener)))

    # ------------------------------------------------------------------ the folder

    def open(self, *, beside: bool = False) -> None:
        """Take the folder, and finish interrupted erasings; see `DataFolder.open`."""
        self._folder.open(lambda: self.eraser.resume(self._clock()), beside=beside)

    def catch_up(self) -> None:
        """Read what was erased by other processes before they told this one. Blocking. Raises MemoryFault."""
        self.eraser.catch_up(self._clock())

    def bring_decisions(self, source: Disk) -> None:
        """Add the opt-outs and erasings recorded elsewhere to those known here, durably. Blocking.

        Raises MemoryFault.
        """
        bring_decisions(source, self.disk)
        self.tombstones.load()

    def rescue(self) -> list[str]:
        """Save what can be read of a store that is damaged as a whole; see `DataFolder.rescue`."""
        return self._folder.rescue()

    def close(self) -> None:
        """Release the folder."""
        self._folder.close()

    # ------------------------------------------------------------------ reading

    async def view(self, subject: str, branch: str | None = None) -> View:
        """Return what is remembered about a subject now, on HEAD's branch or the one named.

        A branch that does not exist yet shows `main`. Raises MemoryFault if the memory cannot be read. Never
        waits for a writer: it then returns the state before that write.
        """
        known = self.view_in_ram(subject, branch)
        if known is not None:
            return known
        async with self._locked(subject) as one:
            return await _branch_view(one, branch or one.branches.current)

    def view_in_ram(self, subject: str, branch: str | None = None) -> View | None:
        """The view if it is in RAM and nobody edited its file, else None. Costs one `stat`."""
        one = self._unchanged(subject)
        if one is None:
            return None
        name = branch or one.branches.current
        return one.branch_view(name) if one.in_ram(name) else None

    async def last_view(self, subject: str) -> View:
        """The last known view of HEAD's branch, without checking whether the file was edited since.

        For mirrors, which hear of an edit through `changed`: a check here would keep the view from a reply to
        the person at the same time. Raises MemoryFault if the memory cannot be read.
        """
        one = self._usable(self._entries.use(subject))
        return one.view if one is not None else await self.view(subject)

    async def branches(self, subject: str) -> Branches:
        """Return the branches of a subject. Raises MemoryFault if they cannot be read."""
        if (one := self._unchanged(subject)) is not None:
            return one.branches
        async with self._locked(subject) as one:
            return one.branches

    def branches_in_ram(self, subject: str) -> Branches | None:
        """The branches if they are in RAM, else None."""
        one = self._entries.use(subject).subject
        return one.branches if one is not None and self.disk.in_touch else None

    def has_in_ram(self, subject: str) -> bool:
        """Whether a subject is in RAM."""
        return subject in self._entries

    async def history(self, subject: str) -> History:
        """Return the full history of a subject, read from disk. Raises MemoryFault if that fails.

        No writer waits for the reading, so a record appended meanwhile may or may not be included.
        """
        async with self._locked(subject) as one:
            pass
        return await _history(one)

    # ------------------------------------------------------------------ changing

    async def change(
        self,
        subject: str,
        why: str,
        wish: Callable[[Draft], T],
        /,
        *,
        branch: str | None = None,
        begin: bool = True,
        aside: bool = False,
        **metadata: Any,
    ) -> T:
        """Let `wish` draft changes on the newest view, and record them as one commit. Returns its result.

        `wish` runs again, on what is there then, if another process recorded something meanwhile: what
        it does beside the draft has to bear that. `why` is the commit's message, `metadata` its other fields.
        `branch` is HEAD's by default. One that does not exist yet is created with its first change, as a fork
        of `main`, or is Refused if it may not `begin`. Thousands of changes take seconds, in which others are
        answered if they are drafted `aside`, in a thread. Without changes nothing is written. Raises whatever
        `wish` raises, and MemoryFault when the disk fails; the memory is then unchanged.
        """

        async def attempt(one: Subject) -> tuple[T, Sequence[Record], View | None]:
            name = branch or one.branches.current
            if name not in one.branches.all:
                name = branch_name(name) if begin else one.branches.named(name).name
            view = await _branch_view(one, name)
            people = map(user_subject, metadata.get(PEOPLE, ()))
            now_ms = one.branches.next_ms(self._present(subject, *people))
            records: list[Record] = []
            if name not in one.branches.all:
                records.append(one.branches.create(name, "", now_ms=now_ms, start=view.head, **metadata))
                now_ms += 1
            erased_at, reminders = self.erased_at(subject), one.branches.reminders

            def drafted() -> tuple[T, Sequence[Record], View | None]:
                draft = Draft(
                    view,
                    now_ms=now_ms,
                    max_items=self.max_items,
                    erased_at=erased_at,
                    bot_memory=subject == BOT,
                    reminders=reminders,
                )
                outcome = wish(draft)
                commit = draft.commit(why, branch=name, **metadata)
                if commit is None:
                    return outcome, (), None
                return outcome, [*records, commit], draft.after(commit)

            return await in_thread(drafted) if aside else drafted()

        return await self._write(subject, attempt)

    async def act(
        self,
        subject: str,
        work: Callable[[History, int, int], tuple[Sequence[Record], T]],
        *,
        dry: bool = False,
    ) -> T:
        """Let `work` make records from the full history, and append them unless it is `dry`.

        `work` gets the history, the current time (ms) and the most items a branch may have, and runs again if
        another process was faster. Returns what `work` returns beside the records. Raises what it raises, and
        MemoryFault.
        """

        async def attempt(one: Subject) -> tuple[T, Sequence[Record], None]:
            history = await _history(one)
            records, outcome = await in_thread(work, history, self._present(subject), self.max_items)
            return outcome, () if dry else records, None

        return await self._write(subject, attempt)

    async def turn(self, subject: str, work: Callable[[Branches, int], Ref | None]) -> Branches:
        """Let `work` create, switch or delete a branch, given the branches and the current time (ms).

        It runs again if another process was faster. Returns the branches after that. Raises what `work`
        raises, and MemoryFault.
        """

        async def attempt(one: Subject) -> tuple[Subject, Sequence[Record], None]:
            ref = work(one.branches, self._present(subject))
            if ref is not None and ref.action == "switch":
                await _branch_view(one, ref.branch)
            return one, [ref] if ref is not None else [], None

        return (await self._write(subject, attempt)).branches

    async def restore(self, subject: str, records: Sequence[Record]) -> bool:
        """Put back a lost ledger of verified records. False, and nothing is written, where there is one.

        The durable file is checked after that: an edit becomes a commit, and a lost file is written again.
        Raises MemoryFault when the disk fails.
        """

        def begin() -> Subject | None:
            if self.disk.ledgers.log(subject).size():
                return None
            one = self._opened(subject, records)
            one.reconcile(self._present(subject))
            return one

        entry = self._entries.use(subject)
        async with entry.locked():
            self._check(subject)
            if group_of(subject) is not None:
                records = unerased(records, self.erased_at)
            with faulting(f"{subject}.jsonl could not be written"):
                one = await in_thread(begin)
            if one is None:
                return False
            entry.subject = one
        self.changes.recorded(subject)
        return True

    # ------------------------------------------------------------------ erasing

    async def erase(self, subject: str, *, asked_at: int = 0) -> Erased:
        """Erase everything stored about a subject, for good; see `discoclaw.memory.erasing.erase`.

        `asked_at` (ms) is the time of the request by the chat's clock, which may be ahead of the local one:
        what was said until then is not learned again. Once begun, an erasing goes on even if the caller gives
        up. The bot's own memory is erased too if anything in it rests on the person's words. Raises
        MemoryFault if the erasing cannot even be recorded; nothing has happened then.
        """
        return await to_its_end(self.eraser.erase(subject, asked_at, self.history))

    def erased_at(self, subject: str) -> int:
        """When (ms) the subject was last erased; -1 when never."""
        return self.tombstones.erased_at(subject)

    def erased_anybody(self) -> bool:
        """Whether anybody was ever erased here: words of unknown authors may then be theirs."""
        return self.tombstones.any()

    def pending_erasures(self, step: str | None = None) -> list[str]:
        """Subjects whose erasing is unfinished, or is waiting for this outside step."""
        pending = self.eraser.pending.values()
        return [one.subject for one in pending if step is None or step in one.todo]

    async def finish_step(self, subject: str, step: str) -> None:
        """Record that an outside step is done. Raises MemoryFault on failure; the step is then repeated."""
        await self.eraser.step_done(subject, step)

    # ------------------------------------------------------------------ one subject

    @asynccontextmanager
    async def _locked(self, subject: str) -> AsyncIterator[Subject]:
        """Hold a subject's lock, and have it loaded. Raises MemoryFault if it cannot be read."""
        entry = self._entries.use(subject)
        async with entry.locked():
            yield await self._loaded(subject, entry)

    def _usable(self, entry: Entry) -> Subject | None:
        """What is in RAM, if no other process may have changed it."""
        return None if entry.stale or not self.disk.in_touch else entry.subject

    def _unchanged(self, subject: str) -> Subject | None:
        """What is in RAM, if nobody edited the durable file. Costs one `stat`; never waits for a writer."""
        entry = self._entries.use(subject)
        one = self._usable(entry)
        return one if one is not None and (entry.lock.locked() or one.current()) else None

    async def _loaded(self, subject: str, entry: Entry) -> Subject:
        """The subject, read if need be, with any edit by hand adopted. The caller holds the lock."""
        one, fault = entry.subject, f"the memory of {subject} cannot be read"
        with faulting(fault):
            if one is None:
                self._check(subject)
                entry.stale = False
                one = await read_in_thread(self._opened, subject)
            elif self._usable(entry) is None:
                entry.stale = False  # first: what changes while it is read makes it stale again
                try:
                    await read_in_thread(one.catch_up)
                except BaseException:
                    entry.stale = True
                    raise
        adopted = not one.current() and await in_thread(one.reconcile, self._present(subject))
        entry.subject = one  # not earlier: nobody may see a view that an edit has replaced
        if adopted:
            self.changes.recorded(subject)
        return one

    def _opened(self, subject: str, records: Sequence[Record] | None = None) -> Subject:
        """Read a subject from disk, or write its ledger from these records first. Raises OSError."""
        user, folder = user_of(subject), self.disk.durable
        return Subject(
            subject,
            self.disk.ledgers.log(subject),
            folder / f"{user}.json" if user is not None and folder is not None else None,
            self._snapshots / f"{subject}.json",
            max_items=self.max_items,
            erased_at=self.erased_at(subject),
            dm_privacy=self._dm_privacy,
            records=records,
        )

    def _check(self, subject: str) -> None:
        if (why := self.eraser.why_not(subject)) is not None:
            raise MemoryFault(why)

    def _present(self, *subjects: str) -> int:
        """The time (ms) for a record now: after every erasing of these subjects, even by a slow clock."""
        return max(self._clock(), *(self.erased_at(subject) + 1 for subject in subjects))

    async def _write(self, subject: str, attempt: Attempt[T]) -> T:
        """Append what an attempt drafts on the newest state, and return its outcome.

        It drafts again as long as another process is faster, and while others write too, it looks at what
        they wrote first: a look costs less than a draft that is refused. Raises whatever `attempt` raises,
        Refused, and MemoryFault when the disk fails; nothing is then recorded.
        """
        entry = self._entries.use(subject)
        async with entry.locked():
            for tried in range(TRIES):
                known = entry.subject.branches if entry.subject is not None else None
                entry.stale |= entry.contended
                one = await self._loaded(subject, entry)
                entry.contended &= one.branches is not known
                try:
                    return await self._recorded(subject, entry, one, await attempt(one))
                except Overtaken as fault:
                    if not self.disk.shared:  # no process of ours: whoever wrote may have damaged it
                        entry.subject = None
                    if not self.disk.shared or tried == TRIES - 1:
                        raise
                    log.debug("%s: %s; once more on what is there now", subject, fault)
                entry.contended = True
                await in_thread(rest, tried)
        raise AssertionError

    async def _recorded(
        self, subject: str, entry: Entry, one: Subject, drafted: tuple[T, Sequence[Record], View | None]
    ) -> T:
        """Append what was drafted on a subject, and return its outcome. The caller holds the lock."""
        (outcome, records, after), before = drafted, one.branches
        if any(ms_of_iso(record.timestamp) <= self.erased_at(subject) for record in records):
            raise Refused("what was recorded before the memory was erased does not come back")
        if group_of(subject) is not None:
            records = unerased(records, self.erased_at)
        if not records:
            return outcome
        if not self.disk.in_touch:  # its subject may have been erased since, which is not known yet
            raise MemoryFault(f"what others changed of {subject} is not known yet, so nothing is recorded")
        try:
            with faulting(f"the memory of {subject} cannot be read"):
                await in_thread(one.record, records, self._present(subject), after)
        except Overtaken:
            raise  # nothing changed here
        except MemoryFault:
            entry.subject = None  # the next reader reads and verifies what is on disk
            raise
        finally:  # also when the caller gave up meanwhile: the records are on disk
            if one.branches is not before:
                self.changes.recorded(subject)
                for record in records:
                    if isinstance(record, Commit):
                        self.changes.committed(subject, record)
        return outcome


async def _history(one: Subject) -> History:
    """The full history of a subject."""
    with faulting(f"the history of {one.name} cannot be read"):
        return await read_in_thread(one.history)


async def _branch_view(one: Subject, branch: str) -> View:
    """A branch's view, from disk if need be."""
    if one.in_ram(branch):
        return one.branch_view(branch)
    with faulting(f"the memory of {one.name} cannot be read"):
        return await in_thread(one.branch_view, branch)


# ---------------------------------------------------------------------- no memory

STORE_OFF = "memory is switched off here; an admin can switch it on with DISCOCLAW_STORE (files or sqlite)"
MEMORY_OFF = "memory is switched off here; an admin can switch it on with DISCOCLAW_DURABLE_MEMORY_ENABLED"


class NoMemory:
    """A memory without items, to which none can be added. `why` is the error for those who try.

    So callers never test whether there is a memory. The folder, erasings and the registry of personal data
    belong to the real `Memory`, which exists even where nobody is remembered.
    """

    def __init__(self, why: str = MEMORY_OFF) -> None:
        self._why = why
        self.ledgers = NoLedgers()

    async def view(self, subject: str, branch: str | None = None) -> View:
        return EMPTY

    def view_in_ram(self, subject: str, branch: str | None = None) -> View:
        return EMPTY

    async def branches(self, subject: str) -> Branches:
        return Branches()

    def branches_in_ram(self, subject: str) -> None:
        return None

    def has_in_ram(self, subject: str) -> bool:
        return False

    async def history(self, subject: str) -> History:
        return History()

    async def erase(self, subject: str, *, asked_at: int = 0) -> NoReturn:
        raise Refused(self._why)

    def erased_at(self, subject: str) -> int:
        return NEVER

    async def change(self, *args: Any, **metadata: Any) -> NoReturn:
        raise Refused(self._why)

    async def act(self, *args: Any) -> NoReturn:
        raise Refused(self._why)

    async def turn(self, *args: Any) -> NoReturn:
        raise Refused(self._why)


AnyMemory: TypeAlias = Memory | NoMemory
"""The memory that answers use, which may be switched off."""

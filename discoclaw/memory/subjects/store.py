"""The memory of all subjects: views in RAM, each behind its own lock, backed by ledger and durable file.

Reading is a look into RAM (and one `stat`, so that a file edited by hand counts at once). Changing takes
the subject's lock: draft on the newest view, append the commit, replace the durable file, publish the new
view, tell the followers. Whoever writes one person's memory comes through here, so a person who talks in
two channels, a command and a loop never lose each other's update. Erasing (`erase`) goes through here too:
whoever waits for the lock meanwhile finds an empty memory.
Knows nothing about Discord, models or prompts.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from discoclaw.core.draft import Draft
from discoclaw.core.errors import FolderInUse, MemoryFault, Refused
from discoclaw.core.event import Commit, Record, Ref
from discoclaw.core.history import Branches, History, branch_name
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.item import tidy_tags
from discoclaw.core.own import BOT, HUMAN
from discoclaw.core.people import PEOPLE
from discoclaw.core.ports import Clock
from discoclaw.core.subject import group_of, user_of, user_subject
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.memory.conversations.responses import Responses
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.disk import lock_holder
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.files import in_thread, safe_id, stamp_of, to_its_end
from discoclaw.memory.disk.port import CURSORS, LEDGERS, ROLLING, Disk, FileDocuments, Ledgers
from discoclaw.memory.erasing.erase import Erased, Eraser, places_of
from discoclaw.memory.erasing.groups import newest, unerased, unerased_lines
from discoclaw.memory.erasing.tombstones import Tombstones
from discoclaw.memory.stores import Disks, bring_decisions
from discoclaw.memory.stores import disks as disks_of
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.subject import SubjectFiles
from discoclaw.search import item_index
from discoclaw.search.archive import Archive
from discoclaw.search.vectors import VectorCache

log = logging.getLogger(__name__)
T = TypeVar("T")

_SWEEP_MS = 60_000


@dataclass(slots=True)
class _Entry:
    """One subject in RAM. `files` is None until first use."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    files: SubjectFiles | None = None
    users: int = 0
    """Who holds the lock or waits for it: while there are any, the entry stays."""


class Memory:
    """Views of subjects, and the one way to change them. `root` is `data/memory`.

    `changed` is called with the subject after each record, `committed` with subject and commit after each
    commit that was asked for here (not for edits by hand). Idle subjects leave RAM after `idle_ms`.
    `disks` are the stores, plain files unless given; of `durable_folder` and `ledger_folder` only these know.
    `rolling`, `cursors` and `responses` are where else there is something of a person, for an erasing; those
    of the store, and of `cache` beside it, unless given. `eraser` says who else is told of one.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        durable_folder: Path | None = None,
        max_items: int = 200,
        idle_ms: int = HOUR_MS,
        disks: Disks | None = None,
        rolling: RollingMemory | None = None,
        cursors: Cursors | None = None,
        responses: Responses | None = None,
    ) -> None:
        self._disks = disks or disks_of("files", root, durable=durable_folder)
        self.disk = self._disks.used
        self.ledgers: Ledgers = self.disk.ledgers
        self.ledger_folder = root / LEDGERS
        self.durable_folder = durable_folder or root / "durable"
        self.changed: list[Callable[[str], None]] = []
        self.committed: list[Callable[[str, Commit], None]] = []
        self._root = root
        self._snapshots = root.parent / "cache" / "views"
        self._clock = clock
        self._max_items = max_items
        self._entries: IdleMap[_Entry] = IdleMap(
            lambda subject: _Entry(),
            idle_ms=idle_ms,
            created=lambda subject: log.debug("%s: into memory", subject),
            evicted=lambda subject, entry: log.debug("%s: out of memory, idle", subject),
        )
        self._swept = 0
        self._folder_lock = FileLock(root / ".lock", thread_local=False)
        self._tombstones = Tombstones(self.disk)
        self.eraser = self._eraser(rolling, cursors)
        self.eraser.held.append(self._groups_held)
        responses = responses or Responses(root.parent / "cache" / "responses", clock=clock)
        self.archive = Archive(root / "archive.sqlite", clock=clock)
        self.vectors = VectorCache(root.parent / "cache" / "vectors.sqlite")
        self.items_folder = root.parent / "cache" / "items"
        self.eraser.also += [responses.erase, self.archive.erase_subject, self.vectors.erase]
        self.eraser.also.append(partial(item_index.erase, self.items_folder))

    def _eraser(self, rolling: RollingMemory | None, cursors: Cursors | None) -> Eraser:
        used, snapshots = self.disk, FileDocuments(self._snapshots)
        rolling = rolling or RollingMemory(used.documents(ROLLING), clock=self._clock)
        cursors = cursors or Cursors(used.documents(CURSORS))
        return Eraser(
            replace(places_of(used, snapshots), rolling=rolling.documents, cursors=cursors.documents),
            self._tombstones,
            rolling=rolling,
            cursors=cursors,
            beside=[places_of(disk, snapshots) for disk in self._disks.beside],
        )

    # ------------------------------------------------------------------ the folder

    def open(self) -> None:
        """Take the folder for this process, and finish erasings that were interrupted.

        Raises FolderInUse, naming who has it, or MemoryFault when it can not be made or used.
        """
        self._take_folder()
        try:
            lock_holder.note(self._root, self._clock())
            self._disks.open()
            self._tombstones.load()
            self.eraser.resume(self._clock())
        except OSError as error:
            self.close()
            raise MemoryFault(f"the memory can not be used: {error}") from error
        except BaseException:
            self.close()
            raise

    def bring_decisions(self, source: Disk) -> None:
        """Add who opted out and who was erased elsewhere to what is known here, durably. Blocking.

        Raises MemoryFault.
        """
        bring_decisions(source, self.disk)
        self._tombstones.load()

    def rescue(self) -> list[str]:
        """Save what can be read of a store that is damaged as a whole; what was done, in sentences.

        Not while it is open. Raises FolderInUse, and MemoryFault when the disk fails.
        """
        self._take_folder()
        try:
            return self._disks.rescue(stamp_of(self._clock()))
        except OSError as error:
            raise MemoryFault(f"what is damaged can not be mended: {error}") from error
        finally:
            self.close()

    def _take_folder(self) -> None:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            self._folder_lock.acquire(timeout=0)
        except Timeout as error:
            raise FolderInUse(
                f"{self._root} is in use by {lock_holder.who(self._root, self._clock())}; "
                "stop that one, or set another DISCOCLAW_DATA_DIR"
            ) from error
        except OSError as error:
            raise MemoryFault(f"{self._root} can not be used: {error}") from error

    def close(self) -> None:
        """Give the folder back."""
        self.archive.close()
        self.vectors.close()
        self._disks.close()
        if self._folder_lock.is_locked:
            lock_holder.leave(self._root)
            self._folder_lock.release()

    # ------------------------------------------------------------------ reading and changing

    async def view(self, subject: str, branch: str | None = None) -> View:
        """What is remembered of a subject now, on HEAD's branch or the one named.

        A branch that does not exist yet says what `main` says. Raises MemoryFault when memory can not be
        read. Never waits for somebody who is writing: what was there before is then the answer.
        """
        known = self.view_in_ram(subject, branch)
        if known is not None:
            return known
        entry = self._use(subject)
        async with _held(entry):
            return await self._branch_view(await self._loaded(subject, entry), branch)

    def view_in_ram(self, subject: str, branch: str | None = None) -> View | None:
        """The view, if it is at hand and no file was edited by hand. Costs one `stat`."""
        entry = self._use(subject)
        files = entry.files
        if files is None or not (entry.lock.locked() or files.current()):
            return None
        if branch is None:
            return files.view
        return files.branch_view(branch) if files.in_ram(branch) else None

    async def last_view(self, subject: str) -> View:
        """What HEAD's branch said when anybody last looked: a file that was edited since is not looked at.

        For who only shows memory elsewhere, and hears of the edit by `changed`: a look would keep the view
        from whoever answers the person at the same time. Raises MemoryFault when memory can not be read.
        """
        files = self._use(subject).files
        return files.view if files is not None else await self.view(subject)

    async def branches(self, subject: str) -> Branches:
        """The branches of a subject. Raises MemoryFault when they can not be read."""
        entry = self._use(subject)
        if entry.files is not None and (entry.lock.locked() or entry.files.current()):
            return entry.files.branches
        async with _held(entry):
            return (await self._loaded(subject, entry)).branches

    def branches_in_ram(self, subject: str) -> Branches | None:
        """The branches, if they are at hand."""
        files = self._use(subject).files
        return files.branches if files is not None else None

    async def history(self, subject: str) -> History:
        """All that ever was of a subject, read from disk. Raises MemoryFault when that fails.

        Nobody who writes waits for that: what is appended meanwhile is in it, or is not.
        """
        entry = self._use(subject)
        async with _held(entry):
            files = await self._loaded(subject, entry)
        return await self._history(files)

    async def change(
        self,
        subject: str,
        why: str,
        wish: Callable[[Draft], T],
        /,
        *,
        branch: str | None = None,
        begin: bool = True,
        **metadata: Any,
    ) -> T:
        """Let `wish` draft changes on the newest view, and record them as one commit.

        `why` is the commit's message, `metadata` what else belongs to it. `branch` is HEAD's unless named;
        one that does not exist yet begins, with its first change, as a fork of `main`, or is Refused where it
        may not `begin`. Returns what `wish` returns. When nothing changed, nothing is written. Raises
        whatever `wish` raises, and MemoryFault when the disk does not take it; memory is then as it was.
        """
        entry = self._use(subject)
        async with _held(entry):
            files = await self._loaded(subject, entry)
            name = branch or files.branches.current
            if name not in files.branches.all:
                name = branch_name(name) if begin else files.branches.named(name).name
            view = await self._branch_view(files, name)
            now_ms = files.next_ms(self._present(subject, *map(user_subject, metadata.get(PEOPLE, ()))))
            records: list[Record] = []
            if name not in files.branches.all:
                records.append(files.branches.create(name, "", now_ms=now_ms, start=view.head, **metadata))
                now_ms += 1
            draft = Draft(
                view,
                now_ms=now_ms,
                max_items=self._max_items,
                erased_at=self.erased_at(subject),
                own=subject == BOT,
            )
            outcome = wish(draft)
            commit = draft.commit(why, branch=name, **metadata)
            if commit is not None:
                await self._record(subject, entry, files, [*records, commit], draft.after(commit))
        return outcome

    async def act(self, subject: str, work: Callable[[History, int, int], tuple[Sequence[Record], T]]) -> T:
        """Let `work` make records from the whole history, and append them.

        It is given the history, the present (ms) and the most items a branch may have. Returns what it
        returns beside the records. Raises what it raises, and MemoryFault.
        """
        entry = self._use(subject)
        async with _held(entry):
            files = await self._loaded(subject, entry)
            history = await self._history(files)
            records, outcome = await in_thread(work, history, self._present(subject), self._max_items)
            if records:
                await self._record(subject, entry, files, records)
        return outcome

    async def turn(self, subject: str, work: Callable[[Branches, int], Ref | None]) -> Branches:
        """Let `work` create, switch or delete a branch, given the branches and the present (ms).

        Returns the branches as they are then. Raises what it raises, and MemoryFault.
        """
        entry = self._use(subject)
        async with _held(entry):
            files = await self._loaded(subject, entry)
            ref = work(files.branches, self._present(subject))
            if ref is not None:
                if ref.action == "switch":
                    await self._branch_view(files, ref.branch)
                await self._record(subject, entry, files, [ref])
            return files.branches

    async def restore(self, subject: str, lines: bytes) -> bool:
        """Put a ledger that is lost back, byte for byte. False, and nothing is written, where there is one.

        The durable file is looked at behind it: an edit of it becomes a commit, and a lost one is written.
        Raises MemoryFault when the disk does not take it.
        """
        entry = self._use(subject)
        async with _held(entry):
            if (why := self.eraser.why_not(subject)) is not None:
                raise MemoryFault(why)
            where = self.ledgers.log(subject)
            if group_of(subject) is not None:
                lines = unerased_lines(lines, self.erased_at)
            try:
                if await in_thread(where.size):
                    return False
                await in_thread(where.replace, lines)
            except OSError as error:
                raise MemoryFault(f"{where.path.name} could not be written: {error}") from error
            entry.files = None
            await self._loaded(subject, entry)
        self._tell(subject)
        return True

    # ------------------------------------------------------------------ erasing

    async def erase(self, subject: str, *, asked_at: int = 0) -> Erased:
        """Erase all that is kept of a subject, for good; see `discoclaw.memory.erasing.erase`.

        `asked_at` (ms) is when that was asked for by the chat's clock, which may be ahead of ours: what was
        said until then is not learned again. An erasing that was begun goes on though the caller gives up.
        The bot's own memory goes along where anything in it rests on the person's words.
        Raises MemoryFault when it can not even be noted; nothing has happened then.
        """
        return await to_its_end(self._erase_with_soul(subject, asked_at))

    def erased_at(self, subject: str) -> int:
        """When (ms) the subject was last erased; -1 when never."""
        return self._tombstones.erased_at(subject)

    def erased_anybody(self) -> bool:
        """Whether anybody was ever erased here: words of unknown people may then be theirs."""
        return self._tombstones.any()

    def pending_erasures(self, step: str | None = None) -> list[str]:
        """Subjects whose erasing is not finished, or waits for this step outside."""
        pending = self.eraser.pending.values()
        return [one.subject for one in pending if step is None or step in one.todo]

    async def finish_step(self, subject: str, step: str) -> None:
        """A step outside is done. Raises MemoryFault when that can not be noted: it is then done again."""
        async with _held(self._use(subject)):
            await in_thread(self.eraser.step_done, subject, step)

    async def _erase_with_soul(self, subject: str, asked_at: int) -> Erased:
        # Before, so that a kill in between leaves nothing of it; and behind, for what came in between.
        before = await self._erase_soul_of(subject, asked_at)
        erased = await self._erase(subject, asked_at)
        soul = await self._erase_soul_of(subject, asked_at) or before
        return erased if soul is None else replace(erased, left=(*erased.left, *soul.left), soul=True)

    async def _erase_soul_of(self, subject: str, asked_at: int) -> Erased | None:
        """Erase the bot's own memory, if anything in it rests on a person's words; else None."""
        user = user_of(subject)
        if user is None:
            return None
        known = self._entries.peek(BOT) is not None
        try:
            commits = (await self.history(BOT)).commits.values()
            theirs = any(_rests_on(commit, user) for commit in commits)
        except MemoryFault as fault:
            log.error("the bot's own memory can not be read, so it goes along with %s: %s", subject, fault)
            theirs = True
        if theirs:
            return await self._erase(BOT, asked_at)
        if not known and self._use(BOT).users == 0:
            self._entries.drop(BOT)  # it was only looked at
        return None

    async def _erase(self, subject: str, asked_at: int) -> Erased:
        entry = self._use(subject)
        async with _held(entry):
            files, entry.files = entry.files, None
            last = files.branches.last_ms if files is not None else await in_thread(self._last_ms, subject)
            last = max(last, await in_thread(self._last_in_groups, subject))
            now = self._clock()
            # Records may be ahead of the clock, but one of the year 9999 must not bar what is said till then.
            at = max(now, asked_at, min(last, now + HOUR_MS), self.erased_at(subject) + 1)
            erased = await self.eraser.erase(subject, at)
        if entry.users == 0:
            self._entries.drop(subject)
        for one in (subject, *erased.groups):
            self._tell(one)
        return erased

    @asynccontextmanager
    async def _groups_held(self, subject: str) -> AsyncIterator[None]:
        """Nobody writes the memory of a group while a person is taken out of it; then it is read anew.

        A group that nobody uses now needs no lock: who comes later finds the tombstone.
        """
        if user_of(subject) is None:
            yield
            return
        try:
            async with AsyncExitStack() as stack:
                for entry in self._group_entries():
                    await stack.enter_async_context(_held(entry))
                    entry.files = None
                yield
        finally:
            for entry in self._group_entries():  # those that came meanwhile may have read what is gone
                async with _held(entry):
                    entry.files = None

    def _group_entries(self) -> list[_Entry]:
        groups = (self._entries.peek(key) for key in self._entries if group_of(key) is not None)
        return [entry for entry in groups if entry is not None]

    def _last_in_groups(self, subject: str) -> int:
        """When (ms) a group last recorded what rests on a person's words, as far as that can be read."""
        user = user_of(subject)
        try:
            return newest(self.ledgers, user) if user is not None else 0
        except OSError:
            return 0

    def _last_ms(self, subject: str) -> int:
        """The time of a subject's newest record, as far as it can be read."""
        try:
            records = ledger.read(self.ledgers.log(subject)).records
        except OSError:
            return 0
        return max((ms_of_iso(record.timestamp) for record in records), default=0)

    # ------------------------------------------------------------------ what is in RAM

    def evict_idle(self) -> list[str]:
        """Drop idle subjects from RAM now; they come back from disk when used."""
        return self._entries.evict_idle(self._clock(), busy=lambda entry: entry.users > 0)

    def in_ram(self) -> int:
        """How many subjects are in RAM."""
        return len(self._entries)

    # ------------------------------------------------------------------ inside

    def _use(self, subject: str) -> _Entry:
        now = self._clock()
        if now - self._swept > _SWEEP_MS:
            self._swept = now
            self.evict_idle()
        return self._entries.use(safe_id(subject), now)

    async def _record(
        self,
        subject: str,
        entry: _Entry,
        files: SubjectFiles,
        records: Sequence[Record],
        after: View | None = None,
    ) -> None:
        """Append records. The caller holds the lock. `after` is the view with the last one, where known."""
        erased_at, before = self.erased_at(subject), files.branches
        if any(ms_of_iso(record.timestamp) <= erased_at for record in records):
            raise Refused("what was recorded before the memory was erased does not come back")
        if group_of(subject) is not None and not (records := unerased(records, self.erased_at)):
            return
        try:
            await in_thread(files.record, records, self._present(subject), after)
        except (MemoryFault, OSError) as error:
            entry.files = None  # what lies on disk is read anew, and verified, by the next one
            if isinstance(error, MemoryFault):
                raise
            raise MemoryFault(f"the memory of {subject} can not be read: {error}") from error
        finally:  # also when the caller gave up meanwhile: the records stand
            if files.branches is not before:
                self._tell(subject)
                for record in records:
                    if isinstance(record, Commit):
                        for listen in self.committed:
                            listen(subject, record)

    async def _history(self, files: SubjectFiles) -> History:
        try:
            return await asyncio.to_thread(files.history)
        except OSError as error:
            raise MemoryFault(f"the history of {files.subject} can not be read: {error}") from error

    async def _branch_view(self, files: SubjectFiles, branch: str | None) -> View:
        """A branch's view, from disk if need be. The caller holds the lock."""
        if branch is None or branch == files.branches.current:
            return files.view
        if files.in_ram(branch):
            return files.branch_view(branch)
        try:
            return await in_thread(files.branch_view, branch)
        except OSError as error:
            raise MemoryFault(f"the memory of {files.subject} can not be read: {error}") from error

    async def _loaded(self, subject: str, entry: _Entry) -> SubjectFiles:
        """The subject's files, read if need be, a hand edit adopted. The caller holds the lock."""
        files = entry.files
        if files is None:
            if (why := self.eraser.why_not(subject)) is not None:
                raise MemoryFault(why)
            try:
                files = await asyncio.to_thread(self._open_files, subject)
            except OSError as error:
                raise MemoryFault(f"the memory of {subject} can not be read: {error}") from error
        adopted = not files.current() and await in_thread(files.reconcile, self._present(subject))
        entry.files = files  # not before: nobody is to see what an edit has overtaken
        if adopted:
            self._tell(subject)
        return files

    def _open_files(self, subject: str) -> SubjectFiles:
        user, folder = user_of(subject), self.disk.durable
        durable = folder / f"{user}.json" if user is not None and folder is not None else None
        cached, erased_at = self._snapshots / f"{subject}.json", self.erased_at(subject)
        lines = self.ledgers.log(subject)
        return SubjectFiles(subject, lines, durable, self._max_items, cached, erased_at=erased_at)

    def _present(self, *subjects: str) -> int:
        """The time (ms) of a record made now: behind every erasing of these, even if the clock is not."""
        return max(self._clock(), *(self.erased_at(subject) + 1 for subject in subjects))

    def _tell(self, subject: str) -> None:
        for tell in self.changed:
            tell(subject)


def _rests_on(commit: Commit, user: str) -> bool:
    """Whether a commit of the bot's own memory says that it rests on a person's words, or is about them.

    One that was imported without its history says so only by the tag of an item, which is whose it is.
    """
    tagged = (tidy_tags(event.ext.get("item", {}).get("tags")) for event in commit.events)
    return commit.metadata.get(HUMAN) == user or any(user in tags for tags in tagged)


@asynccontextmanager
async def _held(entry: _Entry) -> AsyncIterator[None]:
    """The entry's lock; whoever waits for it keeps the entry from being evicted."""
    entry.users += 1
    try:
        async with entry.lock:
            yield
    finally:
        entry.users -= 1

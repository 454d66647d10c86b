"""Purging: what a person took back leaves everything that is derived from it. The purge from top to bottom.

The ledger says what was taken back (`View.taken_back`); that is the record of a purge, and one append carries
it with its commit. From there:

    1  the commit is on disk   until then nothing has happened
    2  "ram"                   of every part, before anybody can use it again; never blocks
    3  "disk"                  of every part, before the person is answered if that takes no longer than
                               REPORT_S, and again until it has worked
    4  "done"                  what waited for that may be used again: summaries are written anew
    5  the cursor              `withdrawn-<subject>` has the times (ms) of what is `done`, and whether all was
                               purged because the person opted `out`
    6  outside                 threads are renamed, messages renewed, relays told: each part tries again

What always holds:

- A kill between any two steps loses nothing: the cursor lacks the time, and the start does it before anybody
  is answered (but waits at most START_S). Every step may be repeated.
- A part that fails keeps no other from purging, and is asked again.
- What comes from elsewhere (an edit by hand, another replica, a recovery) is purged too, however old it is.
- People who want no memory at all take back everything they said. No ledger says so, only their choice.
- Messages that were deleted or edited in the chat are in no ledger either; `session/deleted_messages` has
  their record, and hands them over (`unsaid`).
- Erasing somebody is the widest purge, and goes the same way through the parts. It has a record of its own,
  because the ledger goes with it: see `erasing/erase`. What is left of one is finished here, by the same
  worker and with the same pauses.

Where several processes share the store, each of them purges RAM as soon as it hears that a ledger changed,
and what lies on its own machine (`Derived.local`) by itself. What is in the store is purged by the one that
has the change, or by the follower; the cursor tells the others when that is done.
Independent of the parts, and of how a person is told.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from discoclaw.core.consent import ALWAYS, Consent
from discoclaw.core.errors import DiscoClawError, MemoryFault
from discoclaw.core.event import Commit
from discoclaw.core.message import Said
from discoclaw.core.purge import NOTHING_PURGED, Derived, Phase, Purge, Purged, Report
from discoclaw.core.subject import dm_of, person_of, user_of, user_subject
from discoclaw.core.text import normalise
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.memory.changes import Listener
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.erasing.erase import Eraser
from discoclaw.memory.erasing.store_files import Registry
from discoclaw.memory.subjects.follow import Follower
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.store.files import in_thread
from discoclaw.store.port import CURSORS, subject_of
from discoclaw.work import within

log = logging.getLogger(__name__)
T = TypeVar("T")

DONE: Final = "withdrawn-"
"""The beginning of the names of the cursors that say what is done."""
FOLLOWER: Final = "follow-withdrawals"
"""The cursor of the follower."""
START_S: Final = 20.0
"""The longest that a start waits for what a killed run left; after that it is done while people talk."""
RETRY_S: Final = 30.0
"""The pause before an erasing goes on that waits for another process, or for a disk."""
LONGEST_S: Final = 300.0
"""The longest pause before what was left is tried again: until they are erased, nobody is remembered."""
MOST_KNOWN: Final = 10_000
"""Of how many subjects it is known what is gone since the start."""
REPORT_S: Final = 2.0
"""The longest that somebody waits to be told what was removed; a disk may hang."""


@dataclass(slots=True, eq=False)
class _Watch:
    """What happens to one subject while somebody waits to be told: commits, choices, and what was removed."""

    subject: str
    commits: list[Commit] = field(default_factory=list)
    removed: Purged = NOTHING_PURGED
    changed: bool = False
    chose: bool = False


class Purger(Derived, Listener):
    """Has the parts in `personal` purge what people took back. It is a `core.ports.Service`.

    `choosers` returns everybody who ever made a choice. `shared`: other processes use the store.
    """

    name = "purges under way"

    def __init__(
        self,
        memory: AnyMemory,
        eraser: Eraser,
        personal: Registry,
        cursors: Cursors,
        consent: Consent,
        *,
        shared: bool = False,
        start_s: float = START_S,
        choosers: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._memory = memory
        self._consent = consent
        self._shared = shared
        self._start_s = start_s
        self._choosers = choosers
        self._eraser = eraser
        self._personal = personal
        self._cursors = cursors
        ledgers = memory.ledgers
        self._follower = Follower(
            "withdrawals", self._bring, ledgers=ledgers, cursors=cursors, longest_s=LONGEST_S, awake=True
        )
        self.rest = self._follower.rest
        self._watches: list[_Watch] = []
        self._gone: dict[str, set[int]] = {}
        """The times (ms) of what is gone from RAM, by subject."""
        self._here: dict[str, set[int]] = {}
        """The times (ms) of what is gone from this machine since the start, by subject, in a shared store."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # ------------------------------------------------------------------ the lifecycle

    async def start(self) -> None:
        """Finish what a killed run left. What takes long is finished while people talk."""
        await self._follower.catch_up()
        for subject in self._eraser.unfinished():
            self._follower.touch(subject)
        for subject in map(user_subject, self._choosers()):  # that somebody opted out is in no ledger
            _, was_out = await self._progress(subject)
            if was_out != self._consent.opted_out(user_of(subject) or ""):
                self._follower.touch(subject)
        try:
            async with asyncio.timeout(self._start_s):
                await self._follower.settle()
        except TimeoutError:
            log.warning("what people took back is still being removed; the talk begins all the same")

    async def settle(self) -> None:
        """Wait until nothing is left to do for now."""
        await self._follower.settle()

    async def close(self) -> None:
        """Stop; the next start finds what is left."""
        await self._follower.close()

    # ------------------------------------------------------------------ RAM: as soon as something changed

    def committed(self, subject: str, commit: Commit) -> None:
        """Purge RAM of what a commit took back, before anybody can use it again. Never blocks."""
        for watch in self._watching(subject):
            watch.commits.append(commit)
        self._purge_ram_of(subject, self._memory.view_in_ram(subject, commit.branch))

    def recorded(self, subject: str) -> None:
        for watch in self._watching(subject):
            watch.changed = True
        view = self._memory.view_in_ram(subject)
        self._purge_ram_of(subject, view)
        if subject in self._eraser.unfinished():
            self._follower.touch(subject, RETRY_S)
        elif user_of(subject) is not None and (view is None or view.taken_back):
            self._follower.touch(subject)

    def chosen(self, user_id: str) -> None:
        for watch in self._watching(user_subject(user_id)):
            watch.changed = watch.chose = True
        if self._consent.opted_out(user_id):
            self._purge_ram(everything(user_subject(user_id)))
        self._follower.touch(user_subject(user_id))

    def purge(self, purge: Purge, phase: Phase) -> None:
        """Know nothing more of somebody who is erased."""
        if phase == "ram" and purge.erases:
            self._gone.pop(purge.subject, None)
            self._here.pop(purge.subject, None)

    def _purge_ram_of(self, subject: str, view: View | None) -> None:
        """Purge RAM of what a view says was taken back, if that was not done before."""
        if view is None or user_of(subject) is None:
            return
        gone = _times(self._gone, subject)
        for one in view.purges(subject, lambda at: at not in gone):
            self._purge_ram(one)

    def _purge_ram(self, purge: Purge) -> Purged:
        if purge.texts:  # else no ledger has it, and that time may be another purge's
            _times(self._gone, purge.subject).add(purge.at)
        removed = self._personal.ram(purge)
        self._note(purge.subject, removed)
        return removed

    # ------------------------------------------------------------------ disk: until it has worked

    async def _bring(self, subject: str) -> None:
        """Finish what is left of erasing a subject, and purge all that it took back since the last time.

        Raises MemoryFault and OSError.
        """
        if subject in self._eraser.unfinished():
            await self._eraser.finish(subject)
        async with self._locks.setdefault(subject, asyncio.Lock()):
            done, was_out = await self._progress(subject)
            is_out = self._consent.opted_out(user_of(subject) or "")
            found, taken = [everything(subject)] if is_out and not was_out else [], set[int]()
            views = await self._views(subject)
            for view in views:
                taken |= {one.at for one in view.taken_back.values()}
                found += view.purges(subject, lambda at: at not in done)
            if self._shared:
                await self._purge_here(subject, views)
            await self._purge(found, local=False if self._shared else None)
            self._done(subject)
            if (taken, is_out) != (done, was_out):
                await self._cursors.put(f"{DONE}{subject}", {"done": sorted(taken), "out": int(is_out)})

    async def unsaid(self, purge: Purge) -> None:
        """Remove what was made in its sessions from messages that were deleted or edited in the chat.

        That is for what no ledger knows. Raises MemoryFault and OSError; it is then to be called again.
        """
        async with self._locks.setdefault(purge.subject, asyncio.Lock()):
            await self._purge([purge], purge.sessions)
            if not purge.subject:
                self._done("")
        if purge.subject:
            self._follower.touch(purge.subject)  # which ends it, after what their ledger says

    async def _purge(
        self, found: Sequence[Purge], sessions: Collection[str] | None = None, *, local: bool | None = None
    ) -> None:
        """Have every part purge what was `found` of one subject. Raises MemoryFault and OSError.

        `sessions` are the conversations that may have it; by default, all that have words of the subject.
        With `local`, only the parts that every process purges by itself, or those that one does for all.
        """
        in_ram = sum(map(self._purge_ram, found), NOTHING_PURGED)
        if found and sessions is None:
            known = await in_thread(self._personal.sessions_on_disk, found[0].subject)
            sessions = known | in_ram.sessions | {dm_of(found[0].user_id)}
        left: tuple[str, ...] = ()
        for purge in found:
            removed = await self._personal.disk(
                replace(purge, sessions=frozenset(sessions or ())), local=local
            )
            self._note(purge.subject, removed)
            left += removed.left
        if left:
            raise MemoryFault("; ".join(left))

    def _done(self, subject: str) -> None:
        """Tell the parts that everything a subject took back so far is gone."""
        self._personal.done(Purge(subject, ALWAYS))

    async def _progress(self, subject: str) -> tuple[set[int], bool]:
        """The times (ms) of what is done, and whether everything was purged because the person opted out."""
        cursor = await self._cursors.get(f"{DONE}{subject}")
        done, out = cursor.get("done"), bool(cursor.get("out"))
        return {one for one in done if isinstance(one, int)} if isinstance(done, list) else set(), out

    async def _views(self, subject: str) -> list[View]:
        """The views of all branches. Raises MemoryFault."""
        names = (await self._memory.branches(subject)).all
        return [await self._memory.view(subject, name) for name in names]

    # ------------------------------------------------------------------ other processes

    async def renewed(self, names: Collection[str]) -> None:
        """Purge what was taken back in another process, and be ready to finish what it erases.

        Raises MemoryFault if that cannot be read.
        """
        for unfinished in self._eraser.unfinished():
            self._follower.touch(unfinished)
        done = {subject for name in names if (subject := _subject_done(name)) is not None}
        changed = {subject for name in names if (subject := subject_of(name)) is not None}
        for subject in sorted(done | {one for one in changed if user_of(one) is not None}):
            heard = self._consent.in_use(user_of(subject) or "")
            if subject in done or heard or self._memory.has_in_ram(subject):
                await self._take_up(subject)
            if subject in done:
                self._done(subject)
        # Whoever took something back removes it from the store, unless they are killed before that.
        await self._follower.renewed(names, RETRY_S)

    async def _take_up(self, subject: str) -> None:
        try:
            views = await self._views(subject)
        except MemoryFault as fault:
            if isinstance(fault.__cause__, OSError):
                raise  # until it can be read, nothing of theirs may be used
            log.info("%s: what was taken back elsewhere is not known: %s", subject, fault)
            return  # of somebody who is being erased, more is removed
        for view in views:
            self._purge_ram_of(subject, view)
        try:
            await self._purge_here(subject, views)
        except (MemoryFault, OSError) as error:
            log.warning("%s: what was taken back is not removed here yet: %s", subject, error)
            self._follower.touch(subject)

    async def _purge_here(self, subject: str, views: Sequence[View]) -> None:
        """Remove from this machine what was taken back since it began. Raises MemoryFault and OSError."""
        here = _times(self._here, subject)
        out = self._consent.opted_out(user_of(subject) or "")
        if not out:
            here.discard(ALWAYS)
        found = [one for view in views for one in view.purges(subject, lambda at: at not in here)]
        if out and ALWAYS not in here:
            found.append(everything(subject))
        await self._purge(found, (), local=True)
        here |= {one.at for one in found}

    # ------------------------------------------------------------------ telling the person

    async def told(self, subject: str, work: Awaitable[T]) -> tuple[T, Report]:
        """Await a change, and report what it took back of a subject, once that is removed from everywhere.

        What the disk refuses, or keeps waiting for, is removed later. Raises only what `work` raises.
        """
        watch = _Watch(subject)
        self._watches.append(watch)
        try:
            outcome = await work
            if not watch.changed:
                return outcome, Report()
            task = await within(REPORT_S, self._reported(watch))
            return outcome, task.result() if task.done() else Report(watch.removed, waiting=True)
        finally:
            self._watches.remove(watch)

    async def _reported(self, watch: _Watch) -> Report:
        subject, out = watch.subject, watch.chose and self._consent.opted_out(user_of(watch.subject) or "")
        try:
            await self._bring(subject)
            elsewhere = await self._elsewhere(watch)
        except (DiscoClawError, OSError) as error:
            log.warning("%s: what was taken back could not be removed everywhere yet: %s", subject, error)
            self._follower.touch(subject)
            return Report(watch.removed, waiting=True, everything=out)
        back = any(_brings_back(commit) for commit in watch.commits)
        return Report(watch.removed, everything=out, brought_back=back, elsewhere=elsewhere)

    async def _elsewhere(self, watch: _Watch) -> Mapping[str, tuple[str, ...]]:
        """The items of other personas that say what was taken back in one. Raises MemoryFault."""
        taken: dict[str, set[str]] = {}
        for commit in watch.commits:
            view = await self._memory.view(watch.subject, commit.branch)
            times = {ms_of_iso(event.timestamp) for event in commit.events}
            for one in view.purges(watch.subject, times.__contains__):
                if not one.open_only:
                    taken.setdefault(commit.branch, set()).update(map(normalise, one.texts))
        texts = set[str]().union(*taken.values())
        found = {}
        for name in sorted((await self._memory.branches(watch.subject)).all.keys() - taken.keys()):
            items = (await self._memory.view(watch.subject, name)).active() if texts else []
            if same := tuple(item.id for item in items if normalise(item.text) in texts):
                found[name] = same
        return found

    def _watching(self, subject: str) -> Iterator[_Watch]:
        return (watch for watch in self._watches if watch.subject == subject)

    def _note(self, subject: str, removed: Purged) -> None:
        for watch in self._watching(subject):
            watch.removed += removed

    # ------------------------------------------------------------------ what of a talk may still be used

    async def of(self, user_ids: Iterable[str]) -> list[Purge]:
        """Everything that these people took back, so that it can be left out when talk is read again.

        Raises MemoryFault.
        """
        subjects = map(user_subject, sorted(set(user_ids)))
        return [
            one for subject in subjects for view in await self._views(subject) for one in view.purges(subject)
        ]

    async def left(self, said: Iterable[Said], session_key: str, *, private: bool) -> list[Said]:
        """The messages of a conversation that may be used, without what somebody took back.

        Nothing by people who want no memory is used. Raises MemoryFault: if this is unknown, nothing may be
        used.
        """
        messages = list(said)
        people = {_person_in(one) for one in messages if not one.guest}
        taken = await self.of({*people, person_of(session_key) or ""} - {""})
        asked: dict[str, int] = {}
        """When (ms) each person last said something: an answer to them is about that."""
        kept = []
        for one in messages:
            person = _person_in(one)
            if not one.by_us:
                asked[person] = one.sent_at
            at = asked.get(person)
            covered = any(back.covers(one, in_private=private, asked_at=at) for back in taken)
            if not covered and not self._consent.opted_out(person):
                kept.append(one)
        return kept

    def has(self, said: Said, asked_at: int, *, private: bool) -> bool:
        """Whether an answer has what the person took back while it was made.

        `asked_at` (ms) is the time of their question.
        """
        subject = user_subject(said.to_id)
        branches = self._memory.branches_in_ram(subject)
        views = (self._memory.view_in_ram(subject, name) for name in (branches.all if branches else ()))
        taken = (one for view in views if view is not None for one in view.purges(subject))
        return any(one.covers(said, in_private=private, asked_at=asked_at) for one in taken)


def _times(known: dict[str, set[int]], subject: str) -> set[int]:
    """The times that are known to be done for a subject; of whom nothing was heard for long, none are."""
    times = known[subject] = known.pop(subject, set())
    if len(known) > MOST_KNOWN:
        del known[next(iter(known))]  # what they took back is purged once more, and finds nothing
    return times


def everything(subject: str) -> Purge:
    """The purge of all that somebody said, because they want no memory."""
    return Purge(subject, ALWAYS, everything=True)


def _person_in(said: Said) -> str:
    """The user id of the person whose talk a message belongs to: its author, or the person it answers."""
    return said.to_id if said.by_us else said.author_id


def _brings_back(commit: Commit) -> bool:
    """Whether a commit undoes another one so that something is remembered again."""
    undoes = not {"reverts", "restores"}.isdisjoint(commit.metadata)
    return undoes and any(
        event.event_type == "add" or event.ext.get("item", {}).get("status") == "active"
        for event in commit.events
    )


def _subject_done(name: str) -> str | None:
    """The subject whose cursor has this path in the store; None if it is something else's."""
    before, _, rest = name.partition(f"{CURSORS}/{DONE}")
    return rest.removesuffix(".json") if rest and not before else None

"""The heartbeat: at intervals, consolidates every memory that changed, one branch after another.

A round looks at what changed since the last one, and at what that one left (`Rounds`). Where several
processes share the store, one of them does. For each subject a cursor stores the newest consolidated commit
of each branch, when that was, and which items were left over. So a restart repeats nothing, a run's own
commit starts no further run, a branch that was only forked has nothing new, and what was reviewed is not paid
for again. If the model is overloaded or down, the round ends, and the next one continues from there; a
subject that fails by itself is skipped for more rounds each time. No reply depends on this.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.consolidate import ConsolidationReport, Review
from discoclaw.core.errors import MemoryFault, ModelError, ModelSpent, Refused
from discoclaw.core.ports import ALONE, Clock, Processes
from discoclaw.core.subject import BOT, group_of, user_of
from discoclaw.core.usage import Payer, paid_by
from discoclaw.loops.consolidate import Consolidator, NoConsolidator
from discoclaw.loops.heard import SPOILED
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.subjects.follow import Rounds
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.work import Jobs

log = logging.getLogger(__name__)

MOST_IN_A_ROUND = 100
"""The most subjects consolidated in one round; those changed longest ago come first."""
ALONE_S = 1_800.0
"""Seconds between rounds if nothing is to be consolidated."""
LONGEST_WAIT = 64
"""The most rounds for which a failing subject is skipped."""

_CURSOR = "heartbeat"


class Heartbeat:
    """Consolidates what changed, every `every_minutes` (0: never), and on demand.

    It skips the memory of people who opted out (`consent`). `first` needs no model and runs before the
    consolidation in each round; with 0 minutes it runs alone, every `ALONE_S`.
    """

    def __init__(
        self,
        consolidator: Consolidator | NoConsolidator,
        memory: AnyMemory,
        cursors: Cursors,
        *,
        clock: Clock,
        every_minutes: float,
        consent: Consent = UNLIMITED,
        first: Callable[[], Awaitable[object]] | None = None,
        processes: Processes = ALONE,
    ) -> None:
        self._consolidator = consolidator
        self._memory = memory
        self._cursors = cursors
        self._clock = clock
        self._tidies = every_minutes > 0
        self._every_s = every_minutes * 60 or (ALONE_S if first is not None else 0)
        self._consent = consent
        self._first = first
        self._processes = processes
        self._rounds = Rounds(_CURSOR, memory.ledgers, cursors)
        self._began = 0
        """When (ms) our last round began."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._failures: dict[str, int] = {}
        self._waits: dict[str, int] = {}  # for how many rounds a subject that failed is skipped
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._asked: set[asyncio.Task[ConsolidationReport]] = set()
        self._jobs = Jobs("tidying")

    async def start(self) -> None:
        """Start the rounds, in a task. Call it only once."""
        if self._task is None and self._every_s > 0 and not self._stop.is_set():
            self._task = asyncio.create_task(self._run(), name="heartbeat")

    async def settle(self) -> None:
        """Wait for consolidations on demand; rounds start by themselves."""
        while self._asked:
            await asyncio.wait(self._asked)

    async def close(self, grace_s: float = 5.0) -> None:
        """Let a run under way finish within `grace_s`, then stop; the next start finds the rest."""
        self._stop.set()
        if tasks := [*self._asked, *([self._task] if self._task is not None else [])]:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        self._jobs.ended()

    async def now(
        self, subject: str, branch: str | None = None, *, by: str = "command", **metadata: Any
    ) -> ConsolidationReport:
        """Consolidate HEAD's branch, or the one named; waits for a run under way on the same subject.

        Raises Refused if there is no such branch, ModelError and MemoryFault; nothing is then changed.
        """
        if self._stop.is_set():
            raise Refused("I am about to stop; ask again in a moment")

        async def run() -> ConsolidationReport:
            async with self._alone(subject):
                with self._jobs.counted():
                    return await self._consolidate(subject, branch, by=by, **metadata)

        task = asyncio.create_task(run(), name=f"tidying {subject}")
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        return await task

    async def round(self) -> None:
        """Run `first` and then, even if that failed, the consolidation."""
        await self._before()
        if self._tidies:
            await self.beat()

    async def beat(self) -> None:
        """Consolidate everything that changed. Ends early if the model fails, or when closing."""
        for subject, left in list(self._waits.items()):
            if left > 1:
                self._waits[subject] = left - 1
            else:
                del self._waits[subject]
        rest, settled = MOST_IN_A_ROUND, list[str]()
        for subject in await self._rounds.begin():
            if self._stop.is_set() or rest <= 0:
                break
            if subject in self._waits:
                continue
            try:
                with paid_by(Payer(user_of(subject))), self._jobs.counted():
                    asked, over = await self._look_at(subject)
                rest -= asked
                settled += [subject] if over else []
                self._failures.pop(subject, None)
                continue
            except (*SPOILED, MemoryFault, Refused) as error:
                log.warning("%s is not tidied: %s: %s", subject, type(error).__name__, error)
            except ModelSpent as error:  # theirs may be the only one that is
                log.info("%s is tidied in a later round: %s", subject, error)
                continue
            except ModelError as error:
                log.warning("tidying ends until the next round: %s: %s", type(error).__name__, error)
                rest = 0
            except Exception:  # deliberately broad: one failing subject must not stop the others
                log.exception("%s is not tidied", subject)
            rest -= 1
            # Also after a model failure: one that is too slow for this subject must not stop the others.
            count = self._failures[subject] = self._failures.get(subject, 0) + 1
            self._waits[subject] = min(1 << min(count - 1, 10), LONGEST_WAIT)
        await self._rounds.done(settled)

    # ------------------------------------------------------------------ inside

    async def _before(self) -> None:
        if self._first is not None:
            try:
                with self._jobs.counted():
                    await self._first()
            except Exception:  # deliberately broad: whatever fails in `first`, the consolidation runs
                log.exception("what comes before the tidying failed")

    async def _run(self) -> None:
        pause = self._rest_s(await self._last_began())
        while not await self._stopped_within(pause):
            pause = self._every_s
            try:
                async with self._processes.free(_CURSOR) as ours:
                    before = self._began
                    if ours and await self._last_began() == before:
                        await self._begin()
                        await self.round()
                    else:  # another process has a round, or had one since our last
                        await self._before()
                        pause = self._rest_s(self._began)
            except Exception:  # deliberately broad: one failing round must not stop the next
                log.exception("a round of tidying failed")

    async def _last_began(self) -> int:
        """When (ms) the last round began, in whichever process; now, if there was none yet."""
        began = (await self._cursors.get(_CURSOR)).get("at")
        if isinstance(began, int):
            self._began = began
        elif not self._began:
            await self._begin()
        return self._began

    async def _begin(self) -> None:
        self._began = self._clock()
        await self._cursors.update(_CURSOR, lambda known: {**known, "at": self._began})

    def _rest_s(self, began: int) -> float:
        """The rest of a pause that a restart cut short, or that another process began."""
        return min(max(self._every_s - (self._clock() - began) / 1000, 0.0), self._every_s)

    async def _stopped_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
        return self._stop.is_set()

    async def _look_at(self, subject: str) -> tuple[bool, bool]:
        """Consolidate the changed branches of a subject.

        Returns whether there were any, and whether all is done until it changes again.
        """
        if subject == BOT or group_of(subject) is not None:
            return False, True  # the bot's own memory is not consolidated; a group's names whose words it is
        user = user_of(subject)
        if user is not None and self._consent.opted_out(user):
            return False, False
        async with self._alone(subject):
            size = (await self._rounds.head(subject)).as_json()
            if not size or (await self._cursors.get(_cursor(subject))).get("size") == size:
                return False, True
            erased = self._memory.erased_at(subject)
            branches, asked = await self._memory.branches(subject), False
            for name in sorted(branches.all, key=lambda name: name != branches.current):
                known = await self._cursors.get(_cursor(subject))
                done, heads = _review(known, name), _heads(known)
                rest = name in heads and done.left
                if branches.all[name].head in {None, *heads.values()} and not rest:
                    continue
                if self._stop.is_set() or not self._wanted(user):
                    return asked, False
                asked = True
                wanted = partial(self._wanted, user)
                await self._consolidate(subject, name, done=done, wanted=wanted)
            there = branches.all

            def looked_at(known: Mapping[str, object]) -> Mapping[str, object]:
                kept = {
                    field: {name: value for name, value in _mapping(known, field).items() if name in there}
                    for field in ("heads", "at", "left")
                }
                # Whatever is left has to be looked at again, also if nothing changes.
                return {**kept, "size": None if kept["left"] else size}

            await self._save(subject, erased, looked_at)
            return asked, not _mapping(await self._cursors.get(_cursor(subject)), "left")

    def _wanted(self, user_id: str | None) -> bool:
        return user_id is None or not self._consent.opted_out(user_id)

    async def _consolidate(self, subject: str, branch: str | None, **metadata: Any) -> ConsolidationReport:
        """Consolidate a branch and save how far it is consolidated. The caller holds the subject's lock."""
        erased = self._memory.erased_at(subject)
        report = await self._consolidator.run(subject, branch, **metadata)
        name, head = report.branch, report.head
        now, left = self._clock(), sorted(report.left)

        def reviewed(known: Mapping[str, object]) -> Mapping[str, object]:
            rest = {**_mapping(known, "left"), name: left}
            return {
                "heads": {**_heads(known), name: head},
                "at": {**_mapping(known, "at"), name: now},
                "left": {branch: ids for branch, ids in rest.items() if ids},
            }

        if head is not None:
            await self._save(subject, erased, reviewed)
        return report

    async def _save(
        self, subject: str, erased: int, change: Callable[[Mapping[str, object]], Mapping[str, object]]
    ) -> None:
        """Save how far a subject is consolidated, unless it was erased meanwhile."""

        def changed(known: Mapping[str, object]) -> Mapping[str, object] | None:
            if self._memory.erased_at(subject) != erased:
                return None
            return {**known, **change(known)}

        await self._cursors.update(_cursor(subject), changed)

    @asynccontextmanager
    async def _alone(self, subject: str) -> AsyncIterator[None]:
        """Keep everybody else from consolidating a subject meanwhile, here and in other processes."""
        lock = self._locks.get(subject)  # it exists as long as somebody holds it or waits for it
        if lock is None:
            lock = self._locks[subject] = asyncio.Lock()
        async with lock, self._processes.lease(_cursor(subject)):
            yield


def _cursor(subject: str) -> str:
    return f"tidied-{subject}"


def _mapping(known: Mapping[str, object], field: str) -> Mapping[str, object]:
    """A field of a cursor that has a value for each branch."""
    found = known.get(field)
    return found if isinstance(found, dict) else {}


def _heads(known: Mapping[str, object]) -> dict[str, str]:
    """The newest consolidated commit of each branch, by branch."""
    return {name: head for name, head in _mapping(known, "heads").items() if isinstance(head, str)}


def _review(known: Mapping[str, object], name: str) -> Review:
    """How far a branch was reviewed; a new one as far as those that it may have been made from."""
    heads = _heads(known)
    names = [name] if name in heads else list(heads)
    at, left = _mapping(known, "at"), _mapping(known, "left")
    times = [time for one in names if isinstance(time := at.get(one), int)]
    ids = (left[one] for one in names if isinstance(left.get(one), list))
    waiting = frozenset(one for some in ids if isinstance(some, list) for one in some if isinstance(one, str))
    return Review(frozenset(heads[one] for one in names), min(times, default=0), waiting)

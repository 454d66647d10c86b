"""Hygiene: what is over leaves the memory by itself: things of the day, and knowledge that nobody asks for.

Needs no model. What leaves is one commit for each branch that says why, stays in the history, and comes back
with an undo. Chance is rolled once: the commit also says which items survived, so that neither a replay nor
a process that is killed in between rolls again, and what is brought back has its whole time again.
What lies beside the memory, an archive and a log, is purged along the way.
The decisions are core's (`decay`); the times of use are `LastUsed`, which is written here too.
Knows nothing about Discord, or about when it is time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.decay import DAY_MS, Decay, due, expired, idle_days, last_use, roll_survival
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Commit, Record
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.ports import Clock
from discoclaw.core.subject import user_of
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects.store import Memory

log = logging.getLogger(__name__)

MOST_IN_A_ROUND = 200
"""Subjects that are looked at in one round; most rounds have none, since it is known who is next when."""
PAUSE_MS = 60_000
"""Between two runs that a compaction asks for."""

Purge = Callable[[int], Awaitable[int]]
"""Purges something beside the memory, given the present (ms); returns how many entries went."""


async def _nothing_to_purge(now_ms: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Expired:
    """What left: `entries` of the archive, things of the day (`conversation`), `idle` items, log `lines`."""

    entries: int = 0
    conversation: int = 0
    idle: int = 0
    lines: int = 0

    def __add__(self, other: "Expired") -> "Expired":
        return Expired(
            self.entries + other.entries,
            self.conversation + other.conversation,
            self.idle + other.idle,
            self.lines + other.lines,
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one branch. `due` (ms) is when there is next something to do."""

    purged: Expired = Expired()
    due: int | None = None
    used: Mapping[str, int] = field(default_factory=dict)
    """Times of use (ms) that only the history knew, by item."""


class Hygiene:
    """Looks after all subjects of `memory`, and after what lies beside it.

    `purge` is that of the archive of talk, `lines` that of a log. `roll` gives random numbers from 0.0 to
    below 1.0. Nothing is done with the memory of who opted out of it (`consent`).
    """

    def __init__(
        self,
        memory: Memory,
        access: LastUsed,
        cursors: Cursors,
        *,
        clock: Clock,
        rules: Decay,
        roll: Callable[[], float],
        purge: Purge = _nothing_to_purge,
        lines: Purge = _nothing_to_purge,
        consent: Consent = UNLIMITED,
    ) -> None:
        self._memory = memory
        self._access = access
        self._cursors = cursors
        self._clock = clock
        self._rules = rules
        self._roll = roll
        self._purge = purge
        self._lines = lines
        self._consent = consent
        self._lock = asyncio.Lock()
        self._ran = 0
        self._task: asyncio.Task[object] | None = None
        self._closed = False

    async def run(self, now_ms: int | None = None) -> Expired:
        """One round at a time (ms), the present unless given: the archive, and whoever is due."""
        now = self._clock() if now_ms is None else now_ms
        async with self._lock:
            self._ran = now
            total = Expired(
                entries=await self._purged(self._purge, now, "the archive"),
                lines=await self._purged(self._lines, now, "the log of tools"),
            )
            total += await self._round(now)
            await self._access.flush()
        if total != Expired():
            log.info(
                "hygiene: %d entries, %d things of the day and %d idle items left%s",
                total.entries,
                total.conversation,
                total.idle,
                f", and {total.lines} lines of a log" if total.lines else "",
            )
        return total

    def compacted(self, subject: str = "") -> None:
        """A transcript with a subject was compacted: a round, but not one after another. Never blocks."""
        if self._closed or self._task is not None or self._clock() - self._ran < PAUSE_MS:
            return

        async def work() -> None:
            try:
                await self.run()
            except Exception:  # a named edge: nobody awaits this task, and the next round comes
                log.exception("hygiene after a compaction failed")
            finally:
                self._task = None

        self._task = asyncio.create_task(work(), name="hygiene")

    async def start(self) -> None:
        """Nothing to start: the heartbeat runs the rounds."""

    async def settle(self) -> None:
        """Wait for a round that a compacted transcript began."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self, grace_s: float = 5.0) -> None:
        """Let a round at work finish within `grace_s`, and write the times of use."""
        self._closed = True
        if self._task is not None:
            await asyncio.wait([task := self._task], timeout=grace_s)
            task.cancel()
        await self._access.flush()

    # ------------------------------------------------------------------ inside

    @staticmethod
    async def _purged(purge: Purge, now: int, what: str) -> int:
        try:
            return await purge(now)
        except Exception:  # a named edge: what is beside may fail in any way, and memory is looked after
            log.exception("%s could not be purged", what)
            return 0

    async def _round(self, now: int) -> Expired:
        total, rest = Expired(), MOST_IN_A_ROUND
        for subject, size in await asyncio.to_thread(self._memory.ledgers.by_age):
            if self._closed or rest <= 0:
                break
            if self._consent.opted_out(user_of(subject) or "") or not await self._is_due(subject, size, now):
                continue
            rest -= 1
            try:
                total += await self._look_at(subject, size, now)
            except (MemoryFault, Refused) as error:
                log.warning("%s is not looked after: %s: %s", subject, type(error).__name__, error)
            except Exception:  # a named edge: one subject may fail in any way, and the others go on
                log.exception("%s is not looked after", subject)
        return total

    async def _is_due(self, subject: str, size: int, now: int) -> bool:
        """Whether something changed since the last look (`size`: of the ledger), or the next one is due."""
        known = await self._cursors.get(_cursor(subject))
        when = known.get("due")
        if known.get("size") != size or known.get("rules") != str(self._rules):
            return True
        return isinstance(when, int) and now > when

    async def _look_at(self, subject: str, size: int, now: int) -> Expired:
        memory, access = self._memory, self._access
        erased_at = memory.erased_at(subject)
        await access.load(subject)
        total, times = Expired(), []
        for name in (await memory.branches(subject)).all:
            outcome = await self._branch(subject, name, now)
            total += outcome.purged
            if outcome.due is not None:
                times.append(outcome.due)
        looked_at = {"size": size, "rules": str(self._rules)} | ({"due": min(times)} if times else {})

        def changed(known: Mapping[str, object]) -> Mapping[str, object] | None:
            return looked_at if memory.erased_at(subject) == erased_at else None

        await self._cursors.update(_cursor(subject), changed)
        return total

    async def _branch(self, subject: str, name: str, now: int) -> _Outcome:
        """One branch. Its history is read only when its items and their times of use call for that."""
        memory, access = self._memory, self._access
        items, accessed = (await memory.view(subject, name)).items.values(), access.of(subject)
        when = due(items, accessed, {}, self._rules)
        if when is None or now <= when:
            return _Outcome(due=when)
        outcome = await memory.act(subject, partial(self._decide, name, accessed, now))
        for item_id, at in outcome.used.items():
            access.touch(subject, [item_id], at=at)
        return outcome

    def _decide(
        self, name: str, accessed: Mapping[str, int], now: int, history: History, present: int, most: int
    ) -> tuple[Sequence[Record], _Outcome]:
        """The commit by which items leave a branch, if any does, and what became of the branch."""
        rules, branch = self._rules, history.branch(name)
        written = _written(history.chain(branch.head))
        draft = Draft(history.view(branch.head), now_ms=history.branches.next_ms(present), max_items=most)
        items = list(draft.items.values())
        used = {item.id: max(accessed.get(item.id, 0), written.get(item.id, 0)) for item in items}
        old = expired(items, written, now, rules.max_age_s)
        lost, survivors = roll_survival(
            items,
            used,
            now,
            max_idle_days=rules.max_idle_days,
            survival_chance=rules.survival_chance,
            roll=self._roll,
        )
        for item in old:
            age = (now - last_use(item, written)) // DAY_MS
            draft.remove(item, _because(now, f"it was of the day, {_days(age)} ago"))
        for item in lost:
            draft.remove(item, _because(now, _idle_for(item, used, now)))
        for item in survivors:
            draft.note(item, _because(now, f"{_idle_for(item, used, now)}, kept by chance"))
        purged = Expired(conversation=len(old), idle=len(lost))
        commit = draft.commit(
            _message(rules, purged, len(survivors)),
            branch=branch.name,
            by="hygiene",
            survivors=len(survivors),
        )
        stayed = {**written, **used, **{item.id: now for item in survivors}}
        left = list(draft.items.values())
        known = {key: written[key] for key in draft.items if written.get(key, 0) > accessed.get(key, 0)}
        outcome = _Outcome(purged, due(left, stayed, written, rules), known)
        return ([commit] if commit is not None else []), outcome


def _written(chain: Sequence[Commit]) -> dict[str, int]:
    """When (ms) something was last said of each item on a branch: learned, changed, noted, brought back."""
    times: dict[str, int] = {}
    for commit in chain:
        when = ms_of_iso(commit.timestamp)
        for event in commit.events:
            item_id = event.ext.get("item", {}).get("id")
            if isinstance(item_id, str) and event.event_type != "forget":
                times[item_id] = max(when, times.get(item_id, 0))
    return times


def _because(now: int, evidence: str) -> Origin:
    return Origin("inferred", said_at=now, evidence=evidence)


def _idle_for(item: Item, used: Mapping[str, int], now: int) -> str:
    return f"idle for {_days(int(idle_days(item, used, now)))}"


def _days(number: int) -> str:
    return f"{number} day" if number == 1 else f"{number} days"


def _message(rules: Decay, purged: Expired, survivors: int) -> str:
    """Why, in counts alone: the log is shown in the open too."""
    parts = [
        *([f"{purged.conversation} of the day"] if purged.conversation else []),
        *([f"{purged.idle} idle for over {rules.max_idle_days:g} days"] if purged.idle else []),
    ]
    kept = f"{survivors} idle kept by chance" if survivors else ""
    return "hygiene: " + ", ".join(filter(None, [f"{' and '.join(parts)} left" if parts else "", kept]))


def _cursor(subject: str) -> str:
    return f"hygiene-{subject}"

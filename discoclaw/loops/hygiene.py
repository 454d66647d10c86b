"""Hygiene: removes what has expired from memory: short-lived items, knowledge that nobody uses, and what has
waited for its person's yes for too long.

Needs no model. A round looks at the subjects that changed since the last one, and at those in which something
is due (`Rounds`, `Dues`). The removals on a branch are one commit that gives the reason; the items stay in
the history, and an undo brings them back. Random decisions are made only once: the commit also lists the
items that survived, so neither a replay nor a run after a crash decides again, and a restored item starts
with its full time. What is stored beside the memory, an archive and a log, is purged in the same run. Core
decides (`decay`); the times of use are in `LastUsed`, which this module also writes to disk. Independent of
Discord, and of when it is time for a run.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pydantic import JsonValue

from discoclaw.core.consent import UNLIMITED, Consent
from discoclaw.core.decay import DAY_MS, Decay, due, expired, idle_days, last_use, roll_survival
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.event import Commit, Record
from discoclaw.core.history import History
from discoclaw.core.idle import HOUR_MS
from discoclaw.core.item import Item
from discoclaw.core.pending import Pending, lapsed
from discoclaw.core.ports import ALONE, Clock, Processes
from discoclaw.core.subject import user_of
from discoclaw.core.times import ms_of_iso
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects.follow import Rounds
from discoclaw.memory.subjects.store import AnyMemory

log = logging.getLogger(__name__)

_CURSOR: Final = "hygiene"
MOST_IN_A_ROUND = 200
"""The most subjects checked in one round; most rounds have none, since the next due time is known."""
PAUSE_MS = 60_000
"""The shortest time between two runs caused by compactions."""

Purge = Callable[[int], Awaitable[int]]
"""Purges something beside the memory, given the current time (ms); returns how many entries were removed."""


async def _nothing_to_purge(now_ms: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Beside:
    """The stores beside the memory: the archive of talk and the log of what the model's tools did, which are
    purged too, and the processes of which one does all that.
    """

    archive: Purge = _nothing_to_purge
    log: Purge = _nothing_to_purge
    processes: Processes = ALONE


@dataclass(frozen=True, slots=True)
class Expired:
    """Removed: archive `entries`, short-lived items (`conversation`), `idle` items, log `lines`.

    `lapsed` counts what was waiting for its person's yes.
    """

    entries: int = 0
    conversation: int = 0
    idle: int = 0
    lines: int = 0
    lapsed: int = 0

    def __add__(self, other: "Expired") -> "Expired":
        return Expired(
            self.entries + other.entries,
            self.conversation + other.conversation,
            self.idle + other.idle,
            self.lines + other.lines,
            self.lapsed + other.lapsed,
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result for one branch. `due` (ms) is when the next check is needed."""

    purged: Expired = Expired()
    due: int | None = None
    used: Mapping[str, int] = field(default_factory=dict)
    """Times of use (ms) that only the history had, by item."""


class Hygiene:
    """Removes what has expired from all subjects of `memory`, and from the archive and the log.

    `roll` returns random numbers from 0.0 to below 1.0. It skips the memory of people who opted out
    (`consent`).
    """

    def __init__(
        self,
        memory: AnyMemory,
        access: LastUsed,
        cursors: Cursors,
        *,
        clock: Clock,
        rules: Decay,
        roll: Callable[[], float],
        beside: Beside,
        consent: Consent = UNLIMITED,
    ) -> None:
        self._rounds = Rounds(_CURSOR, memory.ledgers, cursors)
        self._dues = Dues(_CURSOR, cursors)
        self._memory = memory
        self._access = access
        self._cursors = cursors
        self._clock = clock
        self._rules = rules
        self._roll = roll
        self._beside = beside
        self._consent = consent
        self._lock = asyncio.Lock()
        self._ran = 0
        self._task: asyncio.Task[object] | None = None
        self._closed = False

    async def run(self, now_ms: int | None = None) -> Expired:
        """Run one round at a time (ms), by default now: the archive, and every subject that is due.

        While another process has a round, only the times of use are written.
        """
        now, total = self._clock() if now_ms is None else now_ms, Expired()
        async with self._lock, self._beside.processes.free(_CURSOR) as ours:
            self._ran = now
            if ours:
                total = Expired(
                    entries=await self._purged(self._beside.archive, now, "the archive"),
                    lines=await self._purged(self._beside.log, now, "the log of tools"),
                )
                total += await self._round(now)
            await self._access.flush()
        if total != Expired():
            log.info(
                "hygiene: %d entries, %d things of the day and %d idle items left, %d proposals lapsed%s",
                total.entries,
                total.conversation,
                total.idle,
                total.lapsed,
                f", and {total.lines} lines of a log" if total.lines else "",
            )
        return total

    def compacted(self, subject: str = "") -> None:
        """Start a round after a transcript was compacted, but not too often. Never blocks."""
        if self._closed or self._task is not None or self._clock() - self._ran < PAUSE_MS:
            return

        async def work() -> None:
            try:
                await self.run()
            except Exception:  # deliberately broad: nobody awaits this task, and the next round comes
                log.exception("hygiene after a compaction failed")
            finally:
                self._task = None

        self._task = asyncio.create_task(work(), name="hygiene")

    async def start(self) -> None:
        """Does nothing: the heartbeat runs the rounds."""

    async def settle(self) -> None:
        """Wait for a round that a compaction started."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self, grace_s: float = 5.0) -> None:
        """Let a round under way finish within `grace_s`, and write the times of use."""
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
        except Exception:  # deliberately broad: a failing archive or log must not stop the memory's hygiene
            log.exception("%s could not be purged", what)
            return 0

    async def _round(self, now: int) -> Expired:
        total, rest, done, later = Expired(), MOST_IN_A_ROUND, list[str](), dict[str, int]()
        for subject in await self._waiting(now):
            if self._closed or rest <= 0:
                break
            if self._consent.opted_out(user_of(subject) or ""):
                continue
            try:
                size = (await self._rounds.head(subject)).as_json()
                if size and not await self._is_settled(subject, size, now):
                    rest -= 1
                    total += await self._look_at(subject, size, now)
                    if not await self._is_settled(subject, size, now):
                        continue
            except (MemoryFault, Refused, OSError) as error:
                log.warning("%s is not looked after: %s: %s", subject, type(error).__name__, error)
                continue
            except Exception:  # deliberately broad: one failing subject must not stop the others
                log.exception("%s is not looked after", subject)
                continue
            done.append(subject)
            if isinstance(due := (await self._cursors.get(_cursor(subject))).get("due"), int):
                later[subject] = due
        await self._dues.move(now, frozenset(done), later)
        await self._rounds.done(done)
        return total

    async def _waiting(self, now: int) -> Sequence[str]:
        """Whom to look at: who changed since the last round, and in whom something is due."""
        due, rules = await self._dues.fallen(now), str(self._rules)
        same = (await self._cursors.get(_CURSOR)).get("rules") == rules
        found = await self._rounds.begin(due or (), anew=due is None or not same)
        if not same:
            await self._cursors.update(_CURSOR, lambda known: {**known, "rules": rules})
        return found

    async def _is_settled(self, subject: str, size: JsonValue, now: int) -> bool:
        """Whether the ledger is as at the last check (by its `size`), and the next check is not due."""
        known = await self._cursors.get(_cursor(subject))
        when = known.get("due")
        same = known.get("size") == size and known.get("rules") == str(self._rules)
        return same and not (isinstance(when, int) and now > when)

    async def _look_at(self, subject: str, size: JsonValue, now: int) -> Expired:
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
        """Check one branch. Its history is read only if its items and their times of use require that."""
        memory, access = self._memory, self._access
        view, accessed = await memory.view(subject, name), access.of(subject)
        when = _earlier(due(view.items.values(), accessed, {}, self._rules), self._lapses_at(view.pending))
        if when is None or now <= when:
            return _Outcome(due=when)
        outcome = await memory.act(subject, partial(self._decide, name, accessed, now))
        for item_id, at in outcome.used.items():
            access.touch(subject, [item_id], at=at)
        return outcome

    def _decide(
        self, name: str, accessed: Mapping[str, int], now: int, history: History, present: int, most: int
    ) -> tuple[Sequence[Record], _Outcome]:
        """The commit that removes items from a branch, if any, and the result for the branch."""
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
        late = lapsed(draft.view.pending, now, rules.pending_days)
        for one in late:
            draft.note_proposal(one.item, because(now, "nobody answered"), "lapsed", parent=one.event_id)
        for item in old:
            age = (now - last_use(item, written)) // DAY_MS
            draft.remove(item, because(now, f"it was of the day, {days(age)} ago"))
        for item in lost:
            draft.remove(item, because(now, idle_for(item, used, now)))
        for item in survivors:
            draft.note(item, because(now, f"{idle_for(item, used, now)}, kept by chance"))
        purged = Expired(conversation=len(old), idle=len(lost), lapsed=len(late))
        commit = draft.commit(
            message(
                rules.max_idle_days,
                conversation=len(old),
                idle=len(lost),
                lapsed=len(late),
                survivors=len(survivors),
            ),
            branch=branch.name,
            by="hygiene",
            survivors=len(survivors),
        )
        stayed = {**written, **used, **{item.id: now for item in survivors}}
        left = list(draft.items.values())
        known = {key: written[key] for key in draft.items if written.get(key, 0) > accessed.get(key, 0)}
        when = _earlier(due(left, stayed, written, rules), self._lapses_at(draft.view.pending))
        outcome = _Outcome(purged, when, known)
        return ([commit] if commit is not None else []), outcome

    def _lapses_at(self, pending: Sequence[Pending]) -> int | None:
        """When (ms) the first of these lapses; None if none ever does."""
        wait = int(self._rules.pending_days * DAY_MS)
        return min((one.at + wait for one in pending), default=None) if wait > 0 else None


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((time for time in (one, other) if time is not None), default=None)


def _written(chain: Sequence[Commit]) -> dict[str, int]:
    """When (ms) each item of a branch was last written: learned, changed, noted or restored.

    An import writes nothing: what comes in is as old as its file says, which the items know.
    """
    times: dict[str, int] = {}
    for commit in (one for one in chain if one.metadata.get("by") != "import"):
        when = ms_of_iso(commit.timestamp)
        for event in commit.events:
            item_id = event.ext.get("item", {}).get("id")
            if isinstance(item_id, str) and event.event_type != "forget":
                times[item_id] = max(when, times.get(item_id, 0))
    return times


def _cursor(subject: str) -> str:
    return f"{_CURSOR}-{subject}"


# ---------------------------------------------------------------------- due times

_HOURS: Final = "hours"


class Dues:
    """The due times of one kind of work."""

    def __init__(self, name: str, cursors: Cursors) -> None:
        self._name = name
        self._cursors = cursors

    async def fallen(self, now: int) -> list[str] | None:
        """The subjects that are due at a time (ms), the longest due first; None if some may be missing."""
        due: dict[str, int] = {}
        for hour in await self._past(now):
            if not (there := _times(await self._cursors.get(self._doc(hour)))):
                return None
            due |= {subject: at for subject, at in there.items() if at < now}
        return sorted(due, key=lambda subject: due[subject])

    async def move(self, now: int, done: Collection[str], later: Mapping[str, int]) -> None:
        """Note when subjects are due next, and forget when those that were `done` at a time (ms) were due."""
        by_hour: dict[int, dict[str, int]] = defaultdict(dict)
        for subject, at in later.items():
            by_hour[at // HOUR_MS][subject] = at
        if by_hour:
            await self._list(set(by_hour), set())
        for hour, times in by_hour.items():
            await self._cursors.update(self._doc(hour), lambda known, times=times: {**known, **times})  # type: ignore[misc]
        over = set()
        for hour in await self._past(now):
            times = _times(await self._cursors.get(self._doc(hour)))
            left = {one: at for one, at in times.items() if one not in done or later.get(one) == at}
            if not left:
                over.add(hour)
            elif left != times:
                await self._cursors.update(self._doc(hour), lambda known, left=left: left)  # type: ignore[misc]
        if over:
            await self._list(set(), over)
            await self._cursors.remove([self._doc(hour) for hour in sorted(over)])

    async def _past(self, now: int) -> list[int]:
        hours = (await self._cursors.get(self._name)).get(_HOURS)
        found = (one for one in hours if isinstance(one, int)) if isinstance(hours, list) else ()
        return sorted(one for one in found if one <= now // HOUR_MS)

    async def _list(self, more: Collection[int], over: Collection[int]) -> None:
        def listed(known: Mapping[str, object]) -> Mapping[str, object]:
            hours = known.get(_HOURS)
            there = set(hours) if isinstance(hours, list) else set[int]()
            return {**known, _HOURS: sorted((there | set(more)) - set(over))}

        await self._cursors.update(self._name, listed)

    def _doc(self, hour: int) -> str:
        return f"{self._name}-due-h{hour}"


def _times(cursor: Mapping[str, object]) -> dict[str, int]:
    return {subject: at for subject, at in cursor.items() if isinstance(at, int)}


# ---------------------------------------------------------------------- the reasons in the history


def because(now: int, evidence: str) -> Origin:
    """The origin of an event that hygiene makes at a time (ms)."""
    return Origin("inferred", said_at=now, evidence=evidence)


def idle_for(item: Item, used: Mapping[str, int], now: int) -> str:
    """For how long nobody used an item."""
    return f"idle for {days(int(idle_days(item, used, now)))}"


def days(number: int) -> str:
    return f"{number} day" if number == 1 else f"{number} days"


def message(
    max_idle_days: float, *, conversation: int = 0, idle: int = 0, lapsed: int = 0, survivors: int = 0
) -> str:
    """The reason, in counts only, because the log is shown publicly too."""
    parts = [
        *([f"{conversation} of the day"] if conversation else []),
        *([f"{idle} idle for over {max_idle_days:g} days"] if idle else []),
    ]
    late = f"{lapsed} unanswered" if lapsed else ""
    kept = f"{survivors} idle kept by chance" if survivors else ""
    return "hygiene: " + ", ".join(filter(None, [f"{' and '.join(parts)} left" if parts else "", late, kept]))

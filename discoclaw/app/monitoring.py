"""How the program as a whole is: background work, calls that hang, the event loop.

The log says when something becomes bad, and when it is good again. With DISCOCLAW_METRICS, `measures` answers
whoever asks, from the first moment of the start on.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from discoclaw.core.budgets import SMALL_FROM
from discoclaw.core.event import Commit
from discoclaw.core.health import Check, Counts, Finding, Histogram, Seen
from discoclaw.core.ports import Passive
from discoclaw.core.usage import NOBODY
from discoclaw.memory.changes import Listener
from discoclaw.session.desk import Desk
from discoclaw.session.meaning import Meaning
from discoclaw.show.words import count
from discoclaw.store.threads import running
from discoclaw.usage.accounts import Accounts
from discoclaw.voice import VOICE
from discoclaw.work import at_work

log = logging.getLogger(__name__)

SLOW_S, HANGS_S = 10.0, 60.0
"""From when on a call in a thread is a warning, and from when on it hangs. Answers wait two seconds."""
LOOK_S: Final = 10.0
"""How often one looks for what to say in the log."""
BUSY_S: Final = 120.0
"""A message that has been waiting for longer is a warning: more is asked than can be answered."""
EVERY_S: Final = 0.5
"""How often the event loop's lag is measured."""
BLOCKED_S: Final = 5.0
"""From this lag on the loop counts as blocked: an answer stalls, and Discord may end the connection."""
NEWS_S: Final = 300.0
"""For so long a block is news."""
BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_FRAMES: Final = 6


class Health:
    """How everything is, by what is known already: what each of `checks` finds, in their order."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self._checks = tuple(checks)

    def __call__(self) -> list[Finding]:
        """Look at everything. Call it in the event loop; never blocks or raises."""
        found = list[Finding]()
        for check in self._checks:
            try:
                found += check()
            except Exception as error:  # a named edge: one bad check must not hide what the others found
                log.exception("a check of the health failed")
                name = getattr(check, "__qualname__", type(check).__qualname__)
                text = f"can't be looked at: {type(error).__name__}"
                found.append(Finding(name, "unknown", text, "the log says more"))
        return found


class Watch(Passive):
    """Says in the log what becomes bad, and when it is no longer."""

    def __init__(self, health: Callable[[], list[Finding]]) -> None:
        self._health = health
        self._bad: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="health")

    async def close(self) -> None:
        self._closing.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._closing.wait()
                    return
            self.look()

    def look(self) -> None:
        """Look now."""
        found = self._health()
        bad = {one.name: one.text for one in found if one.state == "bad"}
        for one in found:
            if one.name in bad and one.name not in self._bad:
                log.warning("not ready: %s: %s; %s", one.name, one.text, one.way_out)
        for name in self._bad.keys() - bad.keys():
            log.info("ready again: %s", name)
        self._bad = bad


@dataclass(frozen=True, slots=True)
class CommitCounter(Listener):
    """Counts the commits to memories."""

    counts: Counts

    def committed(self, subject: str, commit: Commit) -> None:
        self.counts.commits += 1


# ---------------------------------------------------------------------- checks


def background() -> Iterator[Finding]:
    work = at_work()
    if not any(one.hangs for one in work):
        waiting = count(sum(one.waiting for one in work), "job")
        text = f"{count(len(work), 'worker')}, none of them hangs; {waiting} waiting"
        yield Finding("background work", "good", text)
    yield from (finding for one in work if (finding := one.finding()) is not None)


def hanging(slow_s: float = SLOW_S, hangs_s: float = HANGS_S) -> list[Finding]:
    """Whether calls hang in threads. Nearly all of them read or write a disk, or a database."""
    name, way_out = "the disk", "look at the disk and its mounts, or at the database"
    if not (slow := running(slow_s)):
        return [Finding(name, "good", "no call hangs")]
    if not (calls := running(hangs_s)):
        return [Finding(name, "warning", f"{count(len(slow), 'call')} of more than {slow_s:.0f} s", way_out)]
    return [
        Finding(name, "bad", f"{count(len(calls), 'call')} hanging for {hangs_s:.0f} s or longer", way_out)
    ]


def queue(desk: Desk) -> Finding:
    """How long messages wait. Whether an answer hangs, `work` says."""
    if not (waiting := desk.waiting):
        return Finding("the queue", "good", "no message waits")
    text = f"{waiting} messages wait, the first for {desk.oldest_s:.0f} s"
    if desk.oldest_s > BUSY_S:
        return Finding("the queue", "warning", text, "use a faster model, or let fewer people ask")
    return Finding("the queue", "good", text)


def of_budgets(accounts: Accounts) -> Iterator[Finding]:
    """Whether the budgets of everything are nearly spent."""
    for one in accounts.spent(NOBODY):  # and not of each person, who are many
        if one.percent >= SMALL_FROM:
            text = f"{one.percent} % of the budget of this {one.limit.period} is spent"
            yield Finding("the budget", "warning", text, "see DISCOCLAW_BUDGET")


def of_ears(seen: Seen) -> Finding:
    """How the last transcription ended."""
    way_out = "look at the server, and at the settings DISCOCLAW_TRANSCRIBE_…"
    return seen.finding("the transcription server", VOICE, way_out, worst="warning")


def of_embeddings(meaning: Meaning) -> Finding:
    """Whether questions are embedded in time."""
    if meaning.in_time:
        return Finding("embeddings", "good", "the server answered in time lately")
    text = "the server doesn't answer in time, so memories are found by their words alone"
    return Finding("embeddings", "warning", text, "look at the server; the log says more")


# How late the event loop is. While something blocks it, nothing else runs: no answer, no heartbeat, no page.
# A thread gives the loop a call twice a second, and the call says how long it waited. If it doesn't come
# back, the thread writes into the log where the loop is at that moment, because only a thread still can.


class LoopLag(Passive):
    """Measures how late the event loop is that starts it."""

    def __init__(self, *, every_s: float = EVERY_S, blocked_s: float = BLOCKED_S) -> None:
        self.times = Histogram(BOUNDS_S)
        self.last_s = 0.0
        """What the last call waited."""
        self._every_s = every_s
        self._blocked_s = blocked_s
        self._worst = (0.0, 0.0)  # the last block, and when it ended
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        """Begin to measure."""
        loop, ident = asyncio.get_running_loop(), threading.get_ident()
        self._thread = threading.Thread(target=self._run, args=(loop, ident), name="loop lag", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Stop measuring."""
        self._stop.set()

    def finding(self) -> Finding:
        """How the loop is. Asked in the loop, so it runs at this moment."""
        lag, ended = self._worst
        if lag and time.perf_counter() - ended < NEWS_S:
            text = f"it was blocked for {lag:.0f} s, {time.perf_counter() - ended:.0f} s ago"
            return Finding("the event loop", "warning", text, "the log says where it was at that time")
        return Finding("the event loop", "good", f"{self.last_s * 1000:.0f} ms late")

    def _run(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        while not self._stop.wait(self._every_s):
            back = threading.Event()
            try:
                loop.call_soon_threadsafe(self._back, time.perf_counter(), back)
            except RuntimeError:  # the loop is closed
                return
            if not back.wait(self._blocked_s):
                frame = sys._current_frames().get(ident)
                where = "".join(traceback.format_stack(frame)[-_FRAMES:]) if frame is not None else ""
                text = "the event loop has been blocked for %.0f s; it is here:\n%s"
                log.error(text, self._blocked_s, where.rstrip())
                while not back.wait(self._every_s) and not self._stop.is_set() and not loop.is_closed():
                    pass

    def _back(self, sent: float, back: threading.Event) -> None:
        back.set()
        now = time.perf_counter()
        self.last_s = now - sent
        self.times.add(self.last_s)
        if self.last_s >= self._blocked_s:
            self._worst = (self.last_s, now)
            log.warning("the event loop was blocked for %.1f s", self.last_s)

"""When the loops run: counters, early runs, one run at a time for each conversation and person.

    rolling summary   every N turns of a session, or when unseen messages are about to leave the window
    extraction        every M turns of a person, counted apart, or when a lot of their talk is waiting, or
                      when words of theirs leave a window before they were learned from

A turn is an answered message. Counters live in RAM and start at zero after a restart; what was said waits
in the backlogs, so nothing is lost, only late. Nothing here blocks a reply: the work is done in tasks that
end by themselves, and a failure of any kind changes nothing but the log.
"""

import asyncio
import logging
from bisect import insort
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from discoclaw.core.errors import (
    MemoryFault,
    ModelBadOutput,
    ModelBadRequest,
    ModelError,
    ModelRefused,
    ModelTooLong,
)
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.message import Place, Said
from discoclaw.core.ports import Clock
from discoclaw.core.times import snowflake_at
from discoclaw.loops.facts import BATCH_CHARS as FACTS_CHARS
from discoclaw.loops.facts import FactsLoop
from discoclaw.loops.heard import Backlog, Heard
from discoclaw.loops.summary import BATCH_CHARS as SUMMARY_CHARS
from discoclaw.loops.summary import SummaryLoop

log = logging.getLogger(__name__)

EARLY_FACTS_CHARS = 9_000
RECENT = 40
SPOILED = (ModelBadOutput, ModelRefused, ModelTooLong, ModelBadRequest)
"""Failures that lie in what was asked, so that asking the same again fails again."""


@dataclass(slots=True)
class _Track:
    """One conversation or one person: what waits, how many turns since the last run, and the run itself."""

    backlog: Backlog = field(default_factory=Backlog)
    recent: deque[Said] = field(default_factory=lambda: deque(maxlen=RECENT))
    inside: list[tuple[int, str]] = field(default_factory=list)
    """What the prompt's window holds of a conversation, oldest first: ids of messages and their authors."""
    turns: int = 0
    slipped: int = 0
    """Messages of a person that left a window since their last run, and that no run had seen."""
    failures: int = 0
    """Runs that failed in a row; early runs wait longer each time, so a dead model is not hammered."""
    takes_part: bool = False
    cursor_known: bool = False
    task: asyncio.Task[None] | None = None

    def busy(self) -> bool:
        return bool(self.backlog.waiting) or self.task is not None


class Loops:
    """Both loops' schedule. Either loop may be None: switched off.

    `learned(user_id)` is called when a run may have changed what a transparency mirror shows. What people
    who do not want to be remembered said until `unheard(user_id)` (ms) no loop ever sees.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        summary: SummaryLoop | None,
        facts: FactsLoop | None,
        summary_every: int = 5,
        facts_every: int = 10,
        window_chars: int = 3000,
        learned: Callable[[str], None] = lambda user_id: None,
        unheard: Callable[[str], int] = lambda user_id: -1,
    ) -> None:
        self._clock = clock
        self._summary = summary
        self._facts = facts
        self._summary_every = summary_every
        self._facts_every = facts_every
        self._learned = learned
        self._unheard = unheard
        self._window_chars = window_chars
        # People and conversations with something waiting stay; the others come back with their cursors.
        self._sessions: IdleMap[_Track] = IdleMap(lambda key: _Track(), idle_ms=HOUR_MS)
        self._people: IdleMap[_Track] = IdleMap(lambda key: _Track(), idle_ms=HOUR_MS)
        self._closed = False

    # ------------------------------------------------------------------ what the session says

    def hear(self, said: Said, place: Place, session_key: str, *, window: int) -> None:
        """Something was said, by anybody; `window` is how many messages the prompt's window holds."""
        if not self._may_hear(said):
            return
        heard = Heard(said, place, session_key)
        track = self._sessions.use(session_key, self._clock())
        track.backlog.hear(heard)
        if all(one.id != said.id for one in track.recent):
            track.recent.append(said)
        patience = 1 << min(track.failures, 8)
        full = len(track.backlog.waiting) >= window * patience
        if track.takes_part and (full or track.backlog.size() >= max(500, self._window_chars) * patience):
            self._start_summary(session_key, track, None)
        if not track.takes_part:
            self._keep_newest(track.backlog, window)
        if self._facts is not None and not said.by_us and not said.guest:
            self._people.use(said.author_id, self._clock()).backlog.hear(heard)
        for message_id, author_id in _leaving(track.inside, said, window):
            self._slip(track, str(message_id), author_id)

    async def catch_up(self, said: list[Said], place: Place, session_key: str, *, window: int) -> None:
        """The conversation's past, read from the chat after a start: what a loop has not seen waits again."""
        track = self._sessions.use(session_key, self._clock())
        if self._summary is not None and not track.cursor_known:
            track.backlog.seen({session_key: await self._summary.seen_up_to(session_key)})
            track.cursor_known = True
            track.takes_part = track.takes_part or track.backlog.taken[session_key] > 0
        if place.kind == "dm":  # what we answered to somebody who was not to be remembered goes with it
            until = max((self._unheard(one.author_id) for one in said if not one.by_us), default=-1)
            said = [one for one in said if one.sent_at > until]
        for author in {one.author_id for one in said if not one.by_us and not one.guest}:
            person = self._people.use(author, self._clock())
            if self._facts is not None and not person.cursor_known:
                person.backlog.seen(await self._facts.seen_up_to(author))
                person.cursor_known = True
        for one in said:
            self.hear(one, place, session_key, window=window)

    def nudge(self, session_key: str, user_id: str) -> None:
        """A turn is over, its answer is sent. Never blocks."""
        session = self._sessions.use(session_key, self._clock())
        session.takes_part = True
        session.turns += 1
        if session.turns >= self._summary_every:
            self._start_summary(session_key, session, user_id)
        person = self._people.use(user_id, self._clock())
        person.takes_part = True
        person.turns += 1
        if person.turns >= self._facts_every or person.backlog.size() >= EARLY_FACTS_CHARS * (
            1 + person.failures
        ):
            self._start_facts(user_id, person)
        now = self._clock()
        # Where we have no part, the chat's history serves as well as what waits here.
        self._sessions.evict_idle(now, busy=lambda t: t.task is not None or (t.takes_part and t.busy()))
        # Who never talked with us is not kept waiting for it: their next words begin anew.
        self._people.evict_idle(now, busy=lambda t: t.task is not None or (t.takes_part and t.busy()))

    def force(self, user_id: str) -> None:
        """Learn now from all of a person's talk that waits. Never blocks; a run at work is followed by it."""
        track = self._people.use(user_id, self._clock())

        def start(_: object = None) -> None:
            if track.backlog.waiting:
                self._start_facts(user_id, track)

        if track.task is None:
            start()
        else:
            track.task.add_done_callback(start)

    def forget(self, message_id: str) -> None:
        """A message was deleted in the chat: no loop sees it any more."""
        for tracks in (self._sessions, self._people):
            for key in tracks:
                if (track := tracks.peek(key)) is not None:
                    track.backlog.forget(message_id)
                    for said in [one for one in track.recent if one.id == message_id]:
                        track.recent.remove(said)

    def amend(self, session_key: str, author_id: str, message_id: str, text: str) -> None:
        """A message was edited in the chat: loops that have not seen it see the new words."""
        for track in (self._sessions.peek(session_key), self._people.peek(author_id)):
            if track is not None:
                track.backlog.amend(message_id, text)
                for place, said in enumerate(track.recent):
                    if said.id == message_id:
                        track.recent[place] = replace(said, text=text)

    def sessions_of(self, user_id: str) -> set[str]:
        """The conversations in which something of a person waits for a summary, or stands around others'."""
        found = set()
        for key in self._sessions:
            if (track := self._sessions.peek(key)) is not None:
                said = [*track.recent, *(heard.said for heard in track.backlog.waiting.values())]
                if any(one.author_id == user_id for one in said):
                    found.add(key)
        return found

    def erase(self, user_id: str, sessions: Sequence[str], at: int) -> None:
        """A person's memory was erased at a time (ms): no loop sees what they said until then.

        The summaries of `sessions` begin anew; what others said there and was not summarised is lost to them.
        Only RAM is touched: who erases brings the cursors on disk along.
        """
        if (track := self._people.peek(user_id)) is not None:
            track.backlog.take(list(track.backlog.waiting.values()))
            track.turns = 0
        for key in self._sessions:
            if (session := self._sessions.peek(key)) is not None:
                for said in [one for one in session.recent if one.author_id == user_id or key in sessions]:
                    session.recent.remove(said)
        for key in sessions:
            session = self._sessions.use(key, self._clock())
            session.backlog.take(list(session.backlog.waiting.values()))
            session.backlog.seen({key: snowflake_at(at)})
            session.turns = 0

    def reset(self, session_key: str, up_to: int) -> None:
        """The rolling summary was cleared: nothing up to this message id comes back into it."""
        track = self._sessions.use(session_key, self._clock())
        track.backlog.take(list(track.backlog.waiting.values()))
        track.backlog.seen({session_key: up_to})
        track.turns = 0
        loop = self._summary
        if loop is None:
            return

        async def save() -> bool:
            await loop.saw(session_key, track.backlog.taken[session_key])
            return False

        def start(_: object = None) -> None:
            self._start(track, f"reset {session_key}", save, SUMMARY_CHARS)

        if track.task is None:
            start()
        else:  # a run at work saves it at its end, unless it fails
            track.task.add_done_callback(start)

    def took_part(self, session_key: str) -> bool:
        """Whether we have answered in this conversation, now or before the last restart."""
        track = self._sessions.peek(session_key)
        return track is not None and track.takes_part

    async def settle(self) -> None:
        """Wait until no loop is running."""
        while tasks := self._running():
            await asyncio.wait(tasks)

    async def close(self, grace_s: float = 5.0) -> None:
        """Let running loops finish within `grace_s`, then stop them; what they had not finished waits on."""
        self._closed = True
        if tasks := self._running():
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    # ------------------------------------------------------------------ inside

    def _may_hear(self, said: Said) -> bool:
        return said.sent_at > self._unheard(said.author_id)

    def _let_go(self, track: _Track) -> None:
        """Whoever opted out since they were heard is learned from no more."""
        for heard in [one for one in track.backlog.waiting.values() if not self._may_hear(one.said)]:
            track.backlog.forget(heard.said.id)

    def _running(self) -> list[asyncio.Task[None]]:
        tracks = [t.peek(key) for t in (self._sessions, self._people) for key in t]
        return [track.task for track in tracks if track is not None and track.task is not None]

    @staticmethod
    def _keep_newest(backlog: Backlog, window: int) -> None:
        # A conversation we have no part in needs no summary: at our first turn there the window suffices.
        for message_id in list(backlog.waiting)[:-window]:
            backlog.forget(message_id)

    def _slip(self, session: _Track, message_id: str, author_id: str) -> None:
        """A message left the window: what nobody learned from yet is learned from early.

        Only where we take part and with people who talk with us, and less often the more runs have failed.
        """
        person = self._people.peek(author_id)
        if person is None or not (session.takes_part and person.takes_part):
            return
        person.slipped += message_id in person.backlog.waiting
        if person.slipped >= 1 << min(person.failures, 8):
            self._start_facts(author_id, person)

    def _start_summary(self, session_key: str, track: _Track, user_id: str | None) -> None:
        loop = self._summary
        if loop is None:
            track.backlog.take(list(track.backlog.waiting.values()))
            return

        async def run() -> bool:
            self._let_go(track)
            more = await loop.run(session_key, track.backlog)
            if user_id is not None:
                self._learned(user_id)
            return more

        self._start(track, f"summary {session_key}", run, SUMMARY_CHARS)

    def _start_facts(self, user_id: str, track: _Track) -> None:
        loop = self._facts
        if loop is None:
            track.backlog.take(list(track.backlog.waiting.values()))
            return

        async def run() -> bool:
            if not track.cursor_known:
                track.backlog.seen(await loop.seen_up_to(user_id))
                track.cursor_known = True
            self._let_go(track)
            more = await loop.run(user_id, track.backlog, self._context(user_id, track))
            self._learned(user_id)
            return more

        self._start(track, f"extraction {user_id}", run, FACTS_CHARS)

    def _start(self, track: _Track, name: str, run: Callable[[], Awaitable[bool]], batch_chars: int) -> None:
        if track.task is not None or self._closed:
            return
        track.turns = track.slipped = 0  # whatever comes of it: a failure is tried again a cadence later

        async def work() -> None:
            track.failures += 1
            try:
                while await run():
                    pass
                track.failures = 0
            except (ModelError, MemoryFault) as error:
                log.warning("%s changed nothing: %s: %s", name, type(error).__name__, error)
                if isinstance(error, SPOILED):
                    given_up = track.backlog.spoil(batch_chars)
                    if given_up is not None:
                        log.error("%s: nothing can be made of message %s; it is left out", name, given_up)
            except Exception:  # a named edge: a loop's tick may fail in any way, and the bot goes on
                log.exception("%s changed nothing", name)
            finally:
                track.task = None

        track.task = asyncio.create_task(work(), name=name)

    def _context(self, user_id: str, track: _Track) -> list[Said]:
        """What others said, and we answered, in the conversations that the next batch is from.

        Not in those of all that waits: our answers in a DM do not belong beside what was said in the open.
        """
        keys = {heard.session_key for heard in track.backlog.oldest(FACTS_CHARS)}
        around: list[Said] = []
        for key in sorted(keys):
            session = self._sessions.peek(key)
            if session is not None:
                around += [one for one in session.recent if one.author_id != user_id and self._may_hear(one)]
        return sorted(around, key=lambda said: int(said.id))[-40:]


def _leaving(inside: list[tuple[int, str]], said: Said, window: int) -> list[tuple[int, str]]:
    """Let a message into what the window holds; what that pushes out of it, oldest first."""
    entry = (int(said.id), said.author_id)
    if entry in inside or (len(inside) >= window and entry < inside[0]):
        return []
    insort(inside, entry)
    gone = inside[:-window]
    del inside[:-window]
    return gone

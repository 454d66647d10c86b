"""Schedules the loops: counts what is said, and does one run at a time for each conversation and person.

`cadence` decides when a run is due. Counters are in RAM and start at zero after a restart; messages wait in
the backlogs, so nothing is lost, only late. Nothing here delays a reply: a worker does the runs, and their
failures are only logged.

Whether a run is due is decided as it begins, when the previous run has taken its messages. So a turn that
ends during a run is followed by another run, but messages during a run wait for the next turn: otherwise a
busy channel would keep the small model working without a pause.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from logging import ERROR, WARNING
from typing import Literal, NamedTuple

from discoclaw.core.consent import NEVER, UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault, ModelError, ModelTimeout
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.message import Place, Said
from discoclaw.core.ports import Clock
from discoclaw.core.taken_back import Withdrawal
from discoclaw.core.times import snowflake_at
from discoclaw.loops.cadence import Cadence, Track, leaving
from discoclaw.loops.facts import BATCH_CHARS as FACTS_CHARS
from discoclaw.loops.facts import FactsLoop
from discoclaw.loops.heard import SPOILED, UNUSABLE, Backlog, Heard
from discoclaw.loops.summary import SummaryLoop
from discoclaw.work import GRACE_S, Worker

log = logging.getLogger(__name__)

AT_ONCE = 16
"""The most concurrent runs, each with one call of a small model."""


class _Job(NamedTuple):
    """A loop and its target: the key of a conversation, or the id of a person."""

    loop: Literal["summary", "extraction"]
    about: str

    def __str__(self) -> str:
        return f"{self.loop} {self.about}"


class Loops:
    """The schedule of both loops.

    `learned(user_id)` is called when a run may have changed what a transparency mirror shows. No loop sees
    the messages of people who do not want to be remembered (`consent`). A conversation with a gap that is
    still to be read (`behind`) waits: a cursor that passed the gap would count its messages as seen.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        summary: SummaryLoop,
        facts: FactsLoop,
        summary_every: int = 5,
        facts_every: int = 10,
        window_chars: int = 3000,
        learned: Callable[[str], None] = lambda user_id: None,
        consent: Consent = UNLIMITED,
        behind: Callable[[str], bool] = lambda session_key: False,
    ) -> None:
        self._clock = clock
        self._behind = behind
        self._summary = summary
        self._facts = facts
        self._cadence = Cadence(summary_every, facts_every, window_chars)
        self._learned = learned
        self._consent = consent
        # Tracks with something waiting stay; the others can be restored from their cursors.
        self._sessions: IdleMap[Track] = IdleMap(lambda key: Track(), idle_ms=HOUR_MS)
        self._people: IdleMap[Track] = IdleMap(lambda key: Track(), idle_ms=HOUR_MS)
        # A failed run is tried again after further turns, not after a pause.
        self._worker = Worker("loops", self._run, at_once=AT_ONCE, retry_s=None)
        self._resets = Worker("cleared summaries", self._save_reset)

    # ------------------------------------------------------------------ events of a conversation

    def hear(self, said: Said, place: Place, session_key: str, *, window: int, late: bool = False) -> None:
        """Take in a message that may be stored. `window` is the most messages in the prompt's window.

        `late`: it comes for the first time, though the loops may have seen newer ones. An aside is not
        summarised: it is short, and the chat's history has none of it to begin again from.
        """
        heard = Heard(said, place, session_key, self._facts.prescribed(place))
        track = self._sessions.use(session_key, self._clock())
        if place.kind != "aside" and self._summary.hears(said):
            track.backlog.hear(heard, again=late)
        if all(one.id != said.id for one in track.recent):
            track.recent.append(said)
        track.window = window
        if self._cadence.summary_is_early(track):
            self._summarise(session_key, track)
        if not track.takes_part:
            self._keep_newest(track.backlog, window)
        if self._facts.hears(said):
            self._people.use(said.author_id, self._clock()).backlog.hear(heard, again=late)
        for message_id, author_id in leaving(track.inside, said, window):
            self._slip(track, str(message_id), author_id)

    async def miss_more(self, session_key: str, said: Sequence[Said]) -> bool:
        """Whether a loop has not seen everything before the oldest of these messages, read after a start.

        Only the loops of conversations and people with whom the bot talks count.
        """
        oldest = int(said[0].id) if said else 0
        backlog = (await self._restored(session_key)).backlog
        seen, left = backlog.taken[session_key], [*backlog.left.get(session_key, ())]
        takes_part = seen > 0 or any(one.by_us for one in said)
        if takes_part and seen < oldest:
            return True
        for user_id in _answered(said):
            if (await self._facts.seen_up_to(user_id)).get(session_key, 0) < oldest:
                return True
            left += (await self._facts.left(user_id)).get(session_key, ())
        return any(int(message_id) < oldest for message_id in left)

    async def summary_lost(self, session_key: str) -> bool:
        """Whether a conversation's summary is gone, and is made again when the bot next answers there."""
        return await self._summary.lost(session_key)

    async def catch_up(self, said: list[Said], place: Place, session_key: str, *, window: int) -> None:
        """Take in a conversation's history after a start: messages that a loop has not seen wait again."""
        track = await self._restored(session_key)
        if place.kind == "dm":  # answers to somebody who was not to be remembered are dropped too
            until = max((self._consent.cutoff(one.author_id) for one in said if not one.by_us), default=NEVER)
            said = [one for one in said if one.sent_at > until]
        said = list(filter(self._may_hear, said))
        for user_id in {one.to_id or one.author_id for one in said if not one.guest}:
            await self._know(user_id, self._people.use(user_id, self._clock()))
        self._count(said, track, session_key)
        for one in said:
            self.hear(one, place, session_key, window=window)
        if self._cadence.summary_is_due(track):
            self._summarise(session_key, track)
        track.backlog.left.clear()  # what was left waits now, or is gone from the chat
        for user_id in _answered(said):
            person = self._people.use(user_id, self._clock())
            person.backlog.left.pop(session_key, None)
            if self._cadence.facts_are_due(person):
                self._extract(user_id, person)

    def _count(self, said: Sequence[Said], track: Track, session_key: str) -> None:
        """Count the turns that no loop has seen: counters do not survive a restart, but answers do."""
        answers = [one for one in said if one.by_us]
        users = {one.to_id for one in answers if one.to_id}
        people = [(user_id, self._people.use(user_id, self._clock())) for user_id in users]
        for user_id, one in [("", track), *people]:
            theirs = [answer for answer in answers if user_id in ("", answer.to_id)]
            one.takes_part = one.takes_part or bool(theirs)
            if session_key not in one.counted:
                seen = one.backlog.taken.get(session_key, 0)
                one.turns += sum(int(answer.id) > seen for answer in theirs)
                one.counted.add(session_key)

    def resume(self, session_key: str) -> None:
        """A conversation's gap was read, so what has waited for that may be learned from."""
        track = self._sessions.peek(session_key)
        if track is not None and (
            self._cadence.summary_is_due(track) or self._cadence.summary_is_early(track)
        ):
            self._summarise(session_key, track)
        for user_id in self._people:
            person = self._people.peek(user_id)
            if person is not None and self._cadence.facts_are_due(person):
                self._extract(user_id, person)

    def nudge(self, session_key: str, user_id: str) -> None:
        """Count a turn whose answer was sent. Never blocks."""
        session = self._sessions.use(session_key, self._clock())
        session.takes_part = True
        session.turns += 1
        session.counted.add(session_key)
        if self._cadence.summary_is_due(session):
            self._summarise(session_key, session, user_id)
        person = self._people.use(user_id, self._clock())
        person.takes_part = True
        person.turns += 1
        person.counted.add(session_key)
        if self._cadence.facts_are_due(person):
            self._extract(user_id, person)
        now = self._clock()
        # Where the bot takes no part, the chat's history serves as well as the backlog here.
        self._sessions.evict_idle(now, busy=lambda track: track.busy)
        # People who never talked with the bot are dropped too: their next message starts a new track.
        self._people.evict_idle(now, busy=lambda track: track.busy)

    def force(self, user_id: str) -> None:
        """Learn now from everything a person said that is waiting. Never blocks; follows a run under way."""
        track = self._people.use(user_id, self._clock())
        if track.backlog.waiting:
            track.forced = True
            self._extract(user_id, track)

    def forget(self, *message_ids: str) -> dict[str, Said]:
        """Remove messages that were deleted in the chat from every backlog. Returns those that were there."""
        gone, found = set(message_ids), dict[str, Said]()
        for tracks in (self._sessions, self._people):
            for key in tracks:
                if (track := tracks.peek(key)) is not None:
                    found |= track.forget(gone)
        return found

    def amend(self, session_key: str, author_id: str, message_id: str, text: str, at: int = 0) -> None:
        """Replace the text of a message, edited at a time (ms), for the loops that have not seen it."""
        for track in (self._sessions.peek(session_key), self._people.peek(author_id)):
            if track is not None:
                track.backlog.amend(message_id, text, at)
                for place, said in enumerate(track.recent):
                    if said.id == message_id:
                        track.recent[place] = replace(said, text=text)

    def hear_again(self, said: Said, place: Place, session_key: str, *, soon: bool) -> None:
        """Learn from an edited message as if it had been said anew, at once if it is to be `soon`.

        A person that nobody has talked with since the start is learned from when they next say something.
        """
        if not self._facts.hears(said) or not self._may_hear(said):
            return
        track = self._people.use(said.author_id, self._clock())
        heard = Heard(said, place, session_key, self._facts.prescribed(place))
        track.backlog.hear(heard, again=True)
        track.takes_part = track.takes_part or soon
        if soon:
            self.force(said.author_id)

    def waits(self, user_id: str, message_id: str) -> bool:
        """Whether a person's message waits to be learned from."""
        track = self._people.peek(user_id)
        return track is not None and message_id in track.backlog.waiting

    def sessions_of(self, user_id: str) -> set[str]:
        """The conversations in which a person's words wait for a summary, or are context for others'."""
        found = set()
        for key in self._sessions:
            if (track := self._sessions.peek(key)) is not None:
                said = [*track.recent, *(heard.said for heard in track.backlog.waiting.values())]
                if any(one.author_id == user_id for one in said):
                    found.add(key)
        return found

    def erase(self, user_id: str, sessions: Sequence[str], at: int) -> None:
        """Drop what a person said until their memory was erased at a time (ms).

        The summaries of `sessions` start anew; what others said there and was not yet summarised is lost to
        them. This changes only RAM: the caller advances the cursors on disk.
        """
        if (track := self._people.peek(user_id)) is not None:
            track.backlog.take(list(track.backlog.waiting.values()))
            track.backlog.left.clear()
            track.turns = 0
        for key in self._sessions:
            if (session := self._sessions.peek(key)) is not None:
                for said in [one for one in session.recent if one.author_id == user_id or key in sessions]:
                    session.recent.remove(said)
        for key in sessions:
            session = self._sessions.use(key, self._clock())
            session.backlog.begin_after(key, snowflake_at(at))
            session.turns, session.forced = 0, False

    def withdraw(self, withdrawal: Withdrawal) -> set[str]:
        """Drop the messages that somebody took back. Returns their ids."""
        gone = set[str]()
        for tracks in (self._sessions, self._people):
            for key in tracks:
                if (track := tracks.peek(key)) is not None:
                    gone |= track.withdraw(withdrawal)
        return gone

    def begin_again(self, session_key: str) -> None:
        """A conversation's summary was withdrawn: what it took in is to be read from the chat once more."""
        if (track := self._sessions.peek(session_key)) is not None:
            track.backlog.begin_again(session_key)
            track.cursor_known = False

    def reset(self, session_key: str, up_to: int) -> None:
        """Keep everything up to this message id out of the rolling summary, because that was cleared."""
        track = self._sessions.use(session_key, self._clock())
        track.backlog.begin_after(session_key, up_to)
        track.turns, track.forced = 0, False
        self._resets.note(session_key)

    def took_part(self, session_key: str) -> bool:
        """Whether the bot has answered in this conversation, now or before the last restart."""
        track = self._sessions.peek(session_key)
        return track is not None and track.takes_part

    async def start(self) -> None:
        """Does nothing: the first turn starts the work."""

    async def settle(self) -> None:
        """Wait until no loop is running."""
        await self._worker.settle()
        await self._resets.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Let running loops finish within `grace_s`, then stop them; unfinished messages keep waiting."""
        await self._worker.close(grace_s)
        await self._resets.close(grace_s)

    # ------------------------------------------------------------------ inside

    async def _restored(self, session_key: str) -> Track:
        """A conversation, with what its summary has seen. A lost summary is due at once."""
        track = self._sessions.use(session_key, self._clock())
        if not track.cursor_known:
            lost = await self._summary.lost(session_key)
            seen, left = await self._summary.seen_up_to(session_key), await self._summary.left(session_key)
            track.backlog.seen({session_key: seen}, {session_key: left})
            track.cursor_known, track.forced = True, lost
            track.takes_part = track.takes_part or lost or track.backlog.taken[session_key] > 0
        return track

    async def _know(self, user_id: str, person: Track) -> None:
        """Restore what extraction has seen of a person, once."""
        if not person.cursor_known:
            seen, left = await self._facts.seen_up_to(user_id), await self._facts.left(user_id)
            person.backlog.seen(seen, left)
            person.cursor_known = True

    def _may_hear(self, said: Said) -> bool:
        """Whether a message may be stored; the bot's answers, if those they answer may be."""
        answered = said.to_id if said.by_us else ""
        return self._consent.may_keep(answered or said.author_id, said.sent_at)

    def _let_go(self, track: Track) -> None:
        """Drop the messages of people who opted out since they wrote them."""
        for heard in [one for one in track.backlog.waiting.values() if not self._may_hear(one.said)]:
            track.backlog.forget(heard.said.id)

    @staticmethod
    def _keep_newest(backlog: Backlog, window: int) -> None:
        # Without the bot's part there is no need for a summary: at its first turn the window suffices.
        for message_id in list(backlog.waiting)[:-window]:
            backlog.forget(message_id)

    def _slip(self, session: Track, message_id: str, author_id: str) -> None:
        """Learn early from messages that left the window unseen.

        Only where the bot takes part and from people who talk with it, and less often the more runs have
        failed.
        """
        person = self._people.peek(author_id)
        if person is None or not (session.takes_part and person.takes_part):
            return
        if message_id in person.backlog.waiting:
            person.slipped.add(message_id)
        if self._cadence.much_slipped(person):
            self._extract(author_id, person)

    def _summarise(self, session_key: str, session: Track, user_id: str | None = None) -> None:
        """Queue a summary, perhaps because of a person's turn; it follows a run under way."""
        if user_id is not None:
            session.asked_by.add(user_id)
        self._worker.note(_Job("summary", session_key))

    def _extract(self, user_id: str, person: Track) -> None:
        """Queue an extraction; it follows a run under way."""
        self._worker.note(_Job("extraction", user_id))

    # ------------------------------------------------------------------ the runs

    async def _run(self, job: _Job) -> None:
        """Run a loop until it has seen everything waiting, if still due after the run before."""
        tracks = self._sessions if job.loop == "summary" else self._people
        if (track := tracks.peek(job.about)) is None:
            return
        if self._behind(job.about) or any(map(self._behind, track.backlog.sessions())):
            return
        if job.loop == "summary":
            if self._cadence.summary_is_due(track) or self._cadence.summary_is_early(track):
                people, track.asked_by = track.asked_by, set()
                batch = partial(self._summary_batch, job.about, track, people)
                await self._batches(job, track, batch)
        elif self._cadence.facts_are_due(track):
            await self._batches(job, track, partial(self._facts_batch, job.about, track))

    async def _batches(self, job: _Job, track: Track, batch: Callable[[], Awaitable[bool]]) -> None:
        """Let the loop take one batch after another. Raises only unexpected errors."""
        track.turns, track.forced = 0, False  # reset first: a failure is tried again after further turns
        track.slipped.clear()
        track.running, worked = True, False
        try:
            while track.backlog.waiting and await batch():
                pass
            worked = True
        except (ModelError, MemoryFault) as error:
            log.warning("%s changed nothing: %s: %s", job, type(error).__name__, error)
            if isinstance(error, ModelTimeout):
                track.backlog.was_late()
            elif isinstance(error, SPOILED):
                # Only what was postponed before is left: the run has done what it could.
                worked = not track.backlog.ready()
                if one := track.backlog.spoil(for_good=not isinstance(error, UNUSABLE)):
                    waits = one in track.backlog.waiting
                    level, what = (WARNING, "tried again after the others") if waits else (ERROR, "left out")
                    log.log(level, "%s: nothing can be made of message %s; it is %s", job, one, what)
        finally:
            track.running = False
            track.failures = 0 if worked else track.failures + 1

    async def _summary_batch(self, session_key: str, session: Track, people: Collection[str]) -> bool:
        self._let_go(session)
        more = await self._summary.run(session_key, session.backlog)
        for user_id in people:
            self._learned(user_id)
        return more

    async def _facts_batch(self, user_id: str, person: Track) -> bool:
        await self._know(user_id, person)
        self._let_go(person)
        more = await self._facts.run(user_id, person.backlog, self._context(person))
        self._learned(user_id)
        return more

    async def _save_reset(self, session_key: str) -> None:
        """Save that nothing said until now may go into a summary again."""
        track = self._sessions.peek(session_key)
        if track is not None:
            await self._summary.saw(session_key, track.backlog.taken[session_key])

    def _context(self, track: Track) -> dict[str, list[Said]]:
        """The recent talk of the conversations that the next batch is from.

        Only of those: the bot's answers in a DM must not stand beside what was said in the open.
        """
        found = {}
        for key in {heard.session_key for heard in track.backlog.oldest(FACTS_CHARS)}:
            session = self._sessions.peek(key)
            if session is not None:
                found[key] = sorted(filter(self._may_hear, session.recent), key=lambda said: int(said.id))
        return found


def _answered(said: Sequence[Said]) -> set[str]:
    """The people whom the bot answered in these messages."""
    return {one.to_id for one in said if one.by_us and one.to_id}

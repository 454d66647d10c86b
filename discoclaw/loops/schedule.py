"""Schedules the loops: counts what is said and answered, and queues the runs that become due.

`Cadence` decides when a run is due. Counters are in RAM (`track`) and start at zero after a
restart; messages wait in the backlogs, so nothing is lost, only late. Nothing here delays a reply.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from logging import ERROR, WARNING
from typing import Literal, NamedTuple

from discoclaw.core.consent import NEVER, UNLIMITED, Consent
from discoclaw.core.errors import MemoryFault, ModelError, ModelSpent, ModelTimeout
from discoclaw.core.message import Place, Said
from discoclaw.core.ports import ALONE, Clock, Processes
from discoclaw.core.subject import person_of
from discoclaw.core.usage import Payer, paid_by
from discoclaw.loops.facts import FactsLoop, NoFacts
from discoclaw.loops.heard import SPOILED, UNUSABLE, Backlog, Heard, PersonTrack, SessionTrack, Track, Tracks
from discoclaw.loops.summary import BATCH_CHARS as SUMMARY_CHARS
from discoclaw.loops.summary import NoSummary, SummaryLoop
from discoclaw.work import GRACE_S, Worker

# ----------------------------------------------------------------------
# Decides when a run of a loop is due, from what was counted since the last one.

EARLY_FACTS_CHARS = 9_000


@dataclass(frozen=True, slots=True)
class Cadence:
    """The number of turns between two runs; `window_chars` (UTF-16 units) is the window's size."""

    summary_every: int = 5
    facts_every: int = 10
    window_chars: int = 3000

    def summary_is_due(self, session: SessionTrack) -> bool:
        """Whether there were enough turns for a summary, or the last one was lost."""
        return session.forced or session.turns >= self.summary_every

    def summary_is_early(self, session: SessionTrack) -> bool:
        """Whether unseen messages are about to leave the window, or are too long for it."""
        patience = 1 << min(session.failures, 8)
        return session.takes_part and (
            len(session.backlog.ready()) >= session.window * patience
            or session.backlog.size() >= max(500, self.window_chars) * patience
        )

    def facts_are_due(self, person: PersonTrack) -> bool:
        """Whether it is time to learn from a person, for any reason."""
        much_waits = person.backlog.size() >= EARLY_FACTS_CHARS * (1 + person.failures)
        return person.forced or person.turns >= self.facts_every or much_waits or self.much_slipped(person)

    @staticmethod
    def much_slipped(person: PersonTrack) -> bool:
        """Whether enough unseen messages have left a window."""
        return len(person.slipped & person.backlog.waiting.keys()) >= 1 << min(person.failures, 8)


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
    """The schedule of both loops. `tracks` has what waits for them.

    `learned(user_id)` is called when a run may have changed what a transparency mirror shows. No loop sees
    the messages of people who do not want to be remembered (`consent`). A conversation with a gap that is
    still to be read (`behind`) waits: a cursor that passed the gap would count its messages as seen.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        summary: SummaryLoop | NoSummary,
        facts: FactsLoop | NoFacts,
        cadence: Cadence,
        learned: Callable[[str], None] = lambda user_id: None,
        consent: Consent = UNLIMITED,
        behind: Callable[[str], bool] = lambda session_key: False,
        processes: Processes = ALONE,
    ) -> None:
        self.tracks = Tracks(clock)
        self._summary = summary
        self._facts = facts
        self._cadence = cadence
        self._consent = consent
        self._learned = learned
        self._behind = behind
        # A failed run is tried again after further turns, not after a pause.
        self._worker = Worker(
            "loops",
            self._run,
            at_once=AT_ONCE,
            retry_s=None,
            lease=lambda job: processes.lease(f"{job.loop}/{job.about}"),
        )
        self._resets = Worker("cleared summaries", self._save_reset)

    # ------------------------------------------------------------------ what is said

    def hear(self, said: Said, place: Place, session_key: str, *, window: int, late: bool = False) -> None:
        """Take in a message that may be stored. `window` is the most messages in the prompt's window.

        `late`: it comes for the first time, though the loops may have seen newer ones. An aside is not
        summarised: it is short, and the chat's history has none of it to begin again from.
        """
        heard = Heard(said, place, session_key, self._facts.prescribed(place))
        track = self.tracks.session(session_key)
        if place.kind != "aside" and self._summary.hears(said):
            track.backlog.hear(heard, again=late)
        pushed_out = track.enter(said, window)
        if self._cadence.summary_is_early(track):
            self._summarise(session_key)
        if not track.takes_part:
            track.keep_newest()
        if self._facts.hears(said):
            self.tracks.person(said.author_id).backlog.hear(heard, again=late)
        for message_id, author_id in pushed_out:
            self._slip(track, str(message_id), author_id)

    def hear_again(self, said: Said, place: Place, session_key: str, *, soon: bool) -> None:
        """Learn from an edited message as if it had been said anew, at once if it is to be `soon`.

        A person that nobody has talked with since the start is learned from when they next say something.
        """
        if not self._facts.hears(said) or not self._may_hear(said):
            return
        track = self.tracks.person(said.author_id)
        heard = Heard(said, place, session_key, self._facts.prescribed(place))
        track.backlog.hear(heard, again=True)
        track.takes_part = track.takes_part or soon
        if soon:
            self.force(said.author_id)

    def nudge(self, session_key: str, user_id: str) -> None:
        """Count a turn whose answer was sent. Never blocks."""
        session, person = self.tracks.session(session_key), self.tracks.person(user_id)
        session.count_turn(session_key)
        person.count_turn(session_key)
        if self._cadence.summary_is_due(session):
            session.asked_by.add(user_id)
            self._summarise(session_key)
        if self._cadence.facts_are_due(person):
            self._extract(user_id)
        self.tracks.evict_idle()

    def force(self, user_id: str) -> None:
        """Learn now from everything a person said that is waiting. Never blocks; follows a run under way."""
        track = self.tracks.person(user_id)
        if track.backlog.waiting:
            track.forced = True
            self._extract(user_id)

    def reset(self, session_key: str, up_to: int) -> None:
        """Keep everything up to this message id out of the rolling summary, because that was cleared."""
        self.tracks.session(session_key).begin_after(session_key, up_to)
        self._resets.note(session_key)

    def _slip(self, session: SessionTrack, message_id: str, author_id: str) -> None:
        """Learn early from messages that left the window unseen.

        Only where the bot takes part and from people who talk with it, and less often the more runs have
        failed.
        """
        person = self.tracks.people.peek(author_id)
        if person is None or not (session.takes_part and person.takes_part):
            return
        if message_id in person.backlog.waiting:
            person.slipped.add(message_id)
        if self._cadence.much_slipped(person):
            self._extract(author_id)

    # ------------------------------------------------------------------ what was said before a start

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

    def summary_paused(self, session_key: str) -> bool:
        """Whether a conversation's summary rests on what is being purged, so that none is made now."""
        return self._summary.paused(session_key)

    async def catch_up(self, said: list[Said], place: Place, session_key: str, *, window: int) -> None:
        """Take in a conversation's history after a start: messages that a loop has not seen wait again."""
        track = await self._restored(session_key)
        if place.kind == "dm":  # answers to somebody who was not to be remembered are dropped too
            until = max((self._consent.cutoff(one.author_id) for one in said if not one.by_us), default=NEVER)
            said = [one for one in said if one.sent_at > until]
        said = list(filter(self._may_hear, said))
        for user_id in {one.to_id or one.author_id for one in said if not one.guest}:
            await self._know(user_id, self.tracks.person(user_id), session_key)
        self._count(said, track, session_key)
        for one in said:
            self.hear(one, place, session_key, window=window)
        if self._cadence.summary_is_due(track):
            self._summarise(session_key)
        track.backlog.left.clear()  # what was left waits now, or is gone from the chat
        for user_id in _answered(said):
            person = self.tracks.person(user_id)
            person.backlog.left.pop(session_key, None)
            person.backlog.ours.add(session_key)
            if self._cadence.facts_are_due(person):
                self._extract(user_id)

    def resume(self, session_key: str) -> None:
        """A conversation's gap was read, so what has waited for that may be learned from."""
        track = self.tracks.sessions.peek(session_key)
        if track is not None and (
            self._cadence.summary_is_due(track) or self._cadence.summary_is_early(track)
        ):
            self._summarise(session_key)
        for user_id in self.tracks.people:
            person = self.tracks.people.peek(user_id)
            if person is not None and self._cadence.facts_are_due(person):
                self._extract(user_id)

    def _count(self, said: Sequence[Said], session: SessionTrack, session_key: str) -> None:
        """Count the turns that no loop has seen: counters do not survive a restart, but answers do."""
        answers = [one for one in said if one.by_us]
        tracks: list[tuple[str, Track]] = [("", session)]
        tracks += [(user_id, self.tracks.person(user_id)) for user_id in _answered(said)]
        for user_id, track in tracks:
            theirs = [answer for answer in answers if user_id in ("", answer.to_id)]
            track.takes_part = track.takes_part or bool(theirs)
            if session_key not in track.counted:
                seen = track.backlog.taken.get(session_key, 0)
                track.turns += sum(int(answer.id) > seen for answer in theirs)
                track.counted.add(session_key)

    # ------------------------------------------------------------------ start and end

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

    # ------------------------------------------------------------------ the runs

    def _summarise(self, session_key: str) -> None:
        """Queue a summary; it follows a run under way."""
        self._worker.note(_Job("summary", session_key))

    def _extract(self, user_id: str) -> None:
        """Queue an extraction; it follows a run under way."""
        self._worker.note(_Job("extraction", user_id))

    def _may_hear(self, said: Said) -> bool:
        """Whether a message may be stored; the bot's answers, if those they answer may be."""
        answered = said.to_id if said.by_us else ""
        return self._consent.may_keep(answered or said.author_id, said.sent_at)

    async def _restored(self, session_key: str) -> SessionTrack:
        """A conversation, with what its summary has seen. A lost summary is due at once."""
        track = self.tracks.session(session_key)
        if not track.cursor_known:
            lost = await self._summary.lost(session_key)
            seen, left = await self._summary.seen_up_to(session_key), await self._summary.left(session_key)
            track.backlog.seen({session_key: seen}, {session_key: left})
            track.cursor_known, track.forced = True, lost
            track.takes_part = track.takes_part or lost or track.backlog.taken[session_key] > 0
        return track

    async def _know(self, user_id: str, person: PersonTrack, session_key: str = "") -> None:
        """Restore what extraction has seen of a person, once.

        Of a conversation that begins here it is restored too: another process may have had it until now.
        """
        if person.cursor_known and session_key in {"", *person.backlog.ours}:
            return
        seen, left = await self._facts.seen_up_to(user_id), await self._facts.left(user_id)
        if person.cursor_known:
            seen = {key: up_to for key, up_to in seen.items() if key == session_key}
            left = {key: ids for key, ids in left.items() if key == session_key}
        person.backlog.seen(seen, left)
        person.cursor_known = True

    async def _run(self, job: _Job) -> None:
        """Run a loop until it has seen everything waiting, if still due after the run before."""
        if job.loop == "summary":
            session = self.tracks.sessions.peek(job.about)
            if session is None or self._must_wait(job, session):
                return
            if self._cadence.summary_is_due(session) or self._cadence.summary_is_early(session):
                people, session.asked_by = session.asked_by, set()
                await self._batches(job, session, partial(self._summary_batch, job.about, session, people))
        else:
            person = self.tracks.people.peek(job.about)
            if person is None or self._must_wait(job, person):
                return
            if self._cadence.facts_are_due(person):
                person.slipped.clear()
                await self._batches(job, person, partial(self._facts_batch, job.about, person))

    def _must_wait(self, job: _Job, track: Track) -> bool:
        """Whether a conversation has a gap that is still to be read."""
        return self._behind(job.about) or any(map(self._behind, track.backlog.sessions()))

    async def _batches(self, job: _Job, track: Track, batch: Callable[[], Awaitable[bool]]) -> None:
        """Let the loop take one batch after another. Raises only unexpected errors."""
        track.turns, track.forced = 0, False  # reset first: a failure is tried again after further turns
        track.running, worked = True, False
        try:
            while track.backlog.waiting and await batch():
                pass
            worked = True
        except ModelSpent as error:
            log.info("%s waits: %s", job, error)
            track.forced = worked = True
            self._worker.note(job, error.after_s)
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

    async def _summary_batch(self, session_key: str, session: SessionTrack, people: Collection[str]) -> bool:
        self._drop_opted_out(session)
        spent = list[ModelSpent]()
        for payer in _payers(session.backlog, person_of(session_key)):
            try:
                with paid_by(payer):
                    more = await self._summary.run(session_key, session.backlog)
                break
            except ModelSpent as error:
                spent.append(error)
        else:
            raise min(spent, key=lambda error: error.after_s)
        for user_id in people:
            self._learned(user_id)
        return more

    async def _facts_batch(self, user_id: str, person: PersonTrack) -> bool:
        await self._know(user_id, person)
        self._drop_opted_out(person)
        context = self._context(person)
        with paid_by(_payers(person.backlog, user_id)[0]):
            more = await self._facts.run(user_id, person.backlog, context, there=self._is_there)
        self._learned(user_id)
        return more

    def _drop_opted_out(self, track: Track) -> None:
        """Drop the messages of people who opted out since they wrote them."""
        for heard in [one for one in track.backlog.waiting.values() if not self._may_hear(one.said)]:
            track.backlog.forget(heard.said.id)

    def _context(self, person: PersonTrack) -> dict[str, list[Said]]:
        """The recent talk of the conversations that the next batch is from.

        Only of those: the bot's answers in a DM must not stand beside what was said in the open.
        """
        found = {}
        for key in {heard.session_key for heard in person.backlog.oldest(self._facts.batch_chars)}:
            session = self.tracks.sessions.peek(key)
            if session is not None:
                found[key] = sorted(filter(self._may_hear, session.recent), key=lambda said: int(said.id))
        return found

    def _is_there(self, session_key: str, said: Said) -> bool:
        """Whether a line of recent talk is still in its conversation as it was, and may be used."""
        session = self.tracks.sessions.peek(session_key)
        return session is not None and said in session.recent and self._may_hear(said)

    async def _save_reset(self, session_key: str) -> None:
        track = self.tracks.sessions.peek(session_key)
        if track is not None:
            await self._summary.saw(session_key, track.backlog.taken[session_key])


def _answered(said: Sequence[Said]) -> set[str]:
    """The people whom the bot answered in these messages."""
    return {one.to_id for one in said if one.by_us and one.to_id}


def _payers(backlog: Backlog, user_id: str | None) -> list[Payer]:
    """Who may pay for a run, in this order: the person it is about, or whoever wrote most of the next batch.

    The place is that of what has waited longest. Never empty: without people, the place alone pays.
    """
    first = next(iter(backlog.waiting.values()), None)
    if first is None:
        return [Payer(user_id)]
    payer = Payer(user_id, first.place.group_id, first.place.guild_id, first.said.sent_at)
    wrote: dict[str, list[Said]] = {}
    for said in [heard.said for heard in backlog.oldest(SUMMARY_CHARS)] if user_id is None else ():
        if not (said.by_us or said.guest):
            wrote.setdefault(said.author_id, []).append(said)
    most = sorted(wrote.values(), key=lambda lines: -sum(len(one.text) for one in lines))
    return [replace(payer, user=one.author_id, said_at=one.sent_at) for one, *_ in most] or [payer]

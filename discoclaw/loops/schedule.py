"""Schedules the loops: counts what is said and answered, and queues the runs that become due.

`cadence` decides when a run is due, `runs` does it. Counters are in RAM (`track`) and start at zero after a
restart; messages wait in the backlogs, so nothing is lost, only late. Nothing here delays a reply.
"""

from collections.abc import Callable, Sequence

from discoclaw.core.consent import NEVER, UNLIMITED, Consent
from discoclaw.core.message import Place, Said
from discoclaw.core.ports import Clock
from discoclaw.core.processes import ALONE, Processes
from discoclaw.loops.cadence import Cadence
from discoclaw.loops.facts import FactsLoop
from discoclaw.loops.heard import Heard
from discoclaw.loops.runs import Runs
from discoclaw.loops.summary import SummaryLoop
from discoclaw.loops.track import SessionTrack, Track, Tracks
from discoclaw.work import GRACE_S


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
        summary: SummaryLoop,
        facts: FactsLoop,
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
        self._runs = Runs(
            self.tracks,
            self._cadence,
            summary=summary,
            facts=facts,
            learned=learned,
            consent=consent,
            behind=behind,
            processes=processes,
        )

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
            self._runs.summarise(session_key)
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
        if not self._facts.hears(said) or not self._runs.may_hear(said):
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
            self._runs.summarise(session_key)
        if self._cadence.facts_are_due(person):
            self._runs.extract(user_id)
        self.tracks.evict_idle()

    def force(self, user_id: str) -> None:
        """Learn now from everything a person said that is waiting. Never blocks; follows a run under way."""
        track = self.tracks.person(user_id)
        if track.backlog.waiting:
            track.forced = True
            self._runs.extract(user_id)

    def reset(self, session_key: str, up_to: int) -> None:
        """Keep everything up to this message id out of the rolling summary, because that was cleared."""
        self.tracks.session(session_key).begin_after(session_key, up_to)
        self._runs.reset(session_key)

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
            self._runs.extract(author_id)

    # ------------------------------------------------------------------ what was said before a start

    async def miss_more(self, session_key: str, said: Sequence[Said]) -> bool:
        """Whether a loop has not seen everything before the oldest of these messages, read after a start.

        Only the loops of conversations and people with whom the bot talks count.
        """
        oldest = int(said[0].id) if said else 0
        backlog = (await self._runs.restored(session_key)).backlog
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
        track = await self._runs.restored(session_key)
        if place.kind == "dm":  # answers to somebody who was not to be remembered are dropped too
            until = max((self._consent.cutoff(one.author_id) for one in said if not one.by_us), default=NEVER)
            said = [one for one in said if one.sent_at > until]
        said = list(filter(self._runs.may_hear, said))
        for user_id in {one.to_id or one.author_id for one in said if not one.guest}:
            await self._runs.know(user_id, self.tracks.person(user_id), session_key)
        self._count(said, track, session_key)
        for one in said:
            self.hear(one, place, session_key, window=window)
        if self._cadence.summary_is_due(track):
            self._runs.summarise(session_key)
        track.backlog.left.clear()  # what was left waits now, or is gone from the chat
        for user_id in _answered(said):
            person = self.tracks.person(user_id)
            person.backlog.left.pop(session_key, None)
            person.backlog.ours.add(session_key)
            if self._cadence.facts_are_due(person):
                self._runs.extract(user_id)

    def resume(self, session_key: str) -> None:
        """A conversation's gap was read, so what has waited for that may be learned from."""
        track = self.tracks.sessions.peek(session_key)
        if track is not None and (
            self._cadence.summary_is_due(track) or self._cadence.summary_is_early(track)
        ):
            self._runs.summarise(session_key)
        for user_id in self.tracks.people:
            person = self.tracks.people.peek(user_id)
            if person is not None and self._cadence.facts_are_due(person):
                self._runs.extract(user_id)

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
        await self._runs.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Let running loops finish within `grace_s`, then stop them; unfinished messages keep waiting."""
        await self._runs.close(grace_s)


def _answered(said: Sequence[Said]) -> set[str]:
    """The people whom the bot answered in these messages."""
    return {one.to_id for one in said if one.by_us and one.to_id}

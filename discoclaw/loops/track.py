"""What the loops know about conversations and people: what waits for them, and what was counted.

In RAM; everything starts at zero after a restart. Pure. Knows neither when a run is due (`cadence`) nor how
one is done (`schedule.Runs`).
"""

from bisect import insort
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.message import Said
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Purge
from discoclaw.core.times import snowflake_at
from discoclaw.loops.heard import Backlog

RECENT = 40


@dataclass
class Track:
    """Counts of what waits for a loop, and of what happened since its last run began."""

    backlog: Backlog = field(default_factory=Backlog)
    turns: int = 0
    counted: set[str] = field(default_factory=set)
    """The conversations whose turns are counted as they happen, or were counted again after a start."""
    forced: bool = False
    failures: int = 0
    """How many runs failed in a row."""
    takes_part: bool = False
    cursor_known: bool = False
    running: bool = False

    @property
    def busy(self) -> bool:
        """Whether it must stay in RAM even if nobody uses it."""
        return self.running or (self.takes_part and bool(self.backlog.waiting))

    def count_turn(self, session_key: str) -> None:
        """Count an answer that was sent."""
        self.takes_part = True
        self.turns += 1
        self.counted.add(session_key)

    def forget(self, message_ids: set[str]) -> dict[str, Said]:
        """Drop messages that were deleted in the chat. Returns those that were here."""
        waiting = message_ids & self.backlog.waiting.keys()
        found = {message_id: self.backlog.waiting[message_id].said for message_id in waiting}
        for message_id in waiting:
            self.backlog.forget(message_id)
        return found

    def amend(self, message_id: str, text: str, at: int) -> None:
        """Replace the text of a message that was edited in the chat at a time (ms)."""
        self.backlog.amend(message_id, text, at)

    def purge(self, purge: Purge) -> set[str]:
        """Drop the messages that somebody took back. Returns their ids."""
        gone = {
            heard.said.id
            for heard in self.backlog.waiting.values()
            if purge.covers(heard.said, in_private=heard.place.hidden)
        }
        for message_id in gone:
            self.backlog.forget(message_id)
        return gone


@dataclass
class SessionTrack(Track):
    """A conversation, for its summary."""

    recent: deque[Said] = field(default_factory=lambda: deque(maxlen=RECENT))
    """Its newest messages, which are also context for what is learned from people there."""
    inside: list[tuple[int, str]] = field(default_factory=list)
    """The messages in the prompt's window, oldest first: their ids and authors."""
    window: int = 0
    """The most messages in that window."""
    asked_by: set[str] = field(default_factory=set)
    """The people whose turns made a run due."""

    def enter(self, said: Said, window: int) -> list[tuple[int, str]]:
        """Add a message to the window of at most `window`. Returns what it pushes out, oldest first."""
        self.window = window
        if all(one.id != said.id for one in self.recent):
            self.recent.append(said)
        entry = (int(said.id), said.author_id)
        if entry in self.inside or (len(self.inside) >= window and entry < self.inside[0]):
            return []
        insort(self.inside, entry)
        gone = self.inside[:-window]
        del self.inside[:-window]
        return gone

    def keep_newest(self) -> None:
        """Let no more wait than the window shows.

        Without the bot's part there is no need for a summary: at its first turn the window suffices.
        """
        for message_id in list(self.backlog.waiting)[: -self.window]:
            self.backlog.forget(message_id)

    def forget(self, message_ids: set[str]) -> dict[str, Said]:
        found = super().forget(message_ids)
        for said in [one for one in self.recent if one.id in message_ids]:
            self.recent.remove(said)
            found[said.id] = said
        return found

    def purge(self, purge: Purge) -> set[str]:
        gone = super().purge(purge)
        for said in [one for one in self.recent if one.id in gone or purge.covers(one)]:
            self.recent.remove(said)
            gone.add(said.id)
        return gone

    def amend(self, message_id: str, text: str, at: int) -> None:
        super().amend(message_id, text, at)
        for place, said in enumerate(self.recent):
            if said.id == message_id:
                self.recent[place] = replace(said, text=text)

    def begin_after(self, session_key: str, up_to: int) -> None:
        """Count everything up to this message id as summarised."""
        self.backlog.begin_after(session_key, up_to)
        self.turns, self.forced = 0, False


@dataclass
class PersonTrack(Track):
    """A person, for extraction."""

    slipped: set[str] = field(default_factory=set)
    """Messages that left a window before any run had seen them."""


class Tracks:
    """All tracks: `sessions` by session key, `people` by user id.

    Those with something waiting stay; the others are evicted, and can be restored from their cursors.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.sessions: IdleMap[SessionTrack] = IdleMap(lambda key: SessionTrack(), idle_ms=HOUR_MS)
        self.people: IdleMap[PersonTrack] = IdleMap(lambda key: PersonTrack(), idle_ms=HOUR_MS)

    def session(self, session_key: str) -> SessionTrack:
        """A conversation's track, which is in use now."""
        return self.sessions.use(session_key, self._clock())

    def person(self, user_id: str) -> PersonTrack:
        """A person's track, which is in use now."""
        return self.people.use(user_id, self._clock())

    def took_part(self, session_key: str) -> bool:
        """Whether the bot has answered in this conversation, now or before the last restart."""
        track = self.sessions.peek(session_key)
        return track is not None and track.takes_part

    def waits(self, user_id: str, message_id: str) -> bool:
        """Whether a person's message waits to be learned from."""
        track = self.people.peek(user_id)
        return track is not None and message_id in track.backlog.waiting

    def sessions_of(self, user_id: str) -> set[str]:
        """The conversations in which a person's words wait for a summary, or are context for others'."""
        return {
            key
            for key, track in self._sessions()
            if any(one.author_id == user_id for one in track.recent)
            or any(heard.said.author_id == user_id for heard in track.backlog.waiting.values())
        }

    def evict_idle(self) -> None:
        """Drop the tracks that nothing waits in, an hour after their last use.

        Where the bot takes no part, the chat's history serves as well as a backlog here. People who never
        talked with the bot are dropped too: their next message starts a new track.
        """
        self.sessions.evict_idle(self._clock(), busy=lambda track: track.busy)
        self.people.evict_idle(self._clock(), busy=lambda track: track.busy)

    # ------------------------------------------------------------------ what is taken out or changed

    def forget(self, *message_ids: str) -> dict[str, Said]:
        """Remove messages that were deleted in the chat from every backlog. Returns those that were there."""
        found = dict[str, Said]()
        for track in self._all():
            found |= track.forget(set(message_ids))
        return found

    def amend(self, session_key: str, author_id: str, message_id: str, text: str, at: int = 0) -> None:
        """Replace the text of a message, edited at a time (ms), for the loops that have not seen it."""
        for track in (self.sessions.peek(session_key), self.people.peek(author_id)):
            if track is not None:
                track.amend(message_id, text, at)

    def purge(self, purge: Purge) -> set[str]:
        """Drop the messages that somebody took back. Returns their ids."""
        gone = set[str]()
        for track in self._all():
            gone |= track.purge(purge)
        return gone

    def erase(self, user_id: str, sessions: Sequence[str], at: int) -> None:
        """Drop what a person said until their memory was erased at a time (ms).

        The summaries of `sessions` start anew; what others said there and was not yet summarised is lost to
        them. This changes only RAM: the caller advances the cursors on disk.
        """
        if (track := self.people.peek(user_id)) is not None:
            track.backlog.take(list(track.backlog.waiting.values()))
            track.backlog.left.clear()
            track.turns = 0
        for key, session in self._sessions():
            for said in [one for one in session.recent if one.author_id == user_id or key in sessions]:
                session.recent.remove(said)
        for key in sessions:
            self.session(key).begin_after(key, snowflake_at(at))

    def begin_again(self, session_key: str) -> None:
        """A conversation's summary was purged: what it took in is to be read from the chat once more."""
        if (track := self.sessions.peek(session_key)) is not None:
            track.backlog.begin_again(session_key)
            track.cursor_known = False

    def _sessions(self) -> Iterator[tuple[str, SessionTrack]]:
        for key in self.sessions:
            if (track := self.sessions.peek(key)) is not None:
                yield key, track

    def _all(self) -> Iterator[Track]:
        for tracks in (self.sessions, self.people):
            for key in tracks:
                if (track := tracks.peek(key)) is not None:
                    yield track

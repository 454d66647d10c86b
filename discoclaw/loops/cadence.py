"""Decides when a run of a loop is due, from what was counted since the last one.

    rolling summary   every N turns of a session, or when unseen messages are about to leave the window
    extraction        every M turns of a person, counted apart, or when a lot of their talk is waiting, or
                      when words of theirs leave a window before they were learned from

A turn is an answered message. Early runs wait longer the more runs have failed, to spare a model that is
down. Pure; independent of how a run is done.
"""

from bisect import insort
from collections import deque
from dataclasses import dataclass, field

from discoclaw.core.message import Said
from discoclaw.core.taken_back import Withdrawal
from discoclaw.loops.heard import Backlog

EARLY_FACTS_CHARS = 9_000
RECENT = 40


@dataclass(slots=True)
class Track:
    """One conversation or person: what is waiting, and what happened since the last run began."""

    backlog: Backlog = field(default_factory=Backlog)
    recent: deque[Said] = field(default_factory=lambda: deque(maxlen=RECENT))
    inside: list[tuple[int, str]] = field(default_factory=list)
    """The messages of a conversation in the prompt's window, oldest first: their ids and authors."""
    window: int = 0
    """The most messages in that window."""
    turns: int = 0
    counted: set[str] = field(default_factory=set)
    """The conversations whose turns are counted as they happen, or were counted again after a start."""
    slipped: set[str] = field(default_factory=set)
    """A person's messages that left a window before any run had seen them."""
    forced: bool = False
    asked_by: set[str] = field(default_factory=set)
    """The people whose turns made a run due."""
    failures: int = 0
    """How many runs failed in a row."""
    takes_part: bool = False
    cursor_known: bool = False
    running: bool = False

    @property
    def busy(self) -> bool:
        """Whether it must stay in RAM even if nobody uses it."""
        return self.running or (self.takes_part and bool(self.backlog.waiting))

    def forget(self, message_ids: set[str]) -> dict[str, Said]:
        """Drop messages that were deleted in the chat. Returns those that were here."""
        waiting = message_ids & self.backlog.waiting.keys()
        found = {message_id: self.backlog.waiting[message_id].said for message_id in waiting}
        for message_id in waiting:
            self.backlog.forget(message_id)
        for said in [one for one in self.recent if one.id in message_ids]:
            self.recent.remove(said)
            found[said.id] = said
        return found

    def withdraw(self, withdrawal: Withdrawal) -> set[str]:
        """Drop the messages that somebody took back. Returns their ids."""
        gone = {
            heard.said.id
            for heard in self.backlog.waiting.values()
            if withdrawal.covers(heard.said, in_private=heard.place.private)
        }
        for message_id in gone:
            self.backlog.forget(message_id)
        for said in [one for one in self.recent if one.id in gone or withdrawal.covers(one)]:
            self.recent.remove(said)
            gone.add(said.id)
        return gone


@dataclass(frozen=True, slots=True)
class Cadence:
    """The number of turns between two runs; `window_chars` (UTF-16 units) is the window's size."""

    summary_every: int
    facts_every: int
    window_chars: int

    def summary_is_due(self, session: Track) -> bool:
        """Whether there were enough turns for a summary, or the last one was lost."""
        return session.forced or session.turns >= self.summary_every

    def summary_is_early(self, session: Track) -> bool:
        """Whether unseen messages are about to leave the window, or are too long for it."""
        patience = 1 << min(session.failures, 8)
        return session.takes_part and (
            len(session.backlog.ready()) >= session.window * patience
            or session.backlog.size() >= max(500, self.window_chars) * patience
        )

    def facts_are_due(self, person: Track) -> bool:
        """Whether it is time to learn from a person, for any reason."""
        much_waits = person.backlog.size() >= EARLY_FACTS_CHARS * (1 + person.failures)
        return person.forced or person.turns >= self.facts_every or much_waits or self.much_slipped(person)

    @staticmethod
    def much_slipped(person: Track) -> bool:
        """Whether enough unseen messages have left a window."""
        return len(person.slipped & person.backlog.waiting.keys()) >= 1 << min(person.failures, 8)


def leaving(inside: list[tuple[int, str]], said: Said, window: int) -> list[tuple[int, str]]:
    """Add a message to the window; returns what it pushes out, oldest first."""
    entry = (int(said.id), said.author_id)
    if entry in inside or (len(inside) >= window and entry < inside[0]):
        return []
    insort(inside, entry)
    gone = inside[:-window]
    del inside[:-window]
    return gone

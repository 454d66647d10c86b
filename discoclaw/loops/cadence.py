"""Decides when a run of a loop is due, from what was counted since the last one.

    rolling summary   every N turns of a session, or when unseen messages are about to leave the window
    extraction        every M turns of a person, counted apart, or when a lot of their talk is waiting, or
                      when words of theirs leave a window before they were learned from

A turn is an answered message. Early runs wait longer the more runs have failed, to spare a model that is
down. Pure. Knows nothing about how a run is done.
"""

from dataclasses import dataclass

from discoclaw.loops.track import PersonTrack, SessionTrack

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

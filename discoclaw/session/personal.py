"""People's talk in the RAM of the running program, as one part of the contract for personal data."""

from collections.abc import Iterable

from discoclaw.core.personal import Erasure, PersonalData, Withdrawn
from discoclaw.core.ports import Recall
from discoclaw.core.purge import Withdrawal
from discoclaw.core.subject import user_of
from discoclaw.loops.schedule import Loops
from discoclaw.memory.changes import Listener
from discoclaw.session.explained import Explained
from discoclaw.session.hatch import Hatchery
from discoclaw.session.window import Windows


class TalkInRam(PersonalData, Listener):
    """Windows, backlogs, the interview, the reasons for answers, and ranking."""

    name = "talk in memory"

    def __init__(
        self,
        windows: Windows,
        loops: Loops,
        hatchery: Hatchery,
        explained: Explained,
        ranker: Recall,
    ) -> None:
        self._windows = windows
        self._loops = loops
        self._hatchery = hatchery
        self._explained = explained
        self._ranker = ranker

    def sessions_of(self, subject: str) -> Iterable[str]:
        """The conversations that have words of a person in RAM."""
        if (user_id := user_of(subject)) is None:
            return ()
        return {*self._windows.with_words_of(user_id), *self._loops.tracks.sessions_of(user_id)}

    def forget(self, erasure: Erasure) -> None:
        """Drop everything in RAM that could bring a person's words back. Their conversations start empty."""
        if (user_id := user_of(erasure.subject)) is None:
            return
        touched = sorted({*erasure.sessions, *self.sessions_of(erasure.subject)})
        for session_key in touched:
            self._windows.use(session_key).clear()
        self._explained.forget(user_id)
        self._ranker.forget()
        self._hatchery.erase(user_id)
        self._loops.tracks.erase(user_id, touched, erasure.at)

    def out_of_touch(self) -> None:
        """Answer from no talk that others may take back or erase meanwhile; what is to be learned waits."""
        self._windows.out_of_touch()

    def let_go(self, withdrawal: Withdrawal) -> Withdrawn:
        """Drop the messages that somebody took back, from what is shown and from what is to be learned."""
        self._explained.forget(withdrawal.user_id)
        self._ranker.forget()
        self._hatchery.withdraw(withdrawal)
        gone = self._windows.withdraw(withdrawal) | self._loops.tracks.withdraw(withdrawal)
        return Withdrawn(messages=frozenset(gone))

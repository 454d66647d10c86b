"""Recent talk as personal data: windows, what waits for the loops, the last answers, the interview."""

from collections.abc import Iterable

from discoclaw.core.personal import Erasure, PersonalData
from discoclaw.core.subject import user_of
from discoclaw.session.talk import Talk


class RecentTalk(PersonalData):
    """What `talk` has of people in RAM."""

    name = "recent talk"

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    def sessions_of(self, subject: str) -> Iterable[str]:
        user_id = user_of(subject)
        return self._talk.sessions_of(user_id) if user_id is not None else ()

    def forget(self, erasure: Erasure) -> None:
        if (user_id := user_of(erasure.subject)) is not None:
            self._talk.erase(user_id, erasure.sessions, erasure.at)

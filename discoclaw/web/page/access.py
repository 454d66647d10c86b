"""Who may look at the page: the token lets somebody in, and a session keeps them in for a while.

Sessions are in RAM, so a restart ends them. A wrong token counts against everybody's tries, because on this
machine everybody has one address. Knows nothing about HTTP.
"""

import hashlib
import hmac
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

IDLE_S: Final = 30 * 60.0
"""A session ends when nobody asked for anything that long."""
LONGEST_S: Final = 8 * 3600.0
"""The longest session: a page that renews itself would keep it alive for ever."""
MOST_SESSIONS: Final = 16
TRIES: Final = 10
"""Wrong tokens within `TRIES_S`; beyond that not even the right one is taken."""
TRIES_S: Final = 60.0


@dataclass(slots=True)
class Session:
    """Somebody who came in with the token. `csrf` is in each of their forms.

    `said` is what the next page says about what they did.
    """

    began: float
    seen: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    said: str = ""

    def lasts(self, now: float) -> bool:
        """Whether it has not ended at a time (s)."""
        return now - self.seen < IDLE_S and now - self.began < LONGEST_S

    def heard(self) -> str:
        """The message to show, which is then forgotten; "" if there is none."""
        said, self.said = self.said, ""
        return said


class TooManyTries(Exception):
    """So many wrong tokens came within a minute that none is taken for now."""


class Access:
    """The token and the sessions. `now` is a clock (s) that never goes back."""

    def __init__(self, token: str, now: Callable[[], float]) -> None:
        self._token = _digest(token)
        self._now = now
        self._sessions: dict[bytes, Session] = {}
        self._wrong: deque[float] = deque(maxlen=TRIES)

    def enter(self, token: str) -> str | None:
        """Begin a session, and return its key; None if the token is wrong. Raises TooManyTries."""
        now = self._now()
        if len(self._wrong) == TRIES and now - self._wrong[0] < TRIES_S:
            raise TooManyTries
        if not hmac.compare_digest(_digest(token), self._token):
            self._wrong.append(now)
            return None
        self._sessions = {key: one for key, one in self._sessions.items() if one.lasts(now)}
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        key = secrets.token_urlsafe(32)
        self._sessions[_digest(key)] = Session(now, now)
        return key

    def session(self, key: str) -> Session | None:
        """The session with this key, if it lasts."""
        now, found = self._now(), self._sessions.get(_digest(key))
        if found is None or not found.lasts(now):
            return None
        found.seen = now
        return found

    def leave(self, key: str) -> None:
        """End a session."""
        self._sessions.pop(_digest(key), None)


def same(one: str, other: str) -> bool:
    """Whether two secrets are the same, in a time that says nothing about where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def _digest(secret: str) -> bytes:
    # Of one length, and found in a dict without a comparison that takes longer the more is right.
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()

"""The one authority for "may this be kept?": one cutoff for each person.

Two things set it: a person opts out of memory (now, and for the time until they opted in again), or has their
memory erased. What they said up to the cutoff is never stored, learned from or shown again.
It is asked once, when a message arrives. The answer, a `Permission`, travels with the message; it ends by
itself when the person opts out or is erased while the message is still being worked on.
Knows nothing about where choices and tombstones are kept.
"""

import sys
from collections import deque
from collections.abc import Callable
from weakref import WeakValueDictionary

from discoclaw.core.subject import user_subject

NEVER = -1
"""The cutoff of a person who never opted out and was never erased."""
ALWAYS = sys.maxsize
"""The cutoff of a person who has opted out: nothing they say may be kept."""
LATELY = 50_000
"""How many people of whom something was heard lately count as in use: the words of as many fit in no RAM."""

CutoffOf = Callable[[str], int]
"""Until when (ms since 1970) nothing of a person (a Discord user id) may be kept; `NEVER` for no limit."""


def _never(user_id: str) -> int:
    return NEVER


class Cutoffs:
    """One person's two limits (ms), shared by all their permissions that are in use."""

    __slots__ = ("__weakref__", "erased_at", "refused_until", "user_id")

    def __init__(self, user_id: str, refused_until: int, erased_at: int) -> None:
        self.user_id = user_id
        self.refused_until = refused_until
        self.erased_at = erased_at


class Permission:
    """Whether what somebody said at one moment may be kept. Asking it costs two comparisons."""

    __slots__ = ("_cutoffs", "said_at", "subject", "user_id")

    def __init__(self, user_id: str, said_at: int, cutoffs: Cutoffs) -> None:
        self.user_id = user_id
        self.subject = user_subject(user_id)
        self.said_at = said_at
        """When (ms since 1970) it was said."""
        self._cutoffs = cutoffs

    @property
    def holds(self) -> bool:
        """Whether it may be kept, as of now."""
        return self.said_at > self._cutoffs.refused_until and self.said_at > self._cutoffs.erased_at

    @property
    def erased(self) -> bool:
        """Whether the person had their memory erased after they said it: not even RAM may keep it then."""
        return self.said_at <= self._cutoffs.erased_at

    @property
    def opted_out(self) -> bool:
        """Whether the person wants no memory at all, as of now."""
        return self._cutoffs.refused_until == ALWAYS


class Consent:
    """Everybody's cutoffs, from people's choices and the tombstones of erasures.

    `refused_until` returns until when (ms) a person (user id) did not want to be remembered, `erased_at` when
    they were erased. Both are called when a message arrives. Call `changed` after either has changed for
    somebody.
    """

    def __init__(self, refused_until: CutoffOf = _never, erased_at: CutoffOf = _never) -> None:
        self._refused_until = refused_until
        self._erased_at = erased_at
        self._in_use: WeakValueDictionary[str, Cutoffs] = WeakValueDictionary()
        self._lately: deque[Cutoffs] = deque(maxlen=LATELY)

    def cutoff(self, user_id: str) -> int:
        """Until when (ms since 1970) nothing the person said may be kept: `NEVER`, a time, or `ALWAYS`."""
        return max(self._refused_until(user_id), self._erased_at(user_id))

    def erased_at(self, user_id: str) -> int:
        """When (ms since 1970) the person last had their memory erased; `NEVER` if they haven't."""
        return self._erased_at(user_id)

    def may_keep(self, user_id: str, said_at: int) -> bool:
        """Whether something the person said at a time (ms) may be kept."""
        return said_at > self.cutoff(user_id)

    def opted_out(self, user_id: str) -> bool:
        """Whether the person wants no memory at all."""
        return self._refused_until(user_id) == ALWAYS

    def ask(self, user_id: str, said_at: int) -> Permission:
        """The permission for one message. As long as it is in use, it follows the person's decisions."""
        return Permission(user_id, said_at, self._in_use.get(user_id) or self._begun(user_id))

    def _begun(self, user_id: str) -> Cutoffs:
        cutoffs = Cutoffs(user_id, self._refused_until(user_id), self._erased_at(user_id))
        self._in_use[user_id] = cutoffs
        self._lately.append(cutoffs)
        return cutoffs

    def in_use(self, user_id: str) -> bool:
        """Whether any permission of a person is in use, or was lately: RAM may have words of theirs."""
        return user_id in self._in_use

    def changed(self, user_id: str) -> None:
        """Update the permissions in use after the person changed their choice, or was erased."""
        if (cutoffs := self._in_use.get(user_id)) is not None:
            cutoffs.refused_until = self._refused_until(user_id)
            cutoffs.erased_at = self._erased_at(user_id)


UNLIMITED = Consent()
"""Consent where nobody has opted out or been erased."""

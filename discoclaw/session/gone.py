"""Messages that were deleted or edited in the chat, together and by author."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from discoclaw.core.message import Place, Said
from discoclaw.core.unsaid import Unsaid

MOST_WORDED: Final = 20
"""The most messages of one person whose words are searched for. A larger purge goes by the ids alone."""


@dataclass(frozen=True, slots=True)
class Gone:
    """One message that was deleted or edited, and what is known about it.

    `sessions` are the conversations (keys) that it may belong to. `author_id` is "" if nobody knows it; for
    an answer of the bot it is the person answered. `again`: the edited message as it is now.
    """

    what: Unsaid
    sessions: frozenset[str] = frozenset()
    author_id: str = ""
    again: "Edited | None" = None


@dataclass(frozen=True, slots=True)
class Edited:
    """A message as it is now. `allowed` finds out whether its author may talk to the bot."""

    said: Said
    place: Place
    session_key: str
    allowed: Callable[[], Awaitable[bool]]


@dataclass(slots=True)
class Theirs:
    """The messages of one author that were deleted or edited."""

    gone: list[Gone] = field(default_factory=list)

    def sessions(self) -> frozenset[str]:
        return frozenset[str]().union(*(one.sessions for one in self.gone))

    def places(self, *, deleted: bool) -> dict[str, str]:
        """The messages that were deleted, or those that lost words by an edit."""
        some = (one.what for one in self.gone if one.what.deleted == deleted)
        return {one.message_id: one.channel_id for one in some if deleted or one.lost() != frozenset()}

    def words(self) -> frozenset[str]:
        """The words that these messages no longer say; none unless that is known for every message."""
        lost = [one.what.lost() for one in self.gone]
        known = [one for one in lost if one is not None]
        return frozenset[str]().union(*known) if len(known) == len(lost) <= MOST_WORDED else frozenset()


def by_author(batch: Iterable[Gone]) -> dict[str, Theirs]:
    """The messages of each author, by user id; "" where the author is unknown."""
    found: dict[str, Theirs] = {}
    for one in batch:
        found.setdefault(one.author_id, Theirs()).gone.append(one)
    return found

"""Who hears that something on disk changed: whatever shows it elsewhere, or keeps something made from it.

Writers tell `Changes`, which every `Listener` was added to once. Listeners are called on the event loop, one
after another, after the change is on disk; they only note what to do later. Knows nothing about who listens.
"""

from discoclaw.core.event import Commit

SESSION = "session:"
"""The unit of a conversation is this and its session key."""


class Listener:
    """Hears what changed. Each method has a default that does nothing, and must not block."""

    def recorded(self, subject: str) -> None:
        """The ledger of a subject changed."""

    def committed(self, subject: str, commit: Commit) -> None:
        """A commit that was asked for here was made (not an edit by hand)."""

    def written(self, unit: str) -> None:
        """Another file about a unit changed: a subject, or `session:<key>`."""

    def chosen(self, user_id: str) -> None:
        """Somebody made a choice about being remembered."""


class Changes(Listener):
    """Tells all listeners, in the order in which they were added."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def add(self, *listeners: Listener) -> None:
        """Let these hear what changes from now on."""
        self._listeners += listeners

    def recorded(self, subject: str) -> None:
        for one in self._listeners:
            one.recorded(subject)

    def committed(self, subject: str, commit: Commit) -> None:
        for one in self._listeners:
            one.committed(subject, commit)

    def written(self, unit: str) -> None:
        for one in self._listeners:
            one.written(unit)

    def chosen(self, user_id: str) -> None:
        for one in self._listeners:
            one.chosen(user_id)

"""Notifies listeners of changes on disk: mirrors, and caches of what is derived from memory.

Writers notify `Changes`, to which every `Listener` is added once. Listeners are called on the event loop, one
after another, after the change is on disk; they only record what to do later. Independent of the listeners.
"""

from discoclaw.core.event import Commit

SESSION = "session:"
"""The unit of a conversation begins with this, followed by its session key."""


class Listener:
    """Is notified of changes. Every method does nothing by default, and must not block."""

    def recorded(self, subject: str) -> None:
        """The ledger of a subject changed."""

    def committed(self, subject: str, commit: Commit) -> None:
        """The bot made a commit (not an edit by hand)."""

    def written(self, unit: str) -> None:
        """Another file about a unit changed; a unit is a subject, or `session:<key>`."""

    def chosen(self, user_id: str) -> None:
        """Somebody made a choice about being remembered."""


class Changes(Listener):
    """Notifies all listeners, in the order in which they were added."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def add(self, *listeners: Listener) -> None:
        """Add listeners for all later changes."""
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

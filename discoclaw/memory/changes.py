"""Who is told of what happens to the store.

Writers notify `Changes`, to which every `Listener` is added once: mirrors, and caches of what lies in the
store or is derived from it. Listeners are called on the event loop, one after another, after the change is on
disk; they only record what to do later. Independent of what they are.
"""

from collections.abc import Collection

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

    async def renewed(self, names: Collection[str]) -> None:
        """Another process changed these texts of the store: nothing that RAM has of them is used any more.

        `names` are paths in the store (see `core/ports`). A text that every message needs is read again
        here; any other when it is next used. Raises nothing.
        """

    def out_of_touch(self) -> None:
        """The store cannot be reached: others may change or erase what was read so far."""

    def back_in_touch(self) -> None:
        """The store can be reached again, and what others changed meanwhile is known."""

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

    async def renewed(self, names: Collection[str]) -> None:
        for one in self._listeners:
            await one.renewed(names)

    def out_of_touch(self) -> None:
        for one in self._listeners:
            one.out_of_touch()

    def back_in_touch(self) -> None:
        for one in self._listeners:
            one.back_in_touch()

    def chosen(self, user_id: str) -> None:
        for one in self._listeners:
            one.chosen(user_id)

"""Who is told of what happens to the store: listeners to its changes, and parts that a purge visits.

Writers notify `Changes`, to which every `Listener` is added once: mirrors, and caches of what lies in the
store or is derived from it. Listeners are called on the event loop, one after another, after the change is on
disk; they only record what to do later. The `Registry` has every part with something about people.
Independent of both kinds.
"""

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from discoclaw.core.event import Commit
from discoclaw.core.purge import NOTHING_PURGED, Derived, Purge, Purged

log = logging.getLogger(__name__)

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


class Registry:
    """Every part that holds something about people, in the order in which a purge visits them."""

    def __init__(self, parts: Iterable[Derived] = ()) -> None:
        self._parts = list(parts)

    def add(self, *parts: Derived) -> None:
        """Register parts behind those that are there. One that is there already is not visited twice."""
        self._parts += [part for part in parts if part not in self._parts]

    def purge_ram(self, purge: Purge) -> Purged:
        """Remove it from the RAM of all parts, even if one of them fails. Never blocks."""
        removed = NOTHING_PURGED
        for part in self:
            try:
                removed += part.purge_ram(purge) or NOTHING_PURGED
            except Exception:  # deliberately broad: whatever fails in one part, it has to leave the others
                log.exception("%s: what %s has in RAM could not be removed", purge.subject, part.name)
        return removed

    @asynccontextmanager
    async def exclusive(self, purge: Purge) -> AsyncIterator[None]:
        """While this is entered, nothing about the subject is written by any part."""
        async with AsyncExitStack() as stack:
            for part in self:
                await stack.enter_async_context(part.exclusive(purge))
            yield

    def erase(self, purge: Purge, *, local: bool = False) -> Purged:
        """Remove it from the disk of all parts, or (`local`) of those that are this machine's alone.

        Blocking.
        """
        parts = (part for part in self if part.local or not local)
        return sum((part.erase(purge) for part in parts), NOTHING_PURGED)

    def outside(self, subject: str) -> set[str]:
        """Names of the steps that an erasing of a subject has to take outside. Blocking. Raises OSError."""
        return {step for part in self for step in part.outside(subject)}

    def in_ram(self, subject: str) -> set[str]:
        """The conversations of which any part has words of a subject in RAM. Never blocks."""
        return {session for part in self for session in part.sessions_of(subject)}

    def on_disk(self, subject: str) -> set[str]:
        """The conversations with words of a subject that notes on disk name. Blocking. Raises OSError."""
        return {session for part in self for session in part.sessions_on_disk(subject)}

    def __iter__(self) -> Iterator[Derived]:
        return iter(tuple(self._parts))

"""The lifecycle of every part that runs. Declarations only.

The composition root starts services in order and closes them in reverse. What is switched off is not among
them, and has a stand-in where another part needs one, so no code asks whether a part exists.
"""

from typing import Protocol


class Service(Protocol):
    """A part with work of its own: a connection, a file, a background task."""

    async def start(self) -> None:
        """Begin to work. Called once, before anything arrives from the chat."""
        ...

    async def settle(self) -> None:
        """Return when everything that can be done now is done. Retries that come later are not awaited."""
        ...

    async def close(self) -> None:
        """Finish or save what is under way within a few seconds, then release everything.

        May be called again, and without `start`.
        """
        ...


class Passive:
    """A `Service` with nothing to start, finish or release: a base for parts that need only some of it."""

    async def start(self) -> None:
        """Do nothing."""

    async def settle(self) -> None:
        """Return at once."""

    async def close(self) -> None:
        """Release nothing."""

"""The gateway's sessions, each about some of Discord's shards: who wants to hear what becomes of them.

A client has one, or one for each of its shards. Knows nothing about connections.
"""

from typing import Protocol

from discoclaw.core.shards import Shards


class Hearer(Protocol):
    """Hears of sessions."""

    def began(self, shards: Shards) -> None:
        """A new session: what was missed before will not be sent again."""

    async def ready(self, shards: Shards) -> None:
        """The servers of a new session are known."""

    def resumed(self, shards: Shards) -> None:
        """A session goes on after its connection was lost; Discord sends what was missed."""


class Sessions:
    """All who hear of the sessions, as one."""

    def __init__(self) -> None:
        self.hearers: list[Hearer] = []

    def began(self, shards: Shards) -> None:
        for hearer in self.hearers:
            hearer.began(shards)

    async def ready(self, shards: Shards) -> None:
        for hearer in self.hearers:
            await hearer.ready(shards)

    def resumed(self, shards: Shards) -> None:
        for hearer in self.hearers:
            hearer.resumed(shards)

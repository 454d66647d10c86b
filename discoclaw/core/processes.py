"""Several processes that share one store: what a part may ask of the others, and the answers of one alone.

    claim   the right to handle one message or press of a button: one living process has it
    lease   the right to do one piece of work: one process at a time, until it ends or is no longer heard from
    epoch   the number of a process's life. It only grows; the store refuses what an older one writes

A name of a text is its path in the store: "ledger/user-1.jsonl", "rolling/discord:dm:1.json", "config.json".
Knows nothing about the store, and nothing about what the work is.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from discoclaw.core.ports import Passive, Service


class Processes(Service, Protocol):
    """The processes that share the store, as one of them sees them."""

    @property
    def shared(self) -> bool:
        """Whether there may be others at all."""
        ...

    @property
    def in_touch(self) -> bool:
        """Whether what is in RAM may be used: the store was reached lately, and the others count on us."""
        ...

    async def claim(self, message_id: str, about: Iterable[str] = ()) -> bool:
        """Claim a message, and let go of what others changed in these texts. One question to the store.

        Returns False if another process has it that is still heard from: what a dead one had claimed and not
        ended is to be handled after it. True without an answer in time: `in_touch` is then false.
        """
        ...

    async def look(self, about: Iterable[str]) -> None:
        """Let go of what others changed in these texts, as `claim` does."""
        ...

    def lease(self, name: str) -> AbstractAsyncContextManager[None]:
        """Have a lease while this is entered; waits for whoever has it.

        Leases keep processes apart: the tasks of one process share the lease until the last of them leaves.
        Once it is lost, what is written inside is refused (LeaseLost), and the task that entered is cancelled
        and gets LeaseLost where it leaves, because no store can refuse what it sends elsewhere.
        """
        ...

    def free(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Enter a lease without waiting: gives False, and no lease, while another process has it.

        Also while the store does not answer.
        """
        ...

    async def holders(self, prefix: str) -> Mapping[str, str]:
        """The leases of other living processes whose names begin so, and in a few words who has each.

        Raises MemoryFault if the store does not answer.
        """
        ...

    async def all_know(self) -> None:
        """Wait until each other process let go of everything written so far, or may write no more.

        Raises MemoryFault if the store does not answer.
        """
        ...


class Alone(Passive):
    """The only process on its store."""

    shared = False
    in_touch = True

    async def claim(self, message_id: str, about: Iterable[str] = ()) -> bool:
        return True

    async def look(self, about: Iterable[str]) -> None:
        """Nobody else changes anything."""

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def free(self, name: str) -> AsyncIterator[bool]:
        yield True

    async def holders(self, prefix: str) -> Mapping[str, str]:
        return {}

    async def all_know(self) -> None:
        """There is nobody else."""


ALONE = Alone()

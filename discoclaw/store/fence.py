"""The question of a shared store before it commits: may this process write, and this task?

    Presence  what one process is to the store: its epoch, and until when the others count on it
    Fence     a lease that a task writes under
    FENCES    the fences of the running task; `in_thread` hands them on to the thread that writes

The store compares epochs and leases inside the transaction, so that a process that was stopped cannot commit
what another one does by now. Knows nothing about databases.
"""

import time
from contextvars import ContextVar
from dataclasses import dataclass, field

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) if hasattr(time, "CLOCK_MONOTONIC") else None


def seconds() -> float:
    """Seconds that no change of the machine's time moves. They go on while a machine sleeps, where it can."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


@dataclass(eq=False, slots=True)
class Presence:
    """The presence of one process in its store. Epoch 0, before it is registered, is always in touch."""

    epoch: int = 0
    until: float = field(default=float("inf"))
    """Until when (`seconds`) the others count on this process."""
    away: bool = False
    """Whether the store did not answer lately, so that nothing is asked of it but whether it is back."""
    margin_s: float = 2.0
    """How long before that it may no longer write: longer than any transaction may lie idle."""
    stale: bool = False
    """Whether others may have changed what is in RAM since the store was out of reach."""

    @property
    def answers(self) -> bool:
        """Whether it makes sense to ask the store."""
        return not self.epoch or (not self.away and seconds() < self.until)

    @property
    def in_touch(self) -> bool:
        """Whether what is in RAM may be used."""
        return not self.epoch or (not self.stale and seconds() < self.until)


@dataclass(eq=False, slots=True)
class Fence:
    """A lease that this process took in an epoch; `over` once it was given back by those who used it."""

    lease: str
    epoch: int
    over: bool = False


FENCES: ContextVar[tuple[Fence, ...]] = ContextVar("FENCES", default=())


def fences() -> tuple[Fence, ...]:
    """The leases that the running task writes under.

    A task that was begun inside one and outlives it, as a worker's may, writes under it no more.
    """
    return tuple(one for one in FENCES.get() if not one.over)

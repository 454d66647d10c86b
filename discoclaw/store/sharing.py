"""Several processes on one store: may this one write and use its RAM, and who are the others?

The store checks inside each transaction that the process still counts, so one that was stopped can't commit
what another one does by now. Knows nothing about databases; the rows are in `postgres/processes`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) if hasattr(time, "CLOCK_MONOTONIC") else None


def seconds() -> float:
    """Seconds that no change of the machine's time moves. They go on while a machine sleeps, where it can."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


@dataclass(eq=False, slots=True)
class Presence:
    """The presence of one process in its store. Process 0, before it is registered, is always in touch."""

    process: int = 0
    until: float = field(default=float("inf"))
    """Until when (`seconds`) the others certainly count on this process."""
    away: bool = False
    """Whether the store did not answer lately, so that nothing is asked of it but whether it is back."""
    stale: bool = False
    """Whether others may have changed what is in RAM since the store was out of reach."""

    @property
    def answers(self) -> bool:
        """Whether it makes sense to ask the store."""
        return not self.process or (not self.away and seconds() < self.until)

    @property
    def in_touch(self) -> bool:
        """Whether what is in RAM may be used."""
        return not self.process or (not self.stale and seconds() < self.until)


SHARDS: Final = "shard/"
"""How the names of the leases for Discord's shards begin."""


class ProcessState(NamedTuple):
    """One process as the store knows it. Times are ages in seconds; `fed_s` is how old what it read is."""

    id: int
    kind: str
    host: str
    pid: int
    program: str
    alive: bool
    started_s: float
    heard_s: float
    fed_s: float
    waits: Sequence[str] = ()


class LeaseState(NamedTuple):
    """A lease, the process that has it, and for how long (s)."""

    name: str
    process: int
    since_s: float


class Together(NamedTuple):
    """Everything that is known about the processes of a store, and its size in bytes."""

    processes: tuple[ProcessState, ...] = ()
    leases: tuple[LeaseState, ...] = ()
    size: int = 0

"""Several processes on one store: may this one write, and what do they say to each other?

    Presence  what one process is to the store: its epoch, and until when the others count on it
    Fence     a lease that a task writes under
    FENCES    the fences of the running task; `in_thread` hands them on to the thread that writes

The store compares epochs and leases inside the transaction, so that a process that was stopped cannot commit
what another one does by now. A *position* is one in the list of changes: whoever stands there has let go of
all that was changed before. Knows nothing about databases; the rows are in `postgres/processes`.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, NamedTuple

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


# ---------------------------------------------------------------------- what processes say to each other

SHARDS: Final = "shard/"
"""How the names of the leases begin without which a process ends."""


class Member(NamedTuple):
    """A process as it registers."""

    kind: str
    """"bot", or "tool" for a command of the terminal."""


class Entered(NamedTuple):
    """A process was registered. `kept` are the leases of its earlier epoch that nobody took meanwhile.

    `missed`: it was away for so long that names which changed meanwhile may be gone. It then keeps no lease,
    so that a bot ends, and begins again without what it has in RAM and on its machine.

    `overtaken`: one of its shards is no longer its own. Then it is not registered, and writes nothing more:
    whoever has the shard by now does what it had begun, and people go on from there.
    """

    epoch: int
    position: int
    kept: frozenset[str] = frozenset()
    missed: bool = False
    overtaken: bool = False


class State(NamedTuple):
    """The state that a process tells the others each time it renews itself.

    It has let go of all that transactions below `position` changed; `fed` is the database's time of the
    reading that said so (seconds). `waits` are the leases it waits for.
    """

    position: int
    fed: float
    waits: Sequence[str] = ()


class Page(NamedTuple):
    """The texts that others changed since a position, with their versions, and the position after that.

    `complete` is False if changes since then were removed meanwhile: any text may have changed.
    """

    names: dict[str, int]
    position: int
    read_at: float
    complete: bool = True


class Claimed(NamedTuple):
    """The messages that are this process's by now, and the versions of texts (0: it does not exist)."""

    messages: Collection[int]
    versions: Mapping[str, int]


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

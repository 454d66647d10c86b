"""Messages of processes that share a store to each other, and the port to the rows with which they do.

A *position* is one in the list of changes: whoever stands there has let go of all that was changed before.
Everything blocks, and raises OSError.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

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


class Rows(Protocol):
    """The rows, as one process uses them. `lease_s` is how long it counts as alive after a renewal."""

    @property
    def lease_s(self) -> float: ...

    # For one thread, on a connection of its own.

    def enter(self, member: Member) -> Entered:
        """Register a process."""
        ...

    def enter_again(self, member: Member, before: int, position: int, leases: Collection[str]) -> Entered:
        """Register a process whose epoch `before` has ended, with those of its leases that nobody took.

        Not if it had one of its shards no longer: what it claimed is then free, and so are its leases.
        """
        ...

    def renew(self, epoch: int, state: State) -> bool:
        """Renew a process. False if the others no longer count on it: it needs a new epoch."""
        ...

    def page(self, epoch: int, position: int) -> Page:
        """The changes of other processes since a position."""
        ...

    def prune(self) -> int:
        """Remove what nobody needs any more, at most so much at once. Returns how many processes."""
        ...

    def leave(self, epoch: int) -> None:
        """Take a process and its leases away: others can have them at once."""
        ...

    def close(self) -> None:
        """Close the connection that the methods above use."""
        ...

    # For any thread.

    def newest(self) -> int:
        """The position after everything that was committed or begun so far."""
        ...

    def behind(self, position: int, epoch: int) -> list[int]:
        """The other processes that have not read up to a position, and may still write."""
        ...

    def under_way(self, position: int) -> list[int]:
        """The transactions below a position that have not ended; one may be a dead process's."""
        ...

    def hide(self) -> None:
        """Remove the names of removed texts, as far as no process needs them any more. Takes seconds."""
        ...

    def take(self, name: str, epoch: int) -> bool:
        """Take a lease that nobody has, or only a process that is no longer alive. May be called again."""
        ...

    def release(self, names: Collection[str], epoch: int) -> None:
        """Give leases back; those that others have stay theirs."""
        ...

    def holders(self, prefix: str, epoch: int) -> dict[str, str]:
        """The leases of other living processes whose names begin so, and who has each."""
        ...

    def claim(self, messages: Collection[int], epoch: int, names: Collection[str]) -> Claimed:
        """Claim messages, each of which is given once, and return the versions of texts, in one question.

        May be called again: what this process claimed stays its own. What a dead one claimed is free.
        """
        ...

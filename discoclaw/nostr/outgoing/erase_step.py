"""Whether an erasing needs a step on relays where nobody mirrors now, since something is published already.

With the mirror at work every erasing has the step (`mirror.STEP`). Without it, in a command or with Nostr
switched off, the outbox says what is published; the step then waits until the mirror is at work again.
Knows nothing about what the step does.
"""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import PersonalData
from discoclaw.core.subject import dm_of, group_of, group_subject, user_of
from discoclaw.memory.changes import SESSION
from discoclaw.memory.disk.port import GROUPS, Disk
from discoclaw.nostr.names import Names
from discoclaw.nostr.outgoing.mirror import STEP
from discoclaw.nostr.outgoing.outbox import Outbox


class RelayCopies(PersonalData):
    """What was published, as the outbox at `outbox` says.

    There is a step where something of a subject is in it, or of a group that may rest on their words. Without
    `names`, for there is no key, and where the outbox cannot be read, nobody can tell: then it is needed as
    soon as there is anything.
    """

    name = "copies on relays"

    def __init__(self, outbox: Path, disk: Disk, names: Callable[[], Names | None]) -> None:
        self._outbox = outbox
        self._disk = disk
        self._names = names

    def outside(self, subject: str) -> Collection[str]:
        if not self._outbox.exists():
            return ()
        names = self._names()
        try:
            known = _units(self._outbox)
            if names is None:
                return (STEP,) if known else ()
            wanted = {names.mark(unit) for unit in _about(subject, self._disk)}
            return (STEP,) if wanted & known else ()
        except (MemoryFault, OSError):
            return (STEP,)


def _units(path: Path) -> set[str]:
    """The marks of all units that are published. Raises MemoryFault."""
    outbox = Outbox.reading(path)
    try:
        return set(outbox.units())
    finally:
        outbox.close()


def _about(subject: str, disk: Disk) -> Iterator[str]:
    """The units in which there may be something of a subject. Raises OSError."""
    yield subject
    if (user_id := user_of(subject)) is None:
        return
    yield f"{SESSION}{dm_of(user_id)}"
    yield from (one for one, _ in disk.ledgers.by_age() if group_of(one) is not None)
    for name in disk.documents(GROUPS).names():
        yield group_subject(name.removesuffix(".json"))

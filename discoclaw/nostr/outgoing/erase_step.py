"""Whether an erasure needs a step on relays although no mirror is running: something was published before.

While the mirror runs, every erasure has the step (`mirror.STEP`). Without it, in a command or with Nostr
switched off, the outbox tells what is published, and the step waits until a mirror runs again. Knows
nothing about what the step does.
"""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import PersonalData
from discoclaw.core.subject import dm_of, group_of, group_subject, user_of
from discoclaw.memory.changes import SESSION
from discoclaw.nostr.names import Names
from discoclaw.nostr.outgoing.mirror import STEP
from discoclaw.nostr.outgoing.outbox import Outbox
from discoclaw.store.port import GROUPS, Disk


class RelayCopies(PersonalData):
    """The copies on relays, according to the outbox at `outbox`.

    An erasure needs the step if the outbox has anything of a subject, or of any group: a group's memory
    may rest on the subject's words. Without `names` (there is no key), or if the outbox can't be read,
    nobody can tell; then the step is needed as soon as the outbox has anything. The outbox may also be
    `elsewhere`, on the machine of another process.
    """

    name = "copies on relays"

    def __init__(
        self, outbox: Path, disk: Disk, names: Callable[[], Names | None], *, elsewhere: bool = False
    ) -> None:
        self._elsewhere = elsewhere
        self._outbox = outbox
        self._disk = disk
        self._names = names

    def outside(self, subject: str) -> Collection[str]:
        if self._elsewhere:
            return (STEP,)
        if not self._outbox.exists():
            return ()
        names = self._names()
        try:
            published = _units(self._outbox)
            if names is None:
                return (STEP,) if published else ()
            units = {names.keyed_hash(unit) for unit in _about(subject, self._disk)}
            return (STEP,) if units & published else ()
        except (MemoryFault, OSError):
            return (STEP,)


def _units(path: Path) -> set[str]:
    """The hashes of all published units. Raises MemoryFault."""
    outbox = Outbox.reading(path)
    try:
        return set(outbox.units())
    finally:
        outbox.close()


def _about(subject: str, disk: Disk) -> Iterator[str]:
    """The units that may contain something of a subject. Raises OSError."""
    yield subject
    if (user_id := user_of(subject)) is None:
        return
    yield f"{SESSION}{dm_of(user_id)}"
    yield from (one for one, _ in disk.ledgers.by_age() if group_of(one) is not None)
    for name in disk.documents(GROUPS).names():
        yield group_subject(name.removesuffix(".json"))

"""A store's state for its admin: who uses it, what is unfinished, what is wrong. Blocking; only reads."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from discoclaw.core.errors import faulting
from discoclaw.memory import cursors
from discoclaw.memory.cursors import texts_of
from discoclaw.memory.folder import Holder, holder_of
from discoclaw.memory.stores import Disks, shared
from discoclaw.memory.subjects.follow import Numbered
from discoclaw.memory.subjects.inspect import unfinished
from discoclaw.store.port import CURSORS, Disk, Together

MOST_LAG_S = 60.0
"""The oldest that what a process knows of the others may be: with a poll each 0.3 s, it hangs."""

_SHARD = re.compile(r"shard/(\d+)/(\d+)")
_FOLLOWER, _MARK, _JSON = "follow-", "-mark", ".json"


@dataclass(frozen=True, slots=True)
class Status:
    """A store. `together` has its processes; a store of one process has a `holder` instead.

    `erasings` are subjects whose erasing is unfinished, `behind` how many ledgers each follower has not taken
    in as they are now.
    """

    together: Together | None
    holder: Holder | None
    size: int
    erasings: tuple[str, ...]
    behind: Mapping[str, int]

    def shards(self, process: int) -> tuple[str, ...]:
        """The shards that a process has: "0/8"."""
        leases = self.together.leases if self.together is not None else ()
        found = [one.name.removeprefix("shard/") for one in leases if one.process == process]
        return tuple(name for name in found if _SHARD.fullmatch(f"shard/{name}"))

    def wrong(self) -> list[str]:
        """A sentence for everything that is not as it should be."""
        if self.together is None:
            return []
        found = [
            f"process {one.id} ({one.host}, pid {one.pid}) was last heard from {one.heard_s:.0f} s ago"
            for one in self.together.processes
            if not one.alive
        ]
        found += [
            f"process {one.id} ({one.host}, pid {one.pid}) does not know what the others changed in the last "
            f"{one.fed_s:.0f} s"
            for one in self.together.processes
            if one.alive and one.fed_s > MOST_LAG_S
        ]
        return found + [f"shard {shard} of {count} has no process" for shard, count in self._orphans()]

    def _orphans(self) -> list[tuple[int, int]]:
        """The shards that nobody has, of each number of shards that somebody has or had one of."""
        assert self.together is not None
        alive = {one.id for one in self.together.processes if one.alive}
        had: dict[int, set[int]] = {}
        for lease in self.together.leases:
            if match := _SHARD.fullmatch(lease.name):
                kept = had.setdefault(int(match[2]), set())
                if lease.process in alive:
                    kept.add(int(match[1]))
        return [
            (one, count) for count, kept in sorted(had.items()) for one in range(count) if one not in kept
        ]


def status_of(stores: Disks) -> Status:
    """The status of the store that is used. Raises MemoryFault."""
    disk = stores.used
    with faulting("the store cannot be read"):
        database = shared(disk)
        together = database.together() if database is not None else None
        size = together.size if together is not None else _size(stores.root)
        holder = holder_of(stores.root) if together is None else None
        erasings = tuple(sorted(unfinished(disk)))
        return Status(together, holder, size, erasings, _behind(disk))


def _behind(disk: Disk) -> dict[str, int]:
    """How many ledgers each follower has not taken in as they are now. Raises OSError."""
    folder, found = disk.documents(CURSORS), dict[str, int]()
    ledgers = disk.ledgers if disk.shared else Numbered(disk, keeps=False)
    for file in folder.names():
        name = file.removeprefix(_FOLLOWER).removesuffix(_JSON)
        if file == f"{_FOLLOWER}{name}{_JSON}" and not name.endswith(_MARK):
            cursor = cursors.read(folder, file)
            since, _ = ledgers.since(cursor.get("mark"))  # type: ignore[arg-type]
            changed = [one for one in since if ledgers.log(one).size()]
            found[name] = len({*texts_of(cursor, "todo"), *changed})
    return found


def _size(folder: Path) -> int:
    """How many bytes there are below a folder, as far as it can be read."""
    total = 0
    for where, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    return total

"""Which store is used: the one place that knows them all.

What people decided (who opted out, who was erased) counts whichever store is used: when the store is
switched, that moves along. Memories do not; they are exported and imported.
"""

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.disk.port import LEDGERS, ROLLING, Disk, Documents, FilesDisk, Ledgers, Log, drop
from discoclaw.memory.disk.sqlite import SqliteDisk
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.people import choices

log = logging.getLogger(__name__)

Store = Literal["files", "sqlite", "none"]


@dataclass(frozen=True, slots=True)
class Disks:
    """The store that is used, and those that may lie beside it from before, all below `root`.

    As a context it is closed at the end.
    """

    root: Path
    used: Disk
    beside: tuple[Disk, ...] = ()

    def __enter__(self) -> "Disks":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Make the used one ready, and bring along what people decided under another one.

        Raises OSError and MemoryFault.
        """
        if (why := self.used.check()) is not None:
            raise MemoryFault(why)
        self.used.open()
        own = self.used.documents("").folder
        for other in self.beside:
            if other.documents("").folder != own:
                _move_decisions(other, self.used)
        for told in self.elsewhere():
            log.warning("%s", told)

    def folders(self) -> set[Path]:
        """Every folder in which files are written, `cache` and `nostr` beside the stores included."""
        trees = (self.root, self.root.parent / "cache", self.root.parent / "nostr")
        found = {Path(folder) for tree in trees for folder, _, _ in os.walk(tree)}
        for disk in (self.used, *self.beside):  # these two may lie elsewhere
            found |= {disk.documents(ROLLING).folder, *([disk.durable] if disk.durable is not None else [])}
        return found

    def check(self) -> str | None:
        """What is wrong with one of them as a whole, and the way out; None when all are sound or not there.

        Raises OSError. Of one that is not used it counts too: it says who opted out and was erased.
        """
        return next((why for disk in (self.used, *self.beside) if (why := disk.check()) is not None), None)

    def rescue(self, stamp: str) -> list[str]:
        """Save what can be read of those that are not sound; what was done, in sentences. Raises OSError."""
        return [step for disk in (self.used, *self.beside) for step in disk.rescue(stamp)]

    def elsewhere(self) -> list[str]:
        """A sentence for each other store with memories of somebody of whom the used one has none.

        Raises OSError.
        """
        if not self.used.remembers:
            return []  # it is meant to know nobody
        own = {subject for subject, _ in self.used.ledgers.by_age()}
        told = []
        for other in self.beside:
            if people := sum(subject not in own for subject, _ in other.ledgers.by_age()):
                told.append(
                    f"{people} memories lie in the store {other.name!r}, which is not used; to bring them "
                    f"into {self.used.name!r}, see `discoclaw memory export --all` and `discoclaw memory "
                    "import`"
                )
        return told

    def close(self) -> None:
        """Let go of all of them."""
        for disk in (self.used, *self.beside):
            disk.close()


def disks(store: Store, root: Path, *, durable: Path | None = None, rolling: Path | None = None) -> Disks:
    """The stores below `root` (`data/memory`), the one of that name in use.

    `durable` and `rolling` are where the plain files of these kinds are, if elsewhere.
    """
    files = FilesDisk(root, durable=durable, rolling=rolling)
    stores: dict[Store, Disk] = {"files": files, "sqlite": SqliteDisk(root)}
    beside = tuple(disk for name, disk in stores.items() if name != store)
    return Disks(root, stores.get(store, NoDisk(files)), beside)


def disks_at(where: Path | Disks) -> Disks:
    """Stores, or plain files below that path."""
    return disks("files", where) if isinstance(where, Path) else where


def bring_decisions(source: Disk, target: Disk) -> bool:
    """Add the choices and tombstones of one store to those of another; whether there were any.

    Raises MemoryFault.
    """
    try:
        chosen = choices.bring(source.documents(""), target.documents(""))
        return tombstones.bring(source, target) or chosen
    except OSError as error:
        raise MemoryFault(
            f"what people decided, which lies in {source.documents('').folder}, cannot be brought along: "
            f"{error}"
        ) from error


def _move_decisions(source: Disk, target: Disk) -> None:
    """Let what was decided under one store be in one place, the store that is used. Raises OSError too."""
    if bring_decisions(source, target):
        for name in (choices.FILE, tombstones.FILE, tombstones.KEY):
            drop(source.documents(""), name)
        log.info("who opted out or was erased under the store %r was brought along", source.name)


# ---------------------------------------------------------------------- none


class NoDisk:
    """Nothing of anybody. What people decided is kept all the same, in plain files, and so are cursors."""

    name = "none"
    remembers = False

    def __init__(self, files: FilesDisk) -> None:
        self.durable: Path | None = None
        self.ledgers: Ledgers = NoLedgers(files.root)
        self._files = files

    def documents(self, folder: str) -> Documents:
        off = folder in (LEDGERS, ROLLING)
        return _NoDocuments(self._files.root) if off else self._files.documents(folder)

    def log(self, name: str) -> Log:
        return self._files.log(name)

    def open(self) -> None:
        """Nothing to do."""

    def check(self) -> str | None:
        """There is nothing that could be damaged."""
        return None

    def rescue(self, stamp: str) -> list[str]:
        """There is nothing to save."""
        return []

    def close(self) -> None:
        """Nothing to do."""

    def wipe(self) -> None:
        """Nothing to do."""


_OFF = "memory is off (DISCOCLAW_STORE=none)"


@dataclass(frozen=True, slots=True)
class _NoLog:
    path: Path

    def read(self) -> bytes:
        return b""

    def size(self) -> int:
        return 0

    def append(self, content: bytes, *, expected_size: int) -> None:
        raise OSError(_OFF)

    def cut(self, size: int) -> None:
        raise OSError(_OFF)

    def replace(self, content: bytes) -> None:
        raise OSError(_OFF)

    def keep_aside(self, label: str, stamp: str) -> Path:
        raise OSError(_OFF)


@dataclass(frozen=True, slots=True)
class NoLedgers:
    """No ledger of anybody."""

    root: Path

    def log(self, subject: str) -> Log:
        return _NoLog(self.root / f"{subject}.jsonl")

    def by_age(self) -> list[tuple[str, int]]:
        return []


@dataclass(frozen=True, slots=True)
class _NoDocuments:
    folder: Path

    def names(self) -> list[str]:
        return []

    def read(self, name: str) -> bytes:
        raise FileNotFoundError(_OFF)

    def write(self, name: str, content: bytes, *, secret: bool = False) -> None:
        raise OSError(_OFF)

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        return 0, []

    def keep_aside(self, name: str, label: str, stamp: str) -> Path:
        raise OSError(_OFF)

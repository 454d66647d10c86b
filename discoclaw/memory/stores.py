"""The stores there are, and which one is used: the one place that knows them all.

Those in files below the data folder may be left from before; of one in PostgreSQL nobody knows any more.

What people decided (who opted out, who was erased) holds in every store: when the store is switched, these
decisions are moved. Memories are not; they are exported and imported.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from discoclaw.core.errors import MemoryFault, faulting
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.people import choices
from discoclaw.store.plain import FileDocuments, FileLog, FilesDisk
from discoclaw.store.port import LEDGERS, NO_LOG, ROLLING, Disk, Documents, Head, Ledgers, Log, Mark, drop
from discoclaw.store.sqlite import SqliteDisk

if TYPE_CHECKING:
    from discoclaw.store.postgres.disk import PostgresDisk

log = logging.getLogger(__name__)

Store: TypeAlias = str
"""A store's name: "files", "sqlite", "none", or the address of a database in PostgreSQL."""

POSTGRES = ("postgresql://", "postgres://")
"""How such an address begins."""


@dataclass(frozen=True, slots=True)
class Disks:
    """The store that is used, and those that may be left from before, in files below `root`.

    A context manager that closes them.
    """

    root: Path
    used: Disk
    beside: tuple[Disk, ...] = ()

    def __enter__(self) -> "Disks":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Open the used one, and move what people decided under another one to it.

        Raises OSError and MemoryFault.
        """
        # One that processes share is not read as a whole each time one of them starts.
        if not self.used.shared and (why := self.used.check()) is not None:
            raise MemoryFault(why)
        self.used.open()
        own = self.used.documents("").folder
        for other in self.beside:
            if other.documents("").folder != own:
                _move_decisions(other, self.used)
        for told in self.elsewhere():
            log.warning("%s", told)

    def trees(self) -> tuple[Path, ...]:
        """The folders below which files are written, `cache` and `nostr` beside the stores included."""
        return self.root, self.root.parent / "cache", self.root.parent / "nostr"

    def placed(self) -> set[Path]:
        """The folders of durable files and summaries, where an admin placed them outside the trees."""
        found, root = set[Path](), self.root.resolve()
        for disk in (self.used, *self.beside):
            if disk.shared:
                continue  # what it calls a folder is none on this machine
            found |= {disk.documents(ROLLING).folder, *([disk.durable] if disk.durable is not None else [])}
        return {folder for folder in found if not folder.resolve().is_relative_to(root)}

    def listed(self) -> Iterator[tuple[Path, list[str]]]:
        """Every folder in which files are written that can be read, with the names of its files."""
        inside, placed = map(os.walk, self.trees()), (islice(os.walk(one), 1) for one in self.placed())
        return ((Path(folder), files) for found in chain(inside, placed) for folder, _, files in found)

    def check(self) -> str | None:
        """Return what is wrong with one of them, and the way out; None if all are sound or absent.

        A store that is not used counts too, because it says who opted out and was erased. Raises OSError.
        """
        return next((why for disk in (self.used, *self.beside) if (why := disk.check()) is not None), None)

    def rescue(self, stamp: str) -> list[str]:
        """Save what can be read of damaged ones; return sentences about what was done. Raises OSError."""
        return [step for disk in (self.used, *self.beside) for step in disk.rescue(stamp)]

    def elsewhere(self) -> list[str]:
        """A sentence for each unused store with memories of people who have none in the used one.

        Raises OSError.
        """
        if not self.used.remembers:
            return []  # its purpose is to know nobody
        told = []
        for other in self.beside:
            theirs = {subject for subject, _ in other.ledgers.by_age()}
            if theirs and (people := len(theirs.difference(one for one, _ in self.used.ledgers.by_age()))):
                told.append(
                    f"{people} {'person has' if people == 1 else 'people have'} memories in the store "
                    f"{other.name!r}, which is not used; `discoclaw memory copy {other.name}` adds them "
                    f"to {self.used.name!r}"
                )
        return told

    def close(self) -> None:
        """Close all of them."""
        for disk in (self.used, *self.beside):
            disk.close()


def disks(store: Store, root: Path, *, durable: Path | None = None, rolling: Path | None = None) -> Disks:
    """The stores below `root` (`data/memory`), using the one named `store`.

    `durable` and `rolling` are the folders of these plain files, if they are elsewhere.
    """
    files = FilesDisk(root, durable=durable, rolling=rolling)
    stores: dict[Store, Disk] = {"files": files, "sqlite": SqliteDisk(root)}
    beside = tuple(disk for name, disk in stores.items() if name != store)
    used = _postgres(store) if store.startswith(POSTGRES) else stores.get(store, NoDisk(root))
    return Disks(root, used, beside)


def _postgres(address: str) -> Disk:
    """The store in PostgreSQL. Raises MemoryFault if what it needs is not installed."""
    try:
        from discoclaw.store.postgres.disk import PostgresDisk  # an extra, slow to import
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise MemoryFault(
            "DISCOCLAW_STORE is an address of PostgreSQL, for which a package is missing; run "
            "`pip install 'discoclaw[postgres]'`"
        ) from None
    return PostgresDisk(address)


def shared(disk: Disk) -> "PostgresDisk | None":
    """The store, if several processes may use it at the same time."""
    if not disk.shared:
        return None
    from discoclaw.store.postgres.disk import PostgresDisk  # as above

    return disk if isinstance(disk, PostgresDisk) else None


def disks_at(where: Path | Disks) -> Disks:
    """The stores themselves, or plain files below a path."""
    return disks("files", where) if isinstance(where, Path) else where


def bring_decisions(source: Disk, target: Disk) -> bool:
    """Add the choices and tombstones of one store to those of another; return whether there were any.

    Raises MemoryFault.
    """
    with faulting(f"what people decided cannot be moved from {source.documents('').folder}"):
        chosen = choices.bring(source, target)
        return tombstones.bring(source, target) or chosen


def _move_decisions(source: Disk, target: Disk) -> None:
    """Move what people decided to the store that is used. Raises OSError and MemoryFault."""
    if bring_decisions(source, target):
        choices.remove(source)
        for name in (tombstones.FILE, tombstones.KEY):
            drop(source.documents(""), name)
        log.info("the list of who opted out or was erased was moved from the store %r", source.name)


# ---------------------------------------------------------------------- none


class NoDisk(FilesDisk):
    """Stores no memories. What people decided and cursors are still stored, in plain files."""

    name = "none"
    remembers = False

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.durable = None
        self.ledgers = NoLedgers()

    def documents(self, folder: str) -> Documents:
        return _NoDocuments(self.root) if folder in (LEDGERS, ROLLING) else super().documents(folder)


def _refused(*_: object, **__: object) -> NoReturn:
    raise OSError("memory is off (DISCOCLAW_STORE=none)")


class _NoLog(FileLog):
    """A log that is empty, and takes nothing."""

    append = cut = replace = keep_aside = _refused

    def head(self) -> Head:
        return NO_LOG

    def read(self) -> bytes:
        return b""


class NoLedgers(Ledgers):
    """Ledgers, of which there are none."""

    def __init__(self) -> None:
        """Need no disk."""

    def log(self, subject: str) -> Log:
        return _NoLog(Path(f"{subject}.jsonl"))

    def by_age(self) -> list[tuple[str, int]]:
        return []

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        return [], None


class _NoDocuments(FileDocuments):
    """A folder that is empty, and takes nothing."""

    write = _refused

    def names(self) -> list[str]:
        return []

    def read(self, name: str) -> bytes:
        raise FileNotFoundError("memory is off (DISCOCLAW_STORE=none)")

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        return 0, []

"""Where memory lies: the narrow port through which this room touches a disk, and its form as plain files.

    Log        the lines of one ledger: read whole, appended to behind a known length
    Ledgers    the logs of all subjects
    Documents  the named texts of one folder, each replaced whole
    Disk       all of it

Names and bytes are the same in every store, so whoever moves from one to another copies. A `path` says in
messages where something lies; only here is there a file of that name. Everything blocks, and raises OSError,
the text of which says what is wrong; `append` raises MemoryFault where somebody else wrote.
Knows nothing about what the bytes mean.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from discoclaw.memory.disk.files import append_synced, keep_aside, sync_folder, write_atomic

LEDGERS, ROLLING, CURSORS, INTENTS = "ledger", "rolling", "cursors", "erasing"
"""The folders of a disk; what belongs to nobody alone lies beside them, in ""."""
PROFILES, GROUPS = "profiles", "groups"
"""The folders of `<user id>.json` and `<channel id>.json`: who somebody is, and what a channel is about."""
TOOLS = "tools"
"""The folder of logs about the tools that were called, `<subject>.jsonl`."""


class Log(Protocol):
    """Lines that are only ever added to, each with its newline."""

    @property
    def path(self) -> Path:
        """How messages name it."""
        ...

    def read(self) -> bytes:
        """All lines; nothing when there is no such log."""
        ...

    def size(self) -> int:
        """The length in bytes; 0 when there is no such log."""
        ...

    def append(self, content: bytes, *, expected_size: int) -> None:
        """Add lines, durably, all of them or none, to a log of exactly that many bytes."""
        ...

    def cut(self, size: int) -> None:
        """Drop, durably, what stands behind so many bytes."""
        ...

    def replace(self, content: bytes) -> None:
        """Write it anew, durably, whole or not at all."""
        ...

    def keep_aside(self, label: str, stamp: str) -> Path:
        """Copy it beside itself, so that what follows can not lose it. Returns where the copy is."""
        ...


class Ledgers(Protocol):
    """The ledgers of all subjects."""

    def log(self, subject: str) -> Log:
        """The ledger of one subject, whether it is there or not."""
        ...

    def by_age(self) -> list[tuple[str, int]]:
        """The subjects that have a ledger, with its size (bytes), in the order in which they changed."""
        ...


class Documents(Protocol):
    """The named texts of one folder."""

    @property
    def folder(self) -> Path:
        """How messages name it."""
        ...

    def names(self) -> list[str]:
        """Everything that lies in it, sorted, copies and leftovers too."""
        ...

    def read(self, name: str) -> bytes:
        """One text. Raises FileNotFoundError when there is none of the name."""
        ...

    def write(self, name: str, content: bytes, *, secret: bool = False) -> None:
        """Replace a text, durably, whole or not at all. A `secret` one is readable by us alone."""
        ...

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        """Remove, durably, what is called so. Returns how many there were, and what stays and why."""
        ...

    def keep_aside(self, name: str, label: str, stamp: str) -> Path:
        """Copy a text beside itself. Returns where the copy is."""
        ...


class Disk(Protocol):
    """A store. `durable` is the folder of the files that people edit by hand, where there are such files."""

    @property
    def name(self) -> str:
        """What the settings call it."""
        ...

    @property
    def remembers(self) -> bool:
        """Whether it keeps anything of people at all."""
        ...

    @property
    def durable(self) -> Path | None: ...

    @property
    def ledgers(self) -> Ledgers: ...

    def documents(self, folder: str) -> Documents:
        """The texts of one of the folders above; of the ledgers, the logs are among them."""
        ...

    def log(self, name: str) -> Log:
        """A log beside the folders."""
        ...

    def open(self) -> None:
        """Make it ready for writing."""
        ...

    def check(self) -> str | None:
        """What is wrong with the store as a whole, and the way out; None when it is sound or not there."""
        ...

    def rescue(self, stamp: str) -> list[str]:
        """Save what can be read of a store that is not sound; what was done, in sentences.

        The original is kept. Nobody else uses it meanwhile.
        """
        ...

    def close(self) -> None: ...

    def wipe(self) -> None:
        """Destroy what is left of anything that was removed."""
        ...


def drop(folder: Documents, name: str) -> bool:
    """Remove one text, durably; whether there was any. Raises OSError when it stays."""
    removed, left = folder.remove([name])
    if left:
        raise OSError("; ".join(left))
    return removed > 0


# ---------------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class FileLog:
    """A log as one file."""

    path: Path

    def read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def append(self, content: bytes, *, expected_size: int) -> None:
        append_synced(self.path, content, expected_size=expected_size)

    def cut(self, size: int) -> None:
        with self.path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def replace(self, content: bytes) -> None:
        write_atomic(self.path, content)

    def keep_aside(self, label: str, stamp: str) -> Path:
        return keep_aside(self.path, label, stamp)


@dataclass(frozen=True, slots=True)
class FileLedgers:
    """A folder of ledgers: `<subject>.jsonl`."""

    folder: Path

    def log(self, subject: str) -> Log:
        return FileLog(self.folder / f"{subject}.jsonl")

    def by_age(self) -> list[tuple[str, int]]:
        found = []
        for path in self.folder.glob("*.jsonl"):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, path.stem, status.st_size))
        return [(subject, size) for _, subject, size in sorted(found)]


@dataclass(frozen=True, slots=True)
class FileDocuments:
    """A folder of files."""

    folder: Path

    def names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(self, name: str, content: bytes, *, secret: bool = False) -> None:
        write_atomic(self.folder / name, content, mode=0o600 if secret else 0o666)

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        removed = 0
        left: list[str] = []
        for path in (self.folder / name for name in names):
            try:
                path.unlink()
                removed += 1
            except FileNotFoundError:
                pass
            except OSError as error:
                left.append(f"{path}: {error.strerror or error}")
        if removed:
            sync_folder(self.folder)
        return removed, left

    def keep_aside(self, name: str, label: str, stamp: str) -> Path:
        return keep_aside(self.folder / name, label, stamp)


class FilesDisk:
    """Plain files below `root` (`data/memory`). Durable files and summaries may lie elsewhere."""

    name = "files"
    remembers = True

    def __init__(self, root: Path, *, durable: Path | None = None, rolling: Path | None = None) -> None:
        self.root = root
        self.durable: Path | None = durable or root / "durable"
        self.ledgers: Ledgers = FileLedgers(root / LEDGERS)
        self._rolling = rolling or root / ROLLING

    def documents(self, folder: str) -> Documents:
        return FileDocuments(self._rolling if folder == ROLLING else self.root / folder)

    def log(self, name: str) -> Log:
        return FileLog(self.root / name)

    def open(self) -> None:
        """Nothing to do: a folder is made by the first file in it."""

    def check(self) -> str | None:
        """Each file stands for itself."""
        return None

    def rescue(self, stamp: str) -> list[str]:
        """Each file is repaired by itself."""
        return []

    def close(self) -> None:
        """Nothing to do."""

    def wipe(self) -> None:
        """Nothing to do: what was unlinked is the file system's."""


def log_at(where: Path | Log) -> Log:
    """A log, or the file of that path as one."""
    return FileLog(where) if isinstance(where, Path) else where


def ledgers_at(where: Path | Ledgers) -> Ledgers:
    """Ledgers, or the folder of that path as such."""
    return FileLedgers(where) if isinstance(where, Path) else where


def documents_at(where: Path | Documents) -> Documents:
    """Documents, or the folder of that path as such."""
    return FileDocuments(where) if isinstance(where, Path) else where


def disk_at(where: Path | Disk, durable: Path | None = None) -> Disk:
    """A disk, or the plain files below that path."""
    return FilesDisk(where, durable=durable) if isinstance(where, Path) else where

"""Where memory lies: the narrow port through which this room touches a disk, and its form as plain files.

    Log        the lines of one ledger: read whole, appended to behind a known length
    Ledgers    the logs of all subjects
    Documents  the named texts of one folder, each replaced whole
    Disk       all of it

Names and bytes are the same in every store, so moving from one to another means copying. A `path` says in
messages where something lies; only here is there a file of that name. Everything blocks, and raises OSError,
the text of which says what is wrong; `append` raises MemoryFault where somebody else wrote. Knows nothing
about what the bytes mean.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from discoclaw.memory.disk.files import (
    append_synced,
    keep_aside,
    open_plain,
    read_plain,
    sync_folder,
    write_atomic,
)

LEDGERS, ROLLING, CURSORS, INTENTS = "ledger", "rolling", "cursors", "erasing"
"""The folders of a disk; what belongs to no single subject is in ""."""
PROFILES, GROUPS = "profiles", "groups"
"""The folders of `<user id>.json` and `<channel id>.json`: who somebody is, and what a channel is about."""
TOOLS = "tools"
"""The folder of logs about the tools that were called, `<subject>.jsonl`."""


class Log(Protocol):
    """Lines that are only ever appended, each with its newline."""

    @property
    def path(self) -> Path:
        """The path that messages show."""
        ...

    def read(self) -> bytes:
        """Return all lines; empty if the log does not exist."""
        ...

    def size(self) -> int:
        """Return the length in bytes; 0 if the log does not exist."""
        ...

    def append(self, content: bytes, *, expected_size: int) -> None:
        """Append lines durably, all or nothing, to a log of exactly that many bytes."""
        ...

    def cut(self, size: int) -> None:
        """Durably drop everything after that many bytes."""
        ...

    def replace(self, content: bytes) -> None:
        """Replace the content durably, all or nothing."""
        ...

    def keep_aside(self, label: str, stamp: str) -> Path:
        """Copy the log, as a backup before a change. Returns where the copy is."""
        ...


class Ledgers(Protocol):
    """The ledgers of all subjects."""

    def log(self, subject: str) -> Log:
        """The ledger of one subject, whether it exists or not."""
        ...

    def by_age(self) -> list[tuple[str, int]]:
        """The subjects that have a ledger, with its size (bytes), in the order in which they changed."""
        ...


class Documents(Protocol):
    """The named texts of one folder."""

    @property
    def folder(self) -> Path:
        """The path that messages show."""
        ...

    def names(self) -> list[str]:
        """Return all names in the folder, sorted, including copies and leftovers."""
        ...

    def read(self, name: str) -> bytes:
        """Return one text. Raises FileNotFoundError if it does not exist."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Replace a text durably, all or nothing. Only the bot's user reads it."""
        ...

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        """Remove these texts durably. Returns how many there were, and which stay and why."""
        ...

    def keep_aside(self, name: str, label: str, stamp: str) -> Path:
        """Copy a text, as a backup before a change. Returns where the copy is."""
        ...


class Disk(Protocol):
    """A store. `durable` is the folder of the files that people edit by hand, if the store has any."""

    @property
    def name(self) -> str:
        """Its name in the settings."""
        ...

    @property
    def remembers(self) -> bool:
        """Whether it stores anything about people at all."""
        ...

    @property
    def durable(self) -> Path | None: ...

    @property
    def ledgers(self) -> Ledgers: ...

    def documents(self, folder: str) -> Documents:
        """The texts of one of the folders above; for the ledgers these include the logs."""
        ...

    def log(self, name: str) -> Log:
        """A log beside the folders."""
        ...

    def open(self) -> None:
        """Prepare it for writing."""
        ...

    def check(self) -> str | None:
        """What is wrong with the store as a whole, and the way out; None if it is sound or does not exist."""
        ...

    def rescue(self, stamp: str) -> list[str]:
        """Save what can be read of a damaged store. Returns sentences about what was done.

        The original is kept. Nobody else may use the store meanwhile.
        """
        ...

    def close(self) -> None: ...

    def wipe(self) -> None:
        """Destroy all remains of removed content."""
        ...


def drop(folder: Documents, name: str) -> bool:
    """Remove one text durably. Returns whether it existed. Raises OSError if it could not be removed."""
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
            return read_plain(self.path)
        except FileNotFoundError:
            return b""

    def size(self) -> int:
        try:
            return self.path.lstat().st_size
        except FileNotFoundError:
            return 0

    def append(self, content: bytes, *, expected_size: int) -> None:
        append_synced(self.path, content, expected_size=expected_size)

    def cut(self, size: int) -> None:
        with open(self.path, "r+b", opener=open_plain) as file:
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
        return read_plain(self.folder / name)

    def write(self, name: str, content: bytes) -> None:
        write_atomic(self.folder / name, content)

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
        """Does nothing: the first file in a folder creates it."""

    def check(self) -> str | None:
        """Return None: each file is independent, so nothing can be wrong as a whole."""
        return None

    def rescue(self, stamp: str) -> list[str]:
        """Does nothing: each file is repaired by itself."""
        return []

    def close(self) -> None:
        """Does nothing: no file stays open."""

    def wipe(self) -> None:
        """Does nothing: the file system owns unlinked data."""


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

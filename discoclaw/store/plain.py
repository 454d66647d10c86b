"""The store as plain files: one file a log and a text, below `data/memory`. One process uses them.

Blocking; raises what `port` says. Knows nothing about what the bytes mean.
"""

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from discoclaw.store.files import (
    append_synced,
    keep_aside,
    open_plain,
    read_plain,
    sync_folder,
    write_atomic,
)
from discoclaw.store.port import (
    LEDGERS,
    NO_LOG,
    ROLLING,
    Change,
    Disk,
    Documents,
    Head,
    Held,
    Ledgers,
    Log,
    Mark,
    change_alone,
    changed,
)


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

    def head(self) -> Head:
        return Head(self.size())

    def load(self, since: Head = NO_LOG) -> tuple[bytes, Head]:
        content = self.read()
        return content[since.size :] if len(content) >= since.size else content, Head(len(content))

    def append(self, content: bytes, *, after: Head) -> Head:
        append_synced(self.path, content, expected_size=after.size)
        return Head(after.size + len(content))

    def hold(self, since: Head = NO_LOG) -> tuple[Held, bytes, Head]:
        return self, *self.load(since)

    def release(self) -> None:
        """Does nothing: only one process uses the file, and in it whoever writes has the subject's lock."""

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
    """A folder of ledgers: `<subject>.jsonl`. A mark is the length of each."""

    folder: Path

    def log(self, subject: str) -> Log:
        return FileLog(self.folder / f"{subject}.jsonl")

    def by_age(self) -> list[tuple[str, int]]:
        found = []
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    with suppress(OSError):
                        status = entry.stat()
                        found.append((status.st_mtime_ns, entry.name[:-6], status.st_size))
        return [(subject, size) for _, subject, size in sorted(found)]

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        return changed(self.by_age(), mark)


@dataclass(frozen=True, slots=True)
class FileDocuments:
    """A folder of files."""

    folder: Path
    in_touch: ClassVar = True

    def names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        return read_plain(self.folder / name)

    def read_all(self) -> dict[str, bytes]:
        return {name: self.read(name) for name in self.names()}

    def write(self, name: str, content: bytes) -> None:
        write_atomic(self.folder / name, content)

    def change(self, name: str, work: Change) -> bytes | None:
        return change_alone(self, name, work)

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
    shared = False
    in_touch = True

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

    def frozen(self, beside: Path) -> AbstractContextManager[Disk]:
        """The store itself, which goes on changing."""
        return nullcontext(self)


def log_at(where: Path | Log) -> Log:
    """A log, or the file of that path as one."""
    return FileLog(where) if isinstance(where, Path) else where


def documents_at(where: Path | Documents) -> Documents:
    """Documents, or the folder of that path as such."""
    return FileDocuments(where) if isinstance(where, Path) else where


def disk_at(where: Path | Disk, durable: Path | None = None) -> Disk:
    """A disk, or the plain files below that path."""
    return FilesDisk(where, durable=durable) if isinstance(where, Path) else where

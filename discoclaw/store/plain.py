"""The store as plain files: one file a log and a text, below `data/memory`. One process uses them.

Blocking; raises what `port` says. Knows nothing about what the bytes mean.
"""

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from discoclaw.store.files import append_synced, open_plain, read_plain, sync_folder, write_atomic
from discoclaw.store.port import (
    DURABLE,
    LEDGERS,
    NO_LOG,
    ROLLING,
    Disk,
    Documents,
    Head,
    Ledgers,
    Log,
    overtaken,
)

_guard = threading.Lock()
_locks: WeakValueDictionary[Path, threading.Lock] = WeakValueDictionary()


def _alone(path: Path) -> threading.Lock:
    """The lock of a file: between looking at its length and replacing it, no thread may add a line to it."""
    with _guard:
        lock = _locks.get(path) or threading.Lock()
        _locks[path] = lock
        return lock


class FileLog(Log):
    """A log as one file. Only one process uses it, and one of its threads at a time writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        return self._path

    @property
    def beside(self) -> Documents:
        return FileDocuments(self._path.parent)

    def head(self) -> Head:
        try:
            return Head(self._path.lstat().st_size)
        except FileNotFoundError:
            return NO_LOG

    def read(self) -> bytes:
        try:
            return read_plain(self._path)
        except FileNotFoundError:
            return b""

    def append(self, content: bytes, *, after: Head) -> Head:
        with _alone(self._path):
            append_synced(self._path, content, expected_size=after.size)
        return Head(after.size + len(content))

    def cut(self, size: int) -> None:
        with open(self._path, "r+b", opener=open_plain) as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def replace(self, content: bytes, *, after: Head | None = None) -> None:
        with _alone(self._path):
            if after is not None and (head := self.head()) != after:
                raise overtaken(self.path, head, after)
            write_atomic(self._path, content)


class FileLedgers(Ledgers):
    """The ledgers as files: `ledger/<subject>.jsonl`."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        super().__init__(disk)
        self._folder = folder

    def by_age(self) -> list[tuple[str, int]]:
        found = []
        with suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    with suppress(OSError):
                        status = entry.stat()
                        found.append((status.st_mtime_ns, entry.name[:-6], status.st_size))
        return [(subject, size) for _, subject, size in sorted(found)]


class FileDocuments(Documents):
    """A folder of files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        return self._folder

    def names(self) -> list[str]:
        try:
            return sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        return read_plain(self._folder / name)

    def write(self, name: str, content: bytes) -> None:
        write_atomic(self._folder / name, content)

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        removed, left = 0, list[str]()
        for path in (self._folder / name for name in names):
            try:
                path.unlink()
                removed += 1
            except FileNotFoundError:
                pass
            except OSError as error:
                left.append(f"{path}: {error.strerror or error}")
        if removed:
            sync_folder(self._folder)
        return removed, left


class FilesDisk(Disk):
    """Plain files below `root` (`data/memory`). Durable files and summaries may lie elsewhere."""

    name = "files"

    def __init__(self, root: Path, *, durable: Path | None = None, rolling: Path | None = None) -> None:
        self.root = root
        self.durable = durable or root / DURABLE
        self.ledgers = FileLedgers(self, root / LEDGERS)
        self._rolling = rolling or root / ROLLING

    def documents(self, folder: str) -> Documents:
        return FileDocuments(self._rolling if folder == ROLLING else self.root / folder)

    def folders(self) -> set[str]:
        inside = self.documents("").names()
        # Other folders are not ours: `.git`, `lost+found`. That of the summaries may lie elsewhere.
        return {ROLLING, *(name for name in inside if name.isalnum() and (self.root / name).is_dir())}

    def log(self, name: str) -> Log:
        return FileLog(self.root / name)


def log_at(where: Path | Log) -> Log:
    """A log, or the file of that path as one."""
    return FileLog(where) if isinstance(where, Path) else where


def documents_at(where: Path | Documents) -> Documents:
    """Documents, or the folder of that path as such."""
    return FileDocuments(where) if isinstance(where, Path) else where


def disk_at(where: Path | Disk, durable: Path | None = None) -> Disk:
    """A disk, or the plain files below that path."""
    return FilesDisk(where, durable=durable) if isinstance(where, Path) else where

"""Backups of a data folder as a test makes and restores them, and files that pretend to be backups."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from discoclaw.core.times import iso_ms
from discoclaw.memory.exchange.backup import Backup, back_up, read_file
from discoclaw.memory.exchange.restore import Erase, Restored, restore
from discoclaw.memory.folder import DataFolder
from discoclaw.memory.stores import Store, disks
from discoclaw.store.port import (
    CURSORS,
    GROUPS,
    INTENTS,
    LEDGERS,
    PROFILES,
    ROLLING,
    TOOLS,
    USAGE,
    Disk,
    is_log,
)
from tests.memory.kit import NOW, Clock

FOLDERS = ("", LEDGERS, ROLLING, CURSORS, PROFILES, GROUPS, TOOLS, USAGE, INTENTS)


def backed_up(data: Path, store: Store, target: Path, **given: Any) -> Backup:
    """Back up a data folder, which somebody else may use."""
    with disks(store, data / "memory") as stores:
        return back_up(stores.used, data, target, clock=lambda: NOW, **given)


def written(disk: Disk, data: Path, target: Path) -> Path:
    """A backup of a store that is open. Returns where it is."""
    back_up(disk, data, target, clock=lambda: NOW)
    return target


def _nobody(data: Path, subjects: Sequence[str]) -> None:
    raise AssertionError(f"{subjects} were erased since")


def restored(path: Path, data: Path, store: Store, erase: Erase = _nobody) -> Restored:
    """Restore a backup into a data folder, whatever is there."""
    with disks(store, data / "memory") as stores:

        def work() -> Restored:
            return restore(path, stores, read_file(path), erase, now_ms=NOW)

        return DataFolder(stores, clock=Clock()).alone(work)


def texts_in(disk: Disk) -> dict[str, bytes]:
    """Everything in a store that is the same in every store, by name."""
    found = {}
    for folder in FOLDERS:
        documents = disk.documents(folder)
        for name in documents.names():
            full = f"{folder}/{name}" if folder else name
            if is_log(name):
                found[full] = disk.log(full).read()
            elif full.endswith((".json", ".key")) and full != "version.json":
                found[full] = documents.read(name)
    return found


def members(path: Path) -> dict[str, bytes]:
    """The files in a backup by name."""
    with tarfile.open(path) as tar:
        found = {one.name: tar.extractfile(one) for one in tar}
        return {name: file.read() for name, file in found.items() if file is not None}


HEAD: Mapping[str, Any] = {
    "format": "discoclaw-backup",
    "version": 1,
    "program": "0.1.0",
    "data": 1,
    "store": "files",
    "at": iso_ms(NOW),
}
NAME, CONTENT = "memory/ledger/user-1.jsonl", b""


def entry(name: str, content: bytes = b"", **changes: Any) -> tuple[tarfile.TarInfo, bytes]:
    """One entry of a tar file, as somebody hostile may write it."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in changes.items():
        setattr(info, field, value)
    return info, content


def head(**changes: Any) -> tuple[tarfile.TarInfo, bytes]:
    return entry("backup.json", json.dumps({**HEAD, **changes}).encode())


def listing(*entries: tuple[tarfile.TarInfo, bytes]) -> tuple[tarfile.TarInfo, bytes]:
    """A true list of some entries."""
    named = [
        {"name": info.name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for info, content in entries
    ]
    return entry("members.json", json.dumps(named).encode())


def packed(entries: Iterable[tuple[tarfile.TarInfo, bytes]], *, behind: bytes = b"") -> bytes:
    """A compressed tar file of these entries, with something behind its end."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(out.getvalue() + behind, mtime=0)  # the same bytes in every process

"""Records who uses the data folder, beside the lock, for other processes that find it locked.

`.holder`: {pid, host, since}. Only the lock decides; a wrong or missing record changes nothing but the text
of an error. Blocking.
"""

import contextlib
import json
import logging
import os
import socket
from pathlib import Path
from typing import NamedTuple

from discoclaw.core.times import iso_ms, valid_ms
from discoclaw.store.files import render_json, write_atomic

log = logging.getLogger(__name__)

ANOTHER = "another discoclaw process"


class Holder(NamedTuple):
    """A process that has the folder: its number, its machine, and since when (ms since 1970, by that one's
    clock)."""

    pid: int
    host: str
    since: int


def note(root: Path, now_ms: int) -> None:
    """Record that this process has the folder. A failing disk is only a warning."""
    path = root / ".holder"
    try:
        write_atomic(path, render_json({"pid": os.getpid(), "host": socket.gethostname(), "since": now_ms}))
    except OSError as error:
        log.warning("%s could not be written: %s", path, error)
        leave(root)  # the previous holder's record is outdated


def leave(root: Path) -> None:
    """Remove the record; the caller still has the folder."""
    with contextlib.suppress(OSError):
        (root / ".holder").unlink()


def read(root: Path) -> Holder | None:
    """The process that has the folder, as far as the record says; None if it ended or is unknown."""
    holder = recorded(root)
    if holder is not None and holder.host == socket.gethostname() and not _lives(holder.pid):
        return None  # a leftover record, which its writer could not remove
    return holder


def recorded(root: Path) -> Holder | None:
    """The process that the record names, which may have ended since; None without a readable record."""
    try:
        value = json.loads((root / ".holder").read_bytes())
        pid, host, since = value["pid"], value["host"], value["since"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if type(pid) is not int or pid <= 0 or not isinstance(host, str) or not valid_ms(since):
        return None
    return Holder(pid, host, since)


def locked(root: Path) -> bool | None:
    """Whether a process has the folder's lock; None where the system doesn't say.

    It isn't tried: whoever starts at this moment would find it taken.
    """
    try:
        status = os.stat(root / ".lock")
        locks = Path("/proc/locks").read_text()
    except FileNotFoundError:
        return None if (root / ".lock").exists() else False
    except OSError:
        return None
    holder = recorded(root)
    return is_in(locks, status.st_dev, status.st_ino, holder.pid if holder is not None else None)


def is_in(locks: str, device: int, inode: int, pid: int | None) -> bool:
    """Whether a file is in the list of all locks. `pid` is of the process that says it has it.

    Some file systems, as btrfs, state another device there than in `stat`. Of them the process counts.
    """
    exact, alike = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}", f":{inode}"
    rows = [row.split() for row in locks.splitlines()]
    return any(
        exact in row or (str(pid) in row and any(word.endswith(alike) for word in row)) for row in rows
    )


def who(root: Path, now_ms: int) -> str:
    """A description of who has the folder: "process 4242 (since 14:03Z)"."""
    if (holder := read(root)) is None:
        return ANOTHER
    at, today = iso_ms(holder.since), iso_ms(now_ms)[:10]
    when = at[11:16] if at[:10] == today else f"{at[:10]} {at[11:16]}"
    here = holder.host == socket.gethostname()
    where = "" if here else f" on {' '.join(holder.host.split())[:80]}"
    return f"process {holder.pid}{where} (since {when}Z)"


def _lives(pid: int) -> bool:
    if os.name == "nt":  # pragma: no cover - on Windows this call would stop the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True

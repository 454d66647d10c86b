"""The temporary files of writes: their names, and removing those that a killed process left.

A writer locks its temporary file until it has renamed it, and the system releases the locks of a process
that is killed. So a temporary file that nobody has locked is a leftover, whichever process wrote it. Windows,
which has no such locks, removes no file that is open. Blocking.
"""

import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_OURS = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{8}\.tmp(-wal|-shm|-journal)?", re.DOTALL)


def name_for(name: str) -> str:
    """A new name for the temporary file of a write to the file `name`."""
    return f".{name}.{secrets.token_hex(4)}.tmp"


def claim(handle: int) -> bool:
    """Lock a temporary file that was just created. Returns False if it has been removed as a leftover."""
    if sys.platform != "win32":
        with suppress(OSError):  # a mount without locks: there nothing is removed either
            fcntl.flock(handle, fcntl.LOCK_EX)
    return os.fstat(handle).st_nlink > 0 or os.name == "nt"


def sweep(listed: Iterable[tuple[Path, Iterable[str]]]) -> tuple[int, list[str]]:
    """Remove the leftovers among the files of folders. Returns how many, and which stay and why."""
    removed, left = 0, list[str]()
    for folder, names in listed:
        for path in (folder / name for name in names if name[0] == "." and _OURS.fullmatch(name)):
            try:
                removed += _remove_unlocked(path)
            except OSError as error:
                left.append(f"{path}: {error.strerror or error}")
    return removed, left


def leftovers(listed: Iterable[tuple[Path, Iterable[str]]]) -> int:
    """How many temporary files there are. Those of a living writer count too."""
    return sum(_OURS.fullmatch(name) is not None for _, names in listed for name in names)


def sweep_for(target: Path, *, alike: str | None = None) -> None:
    """Remove what killed writes of one file or folder left beside it. What cannot be removed stays.

    `alike`: also those of files with this ending.
    """
    endings = (alike,) if alike is not None else ()
    with suppress(OSError):
        for name in os.listdir(target.parent):
            ours = _OURS.fullmatch(name)
            if ours and (ours["target"] == target.name or ours["target"].endswith(endings)):
                with suppress(OSError):
                    _remove_unlocked(target.with_name(name), folders=True)


def _remove_unlocked(path: Path, *, folders: bool = False) -> bool:
    """Remove a temporary file, or one of the `folders`, unless its writer is alive.

    Returns whether it was removed. Raises OSError.
    """
    is_folder = folders and path.is_dir()
    if path.is_symlink() or not (path.is_file() or is_folder):
        return False
    if sys.platform == "win32":  # pragma: no cover - there the system refuses to remove an open file
        _remove(path, is_folder)
        return True
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:  # its writer was quicker
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path, is_folder)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _remove(path: Path, is_folder: bool) -> None:
    if is_folder:
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

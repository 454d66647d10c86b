"""Files and folders that only the bot's user can read: creating them, and closing older ones.

Whatever the umask is, a new file has the mode 0600 and a new folder 0700. A folder that an admin made keeps
its mode. Blocking.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

FILE, FOLDER = 0o600, 0o700
_OTHERS = 0o077


def opener(path: str, flags: int) -> int:
    """For `open(..., opener=opener)`: a file that is created is readable only by the bot's user."""
    return os.open(path, flags, FILE)


def make_folder(folder: str | Path) -> None:
    """Create a folder with its missing parents. One that exists keeps its mode. Raises OSError."""
    try:
        os.mkdir(folder, FOLDER)
    except FileNotFoundError:
        make_folder(os.path.dirname(os.path.abspath(folder)))
        make_folder(folder)
    except OSError:  # it exists, or the system does not say so
        if not os.path.isdir(folder):
            raise


def close_files(folder: Path) -> None:
    """Take the others' permissions from the files in a folder, which another library made. Raises OSError."""
    for entry in os.scandir(folder):
        _close(entry)


def close_old(trees: Iterable[Path], folders: Iterable[Path]) -> tuple[int, list[str]]:
    """Take the others' permissions from everything in `trees`, and from the files in `folders`.

    Returns how many there were, and which stay open and why. In a tree whose top folder is closed already
    nobody can reach anything, so it costs one `stat`. The top is closed last: a start that is killed midway
    is repeated by the next one. `folders` were placed by an admin and keep their own mode.
    """
    closed, left = 0, list[str]()
    if os.name == "nt":  # pragma: no cover - Windows has no such bits
        return closed, left
    for top in trees:
        if _is_open(top):
            closed += _close_all(_below(top, left), left) + _close_all([top], left)
            if _is_open(top):
                left.append(f"{top}: the file system keeps its permissions")
    for folder in folders:
        if _is_open(folder):
            closed += _close_all(_entries(folder, left), left)
    return closed, left


def _below(top: Path, left: list[str]) -> Iterator["os.DirEntry[str]"]:
    """Everything below a folder, a folder after what is in it. Links are not followed."""
    for entry in _entries(top, left, folders=True):
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), left)
        yield entry


def _entries(folder: Path, left: list[str], *, folders: bool = False) -> list["os.DirEntry[str]"]:
    """The files of a folder, and its `folders`; none if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            return [one for one in found if folders or not one.is_dir(follow_symlinks=False)]
    except OSError as error:
        left.append(f"{folder}: {error.strerror or error}")
        return []


def _close_all(entries: Iterable["os.DirEntry[str] | Path"], left: list[str]) -> int:
    closed = 0
    for entry in entries:
        try:
            closed += _close(entry)
        except FileNotFoundError:  # somebody was quicker
            pass
        except OSError as error:
            left.append(f"{os.fspath(entry)}: {error.strerror or error}")
    return closed


def _close(entry: "os.DirEntry[str] | Path") -> bool:
    """Take the others' permissions from a file or folder. Returns whether they had any. Raises OSError."""
    status = entry.stat() if isinstance(entry, Path) else entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode) or not status.st_mode & _OTHERS:
        return False
    os.chmod(entry, stat.S_IMODE(status.st_mode) & ~_OTHERS)
    return True


def _is_open(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & _OTHERS)
    except OSError:
        return False

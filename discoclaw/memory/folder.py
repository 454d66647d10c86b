"""The data folder: only one process at a time uses it, and each start brings it into order.

    memory/.holder         {pid, host, since}: who has the folder. Only the lock beside it decides; a wrong or
                           missing record changes nothing but the text of an error
    memory/version.json    {"version": 1, "program": "0.1.0"}: the format, and which program brought it there
    .restore/              everything that is prepared to be put in place, on the same disk
    .restore/moves.json    {"phase": 1 or 2, "aside": [[from, to]…], "new": [[from, to]…]}

A folder without a version is from before there was one: version 0. Each step to the next runs once, in
order, at the start of the first program that knows it. What a step changes is copied first, to
`data/old.before-version-<n>-<stamp>/`. A step that was cut off runs again, so it has to stand that. A folder
of a newer version is left alone. Databases have versions of their own (`store/sqlite`,
`store/postgres/schema`).

Prepared files are put in place as a whole: a crash leaves the old or the new ones. Once `moves.json` is
there, all moves will be made, by this process, or by the next one that takes the folder. Before that, the
next one removes what was prepared. The old files go to a folder with a date.

Blocking. Knows nothing about what is in the stores.
"""

import json
import logging
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from filelock import FileLock, Timeout

from discoclaw import __version__
from discoclaw.core.errors import FolderInUse, MemoryFault, NewerSchema, faulting
from discoclaw.core.ports import Clock
from discoclaw.core.times import iso_ms, valid_ms
from discoclaw.memory.stores import Disks
from discoclaw.store.files import (
    FILE_MODE,
    close_old,
    make_folder,
    name_for,
    new_folder,
    opener,
    read_plain,
    render_json,
    stamp_of,
    sweep,
    sweep_for,
    sync_folder,
    unused_name,
    write_atomic,
)

ANOTHER = "another discoclaw process"

log = logging.getLogger(__name__)

T = TypeVar("T")


def empty(folder: Path) -> None:
    """Remove everything in a folder, if there is one. Raises OSError."""
    for path in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


class DataFolder:
    """`data/memory` with its stores."""

    def __init__(self, disks: Disks, *, clock: Clock) -> None:
        self._disks = disks
        self._root = disks.root
        self._clock = clock
        self._lock = FileLock(self._root / ".lock", mode=FILE_MODE, thread_local=False)

    def open(self, then: Callable[[], None], *, beside: bool = False) -> None:
        """Take the folder for this process, bring it to this version, prepare the stores, call `then`.

        In a store that is shared, caches begin empty: they may hold what was erased meanwhile. `beside` then
        leaves the folder to whoever uses it. Raises FolderInUse, naming the other process, NewerSchema, or
        MemoryFault if the folder cannot be created or used; it is released then.
        """
        ours = not (beside and self._disks.used.shared)
        if ours:
            self._take()
        try:
            with faulting("the memory cannot be used"):
                check_version(self._root)
                if ours:
                    self._settle_in()
                self._disks.open()
                then()
        except BaseException:
            self.close()
            raise

    def _settle_in(self) -> None:
        """Finish what was interrupted, upgrade, and clear away what earlier runs left.

        Raises OSError and MemoryFault.
        """
        finish_moves(self._root.parent)
        upgrade(self._root, self._clock())
        # What earlier versions wrote is readable only by the bot's user, too. What fails is only a warning.
        closed, left = close_old(self._disks.trees(), self._disks.placed())
        if closed:
            log.info("only the bot's user can read %d files and folders of its data from now on", closed)
        if left:
            more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
            log.warning("other users of this machine may read the bot's data: %s%s", left[0], more)
        for stays in sweep(self._disks.listed())[1]:
            log.warning("the leftover of a killed write could not be removed: %s", stays)
        note_holder(self._root, self._clock())
        if self._disks.used.shared:
            empty(self._root.parent / "cache")

    def rescue(self) -> list[str]:
        """Save what can be read of a store that is damaged as a whole. Returns sentences about what was done.

        Not allowed while it is open. Raises FolderInUse, and MemoryFault when the disk fails.
        """
        check_version(self._root)
        with faulting("what is damaged cannot be mended"):
            return self.alone(lambda: self._disks.rescue(stamp_of(self._clock())))

    def alone(self, work: Callable[[], T]) -> T:
        """Return what `work` does while nobody uses the folder, which isn't opened.

        Raises FolderInUse, MemoryFault, and whatever `work` raises.
        """
        self._take()
        try:
            finish_moves(self._root.parent)
            return work()
        finally:
            self.close()

    def close(self) -> None:
        """Release the folder."""
        self._disks.close()
        if self._lock.is_locked:
            leave_holder(self._root)
            self._lock.release()

    def _take(self) -> None:
        try:
            make_folder(self._root)
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise FolderInUse(
                f"{self._root} is in use by {who(self._root, self._clock())}; "
                "stop that one, or set another DISCOCLAW_DATA_DIR"
            ) from error
        except OSError as error:
            raise MemoryFault(f"{self._root} cannot be used: {error}") from error


# ---------------------------------------------------------------------- who has the folder


class Holder(NamedTuple):
    """A process that has the folder: its number, its machine, and since when (ms since 1970, by that one's
    clock)."""

    pid: int
    host: str
    since: int


def note_holder(root: Path, now_ms: int) -> None:
    """Record that this process has the folder. A failing disk is only a warning."""
    path = root / ".holder"
    try:
        write_atomic(path, render_json({"pid": os.getpid(), "host": socket.gethostname(), "since": now_ms}))
    except OSError as error:
        log.warning("%s could not be written: %s", path, error)
        leave_holder(root)  # the previous holder's record is outdated


def leave_holder(root: Path) -> None:
    """Remove the record; the caller still has the folder."""
    with suppress(OSError):
        (root / ".holder").unlink()


def holder_of(root: Path) -> Holder | None:
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
    if (holder := holder_of(root)) is None:
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


# ---------------------------------------------------------------------- which version it has

VERSION_FILE = "version.json"


class Step(NamedTuple):
    """A step from one version to the next.

    `changes` lists the files below `data/` that `work` changes or removes; both get that folder.
    """

    about: str
    changes: Callable[[Path], Iterable[Path]] = lambda data: ()
    work: Callable[[Path], None] = lambda data: None


STEPS: tuple[Step, ...] = (Step("the folder says which version it has"),)
"""The steps from each version to the next, from 0 on."""
DATA_VERSION = len(STEPS)


def version_of(root: Path) -> int:
    """The version of the folder around `root` (`data/memory`); 0 if it says none. Raises MemoryFault."""
    path = root / VERSION_FILE
    try:
        version = json.loads(read_plain(path))["version"]
        if type(version) is not int or version < 1:
            raise ValueError(f"version {version!r}")
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MemoryFault(
            f"{path} makes no sense ({error}), so nobody knows which program may write here; restore a "
            "backup, or remove this file if no newer program was ever used here"
        ) from None
    return version


def check_version(root: Path, *, newest: int = DATA_VERSION) -> int:
    """The version of a folder that this program may write. Raises NewerSchema, MemoryFault."""
    if (version := version_of(root)) > newest:
        raise NewerSchema(newer_text(f"{root.parent}", version, newest))
    return version


def newer_text(what: str, version: int, newest: int = DATA_VERSION) -> str:
    """One line about data of a newer version than this program knows."""
    return (
        f"{what} has data of version {version}, and DiscoClaw {__version__} knows only up to version "
        f"{newest}; upgrade the program, or restore a backup from before (`discoclaw restore`)"
    )


def upgrade(root: Path, now_ms: int, steps: Sequence[Step] = STEPS) -> None:
    """Bring a folder to this version; a new one has it at once.

    Raises NewerSchema, MemoryFault, and OSError; the step that failed is repeated at the next start.
    """
    data, version = root.parent, check_version(root, newest=len(steps))
    if not version and not any(not name.startswith(".") for name in os.listdir(root)):
        mark_version(root, len(steps))
        return
    for number, step in enumerate(steps[version:], start=version + 1):
        changed = [path for path in step.changes(data) if path.exists()]
        if changed:
            kept = _keep(data, changed, number, now_ms)
            log.info("what version %d of the data changes is kept in %s", number, kept)
        step.work(data)
        mark_version(root, number)
        log.info("the data has version %d now: %s", number, step.about)


def mark_version(root: Path, version: int) -> None:
    """Note the version of a folder. A full disk is only a warning, because steps can be repeated."""
    try:
        write_atomic(root / VERSION_FILE, render_json({"version": version, "program": __version__}))
    except OSError as error:
        log.warning("%s could not be written: %s", root / VERSION_FILE, error.strerror or error)


def _keep(data: Path, changed: Iterable[Path], number: int, now_ms: int) -> Path:
    """Copy files to a new folder, completely or not at all. Returns which. Raises OSError."""
    kept = unused_name(data / "old", f"before-version-{number}", stamp_of(now_ms))
    with new_folder(kept) as made:
        for path in changed:
            copy = made / path.relative_to(data)
            make_folder(copy.parent)
            with open(path, "rb") as old, open(copy, "xb", opener=opener) as new:
                shutil.copyfileobj(old, new)
                new.flush()
                os.fsync(new.fileno())
    return kept


# ---------------------------------------------------------------------- prepared files, put in place

PREPARED, MOVES = ".restore", "moves.json"
UNPACKED = "unpacked"
"""How the temporary folder is called, before its ending, in which a backup is read that is imported."""

Move = tuple[Path, Path]
"""From where, and to where."""


def prepare(data: Path) -> Path:
    """An empty folder in which to prepare files. Raises OSError."""
    finish_moves(data)
    make_folder(data / PREPARED)
    return data / PREPARED


def put_in_place(
    data: Path, aside: Sequence[Move], new: Sequence[Move], *, first: Callable[[], None] = lambda: None
) -> None:
    """Move the old files aside, and the prepared ones to where they belong: all of that, or nothing.

    `first` is what has to succeed for that, such as a transaction elsewhere. Raises OSError and whatever it
    raises; once the moves were written down, a process that is killed leaves them to the next start.
    """
    if hasattr(os, "sync"):
        os.sync()  # one call, where each of a million files would need its own
    _note_moves(data, 1, aside, new)
    try:
        first()
    except BaseException:
        (data / PREPARED / MOVES).unlink()
        raise
    finish_moves(data)


def finish_moves(data: Path) -> None:
    """Go on with moves that were interrupted, or remove what was prepared for none. Raises OSError.

    What an import that was killed had unpacked is removed too.
    """
    sweep_for(data / UNPACKED)
    path = data / PREPARED / MOVES
    if not (data / PREPARED).exists():
        return
    if path.exists():
        value = json.loads(path.read_bytes())
        aside, new = ([(data / a, data / b) for a, b in value[part]] for part in ("aside", "new"))
        if value["phase"] == 1:
            for old, kept in aside:
                _make_move(old, kept)
            _note_moves(data, 2, aside, new)
        for made, place in new:
            _make_move(made, place)
        path.unlink()
        sync_folder(path.parent)
        log.info("the restored files are in place")
    shutil.rmtree(data / PREPARED)


def _note_moves(data: Path, phase: int, aside: Sequence[Move], new: Sequence[Move]) -> None:
    # Relative, since the folder may have another name next time, as in a container.
    moves = {
        name: [[os.path.relpath(one, data) for one in move] for move in part]
        for name, part in (("aside", aside), ("new", new))
    }
    write_atomic(data / PREPARED / MOVES, render_json({"phase": phase, **moves}))


def _make_move(old: Path, new: Path) -> None:
    """Move a file or folder, unless that was done before; also to another disk. Raises OSError."""
    if not os.path.lexists(old):
        return
    make_folder(new.parent)
    if not os.path.lexists(new):
        try:
            os.rename(old, new)
        except OSError:
            if old.stat().st_dev == new.parent.stat().st_dev:
                raise
            made = new.with_name(name_for(new.name))
            if old.is_dir():
                shutil.copytree(old, made)
            else:
                shutil.copy2(old, made)
            if hasattr(os, "sync"):
                os.sync()
            os.rename(made, new)
    if os.path.lexists(old):  # it was copied, and that is complete
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    sync_folder(new.parent)
    sync_folder(old.parent)

"""The data folder: whether the bot can use it, what is left in it, and who has it now. Nothing is written."""

import os
import shutil
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from discoclaw.checkup.store import unfinished_in
from discoclaw.checkup.topic import finding
from discoclaw.core.errors import MemoryFault
from discoclaw.core.health import Finding
from discoclaw.core.times import iso_ms
from discoclaw.memory.folder import DATA_VERSION, check_version, holder_of, locked, recorded
from discoclaw.memory.status import status_of
from discoclaw.settings import Settings
from discoclaw.show.words import count, line
from discoclaw.storage import disks_of, other_folders
from discoclaw.store.files import leftovers, read_in_thread

FULL, TIGHT = 20_000_000, 500_000_000
"""Free bytes: with fewer than the first the bot can hardly write, with fewer than the second soon."""
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ncpfs", "davfs"})
ODD = frozenset({"vboxsf", "fuse.vmhgfs-fuse", "drvfs", "vfat", "exfat"})
GONE = frozenset({"tmpfs", "ramfs"})
CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
MOUNTS = Path("/proc/self/mountinfo")


async def folder(settings: Settings) -> AsyncIterator[Finding]:
    """Everything about the folder that can be seen without taking it."""
    for one in await read_in_thread(lambda: [*_folder(settings)]):
        yield one


def _folder(settings: Settings) -> Iterator[Finding]:
    data, memory = settings.data_dir, settings.memory_dir
    if not data.exists():
        above = next(one for one in data.absolute().parents if one.exists())
        if not _writable(above):
            text = f"{data} doesn't exist and can't be made: {above} can't be written"
            yield Finding("folder", "bad", text, "let the bot's user write there, or set DISCOCLAW_DATA_DIR")
            return
        yield Finding("folder", "good", f"{data} doesn't exist yet; the bot makes it at its first start")
        yield _space(above)
        return
    if not data.is_dir():
        yield Finding("folder", "bad", f"{data} is a file", "move it away, or set DISCOCLAW_DATA_DIR")
        return
    yield _rights(data)
    yield _space(data)
    yield from _file_system(data)
    if memory.is_dir():
        try:
            version = check_version(memory)
            more = ", as this program writes it"
            if version < DATA_VERSION:
                more = f"; the next start of the bot brings it to {DATA_VERSION}"
            yield Finding("data", "good", f"version {version}{more}")
        except MemoryFault as fault:  # also data of a newer version
            yield finding("data", fault)
    for text, _, way_out in (one.partition("; ") for one in other_folders(settings)):
        yield Finding("second folder", "warning", text, way_out)
    yield from _lock(memory)
    yield from _leftovers(settings)
    saved = f"{settings.auto_save} (DISCOCLAW_AUTO_SAVE)"
    yield Finding("archive", "good" if settings.auto_save else "off", saved)


def _rights(data: Path) -> Finding:
    """Whether the folder and those in it can be read and written, and by whom else."""
    try:
        tops = [one for one in sorted(data.iterdir()) if one.is_dir() and not one.is_symlink()]
    except OSError:
        tops = []  # which the folder itself says
    for one in (data, *tops):
        readable = os.access(one, os.R_OK | os.X_OK)
        if not (readable and _writable(one)):
            user = str(os.getuid()) if hasattr(os, "getuid") else "you"
            why = f"{one} can't be {'written' if readable else 'read'}"
            return Finding("folder", "bad", why, f"let this user own it: chown -R {user} {data}")
    mode, memory = data.stat().st_mode, data / "memory"
    inner = memory.stat().st_mode if memory.is_dir() else 0
    if os.name != "nt" and inner & 0o077 and mode & 0o077:
        text = f"other users of this machine can read {memory} (mode {stat.S_IMODE(inner):04o})"
        way_out = f"run: chmod -R go= {memory} (a start of the bot does it too)"
        return Finding("folder", "warning", text, way_out)
    return Finding("folder", "good", f"{data} can be read and written")


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _space(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{free / 1e9:.1f} GB are free" if free >= 1e9 else f"{free / 1e6:.0f} MB are free"
    if free < FULL:
        way_out = "free some space; nothing can be remembered"
        return Finding("space", "bad", f"the disk is full: {text}", way_out)
    if free < TIGHT:
        return Finding("space", "warning", f"the disk is nearly full: {text}", "free some space soon")
    return Finding("space", "good", text)


def _file_system(data: Path) -> Iterator[Finding]:
    kind = kind_of(data)
    if kind in NETWORK:
        text = f"{data} is on a network drive ({kind}), where locks and SQLite files aren't reliable"
        way_out = "use a local disk, or PostgreSQL (docs/admins/postgresql.md)"
        yield Finding("file system", "warning", text, way_out)
    elif kind in ODD:
        text = f"{data} is on {kind}, which keeps no permissions and doesn't lock reliably"
        yield Finding("file system", "warning", text, "use a local disk of this system")
    elif kind in GONE:
        text = f"{data} is in RAM ({kind}): everything is gone after a restart of the machine"
        yield Finding("file system", "warning", text, "set DISCOCLAW_DATA_DIR to a folder on a disk")
    elif kind == "overlay" and any(one.exists() for one in CONTAINERS):
        text = f"{data} is inside the container: everything is gone when that is removed"
        yield Finding("file system", "warning", text, "mount a volume there (docs/admins/operating.md)")
    elif kind:
        yield Finding("file system", "good", kind)


def kind_of(folder: Path) -> str:
    """The type of the file system that a folder is on, "" if this system doesn't say."""
    try:
        wanted, found = folder.resolve(), ("", "")
        for row in MOUNTS.read_text(encoding="utf-8").splitlines():
            fields = row.split()
            point = fields[4].encode().decode("unicode_escape")  # a space is written as \040
            if wanted.is_relative_to(point) and len(point) >= len(found[0]):
                found = point, fields[fields.index("-") + 1]
        return found[1]
    except (OSError, ValueError, LookupError):
        return ""


def _lock(root: Path) -> Iterator[Finding]:
    """The process that has the folder. That it is in use is good news: the bot runs."""
    holder, held = recorded(root), locked(root)
    if holder is None:
        if held:
            yield Finding("lock", "good", "another process has it, and its record is missing")
        return
    here, living = holder.host == socket.gethostname(), holder_of(root) is not None
    where = "" if here else f" on {line(holder.host)}"
    who = f"process {holder.pid}{where} since {iso_ms(holder.since)[:16]}Z"
    if not here and not held:
        text = f"it was taken by {who}, on another machine or in another container"
        way_out = "only one may use a folder: make sure that one has ended before you start another"
        yield Finding("lock", "warning", text, way_out)
    elif held or (held is None and living):
        yield Finding("lock", "good", f"the bot has it: {who}")
    else:
        ended = "has ended without giving it back" if not living else "doesn't hold it any more"
        way_out = "nothing: the lock is free, and a start of the bot replaces the record"
        yield Finding("lock", "warning", f"the record names {who}, which {ended}", way_out)


def _leftovers(settings: Settings) -> Iterator[Finding]:
    with disks_of(settings) as stores:
        found = leftovers(stores.listed())
        if found and not locked(settings.memory_dir):
            text = f"{count(len(found), 'temporary file')} of killed writes"
            yield Finding("leftovers", "warning", text, "start the bot, which removes them")
        if stores.used.shared:
            return  # the store's own topic says that
        try:
            yield from unfinished_in(status_of(stores), "leftovers")
        except MemoryFault as fault:
            yield Finding("leftovers", "bad", str(fault), "see docs/admins/operating.md, Troubleshooting")

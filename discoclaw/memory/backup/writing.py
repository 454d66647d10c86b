"""Writes a backup while others use the store.

A database is read as it was at one moment. Plain files go on changing, so their order decides: first the
cursors that say what was done with the rest, then what is made from the ledgers, then the ledgers, and last
what people decided. Whatever is read later then knows at least as much as what was read before, as after a
crash. What says whose words are in a summary comes after the summary.

An erasing that begins or ends meanwhile makes all of it begin anew, so nobody is in a backup whose tombstone
is in it too. The file is read again and compared before it gets its name. Blocking.
"""

import hashlib
import io
import os
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.memory import upgrades
from discoclaw.memory.backup import layout
from discoclaw.memory.backup.layout import DURABLE, MEMORY, Member
from discoclaw.memory.backup.reading import Contents, read
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.people import choices
from discoclaw.memory.subjects.inspect import unfinished
from discoclaw.store import database
from discoclaw.store.files import (
    FILE_MODE,
    Linked,
    check_place,
    free_bytes,
    make_folder,
    new_file,
    read_plain,
)
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import (
    ANSWERS,
    CHOICES,
    CURSORS,
    GROUPS,
    INTENTS,
    LEDGERS,
    PROFILES,
    ROLLING,
    TOOLS,
    USAGE,
    Disk,
    Documents,
    Tabled,
    is_log,
)
from discoclaw.store.sqlite import FILE as SQLITE
from discoclaw.store.sqlite import as_ours

PEOPLE_OF = "people-"
"""How cursors begin that say whose words are in a summary."""
TIMES = 5
"""How often it begins anew because somebody is erased."""
WAIT_S, LOOK_S = 20.0, 0.2
"""How long it waits for an erasing to end, and how often it looks."""
PACKED = 4
"""Packed, a file is at most this part of its size, for the space that has to be free. Ledgers: a tenth."""
LEVEL = 6
_ELSEWHERE = frozenset(
    {*layout.FOLDERS, CHOICES, "archive.sqlite", "outbox", upgrades.FILE}
    | {f"{name}{end}" for name in ("archive.sqlite", SQLITE) for end in ("", *database.BESIDE)}
)
"""Names that are written by other means than as a text of a store, or are of a store that isn't used."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a backup: the store, the data folder around it, and a folder for temporary copies."""

    disk: Disk
    data: Path
    beside: Path


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was written and read again. `size` is that of the file, in bytes.

    `skipped` are files that are not in it because of their names, and `restarts` counts the erasings that
    came in between.
    """

    contents: Contents
    size: int
    skipped: tuple[str, ...]
    restarts: int


def back_up(
    source: Source, target: Path, *, clock: Callable[[], int], wait_s: float = WAIT_S, replace: bool = False
) -> Backup:
    """Write a backup to a file, completely or not at all; an erasing may take `wait_s` to end.

    Raises Refused if the file may not be put there or an erasing is unfinished, and MemoryFault.
    """
    check_place(target, replace=replace)
    try:
        choices.read(source.disk)  # or it couldn't be restored
        _refuse_small(source, target)
        for restarts in range(TIMES):
            before = _decided(source.disk, wait_s)
            with suppress(_Again), new_file(target, ending=layout.ENDING, replace=replace) as file:
                skipped = _write(source, file, clock())
                if unfinished(source.disk) or _decided(source.disk, wait_s) != before:
                    raise _Again
                contents = read(file, target.name)
                return Backup(contents, file.seek(0, 2), skipped, restarts)
    except OSError as error:
        about = f"{error.filename}: " if error.filename not in (None, str(target)) else ""
        raise MemoryFault(
            f"no backup was written to {target}: {about}{error.strerror or error}; nothing is left of it"
        ) from error
    raise Refused("people were erased again and again meanwhile; try again later")


class _Again(Exception):
    """Somebody was erased in between."""


def _decided(disk: Disk, wait_s: float) -> bytes:
    """The tombstones, once no erasing is unfinished. Raises Refused if one still is, or OSError."""
    until = time.monotonic() + wait_s
    while open_ := sorted(unfinished(disk)):
        if time.monotonic() > until:
            raise Refused(
                f"{open_[0]} is being erased, and that doesn't end; if the bot is stopped, finish it with "
                f"`discoclaw memory erase {open_[0]} --yes`, then try again"
            )
        time.sleep(LOOK_S)
    return disk.log(tombstones.FILE).read()


def _refuse_small(source: Source, target: Path) -> None:
    """Raise Refused where there is too little space. Raises OSError."""
    sizes = [0]
    for place in (source.data / "memory", source.disk.documents(ROLLING).folder, source.disk.durable):
        for where, _, names in os.walk(place) if place is not None else ():
            for name in names:
                with suppress(OSError):
                    sizes.append(os.lstat(os.path.join(where, name)).st_size)
    copies = [*map(source.data.joinpath, layout.DATABASES), source.disk.documents("").folder]
    copy = max((path.stat().st_size for path in copies if path.is_file()), default=0)
    for folder, size in ((target.parent, sum(sizes) // PACKED), (source.beside, copy)):
        if (free := free_bytes(folder)) < size:
            raise Refused(
                f"the backup needs about {size / 1e6:.1f} MB in {folder}, and {free / 1e6:.1f} MB are free; "
                "free some space, or write it to another disk"
            )


def _write(source: Source, file: BinaryIO, now_ms: int) -> tuple[str, ...]:
    """Write everything to a file. Returns the names that are left out. Raises OSError and MemoryFault."""
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=LEVEL) as tar:
        writing = _Writing(source, tar, now_ms)
        writing.all()
    file.flush()
    return tuple(writing.skipped)


class _Writing:
    """One try to write a backup into an open tar file."""

    def __init__(self, source: Source, tar: tarfile.TarFile, now_ms: int) -> None:
        self.skipped: list[str] = []
        self._source = source
        self._disk = source.disk
        self._tar = tar
        self._now_ms = now_ms
        self._members: list[Member] = []

    def all(self) -> None:
        """Write everything. Raises OSError and MemoryFault."""
        make_folder(self._source.beside)
        self._plain(layout.HEAD, self._head().render())
        with self._source.disk.frozen(self._source.beside) as self._disk:
            self._store(self._disk)
        self._key()
        self._plain(layout.LIST, layout.render_members(self._members))

    def _head(self) -> layout.Head:
        data = upgrades.check(self._source.data / "memory")
        return layout.head_now(data, self._disk.name, self._now_ms)

    def _store(self, disk: Disk) -> None:
        cursors = disk.documents(CURSORS)
        self._texts(CURSORS, cursors, lambda name: not name.startswith(PEOPLE_OF))
        for folder in (TOOLS, USAGE, ANSWERS, ROLLING):
            self._texts(folder, disk.documents(folder))
        if disk.durable is not None:
            self._texts(DURABLE, FileDocuments(disk.durable))
        for folder in (PROFILES, GROUPS):
            self._texts(folder, disk.documents(folder))
        self._texts(CURSORS, cursors, lambda name: name.startswith(PEOPLE_OF))
        for name in layout.DATABASES:
            self._copy(name)
        if isinstance(disk, Tabled):
            for file, table in disk.tables_beside.items():
                self._table(f"{MEMORY}{layout.TABLES}/{file}", disk, table)
        self._texts(LEDGERS, disk.documents(LEDGERS))
        self._texts("", disk.documents(""))
        if disk.shared and (chosen := choices.read(disk)) is not None:
            self._plain(f"{MEMORY}{choices.FILE}", choices.render_people(chosen))
        self._texts(INTENTS, disk.documents(INTENTS))

    def _texts(
        self, folder: str, documents: Documents, wanted: Callable[[str], bool] = lambda name: True
    ) -> None:
        """Write the texts and logs of one folder. What is removed meanwhile is left out."""
        inside = f"{folder}/" if folder else ""
        for name in filter(wanted, documents.names()):
            full = f"{MEMORY}{inside}{name}"
            if not layout.fits(full) or full in layout.DATABASES:
                if not name.startswith(".") and (folder or name not in _ELSEWHERE):
                    self.skipped.append(full)
                continue
            try:
                self._plain(full, self._content(documents, f"{inside}{name}"))
            except FileNotFoundError:
                pass  # it was removed meanwhile
            except Linked:
                self.skipped.append(full)

    def _content(self, documents: Documents, name: str) -> bytes:
        """A text, or the whole lines of a log: the last one may just be written. Raises OSError."""
        if not is_log(name):
            return documents.read(name.rpartition("/")[2])
        content = self._disk.log(name).read()
        return content[: content.rfind(b"\n") + 1]

    def _plain(self, name: str, content: bytes) -> None:
        self._add(name, io.BytesIO(content), len(content))

    def _copy(self, name: str) -> None:
        """A database beside the store, as it is at one moment. Raises OSError."""
        path = self._source.data / name
        if not path.exists():
            return
        with as_ours(path), database.copied(path, self._source.beside) as copy, open(copy, "rb") as file:
            self._add(name, file, os.fstat(file.fileno()).st_size)

    def _table(self, name: str, disk: Tabled, table: str) -> None:
        """A table of the database, by way of a file: its length has to be known first. Raises OSError."""
        with tempfile.TemporaryFile(dir=self._source.beside) as file:
            disk.copy_out(table, file)
            size = file.tell()
            file.seek(0)
            self._add(name, file, size)

    def _key(self) -> None:
        """The mirror's key, if it is in a file."""
        with suppress(FileNotFoundError):
            self._plain(layout.KEY, read_plain(self._source.data / layout.KEY))

    def _add(self, name: str, file: IO[bytes], size: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, FILE_MODE, self._now_ms // 1000
        hashing = _Hashing(file)
        self._tar.addfile(info, hashing)
        self._tar.members.clear()  # type: ignore[attr-defined] # as in `reading`
        if name not in (layout.HEAD, layout.LIST):
            self._members.append(Member(name, size, hashing.digest.hexdigest()))


class _Hashing(io.RawIOBase):
    """A file that is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self.digest = hashlib.sha256()
        self._file = file

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self.digest.update(content)
        return content

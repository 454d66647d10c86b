"""Everything in the data folder and in its store as one file, written and read: the format of whole stores.

A tar file, packed with gzip, of regular files in this order:

    backup.json        {format, version, program, data, store, at}: read first, so that a newer format is
                       refused before anything else of it is looked at
    memory/…, nostr/…  the files, named as below `data/` of a store of plain files
    members.json       [{name, size, sha256}] of all files between; a backup that was cut off has none

It is a state that a crash could have left, so a start after a restore mends what it would mend after a crash.
It is written while others use the store. A database is read as it was at one moment. Plain files go on
changing, so their order decides: first the cursors that say what was done with the rest, then what is made
from the ledgers, then the ledgers, and last what people decided. Whatever is read later then knows at least
as much as what was read before. What says whose words are in a summary comes after the summary.

An erasing that begins or ends meanwhile makes all of it begin anew, so nobody is in a backup whose tombstone
is in it too. The file is read again and compared before it gets its name. Blocking.
"""

import hashlib
import io
import json
import os
import re
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

from discoclaw import __version__
from discoclaw.core.errors import MemoryFault, NewerSchema, Refused, faulting
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.memory.erasing import tombstones
from discoclaw.memory.exchange.files import BROKEN_TAR, Entry, tar_entries
from discoclaw.memory.folder import DATA_VERSION, VERSION_FILE, check_version, newer_text
from discoclaw.memory.people import choices
from discoclaw.memory.stores import shared
from discoclaw.memory.subjects import ledger
from discoclaw.memory.subjects.inspect import unfinished
from discoclaw.store import database
from discoclaw.store.files import (
    FILE_MODE,
    Linked,
    check_place,
    free_bytes,
    make_folder,
    new_file,
    open_regular,
    opener,
    read_plain,
    render_json,
)
from discoclaw.store.plain import FileDocuments
from discoclaw.store.port import (
    CHOICES,
    CURSORS,
    DURABLE,
    INTENTS,
    LEDGERS,
    ROLLING,
    Disk,
    is_log,
    subject_of,
)
from discoclaw.store.sqlite import FILE as SQLITE
from discoclaw.store.sqlite import as_ours

FORMAT, VERSION = "discoclaw-backup", 1
ENDING = ".tar.gz"
HEAD, LIST = "backup.json", "members.json"
MEMORY = "memory/"
ARCHIVE, OUTBOX, KEY = "memory/archive.sqlite", "memory/outbox/outbox.sqlite", "nostr/key"
DATABASES: Final = (ARCHIVE, OUTBOX)
"""The SQLite files that lie beside every store."""
TABLES = "archive"
"""The folder of the archive's tables, if it lies in a database."""
OUTBOX_FOLDER: Final = OUTBOX.split("/")[1]
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,250}"
_TOP = r"[a-z_-]{1,40}\.(json|jsonl|key)(\.[a-z]{1,20}-[0-9-]{1,40})?"
_NAME = re.compile(
    rf"memory/((?!({CHOICES}|{OUTBOX_FOLDER})/)[a-z]{{1,40}}/{_PART}|{_TOP})"
    rf"|{'|'.join(map(re.escape, (*DATABASES, KEY)))}"
)
"""Any folder of a store may be in a backup: a new one is listed nowhere."""
_CHOICES = f"{MEMORY}{choices.FILE}"
_MOST_LIST = 256 << 20
"""The most bytes that the list of members has: a million people's files."""


def fits(name: str) -> bool:
    """Whether a file of this name may be in a backup: no other one is written, and none is read."""
    return _NAME.fullmatch(name) is not None and name != f"{MEMORY}{VERSION_FILE}"


@dataclass(frozen=True, slots=True)
class Head:
    """The origin of a backup: the program's version, the version of its data, the store, and when (ms)."""

    program: str
    data: int
    store: str
    at: int


@dataclass(frozen=True, slots=True)
class Member:
    """One file: its name, its size in bytes, and the SHA-256 of its content in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Contents:
    """A backup that was verified. `damaged` are the subjects whose ledgers were damaged when it was made.

    `commits` and `ledgers` count what verifies.
    """

    head: Head
    members: tuple[Member, ...]
    commits: int
    ledgers: int
    damaged: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many bytes all members have."""
        return sum(one.size for one in self.members)

    def has(self, name: str) -> bool:
        """Whether a file is in it."""
        return any(one.name == name for one in self.members)


# ---------------------------------------------------------------------- reading


def read_file(
    path: Path, into: Path | None = None, wanted: Callable[[str], bool] = lambda name: True
) -> Contents:
    """Verify a backup, and write those of its files that are `wanted` below a folder, which its caller syncs.

    Nothing in it is taken at its word, and what it holds is bounded by its own length. Raises Refused,
    NewerSchema and MemoryFault.
    """
    with faulting(str(path)), open(path, "rb", opener=open_regular) as file:
        return read(file, path.name, into, wanted)


def read(
    file: BinaryIO, name: str, into: Path | None = None, wanted: Callable[[str], bool] = lambda name: True
) -> Contents:
    """Verify a backup in an open file, as `read_file` does. Raises OSError too."""
    try:
        return _contents(file, into, wanted)
    except NewerSchema as newer:
        raise NewerSchema(f"{name} can't be restored here: {newer}") from None
    except (Refused, *BROKEN_TAR) as error:
        why = error if isinstance(error, Refused) else f"it is damaged or was cut off ({error})"
        raise Refused(f"{name} can't be used: {why}; nothing was changed") from None


def _contents(file: BinaryIO, into: Path | None, wanted: Callable[[str], bool]) -> Contents:
    entries, found = tar_entries(file), dict[str, Member]()
    commits, ledgers, damaged = 0, 0, list[str]()
    first = next(entries, None)
    if first is None or first.name != HEAD:
        raise Refused("it isn't a backup of DiscoClaw")
    head = _head_of(_small(first))
    for entry in entries:
        if entry.name == LIST:
            value = _json(_small(entry))
            try:
                listed = [Member(str(one["name"]), one["size"], one["sha256"]) for one in value]
            except (TypeError, KeyError):
                raise Refused(f"{LIST} in it makes no sense") from None
            if len(listed) != len({one.name for one in listed}):
                raise Refused(f"{LIST} in it names a file twice")
            for one in listed:
                if found.get(one.name) != one:
                    raise Refused(f"{one.name[:80]} in it is not what was written then")
            if len(listed) != len(found):
                raise Refused("it has files that its list of contents doesn't name")
            if next(entries, None) is not None:
                raise Refused("it goes on behind its list of contents")
            return Contents(head, tuple(found.values()), commits, ledgers, tuple(damaged))
        if not fits(entry.name):
            raise Refused(f"{entry.name[:80]!r} in it has no name of ours")
        if entry.name in found:
            raise Refused(f"{entry.name} is in it twice")
        subject = subject_of(entry.name.removeprefix(MEMORY))
        place = into / entry.name if into is not None and wanted(entry.name) else None
        looked_at = subject is not None or entry.name == _CHOICES
        found[entry.name], content = _taken(entry, place, looked_at=looked_at)
        if subject is not None:
            loaded = ledger.decode(content)
            ledgers += 1
            commits += len(loaded.commits)
            if loaded.damage or loaded.torn:
                damaged.append(subject)
        elif looked_at:
            try:
                choices.people_of(content)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                raise Refused(f"{_CHOICES} in it, which says who opted out, makes no sense") from None
    raise Refused("it was cut off: its list of contents is missing")


def _taken(entry: Entry, place: Path | None, *, looked_at: bool) -> tuple[Member, bytes]:
    """Hash a file, and write it to a new place. Returns its content too, if that is `looked_at`.

    Raises MemoryFault if it can't be written, which says that it was not the backup that failed.
    """
    digest, content, file = hashlib.sha256(), bytearray(), None
    with ExitStack() as stack:
        if place is not None:
            make_folder(place.parent)
            # Unbuffered, or closing it might fail.
            file = stack.enter_context(open(place, "xb", buffering=0, opener=opener))
        for part in entry.parts():
            digest.update(part)
            try:
                rest = memoryview(part)
                while file is not None and rest:
                    rest = rest[file.write(rest) :]
            except OSError as error:
                why = f"{entry.name} can't be unpacked: {error.strerror or error}; nothing was changed"
                raise MemoryFault(why) from error
            if looked_at:
                content += part
    return Member(entry.name, entry.size, digest.hexdigest()), bytes(content)


def _small(entry: Entry) -> bytes:
    if entry.size > _MOST_LIST:
        raise Refused(f"{entry.name} in it is too long")
    return b"".join(entry.parts())


def _head_of(content: bytes) -> Head:
    """The head in a file's content. Raises NewerSchema for a newer format or newer data, else Refused."""
    value = _json(content)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise Refused("it isn't a backup of DiscoClaw")
    version, data, program = value.get("version"), value.get("data"), value.get("program")
    if type(version) is not int or type(data) is not int or not isinstance(program, str):
        raise Refused("it doesn't say which version it has")
    if version < 1 or data < 0:
        raise Refused("it doesn't say which version it has")
    made_by = f"it was made by DiscoClaw {program[:40]}, and"
    if version > VERSION:
        raise NewerSchema(
            f"{made_by} its format has version {version}, while DiscoClaw {__version__} knows only up to "
            f"version {VERSION}; upgrade the program to restore it"
        )
    if data > DATA_VERSION:
        raise NewerSchema(f"{made_by} {newer_text('it', data)}")
    try:
        return Head(program, data, str(value.get("store")), ms_of_iso(str(value.get("at"))))
    except ValueError:
        raise Refused("it doesn't say when it was made") from None


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise Refused("its list of contents makes no sense") from None


# ---------------------------------------------------------------------- writing

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
    {"archive.sqlite", VERSION_FILE}
    | {f"{name}{end}" for name in ("archive.sqlite", SQLITE) for end in ("", *database.BESIDE)}
)
"""Names that are written by other means than as a text of a store, or are of a store that isn't used."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was written and read again. `size` is that of the file, in bytes.

    `skipped` are files that are not in it because of their names.
    """

    contents: Contents
    size: int
    skipped: tuple[str, ...]


def back_up(
    disk: Disk,
    data: Path,
    target: Path,
    *,
    clock: Callable[[], int],
    wait_s: float = WAIT_S,
    replace: bool = False,
    beside: bool = True,
) -> Backup:
    """Write a store to a file, completely or not at all, with what lies `beside` it: databases and the key.

    An erasing may take `wait_s` to end. Raises Refused if the file may not be put there or an erasing is
    unfinished, and MemoryFault.
    """
    check_place(target, replace=replace)
    copies = data / "cache"
    try:
        choices.read(disk)  # or it couldn't be restored
        _refuse_small(disk, data, target)
        make_folder(copies)
        for _ in range(TIMES):
            before = _decided(disk, wait_s)
            with suppress(_Again), new_file(target, ending=ENDING, replace=replace) as file:
                with tarfile.open(fileobj=file, mode="w:gz", compresslevel=LEVEL) as tar:
                    skipped = _Writing(data, copies, tar, clock()).all(disk, beside=beside)
                file.flush()
                if unfinished(disk) or _decided(disk, wait_s) != before:
                    raise _Again
                return Backup(read(file, target.name), file.seek(0, 2), skipped)
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


def _refuse_small(disk: Disk, data: Path, target: Path) -> None:
    """Raise Refused where there is too little space. Raises OSError."""
    sizes = [0]
    for place in (data / "memory", disk.documents(ROLLING).folder, disk.durable):
        for where, _, names in os.walk(place) if place is not None else ():
            for name in names:
                with suppress(OSError):
                    sizes.append(os.lstat(os.path.join(where, name)).st_size)
    copies = [*map(data.joinpath, DATABASES), disk.documents("").folder]
    copy = max((path.stat().st_size for path in copies if path.is_file()), default=0)
    for folder, size in ((target.parent, sum(sizes) // PACKED), (data / "cache", copy)):
        if (free := free_bytes(folder)) < size:
            raise Refused(
                f"the backup needs about {size / 1e6:.1f} MB in {folder}, and {free / 1e6:.1f} MB are free; "
                "free some space, or write it to another disk"
            )


class _Writing:
    """One try to write a store, and what lies beside it below `data`, into an open tar file."""

    def __init__(self, data: Path, copies: Path, tar: tarfile.TarFile, now_ms: int) -> None:
        self._data = data
        self._copies = copies
        self._tar = tar
        self._now_ms = now_ms
        self._members: list[Member] = []
        self._skipped: list[str] = []

    def all(self, disk: Disk, *, beside: bool) -> tuple[str, ...]:
        """Write everything. Returns the names that are left out. Raises OSError and MemoryFault."""
        data = check_version(self._data / "memory")
        about = {"format": FORMAT, "version": VERSION, "program": __version__, "data": data}
        self._plain(HEAD, render_json({**about, "store": disk.name, "at": iso_ms(self._now_ms)}))
        with disk.frozen(self._copies) as frozen:
            self._store(frozen, beside=beside)
        with suppress(FileNotFoundError):
            if beside:
                self._plain(KEY, read_plain(self._data / KEY))
        self._plain(LIST, render_json([asdict(one) for one in self._members]))
        return tuple(self._skipped)

    def _store(self, disk: Disk, *, beside: bool) -> None:
        """Write all parts of a store, in the order that makes them fit each other."""
        self._texts(disk, CURSORS, lambda name: not name.startswith(PEOPLE_OF))
        apart = {CURSORS, LEDGERS, INTENTS, CHOICES, TABLES, OUTBOX_FOLDER}
        for folder in sorted((disk.folders() | {ROLLING, DURABLE}) - apart):
            self._texts(disk, folder)
        self._texts(disk, CURSORS, lambda name: name.startswith(PEOPLE_OF))
        for name in DATABASES if beside else ():
            path = self._data / name
            if path.exists():
                with as_ours(path), database.copied(path, self._copies) as copy, open(copy, "rb") as file:
                    self._add(name, file, os.fstat(file.fileno()).st_size)
        if beside and (tables := shared(disk)) is not None:
            for name, table in tables.tables_beside.items():
                # By way of a file: its length has to be known first.
                with tempfile.TemporaryFile(dir=self._copies) as rows:
                    tables.copy_out(table, rows)
                    size = rows.tell()
                    rows.seek(0)
                    self._add(f"{MEMORY}{TABLES}/{name}", rows, size)
        self._texts(disk, LEDGERS)
        self._texts(disk, "")
        if disk.shared and (chosen := choices.read(disk)) is not None:
            self._plain(_CHOICES, choices.render_people(chosen))
        self._texts(disk, INTENTS)

    def _texts(self, disk: Disk, folder: str, wanted: Callable[[str], bool] = lambda name: True) -> None:
        """Write the texts and logs of one folder. What is removed meanwhile is left out."""
        documents, inside = disk.documents(folder), f"{folder}/" if folder else ""
        elsewhere = _ELSEWHERE if folder else _ELSEWHERE | disk.folders()
        if folder == DURABLE:
            if disk.durable is None:
                return
            documents = FileDocuments(disk.durable)
        for name in filter(wanted, documents.names()):
            full = f"{MEMORY}{inside}{name}"
            if not fits(full) or full in DATABASES:
                if not name.startswith(".") and name not in elsewhere:
                    self._skipped.append(full)
                continue
            try:
                if is_log(name):  # its last line may just be written
                    content = disk.log(f"{inside}{name}").read()
                    content = content[: content.rfind(b"\n") + 1]
                else:
                    content = documents.read(name)
            except FileNotFoundError:
                continue  # it was removed meanwhile
            except Linked:
                self._skipped.append(full)
                continue
            self._plain(full, content)

    def _plain(self, name: str, content: bytes) -> None:
        self._add(name, io.BytesIO(content), len(content))

    def _add(self, name: str, file: IO[bytes], size: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, FILE_MODE, self._now_ms // 1000
        hashing = _Hashing(file)
        self._tar.addfile(info, hashing)
        self._tar.members.clear()  # type: ignore[attr-defined] # as in `files`
        if name not in (HEAD, LIST):
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

"""Reads a backup from an untrusted source, and verifies all of it: sizes, hashes, ledgers.

Nothing in it is taken at its word: only regular files with names of ours, each once, and no more bytes than a
real backup of that length can have. Paths are made of checked names, and never of what the file says alone.
Blocking.
"""

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from discoclaw.core.errors import MemoryFault, NewerSchema, Refused
from discoclaw.memory.backup.layout import HEAD, LIST, MEMORY, Head, Member, fits, head_of, members_of
from discoclaw.memory.people import choices
from discoclaw.memory.subjects import ledger
from discoclaw.store.files import make_folder, open_regular, opener

MOST_TIMES, MOST_ALWAYS = 300, 64 << 20
"""The most bytes that are unpacked: so many times what is packed, or at least so many. Ledgers pack to about
a tenth; what packs better than a three-hundredth was made to fill a disk."""
MOST_LIST = 256 << 20
"""The most bytes that the list of members has: a million people's files."""
MOST_HEADER = 128 << 10
"""The most bytes of a header, of the padding around it, and of what is read ahead."""
_AT_ONCE = 32 << 10
_CHOICES = f"{MEMORY}{choices.FILE}"
_BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError, ValueError)
"""ValueError: `tarfile` takes what a header says of a sparse file for numbers, before we can look at it."""

Sink = Callable[[str], AbstractContextManager[BinaryIO | None]]
"""Opens the file that the member of this name is written to, if it is wanted."""


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


def read_file(path: Path, sink: Sink | None = None) -> Contents:
    """Verify a backup, and write its members to a sink. Raises Refused, NewerSchema and MemoryFault."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            return read(file, path.name, sink)
    except OSError as error:
        raise MemoryFault(f"{error.filename or path}: {error.strerror or error}") from error


def read(file: BinaryIO, name: str, sink: Sink | None = None) -> Contents:
    """Verify a backup in an open file, as `read_file` does. Raises OSError too."""
    try:
        return _Reading(file, sink).contents()
    except NewerSchema as newer:
        raise NewerSchema(f"{name} can't be restored here: {newer}") from None
    except Refused as refusal:
        raise Refused(f"{name} can't be used: {refusal}; nothing was changed") from None
    except _BROKEN as error:
        raise Refused(
            f"{name} can't be used: it is damaged or was cut off ({error}); nothing was changed"
        ) from None


class _Reading:
    """One pass over a file, from its beginning to its end."""

    def __init__(self, file: BinaryIO, sink: Sink | None) -> None:
        self._sink = sink
        self._members: dict[str, Member] = {}
        self._commits = self._ledgers = 0
        self._damaged: list[str] = []
        self._left = max(MOST_ALWAYS, MOST_TIMES * _length(file))
        self._gzip = _Bounded(file)

    def contents(self) -> Contents:
        with self._gzip, tarfile.open(fileobj=self._gzip, mode="r|") as tar:
            infos = self._infos(tar)
            first = next(infos, None)
            if first is None or first.name != HEAD:
                raise Refused("it is no backup of DiscoClaw")
            head = head_of(self._small(tar, first))
            for info in infos:
                if info.name == LIST:
                    self._compare(members_of(self._small(tar, info)))
                    self._end(tar, infos)
                    members = tuple(self._members.values())
                    return Contents(head, members, self._commits, self._ledgers, tuple(self._damaged))
                self._take(tar, info)
        raise Refused("it was cut off: its list of contents is missing")

    def _infos(self, tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        """The entries, of which each is a regular file of a size that may be true. Raises Refused."""
        while (info := self._next(tar)) is not None:
            # Else each one stays in RAM; typeshed doesn't know it.
            tar.members.clear()  # type: ignore[attr-defined]
            if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.sparse is not None:
                raise Refused(f"{info.name[:80]!r} in it is no regular file")
            if info.size < 0 or info.size > self._left:
                raise Refused(f"it unpacks to more than {MOST_TIMES} times its size")
            self._left -= info.size
            self._gzip.room = info.size + MOST_HEADER
            yield info

    def _next(self, tar: tarfile.TarFile) -> tarfile.TarInfo | None:
        self._gzip.room = MOST_HEADER
        return tar.next()

    def _small(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
        if info.size > MOST_LIST:
            raise Refused(f"{info.name} in it is too long")
        return _opened(tar, info).read()

    def _take(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        """Hash a member, verify it if it is a ledger, and write it to the sink."""
        if not fits(info.name):
            raise Refused(f"{info.name[:80]!r} in it has no name of ours")
        if info.name in self._members:
            raise Refused(f"{info.name} is in it twice")
        try:
            tarfile.data_filter(info, "/")
        except tarfile.FilterError as error:
            raise Refused(f"{info.name} in it is not safe to unpack ({error})") from None
        digest, size, lines = hashlib.sha256(), 0, bytearray()
        member = Member(info.name, info.size, "")
        with self._sink(info.name) if self._sink is not None else nullcontext() as target:
            for part in _parts(_opened(tar, info)):
                digest.update(part)
                size += len(part)
                if target is not None:
                    _put(target, part, info.name)
                if member.subject is not None or info.name == _CHOICES:
                    lines += part
        if size != info.size:
            raise Refused(f"it was cut off within {info.name}")
        self._members[info.name] = Member(info.name, size, digest.hexdigest())
        if member.subject is not None:
            self._verify(member.subject, bytes(lines))
        elif info.name == _CHOICES:
            try:
                choices.people_of(bytes(lines))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                raise Refused(f"{_CHOICES} in it, which says who opted out, makes no sense") from None

    def _verify(self, subject: str, content: bytes) -> None:
        loaded = ledger.decode(content)
        self._ledgers += 1
        self._commits += len(loaded.commits)
        if loaded.damage or loaded.torn:
            self._damaged.append(subject)

    def _compare(self, listed: list[Member]) -> None:
        """Raise Refused unless these are the members that were read."""
        if len(listed) != len({one.name for one in listed}):
            raise Refused(f"{LIST} in it names a file twice")
        for one in listed:
            if self._members.get(one.name) != one:
                raise Refused(f"{str(one.name)[:80]} in it is not what was written then")
        if len(listed) != len(self._members):
            raise Refused("it has files that its list of contents doesn't name")

    def _end(self, tar: tarfile.TarFile, infos: Iterator[tarfile.TarInfo]) -> None:
        """Read to the very end, where gzip compares its checksum. Raises Refused for anything more."""
        if next(infos, None) is not None:
            raise Refused("it goes on behind its list of contents")
        for rest in _parts(self._gzip):
            if rest.strip(b"\0"):
                raise Refused("it goes on behind its end")


class _Bounded(gzip.GzipFile):
    """A gzip file that unpacks no more than there is `room` for: a header may say that it has any length."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(fileobj=file, mode="rb")
        self.room = MOST_HEADER

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        self.room -= len(content)
        if self.room < 0:
            raise Refused("a header in it is too long")
        return content


def _put(target: BinaryIO, part: bytes, name: str) -> None:
    """Write a part. Raises MemoryFault, which says that it was not the backup that failed."""
    rest = memoryview(part)
    try:
        while rest:
            rest = rest[target.write(rest) :]
    except OSError as error:
        raise MemoryFault(
            f"{name} can't be unpacked: {error.strerror or error}; nothing was changed"
        ) from error


def _opened(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(info)
    assert file is not None  # it is a regular file
    return file


def _parts(file: "IO[bytes] | gzip.GzipFile") -> Iterator[bytes]:
    while part := file.read(_AT_ONCE):
        yield part


def _length(file: BinaryIO) -> int:
    length = file.seek(0, 2)
    file.seek(0)
    return length


@contextmanager
def into(folder: Path, name: str) -> Iterator[BinaryIO]:
    """A new file for a member below a folder; the caller syncs the whole folder. Raises OSError."""
    path = folder / name
    make_folder(path.parent)
    with open(path, "xb", buffering=0, opener=opener) as file:  # else closing it might fail
        yield file

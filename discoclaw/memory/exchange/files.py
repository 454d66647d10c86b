"""Opens a folder, a zip file or a tar file from an untrusted source: names, bytes, and strict JSON.

A name is relative, with "/" between its parts. Only regular files are read, each name once; nothing outside
is ever opened, no link is followed, and no more is unpacked than was declared, or than our limits allow.
Errors are Refused, naming the entry and the way out. Blocking. Independent of what the files mean.
"""

import gzip
import io
import json
import math
import os
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, Protocol

from discoclaw.core.errors import Refused, faulting
from discoclaw.core.text import scrub
from discoclaw.store.files import open_regular

MIB = 1024 * 1024
MOST_BYTES = 64 * MIB
"""Largest file that is read as a whole."""
MOST_UNPACKED = 256 * MIB
"""Most bytes that all files of a folder or zip may have together."""
MOST_FILES = 201_000
MOST_TIMES, MOST_ALWAYS = 300, 64 * MIB
"""The most bytes that a tar file unpacks to: so many times what is packed, or at least so many. Ledgers pack
to about a tenth; what packs better than a three-hundredth was made to fill a disk."""
MOST_HEADER = 128 << 10
"""The most bytes of a tar file's header, of the padding around it, and of what is read ahead."""
GZIP, ZIP = b"\x1f\x8b", b"PK"
"""How packed files begin."""
_OTHERS = {
    GZIP: "packed with gzip, as backups are",
    ZIP: "a zip file",
    b"BZh": "packed with bzip2",
    b"\xfd7zXZ\0": "packed with xz",
    b"\x28\xb5\x2f\xfd": "packed with zstd",
    b"7z\xbc\xaf": "a 7z archive",
    b"SQLite format 3\0": "a database of SQLite",
    b"{": "JSON",
    b"[": "JSON",
}
OTHER_FORMS = ("JSON", "a zip file")
"""The kinds of files with memories that aren't a whole store."""
_TAR, _AT = b"ustar", 257
_AT_ONCE = 32 << 10
_ENTRY = b"PK\x01\x02"  # begins every entry of a zip's directory
_DRIVE = re.compile(r"[A-Za-z]:")
_DEEPEST = 4
"""How deep what we look for can be: data/memory/ledger/events/."""


class Tree(Protocol):
    """The files below a folder, or in a zip file."""

    name: str

    @property
    def names(self) -> Collection[str]:
        """The files' names."""
        ...

    def read(self, name: str) -> bytes:
        """Return a file's content. Raises Refused, and MemoryFault if the disk fails."""
        ...


def opened(name: str, content: bytes) -> Tree | None:
    """The zip file that these bytes are; None if they are something else. Raises Refused."""
    if len(content) > MOST_BYTES:
        raise Refused(_too_large(name))
    return _Zip(name, content) if content.startswith(ZIP) else None


def read_whole(path: Path, name: str, flags: int = os.O_RDONLY) -> bytes:
    """A regular file's content, at most MOST_BYTES. Raises Refused for anything else, and OSError."""
    with open(open_regular(path, flags), "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Refused(_too_large(name))
    return content


def kind_of(start: bytes) -> str:
    """What a file is by its first 512 bytes, as the end of "x is …"; "" if that is unknown."""
    if not start:
        return "empty"
    if start[_AT:].startswith(_TAR):
        return "a tar file that isn't packed with gzip"
    return next((what for begin, what in _OTHERS.items() if start.startswith(begin)), "")


def parse_json(name: str, content: bytes) -> Any:
    """Return the value of an unambiguous JSON text: no duplicate keys, no NaN, no endless nesting.

    Raises Refused, naming the file.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise Refused(f"{name} has the key {twice[:60]!r} twice in one object; remove one of them")
        return value

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise Refused(f"{name} holds the number {text[:40]}, which is too large")
        return value

    def constant(text: str) -> Any:
        raise Refused(f"{name} holds {text}, which is not JSON; write a number or null")

    try:
        text = content.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=unique, parse_float=number, parse_constant=constant)
    except RecursionError as error:
        raise Refused(f"{name} is nested too deep to be a memory; export it again") from error
    except ValueError as error:
        raise Refused(f"{name} is not JSON ({error}); correct it or export it again") from error


class _Budget:
    """How many files and bytes may still be read, or any number of them."""

    def __init__(self, of: str, most: int | None = MOST_UNPACKED) -> None:
        self._of = of
        self._left = most

    def take(self, name: str, size: int) -> None:
        if size > MOST_BYTES:
            raise Refused(_too_large(name))
        if self._left is None:
            return
        self._left -= size
        if self._left < 0:
            raise Refused(
                f"{self._of} unpacks to more than {MOST_UNPACKED // MIB} MiB; import it in smaller parts"
            )

    def count(self, files: int) -> None:
        if files > MOST_FILES and self._left is not None:
            raise Refused(
                f"{self._of} holds more than {MOST_FILES:,} files, which is the most; "
                "import it in smaller parts"
            )


def _too_large(name: str) -> str:
    return f"{name} is larger than {MOST_BYTES // MIB} MiB, which is the most; import it in smaller parts"


# ---------------------------------------------------------------------- folders


class Folder:
    """A folder on disk. Of its subfolders only those named in `wanted` are read; `most` bytes together."""

    def __init__(self, root: Path, wanted: Collection[str], *, most: int | None = MOST_UNPACKED) -> None:
        self.name = scrub(root.name or str(root))
        self.names: set[str] = set()
        self._root = root
        self._wanted = wanted
        self._links: set[str] = set()
        self._budget = _Budget(self.name, most)
        self._list("")

    def _list(self, prefix: str) -> None:
        with os.scandir(self._root / prefix) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_symlink():
                    self._links.add(name)
                    if entry.name in self._wanted:
                        raise Refused(_is_link(f"{self.name}/{name}"))
                elif entry.is_dir(follow_symlinks=False):
                    if entry.name in self._wanted and prefix.count("/") < _DEEPEST:
                        self._list(f"{name}/")
                    continue
                self.names.add(name)
                self._budget.count(len(self.names))

    def read(self, name: str) -> bytes:
        said = scrub(f"{self.name}/{name}")
        if name in self._links:
            raise Refused(_is_link(said))
        with faulting(f"{said} cannot be read"):
            content = read_whole(self._root / name, said, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        self._budget.take(said, len(content))
        return content


def _is_link(said: str) -> str:
    return f"{said} is a symbolic link; put a copy of the file in its place"


# ---------------------------------------------------------------------- zip files

_BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
)
"""Errors that Python's zipfile raises for a file that is damaged, or built to do damage."""


class _Zip:
    """A zip file in RAM, its directory checked before anything is unpacked."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self._budget, declared = _Budget(name), _Budget(name)
        self._budget.count(content.count(_ENTRY))
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
            entries = self._archive.infolist()
        except _BROKEN_ZIP as error:
            raise Refused(f"{name} is a damaged zip file ({error}); make it again") from error
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for entry in entries:
            said = _check_name(name, entry)
            if entry.filename.endswith("/"):
                continue
            if entry.filename in self._entries:
                raise Refused(f"{said} is there twice; make the zip file again")
            declared.take(said, entry.file_size)
            self._entries[entry.filename] = entry
        self.names: Mapping[str, zipfile.ZipInfo] = self._entries

    def read(self, name: str) -> bytes:
        entry, said = self._entries[name], f"{self.name}: {name}"
        try:
            with self._archive.open(entry) as file:
                content = file.read(entry.file_size + 1)
        except _BROKEN_ZIP as error:
            raise Refused(f"{said} cannot be unpacked ({error}); make the zip file again") from error
        if len(content) != entry.file_size:
            raise Refused(f"{said} does not have the size it declares; make the zip file again")
        self._budget.take(said, len(content))
        return content


def _check_name(archive: str, entry: zipfile.ZipInfo) -> str:
    """Return the entry's name for errors. Raises Refused if it must not be unpacked."""
    given = entry.orig_filename
    said = f"{archive}: {given[:200]!r}"
    if "\0" in given:
        raise Refused(f"{said} has a NUL in its name; make the zip file again")
    parts = entry.filename.removesuffix("/").split("/")
    if "\\" in given or _DRIVE.match(given) or any(part in ("", ".", "..") for part in parts):
        raise Refused(f"{said} points out of the zip file; make it again with relative names")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(f"{said} is a link or device; put a copy of the file in its place")
    if entry.flag_bits & 1:
        raise Refused(f"{said} is encrypted; make the zip file again without a password")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(f"{said} is packed in an unusual way; make the zip file again")
    return said


# ---------------------------------------------------------------------- tar files

BROKEN_TAR = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError, ValueError)
"""Errors for a tar file that is damaged, or built to do damage.

ValueError: `tarfile` takes what a header says of a sparse file for numbers, before we can look at it.
"""


class Entry(NamedTuple):
    """A file in a tar file: its name, which nobody has checked, its size, and its bytes, read in its turn."""

    name: str
    size: int
    file: IO[bytes]

    def parts(self) -> Iterator[bytes]:
        """Yield the content. Raises Refused if it is cut off."""
        left = self.size
        while part := self.file.read(_AT_ONCE):
            left -= len(part)
            yield part
        if left:
            raise Refused(f"it was cut off within {self.name}")


def tar_entries(file: BinaryIO) -> Iterator[Entry]:
    """Yield the files in a tar file that is packed with gzip, in order, to the end of its checksum.

    It can be of any size: nothing stays in RAM. Raises Refused, BROKEN_TAR, and OSError.
    """
    left = max(MOST_ALWAYS, MOST_TIMES * file.seek(0, 2))
    file.seek(0)
    if not (start := file.read(512)).startswith(GZIP):
        raise Refused(f"it is {kind_of(start) or 'not packed with gzip'}")
    file.seek(0)
    with _Bounded(file) as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        while True:
            packed.room = MOST_HEADER
            if (info := tar.next()) is None:
                break
            tar.members.clear()  # type: ignore[attr-defined] # else each one stays in RAM
            if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.sparse is not None:
                raise Refused(f"{info.name[:80]!r} in it isn't a regular file")
            if not 0 <= info.size <= left:
                raise Refused(f"it unpacks to more than {MOST_TIMES} times its size")
            left -= info.size
            packed.room = info.size + MOST_HEADER
            content = tar.extractfile(info)
            assert content is not None  # it is a regular file
            yield Entry(info.name, info.size, content)
        while rest := packed.read(_AT_ONCE):
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

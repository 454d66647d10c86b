"""Folders and zip files from untrusted sources, as names and bytes.

A name is relative, with "/" between its parts. Nothing outside the folder is ever opened, no link is
followed, and no more is unpacked than was declared, or than our limits allow. Every error is a Refused that
names the entry and the way out. Independent of what the files mean.
"""

import io
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from discoclaw.core.errors import MemoryFault, Refused
from discoclaw.core.text import scrub
from discoclaw.memory.exchange.layout import MIB, MOST_BYTES, MOST_FILES, MOST_UNPACKED
from discoclaw.store.files import open_regular

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


class _Budget:
    """How many bytes may still be read."""

    def __init__(self, of: str) -> None:
        self._of = of
        self._left = MOST_UNPACKED

    def take(self, name: str, size: int) -> None:
        self._left -= size
        if size > MOST_BYTES:
            raise Refused(too_large(name))
        if self._left < 0:
            raise Refused(
                f"{self._of} unpacks to more than {MOST_UNPACKED // MIB} MiB; import it in smaller parts"
            )


def too_large(name: str) -> str:
    """The error for a file that is too large."""
    return f"{name} is larger than {MOST_BYTES // MIB} MiB, which is the most; import it in smaller parts"


def _too_many(name: str) -> str:
    return f"{name} holds more than {MOST_FILES:,} files, which is the most; import it in smaller parts"


def read_whole(path: Path, name: str) -> bytes:
    """A regular file's content, at most MOST_BYTES. Raises Refused for anything else, and OSError."""
    return _read(open_regular(path), name)


def _read(handle: int, name: str) -> bytes:
    with open(handle, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Refused(too_large(name))
    return content


# ---------------------------------------------------------------------- folders


class Folder:
    """A folder on disk. Of its subfolders only those named in `wanted` are read."""

    def __init__(self, root: Path, wanted: Collection[str]) -> None:
        self.name = scrub(root.name or str(root))
        self.names: set[str] = set()
        self._root = root
        self._wanted = wanted
        self._links: set[str] = set()
        self._budget = _Budget(self.name)
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
                if len(self.names) > MOST_FILES:
                    raise Refused(_too_many(self.name))

    def read(self, name: str) -> bytes:
        said = scrub(f"{self.name}/{name}")
        if name in self._links:
            raise Refused(_is_link(said))
        try:
            handle = open_regular(self._root / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            content = _read(handle, said)
        except OSError as error:
            raise MemoryFault(f"{said} cannot be read: {error}") from error
        self._budget.take(said, len(content))
        return content


def _is_link(said: str) -> str:
    return f"{said} is a symbolic link; put a copy of the file in its place"


# ---------------------------------------------------------------------- zip files

_BROKEN = (
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


class Zip:
    """A zip file in RAM, its directory checked before anything is unpacked."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self._budget = _Budget(name)
        if content.count(_ENTRY) > MOST_FILES:
            raise Refused(_too_many(name))
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
            entries = self._archive.infolist()
        except _BROKEN as error:
            raise Refused(f"{name} is a damaged zip file ({error}); make it again") from error
        self._entries: dict[str, zipfile.ZipInfo] = {}
        declared = _Budget(name)
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
        except _BROKEN as error:
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

"""Who was erased, and when, without saying who: `tombstones.jsonl`, one line an erasing.

    {"mark": HMAC-SHA256(key, subject) in hex, "at": ms}

The key is 32 random bytes in `tombstone.key`, made with the first line and readable by us alone. Whoever has
the file without the key can not tell whom it is about; whoever has both can ask only for somebody they know.
Of two lines about one subject the later time counts. A line that can not be read is said and left as it is;
a key that is missing or wrong stops the start, since what was erased could then be learned again.
Blocking. Knows nothing about what erasing does.
"""

import contextlib
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
from pathlib import Path

from discoclaw.core.errors import MemoryFault
from discoclaw.core.times import valid_ms
from discoclaw.memory.files import append_synced, sync_folder

log = logging.getLogger(__name__)

KEY_BYTES = 32
_MARK = re.compile(r"[0-9a-f]{64}")


class Tombstones:
    """The tombstones below `root` (`data/memory`), read once and then in RAM. `load` comes first."""

    def __init__(self, root: Path) -> None:
        self._path = root / "tombstones.jsonl"
        self._key_path = root / "tombstone.key"
        self._key: bytes | None = None
        self._marks: dict[str, int] = {}

    def load(self) -> None:
        """Read the files. Raises MemoryFault when they are there and can not be used."""
        self._key, self._marks = None, {}
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        except OSError as error:
            raise MemoryFault(f"{self._path} can not be read: {error}") from error
        for number, line in enumerate(lines, start=1):
            self._take(number, line)
        self._key = self._read_key()
        if self._marks and self._key is None:
            raise MemoryFault(
                f"{self._key_path} is missing; without it nobody can tell who had their memory erased. "
                f"Put it back, or move {self._path.name} away if what they said may be learned again"
            )

    def erased_at(self, subject: str) -> int:
        """When (ms) a subject was last erased; -1 when never."""
        if self._key is None or not self._marks:
            return -1
        return self._marks.get(_mark(self._key, subject), -1)

    def any(self) -> bool:
        """Whether anybody was ever erased."""
        return bool(self._marks)

    def add(self, subject: str, at: int) -> None:
        """Note an erasing, durably; one that is noted already is not noted twice. Raises OSError."""
        if self.erased_at(subject) >= at:
            return
        if self._key is None:
            self._key = self._make_key()
        mark = _mark(self._key, subject)
        line = json.dumps({"mark": mark, "at": at}).encode() + b"\n"
        size, torn = _ending(self._path)
        append_synced(self._path, b"\n" + line if torn else line, expected_size=size)
        self._marks[mark] = at

    def _take(self, number: int, line: bytes) -> None:
        try:
            value = json.loads(line)
            mark, at = value["mark"], value["at"]
        except (ValueError, TypeError, KeyError, RecursionError):
            mark = at = None
        if isinstance(mark, str) and _MARK.fullmatch(mark) and valid_ms(at):
            self._marks[mark] = max(at, self._marks.get(mark, -1))
        elif line.strip():
            log.error("%s, line %d is no tombstone; it is left out", self._path, number)

    def _read_key(self) -> bytes | None:
        try:
            key = self._key_path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MemoryFault(f"{self._key_path} can not be read: {error}") from error
        if len(key) != KEY_BYTES:
            raise MemoryFault(f"{self._key_path} is no key: it has {len(key)} bytes, not {KEY_BYTES}")
        return key

    def _make_key(self) -> bytes:
        """A new key on disk, whole or not at all, that nobody else could ever read."""
        path, key = self._key_path, secrets.token_bytes(KEY_BYTES)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            handle = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
            )
            with os.fdopen(handle, "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(path.parent)
        return key


def _mark(key: bytes, subject: str) -> str:
    return hmac.new(key, subject.encode("utf-8"), hashlib.sha256).hexdigest()


def _ending(path: Path) -> tuple[int, bool]:
    """A file's length, and whether its last line is unfinished."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return size, file.read(1) not in (b"", b"\n")
    except FileNotFoundError:
        return 0, False

"""Records who was erased and when, without naming them: `tombstones.jsonl`, one line for each erasing.

    {"mark": HMAC-SHA256(key, subject) in hex, "at": ms}

The key is 32 random bytes in `tombstone.key`, created once, with the first line, and readable only by the
bot's user. Without the key nobody can tell whom the file is about; with both, one can only check for a known
person. If two lines are about one subject, the later time counts. An unreadable line is reported and left as
it is. A missing or wrong key stops the start, since what was erased could otherwise be learned again.
Blocking. Independent of what erasing does.
"""

import hashlib
import hmac
import json
import logging
import re
import secrets
from pathlib import Path

from discoclaw.core.errors import MemoryFault, faulting
from discoclaw.core.times import valid_ms
from discoclaw.store.plain import disk_at
from discoclaw.store.port import NO_LOG, Disk, joined, rewrite

log = logging.getLogger(__name__)

FILE, KEY = "tombstones.jsonl", "tombstone.key"
KEY_BYTES = 32
_MARK = re.compile(r"[0-9a-f]{64}")


class Tombstones:
    """The tombstones of a disk, or below `data/memory`, read once and then in RAM. Call `load` first."""

    def __init__(self, where: Path | Disk) -> None:
        disk = disk_at(where)
        self._lines, self._documents = disk.log(FILE), disk.documents("")
        self._path, self._key_path = self._lines.path, self._documents.folder / KEY
        self._key: bytes | None = None
        self._marks: dict[str, int] = {}
        self.marks: list[str] = []
        """The marks of all tombstones, in the order in which they became known; some stand there twice."""
        self._head = NO_LOG

    def load(self) -> None:
        """Read the files. Raises MemoryFault if they exist and cannot be used."""
        self._key, self._marks, self._head = None, {}, NO_LOG
        self.catch_up()

    def catch_up(self) -> None:
        """Read what other processes added. Raises MemoryFault; what was known is then still known."""
        with faulting(f"{self._path} cannot be read"):
            content, head = self._lines.load(self._head)
        for line in content.splitlines():
            self._take(line)
        if self._key is None:
            self._key = self.key()
        self._head = head
        if self._marks and self._key is None:
            raise MemoryFault(
                f"{self._key_path} is missing; without it nobody can tell who had their memory erased. "
                f"Put it back, or move {self._path.name} away if what they said may be learned again"
            )

    def erased_at(self, subject: str) -> int:
        """When (ms) a subject was last erased; -1 for never."""
        if self._key is None or not self._marks:
            return -1
        return self._marks.get(_mark(self._key, subject), -1)

    def mark(self, subject: str) -> str:
        """What stands for a subject in its tombstone; "" while there is no key, and so no tombstone."""
        return _mark(self._key, subject) if self._key is not None else ""

    def any(self) -> bool:
        """Whether anybody was ever erased."""
        return bool(self._marks)

    def add(self, subject: str, at: int) -> None:
        """Record an erasing durably, unless it is recorded already. Raises OSError."""
        if self.erased_at(subject) >= at:
            return
        if self._key is None:
            self._key = self._make_key()
        mark = _mark(self._key, subject)
        line = json.dumps({"mark": mark, "at": at}).encode() + b"\n"
        rewrite(self._lines, lambda before: joined(before, line))
        self._know(mark, at)

    def note(self, subject: str, at: int) -> None:
        """Count somebody as erased whose tombstone another process is about to write.

        Raises MemoryFault and OSError.
        """
        if self._key is None:
            self._key = self._make_key()
        self._know(_mark(self._key, subject), at)

    def _know(self, mark: str, at: int) -> None:
        if at > self._marks.get(mark, -1):
            self._marks[mark] = at
            self.marks.append(mark)

    def _take(self, line: bytes) -> None:
        try:
            value = json.loads(line)
            mark, at = value["mark"], value["at"]
        except (ValueError, TypeError, KeyError, RecursionError):
            mark = at = None
        if isinstance(mark, str) and _MARK.fullmatch(mark) and valid_ms(at):
            self._know(mark, at)
        elif line.strip():
            log.error("%s: %r isn't a tombstone; it is left out", self._path, line[:80])

    def key(self) -> bytes | None:
        """The key on disk; None if there is none. Raises MemoryFault if it cannot be used."""
        with faulting(f"{self._key_path} cannot be read"):
            key = self._documents.find(KEY)
        if key is not None and len(key) != KEY_BYTES:
            raise MemoryFault(f"{self._key_path} isn't a key: it has {len(key)} bytes, not {KEY_BYTES}")
        return key

    def _make_key(self) -> bytes:
        """The key that is on disk now, made if there was none; never readable by another user."""
        made = secrets.token_bytes(KEY_BYTES)
        self._documents.change(KEY, lambda before: made if before is None else None)
        return self.key() or made


def _mark(key: bytes, subject: str) -> str:
    return hmac.new(key, subject.encode("utf-8"), hashlib.sha256).hexdigest()


def check(disk: Disk) -> None:
    """Raise MemoryFault, or OSError, if a disk has marks that cannot be used with its key."""
    if _marks(disk) and Tombstones(disk).key() is None:
        raise MemoryFault(
            f"{disk.documents('').folder / KEY} is missing; without it nobody can tell who had their memory "
            "erased, so put it back"
        )


def bring(source: Disk, target: Disk) -> bool:
    """Add another store's tombstones to those here. Returns whether there were any.

    Marks made with another key are meaningless here: MemoryFault, unless there are none here yet. Raises
    OSError.
    """
    theirs, ours = _marks(source), _marks(target)
    if not theirs:
        return False
    key = source.documents("").read(KEY)
    known = target.documents("").change(KEY, lambda _: key if not _marks(target) else None)
    if known != key:
        raise MemoryFault(
            f"{source.log(FILE).path} and {target.log(FILE).path} are of different keys and cannot become "
            "one; move one of them away with its key"
        )
    new = [line for line in theirs if line not in ours]
    rewrite(target.log(FILE), lambda before: joined(before, b"".join(line + b"\n" for line in new)))
    return True


def _marks(disk: Disk) -> list[bytes]:
    return [line for line in disk.log(FILE).read().splitlines() if line.strip()]

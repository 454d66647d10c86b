"""The ledger of one subject: a file of commits, one line each. The only code that writes history.

Appending a line is the commit; a crash leaves all of it or none. A torn last line (no newline, or not
parsable at the very end) is dropped on load and kept aside. A damaged line elsewhere is said, and the
lines before it still load: history behind a damaged line hangs on it, so it is not guessed at, nothing is
rewritten, and nothing more is appended until somebody repairs the file.
Knows nothing about views, Discord or who asks.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from discoclaw.core.errors import LedgerDamaged, MemoryFault, NewerSchema
from discoclaw.core.event import Commit, decode_line, encode_line
from discoclaw.memory.files import append_synced, keep_aside

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that does not verify: its number, from 1, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a ledger file holds: the verified chain, its length in bytes, and what is wrong with the rest.

    `torn` counts the bytes of an unfinished last line.
    """

    commits: tuple[Commit, ...]
    size: int
    torn: int = 0
    damage: Damage | None = None


def read(path: Path) -> Loaded:
    """Load and verify a ledger; writes nothing. A missing file is an empty ledger. Raises OSError."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Loaded((), 0)
    commits: list[Commit] = []
    position = number = 0
    while position < len(content):
        number += 1
        end = content.find(b"\n", position)
        if end < 0:
            return Loaded(tuple(commits), position, torn=len(content) - position)
        try:
            commit = decode_line(content[position:end])
            if commit.parent_id != (commits[-1].id if commits else None):
                raise LedgerDamaged(f"commit {commit.id} does not follow the one before it")
        except (LedgerDamaged, NewerSchema) as fault:
            if (
                end + 1 == len(content)
                and isinstance(fault, LedgerDamaged)
                and b"\0" in content[position:end]
            ):
                # A power cut can leave a last block of zeros with its length already recorded.
                return Loaded(tuple(commits), position, torn=len(content) - position)
            return Loaded(tuple(commits), position, damage=Damage(number, str(fault)))
        commits.append(commit)
        position = end + 1
    return Loaded(tuple(commits), position)


class Ledger:
    """A subject's ledger, open for appending behind what was `loaded`. Callers hold the subject's lock."""

    def __init__(self, path: Path, loaded: Loaded) -> None:
        self.path = path
        self.damage = loaded.damage
        self._size = loaded.size
        self._torn = loaded.torn
        if loaded.torn:
            log.warning("%s: a torn last line of %d bytes is left out", path, loaded.torn)
        if loaded.damage:
            log.error(
                "%s: line %d is damaged (%s); the lines before it are used and nothing is appended",
                path,
                loaded.damage.line,
                loaded.damage.reason,
            )

    def append(self, commit: Commit, *, stamp: str) -> None:
        """Write one commit, durably. `stamp` names a file kept aside, should one be needed.

        Raises MemoryFault when the ledger is damaged or the disk does not take the line; nothing is then
        recorded, on disk or here.
        """
        if self.damage:
            raise MemoryFault(
                f"{self.path.name}: line {self.damage.line} is damaged ({self.damage.reason}); "
                "nothing is recorded until it is repaired"
            )
        line = encode_line(commit)
        try:
            if self._torn:
                self._drop_torn(stamp)
            append_synced(self.path, line, expected_size=self._size)
        except OSError as error:
            raise MemoryFault(f"{self.path.name} could not be written: {error}") from error
        self._size += len(line)

    def _drop_torn(self, stamp: str) -> None:
        aside = keep_aside(self.path, "torn", stamp)
        with self.path.open("r+b") as file:
            file.truncate(self._size)
            os.fsync(file.fileno())
        log.warning("%s: the torn last line is kept in %s", self.path, aside.name)
        self._torn = 0

"""The ledger of one subject, from bytes to records: commits and refs, one line each. Reads, and repairs.

A torn last line (no newline, or not parsable at the very end) is left out. A damaged line elsewhere is
reported, and all other lines still load. Nothing is rewritten until somebody asks for `repair`, which keeps
the original. Only `subject` appends. Independent of views, of Discord and of the callers.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from discoclaw.core.errors import LedgerDamaged, MemoryFault, NewerSchema
from discoclaw.core.event import Commit, Record, Ref, decode_line, encode_line
from discoclaw.core.history import History
from discoclaw.core.times import iso_ms
from discoclaw.store.plain import log_at
from discoclaw.store.port import Head, Ledgers, Log

log = logging.getLogger(__name__)
"""Warnings about ledgers; the command line leaves them out, because it reports them itself."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that does not verify: its number, from 1, and why. `newer`: a newer version wrote it."""

    line: int
    reason: str
    newer: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A ledger's content: its verified records in the order of its lines, its length in bytes, its faults.

    `torn` counts the bytes of an unfinished last line, after `size`. `generation` is that of the log's head.
    """

    records: tuple[Record, ...]
    size: int
    torn: int = 0
    damage: tuple[Damage, ...] = ()
    generation: int = 0

    @property
    def head(self) -> Head:
        """The end of the sound lines."""
        return Head(self.size, self.generation)

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The commits among the records."""
        return tuple(record for record in self.records if isinstance(record, Commit))

    @property
    def history(self) -> History:
        """The records as a history."""
        return History(self.records)


def read(where: Path | Log) -> Loaded:
    """Load and verify a ledger; writes nothing. A missing one counts as empty. Raises OSError."""
    content, head = log_at(where).load()
    return decode(content, generation=head.generation)


def decode(content: bytes, *, known: frozenset[str] = frozenset(), generation: int = 0) -> Loaded:
    """Verify the lines of a ledger. `known` are commits on earlier lines."""
    records: list[Record] = []
    lines: list[int] = []
    damage: list[Damage] = []
    position = number = 0
    while position < len(content):
        number += 1
        end = content.find(b"\n", position)
        if end < 0:
            break
        try:
            record = decode_line(content[position:end])
            records.append(record)
            lines.append(number)
        except (LedgerDamaged, NewerSchema) as fault:
            newer = isinstance(fault, NewerSchema)
            if end + 1 == len(content) and not newer and b"\0" in content[position:end]:
                break  # a power cut can leave a last block of zeros with its length already recorded
            damage.append(Damage(number, str(fault), newer))
        position = end + 1
    if not damage:
        damage = _orphans(records, lines, {*known, *(record.id for record in records)})
    return Loaded(tuple(records), position, len(content) - position, tuple(damage), generation)


def begun(lines: Log, records: Sequence[Record]) -> tuple[Loaded, bytes]:
    """Write a ledger from verified records. Returns what it holds, and its bytes. Raises OSError."""
    content = b"".join(map(encode_line, records))
    lines.replace(content)
    damage = _orphans(records, range(1, len(records) + 1), {record.id for record in records})
    loaded = Loaded(tuple(records), len(content), damage=tuple(damage), generation=lines.head().generation)
    return loaded, content


def _orphans(records: Sequence[Record], lines: Sequence[int], here: set[str]) -> list[Damage]:
    """Commits whose parent is missing, unless a repair has accepted that."""
    mended = {one.head for one in records if isinstance(one, Ref) and one.action == "mend"}
    found = []
    for number, record in zip(lines, records, strict=True):
        parent = None if isinstance(record, Ref) else record.parent_id
        if parent is not None and parent not in here and parent not in mended:
            found.append(Damage(number, f"commit {record.id} follows {parent}, which is not here"))
    return found


@dataclass(frozen=True, slots=True)
class Repaired:
    """The outcome of a repair: the damage that is gone, and the copy of the original."""

    damage: tuple[Damage, ...]
    kept_as: Path


def repair(where: Path | Log, *, now_ms: int, stamp: str) -> Repaired | None:
    """Rewrite a ledger from the lines that verify; None if nothing is wrong with it.

    The original is kept beside it as `<name>.damaged-<stamp>`. A commit whose parent is lost stays, with a
    ref that records the loss. Raises MemoryFault when a line is of a newer version, or somebody else writes
    meanwhile, and OSError when the disk fails.
    """
    lines = log_at(where)
    content, head = lines.load()
    path, loaded = lines.path, decode(content)
    if not loaded.damage and not loaded.torn:
        return None
    newer = [one for one in loaded.damage if one.newer]
    if newer:
        raise MemoryFault(f"{path.name}, {newer[0]}; a newer discoclaw wrote it, so use that one")
    history = loaded.history
    now_ms = history.branches.next_ms(now_ms)
    lost = sorted(set(history.orphans().values()))
    mends = [
        Ref(
            action="mend",
            branch="",
            head=parent,
            timestamp=iso_ms(now_ms + number),
            metadata={"by": "repair"},
        )
        for number, parent in enumerate(lost)
    ]
    aside = lines.keep_aside("damaged", stamp)
    lines.replace(b"".join(encode_line(record) for record in (*loaded.records, *mends)), after=head)
    log.warning("%s: repaired; what was there is kept as %s", path, aside.name)
    return Repaired(loaded.damage, aside)


# ----------------------------------------------------------------------
# Finds the ledgers that name messages. It reads all of them: 65 MB (1,000 ledgers) take 0.1 s.

_SOURCE = re.compile(rb"discord:[0-9]{1,20}/([0-9]{1,20})")


def naming(ledgers: Ledgers, message_ids: frozenset[bytes]) -> list[str]:
    """The subjects whose ledgers name one of these messages. Blocking. Raises OSError."""
    found = []
    for subject, _ in ledgers.by_age():
        content = ledgers.log(subject).read()
        if any(one[1] in message_ids for one in _SOURCE.finditer(content)):
            found.append(subject)
    return found

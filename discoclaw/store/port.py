"""The place of memory: the narrow port through which this room touches a store.

    Log        the lines of one ledger: read whole, appended to behind a known length
    Ledgers    the logs of all subjects
    Documents  the named texts of one folder, each replaced whole
    Disk       all of it

Names and bytes are the same in every store, so moving from one to another means copying. A `path` says in
messages where something lies; only in plain files (`plain`) is there a file of that name. Everything blocks,
and raises OSError, the text of which says what is wrong; `append` raises Overtaken where somebody else wrote.
In a store that several processes share, every write raises LeaseLost where `fence` says so. Knows nothing
about what the bytes mean.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pydantic import JsonValue

LEDGERS, ROLLING, CURSORS, INTENTS = "ledger", "rolling", "cursors", "erasing"
"""The folders of a disk; what belongs to no single subject is in ""."""
PROFILES, GROUPS = "profiles", "groups"
"""The folders of `<user id>.json` and `<channel id>.json`: who somebody is, and what a channel is about."""
CHOICES = "choices"
"""The folder of `<user id>.json`, what each person chose, in a store that several processes share."""
TOOLS = "tools"
"""The folder of logs about the tools that were called, `<subject>.jsonl`."""
ANSWERS = "answers"
"""The folder of logs that say for whom each of the bot's messages was, `<channel id>.<period>.jsonl`."""
USAGE = "usage"
"""The folder of logs about what calls of models used, `<month>.jsonl`."""

_LEDGER = re.compile(rf"{LEDGERS}/([A-Za-z0-9_-]+)\.jsonl")

Change = Callable[[bytes | None], bytes | None]

Mark: TypeAlias = JsonValue
"""A moment of a store, of which only the store knows what it means; JSON, so that a cursor can keep it."""


class Head(NamedTuple):
    """How far a log reaches: its length in bytes, and which log it is.

    The generation changes when a log is written anew: what follows an equal length is then something else.
    Files keep 0, because only one process uses them.
    """

    size: int = 0
    generation: int = 0

    def reaches(self, other: "Head") -> bool:
        """Whether the log of this head begins with all that another head had."""
        return self.size >= other.size and (self.generation == other.generation or not other.size)

    def as_json(self) -> JsonValue:
        """The head as a cursor keeps it to see that a log changed; 0 for an empty one."""
        return [self.size, self.generation] if self.generation and self.size else self.size


NO_LOG = Head()
"""The head of a log that does not exist."""


class Log(Protocol):
    """Lines that are only ever appended, each with its newline."""

    @property
    def path(self) -> Path:
        """The path that messages show."""
        ...

    def read(self) -> bytes:
        """Return all lines; empty if the log does not exist."""
        ...

    def size(self) -> int:
        """Return the length in bytes; 0 if the log does not exist."""
        ...

    def head(self) -> Head:
        """Return how far it reaches."""
        ...

    def load(self, since: Head = NO_LOG) -> tuple[bytes, Head]:
        """Return the lines after a head, and the head as of the same moment.

        All lines, if the log no longer begins with what that head had (`Head.reaches`).
        """
        ...

    def append(self, content: bytes, *, after: Head) -> Head:
        """Append lines durably, all or nothing, to a log of exactly that head; return the new one."""
        ...

    def hold(self, since: Head = NO_LOG) -> "tuple[Held, bytes, Head]":
        """Keep other processes from appending; waits for one that does.

        Returns the log to write to, and what `load` of that head returns now.
        """
        ...

    def cut(self, size: int) -> None:
        """Durably drop everything after that many bytes."""
        ...

    def replace(self, content: bytes) -> None:
        """Replace the content durably, all or nothing."""
        ...

    def keep_aside(self, label: str, stamp: str) -> Path:
        """Copy the log, as a backup before a change. Returns where the copy is."""
        ...


@runtime_checkable
class Held(Log, Protocol):
    """A log that no other process appends to, until the first write here or `release`."""

    def release(self) -> None:
        """Let others append again; may be called again."""
        ...


class Ledgers(Protocol):
    """The ledgers of all subjects."""

    def log(self, subject: str) -> Log:
        """The ledger of one subject, whether it exists or not."""
        ...

    def by_age(self) -> list[tuple[str, int]]:
        """The subjects that have a ledger, with its size (bytes), in the order in which they changed."""
        ...

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        """The subjects whose ledgers changed since a mark, in that order, and the mark for the next time.

        None stands for the beginning: all of them. One that is gone by now may be among them. They may be the
        first of many; then the mark is where the others begin.
        """
        ...


class Documents(Protocol):
    """The named texts of one folder."""

    @property
    def in_touch(self) -> bool:
        """Whether what was read before may be used: others may change it while the store is out of reach."""
        ...

    @property
    def folder(self) -> Path:
        """The path that messages show."""
        ...

    def names(self) -> list[str]:
        """Return all names in the folder, sorted, including folders in it, copies and leftovers."""
        ...

    def read(self, name: str) -> bytes:
        """Return one text. Raises FileNotFoundError if it does not exist."""
        ...

    def read_all(self) -> dict[str, bytes]:
        """Return all texts in the folder by their names, in the order of these."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Replace a text durably, all or nothing. Only the bot's user reads it."""
        ...

    def change(self, name: str, work: Change) -> bytes | None:
        """Replace a text by what `work` makes of it, while nobody else writes it. Returns what is there then.

        `work` gets None for a text that does not exist, and returns None to leave it as it is. It may run
        more than once. In files, which one process uses, its callers have to keep each other out.
        """
        ...

    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        """Remove these texts durably. Returns how many there were, and which stay and why."""
        ...

    def keep_aside(self, name: str, label: str, stamp: str) -> Path:
        """Copy a text, as a backup before a change. Returns where the copy is."""
        ...


class Disk(Protocol):
    """A store. `durable` is the folder of the files that people edit by hand, if the store has any."""

    @property
    def name(self) -> str:
        """Its name in the settings."""
        ...

    @property
    def remembers(self) -> bool:
        """Whether it stores anything about people at all."""
        ...

    @property
    def in_touch(self) -> bool:
        """Whether what was read before is still true, as `Documents.in_touch` says."""
        ...

    @property
    def shared(self) -> bool:
        """Whether several processes may use it at the same time."""
        ...

    @property
    def durable(self) -> Path | None: ...

    @property
    def ledgers(self) -> Ledgers: ...

    def documents(self, folder: str) -> Documents:
        """The texts of one of the folders above; for the ledgers these include the logs."""
        ...

    def log(self, name: str) -> Log:
        """A log beside the folders."""
        ...

    def open(self) -> None:
        """Prepare it for writing."""
        ...

    def check(self) -> str | None:
        """The fault of the store as a whole, and the way out; None if it is sound or does not exist."""
        ...

    def rescue(self, stamp: str) -> list[str]:
        """Save what can be read of a damaged store. Returns sentences about what was done.

        The original is kept. Nobody else may use the store meanwhile.
        """
        ...

    def close(self) -> None: ...

    def wipe(self) -> None:
        """Destroy all remains of removed content."""
        ...

    def frozen(self, beside: Path) -> AbstractContextManager["Disk"]:
        """The store as it was at one moment, to be read while others write.

        Files have no such moment: of them it is the store itself. `beside` is a folder for a temporary copy.
        """
        ...


@runtime_checkable
class Fillable(Protocol):
    """A database, which takes many texts at once."""

    def fill(self, texts: Iterable[tuple[str, bytes]]) -> None:
        """Write logs (`.jsonl`) and other texts by their names in the store, all of them or none.

        Raises Refused if processes share it and one uses it, or if it has ledgers; and OSError.
        """
        ...


@runtime_checkable
class Tabled(Fillable, Protocol):
    """A database that has tables beside the texts, which only a database of its kind can take."""

    @property
    def tables_beside(self) -> Mapping[str, str]:
        """The tables, by names of files for them, which say which version they have."""
        ...

    def copy_out(self, table: str, file: BinaryIO) -> None:
        """Write a table to a file. Raises OSError."""
        ...

    def fill(self, texts: Iterable[tuple[str, bytes]], tables: Mapping[str, Path] | None = None) -> None:
        """Write texts as `Fillable.fill`, and `tables`, the files of all tables by the names of these."""
        ...


def is_log(name: str) -> bool:
    """Whether a name in the store is a log's, and not that of a text that is replaced whole."""
    return name.endswith(".jsonl")


def subject_of(name: str) -> str | None:
    """The subject of a ledger's path in the store; None for the path of anything else."""
    found = _LEDGER.fullmatch(name)
    return found[1] if found is not None else None


def changed(by_age: Iterable[tuple[str, int]], mark: Mark) -> tuple[list[str], Mark]:
    """`Ledgers.since` for a store that looks at all its ledgers."""
    known = mark if isinstance(mark, dict) else {}
    sizes: dict[str, JsonValue] = dict(by_age)
    gone = sorted(known.keys() - sizes.keys())
    return [*gone, *(subject for subject in sizes if known.get(subject) != sizes[subject])], sizes


def change_alone(folder: Documents, name: str, work: Change) -> bytes | None:
    """`Documents.change` for a store that one process uses."""
    try:
        before: bytes | None = folder.read(name)
    except FileNotFoundError:
        before = None
    after = work(before)
    if after is None or after == before:
        return before
    folder.write(name, after)
    return after


def drop(folder: Documents, name: str) -> bool:
    """Remove one text durably. Returns whether it existed. Raises OSError if it could not be removed."""
    removed, left = folder.remove([name])
    if left:
        raise OSError("; ".join(left))
    return removed > 0


# ----------------------------------------------------------------------
# Reads and writes logs of JSON lines beside the ledgers. Blocking.


def line_of(value: object) -> bytes:
    """A value as one line, without spaces, with its newline."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def values_in(content: bytes) -> Iterator[object]:
    """Yield the values of the lines, in order. Blank lines and invalid JSON are skipped."""
    for line in content.splitlines():
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue


def joined(before: bytes, lines: bytes) -> bytes:
    """A log with more lines; an unfinished last line stays on a line of its own."""
    torn = before and not before.endswith(b"\n")
    return before + (b"\n" if torn and lines else b"") + lines


def rewrite(log: Log, change: Callable[[bytes], bytes]) -> None:
    """Let `change` make a log's new content of the old one, while nobody else writes to it, durably.

    What only adds lines is appended. Raises OSError and MemoryFault.
    """
    held, before, head = log.hold()
    try:
        after = change(before)
        if after != before:
            if after.startswith(before):
                held.append(after[len(before) :], after=head)
            else:
                held.replace(after)
    finally:
        held.release()

"""The place of memory: the narrow port through which this room touches a store.

    Log        the lines of one ledger: read whole, appended to behind a known length
    Ledgers    the logs of all subjects
    Documents  the named texts of one folder, each replaced whole
    Disk       all of it
    Presence   of one process among several on one store: whether it may write and use its RAM

Names and bytes are the same in every store, so moving from one to another means copying. A `path` says in
messages where something lies; only in plain files (`plain`) is there a file of that name. Everything blocks,
and raises OSError, the text of which says what is wrong. Nobody ever holds anything: what is written on what
was read names it, and is refused where somebody else wrote since (`after` of a log, which raises Overtaken;
`replace` of a text). A store that several processes share checks inside each transaction that its process
still counts, so one that was stopped can't commit what another one does by now: every write may raise
LeaseLost. Knows nothing about what the bytes mean.
"""

import json
import random
import re
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import JsonValue

from discoclaw.core.errors import Overtaken

LEDGERS, ROLLING, CURSORS, INTENTS = "ledger", "rolling", "cursors", "erasing"
"""The folders of a disk; what belongs to no single subject is in ""."""
PROFILES, GROUPS = "profiles", "groups"
"""The folders of `<user id>.json` and `<channel id>.json`: who somebody is, and what a channel is about."""
CHOICES = "choices"
"""The folder of `<user id>.json`, what each person chose, in a store that several processes share."""
DURABLE = "durable"
"""The folder of `<user id>.json`, the files that people edit by hand; only plain files have one."""
TOOLS = "tools"
"""The folder of logs about the tools that were called, `<subject>.jsonl`."""
ANSWERS = "answers"
"""The folder of logs that say for whom each of the bot's messages was, `<channel id>.<period>.jsonl`."""
USAGE = "usage"
"""The folder of logs about what calls of models used, `<month>.jsonl`."""

_LEDGER = re.compile(rf"{LEDGERS}/([A-Za-z0-9_-]+)\.jsonl")

TRIES: Final = 50
"""How often a change is made again that other processes overtake."""

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


def overtaken(path: Path, head: Head, expected: Head) -> Overtaken:
    """The error for a log that reaches elsewhere than whoever writes to it knows."""
    return Overtaken(f"{path} was changed by somebody else ({head.size} bytes, not {expected.size})")


class Log(ABC):
    """Lines that are only ever appended, each with its newline."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """The path that messages show."""

    @property
    @abstractmethod
    def beside(self) -> "Documents":
        """The texts of its folder, among which copies of it are kept."""

    @abstractmethod
    def head(self) -> Head:
        """Return how far it reaches; `NO_LOG` if it does not exist."""

    @abstractmethod
    def read(self) -> bytes:
        """Return all lines; empty if the log does not exist."""

    def load(self, since: Head = NO_LOG) -> tuple[bytes, Head]:
        """Return the lines after a head, and the head as of the same moment.

        All lines, if the log no longer begins with what that head had (`Head.reaches`).
        """
        content = self.read()
        head = Head(len(content))
        return content[since.size :] if head.reaches(since) else content, head

    @abstractmethod
    def append(self, content: bytes, *, after: Head) -> Head:
        """Append lines durably, all or nothing, to a log of exactly that head; return the new one."""

    @abstractmethod
    def cut(self, size: int) -> None:
        """Durably drop everything after that many bytes."""

    @abstractmethod
    def replace(self, content: bytes, *, after: Head | None = None) -> None:
        """Replace the content durably, all or nothing; with `after`, only of a log of exactly that head."""

    def size(self) -> int:
        """Return the length in bytes; 0 if the log does not exist."""
        return self.head().size

    def keep_aside(self, label: str, stamp: str) -> Path:
        """Copy the log, as a backup before a change. Returns where the copy is."""
        return self.beside.put_aside(self.path.name, self.read(), label, stamp)


class Ledgers(ABC):
    """The ledgers of all subjects."""

    def __init__(self, disk: "Disk") -> None:
        self._disk = disk

    def log(self, subject: str) -> Log:
        """The ledger of one subject, whether it exists or not."""
        return self._disk.log(f"{LEDGERS}/{subject}.jsonl")

    @abstractmethod
    def by_age(self) -> list[tuple[str, int]]:
        """The subjects that have a ledger, with its size (bytes), in the order in which they changed."""

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        """The subjects whose ledgers changed since a mark, in that order, and the mark for the next time.

        None stands for the beginning: all of them. One that is gone by now may be among them. They may be the
        first of many; then the mark is where the others begin. By default a mark is the size of each.
        """
        return changed(self.by_age(), mark)


class Documents(ABC):
    """The named texts of one folder."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The path that messages show."""

    @property
    def in_touch(self) -> bool:
        """Whether what was read before may be used: others may change it while the store is out of reach."""
        return True

    @abstractmethod
    def names(self) -> list[str]:
        """Return all names in the folder, sorted, including folders in it, copies and leftovers."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return one text. Raises FileNotFoundError if it does not exist."""

    def find(self, name: str) -> bytes | None:
        """Return one text, or None if it does not exist."""
        try:
            return self.read(name)
        except FileNotFoundError:
            return None

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Replace a text durably, all or nothing. Only the bot's user reads it."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> tuple[int, list[str]]:
        """Remove these texts durably. Returns how many there were, and which stay and why."""

    def read_all(self) -> dict[str, bytes]:
        """Return all texts in the folder by their names, in the order of these."""
        return {name: self.read(name) for name in self.names()}

    def replace(self, name: str, content: bytes, before: bytes | None) -> bool:
        """Write a text if what is there is still `before`; None stands for none. Returns whether it was.

        In a store that one process uses, its callers have to keep each other out.
        """
        if self.find(name) != before:
            return False
        self.write(name, content)
        return True

    def change(self, name: str, work: Change) -> bytes | None:
        """Replace a text by what `work` makes of it. Returns what is there then.

        `work` gets None for a text that does not exist, and returns None to leave it as it is. It runs again
        on what is there then if another process was faster. Raises Overtaken if one is each time.
        """
        for attempt in range(TRIES):
            before = self.find(name)
            after = work(before)
            if after is None or after == before:
                return before
            if self.replace(name, after, before):
                return after
            rest(attempt)
        raise Overtaken(f"other processes change {self.folder / name} all the time")

    def keep_aside(self, name: str, label: str, stamp: str) -> Path:
        """Copy a text, as a backup before a change. Returns where the copy is."""
        return self.put_aside(name, self.read(name), label, stamp)

    def put_aside(self, name: str, content: bytes, label: str, stamp: str) -> Path:
        """Keep a content under the first unused name of `<name>.<label>-<stamp>`, `…-2` and so on."""
        aside, count = f"{name}.{label}-{stamp}", 1
        while not self.replace(aside, content, None):
            count += 1
            aside = f"{name}.{label}-{stamp}-{count}"
        return self.folder / aside


class Disk(ABC):
    """A store. What a kind of store has no need of is left as it is here."""

    name: str
    """Its name in the settings."""
    ledgers: Ledgers
    durable: Path | None = None
    """The folder of the files that people edit by hand, if the store has any."""
    remembers = True
    """Whether it stores anything about people at all."""
    shared = False
    """Whether several processes may use it at the same time."""

    @property
    def in_touch(self) -> bool:
        """Whether what was read before is still true, as `Documents.in_touch` says."""
        return True

    @abstractmethod
    def documents(self, folder: str) -> Documents:
        """The texts of one of the folders above; for the ledgers these include the logs."""

    def folders(self) -> set[str]:
        """The names of all folders that have anything, without "". Raises OSError."""
        return {name for name in self.documents("").names() if "." not in name}

    @abstractmethod
    def log(self, name: str) -> Log:
        """The log of a name in the store."""

    def open(self) -> None:  # noqa: B027 - most have nothing to do
        """Prepare it for writing."""

    def check(self) -> str | None:
        """The fault of the store as a whole, and the way out; None if it is sound or does not exist."""
        return None

    def rescue(self, stamp: str) -> list[str]:
        """Save what can be read of a damaged store. Returns sentences about what was done.

        The original is kept. Nobody else may use the store meanwhile.
        """
        return []

    def close(self) -> None:  # noqa: B027 - most have nothing to do
        """Release what stays open."""

    def wipe(self) -> None:  # noqa: B027 - most have nothing to do
        """Destroy all remains of removed content. What a file system does with its own is not ours."""

    def frozen(self, beside: Path) -> AbstractContextManager["Disk"]:
        """The store as it was at one moment, to be read while others write.

        Files have no such moment: of them it is the store itself. `beside` is a folder for a temporary copy.
        """
        return nullcontext(self)


def is_log(name: str) -> bool:
    """Whether a name in the store is a log's, and not that of a text that is replaced whole."""
    return name.endswith(".jsonl")


def subject_of(name: str) -> str | None:
    """The subject of a ledger's path in the store; None for the path of anything else."""
    found = _LEDGER.fullmatch(name)
    return found[1] if found is not None else None


def inside(prefix: str) -> dict[str, str]:
    """The range of names that begin with a prefix: the `first`, and the first one after them, their `end`."""
    return {"first": prefix, "end": prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\U0010ffff"}


def changed(by_age: Iterable[tuple[str, int]], mark: Mark) -> tuple[list[str], Mark]:
    """`Ledgers.since` where that looks at all ledgers."""
    known = mark if isinstance(mark, dict) else {}
    sizes: dict[str, JsonValue] = dict(by_age)
    gone = sorted(known.keys() - sizes.keys())
    return [*gone, *(subject for subject in sizes if known.get(subject) != sizes[subject])], sizes


def drop(folder: Documents, name: str) -> bool:
    """Remove one text durably. Returns whether it existed. Raises OSError if it could not be removed."""
    removed, left = folder.remove([name])
    if left:
        raise OSError("; ".join(left))
    return removed > 0


# ---------------------------------------------------------------------- several processes on one store

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) if hasattr(time, "CLOCK_MONOTONIC") else None


def seconds() -> float:
    """Seconds that no change of the machine's time moves. They go on while a machine sleeps, where it can."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


@dataclass(eq=False, slots=True)
class Presence:
    """The presence of one process in its store. Process 0, before it is registered, is always in touch."""

    process: int = 0
    until: float = field(default=float("inf"))
    """Until when (`seconds`) the others certainly count on this process."""
    away: bool = False
    """Whether the store did not answer lately, so that nothing is asked of it but whether it is back."""
    stale: bool = False
    """Whether others may have changed what is in RAM since the store was out of reach."""

    @property
    def answers(self) -> bool:
        """Whether it makes sense to ask the store."""
        return not self.process or (not self.away and seconds() < self.until)

    @property
    def in_touch(self) -> bool:
        """Whether what is in RAM may be used."""
        return not self.process or (not self.stale and seconds() < self.until)


SHARDS: Final = "shard/"
"""How the names of the leases for Discord's shards begin."""


class ProcessState(NamedTuple):
    """One process as the store knows it. Times are ages in seconds; `fed_s` is how old what it read is."""

    id: int
    kind: str
    host: str
    pid: int
    program: str
    alive: bool
    started_s: float
    heard_s: float
    fed_s: float
    waits: Sequence[str] = ()


class LeaseState(NamedTuple):
    """A lease, the process that has it, and for how long (s)."""

    name: str
    process: int
    since_s: float


class Together(NamedTuple):
    """Everything that is known about the processes of a store, and its size in bytes."""

    processes: tuple[ProcessState, ...] = ()
    leases: tuple[LeaseState, ...] = ()
    size: int = 0


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
    """Let `change` make a log's new content of the old one, durably; again, if another process was faster.

    What only adds lines is appended. Raises OSError and MemoryFault, of which Overtaken.
    """
    for attempt in range(TRIES):
        before, head = log.load()
        after = change(before)
        try:
            if after != before and after.startswith(before):
                log.append(after[len(before) :], after=head)
            elif after != before:
                log.replace(after, after=head)
            return
        except Overtaken:
            if attempt == TRIES - 1:
                raise
        rest(attempt)


def rest(attempt: int) -> None:
    """Wait before trying again what another process overtook, each for another time, so that all get on."""
    time.sleep(random.uniform(0, min(0.002 * 2**attempt, 0.1)))


# ----------------------------------------------------------------------
# One form of statement for SQLite and PostgreSQL. Blocking; raises what the driver raises.

_CAST = re.compile(r"::[a-z0-9]+(?: varying)?(?:\[\])?")
_FOREIGN = re.compile(r' COLLATE "C"| FOR (?:UPDATE|SHARE)(?: OF \w+)?(?: SKIP LOCKED)?')
_LIST = re.compile(r"\b(IN|EACH) :(\w+)")
_NAME = re.compile(r"(?<!:):([a-z_]\w*)")
_OF_POSTGRES = (
    (re.compile(r"\bNOT IN :(\w+)"), r"<> ALL(:\1)"),
    (re.compile(r"\bIN :(\w+)"), r"= ANY(:\1)"),
    (re.compile(r"\bEACH :(\w+(?:::\w+\[\])?)"), r"unnest(:\1) AS each (value)"),
    (re.compile("%"), "%%"),
    (_NAME, r"%(\1)s"),
)


class Sql:
    """A connection of either driver, for one thread. Rows are tuples.

    `prefix`: how the names of tables begin in statements, but not in a file of SQLite, which has no others.
    """

    def __init__(self, db: Any, *, prefix: str = "") -> None:
        self.db = db
        self.lite = isinstance(db, sqlite3.Connection)
        self._prefix = prefix

    def rows(self, statement: str, **given: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        found: list[tuple[Any, ...]] = self._run(statement, given).fetchall()
        return found

    def one(self, statement: str, **given: object) -> tuple[Any, ...] | None:
        """The first row of a query, None if there is none."""
        found: tuple[Any, ...] | None = self._run(statement, given).fetchone()
        return found

    def run(self, statement: str, **given: object) -> int:
        """Run a statement. Returns how many rows it changed."""
        return int(self._run(statement, given).rowcount)

    def many(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Run a statement for each of some rows of parameters, as one request where the server can that."""
        given = [self._packed(row) for row in rows]
        if given:
            self.db.cursor().executemany(self._translated(statement), given)

    def _run(self, statement: str, given: Mapping[str, object]) -> Any:
        return self.db.execute(self._translated(statement), self._packed(given))

    def _translated(self, statement: str) -> str:
        return _for_sqlite(statement, self._prefix) if self.lite else _for_postgres(statement)

    def _packed(self, given: Mapping[str, object]) -> dict[str, object]:
        """Parameters, with lists as the driver takes them."""
        return {
            name: self._list(value) if isinstance(value, list | tuple) else value
            for name, value in given.items()
        }

    def _list(self, values: "list[Any] | tuple[Any, ...]") -> object:
        if self.lite:
            return json.dumps(values)
        if values and isinstance(values[0], int):
            return f"{{{','.join(map(str, values))}}}"  # psycopg takes 0.7 s for a list of 300,000
        return list(values)


@lru_cache
def _for_sqlite(statement: str, prefix: str) -> str:
    statement = _FOREIGN.sub("", _CAST.sub("", statement))
    statement = re.sub(rf"\b{prefix}(?=\w)", "", statement) if prefix else statement
    return _LIST.sub(
        lambda found: (
            f"IN (SELECT value FROM json_each(:{found[2]}))"
            if found[1] == "IN"
            else f"json_each(:{found[2]}) AS each"
        ),
        statement,
    )


@lru_cache
def _for_postgres(statement: str) -> str:
    for form, other in _OF_POSTGRES:
        statement = form.sub(other, statement)
    return statement

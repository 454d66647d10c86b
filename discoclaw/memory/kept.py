"""How things lie beside the ledgers: a JSON document for each key, and logs of JSON lines.

    Kept     documents of one kind: read once, then in RAM until another process changes them; `get`,
             `change` and `remove` one, go through all with `stored`
    Records  documents that show a memory, and are written after it changed
    Lines    what the lines of a log are, and how they are added, changed and removed
    Behind   what is noted at once, and appended to logs behind the turn

Independent of what is in them.
"""

import asyncio
import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

from discoclaw.core.errors import MemoryFault, Overtaken, faulting
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Purged
from discoclaw.core.view import View
from discoclaw.memory.changes import Listener
from discoclaw.store.files import in_thread, read_in_thread, render_json, safe_id, stamp_of
from discoclaw.store.plain import documents_at
from discoclaw.store.port import Documents, Log, drop, joined, line_of, rewrite, values_in
from discoclaw.work import Worker, Working

log = logging.getLogger(__name__)
V = TypeVar("V")
W = TypeVar("W")
P = ParamSpec("P")
T = TypeVar("T")

JSON = ".json"
MOST_KNOWN = 10_000
"""The most documents of one kind in RAM."""


# ---------------------------------------------------------------------- documents


@dataclass(frozen=True, slots=True)
class Document(Generic[V]):
    """A document as it is on disk; `value` is None if it makes no sense, both are if there is none."""

    value: V | None = None
    content: bytes | None = None


class Kept(Listener, Generic[V]):
    """The documents of one folder, by key. `what` is the word for one of them.

    `parse` returns the value of decoded JSON, or raises ValueError; `shape` returns its JSON. A document that
    makes no sense counts as none, and is kept aside. Those that `may_be_lost` are not, and count as none also
    where they can't be read. Only one task of the process writes at a time, so an erasing meets no writer
    (`alone`). What another process wrote is never overwritten. What nobody asks for leaves RAM after
    `idle_ms`.
    """

    def __init__(
        self,
        where: Path | Documents,
        what: str,
        parse: Callable[[object], V],
        shape: Callable[[V], object],
        *,
        clock: Clock = lambda: 0,
        idle_ms: int = HOUR_MS,
        may_be_lost: bool = False,
        name_of: Callable[[str], str] = lambda key: f"{safe_id(key)}{JSON}",
    ) -> None:
        self.documents = documents_at(where)
        self.folder = self.documents.folder
        self._what = what
        self._parse = parse
        self._shape = shape
        self._clock = clock
        self._may_be_lost = may_be_lost
        self._name_of = name_of
        self._ram: IdleMap[Document[V]] = IdleMap(
            lambda name: Document(), idle_ms=idle_ms
        )  # by names of texts
        self._readings: dict[str, asyncio.Future[Document[V]]] = {}
        self._writing = asyncio.Lock()
        self.erasings = 0
        """How many erasings there were: a value read before one may be outdated."""
        self._renewals = 0
        """How often what other processes wrote was dropped: a value read before it may be outdated."""

    # ------------------------------------------------------------------ reading

    def at_hand(self, key: str) -> bool:
        """Whether a document is in RAM, also one that does not exist."""
        return self._at_hand(key) is not None

    def in_ram(self, key: str) -> V | None:
        """The document if it is in RAM and exists."""
        known = self._at_hand(key)
        return known.value if known is not None else None

    def _at_hand(self, key: str) -> Document[V] | None:
        self._ram.evict_idle(self._clock())
        return self._ram.peek(self._name_of(key)) if self.documents.in_touch else None

    async def get(self, key: str) -> V | None:
        """Return the document; None if there is none. Raises MemoryFault if it can't be read."""
        return (await self._known(key)).value

    async def _known(self, key: str) -> Document[V]:
        if len(self._ram) > MOST_KNOWN:
            for name in self._ram:
                self._ram.drop(name)
        name = self._name_of(key)
        while self._at_hand(key) is None:
            as_of = self.erasings, self._renewals
            with faulting(f"{self.folder / name} cannot be read"):
                read = await asyncio.shield(self._reading(name))
            if not self.documents.in_touch:
                return read
            if as_of == (self.erasings, self._renewals) and self._ram.peek(name) is None:
                self._ram.put(name, read, self._clock())
        return self._ram.use(name, self._clock())

    def _reading(self, name: str) -> asyncio.Future[Document[V]]:
        """The task that reads a text: one for all who wait, so that a file that hangs takes one thread."""
        reading = self._readings.get(name)
        if reading is None:
            reading = asyncio.ensure_future(read_in_thread(self.load, name))
            self._readings[name] = reading
            reading.add_done_callback(partial(self._was_read, name))
        return reading

    def _was_read(self, name: str, reading: asyncio.Future[Document[V]]) -> None:
        if self._readings.get(name) is reading:
            del self._readings[name]
        reading.cancelled() or reading.exception()  # retrieved, also if all who waited have given up

    def load(self, name: str) -> Document[V]:
        """Read a text of this name. Blocking. Raises OSError."""
        content: bytes | None = None
        try:
            if (content := self.documents.find(name)) is None:
                return Document()
            return Document(self._parse(json.loads(content)), content)
        except (OSError, ValueError, RecursionError) as error:
            if self._may_be_lost:
                log.warning("%s is no %s, and counts as empty: %s", self.folder / name, self._what, error)
                return Document(None, content)
            if isinstance(error, OSError):
                raise
            aside = self.documents.keep_aside(name, "corrupt", stamp_of(self._clock()))
            log.error("%s is no %s (%s); it is kept as %s", self.folder / name, self._what, error, aside.name)
            drop(self.documents, name)
            return Document()

    def stored(self) -> Iterator[tuple[str, str, V]]:
        """All documents that make sense: the keys in their names, their paths, their values.

        Blocking. Raises OSError.
        """
        for name in json_names(self.documents):
            try:
                value = self._parse(json.loads(self.documents.read(name)))
            except (FileNotFoundError, ValueError, RecursionError):
                continue
            yield name.removesuffix(JSON), str(self.folder / name), value

    # ------------------------------------------------------------------ writing

    async def change(self, key: str, work: Callable[[V | None], V | None], *, in_ram: bool = False) -> bool:
        """Replace a document by what `work` makes of it, which may be None to leave it as it is.

        Returns whether it was written. Raises Overtaken if another process was faster, and MemoryFault.
        `in_ram`: until it is read again, RAM has it also if the disk refuses it.
        """
        async with self._writing:
            return await self._change(key, work, in_ram=in_ram)

    async def _change(self, key: str, work: Callable[[V | None], V | None], *, in_ram: bool = False) -> bool:
        """Replace a document, as the only writer: the caller holds the lock, or nobody else can write."""
        known, name = await self._known(key), self._name_of(key)
        if (value := work(known.value)) is None:
            return False
        content = render_json(self._shape(value))
        try:
            with faulting(f"{self.folder / name} cannot be written"):
                replaced = await in_thread(self.documents.replace, name, content, known.content)
        except asyncio.CancelledError:
            self._drop(name)  # it may be written
            raise
        except MemoryFault:
            if in_ram:
                self._ram.put(name, Document(value, known.content), self._clock())
            raise
        if not replaced:
            self._drop(name)
            raise Overtaken(f"another process changed {self.folder / name}")
        self._ram.put(name, Document(value, content), self._clock())
        return True

    async def remove(self, key: str) -> None:
        """Remove a document; nothing happens if there is none. Raises MemoryFault."""
        async with self._writing:
            await self._remove(key)

    async def _remove(self, key: str) -> None:
        """Remove a document, as the only writer, as with `_change`. Raises MemoryFault."""
        name = self._name_of(key)
        with faulting(f"{self.folder / name} cannot be written"):
            await in_thread(drop, self.documents, name)
        self._ram.put(name, Document(), self._clock())

    # ------------------------------------------------------------------ what makes RAM outdated

    @asynccontextmanager
    async def alone(self, keys: Iterable[str] | None = None) -> AsyncIterator[None]:
        """Keep everybody from writing meanwhile; afterwards all, or `keys`, are read from disk again."""
        async with self._writing:
            try:
                yield
            finally:
                self.outdated(keys)

    def outdated(self, keys: Iterable[str] | None = None) -> None:
        """Have all documents, or `keys`, read from disk again."""
        self.erasings += 1
        self._readings.clear()  # a reading may have begun before
        for name in self._ram if keys is None else map(self._name_of, keys):
            self._ram.drop(name)

    async def settled(self, keys: Iterable[str] | None = None) -> None:
        """Wait until nobody is writing. Afterwards all documents, or `keys`, are read from disk again."""
        async with self.alone(keys):
            pass

    async def renewed(self, names: Collection[str]) -> None:
        """Drop from RAM what another process wrote."""
        ours = f"{self.folder.name}/"
        if changed := {name.removeprefix(ours) for name in names if name.startswith(ours)}:
            self._renewals += 1  # what is being read may be older, also for whoever asks from now on
            for name in changed:
                self._drop(name)

    def drop(self, key: str) -> None:
        """Drop a document from RAM; its text stays."""
        self._ram.drop(self._name_of(key))

    def _drop(self, name: str) -> None:
        self._ram.drop(name)
        self._readings.pop(name, None)


def remove_named(folder: Documents, names: Collection[str]) -> Purged:
    """Remove what has one of these names, or a name derived from one."""
    try:
        count, left = folder.remove(called(folder, names))
    except OSError as error:
        return Purged(left=(f"{folder.folder}: {error}",))
    return Purged(count, tuple(left))


def called(folder: Documents, names: Collection[str]) -> list[str]:
    """Everything with one of these names or a name derived from one: copies kept aside, half-written files,
    leftovers of editors. Raises OSError.

    After a name there is nothing, or a character that cannot belong to another id: "1.json.v1-2026",
    ".1.json.x.tmp", "1.json~", "#1.json#".
    """
    if not names:
        return []
    either = "|".join(map(re.escape, sorted(names)))
    fits = re.compile(rf"[.#~]{{0,2}}({either})([^A-Za-z0-9].*)?", re.DOTALL)
    return [name for name in folder.names() if fits.fullmatch(name)]


def json_names(folder: Documents) -> list[str]:
    """The names of the JSON texts in a folder, without copies and leftovers. Raises OSError."""
    return [name for name in folder.names() if name.endswith(JSON)]


class Records(Working, Derived, Listener, ABC, Generic[V]):
    """What people may have edited: files that are `kept`, and show a memory beside what was seen.

    RAM is updated first, and a worker writes the files later, after the first change or with the next one if
    the disk refuses. `what` is the word for one of them.
    """

    def __init__(self, kept: Kept[V], what: str) -> None:
        self.documents = kept.documents
        self._kept = kept
        self._what = what
        self._worker = Worker(f"{what}s", self._bring)

    @abstractmethod
    async def _bring(self, about: str) -> None:
        """Bring the file about this id up to date. Raises MemoryFault."""

    async def start(self) -> None:
        """Does nothing: what is written belongs to the change that it follows."""

    async def renewed(self, names: Collection[str]) -> None:
        await self._kept.renewed(names)

    def _note(self, about: str) -> None:
        """Queue a file for writing, together with those that the disk refused before."""
        self._worker.hurry()
        self._worker.note(about)

    async def _shown(self, subject: str, viewing: Awaitable[View]) -> View | None:
        """The view that a file is to show; None if it cannot be read, and the file then stays as it is."""
        try:
            return await viewing
        except MemoryFault as fault:
            log.warning("the %s of %s shows what its memory said before: %s", self._what, subject, fault)
            return None


# ---------------------------------------------------------------------- logs of lines


@dataclass(frozen=True, slots=True)
class Lines(Generic[V]):
    """The lines of logs of one kind. `parse` returns the record in a decoded line, None if it is none.

    `shape` returns a record's JSON, `key` what only one line of a log has. A log of more than `most` bytes
    keeps the records that `fewer` leaves. Whatever touches a log blocks and raises OSError; what writes
    raises MemoryFault too.
    """

    parse: Callable[[object], V | None]
    shape: Callable[[V], object]
    key: Callable[[V], Hashable] = field(default=lambda record: record)
    most: int | None = None
    fewer: Callable[[list[V]], list[V]] = field(default=lambda records: records)

    def of(self, content: bytes) -> list[V]:
        """The records in a log's content, in order."""
        return [record for record in map(self.parse, values_in(content)) if record is not None]

    def damaged(self, content: bytes, records: Collection[V]) -> int:
        """How many lines are none of the records that were read from them."""
        return sum(bool(line.strip()) for line in content.splitlines()) - len(records)

    def line(self, record: V) -> bytes:
        """A record as a line."""
        return line_of(self.shape(record))

    def render(self, records: Iterable[V]) -> bytes:
        """Records as lines."""
        return b"".join(map(self.line, records))

    def read(self, lines: Log) -> list[V]:
        """Return the records of a log, in order, without duplicates."""
        found: dict[Hashable, V] = {}
        for record in self.of(lines.read()):
            found.setdefault(self.key(record), record)
        return list(found.values())

    def append(self, lines: Log, records: Iterable[V]) -> None:
        """Append records."""
        new = list(records)
        rewrite(lines, lambda before: self._with(before, new))

    def add(self, lines: Log, records: Iterable[V]) -> int:
        """Append the records that are missing. Returns how many."""
        wanted, new = list(records), list[V]()

        def more(before: bytes) -> bytes:
            known = set(map(self.key, self.of(before)))
            new[:] = [one for one in wanted if self.key(one) not in known]
            return self._with(before, new)

        rewrite(lines, more)
        return len(new)

    def _with(self, before: bytes, new: Iterable[V]) -> bytes:
        after = joined(before, self.render(new))
        fits = self.most is None or len(after) <= self.most
        return after if fits else self.render(self.fewer(self.of(after)))

    def change(self, lines: Log, work: Callable[[V], V | None]) -> int:
        """Replace each record by what `work` makes of it; None removes it. Returns how many lines differ.

        If any does, the lines that can't be read are removed too, because they may name anybody.
        """
        different = 0

        def anew(before: bytes) -> bytes:
            nonlocal different
            old = self.of(before)
            new = [work(one) for one in old]
            different = sum(a != b for a, b in zip(old, new, strict=True)) + self.damaged(before, old)
            return self.render(one for one in new if one is not None) if different else before

        rewrite(lines, anew)
        return different


class Behind(Working, Derived, ABC, Generic[W]):
    """What is noted at once and written later, in order, by name of its log. It is a `core.ports.Service`.

    Nobody waits for it, and a failing disk costs lines at most: of more than `most` that wait, the oldest are
    lost. `title` is for the log of the program, `doing` the key of its worker.
    """

    def __init__(self, title: str, doing: str, most: int, **pauses: float) -> None:
        self._waiting: dict[str, list[W]] = {}
        self._most = most
        self._doing = doing
        self._alone = asyncio.Lock()
        self._worker = Worker(title, self._write, **pauses)  # type: ignore[arg-type]

    @abstractmethod
    def _append(self, name: str, waiting: Collection[W]) -> bool:
        """Append what waits for one log. Returns whether anything of it was to be written.

        Blocking. Raises OSError and MemoryFault; all of it then waits on.
        """

    def _appended(self, name: str) -> None:
        """Something was appended to a log."""

    def _note(self, name: str, noted: Iterable[W], *, write: bool = True) -> None:
        """Have something written. Never blocks."""
        self._waiting.setdefault(name, []).extend(noted)
        while sum(map(len, self._waiting.values())) > self._most:
            oldest = next(iter(self._waiting))
            self._waiting[oldest] = self._waiting[oldest][1:]
            if not self._waiting[oldest]:
                del self._waiting[oldest]
        if write:
            self._worker.note(self._doing)

    def _keep_waiting(self, wanted: Callable[[str, W], bool]) -> int:
        """Drop what waits and is not `wanted`. Returns how much that was."""
        before = self._waiting
        left = {name: [one for one in some if wanted(name, one)] for name, some in before.items()}
        self._waiting = {name: some for name, some in left.items() if some}
        return sum(map(len, before.values())) - sum(map(len, left.values()))

    async def _alone_in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking work while nobody writes a line."""
        async with self._alone:
            return await in_thread(work, *args, **kwargs)

    async def _write(self, _: str) -> None:
        """Write what waits. It waits until it is on disk, so that whoever asks meanwhile finds it."""
        failed: Exception | None = None
        async with self._alone:
            for name in list(self._waiting):
                batch = list(self._waiting.get(name, ()))
                try:
                    written = await in_thread(self._append, name, batch)
                except (OSError, MemoryFault) as error:  # one log's failure must not stop the others
                    failed = error
                    continue
                done = set(map(id, batch))
                left = [one for one in self._waiting.get(name, ()) if id(one) not in done]
                if left:
                    self._waiting[name] = left
                else:
                    self._waiting.pop(name, None)
                if written:
                    self._appended(name)
        if failed is not None:
            raise failed

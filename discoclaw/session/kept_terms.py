"""Keeps the terms of large memories beside the snapshots of their views, so that a start need not read them.

Tokenising ten thousand memories takes two seconds. So what was made of them is kept in a file for each
person, and after a start only what changed is tokenised. A file may lag, be damaged or be missing at any
time, and is always safe to delete. When its person takes something back, it loses everything that is no
longer remembered.
"""

import asyncio
import hashlib
import json
import logging
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from discoclaw import __version__
from discoclaw.core.item import Item
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged, Readable
from discoclaw.core.subject import dm_of, user_of
from discoclaw.memory.kept import remove_named
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.recall.document import NO_TERMS, Document, Documents, date_terms, of_item
from discoclaw.store.files import in_thread, read_plain, write_atomic
from discoclaw.store.plain import FileDocuments
from discoclaw.work import GRACE_S, Worker

log = logging.getLogger(__name__)
T = TypeVar("T")

MANY = 500
"""Fewer new items than this are tokenised at once: it takes 0.1 s, in slices."""
WAIT_S = 2.0
SPOT_CHECK = 10
"""How many kept documents are made again, to see whether they are still made in the same way."""
_AT_ONCE = 100
"""How many items are read or written before the interpreter is yielded, which takes about a millisecond."""
_PAUSE_S = 0.001
_LATELY = 8
"""For how many views it is remembered that their items were looked up: that takes 3 ms for 10,000."""
_SUFFIX = ".terms"
_VERSION = f"4 {__version__}"


class KeptTerms(Derived):
    """The terms of the memories in `cache`, for `documents`, which ranking uses."""

    name = "terms"
    local = True

    def __init__(self, cache: Path, memory: AnyMemory, *, wait_s: float = WAIT_S) -> None:
        self.documents = Documents()
        self._memory = memory
        self._folder = FileDocuments(cache / "views")
        self._before = cache / "items"  # where earlier versions had an index of large memories
        self._wait_s = wait_s
        self._files = asyncio.Lock()
        self._loading: set[asyncio.Task[int]] = set()
        self._lately: deque[Sequence[Item]] = deque(maxlen=_LATELY)
        self._forgotten = 0
        self._worker = Worker("terms", self._write, retry_s=None)

    async def load(self, subject: str, items: Sequence[Item]) -> bool:
        """Take from the file what is known about items. Returns whether it lacks so many that `save` is due.

        Never raises, and waits `wait_s` at most: what the file doesn't say in time is tokenised.
        """
        if len(items) < MANY or user_of(subject) is None or any(one is items for one in self._lately):
            return False
        self._lately.append(items)
        new = {item.id: item for item in items if self.documents.known(item) is None}
        if len(new) < MANY:
            return False
        loading = asyncio.create_task(self._load(subject, new))
        self._loading.add(loading)
        loading.add_done_callback(self._loading.discard)
        await asyncio.wait([loading], timeout=self._wait_s)
        return loading.done() and len(new) - loading.result() >= MANY

    async def _load(self, subject: str, new: Mapping[str, Item]) -> int:
        """How many of the new items the file knows."""
        forgotten = self._forgotten
        try:
            async with self._files:
                found = await in_thread(_read, self._path(subject), new)
        except OSError as error:
            log.warning("%s: its terms can't be read: %s", subject, error)
            return 0
        if self._forgotten != forgotten:
            return len(new)  # what has to go may be among them
        for document in found:
            self.documents.add(new[document.id], document)
        return len(found)

    def save(self, subject: str, branch: str | None) -> None:
        """Write, in the background, what is known about the memories of a branch."""
        self._worker.note((subject, branch))

    async def _write(self, key: tuple[str, str | None]) -> None:
        subject, branch = key
        async with self._files:
            # Under the lock, so that nothing is written that was taken back or erased before.
            view = await self._memory.view(subject, branch)
            items = {item.id: item for item in view.active()}
            known = [one for one in map(self.documents.known, items.values()) if one is not None]
            if len(known) >= MANY:
                await in_thread(write_terms, self._path(subject), known, items)

    def _path(self, subject: str) -> Path:
        return self._folder.folder / f"{subject}{_SUFFIX}"

    # ------------------------------------------------------------------ lifecycle

    async def start(self) -> None:
        """Remove what earlier versions kept: it is never read, and has people's words."""
        try:
            await in_thread(self._remove_before)
        except OSError as error:
            log.warning("%s could not be removed: %s", self._before, error)

    async def settle(self) -> None:
        """Wait until nothing is being read or written."""
        while self._loading:
            await asyncio.wait(self._loading)
        await self._worker.settle()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Stop; a file that is not written yet is written at its next use."""
        await self._worker.close(grace_s)
        await self.settle()

    def _remove_before(self) -> None:
        """Raises OSError."""
        if self._before.exists():
            shutil.rmtree(self._before)

    # ------------------------------------------------------------------ personal data

    def audit(self) -> Iterator[Readable]:
        for name in self._folder.names():
            owner, path = name.removesuffix(_SUFFIX), self._folder.folder / name
            if name.endswith(_SUFFIX):
                for (_, _, text, *names), document in _rows(read_plain(path)):
                    said = f"{text} {names} {' '.join(document.terms)}"
                    yield Readable(str(path), said, dm_of(user_of(owner) or ""), owner)

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        if phase == "ram":
            self._forgotten += 1
            self._lately.clear()
            self.documents.forget()
        # What is only private now stays: nobody else is ever shown it.
        wanted = phase == "disk" and purge.subject and not purge.open_only
        return self._keep_remembered(purge) if wanted else None

    async def _keep_remembered(self, purge: Purge) -> Purged:
        """Keep only what is remembered now, and nothing that earlier versions kept of anybody."""
        subject = purge.subject
        async with self._files:
            if purge.everything:
                removed = await in_thread(remove_named, self._folder, {f"{subject}{_SUFFIX}"})
            else:
                removed, view = Purged(), await self._memory.view(subject)
                await in_thread(_keep_only, self._path(subject), {item.id: item for item in view.active()})
            try:
                await in_thread(self._remove_before)
            except OSError as error:
                removed += Purged(left=(f"{self._before}: {error}",))
        return removed


# ---------------------------------------------------------------------- in a thread


def _read(path: Path, items: Mapping[str, Item]) -> list[Document]:
    """The documents that a file has of these items. Raises OSError."""
    try:
        content = read_plain(path)
    except FileNotFoundError:
        return []
    found = []
    for key, document in _rows(content):
        item = items.get(document.id)
        if item is not None and key == _key(item):
            found.append(document)
    if any(of_item(items[document.id]) != document for document in found[:SPOT_CHECK]):
        return []  # the tokeniser is another one
    return found


def _keep_only(path: Path, items: Mapping[str, Item]) -> None:
    """Write a file anew with what it has of these items. Raises OSError."""
    if path.exists():
        write_terms(path, _read(path, items), items)


def write_terms(path: Path, documents: Iterable[Document], items: Mapping[str, Item]) -> None:
    """Write a file: documents with what they were made of. Raises OSError."""
    lines = []
    for one in _gently(documents):
        row = [_key(items[one.id]), sorted(one.terms), one.length, sorted(one.marks)]
        row += [one.opening, *(list(map(sorted, names)) for names in (one.given, one.written))]
        lines.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
    body = "\n".join(lines).encode("utf-8", "surrogatepass")
    write_atomic(path, f"{_VERSION} {hashlib.sha256(body).hexdigest()}\n".encode() + body)


def _rows(content: bytes) -> Iterator[tuple[list[Any], Document]]:
    """Each row's values, and its document; nothing if the file is damaged or of another version."""
    head, _, body = content.partition(b"\n")
    if head.decode("utf-8", "replace") != f"{_VERSION} {hashlib.sha256(body).hexdigest()}":
        return
    for line in _gently(body.split(b"\n") if body else ()):
        key, said, length, marks, opening, *names = json.loads(line.decode("utf-8", "surrogatepass"))
        given, written = (tuple(map(_terms, some)) for some in names)
        dates, begins = date_terms(key[-1]), tuple(map(sys.intern, opening))
        named = _terms(marks), dates, key[-1], given, written, begins
        yield key, Document(key[0], _terms(said), length, *named)


def _key(item: Item) -> list[Any]:
    """Everything of an item that its document is made of."""
    return [item.id, item.kind, item.text, list(item.tags), item.facets.key, item.updated_at]


def _terms(terms: Sequence[str]) -> frozenset[str]:
    return frozenset(map(sys.intern, terms)) if terms else NO_TERMS


def _gently(rows: Iterable[T]) -> Iterator[T]:
    """The rows, with a pause after every few, in which the event loop goes on."""
    for number, row in enumerate(rows, start=1):
        yield row
        if number % _AT_ONCE == 0:
            time.sleep(_PAUSE_S)

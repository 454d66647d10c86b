"""Progress markers of loops and followers: small texts under `cursors/`, one for each name. They may be lost.

A lost cursor costs repeated work, never memory: loops and followers can safely repeat everything. The name of
a cursor about one subject or person ends with "-" and their id, by which an erasing finds it. Only one writer
at a time, so that the later of two values is the one on disk, and an erasing meets no writer (`alone`). What
another process wrote in between is never overwritten by `update`.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from discoclaw.core.errors import MemoryFault
from discoclaw.memory.changes import Listener
from discoclaw.store.files import Linked, in_thread, read_in_thread, render_json, session_name
from discoclaw.store.plain import documents_at
from discoclaw.store.port import CURSORS, Documents

log = logging.getLogger(__name__)


MOST_KNOWN = 10_000
MOST_TRIES = 20
"""How often a change is tried that other processes overtake each time."""
_OURS = f"{CURSORS}/"


class Cursors(Listener):
    """Cursors by name, each a map of text to text, numbers, or lists or maps of texts.

    Read once, then in RAM until another process changes it.
    """

    def __init__(self, where: Path | Documents) -> None:
        self.documents = documents_at(where)
        self.folder = self.documents.folder
        self._known: dict[str, Mapping[str, object]] = {}  # by the names of their texts
        self._readings: dict[str, asyncio.Future[Mapping[str, object] | None]] = {}
        self._writing = asyncio.Lock()
        self.erasings = 0
        """How many erasings there were: a value read before one may be outdated."""
        self._renewals = 0
        """How often what other processes wrote was dropped: a value read before it may be outdated."""

    def in_ram(self, name: str) -> Mapping[str, object] | None:
        """The cursor if it was read before; None if it has to be read."""
        return self._known.get(session_name(name)) if self.documents.in_touch else None

    async def get(self, name: str) -> Mapping[str, object]:
        """Return the cursor; empty if there is none or it cannot be read."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()  # all of them are on disk
        while (known := self._known.get(session_name(name))) is None or not self.documents.in_touch:
            as_of = self.erasings, self._renewals
            value = await asyncio.shield(self._read(name))
            if value is None or not self.documents.in_touch:
                return value or {}  # which may be none because it cannot be read now
            if as_of == (self.erasings, self._renewals):
                self._known.setdefault(session_name(name), value)
        return known

    def _read(self, name: str) -> asyncio.Future[Mapping[str, object] | None]:
        """The task that reads a cursor: one for all who wait, so that a file that hangs takes one thread."""
        reading = self._readings.get(name)
        if reading is None:
            reading = asyncio.ensure_future(read_in_thread(_read, self.documents, session_name(name)))
            self._readings[name] = reading
            reading.add_done_callback(partial(self._was_read, name))
        return reading

    def _was_read(self, name: str, reading: asyncio.Future[Mapping[str, object] | None]) -> None:
        if self._readings.get(name) is reading:
            del self._readings[name]
        reading.cancelled() or reading.exception()  # retrieved, also if all who waited have given up

    async def put(self, name: str, value: Mapping[str, object]) -> bool:
        """Store a cursor. Returns False, with a warning, when the disk fails."""
        async with self._writing:
            return await self._store(name, value)

    async def put_rendered(self, name: str, render: Callable[[], bytes]) -> bool:
        """Store a cursor that the caller keeps in RAM. `render` returns its JSON once nobody else writes."""
        async with self._writing:
            return await self._write(name, render())

    async def update(
        self, name: str, change: Callable[[Mapping[str, object]], Mapping[str, object] | None]
    ) -> bool:
        """Change a cursor; `change` gets its current value, and may return None to leave it.

        No other writer and no erasing comes in between: `change` is called again if another process was
        faster. Returns False when the disk fails (with a warning), or when `change` returned None.
        """
        async with self._writing:
            for _ in range(MOST_TRIES):
                known = await self.get(name)
                if (value := change(known)) is None:
                    return False
                content = render_json(value)
                if (after := await self._replace(name, known, content)) is None:
                    return False
                self._known[session_name(name)] = value if after == content else parsed(after)
                if after == content:
                    return True
        log.warning("the cursor %s could not be written: others change it all the time", name)
        return False

    async def _replace(self, name: str, known: Mapping[str, object], content: bytes) -> bytes | None:
        """Write a cursor if it is as known. Returns what it is then; None, with a warning, on failure."""

        def work(before: bytes | None) -> bytes | None:
            # Parsed first: that is done in C, while to render is a matter of milliseconds for a large cursor.
            same = parsed(before or b"") == known or before == render_json(known)
            return content if same else None

        try:
            after = await in_thread(self.documents.change, session_name(name), work)
        except (OSError, MemoryFault) as error:
            log.warning("the cursor %s could not be written: %s", name, error)
            return None
        return after or b""

    async def remove(self, names: Collection[str]) -> None:
        """Remove cursors; what the disk refuses stays, with a warning."""
        async with self._writing:
            for name in names:
                self.forget(name)
            try:
                _, left = await in_thread(self.documents.remove, list(map(session_name, names)))
            except (OSError, MemoryFault) as error:
                left = [str(error)]
        if left:
            log.warning("cursors could not be removed: %s", "; ".join(left))

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Keep everybody from writing a cursor meanwhile; afterwards they are read from disk again."""
        async with self._writing:
            try:
                yield
            finally:
                self.erasings += 1
                self._known.clear()
                self._readings.clear()  # a reading may have begun before

    async def renewed(self, names: Collection[str]) -> None:
        """Drop from RAM what another process wrote."""
        if changed := {name for name in names if name.startswith(_OURS)}:
            for name in changed:
                self._known.pop(name.removeprefix(_OURS), None)
            self._renewals += 1  # what is being read may be older, also for whoever asks from now on
            self._readings.clear()

    def forget(self, name: str) -> None:
        """Drop a cursor from RAM; its file stays."""
        self._known.pop(session_name(name), None)

    async def _store(self, name: str, value: Mapping[str, object]) -> bool:
        """Write a cursor. The caller must be the only writer."""
        self._known[session_name(name)] = value
        return await self._write(name, render_json(value))

    async def _write(self, name: str, content: bytes) -> bool:
        try:
            await in_thread(self.documents.write, session_name(name), content)
        except (OSError, MemoryFault) as error:
            log.warning("the cursor %s could not be written: %s", name, error)
            return False
        return True


class InTwo:
    """Which keys of a map are to be written: it lies in two texts, so that a write costs what changed lately.

        whole    all keys
        beside   those that changed since that was written, as they are now; what it says counts

    All are written again once more than `most` changed. At first, the second text has the keys `changed`; if
    it is not `filled`, it is empty or missing.
    """

    def __init__(
        self, whole: str, beside: str, most: int, *, changed: Iterable[str] = (), filled: bool = True
    ) -> None:
        self._names = whole, beside
        self._most = most
        self._changed = dict.fromkeys(changed)
        self._filled = filled
        self._anew = self._done = 0

    def changed(self, key: str) -> None:
        """Note that a key has another value."""
        self._changed[key] = None

    def anew(self) -> None:
        """Have all written next: the first text is outdated, or has what is gone."""
        self._anew += 1

    def writes(self, keys: Collection[str]) -> Iterator[tuple[str, Collection[str]]]:
        """The names of the texts to write now, one after the other, each with its keys, out of all `keys`.

        Who takes the next one has written the last one. Otherwise it failed, and all are to be written.
        """
        whole, beside = self._names
        if self._anew == self._done and self._most >= len(self._changed) and self._most < len(keys):
            self._filled = True
            yield beside, self._changed
            return
        self._anew += self._anew == self._done
        asked, self._changed = self._anew, {}
        yield whole, keys
        if self._filled:
            yield beside, ()
            self._filled = False
        self._done = asked


def read(folder: Documents, name: str) -> Mapping[str, object]:
    """The cursor in a text; empty if there is none or it cannot be read. Blocking."""
    try:
        return read_surely(folder, name)
    except OSError:
        return {}


def read_surely(folder: Documents, name: str) -> Mapping[str, object]:
    """The cursor in a text; empty if there is none. Raises OSError if it can't be read. Blocking."""
    try:
        return parsed(folder.read(name))
    except (FileNotFoundError, Linked):
        return {}
    except OSError as error:
        if error.errno is None:  # not this text alone, as with a file
            raise
        return {}


def _read(folder: Documents, name: str) -> Mapping[str, object] | None:
    try:
        return read_surely(folder, name)
    except OSError:
        return None


def parsed(content: bytes) -> Mapping[str, object]:
    """The cursor in these bytes; empty if they are none."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

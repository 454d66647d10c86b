"""Progress markers of loops and followers: small texts under `cursors/`, one for each name. They may be lost.

A lost cursor costs repeated work, never memory: loops and followers can safely repeat everything. The name of
a cursor about one subject or person ends with "-" and their id, by which an erasing finds it. Only one writer
at a time, so that the later of two values is the one on disk, and an erasing meets no writer (`alone`).
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from discoclaw.memory.disk.files import in_thread, read_in_thread, render_json, session_name
from discoclaw.memory.disk.port import Documents, documents_at

log = logging.getLogger(__name__)


MOST_KNOWN = 10_000


class Cursors:
    """Cursors by name, each a map of text to text, numbers, or lists or maps of texts.

    Read once, then in RAM.
    """

    def __init__(self, where: Path | Documents) -> None:
        self.documents = documents_at(where)
        self.folder = self.documents.folder
        self._known: dict[str, Mapping[str, object]] = {}
        self._readings: dict[str, asyncio.Future[Mapping[str, object]]] = {}
        self._writing = asyncio.Lock()
        self.erasings = 0
        """How many erasings there were: a value read before one may be outdated."""

    async def get(self, name: str) -> Mapping[str, object]:
        """Return the cursor; empty if there is none or it cannot be read."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()  # all of them are on disk
        while (known := self._known.get(name)) is None:
            erasings = self.erasings
            value = await asyncio.shield(self._read(name))
            if erasings == self.erasings:
                self._known.setdefault(name, value)
        return known

    def _read(self, name: str) -> asyncio.Future[Mapping[str, object]]:
        """The task that reads a cursor: one for all who wait, so that a file that hangs takes one thread."""
        reading = self._readings.get(name)
        if reading is None:
            reading = asyncio.ensure_future(read_in_thread(read, self.documents, session_name(name)))
            self._readings[name] = reading
            reading.add_done_callback(partial(self._was_read, name))
        return reading

    def _was_read(self, name: str, reading: asyncio.Future[Mapping[str, object]]) -> None:
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

        No other writer and no erasing comes in between. Returns False when the disk fails (with a warning),
        or when `change` returned None.
        """
        async with self._writing:
            value = change(await self.get(name))
            return value is not None and await self._store(name, value)

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

    def forget(self, name: str) -> None:
        """Drop a cursor from RAM; its file stays."""
        self._known.pop(name, None)

    async def _store(self, name: str, value: Mapping[str, object]) -> bool:
        """Write a cursor. The caller must be the only writer."""
        self._known[name] = value
        return await self._write(name, render_json(value))

    async def _write(self, name: str, content: bytes) -> bool:
        try:
            await in_thread(self.documents.write, session_name(name), content)
        except OSError as error:
            log.warning("the cursor %s could not be written: %s", name, error)
            return False
        return True


def read(folder: Documents, name: str) -> Mapping[str, object]:
    """The cursor in a text; empty if there is none or it cannot be read. Blocking."""
    try:
        value = json.loads(folder.read(name))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

"""How far a loop or follower has come: small texts under `cursors/`, one a name. They can be lost.

A lost cursor costs repeated work, never memory: loops and followers do the same thing twice without harm.
The name of a cursor about one subject or person ends with "-" and theirs: by that an erasing finds it.
One writer at a time, so that of two values of one cursor the later one is on disk, and so that an erasing
finds nobody writing (`alone`).
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from discoclaw.memory.disk.files import in_thread, render_json, session_name
from discoclaw.memory.disk.port import Documents, documents_at

log = logging.getLogger(__name__)


MOST_KNOWN = 10_000


class Cursors:
    """Cursors by name, each a map of text to text, number or a list of texts. Read once, then in RAM."""

    def __init__(self, where: Path | Documents) -> None:
        self.documents = documents_at(where)
        self.folder = self.documents.folder
        self._known: dict[str, Mapping[str, object]] = {}
        self._writing = asyncio.Lock()
        self.erasings = 0
        """How many there were: what was read before one is not what there is now."""

    async def get(self, name: str) -> Mapping[str, object]:
        """The cursor, empty when there is none or it can not be read."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()  # they are on disk
        while (known := self._known.get(name)) is None:
            erasings = self.erasings
            value = await asyncio.to_thread(read, self.documents, session_name(name))
            if erasings == self.erasings:
                self._known.setdefault(name, value)
        return known

    async def put(self, name: str, value: Mapping[str, object]) -> bool:
        """Remember a cursor. A disk that does not take it is a warning; the answer is then False."""
        async with self._writing:
            return await self._store(name, value)

    async def update(
        self, name: str, change: Callable[[Mapping[str, object]], Mapping[str, object] | None]
    ) -> bool:
        """Change a cursor; `change` is given what it is now, and may return None to leave it so.

        No other writer and no erasing comes between. False when the disk does not take it, with a warning,
        or when `change` left it as it was.
        """
        async with self._writing:
            value = change(await self.get(name))
            return value is not None and await self._store(name, value)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Nobody writes a cursor meanwhile; afterwards they are read from disk anew."""
        async with self._writing:
            try:
                yield
            finally:
                self.erasings += 1
                self._known.clear()

    def forget(self, name: str) -> None:
        """Let a cursor leave RAM; its file stays."""
        self._known.pop(name, None)

    async def _store(self, name: str, value: Mapping[str, object]) -> bool:
        """Write a cursor. The caller is the one writer."""
        self._known[name] = value
        try:
            await in_thread(self.documents.write, session_name(name), render_json(value))
        except OSError as error:
            log.warning("the cursor %s could not be written: %s", name, error)
            return False
        return True


def read(folder: Documents, name: str) -> Mapping[str, object]:
    """What a text says as a cursor, empty when there is none or it can not be read. Blocking."""
    try:
        value = json.loads(folder.read(name))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

"""How far a loop or follower has come: small files under `cursors/`, one a name. They can be lost.

A lost cursor costs repeated work, never memory: loops and followers do the same thing twice without harm.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path

from discoclaw.memory.files import render_json, session_file, write_atomic

log = logging.getLogger(__name__)


MOST_KNOWN = 10_000


class Cursors:
    """Cursors by name, each a map of text to text or number. Read once, then served from RAM."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Mapping[str, object]] = {}

    async def get(self, name: str) -> Mapping[str, object]:
        """The cursor, empty when there is none or it can not be read."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()  # they are on disk
        if name not in self._known:
            self._known[name] = await asyncio.to_thread(_read, session_file(self._folder, name))
        return self._known[name]

    async def put(self, name: str, value: Mapping[str, object]) -> None:
        """Remember a cursor. A disk that does not take it is a warning."""
        self._known[name] = value
        try:
            await asyncio.to_thread(write_atomic, session_file(self._folder, name), render_json(value))
        except OSError as error:
            log.warning("the cursor %s could not be written: %s", name, error)

    def forget(self, name: str) -> None:
        """Let a cursor leave RAM; its file stays."""
        self._known.pop(name, None)


def _read(path: Path) -> Mapping[str, object]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

"""Progress markers of loops and followers: small texts under `cursors/`, one for each name. They may be lost.

A lost cursor costs repeated work, never memory: loops and followers can safely repeat everything. So none is
worth a fault: one that can't be read is empty, and one that can't be written is a warning. The name of a
cursor about one subject or person ends with "-" and their id, by which an erasing finds it.
"""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from discoclaw.core.errors import MemoryFault, Overtaken
from discoclaw.core.ports import Clock
from discoclaw.core.subject import dm_of, user_of
from discoclaw.memory.kept import Document, Kept
from discoclaw.store.files import Linked, in_thread, render_json, session_name
from discoclaw.store.port import Documents

log = logging.getLogger(__name__)

Cursor = Mapping[str, object]

MOST_TRIES = 20
"""How often a change is tried that other processes overtake each time."""


class Cursors(Kept[Cursor]):
    """Cursors by name, each a map of text to text, numbers, or lists or maps of texts.

    Without a `clock` all stay in RAM.
    """

    def __init__(self, where: Path | Documents, *, clock: Clock = lambda: 0) -> None:
        super().__init__(where, "cursor", _mapping, lambda value: value, clock=clock, name_of=session_name)

    def load(self, name: str) -> Document[Cursor]:
        content = _content(self.documents, name)
        return Document(parsed(content), content)

    async def get(self, name: str) -> Cursor:
        """Return the cursor; empty if there is none or it cannot be read."""
        try:
            return await super().get(name) or {}
        except MemoryFault:
            return {}

    async def put(self, name: str, value: Cursor) -> bool:
        """Store a cursor. Returns False, with a warning, when the disk fails."""
        async with self._writing:
            content = render_json(value)
            self._ram.put(session_name(name), Document(value, content), self._clock())
            return await self._write(name, content)

    async def put_rendered(self, name: str, render: Callable[[], bytes]) -> bool:
        """Store a cursor that the caller keeps in RAM. `render` returns its JSON once nobody else writes."""
        async with self._writing:
            return await self._write(name, render())

    async def update(self, name: str, change: Callable[[Cursor], Cursor | None]) -> bool:
        """Change a cursor; `change` gets its current value, and may return None to leave it.

        No other writer and no erasing comes in between: `change` is called again if another process was
        faster. Returns False when the disk fails (with a warning), or when `change` returned None.
        """
        async with self._writing:
            for _ in range(MOST_TRIES):
                try:
                    return await self._change(name, lambda known: change(known or {}))
                except Overtaken:
                    continue
                except MemoryFault as error:
                    log.warning("the cursor %s could not be written: %s", name, error)
                    return False
        log.warning("the cursor %s could not be written: others change it all the time", name)
        return False

    async def remove(self, names: Collection[str]) -> None:
        """Remove cursors; what the disk refuses stays, with a warning."""
        async with self._writing:
            for name in names:
                self.drop(name)
            try:
                _, left = await in_thread(self.documents.remove, list(map(session_name, names)))
            except (OSError, MemoryFault) as error:
                left = [str(error)]
        if left:
            log.warning("cursors could not be removed: %s", "; ".join(left))

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


def read(folder: Documents, name: str) -> Cursor:
    """The cursor in a text; empty if there is none or it cannot be read. Blocking."""
    try:
        return read_surely(folder, name)
    except OSError:
        return {}


def read_surely(folder: Documents, name: str) -> Cursor:
    """The cursor in a text; empty if there is none. Raises OSError if it can't be read. Blocking."""
    return parsed(_content(folder, name))


def _content(folder: Documents, name: str) -> bytes | None:
    try:
        return folder.find(name)
    except Linked:
        return b""
    except OSError as error:
        if error.errno is None:  # not this text alone, as with a file
            raise
        return b""


def parsed(content: bytes | None) -> Cursor:
    """The cursor in these bytes; empty if they are none."""
    if content is None:
        return {}
    try:
        return _mapping(json.loads(content))
    except (ValueError, RecursionError):
        return {}


def _mapping(value: object) -> Cursor:
    return value if isinstance(value, dict) else {}


# ---------------------------------------------------------------------- what is in cursors


def people_of(cursor: Cursor) -> set[str]:
    """The user ids of the people whose words are in a summary, from its cursor `people-<session>`."""
    return set(texts_of(cursor, "people"))


def names_of(cursor: Cursor) -> dict[str, str]:
    """The names that people have in a summary, by user id, from its cursor `people-<session>`."""
    found, people = cursor.get("names"), people_of(cursor)
    pairs = found.items() if isinstance(found, Mapping) else ()
    return {one: name for one, name in pairs if one in people and isinstance(name, str) and name}


def texts_of(value: Cursor, key: str) -> list[str]:
    """The strings of a list that was read from disk; anything else in it is ignored."""
    found = value.get(key)
    return [one for one in found if isinstance(one, str) and one] if isinstance(found, list) else []


def sessions_in(folder: Documents, subject: str) -> set[str]:
    """The conversations (session keys) that the cursors of a store name of a person. Blocking.

    The cursor `people-<session>` says whose words are in a summary; for a summary by an earlier version, the
    sessions in the person's own cursor do. Raises OSError.
    """
    if (user := user_of(subject)) is None:
        return set()
    learned = read_surely(folder, session_name(f"facts-{user}"))
    found = {dm_of(user), *(key for key, seen in learned.items() if isinstance(seen, str))}
    for name in folder.names():
        if name.startswith("people-") and name.endswith(".json"):
            value = read_surely(folder, name)
            session = value.get("session")
            if isinstance(session, str) and user in people_of(value):
                found.add(session)
    return found - {""}

"""Contents of attached files, kept for a while so that people can go on talking about them.

In RAM only, and each content once, however often it was sent. What was not used for longest leaves when there
is too much, or after an hour. What came with a message goes with it: a deletion, a purge, an opt-out or
an erasure removes it at once, also while it is being read.
"""

import asyncio
import base64
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, TypeAlias, TypeVar

from discoclaw.core.idle import HOUR_MS
from discoclaw.core.message import (
    Content,
    Document,
    Encoded,
    FileRef,
    Said,
    TextFile,
    Unreadable,
    digest,
    tokens_of,
)
from discoclaw.core.ports import Clock, Passive
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.session.files.reading import Reader

log = logging.getLogger(__name__)

Readable: TypeAlias = Encoded | TextFile
"""The form in which a prompt has a file."""
Read: TypeAlias = Readable | Unreadable
Key: TypeAlias = tuple[str, str]
K = TypeVar("K")

MOST_NOTED: Final = 2_000
"""How many messages that are gone, and files that could not be read, are remembered by their ids."""
_CHUNK: Final = 3 * 2**16
"""Bytes that are encoded in one call, a multiple of three. A call holds up every other thread."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The message that a file came with, by which it is found when that message is taken back."""

    said: Said
    private: bool

    def goes(self, purge: Purge) -> bool:
        """Whether somebody took it back."""
        return purge.covers(self.said, in_private=self.private)


@dataclass(frozen=True, slots=True)
class _Known:
    """A file whose content is on the shelf, by the content's digest."""

    origin: Origin
    name: str
    content: str


@dataclass(slots=True)
class _Kept:
    """A content, its size in bytes, and when (ms) it was last used."""

    content: Readable
    size: int
    used: int


class Shelf(Passive, Derived):
    """Reads files with `reader`, and keeps up to `most` bytes of them, none at the start.

    A file is read once at a time, however many turns want it.
    """

    name = "attached files"

    def __init__(self, reader: Reader, *, clock: Clock, most: int, idle_ms: int = HOUR_MS) -> None:
        self._reader = reader
        self._clock = clock
        self._most = most
        self._idle_ms = idle_ms
        self._known: dict[Key, _Known] = {}
        self._contents: dict[str, _Kept] = {}  # in order of use
        self._reading: dict[Key, tuple[Origin, asyncio.Task[Read]]] = {}
        self._gone: dict[str, None] = {}
        self._removed: dict[Key, None] = {}
        self._failed: dict[Key, None] = {}

    async def settle(self) -> None:
        """Wait until nothing is being read."""
        while self._reading:
            await asyncio.wait([task for _, task in self._reading.values()])

    async def close(self) -> None:
        """Give up what is being read."""
        tasks = [task for _, task in self._reading.values()]
        self._end(self._reading)
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return sum(kept.size for kept in self._contents.values())

    def tidy(self) -> None:
        """Remove what was not used for too long."""
        now = self._clock()
        idle = takewhile(lambda pair: now - pair[1].used > self._idle_ms, self._contents.items())
        if gone := [content for content, _ in idle]:
            for content in gone:
                del self._contents[content]
            self._clear()

    def failed(self, file: FileRef) -> bool:
        """Whether a file could not be read before."""
        return _key(file) in self._failed

    def removed(self, file: FileRef) -> bool:
        """Whether a file was taken back since it was read last, so that whoever has its content drops it."""
        return file.message_id in self._gone or _key(file) in self._removed

    def look(self, file: FileRef) -> Readable | None:
        """The kept content of a file; None if there is none."""
        self.tidy()
        known = self._known.get(_key(file))
        if known is None:
            return None
        kept = self._contents.pop(known.content)
        self._contents[known.content] = kept  # the last one now
        kept.used = self._clock()
        same = kept.content.name == file.name  # else it was sent under another name before
        return kept.content if same else replace(kept.content, name=file.name)

    def read(self, file: FileRef, origin: Origin, *, keep: bool) -> "asyncio.Task[Read] | None":
        """Read a file that is not kept, in a task that goes on if nobody waits for it; to `keep` it then.

        It is cancelled when its message is taken back. None if that was deleted.
        """
        if file.message_id in self._gone:
            return None
        key = _key(file)
        if key not in self._reading:
            self._removed.pop(key, None)
            task = asyncio.create_task(self._read(file, origin, keep=keep))
            self._reading[key] = origin, task
            task.add_done_callback(lambda done: self._ended(key, done))
        return self._reading[key][1]

    def drop(self, message_ids: Collection[str]) -> None:
        """Remove what came with messages that were deleted in the chat, and never read it again."""
        gone = set(message_ids)
        for message_id in gone:
            _note(self._gone, message_id)
        self._remove(key for key in {*self._known, *self._reading} if key[0] in gone)

    def keep_only(self, message_id: str, files: Collection[str]) -> None:
        """Remove the other files of a message, which were removed from it by an edit."""
        known = {*self._known, *self._reading}
        self._remove(key for key in known if key[0] == message_id and key[1] not in files)

    def purge(self, purge: Purge, phase: Phase) -> None:
        def goes(origin: Origin) -> bool:
            erased = purge.erases and origin.said.author_id == purge.user_id != ""
            return erased or origin.goes(purge)

        if phase == "ram":
            self._remove(key for key, origin in self._origins() if goes(origin))

    def _origins(self) -> list[tuple[Key, Origin]]:
        known = [(key, one.origin) for key, one in self._known.items()]
        return known + [(key, origin) for key, (origin, _) in self._reading.items()]

    async def _read(self, file: FileRef, origin: Origin, *, keep: bool) -> Read:
        content = await self._reader.read(file)
        if isinstance(content, Unreadable):
            _note(self._failed, _key(file))
            return content
        name, readable, size = await asyncio.to_thread(_encoded, content)
        if keep:
            self._known[_key(file)] = _Known(origin, file.name, name)
            self._contents.pop(name, None)
            self._contents[name] = _Kept(readable, size, self._clock())
            self._make_room()
        return readable

    def _ended(self, key: Key, task: "asyncio.Task[Read]") -> None:
        if (reading := self._reading.get(key)) is not None and reading[1] is task:
            del self._reading[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a file could not be kept", exc_info=error)

    def _remove(self, keys: Iterable[Key]) -> None:
        found = set(keys)
        for key in found:
            self._known.pop(key, None)
            self._failed.pop(key, None)
            _note(self._removed, key)
        self._end(found)
        self._clear()

    def _end(self, keys: Collection[Key]) -> None:
        for key in [*keys]:
            if (reading := self._reading.pop(key, None)) is not None:
                reading[1].cancel()

    def _clear(self) -> None:
        """Remove the contents that no file has any more, and the files whose content is gone."""
        used = {one.content for one in self._known.values()}
        for content in self._contents.keys() - used:
            del self._contents[content]
        for key in [key for key, one in self._known.items() if one.content not in self._contents]:
            del self._known[key]

    def _make_room(self) -> None:
        left = self.size
        for content in [*self._contents]:
            if left <= self._most:
                break
            left -= self._contents.pop(content).size
        self._clear()


def _key(file: FileRef) -> Key:
    return file.message_id, file.id


def _note(known: dict[K, None], key: K) -> None:
    known[key] = None
    if len(known) > MOST_NOTED:
        del known[next(iter(known))]


def _encoded(content: Content) -> tuple[str, Readable, int]:
    """A content's digest, the content as a request has it, and its size there. In a thread."""
    if isinstance(content, TextFile):
        data = "\0".join((content.text, content.end, content.note)).encode("utf-8", "surrogatepass")
        return digest(data), content, len(data)
    view = memoryview(content.data)
    pieces = (base64.b64encode(view[begin : begin + _CHUNK]) for begin in range(0, len(view), _CHUNK))
    text = b"".join(pieces).decode("ascii")
    if isinstance(content, Document):
        readable = Encoded(content.name, "application/pdf", text, tokens_of(content), pages=content.pages)
        return digest(content.data), readable, len(text)
    rest = [_encoded(part) for part in content.rest]
    others = tuple(part for _, part, _ in rest if isinstance(part, Encoded))
    readable = Encoded(content.name, content.type, text, tokens_of(content), rest=others, note=content.note)
    name = digest(content.data) + "".join(name for name, _, _ in rest) + content.note
    return name, readable, len(text) + sum(size for _, _, size in rest)

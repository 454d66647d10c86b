"""Rolling summaries: `rolling/<safe-session-key>.json` = {summary, updatedAt}, exactly, one a conversation.

Served from RAM; a text that cannot be parsed is kept aside and counts as no summary. Summaries are lossy by
design and have no history; durable memory is in the ledger. A clear is recorded before the summary is removed
(`clears`), and an older summary is ignored, wherever it comes from. Where its file is found, it is removed.
"""

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from discoclaw.core.errors import MemoryFault
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.personal import Erasure, PersonalData, Removed
from discoclaw.core.ports import Clock
from discoclaw.core.text import scrub
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import SESSION, Changes, Listener
from discoclaw.memory.conversations.clears import Clears
from discoclaw.store.files import in_thread, render_json, session_name, stamp_of
from discoclaw.store.plain import documents_at
from discoclaw.store.port import ROLLING, Documents, drop

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
_OURS = f"{ROLLING}/"


@dataclass(frozen=True, slots=True)
class Rolling:
    """A conversation's summary; `updated_at` in ms since 1970, or 0 if there is none yet."""

    summary: str = ""
    updated_at: int = 0


NOTHING = Rolling()


@dataclass(slots=True)
class _Entry:
    lock: asyncio.Lock
    value: Rolling | None = None
    generation: int = 0


class RollingMemory(PersonalData, Listener):
    """All conversations' summaries, loaded when used and evicted when idle. `clears` records clears."""

    name = "summaries in RAM"
    local = True

    def __init__(
        self,
        where: Path | Documents,
        *,
        clock: Clock,
        idle_ms: int = HOUR_MS,
        clears: Clears | None = None,
        changes: Changes | None = None,
    ) -> None:
        self.documents = documents_at(where)
        self.folder = self.documents.folder
        self._clock = clock
        self._clears = clears
        self._changes = changes or Changes()
        self._generations = itertools.count()  # shared by all sessions, so no number recurs after an eviction
        self._entries: IdleMap[_Entry] = IdleMap(
            lambda key: _Entry(asyncio.Lock(), generation=next(self._generations)), idle_ms=idle_ms
        )
        self._paused: dict[str, set[str]] = {}  # sessions whose summary is about to be withdrawn, by subject
        self._hidden: set[str] = set()  # sessions whose file could not be removed: it must not be read

    async def get(self, session_key: str) -> Rolling:
        """Return the current summary. Raises MemoryFault if the file cannot be read."""
        value = await self.held(session_key)
        return NOTHING if self.paused(session_key) else value

    async def held(self, session_key: str) -> Rolling:
        """Return the summary even if it may not be used any more. Raises MemoryFault."""
        return (await self._loaded(session_key)).value or NOTHING

    def in_ram(self, session_key: str) -> Rolling | None:
        """The summary if it is in RAM, else None."""
        entry = self._entries.peek(session_key)
        if entry is None or entry.value is None or not self.documents.in_touch:
            return None
        return NOTHING if self.paused(session_key) else entry.value

    def paused(self, session_key: str) -> bool:
        """Whether a summary may rest on what somebody just took back, and so must not be used."""
        return any(session_key in keys for keys in self._paused.values())

    def pause(self, subject: str, concerns: Callable[[str, str], bool]) -> None:
        """Use no summary in RAM that `concerns(session key, text)`, until `resume`. Never blocks."""
        for key in self._entries:
            entry = self._entries.peek(key)
            if entry is not None and entry.value is not None and concerns(key, entry.value.summary):
                self._paused.setdefault(subject, set()).add(key)
                entry.generation = next(self._generations)

    def resume(self, subject: str) -> None:
        """End a pause: the withdrawal is done, and the summaries can be used again or are cleared."""
        for key in self._paused.pop(subject, ()):
            if (entry := self._entries.peek(key)) is not None:
                entry.generation = next(self._generations)  # a summary begun meanwhile did not know of it

    async def generation(self, session_key: str) -> int:
        """Return a number that changes whenever the summary does; see `put`."""
        return (await self._loaded(session_key)).generation

    async def put(self, session_key: str, summary: str, *, generation: int) -> bool:
        """Store a summary made while `generation` was current. Returns False if it no longer is.

        Raises MemoryFault when the disk fails; the old summary then stays.
        """
        entry = await self._loaded(session_key)
        async with entry.lock:
            if entry.generation != generation:
                return False
            before = max((entry.value or NOTHING).updated_at, await self.cleared_at(session_key))
            value = Rolling(summary, max(self._clock(), before + 1))
            content = render_json({"summary": value.summary, "updatedAt": value.updated_at})
            known = entry.value or NOTHING
            try:
                written = await self._replaced(session_name(session_key), known, content)
            except asyncio.CancelledError:
                entry.value = None  # it may be written
                raise
            if not written:
                entry.value, entry.generation = None, next(self._generations)
                return False
            entry.value, entry.generation = value, next(self._generations)
            self._hidden.discard(session_key)
            self._changes.written(f"{SESSION}{session_key}")
            return True

    async def _replaced(self, name: str, known: Rolling, content: bytes) -> bool:
        """Write a summary, unless another process wrote one, or removed it, since it was `known`."""

        def work(before: bytes | None) -> bytes | None:
            there = _rolling(before) if before is not None else NOTHING
            return content if there is None or there.updated_at <= known.updated_at else None

        return await self._on_disk(name, self.documents.change, name, work) == content

    def counted(self, session_key: str) -> None:
        """Tell listeners that what is recorded beside the summary (its last message, its length) changed."""
        self._changes.written(f"{SESSION}{session_key}")

    async def clear(self, session_key: str, *, by: str | None = None) -> None:
        """Remove the summary of this session only. A summary being made now will not be stored.

        `by` is who asked for it (user id). Raises MemoryFault when the disk fails.
        """
        entry = await self._loaded(session_key)
        async with entry.lock:
            entry.generation = next(self._generations)
            if self._clears is not None:  # first, so that a file that cannot be removed is hidden
                not_before = (entry.value or NOTHING).updated_at
                await self._clears.note(session_key, by=by, not_before=not_before)
            name = session_name(session_key)
            await self._on_disk(name, drop, self.documents, name)
            # Again: a summary begun meanwhile was made from the removed one.
            entry.value, entry.generation = NOTHING, next(self._generations)
            self._hidden.discard(session_key)
            self._changes.written(f"{SESSION}{session_key}")

    async def finish_clears(self) -> None:
        """Remove the files of cleared summaries that a killed run left. Never raises."""
        try:
            there = set(await in_thread(self.documents.names))
            for key in [*await self._clears.known()] if self._clears is not None else ():
                if session_name(key) in there:
                    await self.held(key)  # a cleared one is removed when it is read
        except (MemoryFault, OSError) as error:
            log.warning("a summary that was cleared may still be on disk: %s", error)

    async def renewed(self, names: Collection[str]) -> None:
        """Drop from RAM what another process wrote. A summary being made now will not be stored."""
        changed = {name for name in names if name.startswith(_OURS)}
        for key in self._entries if changed else ():
            entry = self._entries.peek(key)
            if entry is not None and f"{_OURS}{session_name(key)}" in changed:
                entry.value, entry.generation = None, next(self._generations)
        self._hidden -= {key for key in self._hidden if f"{_OURS}{session_name(key)}" in changed}

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """Drop the summaries of the erasing's sessions, and hold their locks while the files are removed.

        Nobody reads or writes one of them meanwhile, and a summary being made now will not be stored.
        """
        keys = sorted(erasure.sessions)  # in a fixed order, so that two of these cannot deadlock
        async with AsyncExitStack() as stack:
            entries = [self._entries.use(key, self._clock()) for key in keys]
            for entry in entries:
                await stack.enter_async_context(entry.lock)
                entry.value = NOTHING
            try:
                yield
            finally:
                for entry in entries:
                    entry.value, entry.generation = NOTHING, next(self._generations)

    def erase(self, erasure: Erasure) -> Removed:
        """Mark summaries whose files still exist as unreadable; `store_files` removes the files."""
        try:
            there = set(self.documents.names())
        except OSError:
            self._hidden |= erasure.sessions
        else:
            self._hidden |= {key for key in erasure.sessions if session_name(key) in there}
        return Removed()

    async def _loaded(self, session_key: str) -> _Entry:
        now = self._clock()
        self._entries.evict_idle(now, busy=lambda entry: entry.lock.locked())
        entry = self._entries.use(session_key, now)
        if entry.value is None or not self.documents.in_touch:
            async with entry.lock:
                if entry.value is None or not self.documents.in_touch:
                    entry.value = await self._from_disk(session_key, now)
        return entry

    async def _from_disk(self, session_key: str, now: int) -> Rolling:
        """Read the session's file. The caller holds the entry's lock."""
        if session_key in self._hidden:
            return NOTHING
        name = session_name(session_key)
        try:
            value = await in_thread(_read, self.documents, name, now)
        except OSError as error:
            raise MemoryFault(f"{self.folder / name} cannot be read: {error}") from error
        if value is not NOTHING and value.updated_at <= await self.cleared_at(session_key):
            await self._on_disk(name, drop, self.documents, name)
            return NOTHING
        return value

    async def cleared_at(self, session_key: str) -> int:
        """When (ms) this session was last cleared; -1 for never, as far as is known."""
        return await self._clears.last(session_key) if self._clears is not None else -1

    async def _on_disk(self, name: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await in_thread(work, *args, **kwargs)
        except OSError as error:
            raise MemoryFault(f"{self.folder / name} cannot be written: {error}") from error


def _read(folder: Documents, name: str, now_ms: int) -> Rolling:
    """The summary under a name. Other fields that the TypeScript bot wrote are ignored."""
    try:
        content = folder.read(name)
    except FileNotFoundError:
        return NOTHING
    if (found := _rolling(content)) is not None:
        return found
    aside = folder.keep_aside(name, "corrupt", stamp_of(now_ms))
    log.error("%s is no rolling summary; it is kept as %s", folder.folder / name, aside.name)
    drop(folder, name)
    return NOTHING


def _rolling(content: bytes) -> Rolling | None:
    """The summary in a file's content; None if it is none."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if (
        isinstance(value, Mapping)
        and isinstance(value.get("summary"), str)
        and valid_ms(value.get("updatedAt"))
    ):
        return Rolling(scrub(value["summary"]), value["updatedAt"])
    return None

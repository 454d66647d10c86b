"""When conversations' summaries were cleared: `clears.jsonl`, one line for each clear.

    {"at": ms, "session": session key, "by": user id or null, "id": 16 hex digits}

Everything of a conversation dated at or before its newest clear is hidden: its summary, and tools' answers
there. Preferences and everything else that is remembered about people stay. The line is on disk before the
summary is removed, so if the program is killed in between, the summary is hidden, and the next start removes
it (`RollingMemory.finish_clears`).
An unreadable line is ignored. Erasing a person removes the lines about their direct messages, and their name
from the others, which still hide what they hid.
Independent of what is hidden.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from discoclaw.core.errors import faulting
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Outcome, Phase, Purge
from discoclaw.core.subject import dm_of
from discoclaw.core.times import valid_ms
from discoclaw.memory.changes import Listener
from discoclaw.memory.kept import Lines
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import Disk, Log

log = logging.getLogger(__name__)

FILE = "clears.jsonl"
MOST_BYTES = 1_000_000
"""A longer file is reduced to the newest clear of each conversation."""

_ID = re.compile(r"[0-9a-f]{16}")
_SESSION = re.compile(r"[A-Za-z0-9:_-]{1,200}")
_USER = re.compile(r"[0-9A-Za-z_-]{1,58}")


@dataclass(frozen=True, slots=True)
class Clear:
    """One clear: the conversation (session key), when (ms), and who asked for it (user id), if known."""

    id: str
    at: int
    session: str
    by: str | None = None


def clear_of(value: object) -> Clear | None:
    """The clear in a decoded line, or None if it is invalid."""
    if not isinstance(value, Mapping):
        return None
    one, at, session, by = (value.get(name) for name in ("id", "at", "session", "by"))
    if not (isinstance(one, str) and _ID.fullmatch(one) and valid_ms(at)):
        return None
    if not (isinstance(session, str) and _SESSION.fullmatch(session)):
        return None
    known = isinstance(by, str) and _USER.fullmatch(by) is not None
    return Clear(one, at, session, by if known else None)


def _needed(clears: Iterable[Clear]) -> list[Clear]:
    """The newest clear of each conversation."""
    found: dict[str, Clear] = {}
    for one in clears:
        if (held := found.get(one.session)) is None or held.at <= one.at:
            found[one.session] = one
    return list(found.values())


CLEARS: Final = Lines(
    clear_of,
    lambda one: {"at": one.at, "session": one.session, "by": one.by, "id": one.id},
    lambda one: one.id,
    MOST_BYTES,
    _needed,
)
"""The lines of the file."""


def newest(clears: Iterable[Clear]) -> dict[str, int]:
    """When (ms) each conversation was last cleared, by session key."""
    found: dict[str, int] = {}
    for one in clears:
        found[one.session] = max(one.at, found.get(one.session, -1))
    return found


def hidden(cleared: Mapping[str, int], session_key: str, at: int) -> bool:
    """Whether a clear hides what a conversation has from a time (ms). `cleared` comes from `newest`."""
    return at <= cleared.get(session_key, -1)


class Clears(Derived, Listener):
    """The clears of a disk: reads them and records new ones."""

    name = "clears in RAM"

    def __init__(self, disk: Disk, *, clock: Clock) -> None:
        self._lines = disk.log(FILE)
        self._clock = clock
        self._newest: dict[str, int] | None = None
        self._alone = asyncio.Lock()

    async def note(self, session_key: str, *, by: str | None = None, not_before: int = 0) -> Clear:
        """Record durably that a conversation is cleared now, or at `not_before` (ms) if that is later.

        Raises MemoryFault when the disk fails; nothing is cleared then.
        """
        async with self._alone:
            at = max(self._clock(), not_before)
            clear = Clear(secrets.token_hex(8), at, session_key, by)
            with faulting(f"{self._lines.path} cannot be written"):
                await in_thread(CLEARS.add, self._lines, [clear])
            if self._newest is not None:
                self._newest[session_key] = max(at, self._newest.get(session_key, -1))
        return clear

    async def known(self) -> Mapping[str, int]:
        """Return when (ms) each conversation was last cleared, by session key; empty if the disk fails."""
        async with self._alone:
            if self._newest is None:
                try:
                    self._newest = newest(await read_in_thread(CLEARS.read, self._lines))
                except OSError as error:
                    log.warning("what was cleared cannot be read: %s", error)
                    return {}
            return self._newest

    async def last(self, session_key: str) -> int:
        """Return when (ms) a conversation was last cleared; -1 for never, or if the disk fails."""
        known = self._newest if self._newest is not None else await self.known()
        return known.get(session_key, -1)

    def may_hide(self, session_key: str, at: int) -> bool:
        """Whether a clear may hide a conversation's content of a time (ms), by what RAM knows.

        Where nothing was read yet, that is always so.
        """
        return self._newest is None or at <= self._newest.get(session_key, -1)

    async def hidden(self, session_key: str, at: int) -> bool:
        """Whether a clear hides a conversation's content of a time (ms)."""
        return at <= await self.last(session_key)

    async def renewed(self, names: Collection[str]) -> None:
        """Have the clears read again before they are next asked about."""
        if FILE in names:
            async with self._alone:
                self._newest = None

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        erases = phase == "disk" and purge.erases and purge.user_id
        return self._erase(purge.user_id) if erases else None

    async def _erase(self, user_id: str) -> None:
        """Remove a person; afterwards the clears are read from disk again."""
        async with self._alone:
            try:
                await in_thread(erase, self._lines, user_id)
            finally:
                self._newest = None


def erase(lines: Log, user_id: str) -> None:
    """Remove everything about a person, and the lines about their direct messages. Raises OSError."""

    def without(one: Clear) -> Clear | None:
        if one.session == dm_of(user_id):
            return None
        return replace(one, by=None) if one.by == user_id else one

    CLEARS.change(lines, without)

"""Null objects for the parts of memory that an admin switched off.

Each returns nothing, records nothing, and refuses changes with a sentence that says how to switch it on, so
callers never test whether there is a memory. The folder, erasings and the registry of personal data belong to
the real `Memory`, which exists even where nobody is remembered.
"""

from typing import Any, NoReturn, TypeAlias

from discoclaw.core.consent import NEVER
from discoclaw.core.errors import Refused
from discoclaw.core.history import Branches, History
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.conversations.rolling import NOTHING, Rolling
from discoclaw.memory.stores import NoLedgers
from discoclaw.memory.subjects.store import Memory

STORE_OFF = "memory is switched off here; an admin can switch it on with DISCOCLAW_STORE (files or sqlite)"
MEMORY_OFF = "memory is switched off here; an admin can switch it on with DISCOCLAW_DURABLE_MEMORY_ENABLED"
SUMMARIES_OFF = "summaries are switched off here; an admin can switch them on with DISCOCLAW_SUMMARY_ENABLED"


class NoMemory:
    """A memory without items, to which none can be added. `why` is the error for those who try."""

    def __init__(self, why: str = MEMORY_OFF) -> None:
        self._why = why
        self.ledgers = NoLedgers()

    async def view(self, subject: str, branch: str | None = None) -> View:
        return EMPTY

    def view_in_ram(self, subject: str, branch: str | None = None) -> View:
        return EMPTY

    async def branches(self, subject: str) -> Branches:
        return Branches()

    def branches_in_ram(self, subject: str) -> None:
        return None

    def has_in_ram(self, subject: str) -> bool:
        return False

    async def history(self, subject: str) -> History:
        return History()

    async def erase(self, subject: str, *, asked_at: int = 0) -> NoReturn:
        raise Refused(self._why)

    def erased_at(self, subject: str) -> int:
        return NEVER

    async def change(self, *args: Any, **metadata: Any) -> NoReturn:
        raise Refused(self._why)

    async def act(self, *args: Any) -> NoReturn:
        raise Refused(self._why)

    async def turn(self, *args: Any) -> NoReturn:
        raise Refused(self._why)


AnyMemory: TypeAlias = Memory | NoMemory
"""The memory that answers use, which may be switched off."""


class NoSummaries:
    """Summaries, of which there are none. `why` is the error for those who try to clear one."""

    def __init__(self, why: str = SUMMARIES_OFF) -> None:
        self._why = why

    async def get(self, session_key: str) -> Rolling:
        return NOTHING

    def in_ram(self, session_key: str) -> Rolling:
        return NOTHING

    async def clear(self, session_key: str, *, by: str | None = None) -> NoReturn:
        raise Refused(self._why)

"""What stands in for the parts of memory that an admin switched off.

Each is a part that knows nothing, notes nothing, and refuses to be changed with a sentence that says how to
switch it on. So nobody who uses memory asks whether there is one.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit
from discoclaw.core.history import Branches, History
from discoclaw.core.message import Place
from discoclaw.core.personal import Erasure
from discoclaw.core.profile import Group, Profile
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.conversations.rolling import NOTHING, Rolling, RollingMemory
from discoclaw.memory.people.groups import Groups, Known
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.people.tool_log import ToolLog
from discoclaw.memory.subjects.store import Memory

MEMORY_OFF = "memory is switched off here; an admin can switch it on with DISCOCLAW_DURABLE_MEMORY_ENABLED"


class NoMemory(Memory):
    """No item of anybody, and none can be added."""

    def __init__(self) -> None:
        """There is nothing to set up."""

    async def view(self, subject: str, branch: str | None = None) -> View:
        return EMPTY

    def view_in_ram(self, subject: str, branch: str | None = None) -> View:
        return EMPTY

    async def last_view(self, subject: str) -> View:
        return EMPTY

    async def branches(self, subject: str) -> Branches:
        return Branches({})

    def branches_in_ram(self, subject: str) -> None:
        return None

    async def history(self, subject: str) -> History:
        return History(())

    def erased_at(self, subject: str) -> int:
        return -1

    async def change(self, *args: Any, **metadata: Any) -> NoReturn:
        raise Refused(MEMORY_OFF)

    async def act(self, *args: Any) -> NoReturn:
        raise Refused(MEMORY_OFF)

    async def turn(self, *args: Any) -> NoReturn:
        raise Refused(MEMORY_OFF)


class NoProfiles(Profiles):
    """Nobody is known."""

    def __init__(self) -> None:
        """There is nothing to set up."""

    def seen(self, user_id: str, name: str, at: int, *, where: str = "") -> None:
        """Nothing is noted."""

    def at_hand(self, user_id: str) -> bool:
        return True

    def in_ram(self, user_id: str) -> None:
        return None

    async def get(self, user_id: str) -> Profile | None:
        return None

    async def settle(self) -> None:
        """Nothing waits."""

    async def close(self, grace_s: float = 0.0) -> None:
        """Nothing is open."""


class NoGroups(Groups):
    """No channel is known."""

    def __init__(self) -> None:
        """There is nothing to set up."""

    def seen(self, place: Place, at: int, *, user_id: str | None = None, name: str = "") -> None:
        """Nothing is noted."""

    async def get(self, group_id: str) -> Group:
        return Group()

    def notes_in_ram(self, place: Place) -> str:
        return ""

    async def notes(self, place: Place) -> str:
        return ""

    async def known(self, place: Place) -> Known | None:
        return None

    async def settle(self) -> None:
        """Nothing waits."""

    async def close(self, grace_s: float = 0.0) -> None:
        """Nothing is open."""


class NoLastUsed(LastUsed):
    """No time of use is known."""

    def __init__(self) -> None:
        """There is nothing to set up."""

    def touch(self, subject: str, item_ids: Iterable[str], *, at: int | None = None) -> None:
        """Nothing is noted."""

    def of(self, subject: str) -> Mapping[str, int]:
        return {}

    def complete(self, subject: str) -> bool:
        return True

    async def load(self, subject: str) -> Mapping[str, int]:
        return {}

    async def flush(self) -> None:
        """Nothing waits."""

    def committed(self, subject: str, commit: Commit) -> None:
        """Nothing is noted."""

    def forget(self, erasure: Erasure) -> None:
        """Nothing is in RAM."""


class NoToolLog(ToolLog):
    """No call is noted."""

    def __init__(self) -> None:
        """There is nothing to set up."""

    def note(self, *args: Any, **call: Any) -> None:
        """Nothing is noted."""

    async def settle(self) -> None:
        """Nothing waits."""

    async def close(self, grace_s: float = 0.0) -> None:
        """Nothing is open."""

    async def purge(self, now_ms: int) -> int:
        return 0


class NoSummaries(RollingMemory):
    """No conversation has a summary."""

    def __init__(self) -> None:
        """There is nothing to set up."""

    async def get(self, session_key: str) -> Rolling:
        return NOTHING

    def in_ram(self, session_key: str) -> Rolling:
        return NOTHING

"""What a conversation's summary has taken in: the cursor `summary-<session>`.

It has the newest message in the summary (`upTo`), the ids of older ones that are not in it yet (`left`), the
message after which the summary begins (`from`), the number of messages in it (`count`), and when it was
stored (`at`). If that summary is gone, it is made again from what was said since `from`. A clear and an
erasing leave nothing but `upTo`: what they ended never comes back. `again` counts how often a summary was
withdrawn since it was stored, and `base` is what was left of it.
"""

from collections.abc import Mapping

from discoclaw.core.consent import Consent
from discoclaw.core.errors import MemoryFault
from discoclaw.core.subject import person_of
from discoclaw.core.times import snowflake_at, valid_ms
from discoclaw.loops.heard import LEFT, Backlog
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.conversations.withdrawn import message_in
from discoclaw.memory.disk.cursors import Cursors


class SummaryCursors:
    """The cursors of all summaries in `rolling`. `consent` knows when people had their memory erased."""

    def __init__(self, cursors: Cursors, rolling: RollingMemory, consent: Consent) -> None:
        self._cursors = cursors
        self._rolling = rolling
        self._consent = consent

    async def get(self, session_key: str) -> Mapping[str, object]:
        """The cursor; empty if there is none."""
        return await self._cursors.get(_seen(session_key))

    async def again(self, session_key: str) -> int:
        """How often a summary was withdrawn since it was last stored."""
        return again_in(await self.get(session_key))

    async def lost(self, session_key: str) -> bool:
        """Whether there was a summary that nobody cleared or erased, and that is gone."""
        cursor = await self.get(session_key)
        at = cursor.get("at")
        try:
            there = bool((await self._rolling.get(session_key)).updated_at)
            if cursor.get("again"):
                return not there
            return not there and valid_ms(at) and at > await self._rolling.cleared_at(session_key)
        except MemoryFault:
            return False  # a summary that cannot be read is not gone

    async def saw(self, session_key: str, up_to: int, backlog: Backlog | None = None) -> None:
        """Keep everything up to this message out of later summaries, for good, but for what still waits."""

        def further(known: Mapping[str, object]) -> Mapping[str, object] | None:
            if up_to <= self.erased_up_to(session_key):
                return None
            return {"upTo": str(max(up_to, message_in(known))), **_left(session_key, backlog)}

        await self._cursors.update(_seen(session_key), further)

    async def took(
        self, session_key: str, backlog: Backlog, *, oldest: int, added: int, anew: bool, again: int
    ) -> None:
        """Note that what the backlog has taken is in the summary, unless it was cleared meanwhile.

        `added` of them are new in it, the `oldest` first, and only they are in it if it was begun `anew`.
        Where it was withdrawn more often than `again` says, it has to be made again, and nothing is noted.
        """
        up_to = backlog.taken[session_key]
        if await self.again(session_key) > again:
            return
        at = (await self._rolling.get(session_key)).updated_at
        if not at:
            await self.saw(session_key, up_to, backlog)
            return

        def further(known: Mapping[str, object]) -> Mapping[str, object] | None:
            if up_to <= self.erased_up_to(session_key) or again_in(known) > again:
                return None
            before, count = min(message_in(known), oldest - 1), added + (0 if anew else count_in(known))
            stored = {"count": count, "at": at, **_left(session_key, backlog)}
            if "from" in known:  # not the later of two: a summary that is made again begins far back
                first = min(message_in(known, "from"), oldest - 1)
                return {"upTo": str(up_to), "from": str(first), **stored}
            return {"upTo": str(max(up_to, message_in(known))), "from": str(before), **stored}

        await self._cursors.update(_seen(session_key), further)

    def erased_up_to(self, session_key: str) -> int:
        """The newest message id (snowflake) of a DM whose person was erased; 0 otherwise."""
        person = person_of(session_key)
        at = self._consent.erased_at(person) if person is not None else -1
        return snowflake_at(at) if at >= 0 else 0


def _left(session_key: str, backlog: Backlog | None) -> dict[str, list[str]]:
    left = backlog.left_behind().get(session_key) if backlog is not None else None
    return {LEFT: left} if left else {}


def again_in(cursor: Mapping[str, object]) -> int:
    """How often a summary was withdrawn since it was last stored."""
    value = cursor.get("again")
    return value if isinstance(value, int) else 0


def count_in(cursor: Mapping[str, object]) -> int:
    """The number of messages in a summary."""
    value = cursor.get("count")
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _seen(session_key: str) -> str:
    return f"summary-{session_key}"

"""When subjects have to be looked at again although nothing changed, so that no round asks everybody.

Each hour in which something falls due has a cursor, `<name>-due-h<hour>` {subject: time in ms}, and the
cursor `<name>` lists these `hours`. The list is written before a new hour's cursor, and shortened after
everybody in it was looked at. An hour in the list without a cursor means that the cursor was lost.
Independent of what is due.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from discoclaw.core.idle import HOUR_MS
from discoclaw.memory.disk.cursors import Cursors

_HOURS: Final = "hours"


class Dues:
    """The due times of one kind of work."""

    def __init__(self, name: str, cursors: Cursors) -> None:
        self._name = name
        self._cursors = cursors

    async def fallen(self, now: int) -> list[str] | None:
        """The subjects that are due at a time (ms), the longest due first; None if some may be missing."""
        due: dict[str, int] = {}
        for hour in await self._past(now):
            if not (there := _times(await self._cursors.get(self._doc(hour)))):
                return None
            due |= {subject: at for subject, at in there.items() if at < now}
        return sorted(due, key=lambda subject: due[subject])

    async def move(self, now: int, done: Collection[str], later: Mapping[str, int]) -> None:
        """Note when subjects are due next, and forget when those that were `done` at a time (ms) were due."""
        by_hour: dict[int, dict[str, int]] = defaultdict(dict)
        for subject, at in later.items():
            by_hour[at // HOUR_MS][subject] = at
        if by_hour:
            await self._list(set(by_hour), set())
        for hour, times in by_hour.items():
            await self._cursors.update(self._doc(hour), lambda known, times=times: {**known, **times})  # type: ignore[misc]
        over = set()
        for hour in await self._past(now):
            times = _times(await self._cursors.get(self._doc(hour)))
            left = {one: at for one, at in times.items() if one not in done or later.get(one) == at}
            if not left:
                over.add(hour)
            elif left != times:
                await self._cursors.update(self._doc(hour), lambda known, left=left: left)  # type: ignore[misc]
        if over:
            await self._list(set(), over)
            await self._cursors.remove([self._doc(hour) for hour in sorted(over)])

    async def _past(self, now: int) -> list[int]:
        hours = (await self._cursors.get(self._name)).get(_HOURS)
        found = (one for one in hours if isinstance(one, int)) if isinstance(hours, list) else ()
        return sorted(one for one in found if one <= now // HOUR_MS)

    async def _list(self, more: Collection[int], over: Collection[int]) -> None:
        def listed(known: Mapping[str, object]) -> Mapping[str, object]:
            hours = known.get(_HOURS)
            there = set(hours) if isinstance(hours, list) else set[int]()
            return {**known, _HOURS: sorted((there | set(more)) - set(over))}

        await self._cursors.update(self._name, listed)

    def _doc(self, hour: int) -> str:
        return f"{self._name}-due-h{hour}"


def _times(cursor: Mapping[str, object]) -> dict[str, int]:
    return {subject: at for subject, at in cursor.items() if isinstance(at, int)}

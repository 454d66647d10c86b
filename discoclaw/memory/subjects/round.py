"""What a round of work over all subjects has to look at: those that changed since the last one, and the rest.

The cursor `<name>` has the subjects that are still `todo`, in the order in which they changed, and
`<name>-mark` the moment of the store up to which they were found; it is written after the first, and before a
subject is looked at, so a process that is killed loses none. Independent of what is looked at.
"""

from collections.abc import Collection, Iterable, Mapping

from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.files import in_thread
from discoclaw.memory.disk.port import Head, Ledgers, Mark


class Rounds:
    """The rounds of one kind of work; `name` is that of their cursor, which may have other fields too."""

    def __init__(self, name: str, ledgers: Ledgers, cursors: Cursors) -> None:
        self._name, self._mark = name, f"{name}-mark"
        self._ledgers = ledgers
        self._cursors = cursors

    async def begin(self, also: Iterable[str] = (), *, anew: bool = False) -> list[str]:
        """Return what this round has to look at, the longest-standing first.

        `also` are subjects to look at though they did not change; with `anew` these are all. Raises OSError.
        """
        erasings, cursor = self._cursors.erasings, await self._cursors.get(self._name)
        mark: Mark = None
        if not anew and "todo" in cursor:  # else it was lost, and with it what was found before the mark
            mark = (await self._cursors.get(self._mark)).get("mark")  # type: ignore[assignment]
        changed, present = await in_thread(self._ledgers.since, mark)
        new = dict.fromkeys([*also, *changed])

        def noted(known: Mapping[str, object]) -> Mapping[str, object] | None:
            if erasings != self._cursors.erasings:
                return None  # the next round finds the same once more
            return {**known, "todo": list(dict.fromkeys([*_todo(known), *new]))}

        def moved(known: Mapping[str, object]) -> Mapping[str, object] | None:
            return {"mark": present} if erasings == self._cursors.erasings else None

        if await self._cursors.update(self._name, noted):
            if present != mark:
                await self._cursors.update(self._mark, moved)
            return _todo(await self._cursors.get(self._name))
        return list(dict.fromkeys([*_todo(cursor), *new]))

    async def done(self, subjects: Collection[str]) -> None:
        """Note that these need not be looked at again until they change."""
        if not subjects:
            return
        gone = frozenset(subjects)

        def noted(known: Mapping[str, object]) -> Mapping[str, object]:
            return {**known, "todo": [one for one in _todo(known) if one not in gone]}

        await self._cursors.update(self._name, noted)

    async def head(self, subject: str) -> Head:
        """How far a subject's ledger reaches. Raises OSError."""
        return await in_thread(self._ledgers.log(subject).head)


def _todo(cursor: Mapping[str, object]) -> list[str]:
    found = cursor.get("todo")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []

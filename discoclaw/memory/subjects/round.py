"""Rounds of work over all subjects: each looks at those that changed since the last, and at what it left.

The cursor `<name>` has the subjects that are still `todo`, in the order in which they changed, and the
`mark`, the moment of the store up to which they were found. It is written before a subject is looked at, so a
process that is killed loses none. Independent of what is looked at.
"""

from collections.abc import Collection, Iterable, Mapping

from discoclaw.memory.cursors import Cursors, texts_of
from discoclaw.store.files import in_thread
from discoclaw.store.port import Head, Ledgers, Mark


class Rounds:
    """The rounds of one kind of work; `name` is that of their cursor, which may have other fields too."""

    def __init__(self, name: str, ledgers: Ledgers, cursors: Cursors) -> None:
        self._name = name
        self._ledgers = ledgers
        self._cursors = cursors

    async def begin(self, also: Iterable[str] = (), *, anew: bool = False) -> list[str]:
        """Return what this round has to look at, the longest-standing first.

        `also` are subjects to look at though they did not change; with `anew` these are all. Raises OSError.
        """
        erasings, cursor = self._cursors.erasings, await self._cursors.get(self._name)
        mark = None if anew else await marked(self._cursors, self._name)
        changed, present = await in_thread(self._ledgers.since, mark)
        new = dict.fromkeys([*also, *changed])

        def noted(known: Mapping[str, object]) -> Mapping[str, object] | None:
            if erasings != self._cursors.erasings:
                return None  # the next round finds the same once more
            return {**known, "todo": list(dict.fromkeys([*texts_of(known, "todo"), *new])), "mark": present}

        if await self._cursors.update(self._name, noted):
            return texts_of(await self._cursors.get(self._name), "todo")
        return list(dict.fromkeys([*texts_of(cursor, "todo"), *new]))

    async def done(self, subjects: Collection[str]) -> None:
        """Note that these need not be looked at again until they change."""
        if not subjects:
            return
        gone = frozenset(subjects)

        def noted(known: Mapping[str, object]) -> Mapping[str, object]:
            return {**known, "todo": [one for one in texts_of(known, "todo") if one not in gone]}

        await self._cursors.update(self._name, noted)

    async def head(self, subject: str) -> Head:
        """How far a subject's ledger reaches. Raises OSError."""
        return await in_thread(self._ledgers.log(subject).head)


async def marked(cursors: Cursors, name: str) -> Mark:
    """The mark in a cursor. Earlier versions had it in one of its own, which is removed."""
    cursor, old = await cursors.get(name), f"{name}-mark"
    if "mark" in cursor or "todo" not in cursor:
        return cursor.get("mark")  # type: ignore[return-value]
    mark = (await cursors.get(old)).get("mark")
    await cursors.remove([old])
    return mark  # type: ignore[return-value]

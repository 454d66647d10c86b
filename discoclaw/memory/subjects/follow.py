"""Work that goes over what changed: followers, which mirror memory elsewhere, and rounds over all subjects.

Each has a cursor {mark, todo}: the mark is a moment of the store, and everything that changed up to it is
done except what is still `todo`. So a start costs no more than there were changes while the program was down.

A follower is told of each change, mirrors it in a task of its own and saves its progress afterwards. The
writer never calls a mirror, which may lag or fail without affecting anything else. A round looks for changes
when it begins, and saves what it found before it looks at any, so a process that is killed loses none.
Independent of what a mirror is, and of what a round looks at.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from discoclaw.memory.changes import Listener
from discoclaw.memory.cursors import Cursors, texts_of
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import INTENTS, NO_LOG, Head, Ledgers, Mark, subject_of
from discoclaw.work import RETRY_S, Worker

log = logging.getLogger(__name__)

_MORE = ""
"""The key queued behind subjects that were found, so that the next ones are looked for even if all failed."""

Mirror = Callable[[str], Awaitable[None]]
"""Updates the mirror of one subject; raises if that fails."""


class Follower(Listener):
    """Keeps one mirror up to date. `retry_s` is the first pause after a failure; it doubles up to an hour.

    Until it is started, and after it is closed, it ignores what changes, and finds it when it catches up. One
    that is `awake` mirrors what it is told of from the beginning, in every process, but only the one that
    catches up keeps the cursor. That is saved whenever nothing is left to do for now. A failing subject does
    not hold up the others.
    """

    def __init__(
        self,
        name: str,
        mirror: Mirror,
        *,
        ledgers: Ledgers,
        cursors: Cursors,
        retry_s: float = RETRY_S,
        awake: bool = False,
    ) -> None:
        self._name = f"follow-{name}"
        self._mirror = mirror
        self._ledgers = ledgers
        self._cursors = cursors
        self._retry_s = retry_s
        self._worker: Worker[str] | None = self._new_worker() if awake else None
        self._follows = False  # whether the cursor is ours: what it has was read, and everything since noted
        self._mark: Mark = None
        self._done: dict[str, Head] = {}
        """How far each ledger was mirrored since the mark."""
        self._todo: dict[str, int] = {}
        """How often each subject was touched since its last mirroring began that worked."""

    async def catch_up(self) -> None:
        """Queue every subject that is not mirrored as it is now. Does nothing unless it is started."""
        if self._worker is None:
            return
        cursor = await self._cursors.get(self._name)
        self._mark = await _marked(self._cursors, self._name)
        self._follows = True
        for subject in texts_of(cursor, "todo"):
            self.touch(subject)
        await self._save()

    def recorded(self, subject: str) -> None:
        self.touch(subject)

    async def renewed(self, names: Collection[str]) -> None:
        if self._follows:  # else it is found when we catch up
            for subject in filter(None, map(_about, names)):
                self.touch(subject)

    def touch(self, subject: str) -> None:
        """Queue a subject that changed. Never blocks. After a recent failure it still waits out its pause."""
        if self._worker is not None:
            self._todo[subject] = self._todo.get(subject, 0) + 1
            self._worker.note(subject)

    async def start(self) -> None:
        """Take note of what changes. `catch_up` is called when the mirror can be reached."""
        if self._worker is None:
            self._worker = self._new_worker()
            await self._worker.start()

    async def settle(self) -> None:
        """Wait until nothing is left to do for now; failed subjects may be waiting for a retry."""
        if self._worker is not None:
            await self._worker.settle()

    async def rest(self) -> None:
        """Leave the cursor to another process; what we are told of is still mirrored."""
        self._follows = False
        self._done.clear()

    async def close(self) -> None:
        """Stop; the next start finds what is left."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close(0)
        await self.rest()
        self._todo.clear()

    # ------------------------------------------------------------------ inside

    def _new_worker(self) -> Worker[str]:
        return Worker(self._name, self._bring, retry_s=self._retry_s, idle=self._save)

    async def _bring(self, subject: str) -> None:
        if subject == _MORE:
            return
        touched, head = self._todo.get(subject), await read_in_thread(self._head, subject)
        await self._mirror(subject)
        if self._follows:
            self._done[subject] = head
        if self._todo.get(subject) == touched:
            self._todo.pop(subject, None)

    async def _save(self, brought: Collection[str] = ()) -> None:
        """Save the progress, and queue what changed since without being mirrored, or the first of that."""
        while self._follows:
            erasings, known, todo = self._cursors.erasings, dict(self._done), list(self._todo)
            try:
                changed, heads, present = await read_in_thread(self._look, todo)
            except OSError as error:
                log.warning("%s: what changed meanwhile cannot be found: %s", self._name, error)
                return
            found = [one for one in changed if known.get(one) != heads[one]]
            for subject in found:
                self.touch(subject)
            left = [one for one in self._todo if heads.get(one) != NO_LOG]
            if not await self._write({"mark": present, "todo": left}, erasings):
                return  # the only cost is that the work is repeated
            if present == self._mark:
                return
            self._mark = present
            self._done = {one: head for one, head in self._done.items() if known.get(one) != head}
            if found and self._worker is not None:
                self._worker.note(_MORE)
            if found or not changed:
                return

    async def _write(self, cursor: Mapping[str, object], erasings: int) -> bool:
        """Write the cursor, unless there were more erasings than so many."""

        def noted(known: Mapping[str, object]) -> Mapping[str, object] | None:
            return cursor if erasings == self._cursors.erasings else None

        return cursor == await self._cursors.get(self._name) or await self._cursors.update(self._name, noted)

    def _look(self, todo: Iterable[str]) -> tuple[list[str], Mapping[str, Head], Mark]:
        """The subjects that changed since the mark, heads of these and of those to do, and the next mark."""
        changed, present = self._ledgers.since(self._mark)
        return changed, {one: self._head(one) for one in {*changed, *todo}}, present

    def _head(self, subject: str) -> Head:
        try:
            return self._ledgers.log(subject).head()
        except OSError:
            return NO_LOG


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
        mark = None if anew else await _marked(self._cursors, self._name)
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


async def _marked(cursors: Cursors, name: str) -> Mark:
    """The mark in a cursor. Earlier versions had it in one of its own, which is removed."""
    cursor, old = await cursors.get(name), f"{name}-mark"
    if "mark" in cursor or "todo" not in cursor:
        return cursor.get("mark")  # type: ignore[return-value]
    mark = (await cursors.get(old)).get("mark")
    await cursors.remove([old])
    return mark  # type: ignore[return-value]


def _about(name: str) -> str | None:
    """The subject of a ledger, or of an erasing, by its path in the store."""
    folder, _, file = name.rpartition("/")
    return file.removesuffix(".json") if folder == INTENTS else subject_of(name)

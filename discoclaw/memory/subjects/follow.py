"""Followers of the ledger: they mirror memory elsewhere, each with a saved cursor.

The writer never calls a mirror. It only reports that a subject changed; a follower's own task then updates
the mirror and saves its progress. The cursor `<name>-mark` has a moment of the store, up to which everything
is mirrored except what is still `todo` in the cursor `<name>`; what is `done` there changed later. Changes
made while the program was down are those since the mark, so a start costs no more than there were changes. A
mirror may lag or fail without affecting anything else. Independent of what a mirror is.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path

from pydantic import JsonValue

from discoclaw.memory.changes import Listener
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.memory.disk.plain import ledgers_at
from discoclaw.memory.disk.port import INTENTS, NO_LOG, Head, Ledgers, Mark, subject_of
from discoclaw.work import RETRY_S, Worker

log = logging.getLogger(__name__)

Mirror = Callable[[str], Awaitable[None]]
"""Updates the mirror of one subject; raises if that fails."""

MOST_DONE = 1_000
"""The most subjects in a cursor that were mirrored since its mark; then the mark is moved on."""


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
        ledgers: Path | Ledgers,
        cursors: Cursors,
        retry_s: float = RETRY_S,
        awake: bool = False,
    ) -> None:
        self._name, self._mark = f"follow-{name}", f"follow-{name}-mark"
        self._mirror = mirror
        self._ledgers = ledgers_at(ledgers)
        self._cursors = cursors
        self._retry_s = retry_s
        self._worker: Worker[str] | None = self._new_worker() if awake else None
        self._follows = False  # whether the cursor is ours: what it has was read, and everything since noted
        self._done: dict[str, Head] = {}
        """How far each ledger was mirrored since the mark in the cursor."""
        self._todo: dict[str, int] = {}
        """How often each subject was touched since its last mirroring began that worked."""

    async def catch_up(self) -> None:
        """Queue every subject that is not mirrored as it is now. Does nothing unless it is started."""
        if self._worker is None:
            return
        cursor = await self._cursors.get(self._name)
        self._done = {**_heads(cursor), **self._done}
        self._follows = True
        for subject in _texts(cursor.get("todo")):
            self.touch(subject)
        try:
            await self._move_on()
        except OSError as error:
            log.warning("%s: what changed meanwhile cannot be found: %s", self._name, error)

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
        touched, head = self._todo.get(subject), await read_in_thread(self._head, subject)
        await self._mirror(subject)
        if self._follows:
            self._done[subject] = head
        if self._todo.get(subject) == touched:
            self._todo.pop(subject, None)

    async def _save(self, subjects: Collection[str] = ()) -> None:
        """Save the progress, without subjects that are gone or were erased meanwhile."""
        if not self._follows:
            return
        if len(self._done) > MOST_DONE:
            await self._move_on()
            return
        await self._write(self._cursors.erasings)

    async def _move_on(self) -> None:
        """Move the mark to the present, and queue what changed since without being mirrored."""
        known, erasings = dict(self._done), self._cursors.erasings
        mark: Mark = None
        if "todo" in await self._cursors.get(self._name):  # else it was lost, or an earlier version's
            mark = (await self._cursors.get(self._mark)).get("mark")  # type: ignore[assignment]
        open_, present = await read_in_thread(self._changed, mark, known)
        for subject in open_:
            self.touch(subject)
        if not await self._write(erasings):
            return
        if present != mark and not await self._cursors.update(
            self._mark, lambda _: {"mark": present} if erasings == self._cursors.erasings else None
        ):
            return
        for subject, head in known.items():
            if self._done.get(subject) == head:
                del self._done[subject]

    def _changed(self, mark: Mark, known: Mapping[str, Head]) -> tuple[list[str], Mark]:
        """The subjects that changed since a mark and are not mirrored, and the mark of now. Blocking."""
        changed, present = self._ledgers.since(mark)
        return [one for one in changed if not _same(known.get(one), self._head(one))], present

    async def _write(self, erasings: int) -> bool:
        """Write the cursor, unless there were more erasings than so many."""
        wanted = {*self._done, *self._todo}
        gone = await read_in_thread(lambda: {subject for subject in wanted if self._head(subject) == NO_LOG})
        for subject in gone:
            self._done.pop(subject, None)

        def noted(known: Mapping[str, object]) -> Mapping[str, object] | None:
            if erasings != self._cursors.erasings:
                return None  # the only cost is that the work is repeated
            done = {one: list(head) for one, head in self._done.items() if one in wanted - gone}
            todo = [one for one in self._todo if one in wanted - gone]
            return {"done": done, "todo": todo}

        return await self._cursors.update(self._name, noted)

    def _head(self, subject: str) -> Head:
        try:
            return self._ledgers.log(subject).head()
        except OSError:
            return NO_LOG


def _about(name: str) -> str | None:
    """The subject of a ledger, or of an erasing, by its path in the store."""
    folder, _, file = name.rpartition("/")
    return file.removesuffix(".json") if folder == INTENTS else subject_of(name)


def _same(known: Head | None, head: Head) -> bool:
    return known is not None and known.size == head.size and known.generation in {head.generation, _ANY}


_ANY = -1
"""The generation of a log whose length alone is known."""


def _heads(cursor: Mapping[str, object]) -> dict[str, Head]:
    """How far each ledger was mirrored, from a cursor; those of earlier versions had lengths alone."""
    done = cursor.get("done") if "todo" in cursor else cursor
    pairs: Iterable[tuple[str, object]] = done.items() if isinstance(done, dict) else ()
    return {subject: head for subject, value in pairs if (head := _head_in(value)) is not None}


def _head_in(value: object) -> Head | None:
    match value:
        case int(size) if not isinstance(size, bool):
            return Head(size, _ANY)
        case [int(size), int(generation)]:
            return Head(size, generation)
        case _:
            return None


def _texts(value: JsonValue | object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []

"""Work that goes over what changed: followers, which mirror memory elsewhere, and rounds over all subjects.

Each has a cursor {mark, todo}: the mark is a moment of the store, and everything that changed up to it is
done except what is still `todo`. So a start costs no more than there were changes while the program was down.

A follower is told of each change, mirrors it in a task of its own and saves its progress afterwards. The
writer never calls a mirror, which may lag or fail without affecting anything else. A round looks for changes
when it begins, and saves what it found before it looks at any, so a process that is killed loses none.
Independent of what a mirror is, and of what a round looks at.
"""

import logging
import secrets
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Final

from discoclaw.memory.changes import Listener
from discoclaw.memory.cursors import Cursors, InTwo, read_surely, texts_of
from discoclaw.store.files import in_thread, read_in_thread
from discoclaw.store.port import (
    CURSORS,
    INTENTS,
    NO_LOG,
    Disk,
    Head,
    Ledgers,
    Log,
    Mark,
    changed,
    subject_of,
)
from discoclaw.work import LONGEST_S, RETRY_S, Worker

log = logging.getLogger(__name__)

_MORE = ""
"""The key queued behind subjects that were found, so that the next ones are looked for even if all failed."""

Mirror = Callable[[str], Awaitable[None]]
"""Updates the mirror of one subject; raises if that fails."""


class Follower(Listener):
    """Keeps one mirror up to date. `retry_s` is the first pause after a failure, `longest_s` the longest.

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
        longest_s: float = LONGEST_S,
        awake: bool = False,
    ) -> None:
        self._name = f"follow-{name}"
        self._mirror = mirror
        self._ledgers = ledgers
        self._cursors = cursors
        self._pauses_s = retry_s, longest_s
        self._worker: Worker[str] | None = self._new_worker() if awake else None
        self._follows = False  # whether the cursor is ours: what it has was read, and everything since noted
        self._mark: Mark = None
        self._done: dict[str, Head] = {}
        """How far each ledger was mirrored since the mark."""
        self._todo: dict[str, int] = {}
        """How often each subject was touched since its last mirroring began that worked."""

    @property
    def started(self) -> bool:
        """Whether it takes note of what changes."""
        return self._worker is not None

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

    async def renewed(self, names: Collection[str], after_s: float = 0.0) -> None:
        if self._follows:  # else it is found when we catch up
            for subject in filter(None, map(_about, names)):
                self.touch(subject, after_s)

    def touch(self, subject: str, after_s: float = 0.0) -> None:
        """Queue a subject that changed. Never blocks. After a recent failure it still waits out its pause."""
        if self._worker is not None:
            self._todo[subject] = self._todo.get(subject, 0) + 1
            self._worker.note(subject, after_s)

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
        retry_s, longest_s = self._pauses_s
        return Worker(self._name, self._bring, retry_s=retry_s, longest_s=longest_s, idle=self._save)

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


# ---------------------------------------------------------------------- which ledgers changed
# In a store that one process uses, each change gets the next number:
#
#     cursors/ledgers.json          {store, last, ledgers: {subject: [size, number]}}; `store` is a random id
#     cursors/ledgers-recent.json   the same, of the ledgers that changed since the first was written
#
# Who first asks has all ledgers listed, which finds what changed unseen. Then each change is noted as it is
# recorded, so an answer costs as much as there were changes. Without the texts, everything counts as changed.

INDEX: Final = "ledgers"
MOST_AT_ONCE: Final = 1_000
"""The most subjects in an answer. Its mark is that of the last of them, so the next answer goes on there."""
MOST_RECENT: Final = 256
"""The most ledgers that are written again with each change."""
_ALL, _RECENT = f"{INDEX}.json", f"{INDEX}-recent.json"

_Numbers = dict[str, tuple[int, int]]


class Numbered(Ledgers, Listener):
    """The ledgers of a disk, which is only read unless it `keeps` the numbers. A mark is [store, number]."""

    def __init__(self, disk: Disk, *, keeps: bool = True) -> None:
        self._ledgers = disk.ledgers
        self._folder = disk.documents(CURSORS)
        self._keeps = keeps
        self._store = ""
        self._last = 0
        self._known: _Numbers = {}  # in the order of the numbers; the size of one that is gone is 0
        self._texts = InTwo(_ALL, _RECENT, MOST_RECENT)
        self._saved = False
        self._asked = False
        self._noted: deque[str] = deque()
        self._lock = threading.Lock()

    def log(self, subject: str) -> Log:
        return self._ledgers.log(subject)

    def by_age(self) -> list[tuple[str, int]]:
        return self._ledgers.by_age()

    def recorded(self, subject: str) -> None:
        if self._asked:  # else it will be seen in the list
            self._noted.append(subject)

    def since(self, mark: Mark) -> tuple[list[str], Mark]:
        """At most `MOST_AT_ONCE` changed subjects, and the next mark; all and `mark` if none can be saved."""
        with self._lock:
            self._number(self._moved() if self._store else self._first())
            if isinstance(mark, dict):  # of an earlier version: the sizes of all
                newer = changed(self.by_age(), mark)[0]
            else:
                after = mark[1] if isinstance(mark, list) and mark[:1] == [self._store] else 0
                newer = [*takewhile(lambda one: self._known[one][1] > after, reversed(self._known))][::-1]  # type: ignore[operator]
            if not self._saved:
                return newer, mark
            if isinstance(mark, dict) or len(newer) <= MOST_AT_ONCE:
                return newer, [self._store, self._last]
            return newer[:MOST_AT_ONCE], [self._store, self._known[newer[MOST_AT_ONCE - 1]][1]]

    # ------------------------------------------------------------------ inside

    def _first(self) -> list[tuple[str, int]]:
        """Read the numbers. Returns what changed since they were saved, with its size."""
        self._asked = True
        (store, last, known), (also, newest, recent) = self._read(_ALL), self._read(_RECENT)
        listed = dict(self.by_age())
        if not store:
            self._texts.anew()
        else:
            recent, newest = (recent, newest) if also == store else ({}, 0)
            self._texts, self._saved = InTwo(_ALL, _RECENT, MOST_RECENT, changed=recent), self._keeps
            self._known = dict(sorted({**known, **recent}.items(), key=lambda one: one[1][1]))
        self._store, self._last = store or secrets.token_hex(8), max(last, newest)
        gone = [(one, 0) for one in self._known.keys() - listed.keys()]
        return gone + [one for one in listed.items() if self._known.get(one[0], (-1, 0))[0] != one[1]]

    def _moved(self) -> list[tuple[str, int]]:
        """Subjects recorded since the last answer, with their sizes, without those that were erased."""
        noted = self._noted.copy()
        moved = {one: self.log(one).size() for one in noted}
        for _ in noted:
            self._noted.popleft()
        for erased in (one for one, size in moved.items() if not size):
            self._known.pop(erased, None)
            self._texts.anew()
            self._saved = False
        return [(one, size) for one, size in moved.items() if size]

    def _number(self, moved: Iterable[tuple[str, int]]) -> None:
        """Give the next numbers to what changed, and save them. What the disk refuses is saved later."""
        for subject, size in moved:
            self._last += 1
            self._known.pop(subject, None)
            self._known[subject] = size, self._last
            self._texts.changed(subject)
            if not size:
                self._texts.anew()
            self._saved = False
        if self._saved or not self._keeps:
            return
        try:
            for name, subjects in self._texts.writes(self._known):
                self._write(name, subjects)
            self._saved = True
        except OSError as error:
            log.warning("which memories changed can't be saved: %s", error)

    def _read(self, name: str) -> tuple[str, int, _Numbers]:
        """Store, last number and numbers in a text; nothing if it makes no sense."""
        match read_surely(self._folder, name):
            case {"store": str(store), "last": int(last), "ledgers": dict(found)}:
                with suppress(TypeError, ValueError):
                    return (
                        store,
                        last,
                        {one: (int(size), int(number)) for one, (size, number) in found.items()},
                    )
        return "", 0, {}

    def _write(self, name: str, subjects: Iterable[str]) -> None:
        """Write some of the numbers, line by line: one call that renders all would stop everybody."""
        known = ((one, *self._known[one]) for one in subjects)
        lines = ",\n".join(f'    "{one}": [{size}, {number}]' for one, size, number in known if size)
        head = f'  "store": "{self._store}",\n  "last": {self._last},\n'
        self._folder.write(name, f'{{\n{head}  "ledgers": {{\n{lines}\n  }}\n}}\n'.encode())

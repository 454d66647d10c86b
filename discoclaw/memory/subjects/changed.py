"""Which ledgers changed since when, in a store that one process uses: each change gets the next number.

    cursors/ledgers.json          {store, last, ledgers: {subject: [size, number]}}; `store` is a random id
    cursors/ledgers-recent.json   the same, of the ledgers that changed since the first was written

Who first asks has all ledgers listed, which finds what changed unseen. Then each change is noted as it is
recorded, so an answer costs as much as there were changes. Without the texts, everything counts as changed.
"""

import logging
import secrets
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from itertools import takewhile
from typing import Final

from discoclaw.memory.changes import Listener
from discoclaw.memory.cursors import InTwo, read_surely
from discoclaw.store.port import CURSORS, Disk, Ledgers, Log, Mark, changed

log = logging.getLogger(__name__)

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

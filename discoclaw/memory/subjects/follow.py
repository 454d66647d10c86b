"""Followers of the ledger: they mirror memory elsewhere, each with a saved cursor.

The writer never calls a mirror. It only reports that a subject changed; a follower's own task then updates
the mirror and saves its progress. Changes made while the program was down are found at the start, by
comparing the sizes of the ledgers with the cursor. A mirror may lag or fail without affecting anything else.
Independent of what a mirror is.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path

from discoclaw.memory.changes import Listener
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.disk.files import read_in_thread
from discoclaw.memory.disk.port import Ledgers, ledgers_at
from discoclaw.work import RETRY_S, Worker

log = logging.getLogger(__name__)

Mirror = Callable[[str], Awaitable[None]]
"""Updates the mirror of one subject; raises if that fails."""


class Follower(Listener):
    """Keeps one mirror up to date. `retry_s` is the first pause after a failure; it doubles up to an hour.

    The cursor is saved whenever nothing is left to do for now. A failing subject does not hold up the others.
    """

    def __init__(
        self,
        name: str,
        mirror: Mirror,
        *,
        ledgers: Path | Ledgers,
        cursors: Cursors,
        retry_s: float = RETRY_S,
    ) -> None:
        self._name = f"follow-{name}"
        self._mirror = mirror
        self._ledgers = ledgers_at(ledgers)
        self._cursors = cursors
        self._sizes: dict[str, int] = {}
        """The lengths of mirrored ledgers that are not in the saved cursor yet."""
        self._worker = Worker(self._name, self._bring, retry_s=retry_s, idle=self._save)

    async def catch_up(self) -> None:
        """Queue every subject whose ledger length differs from the cursor."""
        done = await self._cursors.get(self._name)
        try:
            there = await read_in_thread(self._ledgers.by_age)
        except OSError as error:
            log.warning("%s: what changed meanwhile cannot be found: %s", self._name, error)
            return
        for subject, size in there:
            if done.get(subject) != size:
                self.touch(subject)

    def recorded(self, subject: str) -> None:
        self.touch(subject)

    def touch(self, subject: str) -> None:
        """Queue a subject that changed. Never blocks. After a recent failure it still waits out its pause."""
        self._worker.note(subject)

    async def start(self) -> None:
        """Does nothing: `catch_up` is called when the mirror can be reached."""

    async def settle(self) -> None:
        """Wait until nothing is left to do for now; failed subjects may be waiting for a retry."""
        await self._worker.settle()

    async def close(self) -> None:
        """Stop; the next start finds what is left."""
        await self._worker.close(0)

    # ------------------------------------------------------------------ inside

    async def _bring(self, subject: str) -> None:
        size = await read_in_thread(self._size, subject)
        await self._mirror(subject)
        self._sizes[subject] = size

    async def _save(self, subjects: Collection[str]) -> None:
        """Save the progress, without subjects that are gone or were erased meanwhile."""
        done, erasings = dict(self._sizes), self._cursors.erasings
        gone = await read_in_thread(lambda: {subject for subject in done if not self._size(subject)})

        def noted(known: Mapping[str, object]) -> Mapping[str, object] | None:
            if erasings != self._cursors.erasings:
                return None  # the only cost is that the work is repeated
            return {subject: size for subject, size in {**known, **done}.items() if subject not in gone}

        await self._cursors.update(self._name, noted)
        self._sizes.clear()

    def _size(self, subject: str) -> int:
        try:
            return self._ledgers.log(subject).size()
        except OSError:
            return 0

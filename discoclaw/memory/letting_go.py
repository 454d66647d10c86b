"""Lets go of what somebody took back, in every part with personal data: RAM at once, then what is on disk.

Knows nothing about how it becomes known what was taken back, or when that is done.
"""

import logging
from collections.abc import Callable, Collection, Sequence

from discoclaw.core.errors import MemoryFault
from discoclaw.core.personal import Registry, Withdrawn
from discoclaw.core.subject import dm_of, user_of
from discoclaw.core.taken_back import Withdrawal
from discoclaw.core.view import View
from discoclaw.memory.disk.files import in_thread

log = logging.getLogger(__name__)


class LettingGo:
    """Tells the parts in `personal`. `note` is told of which subject each of them removed what.

    In a store that several processes share, each of them withdraws from its `local` parts by itself.
    """

    def __init__(self, personal: Registry, note: Callable[[str, Withdrawn], None], *, shared: bool) -> None:
        self._personal = personal
        self._note = note
        self._shared = shared
        self._gone: dict[str, set[int]] = {}
        """The times (ms) of what is gone from RAM, by subject."""

    # ------------------------------------------------------------------ from RAM; never blocks

    def let_go_of(self, subject: str, view: View | None) -> None:
        """Let go of what a view says was taken back, as far as that was not done before."""
        if view is None or user_of(subject) is None:
            return
        for one in view.withdrawals(subject, lambda at: at not in self._gone.get(subject, ())):
            self.let_go(one)

    def let_go(self, withdrawal: Withdrawal) -> None:
        """Let go of what one withdrawal is about."""
        if withdrawal.texts:  # else no ledger has it, and that time may be another withdrawal's
            self._gone.setdefault(withdrawal.subject, set()).add(withdrawal.at)
        for part in self._personal:
            try:
                self._note(withdrawal.subject, part.let_go(withdrawal))
            except Exception:  # deliberately broad: whatever fails in one part, the others must let go
                log.exception("%s: %s could not let go", withdrawal.subject, part.name)

    def forget(self, subject: str) -> None:
        """Drop what is known about a subject."""
        self._gone.pop(subject, None)

    # ------------------------------------------------------------------ from disk

    async def withdraw(
        self,
        subject: str,
        found: Sequence[Withdrawal],
        sessions: Collection[str] | None = None,
        *,
        local: bool | None = None,
    ) -> None:
        """Let every part remove what was `found`, even if another one fails. Raises MemoryFault and OSError.

        `sessions` are the conversations that may have it; by default, all that have words of the subject.
        With `local`, only the parts that every process withdraws from by itself, or those that one does for
        all.
        """
        if not found:
            return
        parts = [part for part in self._personal if local in (None, part.local and self._shared)]
        if sessions is None:
            sessions = await in_thread(self._sessions, subject, self._personal.in_ram(subject))
        failures: list[Exception] = []
        for withdrawal in found:
            self.let_go(withdrawal)
            for part in parts:
                try:
                    self._note(subject, await part.withdraw(withdrawal, sessions))
                except (MemoryFault, OSError) as error:
                    failures.append(error)
        if failures:
            raise failures[0]

    def end(self, subject: str) -> None:
        """Tell the parts that everything a subject took back so far is gone."""
        for part in self._personal:
            part.withdrawn(subject)

    def _sessions(self, subject: str, known: set[str]) -> frozenset[str]:
        """The conversations that have words of a subject. Blocking. Raises OSError."""
        for part in self._personal:
            known.update(part.sessions_on_disk(subject))
        return frozenset(known | {dm_of(user_of(subject) or "")})

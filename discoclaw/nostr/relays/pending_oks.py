"""The events that were sent and wait for their OK (NIP-01), and which event an OK is about.

A relay may answer late, in any order, twice, or not at all. nostr-relay refuses with an empty event id.
Relays answer in order, so such an OK is about the oldest event without an answer: one that timed out, or
else the only one that waits. If several wait, nobody can tell, so all of them are told to try again.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final

from discoclaw.core.errors import RelayUnreachable
from discoclaw.nostr.relays.wire import Ok

PendingOk = asyncio.Future[Ok | RelayUnreachable]

_MAX_LATE: Final = 1_000


class PendingOks:
    """The OKs that are outstanding on one connection."""

    def __init__(self) -> None:
        self.one_at_a_time = False
        """The relay has refused something without saying what, so it must get one event at a time."""
        self._waiting: dict[str, list[PendingOk]] = {}
        self._late: dict[str, None] = {}
        """Ids of events that timed out: their OK may still come. Oldest first."""

    def __len__(self) -> int:
        return len(self._waiting)

    @contextlib.contextmanager
    def expect(self, id_: str) -> Iterator[PendingOk]:
        """A future for the OK of the event with this id, while the context is open."""
        answer: PendingOk = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(id_, [])
        waiting.append(answer)
        try:
            yield answer
        finally:
            waiting.remove(answer)
            if not waiting:
                self._waiting.pop(id_, None)
            # Without an answer: it may still come, and must not count for another event then.
            if not answer.done() or answer.cancelled():
                answer.cancel()
                self._late[id_] = None
                if len(self._late) > _MAX_LATE:
                    del self._late[next(iter(self._late))]

    def resolve(self, ok: Ok) -> bool:
        """Give an OK to whoever waits for it. Returns False if nobody does."""
        if ok.id:
            self._late.pop(ok.id, None)
            return self._settle(ok.id, ok)
        if ok.accepted:
            return False
        self.one_at_a_time = True
        if self._late:
            del self._late[next(iter(self._late))]
            return True
        # "error" means "try again": the others must not be given up for what one of them did wrong.
        answer = ok if len(self._waiting) == 1 else Ok("", False, "error", ok.text)
        for id_ in list(self._waiting):
            self._settle(id_, answer)
        return True

    def fail(self, error: RelayUnreachable) -> None:
        """The connection is lost, so no OK will come."""
        self._late.clear()
        for id_ in list(self._waiting):
            self._settle(id_, error)

    def _settle(self, id_: str, result: Ok | RelayUnreachable) -> bool:
        waiting = [answer for answer in self._waiting.get(id_, ()) if not answer.done()]
        for answer in waiting:
            answer.set_result(result)
        return bool(waiting)

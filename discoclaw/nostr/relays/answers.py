"""Which of the events that were sent wait for their OK, and whom an OK is meant for.

A relay may answer late, in any order, twice, or not at all. Some do not say which event they refuse; they
answer in order, so such an OK is about the first event that has none: one that was given up, else the only
one that waits. When several wait nobody knows, and all of them are told to try again.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final

from discoclaw.core.errors import RelayUnreachable
from discoclaw.nostr.relays.wire import Ok

Answer = asyncio.Future[Ok | RelayUnreachable]

_MOST_LATE: Final = 1_000


class Answers:
    """What one connection owes us."""

    def __init__(self) -> None:
        self.unnamed = False
        """The relay has refused something without saying what; it has to be asked one thing at a time."""
        self._waiting: dict[str, list[Answer]] = {}
        self._late: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @contextlib.contextmanager
    def expect(self, id_: str) -> Iterator[Answer]:
        """An answer for the event of that id, while the context lasts."""
        answer: Answer = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(id_, [])
        waiting.append(answer)
        try:
            yield answer
        finally:
            waiting.remove(answer)
            if not waiting:
                self._waiting.pop(id_, None)
            if not answer.done() or answer.cancelled():
                answer.cancel()
                self._late[id_] = None
                if len(self._late) > _MOST_LATE:
                    del self._late[next(iter(self._late))]

    def hear(self, ok: Ok) -> bool:
        """Give an OK to whom it is meant for; False when that is nobody here."""
        if ok.id:
            self._late.pop(ok.id, None)
            return self._settle(ok.id, ok)
        if ok.accepted:
            return False
        self.unnamed = True
        if self._late:
            del self._late[next(iter(self._late))]
            return True
        # What one of several did wrong is no reason to give the others up.
        blamed = ok if len(self._waiting) == 1 else Ok("", False, "error", ok.text)
        for id_ in list(self._waiting):
            self._settle(id_, blamed)
        return True

    def lose(self, error: RelayUnreachable) -> None:
        """The connection is gone, and with it all answers."""
        self._late.clear()
        for id_ in list(self._waiting):
            self._settle(id_, error)

    def _settle(self, id_: str, said: Ok | RelayUnreachable) -> bool:
        waiting = [answer for answer in self._waiting.get(id_, ()) if not answer.done()]
        for answer in waiting:
            answer.set_result(said)
        return bool(waiting)

"""The sliding window: the last messages of each conversation, whoever they are from, answered or not.

In RAM only; after a start, a conversation's window is filled from the chat's history at its first turn.
Knows nothing about what is done with the messages.
"""

import asyncio
import logging
from dataclasses import replace

from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.message import Said
from discoclaw.core.ports import Clock

log = logging.getLogger(__name__)


class Window:
    """The newest `capacity` messages of one conversation, ordered by id, each once."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.refilled = False
        self.refill: asyncio.Task[None] | None = None
        self.refill_after = 0
        """After a failure, when (ms) the history may be asked for again."""
        self._said: dict[str, Said] = {}
        self._shown: dict[str, int] = {}  # by message, where its answer rests on fewer than are here

    def remember(self, said: Said, *, shown: int | None = None) -> None:
        """Take a message in, unless it is here; the oldest leaves when there are too many.

        `shown`: its answer rests on so many messages at most, with itself; on all that are here unless given.
        """
        if said.id in self._said:
            return
        if shown is not None and shown < self.capacity:
            self._shown[said.id] = shown
        late = bool(self._said) and int(said.id) < int(next(reversed(self._said)))
        self._said[said.id] = said
        if late:
            self._said = dict(sorted(self._said.items(), key=lambda pair: int(pair[0])))
        self._trim()

    def resize(self, capacity: int) -> None:
        """Hold more, or fewer: the oldest leave at once."""
        self.capacity = capacity
        self._trim()

    def forget(self, message_id: str) -> None:
        """The message was deleted in the chat."""
        self._said.pop(message_id, None)
        self._shown.pop(message_id, None)

    def amend(self, message_id: str, text: str) -> None:
        """The message was edited in the chat."""
        if message_id in self._said:
            self._said[message_id] = replace(self._said[message_id], text=text)

    def recent(self) -> tuple[Said, ...]:
        """All messages, oldest first."""
        return tuple(self._said.values())

    def clear(self) -> None:
        """Nothing that was said here so far is known any more; nor is it read from the chat's history."""
        self._said.clear()
        self._shown.clear()
        self.refilled = True

    def before(self, message_id: str) -> tuple[Said, ...]:
        """What was said before a message, and our answers since, oldest first.

        While a message waits for its turn, others go on talking; what they say then is not what it is about.
        """
        limit = int(message_id)
        found = tuple(said for said in self._said.values() if said.by_us or int(said.id) < limit)
        shown = self._shown.get(message_id)
        return found if shown is None else found[max(0, len(found) - shown + 1) :]

    def _trim(self) -> None:
        while len(self._said) > self.capacity:
            oldest = next(iter(self._said))
            del self._said[oldest]
            self._shown.pop(oldest, None)


class Windows:
    """The windows of all conversations; idle ones are let go, and filled again when used."""

    def __init__(self, *, clock: Clock, capacity: int = 20, idle_ms: int = HOUR_MS) -> None:
        self._clock = clock
        self._windows: IdleMap[Window] = IdleMap(
            lambda key: Window(capacity),
            idle_ms=idle_ms,
            created=lambda key: log.debug("%s: a window is opened", key),
            evicted=lambda key, window: log.debug("%s: its window is closed, idle", key),
        )

    def reopen(self) -> None:
        """We were away: what was said meanwhile is in the chat's history, which is to be read again."""
        for key in self._windows:
            if (window := self._windows.peek(key)) is not None:
                window.refilled = False

    def forget(self, message_id: str, session_key: str | None) -> None:
        """The message was deleted in the chat. Without a session, it is looked for in all of them."""
        for key in self._windows if session_key is None else [session_key]:
            if (window := self._windows.peek(key)) is not None:
                window.forget(message_id)

    def with_words_of(self, author_id: str) -> list[str]:
        """The conversations (session keys) whose windows hold something of this author's."""
        return [
            key
            for key in self._windows
            if (window := self._windows.peek(key)) is not None
            and any(said.author_id == author_id for said in window.recent())
        ]

    def amend(self, message_id: str, text: str, session_key: str) -> None:
        """The message was edited in the chat."""
        if (window := self._windows.peek(session_key)) is not None:
            window.amend(message_id, text)

    def use(self, session_key: str) -> Window:
        """The window of a conversation."""
        now = self._clock()
        self._windows.evict_idle(now)
        return self._windows.use(session_key, now)

"""The sliding window: the last messages of each conversation, whoever wrote them, answered or not.

In RAM only; after a start, the first turn of a conversation fills its window from the chat's history.
Independent of what is done with the messages.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.message import Place, Said, sessions_with
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Purge, Purged
from discoclaw.core.subject import user_of
from discoclaw.memory.changes import Listener

log = logging.getLogger(__name__)


class Window:
    """The newest `capacity` messages of one conversation, ordered by id, without duplicates."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.place: Place | None = None
        """The place of the conversation, once something was heard there."""
        self.refilled = False
        self.refill: asyncio.Task[None] | None = None
        self.names: dict[str, str] = {}
        """Names of people in the last prompt, by id."""
        self.refill_after = 0
        """The time (ms) after which the history may be asked again, after a failure."""
        self._said: dict[str, Said] = {}
        self._shown: dict[str, int] = {}  # by message id, if its answer rests on fewer than are in the window

    def remember(self, said: Said, *, shown: int | None = None) -> None:
        """Add a message unless it is here already; if there are too many then, the oldest leaves.

        `shown` limits how many messages its answer rests on, including itself; by default all that are here.
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
        """Change the capacity; surplus messages leave at once, oldest first."""
        self.capacity = capacity
        self._trim()

    def forget(self, message_id: str) -> None:
        """Remove a message that was deleted in the chat."""
        self._said.pop(message_id, None)
        self._shown.pop(message_id, None)

    def amend(self, now: Said) -> None:
        """Replace the text of a message that was edited in the chat; files may have been removed too."""
        if now.id in self._said:
            known = self._said[now.id]
            self._said[now.id] = replace(known, text=now.text, edited_at=now.edited_at, files=now.files)

    def has(self, message_id: str) -> bool:
        """Whether a message is here."""
        return message_id in self._said

    def recent(self) -> tuple[Said, ...]:
        """All messages, oldest first."""
        return tuple(self._said.values())

    def copy(self) -> "Window":
        """A copy with the same messages; changes to the copy don't show here."""
        copy = Window(self.capacity)
        copy.place = self.place
        copy.refilled = self.refilled
        copy.refill_after = self.refill_after
        copy.names = dict(self.names)
        copy._said, copy._shown = dict(self._said), dict(self._shown)
        return copy

    def clear(self) -> None:
        """Empty the window, and do not fill it from the chat's history again."""
        self._said.clear()
        self._shown.clear()
        self.names.clear()
        self.refilled = True

    def before(self, message_id: str, answer_id: str = "") -> tuple[Said, ...]:
        """The messages before a given one, and the bot's answers since, oldest first.

        While a message waits for its turn, others go on talking; what they say then does not belong to it.
        If it was answered before, by `answer_id`, only the answers before that one count.
        """
        found = self.recent()
        if found and found[-1].id == message_id:  # as nearly always
            found = found[:-1]
        else:
            limit, until = int(message_id), int(answer_id) if answer_id else None
            found = tuple(
                said
                for said in found
                if int(said.id) < limit or (said.by_us and (until is None or int(said.id) < until))
            )
        shown = self._shown.get(message_id)
        return found if shown is None else found[max(0, len(found) - shown + 1) :]

    def _trim(self) -> None:
        while len(self._said) > self.capacity:
            oldest = next(iter(self._said))
            del self._said[oldest]
            self._shown.pop(oldest, None)


class Windows(Derived, Listener):
    """The windows of all conversations; idle ones are dropped, and filled again when used."""

    name = "recent talk"

    def __init__(self, *, clock: Clock, capacity: int = 20, idle_ms: int = HOUR_MS) -> None:
        self._clock = clock
        self._windows: IdleMap[Window] = IdleMap(
            lambda key: Window(capacity),
            idle_ms=idle_ms,
            created=lambda key: log.debug("%s: a window is opened", key),
            evicted=lambda key, window: log.debug("%s: its window is closed, idle", key),
        )

    def reopen(self) -> None:
        """After a lost connection: have every window filled from the chat's history again."""
        for key in self._windows:
            if (window := self._windows.peek(key)) is not None:
                window.refilled = False

    def out_of_touch(self) -> None:
        """Answer from no talk that others may take back or erase meanwhile.

        Later, windows are filled from the chat's history again.
        """
        for key in self._windows:
            if (window := self._windows.peek(key)) is not None:
                window.clear()
                window.refilled = False

    def forget(self, message_ids: Collection[str], session_key: str | None) -> dict[str, Said]:
        """Remove messages that were deleted in the chat, and answers to them. Returns those that were here.

        Without a session, all windows are searched; with one, also those of threads that grew out of them.
        """
        gone, found = set(message_ids), dict[str, Said]()
        keys: Iterable[str] = self._windows
        if session_key is not None:
            keys = {key for one in gone for key in sessions_with(one, session_key)}
        for key in keys:
            if (window := self._windows.peek(key)) is not None:
                for said in window.recent():
                    if said.id in gone or not gone.isdisjoint(said.of):
                        window.forget(said.id)
                        found[said.id] = said
        return found

    def recent(self, session_key: str) -> tuple[Said, ...]:
        """The messages in the window of a conversation, oldest first; none if it has no window."""
        window = self._windows.peek(session_key)
        return window.recent() if window is not None else ()

    def purge_ram(self, purge: Purge) -> Purged | None:
        """Remove the messages that somebody took back.

        Where they are erased, remove everything that could bring their words back: their conversations start
        empty.
        """
        if purge.erases:
            for key in sorted({*purge.sessions, *self.sessions_of(purge.subject)}) if purge.user_id else ():
                self.use(key).clear()
            return None
        gone = set[str]()
        for key in self._windows:
            if (window := self._windows.peek(key)) is not None:
                private = window.place is not None and window.place.hidden
                for said in window.recent():
                    if purge.covers(said, in_private=private):
                        window.forget(said.id)
                        gone.add(said.id)
                if purge.everything:
                    window.names.pop(purge.user_id, None)
        return Purged(messages=frozenset(gone))

    def sessions_of(self, subject: str) -> Iterable[str]:
        if (author_id := user_of(subject)) is None:
            return []
        return [
            key
            for key in self._windows
            if (window := self._windows.peek(key)) is not None
            and (author_id in window.names or any(said.author_id == author_id for said in window.recent()))
        ]

    def amend(self, now: Said, session_key: str) -> None:
        """Take over an edit of a message in the chat."""
        if (window := self._windows.peek(session_key)) is not None:
            window.amend(now)

    def use(self, session_key: str) -> Window:
        """The window of a conversation."""
        now = self._clock()
        self._windows.evict_idle(now)
        return self._windows.use(session_key, now)

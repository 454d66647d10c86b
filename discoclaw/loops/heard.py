"""What has been said and not yet been seen by a loop: per conversation, and per person.

Buffers in RAM. They are not the window of the prompt: a message stays here until a summary (or an
extraction) has taken it, however long ago it left the window. After a restart they are filled again from
the chat's history, behind the loops' saved cursors, so a restart repeats work rather than losing talk.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from discoclaw.core.message import Place, Said
from discoclaw.core.text import utf16_length

BACKLOG = 200
"""Most messages kept for a loop that fails again and again; the oldest then go unseen."""


GIVE_UP = 5


@dataclass(frozen=True, slots=True)
class Heard:
    """One message and where it was said."""

    said: Said
    place: Place
    session_key: str


def by_privacy(heard: Heard) -> object:
    """Private and open talk apart."""
    return heard.place.private


@dataclass(slots=True)
class Backlog:
    """Messages waiting for one loop, oldest first, each once. `taken` is the newest id seen, by session.

    `group` says what may share a batch: messages of which it says the same.
    """

    waiting: dict[str, Heard] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    spoiled: int = 0
    """How often in a row the model could make nothing of the oldest batch."""
    group: Callable[[Heard], object] = by_privacy

    def hear(self, heard: Heard) -> None:
        if int(heard.said.id) <= self.taken.get(heard.session_key, 0) or heard.said.id in self.waiting:
            return
        late = bool(self.waiting) and int(heard.said.id) < int(next(reversed(self.waiting)))
        self.waiting[heard.said.id] = heard
        if late:  # history arrives behind what was heard live
            self.waiting = dict(sorted(self.waiting.items(), key=lambda pair: int(pair[0])))
        while len(self.waiting) > BACKLOG:
            del self.waiting[next(iter(self.waiting))]

    def oldest(self, max_chars: int) -> list[Heard]:
        """The oldest messages of together at most `max_chars` UTF-16 units, but at least one if any waits.

        Private and open talk never share a batch, nor do two personas: what is learned from one can then not
        be taken for something said in the other. After failures of the batch (see `spoil`) it is smaller.
        """
        batch: list[Heard] = []
        max_chars >>= self.spoiled
        for heard in self.waiting.values():
            if batch and self.group(heard) != self.group(batch[0]):
                continue
            max_chars -= utf16_length(heard.said.text) + 60
            if batch and max_chars < 0:
                break
            batch.append(heard)
        return batch

    def spoil(self, max_chars: int) -> str | None:
        """The model could make nothing of the oldest batch: take less of it the next time.

        A single message that fails again and again is given up; its id is then returned.
        """
        self.spoiled += 1
        batch = self.oldest(max_chars)
        if self.spoiled <= GIVE_UP or len(batch) != 1:
            return None
        self.take(batch)
        return batch[0].said.id

    def size(self) -> int:
        """UTF-16 units of all that waits."""
        return sum(utf16_length(heard.said.text) for heard in self.waiting.values())

    def take(self, batch: Iterable[Heard]) -> None:
        """A loop has seen these."""
        self.spoiled = 0
        for heard in batch:
            self.waiting.pop(heard.said.id, None)
            self.seen({heard.session_key: int(heard.said.id)})

    def seen(self, up_to: Mapping[str, int]) -> None:
        """A loop has seen everything up to these ids, by session."""
        for key, message_id in up_to.items():
            self.taken[key] = max(self.taken.get(key, 0), message_id)

    def amend(self, message_id: str, text: str) -> None:
        """The message was edited in the chat."""
        if (heard := self.waiting.get(message_id)) is not None:
            self.waiting[message_id] = replace(heard, said=replace(heard.said, text=text))

    def forget(self, message_id: str) -> None:
        """The message was deleted in the chat."""
        self.waiting.pop(message_id, None)

"""Buffers what was said and not yet seen by a loop, for each conversation and each person.

In RAM, and separate from the prompt's window: a message stays here until a summary (or an extraction) has
taken it, however long ago it left the window. After a restart the buffers are filled again from the chat's
history, beginning after the loops' saved cursors, so a restart repeats work rather than losing talk.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from discoclaw.core.errors import ModelBadOutput, ModelBadRequest, ModelRefused, ModelTooLong
from discoclaw.core.message import Place, Said
from discoclaw.core.text import utf16_length

BACKLOG = 500
"""The most messages stored for a loop that keeps failing; beyond that the oldest stay unseen."""
GIVE_UP = 5
"""How often the model may fail on a single message before it is left out."""
SPOILED = (ModelBadOutput, ModelRefused, ModelTooLong, ModelBadRequest)
"""Failures caused by the request itself, so that repeating it would fail again."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One message and where it was said."""

    said: Said
    place: Place
    session_key: str


def by_privacy(heard: Heard) -> object:
    """A grouping key that separates private from open talk."""
    return heard.place.private


@dataclass(slots=True)
class Backlog:
    """Messages waiting for one loop, oldest first, without duplicates. `taken`: the newest seen, by session.

    `group` returns a key; only messages with equal keys may share a batch.
    """

    waiting: dict[str, Heard] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    spoiled: int = 0
    """How often in a row the model failed on the oldest batch."""
    disturbed: int = 0
    """How often in a row messages were deleted or edited while the model was working."""
    group: Callable[[Heard], object] = by_privacy

    def hear(self, heard: Heard, *, again: bool = False) -> None:
        """Let a message wait, unless it does or was seen; `again`: it says something else since it was."""
        seen = int(heard.said.id) <= self.taken.get(heard.session_key, 0)
        if (seen and not again) or heard.said.id in self.waiting:
            return
        late = bool(self.waiting) and int(heard.said.id) < int(next(reversed(self.waiting)))
        self.waiting[heard.said.id] = heard
        if late:  # history arrives after newer messages were heard live
            self.waiting = dict(sorted(self.waiting.items(), key=lambda pair: int(pair[0])))
        while len(self.waiting) > BACKLOG:
            del self.waiting[next(iter(self.waiting))]

    def oldest(self, max_chars: int) -> list[Heard]:
        """The oldest messages of at most `max_chars` UTF-16 units together, but at least one if any waits.

        Private and open talk never share a batch, nor do two personas, so that what is learned from one
        cannot be mistaken for something said in the other. After failures (see `spoil`) the batch is smaller.
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
        """Make the next batch smaller, because the model failed on this one.

        A single message that fails repeatedly is given up; its id is then returned.
        """
        self.spoiled += 1
        batch = self.oldest(max_chars)
        if self.spoiled <= GIVE_UP or len(batch) != 1:
            return None
        self.take(batch)
        return batch[0].said.id

    def size(self) -> int:
        """The UTF-16 units of everything that is waiting."""
        return sum(utf16_length(heard.said.text) for heard in self.waiting.values())

    def sessions(self) -> set[str]:
        """The conversations of which something is waiting."""
        return {heard.session_key for heard in self.waiting.values()}

    def take(self, batch: Iterable[Heard]) -> None:
        """Remove messages that a loop has seen."""
        self.spoiled = self.disturbed = 0
        for heard in batch:
            self.waiting.pop(heard.said.id, None)
            self.seen({heard.session_key: int(heard.said.id)})

    def seen(self, up_to: Mapping[str, int]) -> None:
        """Remove everything up to these ids, by session, because a loop has seen it."""
        for key, message_id in up_to.items():
            self.taken[key] = max(self.taken.get(key, 0), message_id)

    def amend(self, message_id: str, text: str, at: int = 0) -> None:
        """Replace the text of a message that was edited in the chat at a time (ms)."""
        if (heard := self.waiting.get(message_id)) is not None:
            self.waiting[message_id] = replace(heard, said=replace(heard.said, text=text, edited_at=at))

    def changed(self, batch: Iterable[Heard]) -> bool:
        """Whether any of these messages was deleted or edited since it was taken from here."""
        return any(self.waiting.get(heard.said.id) != heard for heard in batch)

    def once_more(self) -> bool:
        """Whether to try again at once after that. Whoever goes on editing doesn't keep the model busy."""
        self.disturbed += 1
        return bool(self.waiting) and self.disturbed < GIVE_UP

    def forget(self, message_id: str) -> None:
        """Remove a message that was deleted in the chat."""
        self.waiting.pop(message_id, None)

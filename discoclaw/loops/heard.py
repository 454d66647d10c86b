"""Buffers what was said and not yet seen by a loop, for each conversation and each person.

In RAM, and separate from the prompt's window: a message stays here until a summary (or an extraction) has
taken it, however long ago it left the window. After a restart the buffers are filled again from the chat's
history, beginning after the loops' saved cursors, so a restart repeats work rather than losing talk.

What a model makes of a batch is not the fault of what was said: after prose, or an answer that is cut off or
empty, the next batch is smaller, and no message is ever left out for that. One that fails again and again
even alone is postponed: it waits behind all others and is tried alone after each run that has taken those. No
saved cursor passes it, so a restart tries it again too. Only what the provider refuses, rejects or finds too
long is left out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelRefused,
    ModelTooLong,
)
from discoclaw.core.message import Place, Said
from discoclaw.core.text import utf16_length

BACKLOG = 500
"""The most messages stored for a loop that keeps failing; beyond that the oldest stay unseen."""
GIVE_UP = 5
"""How often the model may fail on a single message before it is postponed or left out."""
MOST_HALVINGS = 3
"""A batch for a slow model is halved so often at most: a model that is down for hours is not asked message by
message afterwards."""
UNUSABLE = (ModelBadOutput, ModelCut, ModelEmpty)
"""Failures of the model: it answered, but with nothing that can be used."""
SPOILED = (*UNUSABLE, ModelRefused, ModelTooLong, ModelBadRequest)
"""Failures on just this request, so that repeating it would probably fail again."""


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

    `postponed`: the ids of messages that are postponed, in the order in which they are tried again.
    `group` returns a key; only messages with equal keys may share a batch.
    """

    waiting: dict[str, Heard] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    postponed: dict[str, None] = field(default_factory=dict)
    spoiled: int = 0
    """How often in a row the model failed on the oldest batch."""
    late: int = 0
    """How often the model was too slow for a batch since nothing was waiting."""
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
            self.forget(next(iter(self.waiting)))

    def ready(self) -> list[Heard]:
        """What is waiting and not postponed, oldest first."""
        return [heard for heard in self.waiting.values() if heard.said.id not in self.postponed]

    def oldest(self, max_chars: int) -> list[Heard]:
        """The oldest messages of at most `max_chars` UTF-16 units together, but at least one if any waits.

        Private and open talk never share a batch, nor do two personas, so that what is learned from one
        cannot be mistaken for something said in the other. After failures (see `spoil`), or where the model
        was too slow, the batch is smaller. A postponed message comes alone, when nothing else waits.
        """
        batch: list[Heard] = []
        max_chars >>= self.spoiled + self.late
        if not (ready := self.ready()):
            return [self.waiting[one] for one in self.postponed if one in self.waiting][:1]
        for heard in ready:
            if batch and self.group(heard) != self.group(batch[0]):
                continue
            max_chars -= utf16_length(heard.said.text) + 60
            if batch and max_chars < 0:
                break
            batch.append(heard)
        return batch

    def spoil(self, max_chars: int, *, for_good: bool) -> str | None:
        """Make the next batch smaller, because the model failed on this one.

        A single message that fails repeatedly is left out `for_good`, or postponed; its id is then returned.
        """
        self.spoiled += 1
        batch = self.oldest(max_chars)
        if len(batch) != 1 or (self.spoiled <= GIVE_UP and self.ready()):
            return None
        message_id = batch[0].said.id
        if for_good:
            self.take(batch)
        else:
            self.spoiled = 0
            self.postponed.pop(message_id, None)
            self.postponed[message_id] = None
        return message_id

    def was_late(self) -> None:
        """Make the next batches smaller, because the model was too slow for this one."""
        self.late = min(self.late + 1, MOST_HALVINGS)

    def size(self) -> int:
        """The UTF-16 units of everything that is waiting and not postponed."""
        return sum(utf16_length(heard.said.text) for heard in self.ready())

    def sessions(self) -> set[str]:
        """The conversations of which something is waiting."""
        return {heard.session_key for heard in self.waiting.values()}

    def take(self, batch: Iterable[Heard]) -> None:
        """Remove messages that a loop has seen."""
        self.spoiled = self.disturbed = 0
        for heard in batch:
            self.forget(heard.said.id)
            self.seen({heard.session_key: int(heard.said.id)})
        if not self.ready():
            self.late = 0

    def seen(self, up_to: Mapping[str, int]) -> None:
        """Remove everything up to these ids, by session, because a loop has seen it."""
        for key, message_id in up_to.items():
            self.taken[key] = max(self.taken.get(key, 0), message_id)

    def passed(self) -> dict[str, int]:
        """How far a saved cursor may go, by session: never past a postponed message."""
        passed = dict(self.taken)
        for heard in [self.waiting[one] for one in self.postponed if one in self.waiting]:
            key = heard.session_key
            if key in passed:
                passed[key] = min(passed[key], int(heard.said.id) - 1)
        return passed

    def amend(self, message_id: str, text: str, at: int = 0) -> None:
        """Replace the text of a message that was edited in the chat at a time (ms)."""
        if (heard := self.waiting.get(message_id)) is not None:
            self.waiting[message_id] = replace(heard, said=replace(heard.said, text=text, edited_at=at))
            self.postponed.pop(message_id, None)

    def changed(self, batch: Iterable[Heard]) -> bool:
        """Whether any of these messages was deleted or edited since it was taken from here."""
        return any(self.waiting.get(heard.said.id) != heard for heard in batch)

    def once_more(self) -> bool:
        """Whether to try again at once after that. Whoever goes on editing doesn't keep the model busy."""
        self.disturbed += 1
        return bool(self.waiting) and self.disturbed < GIVE_UP

    def forget(self, message_id: str) -> None:
        """Remove a message, because it was deleted in the chat or is done with."""
        self.waiting.pop(message_id, None)
        self.postponed.pop(message_id, None)

"""Buffers what was said and not yet seen by a loop, for each conversation and each person.

In RAM, and separate from the prompt's window: a message stays here until a summary (or an extraction) has
taken it, however long ago it left the window. After a restart the buffers are filled again from the chat's
history, so a restart repeats work rather than losing talk: with what is newer than the loops' saved cursors,
and with the older messages that the cursors say still wait (`left`).

What a model makes of a batch is not the fault of what was said: after prose, or an answer that is cut off or
empty, the next batch is smaller. A message that fails even alone is postponed: it waits behind all others and
is tried alone, ever more rarely. If it always fails, it is left out: otherwise it would cost calls for ever.
What the provider refuses, rejects or finds too long is left out when it fails alone once more, after another
batch went through: a server that rejects everything costs no message.
"""

from collections.abc import Callable, Iterable, Mapping

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
from discoclaw.core.values import dataclass, field, replace

BACKLOG = 500
"""The most messages stored for a loop that keeps failing; beyond that the oldest stay unseen."""
GIVE_UP = 5
"""How often in a row the model may fail before messages are tried alone."""
TRIES = 5
"""How often a postponed message is tried alone: after 1, 2, 4, 8 and 16 further batches."""
MOST_HALVINGS = 3
"""A batch for a slow model is halved so often at most: a model that is down for hours is not asked message by
message afterwards."""
UNUSABLE = (ModelBadOutput, ModelCut, ModelEmpty)
"""Failures of the model: it answered, but with nothing that can be used."""
SPOILED = (*UNUSABLE, ModelRefused, ModelTooLong, ModelBadRequest)
"""Failures on just this request, so that repeating it would probably fail again."""
LEFT = "left"
"""The field of a loop's cursor with the messages that still wait though it has passed them."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One message and where it was said. `persona` is what the place prescribed then, "" for nothing."""

    said: Said
    place: Place
    session_key: str
    persona: str = ""


def ids_in(value: Mapping[str, object], key: str) -> list[str]:
    """The ids of messages in a list that was read from disk; anything else in it is ignored."""
    found = value.get(key)
    ids = found if isinstance(found, list) else []
    return [one for one in ids if isinstance(one, str) and one.isascii() and one.isdigit()]


def by_privacy(heard: Heard) -> object:
    """A grouping key that separates private from open talk."""
    return heard.place.private, heard.place.hidden


@dataclass(slots=True)
class Postponed:
    """How often a postponed message was tried alone, and how many batches are taken before the next time."""

    tries: int = 0
    pause: int = 1


@dataclass(slots=True)
class Backlog:
    """Messages waiting for one loop, oldest first, without duplicates. `taken`: the newest seen, by session.

    `left`: the ids of older ones that the saved cursor says still wait, by session, until they are heard.
    `ours`: the sessions that were heard here; another process may have the person's others.
    `postponed`: messages that are postponed, by id, in the order in which they are tried again.
    `group` returns a key; only messages with equal keys may share a batch.
    """

    waiting: dict[str, Heard] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    left: dict[str, set[str]] = field(default_factory=dict)
    ours: set[str] = field(default_factory=set)
    postponed: dict[str, Postponed] = field(default_factory=dict)
    tried: tuple[str, ...] = ()
    """The batch that `oldest` returned last, by the ids of its messages."""
    suspects: tuple[str, ...] = ()
    """The batch on which the model failed last: batches stay small until all of it is done."""
    spoiled: int = 0
    """How often in a row the model failed on the oldest batch."""
    late: int = 0
    """How often the model was too slow for a batch since nothing was waiting."""
    disturbed: int = 0
    """How often in a row messages were deleted or edited while the model was working."""
    group: Callable[[Heard], object] = by_privacy

    def hear(self, heard: Heard, *, again: bool = False) -> None:
        """Let a message wait, unless it does or was seen; `again`: it says something else since it was."""
        key, message_id = heard.session_key, heard.said.id
        self.ours.add(key)
        seen = int(message_id) <= self.taken.get(key, 0) and message_id not in self.left.get(key, ())
        if (seen and not again) or message_id in self.waiting:
            return
        late = bool(self.waiting) and int(heard.said.id) < int(next(reversed(self.waiting)))
        self.waiting[heard.said.id] = heard
        if late:  # history arrives after newer messages were heard live
            self.waiting = dict(sorted(self.waiting.items(), key=lambda pair: int(pair[0])))
        while len(self.waiting) > BACKLOG:
            self.forget(next(iter(self.waiting)))

    def ready(self) -> list[Heard]:
        """The messages that wait and are not postponed, oldest first."""
        return [heard for heard in self.waiting.values() if heard.said.id not in self.postponed]

    def oldest(self, max_chars: int) -> list[Heard]:
        """The oldest messages of at most `max_chars` UTF-16 units together, but at least one if any waits.

        Private and open talk never share a batch, nor do two personas, so that what is learned from one
        cannot be mistaken for something said in the other. After failures (see `spoil`), or where the model
        was too slow, the batch is smaller. A postponed message comes alone, when nothing else waits and its
        pause is over.
        """
        batch: list[Heard] = []
        max_chars = max_chars >> (self.spoiled + self.late) if self.spoiled < GIVE_UP else 0
        ready = self.ready()
        if not ready:
            due = [one for one, put_off in self.postponed.items() if put_off.pause <= 0]
            batch = [self.waiting[one] for one in due if one in self.waiting][:1]
        for heard in ready:
            if batch and self.group(heard) != self.group(batch[0]):
                continue
            max_chars -= utf16_length(heard.said.text) + 60
            if batch and max_chars < 0:
                break
            batch.append(heard)
        self.tried = tuple(heard.said.id for heard in batch)
        return batch

    def spoil(self, *, for_good: bool) -> str | None:
        """Make the next batch smaller, because the model failed on the last one.

        A message that failed alone, and repeatedly, is postponed. It is left out if it fails `for_good` and
        was postponed before, or was tried often enough. Returns its id; if it still waits, it was postponed.
        """
        self.spoiled += 1
        self.suspects = self.tried
        heard = self.waiting.get(self.tried[0]) if len(self.tried) == 1 else None
        if heard is None:
            return None
        message_id = heard.said.id
        before = self.postponed.pop(message_id, None)
        if before is None and self.spoiled <= GIVE_UP:
            return None
        tries = before.tries + 1 if before else 0
        if (for_good and before) or tries == TRIES:
            self.take([heard])
        else:
            self.spoiled, self.suspects = 0, ()
            self.postponed[message_id] = Postponed(tries, 1 << tries)
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
        self.disturbed = 0
        for heard in batch:
            self.forget(heard.said.id)
            self.seen({heard.session_key: int(heard.said.id)})
        if self.waiting.keys().isdisjoint(self.suspects):
            self.spoiled = 0
        for put_off in self.postponed.values():
            put_off.pause -= 1
        if not self.ready():
            self.late = 0

    def seen(self, up_to: Mapping[str, int], left: Mapping[str, Iterable[str]] | None = None) -> None:
        """Count everything up to these ids, by session, as seen by the loop, but for what is `left`."""
        for key, message_id in up_to.items():
            self.taken[key] = max(self.taken.get(key, 0), message_id)
        for key, ids in (left or {}).items():
            self.left.setdefault(key, set()).update(ids)

    def begin_after(self, session_key: str, up_to: int) -> None:
        """Drop everything that waits, and never hear what was said until then."""
        self.take(list(self.waiting.values()))
        self.left.clear()
        self.seen({session_key: up_to})

    def begin_again(self, session_key: str) -> None:
        """Drop everything that waits, and hear what was said there once more."""
        for message_id in list(self.waiting):
            self.forget(message_id)
        self.left.clear()
        self.taken.pop(session_key, None)
        self.suspects, self.tried, self.spoiled = (), (), 0

    def left_behind(self) -> dict[str, list[str]]:
        """The ids of messages that still wait though newer ones were taken, by session, for the cursor."""
        ids = {(key, one) for key, known in self.left.items() for one in known}
        for heard in self.waiting.values():
            if int(heard.said.id) <= self.taken.get(heard.session_key, 0):
                ids.add((heard.session_key, heard.said.id))
        found: dict[str, list[str]] = {}
        for key, one in sorted(ids, key=lambda pair: int(pair[1]))[-BACKLOG:]:
            found.setdefault(key, []).append(one)
        return found

    def amend(self, message_id: str, text: str, at: int = 0) -> None:
        """Replace the text of a message that was edited in the chat at a time (ms)."""
        if (heard := self.waiting.get(message_id)) is not None:
            self.waiting[message_id] = replace(heard, said=replace(heard.said, text=text, edited_at=at))
            self.postponed.pop(message_id, None)
            self.tried = ()  # whatever the model fails on now, it was not this text

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
        for ids in self.left.values():
            ids.discard(message_id)

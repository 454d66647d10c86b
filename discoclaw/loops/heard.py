"""What was said and not yet seen by a loop, for each conversation and each person, and what was counted.

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

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from discoclaw.core.errors import (
    ModelBadOutput,
    ModelBadRequest,
    ModelCut,
    ModelEmpty,
    ModelRefused,
    ModelTooLong,
)
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.message import Place, Said
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Purge
from discoclaw.core.text import utf16_length
from discoclaw.core.times import snowflake_at
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


# ----------------------------------------------------------------------
# What the loops know about conversations and people: what waits for them, and what was counted.
#
# In RAM; everything starts at zero after a restart. Knows neither when a run is due nor how one is done
# (`schedule`).


RECENT = 40


@dataclass()
class Track:
    """Counts of what waits for a loop, and of what happened since its last run began."""

    backlog: Backlog = field(default_factory=Backlog)
    turns: int = 0
    counted: set[str] = field(default_factory=set)
    """The conversations whose turns are counted as they happen, or were counted again after a start."""
    forced: bool = False
    failures: int = 0
    """How many runs failed in a row."""
    takes_part: bool = False
    cursor_known: bool = False
    running: bool = False

    @property
    def busy(self) -> bool:
        """Whether it must stay in RAM even if nobody uses it."""
        return self.running or (self.takes_part and bool(self.backlog.waiting))

    def count_turn(self, session_key: str) -> None:
        """Count an answer that was sent."""
        self.takes_part = True
        self.turns += 1
        self.counted.add(session_key)

    def forget(self, message_ids: set[str]) -> dict[str, Said]:
        """Drop messages that were deleted in the chat. Returns those that were here."""
        waiting = message_ids & self.backlog.waiting.keys()
        found = {message_id: self.backlog.waiting[message_id].said for message_id in waiting}
        for message_id in waiting:
            self.backlog.forget(message_id)
        return found

    def amend(self, message_id: str, text: str, at: int) -> None:
        """Replace the text of a message that was edited in the chat at a time (ms)."""
        self.backlog.amend(message_id, text, at)

    def purge(self, purge: Purge) -> set[str]:
        """Drop the messages that somebody took back. Returns their ids."""
        gone = {
            heard.said.id
            for heard in self.backlog.waiting.values()
            if purge.covers(heard.said, in_private=heard.place.hidden)
        }
        for message_id in gone:
            self.backlog.forget(message_id)
        return gone


@dataclass()
class SessionTrack(Track):
    """A conversation, for its summary."""

    recent: deque[Said] = field(default_factory=lambda: deque(maxlen=RECENT))
    """Its newest messages, which are also context for what is learned from people there."""
    inside: list[tuple[int, str]] = field(default_factory=list)
    """The messages in the prompt's window, oldest first: their ids and authors."""
    window: int = 0
    """The most messages in that window."""
    asked_by: set[str] = field(default_factory=set)
    """The people whose turns made a run due."""

    def enter(self, said: Said, window: int) -> list[tuple[int, str]]:
        """Add a message to the window of at most `window`. Returns what it pushes out, oldest first."""
        self.window = window
        if all(one.id != said.id for one in self.recent):
            self.recent.append(said)
        entry = (int(said.id), said.author_id)
        if entry in self.inside or (len(self.inside) >= window and entry < self.inside[0]):
            return []
        insort(self.inside, entry)
        gone = self.inside[:-window]
        del self.inside[:-window]
        return gone

    def keep_newest(self) -> None:
        """Let no more wait than the window shows.

        Without the bot's part there is no need for a summary: at its first turn the window suffices.
        """
        for message_id in list(self.backlog.waiting)[: -self.window]:
            self.backlog.forget(message_id)

    def forget(self, message_ids: set[str]) -> dict[str, Said]:
        found = super().forget(message_ids)
        for said in [one for one in self.recent if one.id in message_ids]:
            self.recent.remove(said)
            found[said.id] = said
        return found

    def purge(self, purge: Purge) -> set[str]:
        gone = super().purge(purge)
        for said in [one for one in self.recent if one.id in gone or purge.covers(one)]:
            self.recent.remove(said)
            gone.add(said.id)
        return gone

    def amend(self, message_id: str, text: str, at: int) -> None:
        super().amend(message_id, text, at)
        for place, said in enumerate(self.recent):
            if said.id == message_id:
                self.recent[place] = replace(said, text=text)

    def begin_after(self, session_key: str, up_to: int) -> None:
        """Count everything up to this message id as summarised."""
        self.backlog.begin_after(session_key, up_to)
        self.turns, self.forced = 0, False


@dataclass()
class PersonTrack(Track):
    """A person, for extraction."""

    slipped: set[str] = field(default_factory=set)
    """Messages that left a window before any run had seen them."""


class Tracks:
    """All tracks: `sessions` by session key, `people` by user id.

    Those with something waiting stay; the others are evicted, and can be restored from their cursors.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.sessions: IdleMap[SessionTrack] = IdleMap(lambda key: SessionTrack(), idle_ms=HOUR_MS)
        self.people: IdleMap[PersonTrack] = IdleMap(lambda key: PersonTrack(), idle_ms=HOUR_MS)

    def session(self, session_key: str) -> SessionTrack:
        """A conversation's track, which is in use now."""
        return self.sessions.use(session_key, self._clock())

    def person(self, user_id: str) -> PersonTrack:
        """A person's track, which is in use now."""
        return self.people.use(user_id, self._clock())

    def took_part(self, session_key: str) -> bool:
        """Whether the bot has answered in this conversation, now or before the last restart."""
        track = self.sessions.peek(session_key)
        return track is not None and track.takes_part

    def waits(self, user_id: str, message_id: str) -> bool:
        """Whether a person's message waits to be learned from."""
        track = self.people.peek(user_id)
        return track is not None and message_id in track.backlog.waiting

    def sessions_of(self, user_id: str) -> set[str]:
        """The conversations in which a person's words wait for a summary, or are context for others'."""
        return {
            key
            for key, track in self._sessions()
            if any(one.author_id == user_id for one in track.recent)
            or any(heard.said.author_id == user_id for heard in track.backlog.waiting.values())
        }

    def evict_idle(self) -> None:
        """Drop the tracks that nothing waits in, an hour after their last use.

        Where the bot takes no part, the chat's history serves as well as a backlog here. People who never
        talked with the bot are dropped too: their next message starts a new track.
        """
        self.sessions.evict_idle(self._clock(), busy=lambda track: track.busy)
        self.people.evict_idle(self._clock(), busy=lambda track: track.busy)

    # ------------------------------------------------------------------ what is taken out or changed

    def forget(self, *message_ids: str) -> dict[str, Said]:
        """Remove messages that were deleted in the chat from every backlog. Returns those that were there."""
        found = dict[str, Said]()
        for track in self._all():
            found |= track.forget(set(message_ids))
        return found

    def amend(self, session_key: str, author_id: str, message_id: str, text: str, at: int = 0) -> None:
        """Replace the text of a message, edited at a time (ms), for the loops that have not seen it."""
        for track in (self.sessions.peek(session_key), self.people.peek(author_id)):
            if track is not None:
                track.amend(message_id, text, at)

    def purge(self, purge: Purge) -> set[str]:
        """Drop the messages that somebody took back. Returns their ids."""
        gone = set[str]()
        for track in self._all():
            gone |= track.purge(purge)
        return gone

    def erase(self, user_id: str, sessions: Sequence[str], at: int) -> None:
        """Drop what a person said until their memory was erased at a time (ms).

        The summaries of `sessions` start anew; what others said there and was not yet summarised is lost to
        them. This changes only RAM: the caller advances the cursors on disk.
        """
        if (track := self.people.peek(user_id)) is not None:
            track.backlog.take(list(track.backlog.waiting.values()))
            track.backlog.left.clear()
            track.turns = 0
        for key, session in self._sessions():
            for said in [one for one in session.recent if one.author_id == user_id or key in sessions]:
                session.recent.remove(said)
        for key in sessions:
            self.session(key).begin_after(key, snowflake_at(at))

    def begin_again(self, session_key: str) -> None:
        """A conversation's summary was purged: what it took in is to be read from the chat once more."""
        if (track := self.sessions.peek(session_key)) is not None:
            track.backlog.begin_again(session_key)
            track.cursor_known = False

    def _sessions(self) -> Iterator[tuple[str, SessionTrack]]:
        for key in self.sessions:
            if (track := self.sessions.peek(key)) is not None:
                yield key, track

    def _all(self) -> Iterator[Track]:
        for tracks in (self.sessions, self.people):
            for key in tracks:
                if (track := tracks.peek(key)) is not None:
                    yield track

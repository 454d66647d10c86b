"""Reads the files of a turn while the turn is prepared, and waits for them only so long.

The message's own files, and those that it points at, are worth a wait: they are what the person asks about.
Older ones are there already, most of the time. What comes too late goes on being read, and is there for the
next turn.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from discoclaw.core.attached import Encoded, Unreadable
from discoclaw.core.consent import Consent
from discoclaw.core.message import Said
from discoclaw.core.model import Reads, reads_usual
from discoclaw.core.ports import Linked
from discoclaw.core.values import dataclass, replace
from discoclaw.session.arrival import Arrival
from discoclaw.session.files.arranging import (
    MOST_BYTES,
    NOTHING,
    TOO_MUCH,
    Attached,
    Room,
    Wanted,
    arranged,
    claimed,
    linked,
    named,
    older,
    own,
    without_doubles,
)
from discoclaw.session.files.process import BROKEN
from discoclaw.session.files.refused import refused
from discoclaw.session.files.shelf import Origin, Read, Shelf

LINK: Final = "/channels/"
"""Part of every link to a message."""
MANY: Final = "wasn't read: I read {} files of one message. Please send it in another message."

Key: TypeAlias = tuple[str, str]
Reading: TypeAlias = "asyncio.Task[Read] | Read"
Messages: TypeAlias = "Sequence[Said | Unreadable]"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many files of one message are read, and how many older ones a prompt has; 0 of each reads none.

    `reads` is how much each model reads at once. A reply waits up to `own_s` seconds for the files that its
    message has or points at, and up to `older_s` for older ones.
    """

    each: int = 5
    older: int = 4
    reads: Reads = reads_usual
    own_s: float = 10.0
    older_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Begun:
    """Files that are read for a turn before the talk is known, until a time (s, of the event loop)."""

    until: float
    wanted: list[Wanted]
    reading: Mapping[Key, Reading]
    linked: "asyncio.Task[Messages] | None"


class Attachments:
    """The files of turns, read through `shelf`. `usable` says whether a message may still be used here."""

    def __init__(
        self,
        shelf: Shelf,
        linked: Linked,
        consent: Consent,
        bounds: Bounds,
        usable: Callable[[Said, Arrival], Awaitable[bool]],
    ) -> None:
        self._shelf = shelf
        self._linked = linked
        self._consent = consent
        self._bounds = bounds
        self._usable = usable

    def begin(self, arrival: Arrival) -> Begun:
        """Begin to read the files of a message and of the one that it replies to. Nothing is waited for."""
        self._shelf.tidy()
        links = asyncio.create_task(self._messages(arrival)) if LINK in arrival.message.text else None
        wanted = self._of_message(arrival)
        until = asyncio.get_running_loop().time() + self._bounds.own_s
        return Begun(until, wanted, self._read(self._bounded(wanted), arrival), links)

    async def of(self, begun: Begun, arrival: Arrival, window: Sequence[Said]) -> tuple[Arrival, Attached]:
        """The message with those that it links to, and the files for its prompt; `window` is the talk before.

        Waits for files, and raises nothing.
        """
        wanted, notices = begun.wanted, list[str]()
        if begun.linked is not None:
            found = await _in_time(begun.linked, begun.until)
            messages = tuple(one for one in found if isinstance(one, Said))
            notices = [one.why for one in found if isinstance(one, Unreadable)]
            arrival = replace(arrival, message=replace(arrival.message, linked=messages))
            wanted = wanted + (linked(messages) if self._bounds.each else [])
        wanted = without_doubles(wanted + self._older(window))
        if not wanted:
            return arrival, replace(NOTHING, notices=tuple(notices))
        beyond, taken = self._beyond(wanted), self._bounded(wanted)
        late = [one for one in taken if _key(one) not in begun.reading]
        reading = {**begun.reading, **self._read(late, arrival)}
        await _wait(taken, reading, begun.until, self._bounds.older_s)
        left = [one for one in taken if _is_left(one, reading) and not self._is_gone(one)]
        read = [(one, _content(one, reading[_key(one)])) for one in left]
        whys = [(one, beyond.get(_key(one))) for one in wanted]
        read += [(one, refused(one.file.name, why)) for one, why in whys if why is not None]
        return arrival, arranged(read, Room.of(self._bounds.reads(arrival.policy.model)), notices)

    def named(self, arrival: Arrival, window: Sequence[Said]) -> Attached:
        """The files that the prompt of a message would have. Nothing is read for that."""
        wanted = without_doubles(self._of_message(arrival) + self._older(window))
        return named((one, self._kind(one)) for one in self._bounded(wanted))

    def _of_message(self, arrival: Arrival) -> list[Wanted]:
        if not self._bounds.each:
            return []
        return without_doubles(own(arrival.message, arrival.said(), arrival.window.recent()))

    def _older(self, window: Sequence[Said]) -> list[Wanted]:
        return older(window, self._may_keep, self._bounds.older) if self._bounds.each else []

    def _may_keep(self, said: Said) -> bool:
        """Whether what came with a message may be kept: not what guests send, who can't have it erased.

        Nor what we sent, which may have others' words.
        """
        return not (said.guest or said.by_us) and self._consent.may_keep(said.author_id, said.sent_at)

    def _bounded(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """The files that are worth a download."""
        beyond = self._beyond(wanted)
        return [one for one in wanted if _key(one) not in beyond]

    def _beyond(self, wanted: Iterable[Wanted]) -> dict[Key, str]:
        """The others, and why: each message has its first files read, and documents only while there is room.

        A request has room for one or two of the largest; all others would be read for nothing.
        """
        count, size, found = Counter[str](), 0, dict[Key, str]()
        for one in wanted:
            count[one.file.message_id] += 1
            needs = one.file.size if claimed(one.file) == "Document" else 0
            if count[one.file.message_id] > self._bounds.each:
                found[_key(one)] = MANY.format(self._bounds.each)
            elif size + needs > MOST_BYTES * 3 // 4:  # they grow by a third in base64
                found[_key(one)] = TOO_MUCH
            else:
                size += needs
        return found

    def _kind(self, one: Wanted) -> str:
        kept = self._shelf.look(one.file)
        if kept is None:
            return claimed(one.file)
        return kept.kind.capitalize() if isinstance(kept, Encoded) else "Text"

    def _read(self, wanted: Iterable[Wanted], arrival: Arrival) -> dict[Key, Reading]:
        """Begin to read these files, without those that may not be read or are gone."""
        found: dict[Key, Reading] = {}
        for one in wanted:
            said, kept = one.said, self._shelf.look(one.file)
            if kept is not None:
                found[_key(one)] = kept
                continue
            if self._is_erased(said) or (one.older and self._shelf.failed(one.file)):
                continue
            origin = Origin(said, arrival.place.hidden)
            if (task := self._shelf.read(one.file, origin, keep=self._may_keep(said))) is not None:
                found[_key(one)] = task
        return found

    def _is_gone(self, one: Wanted) -> bool:
        """Whether a file was taken back while others were waited for."""
        return self._shelf.removed(one.file) or self._is_erased(one.said)

    def _is_erased(self, said: Said) -> bool:
        return self._consent.ask(said.author_id, said.sent_at).erased

    async def _messages(self, arrival: Arrival) -> Messages:
        """The linked messages that may still be used."""
        found = await self._linked.messages(arrival.message)
        return [one for one in found if isinstance(one, Unreadable) or await self._usable(one, arrival)]


def _key(one: Wanted) -> Key:
    return one.file.message_id, one.file.id


async def _in_time(linked: "asyncio.Task[Messages]", until: float) -> Messages:
    """The linked messages; none if they come too late."""
    await asyncio.wait([linked], timeout=max(0.0, until - asyncio.get_running_loop().time()))
    if linked.done():
        return linked.result()
    linked.cancel()
    return []


async def _wait(
    wanted: Iterable[Wanted], reading: Mapping[Key, Reading], until: float, older_s: float
) -> None:
    """Wait for what is being read: for older files not as long as for others."""
    now = asyncio.get_running_loop().time()
    for are_older, end in ((False, until), (True, min(until, now + older_s))):
        tasks = [reading.get(_key(one)) for one in wanted if one.older == are_older]
        running = [one for one in tasks if isinstance(one, asyncio.Task)]
        left = end - asyncio.get_running_loop().time()
        if running:
            await asyncio.wait(running, timeout=max(0.0, left))


def _is_left(one: Wanted, reading: Mapping[Key, Reading]) -> bool:
    """Whether a file may still be used: not if its message was taken back while it was read."""
    found = reading.get(_key(one))
    return found is not None and not (isinstance(found, asyncio.Task) and found.cancelled())


def _content(one: Wanted, reading: Reading) -> Read | None:
    """The content that was read; None if it came too late."""
    if not isinstance(reading, asyncio.Task):
        return reading
    if not reading.done():
        return None
    return refused(one.file.name, BROKEN) if reading.exception() is not None else reading.result()

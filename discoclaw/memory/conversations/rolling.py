"""Rolling summaries: `rolling/<safe-session-key>.json` = {summary, updatedAt}, exactly, one a conversation.

Served from RAM; a text that cannot be parsed is kept aside and counts as no summary. Summaries are lossy by
design and have no history; durable memory is in the ledger. A clear is recorded before the summary is removed
(`clears`), and an older summary is ignored, wherever it comes from. Where its file is found, it is removed.
Independent of how a summary is made.
"""

import itertools
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from discoclaw.core.errors import MemoryFault, Overtaken, Refused
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.ports import Clock
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged, Readable, Words
from discoclaw.core.rolling_text import read as read_text
from discoclaw.core.rolling_text import sentences
from discoclaw.core.subject import person_of
from discoclaw.core.text import scrub
from discoclaw.core.times import time_of_snowflake, valid_ms
from discoclaw.memory.changes import SESSION, Changes
from discoclaw.memory.conversations.clears import Clears
from discoclaw.memory.cursors import Cursor, Cursors, names_of, read
from discoclaw.memory.kept import JSON, Kept, json_names
from discoclaw.store.files import in_thread, session_name
from discoclaw.store.port import ROLLING, Documents

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rolling:
    """A conversation's summary; `updated_at` in ms since 1970, or 0 if there is none yet."""

    summary: str = ""
    updated_at: int = 0


NOTHING = Rolling()


def _parsed(value: object) -> Rolling:
    """The summary in a file. Other fields that the TypeScript bot wrote are ignored."""
    match value:
        case {"summary": str(summary), "updatedAt": int(at)} if valid_ms(at):
            return Rolling(scrub(summary), at)
    raise ValueError("it has no summary or time")


@dataclass(slots=True)
class _Generation:
    number: int


class RollingMemory(Kept[Rolling], Derived):
    """All conversations' summaries, loaded when used and evicted when idle. `clears` records clears.

    One that rests on what a person took back goes out of use and is written again. The cursors
    `summary-<session>` and `people-<session>` say which messages each covers, and whose words it has.
    """

    name = "summaries in use"

    def __init__(
        self,
        where: Path | Documents,
        *,
        clock: Clock,
        cursors: Cursors,
        idle_ms: int = HOUR_MS,
        clears: Clears | None = None,
        changes: Changes | None = None,
    ) -> None:
        super().__init__(
            where,
            "rolling summary",
            _parsed,
            lambda one: {"summary": one.summary, "updatedAt": one.updated_at},
            clock=clock,
            idle_ms=idle_ms,
            name_of=session_name,
        )
        self._clears = clears
        self._cursors = cursors
        self._changes = changes or Changes()
        self._numbers = itertools.count()  # shared by all sessions, so no number recurs after an eviction
        self._generations: IdleMap[_Generation] = IdleMap(
            lambda key: _Generation(next(self._numbers)), idle_ms=idle_ms
        )
        self._paused: dict[str, set[str]] = {}  # sessions whose summary is about to be purged, by subject
        self._hidden: set[str] = set()  # sessions whose file is erased, or could not be: it must not be read

    # ------------------------------------------------------------------ reading

    async def get(self, session_key: str) -> Rolling:
        """Return the current summary. Raises MemoryFault if the file cannot be read."""
        value = await self.held(session_key)
        return NOTHING if self.paused(session_key) else value

    async def held(self, session_key: str) -> Rolling:
        """Return the summary even if it may not be used any more. Raises MemoryFault."""
        self._generation(session_key)
        if session_key in self._hidden:
            return NOTHING
        cleared_at = await self.cleared_at(session_key)
        value = await super().get(session_key) or NOTHING
        if value is NOTHING or session_key in self._hidden:  # which it may be since it was read
            return NOTHING
        if value.updated_at > cleared_at:
            return value
        async with self._writing:  # a run that was killed left it
            left = (await self._known(session_key)).value
            if left is not None and left.updated_at <= cleared_at:
                await self._remove(session_key)
        return NOTHING

    def in_ram(self, session_key: str) -> Rolling | None:
        """The summary if it is in RAM, else None."""
        if not self.at_hand(session_key):
            return None
        if session_key in self._hidden or self.paused(session_key):
            return NOTHING
        value = super().in_ram(session_key) or NOTHING
        cleared = self._clears is not None and self._clears.may_hide(session_key, value.updated_at)
        return None if value is not NOTHING and cleared else value

    def paused(self, session_key: str) -> bool:
        """Whether a summary may rest on what somebody just took back, and so must not be used."""
        return any(session_key in keys for keys in self._paused.values())

    async def cleared_at(self, session_key: str) -> int:
        """When (ms) this session was last cleared; -1 for never, as far as is known."""
        return await self._clears.last(session_key) if self._clears is not None else -1

    # ------------------------------------------------------------------ writing

    async def generation(self, session_key: str) -> int:
        """Return a number that changes whenever the summary does; see `put`."""
        await self.held(session_key)
        return self._generation(session_key).number

    async def put(self, session_key: str, summary: str, *, generation: int) -> bool:
        """Store a summary made while `generation` was current. Returns False if it no longer is.

        Raises MemoryFault when the disk fails; the old summary then stays.
        """
        cleared_at = await self.cleared_at(session_key)

        def work(known: Rolling | None) -> Rolling | None:
            if self._generation(session_key).number != generation:
                return None
            before = max((known or NOTHING).updated_at, cleared_at)
            return Rolling(summary, max(self._clock(), before + 1))

        try:
            written = await self.change(session_key, work)
        except Overtaken:
            self._anew(session_key)
            return False
        if written:
            self._anew(session_key)
            self._hidden.discard(session_key)
            self.counted(session_key)
        return written

    def counted(self, session_key: str) -> None:
        """Tell listeners that a summary changed, or its last message or length, which lie beside it."""
        self._changes.written(f"{SESSION}{session_key}")

    async def clear(self, session_key: str, *, by: str | None = None) -> None:
        """Remove the summary of this session only. A summary being made now will not be stored.

        `by` is who asked for it (user id). Raises MemoryFault when the disk fails.
        """
        async with self._writing:
            self._anew(session_key)
            known = (await self._known(session_key)).value or NOTHING
            if self._clears is not None:  # first, so that a file that cannot be removed is hidden
                await self._clears.note(session_key, by=by, not_before=known.updated_at)
            await self._remove(session_key)
            self._anew(session_key)  # again: a summary begun meanwhile was made from the removed one
        self._hidden.discard(session_key)
        self.counted(session_key)

    async def finish_clears(self) -> None:
        """Remove the files of cleared summaries that a killed run left. Never raises."""
        try:
            there = set(await in_thread(self.documents.names))
            for key in [*await self._clears.known()] if self._clears is not None else ():
                if session_name(key) in there:
                    await self.held(key)  # a cleared one is removed when it is read
        except (MemoryFault, OSError) as error:
            log.warning("a summary that was cleared may still be on disk: %s", error)

    # ------------------------------------------------------------------ other processes and erasings

    async def renewed(self, names: Collection[str]) -> None:
        """Drop from RAM what another process wrote. A summary being made now will not be stored."""
        await super().renewed(names)
        changed = {name.rpartition("/")[2] for name in names if name.startswith(f"{ROLLING}/")}
        for key in self._generations if changed else ():
            if session_name(key) in changed:
                self._anew(key)
        self._hidden -= {key for key in self._hidden if session_name(key) in changed}

    # ------------------------------------------------------------------ what somebody took back

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        """Remove summaries that rest on it. Those that an erasing removes with the store's files are hidden.

        A summary being made now will not be stored.
        """
        if phase == "disk":
            return self.settled(purge.sessions) if purge.erases else self._purge_disk(purge)
        if purge.erases:
            self._hidden |= purge.sessions  # until there is a new one: the disk may refuse to remove it
            for key in purge.sessions:
                self.drop(key)
                self._anew(key)
        elif phase == "ram":
            self._pause(purge)
        else:
            for key in self._paused.pop(purge.subject, ()):
                self._anew(key)  # a summary begun meanwhile did not know of it
        return None

    def _pause(self, purge: Purge) -> None:
        """Use no summary that may rest on it until the disk phase has read its cursor."""
        channels = {*purge.messages.values(), *purge.changed.values()}
        for key in self._generations:
            value = super().in_ram(key)
            if value is None or not value.summary:
                continue
            here = key.rpartition(":")[2] in channels or person_of(key) == purge.user_id
            if here or purge.everything or purge.words.hold(value.summary):
                self._paused.setdefault(purge.subject, set()).add(key)
                self._anew(key)

    async def _purge_disk(self, purge: Purge) -> Purged:
        gone = set[str]()
        for key in sorted(purge.sessions):
            is_open = person_of(key) is None or not purge.open_only
            if purge.everything:
                await self._unname(key, purge.user_id)
            if is_open and await self._rests_on(key, purge):
                await self._take_out_of_use(key, purge)
                gone.add(key)
            elif is_open:
                await self._strike(key, purge)
        return Purged(summaries=frozenset(gone))

    async def _rests_on(self, key: str, purge: Purge) -> bool:
        """Whether a conversation's summary took in a message of the purge, or has its words."""
        summary = (await self.held(key)).summary
        if not summary:
            return False
        said_here = await self._took_in(key, purge)
        return purge.everything or said_here or purge.words.hold(summary)

    async def _took_in(self, key: str, purge: Purge) -> bool:
        """Whether a conversation's summary took in a message that the purge names."""
        cursor = await self._cursors.get(f"summary-{key}")
        first, last = message_in(cursor, "from"), message_in(cursor)
        if not last:
            return False  # most conversations have no summary, and a bulk deletion names thousands of both
        return any(
            first < int(message) <= last
            for message, channel in (*purge.messages.items(), *purge.changed.items())
            if message.isdigit() and _is_in(channel, key, purge.sessions)
        )

    async def _take_out_of_use(self, key: str, purge: Purge) -> None:
        """Take one summary out of use, and note that it has to be written `again`. Raises MemoryFault.

        What is left of it without the words is kept as `base`, in case the messages cannot be read any more:
        nothing if the words are unknown, as after a restart, because any line may have them. The clear that
        is recorded hides copies elsewhere.
        """
        base = _left_of((await self.held(key)).summary, purge)

        def again(known: Cursor) -> Cursor:
            times = known.get("again")
            return {**known, "again": (times if isinstance(times, int) else 0) + 1, "base": base}

        why = f"that the summary of {key} has to be made again could not be noted"
        await self._note(f"summary-{key}", again, why)
        await self.clear(key)

    async def _strike(self, key: str, purge: Purge) -> None:
        """Purge the remains of a summary that has yet to be written again. Raises MemoryFault."""
        known = purge.everything or purge.words
        if not known and not await self._took_in(key, purge):
            return
        base = (await self._cursors.get(f"summary-{key}")).get("base")
        if not isinstance(base, str) or (left := _left_of(base, purge)) == base:
            return
        why = f"what is left of the summary of {key} could not be changed"
        await self._note(f"summary-{key}", lambda known: {**known, "base": left}, why)

    async def _unname(self, key: str, user_id: str) -> None:
        """Remove somebody's name from the cursor of a conversation's summary. Raises MemoryFault."""
        name = f"people-{key}"
        if user_id not in names_of(await self._cursors.get(name)):
            return

        def unnamed(known: Cursor) -> Cursor:
            names = {one: called for one, called in names_of(known).items() if one != user_id}
            return {**known, "names": names}

        await self._note(name, unnamed, f"a name in the summary of {key} could not be removed")

    async def _note(self, name: str, change: Callable[[Cursor], Cursor], why: str) -> None:
        """Change a cursor. Raises MemoryFault, which says `why`."""
        if not await self._cursors.update(name, change):
            self._cursors.drop(name)
            raise MemoryFault(why)

    def audit(self) -> Iterator[Readable]:
        """The summaries, and what remains of those that have to be written again.

        A summary is dated by the newest message that it covers.
        """
        folder = self._cursors.documents
        for key, place, value in self.stored():
            newest = time_of_snowflake(message_in(read(folder, f"summary-{key}{JSON}")))
            yield Readable(place, value.summary, key, at=newest or value.updated_at)
        for name in json_names(folder):
            if name.startswith("summary-"):
                base, key = read(folder, name).get("base"), name.removeprefix("summary-").removesuffix(JSON)
                if isinstance(base, str) and base:
                    yield Readable(f"{folder.folder / name}", base, key)

    def _generation(self, session_key: str) -> _Generation:
        now = self._clock()
        self._generations.evict_idle(now)
        return self._generations.use(session_key, now)

    def _anew(self, session_key: str) -> None:
        """Begin another generation."""
        if (current := self._generations.peek(session_key)) is not None:
            current.number = next(self._numbers)


SUMMARIES_OFF = "summaries are switched off here; an admin can switch them on with DISCOCLAW_SUMMARY_ENABLED"


class NoSummaries:
    """Summaries, of which there are none. `why` is the error for those who try to clear one."""

    def __init__(self, why: str = SUMMARIES_OFF) -> None:
        self._why = why

    async def get(self, session_key: str) -> Rolling:
        return NOTHING

    def in_ram(self, session_key: str) -> Rolling:
        return NOTHING

    async def clear(self, session_key: str, *, by: str | None = None) -> NoReturn:
        raise Refused(self._why)


def _left_of(text: str, purge: Purge) -> str:
    """The rest of a summary after a purge of what it rests on."""
    if purge.everything or not purge.words:
        return ""
    return struck(text, purge.words)


def struck(text: str, words: Words, but: frozenset[str] = frozenset(), *, half: bool = False) -> str:
    """A text without the sentences that have any of these words, or half of them; see `Words.hold`.

    A line of a section goes as a whole.
    """
    lines = (
        [one for one in sentences(line) if not words.hold(one, but, half=half)] for line in text.splitlines()
    )
    return str(read_text("\n".join(" ".join(line) for line in lines if line)))


def message_in(cursor: Cursor, name: str = "upTo") -> int:
    """The id of a message (snowflake) in a cursor; 0 if there is none."""
    value = cursor.get(name)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else 0


def _is_in(channel: str, key: str, sessions: Collection[str]) -> bool:
    """Whether a channel's talk belongs to a conversation; a DM's key does not name its channel."""
    if person_of(key) is None:
        return key.rpartition(":")[2] == channel
    return not {f"discord:channel:{channel}", f"discord:thread:{channel}"} & set(sessions)

"""What is said reaches every part that keeps talk: the window, the loops, the archive, people and groups.

They receive every message of an allowed channel, whoever wrote it and whether or not it is answered; edits
and deletions reach every part that got the message. What was said before is read from the chat's history,
once after a start, back until the window is full and the loops have everything they have not seen. A reply
does not wait long for that; late messages are there for the next reply.
"""

import asyncio
import logging
from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass, replace

from discoclaw.core.consent import Consent
from discoclaw.core.errors import ChatError, MemoryFault
from discoclaw.core.message import Place, Said, sessions_with
from discoclaw.core.ports import Clock, History
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged
from discoclaw.core.subject import person_of
from discoclaw.core.times import snowflake_at
from discoclaw.loops.heard import BACKLOG
from discoclaw.loops.schedule import Loops
from discoclaw.memory.conversations.answers import Answers
from discoclaw.memory.people.groups import Groups
from discoclaw.memory.people.profiles import Profiles
from discoclaw.memory.purge import Purger
from discoclaw.session.archiving import Archiving
from discoclaw.session.files.shelf import Shelf
from discoclaw.session.hatch import Hatchery
from discoclaw.session.turn import Stops, Turn, Window, Windows
from discoclaw.work import Background, Worker, within

log = logging.getLogger(__name__)

HISTORY_WAIT_S = 2.0
"""The longest a reply waits for the chat's history, once after a start."""
HISTORY_PAUSE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Listener:
    """Tells each part that keeps talk about messages, edits and deletions."""

    windows: Windows
    loops: Loops
    archive: Archiving
    hatchery: Hatchery
    profiles: Profiles
    groups: Groups
    shelf: Shelf
    stops: Stops

    def hear(self, turn: Turn) -> None:
        """Pass a message on, unless it was deleted or its author erased while it was on its way."""
        if turn.permission.erased or self.stops.deleted(turn.message.asks):
            return
        said = turn.said()
        self._take_in(turn, said)
        self.archive.hear(said, turn.place, turn.session_key)
        # Record who was seen where. Nothing is stored about guests, who cannot ask for it to be erased.
        author, place, message = turn.message.author, turn.place, turn.message
        kept = author.allowed and turn.permission.holds
        if kept:
            self.profiles.seen(author.id, author.name, message.sent_at, where=place.guild_id or "")
        user_id = author.id if kept else None
        self.groups.seen(place, message.sent_at, user_id=user_id, name=author.name)

    def hear_aside(self, turn: Turn) -> None:
        """Take in what somebody asked with a command. It goes to no part where others could find it."""
        if not turn.permission.erased:
            self._take_in(turn, turn.said())

    def _take_in(self, turn: Turn, said: Said) -> None:
        turn.enter(said)
        if turn.permission.holds:
            window, late = turn.window.capacity, turn.message.late
            self.loops.hear(said, turn.place, turn.session_key, window=window, late=late)

    def amend(self, now: Said, session_key: str) -> None:
        """Take over an edit in the chat. `now` is the message with its new text."""
        for key in sessions_with(now.id, session_key):
            self.windows.amend(now, key)
            self.loops.tracks.amend(key, now.author_id, now.id, now.text, now.edited_at)
        self.shelf.keep_only(now.id, {file.id for file in now.files})
        self.archive.amend(now.id, now.author_id, now.text)
        self.hatchery.amend(now.id, now.text)

    def forget(self, message_ids: Collection[str], session_key: str | None) -> dict[str, Said]:
        """Take over a deletion: the messages and answers to them leave the window, and no loop sees them.

        What is being answered no longer is. The chat does not always name the session; without one all of
        them are searched. Returns the messages that were still known.
        """
        self.stops.delete(message_ids)
        found = self.windows.forget(message_ids, session_key)
        message_ids = {*message_ids, *found}
        found |= self.loops.tracks.forget(*message_ids)
        self.shelf.drop(message_ids)
        for message_id in message_ids:
            self.archive.delete(message_id)
            self.hatchery.forget(message_id)
        return found


class Refill(Background, Derived):
    """Fills windows from `history`, and passes its messages to the loops and the archive.

    It removes from what the loops are to learn from what somebody took back. After that it has the messages
    of purged summaries read again, for which nobody waits. Where nothing was said lately, that waits for the
    next message.
    """

    name = "talk to learn from"
    _grace_s = 0.0  # the rest is read when somebody says something there again

    def __init__(
        self,
        listener: Listener,
        history: History,
        consent: Consent,
        purger: Purger,
        answers: Answers,
        *,
        clock: Clock,
    ) -> None:
        self._windows, self._loops, self._archive = listener.windows, listener.loops, listener.archive
        self._history = history
        self._purger = purger
        self._answers = answers
        self._consent = consent
        self._clock = clock
        self._to_read: set[str] = set()
        """The conversations whose summaries were purged."""
        self._worker = Worker("summaries made again", self._read_again)

    async def fill(self, turn: Turn) -> None:
        """Fill a conversation's window unless it was filled before; waits at most `HISTORY_WAIT_S`.

        An aside has no history in the chat: what is said in its place is other people's talk. A message that
        is answered again is not the newest, so the next message fills the window.
        """
        window, stays = turn.window, turn.place.kind == "aside" or bool(turn.replaces)
        if stays or window.refilled or self._clock() < window.refill_after:
            return
        reading = self.read(turn.place, turn.session_key, window, before=turn.message.id)
        await asyncio.wait([reading], timeout=HISTORY_WAIT_S)

    async def back_then(self, turn: Turn) -> Turn:
        """A message that is answered again, with what was said before it if the window has lost that."""
        message, policy, window = turn.message, turn.policy, turn.window
        if not turn.replaces or window.has(message.id):
            return turn
        back_then = Window(policy.capacity)
        past = self._past(turn.place, turn.session_key, 1, message.id)
        reading = await within(HISTORY_WAIT_S, past)
        if reading.done() and reading.exception() is None:
            for said in reading.result()[max(0, len(reading.result()) - policy.context_history + 1) :]:
                back_then.remember(said)
        return replace(turn, window=back_then)

    async def quote(self, turn: Turn) -> Turn:
        """A message without the one that it replies to, if that was taken back, or may have been."""
        quoted = turn.message.quoted
        if quoted is None or await self.usable(quoted, turn):
            return turn
        return replace(turn, message=replace(turn.message, quoted=None))

    async def usable(self, quoted: Said, turn: Turn) -> bool:
        """Whether a message may be used in an answer: it was not taken back, as far as is known in time.

        Nor was its person erased since, nor the question deleted that it answers.
        """

        async def left() -> list[Said]:
            recent = [one for one in turn.window.recent() if one.id == quoted.id]
            if not recent:  # of the recent talk it is known whom it was for
                recent = await self._answers.known([quoted], quoted.channel_id)
            return await self._kept(recent, turn.session_key, private=turn.place.hidden)

        looked = await within(HISTORY_WAIT_S, left())
        return looked.done() and looked.exception() is None and bool(looked.result())

    def read(self, place: Place, session_key: str, window: Window, *, before: str) -> "asyncio.Task[None]":
        """The task that reads what was said before a message; it is started unless one is running."""
        window.place = place
        if window.refill is None:
            window.refill = asyncio.create_task(self._read(place, session_key, window, before))
        return window.refill

    async def _read(self, place: Place, session_key: str, window: Window, before: str) -> None:
        try:
            past = await self._past(place, session_key, window.capacity, before)
            recent = past[-window.capacity :]
            for said in recent:
                window.remember(said)
            self._archive.catch_up(recent, place, session_key)
            await self._loops.catch_up(past, place, session_key, window=window.capacity)
            window.refilled = True
        except (ChatError, MemoryFault) as error:
            window.refill_after = self._clock() + HISTORY_PAUSE_MS
            log.warning("%s: no history: %s", session_key, error)
        except Exception:  # deliberately broad: nobody awaits this task, and the turn goes on without it
            window.refill_after = self._clock() + HISTORY_PAUSE_MS
            log.exception("%s: no history", session_key)
        finally:
            window.refill = None

    async def _past(self, place: Place, session_key: str, window: int, before: str) -> list[Said]:
        """The messages before one, oldest first, back to what the loops have seen.

        What somebody took back is left out. Raises ChatError and MemoryFault.
        """
        past: list[Said] = []
        gone: list[str] = []
        async with aclosing(self._history.pages(place, before)) as pages:
            async for page in pages:
                past = [*page, *past]
                if len(past) >= BACKLOG:
                    break
                if len(past) >= window and not await self._loops.miss_more(session_key, past):
                    break
            else:  # a thread begins with the message that it grew out of, unless that was deleted
                gone = [place.channel_id] if all(said.id != place.channel_id for said in past) else []
        told = await self._answers.known(past[-BACKLOG:], place.channel_id, gone)
        return await self._kept(told, session_key, private=place.hidden)

    async def _kept(self, said: list[Said], session_key: str, *, private: bool) -> list[Said]:
        """The messages that nobody took back, and whose person wasn't erased since. Raises MemoryFault.

        What the bot answered somebody counts as theirs.
        """

        def erased(one: Said) -> bool:
            person = one.to_id or (person_of(session_key) if one.by_us else None) or one.author_id
            return self._consent.ask(person, one.sent_at).erased

        kept = [one for one in said if not erased(one)]
        return await self._purger.left(kept, session_key, private=private)

    # ------------------------------------------------------------------ what was taken back

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        if phase == "ram":
            return self._purge_tracks(purge)
        if phase == "disk" and not purge.erases:
            return self._find_lost(purge)
        if phase == "done":  # until here, no summary of these conversations may be written
            for key in sorted(self._to_read):
                if not self._loops.summary_paused(key):  # by another purge, which has an end of its own
                    self._to_read.remove(key)
                    self._worker.note(key)
        return None

    def _purge_tracks(self, purge: Purge) -> Purged:
        tracks, user_id = self._loops.tracks, purge.user_id
        sessions = frozenset(tracks.sessions_of(user_id)) if user_id else frozenset[str]()
        if not purge.erases:
            return Purged(messages=frozenset(tracks.purge(purge)), sessions=sessions)
        if user_id:
            tracks.erase(user_id, sorted(purge.sessions | sessions), purge.at)
        return Purged(sessions=sessions)

    async def _find_lost(self, purge: Purge) -> None:
        """Note which summaries are to be made again."""
        for key in sorted(purge.sessions):
            if await self._loops.summary_lost(key):
                self._to_read.add(key)

    async def _read_again(self, session_key: str) -> None:
        window = self._windows.use(session_key)
        if window.refill is not None:  # it looked no further back than was needed then
            await asyncio.wait([window.refill])
        if not await self._loops.summary_lost(session_key):
            return
        self._loops.tracks.begin_again(session_key)
        window.refilled = False
        if window.place is not None:
            before = str(snowflake_at(self._clock()) + (1 << 22))
            await asyncio.wait([self.read(window.place, session_key, window, before=before)])

"""A message with everything that was decided when it arrived, and the window of the talk that it stands in.

A message is resolved once and passed down from there: no later step asks again who the author is, whether
their words may be stored, or which persona a place has. A window has the last messages of a conversation,
whoever wrote them, answered or not. It is in RAM only; after a start, the first turn of a conversation has it
filled from the chat's history. Independent of what is done with the messages.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Literal, Self

from discoclaw.core.consent import Consent, Permission
from discoclaw.core.errors import ErasedMeanwhile, LeaseLost, QuestionGone
from discoclaw.core.idle import HOUR_MS, IdleMap
from discoclaw.core.message import Inbound, Place, Said, sessions_with, with_attachments
from discoclaw.core.policy import PlacePersonas, Policy
from discoclaw.core.ports import ALONE, Clock, Processes
from discoclaw.core.purge import Derived, Phase, Purge, Purged
from discoclaw.core.subject import BOT, group_subject, user_subject
from discoclaw.core.values import dataclass, replace
from discoclaw.memory.changes import Listener
from discoclaw.memory.live import LiveConfig
from discoclaw.store.files import session_name
from discoclaw.store.port import CURSORS, GROUPS, LEDGERS, PROFILES, ROLLING

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

    def purge(self, purge: Purge, phase: Phase) -> Purged | None:
        """Remove the messages that somebody took back.

        Where they are erased, remove everything that could bring their words back: their conversations start
        empty.
        """
        if phase != "ram":
            return None
        sessions = self._sessions_with(purge.user_id) if purge.user_id else frozenset[str]()
        if purge.erases:
            for key in sorted(purge.sessions | sessions) if purge.user_id else ():
                self.use(key).clear()
            return Purged(sessions=sessions)
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
        return Purged(messages=frozenset(gone), sessions=sessions)

    def _sessions_with(self, user_id: str) -> frozenset[str]:
        """The conversations whose windows have a person's words or name."""
        return frozenset(
            key
            for key in self._windows
            if (window := self._windows.peek(key)) is not None
            and (user_id in window.names or any(said.author_id == user_id for said in window.recent()))
        )

    def amend(self, now: Said, session_key: str) -> None:
        """Take over an edit of a message in the chat."""
        if (window := self._windows.peek(session_key)) is not None:
            window.amend(now)

    def use(self, session_key: str) -> Window:
        """The window of a conversation."""
        now = self._clock()
        self._windows.evict_idle(now)
        return self._windows.use(session_key, now)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of an allowed channel.

    `policy` applies to this message. `permission` says whether it may be stored, and ends when its author
    opts out or is erased. `window` belongs to its conversation. `persona` is the branch that the place
    prescribes, or None if the person may choose.
    """

    message: Inbound
    policy: Policy
    permission: Permission
    window: Window
    persona: str | None
    # Read at every step, so they are fields and not properties.
    place: Place
    session_key: str
    subject: str
    """The subject whose ledger stores the author's memory."""
    in_dm: bool
    """Whether nobody but the author reads the conversation."""
    replaces: str = ""
    """The first message of an older answer that this answer is to replace."""
    processes: Processes = ALONE

    async def keep(self) -> None:
        """Make sure that the message is still this process's to answer, and may still be shown to a model.

        A process that was stopped in the middle of a turn learns here what others did meanwhile: what is in
        RAM, and in a prompt made from it, is as old as the stop. While the store is in touch, nothing is
        asked. Raises LeaseLost if another process answers, and ErasedMeanwhile if its person was erased.
        """
        if self.processes.in_touch:
            return
        erased = self.permission.erased
        if not await self.processes.claim(self.message.id, texts_of(self.message)) and not self.replaces:
            raise LeaseLost(f"another process answers the message {self.message.id}")
        if self.permission.erased and not erased:
            raise ErasedMeanwhile("its person was erased before a model was asked")

    def as_edited(self) -> Self:
        """This turn, with the newest text if the message was edited while it waited for its turn."""
        now = next((one for one in self.window.recent() if one.id == self.message.id), None)
        if now is None or not now.edited_at:
            return self
        text = now.text.removesuffix(with_attachments("", self.message.attachments)).rstrip("\n")
        return replace(self, message=replace(self.message, text=text))

    def talk_before(self) -> tuple[Said, ...]:
        """The talk before the message, oldest first; see `Window.before`."""
        return self.window.before(self.message.id, self.replaces)

    def fit(self) -> None:
        """Give the conversation's window its place, and the size that the policy asks for."""
        self.window.place = self.place
        if self.window.capacity != self.policy.capacity:
            self.window.resize(self.policy.capacity)

    def enter(self, said: Said) -> None:
        """Put the message, as a line of the talk, into its conversation's window."""
        self.fit()
        self.window.remember(said, shown=self.policy.context_history)

    def said(self) -> Said:
        """The message as a line of the talk."""
        message, author = self.message, self.message.author
        return Said(
            id=message.id,
            author_id=author.id,
            name=author.name,
            text=with_attachments(message.text, message.attachments),
            sent_at=message.sent_at,
            is_owner=author.is_owner,
            guest=not author.allowed,
            files=message.files,
        )


@dataclass(frozen=True, slots=True)
class Turns:
    """Resolves a message once into everything that is decided when it arrives."""

    live: LiveConfig
    consent: Consent
    windows: Windows
    personas: PlacePersonas
    processes: Processes = ALONE

    async def claim(self, message: Inbound) -> bool:
        """Whether this process is to handle a message. What others changed of what its turn reads is dropped.

        The one question to the store that a message costs.
        """
        return await self.processes.claim(message.id, texts_of(message))

    async def look(self, message: Inbound) -> None:
        """Drop what others changed of what a message's turn reads, without claiming the message."""
        await self.processes.look(texts_of(message))

    async def of(self, message: Inbound) -> Turn:
        """The turn of a message, under the current configuration."""
        await self.live.look()
        return self.under(message, self.live.policy(message.place, message.author.id))

    def under(self, message: Inbound, policy: Policy) -> Turn:
        """The turn of a message under a policy."""
        place, permission = message.place, self.consent.ask(message.author.id, message.sent_at)
        return Turn(
            message,
            policy,
            permission,
            self.windows.use(message.session_key),
            self.personas.of(place),
            place,
            message.session_key,
            permission.subject,
            place.kind == "dm",
            processes=self.processes,
        )


# ----------------------------------------------------------------------
# The names of the texts in the store that a turn reads, by which to ask whether another process changed
# one.

_EVERYBODYS = (
    "config.json",
    "signed.json",
    "tombstones.jsonl",
    "clears.jsonl",
    f"{LEDGERS}/{BOT}.jsonl",
    f"{CURSORS}/hatch-offered.json",
)
"""The texts that every turn reads: the configuration, what was erased or cleared, the bot's personality."""


def texts_of(message: Inbound) -> Iterator[str]:
    """The texts that the turn of a message reads; a process that is alone asks for none of them."""
    yield from texts_about(message.author.id)
    session, group = session_name(message.session_key), message.place.group_id
    yield from (f"{ROLLING}/{session}", f"{CURSORS}/{session}")
    yield from (
        f"{CURSORS}/{session_name(f'{kind}-{message.session_key}')}" for kind in ("summary", "people")
    )
    if group is not None:
        yield from (f"{LEDGERS}/{group_subject(group)}.jsonl", f"{GROUPS}/{group}.json")


def texts_about(user_id: str) -> Iterator[str]:
    """The texts that a command or a press of a person reads."""
    subject = user_subject(user_id)
    cursors = (f"facts-{user_id}", f"asked-{user_id}", f"hatching-{user_id}", f"access-{subject}")
    yield from _EVERYBODYS
    yield from (f"{LEDGERS}/{subject}.jsonl", f"{PROFILES}/{user_id}.json", f"choices/{user_id}.json")
    yield from (f"{CURSORS}/{session_name(name)}" for name in cursors)


# ----------------------------------------------------------------------
# Answers that end early: a person stops one, or deletes what it answers.
#
# Whoever stops an answer keeps what was said so far. Of an answer to a deleted message nothing stays.
# Independent of what a turn does, and of how people say that it is enough.

MOST_DELETED: Final = 2_000
Stopped = Literal["now", "ending", "unknown"]
"""Whether this request stops the answer, comes when it is ending anyway, or finds none under way."""


class Stoppable:
    """One answer that is being given. `stopped`: it ended before the model had finished.

    `gone`: the message that it answers was deleted.
    """

    def __init__(self, user_id: str, *, gone: bool = False) -> None:
        self.user_id = user_id
        self.stopped = False
        self.gone = gone
        self._limit: asyncio.Timeout | None = None

    @asynccontextmanager
    async def part(self) -> AsyncIterator[None]:
        """The part that can be stopped: what is awaited in it is cancelled, and it ends without an error."""
        # A timeout that we set off by hand: it tells our own cancellation from anybody else's.
        limit = self._limit = asyncio.timeout(None)
        try:
            async with limit:
                yield
        except TimeoutError:
            self.stopped = limit.expired()
            if not self.stopped:
                raise
        finally:
            self._limit = None

    def check(self) -> None:
        """Raise QuestionGone if the message that it answers was deleted."""
        if self.gone:
            raise QuestionGone("what was being answered was deleted")

    def stop(self) -> bool:
        """Stop it. Returns False if it is not in that part, or was stopped before."""
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.reschedule(asyncio.get_running_loop().time())
        return limit is not None


class Stops:
    """The answers that are being given, by the id of what they answer, and what was deleted lately."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[Collection[str], Stoppable]] = {}
        self._deleted: dict[str, None] = {}

    @contextmanager
    def answering(self, message_id: str, user_id: str, asks: Collection[str]) -> Iterator[Stoppable]:
        """An answer to the messages `asks`, from its first to its last step.

        Raises QuestionGone if one of them was deleted by the end, whatever else went wrong.
        """
        one = Stoppable(user_id, gone=self.deleted(asks))
        self._answers[message_id] = asks, one
        try:
            yield one
        except Exception:
            one.check()
            raise
        finally:
            del self._answers[message_id]
        one.check()

    def delete(self, message_ids: Collection[str]) -> None:
        """Messages were deleted: whatever answers one of them ends."""
        for message_id in message_ids:
            self._deleted[message_id] = None
            if len(self._deleted) > MOST_DELETED:
                del self._deleted[next(iter(self._deleted))]
        for asks, one in self._answers.values():
            if self.deleted(asks):
                one.gone = True
                one.stop()

    def deleted(self, message_ids: Collection[str]) -> bool:
        """Whether one of these messages was deleted lately: they may be waiting, or not even be heard yet."""
        return not self._deleted.keys().isdisjoint(message_ids)

    def stop(self, message_id: str, user_id: str) -> Stopped:
        """Stop the answer to a message. Only the person who is answered can do that."""
        _, one = self._answers.get(message_id, ((), None))
        if one is None or one.user_id != user_id:
            return "unknown"
        return "now" if one.stop() else "ending"

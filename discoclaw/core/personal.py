"""The contract for personal data: every part that stores something about a person can have it removed.

A part derives from `PersonalData`, overrides what applies to it, and is registered once, by the composition
root. An erasing then walks the registry, stage by stage:

    intent → tombstone → `forget` (RAM) → `exclusive` + `erase` (files) → `outside` (chat and relays, later)

What a person takes back, or makes private, leaves everything that is derived from it in the same order:

    commit → `let_go` (RAM) → `withdraw` (disk), until it has worked

An audit asks every part what it stores (`readable`), and names what should not be there.

Knows nothing about files.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from discoclaw.core.audit import Readable
from discoclaw.core.purge import Withdrawal

ON_RELAYS: Final = "nostr"
"""The step of an erasure that asks relays to delete their copies; a relay may ignore that."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """An order to erase: everything about `subject` up to `at` (ms), and the summaries of `sessions` (keys).

    `outside` are the steps that follow elsewhere. What a part notes for one of them stays until it is done.
    """

    subject: str
    at: int
    sessions: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Removed:
    """The result of one part: how many files and notes, and what it could not remove and why.

    `changed` are other subjects in whose memory something rested on the person's words, `stuck` those in
    which it still does.
    """

    count: int = 0
    left: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()

    def __add__(self, other: "Removed") -> "Removed":
        return Removed(
            self.count + other.count,
            self.left + other.left,
            self.changed | other.changed,
            self.stuck | other.stuck,
        )


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Counts of what a withdrawal removed, for the line that the person reads.

    `messages` of the recent talk and of what waits to be learned from, `archived` ones, `summaries` (session
    keys), `notes` of channels, and `answers`: stored answers of the model and of its tools.
    """

    messages: frozenset[str] = frozenset()
    archived: int = 0
    summaries: frozenset[str] = frozenset()
    notes: int = 0
    answers: int = 0

    def __add__(self, other: "Withdrawn") -> "Withdrawn":
        return Withdrawn(
            self.messages | other.messages,
            self.archived + other.archived,
            self.summaries | other.summaries,
            self.notes + other.notes,
            self.answers + other.answers,
        )

    def __bool__(self) -> bool:
        return self != NOTHING_WITHDRAWN


NOTHING_WITHDRAWN: Final = Withdrawn()


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of taking something back, to tell the person.

    `waiting`: something could not be removed yet, and that is tried again. `everything`: they want no memory.
    `brought_back`: something is remembered again because a change was undone. `elsewhere`: the items of other
    personas that still say the same (ids, by persona).
    """

    removed: Withdrawn = NOTHING_WITHDRAWN
    waiting: bool = False
    everything: bool = False
    brought_back: bool = False
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class PersonalData:
    """A part that stores something about people. Each method has a default that does nothing."""

    name: str
    """What the part holds, for the log: "archive", "rolling summaries"."""
    local: bool = False
    """Whether this part's disk is this machine's alone: each process then erases and withdraws its own."""

    def sessions_of(self, subject: str) -> Iterable[str]:
        """Conversations (session keys) of which this part has words of a subject in RAM. Never blocks."""
        return ()

    def sessions_on_disk(self, subject: str) -> Iterable[str]:
        """Conversations that a note on disk names. Blocking, in a thread. Raises OSError."""
        return ()

    def outside(self, subject: str) -> Collection[str]:
        """Names of the steps that have to follow outside (a message in the chat, copies on relays).

        Blocking, in a thread. Raises OSError.
        """
        return ()

    def readable(self) -> Iterable[Readable]:
        """The texts of this part on disk in the clear, for an audit. Blocking, in a thread. Raises OSError.

        A person's own history and durable file are theirs, and no part lists them.
        """
        return ()

    def forget(self, erasure: Erasure) -> None:
        """Remove what is in RAM. Runs on the event loop, so it never blocks."""

    def exclusive(self, erasure: Erasure) -> AbstractAsyncContextManager[None]:
        """While this is entered, nothing about the subject is written by this part."""
        return nullcontext()

    def erase(self, erasure: Erasure) -> Removed:
        """Remove what is on disk. Blocking, in a thread; may be called again and then finds nothing."""
        return Removed()

    def let_go(self, withdrawal: Withdrawal) -> Withdrawn:
        """Remove what was taken back from RAM. Runs on the event loop, so it never blocks."""
        return NOTHING_WITHDRAWN

    def withdrawn(self, subject: str) -> None:
        """Everything that a subject took back was removed: what waited for that may be used again."""

    async def withdraw(self, withdrawal: Withdrawal, sessions: Collection[str]) -> Withdrawn:
        """Remove what was taken back from disk; may be called again and then finds nothing.

        `sessions` are the conversations (keys) that have words of the person. Its subject is "" for messages
        of somebody who is not known here. Raises MemoryFault or OSError
        if something is left; it is then called again.
        """
        return NOTHING_WITHDRAWN


class Registry:
    """Every part that stores personal data, in the order in which an erasing visits them."""

    def __init__(self, parts: Iterable[PersonalData] = ()) -> None:
        self._parts = list(parts)

    def add(self, *parts: PersonalData) -> None:
        """Register parts behind those that are there. One that is there already is not visited twice."""
        self._parts += [part for part in parts if part not in self._parts]

    def outside(self, subject: str) -> set[str]:
        """Names of the steps that an erasing of a subject has to take outside. Blocking. Raises OSError."""
        return {step for part in self for step in part.outside(subject)}

    def on_disk(self, subject: str) -> set[str]:
        """The conversations with words of a subject that notes on disk name. Blocking. Raises OSError."""
        return {session for part in self for session in part.sessions_on_disk(subject)}

    def in_ram(self, subject: str) -> set[str]:
        """The conversations of which any part has words of a subject in RAM. Never blocks."""
        return {session for part in self for session in part.sessions_of(subject)}

    @asynccontextmanager
    async def exclusive(self, erasure: Erasure) -> AsyncIterator[None]:
        """While this is entered, nothing about the subject is written by any part."""
        async with AsyncExitStack() as stack:
            for part in self:
                await stack.enter_async_context(part.exclusive(erasure))
            yield

    def __iter__(self) -> Iterator[PersonalData]:
        return iter(tuple(self._parts))

"""Limits what is said to people of the bot's own accord: models may ask each person one question a day, and
one at a time; who is new is told once what is remembered.

Extraction may ask about what it is unsure of, and tidying about memories that seem to contradict each other.
When a person was last asked is in the cursor `asked-<user id>`, when they were welcomed in
`welcomed-<user id>`; erasing the person removes both. What they are asked is in their ledger. Knows nothing
about where questions are shown.
"""

from collections.abc import Mapping
from functools import partial

from discoclaw.core.decay import DAY_MS
from discoclaw.core.ports import Clock
from discoclaw.core.subject import user_subject
from discoclaw.memory.cursors import Cursors
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.subjects.store import AnyMemory


class AskedBack:
    """The limits. Unless it is switched `on`, nobody may be asked."""

    def __init__(
        self, memory: AnyMemory, cursors: Cursors, choices: Choices, *, clock: Clock, on: bool = True
    ) -> None:
        self._memory = memory
        self._cursors = cursors
        self._choices = choices
        self._clock = clock
        self._on = on

    async def may_raise(self, user_id: str) -> bool:
        """Whether extraction may leave a question for a person. Raises MemoryFault.

        People who are asked about everything need no such question.
        """
        if self._choices.asks_first(user_id) or not self.wanted(user_id):
            return False
        return await self.may_ask(user_id) and not await self.open(user_id)

    def wanted(self, user_id: str) -> bool:
        """Whether a person has not chosen to be asked about nothing."""
        return not self._choices.never_asks(user_id)

    async def may_ask(self, user_id: str) -> bool:
        """Whether a person may be asked today."""
        if not self._on:
            return False
        at = (await self._cursors.get(_cursor(user_id))).get("at")
        return not (isinstance(at, int) and 0 <= self._clock() - at < DAY_MS)

    async def open(self, user_id: str) -> set[str]:
        """The events of the questions that a person has not answered, in any persona. Raises MemoryFault."""
        subject = user_subject(user_id)
        found = set[str]()
        for name in (await self._memory.branches(subject)).all:
            view = await self._memory.view(subject, name)
            found |= {one.event_id for one in view.pending} | {one.event_id for one in view.conflicts}
        return found

    async def was_shown(self, user_id: str, event_id: str) -> bool:
        """Whether the question of this event was the last one that a person was asked."""
        return (await self._cursors.get(_cursor(user_id))).get("event") == event_id

    async def note(self, user_id: str, event_id: str) -> bool:
        """Record that a person is asked now. Returns False if that failed, or they were erased meanwhile."""
        return await self._note(_cursor(user_id), user_id, {"at": self._clock(), "event": event_id})

    def may_be_new(self, user_id: str) -> bool:
        """Whether a person may not have been welcomed yet, as far as is known without the disk."""
        return not self._cursors.in_ram(f"welcomed-{user_id}")

    async def welcome(self, user_id: str, message_id: str) -> bool:
        """Record that a person is welcomed now. Returns False if they were before, or as `note` does."""
        # Of two processes that write the same text, each would take it for its own.
        value: dict[str, object] = {"at": self._clock(), "message": message_id}
        return await self._note(f"welcomed-{user_id}", user_id, value, once=True)

    async def _note(self, cursor: str, user_id: str, value: dict[str, object], *, once: bool = False) -> bool:
        erased_at = partial(self._memory.erased_at, user_subject(user_id))
        before, erasings = erased_at(), self._cursors.erasings

        def change(known: Mapping[str, object]) -> Mapping[str, object] | None:
            # An erasing under way may have its tombstone already; then only its end shows that it happened.
            waited = self._cursors.erasings != erasings and erased_at() >= 0
            return None if waited or erased_at() != before or (once and known) else value

        return await self._cursors.update(cursor, change)


def _cursor(user_id: str) -> str:
    return f"asked-{user_id}"

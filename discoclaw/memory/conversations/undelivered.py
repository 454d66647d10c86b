"""Answers that are finished and that the chat has not taken yet: in RAM, and on disk as a cursor for each.

The cursor `undelivered-<question>-<user id>` is there until the answer was delivered or given up. None is
written of people who want no memory. What its person takes back is replaced by a sentence that says so.
Knows nothing about how an answer is sent.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from discoclaw.core.consent import Consent
from discoclaw.core.message import Said
from discoclaw.core.ports import Ending, Held
from discoclaw.core.purge import Derived, Outcome, Phase, Purge, Purged, Readable
from discoclaw.core.redact import PLAIN, Redactor
from discoclaw.memory.cursors import Cursors, read_surely
from discoclaw.memory.kept import JSON, json_names
from discoclaw.memory.purge import Purger
from discoclaw.store.files import in_thread
from discoclaw.work import Worker, Working

TAKEN_BACK: Final = (
    "You took back something before I could send you my answer to this, so I dropped the answer. "
    "Please ask me again."
)
_PREFIX: Final = "undelivered-"


@dataclass(frozen=True, slots=True)
class Unsent:
    """An answer that is to be delivered.

    `ids` are the messages that it answers, oldest first; they are open in the conversation `inbox` (a session
    key), "" if the chat doesn't have them. `said_at` (ms) is when the newest was said. The first `talk`
    characters are what the bot said, the rest is small print. `then` is called with the id of the delivered
    answer, unless there was a restart.
    """

    held: Held
    ids: tuple[str, ...]
    inbox: str
    user_id: str
    guild_id: str | None
    private: bool
    said_at: int
    ending: Ending
    talk: int
    then: Callable[[str], None] | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The name of its cursor."""
        return f"{_PREFIX}{self.ids[-1]}-{self.user_id}"

    @property
    def said(self) -> Said:
        """The answer as a line of the talk, in the place of its question."""
        return Said(self.ids[-1], "", "", self.held.text, self.said_at, by_us=True, to_id=self.user_id)

    def covered_by(self, purge: Purge) -> bool:
        """Whether something was taken back that it says or that it answers."""
        return purge.covers(self.said, in_private=self.private)

    def as_json(self) -> dict[str, Any]:
        """The answer as it is stored."""
        return asdict(replace(self, then=None))

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Self | None:
        """The answer that was stored; None if it is damaged, and then its question is answered again."""
        try:
            held = Held(**{**value["held"], "shown": tuple(value["held"]["shown"])})
            return cls(**{**value, "held": held, "ids": tuple(value["ids"])})
        except (KeyError, TypeError):
            return None


class Undelivered(Working, Derived):
    """The answers that wait. `keeps`: they may be on disk at all."""

    name = "undelivered answers"

    def __init__(
        self,
        cursors: Cursors,
        consent: Consent,
        purger: Purger,
        *,
        keeps: bool = True,
        redactor: Redactor = PLAIN,
    ) -> None:
        self._cursors = cursors
        self._consent = consent
        self._purger = purger
        self._keeps = keeps
        self._redactor = redactor
        self._kept: dict[str, Unsent] = {}
        self.sending: dict[str, asyncio.Future[Any]] = {}
        """The sending of each answer, by its name. It ends if the answer may no longer be sent as it is."""
        self._worker = Worker("undelivered answers on disk", self._save)

    async def start(self) -> None:
        """Does nothing: what is written belongs to the answer."""

    def put(self, kept: Unsent) -> None:
        """Keep an answer, without its secrets. Never blocks."""
        if kept.said_at <= self._consent.erased_at(kept.user_id):
            return
        held, clean, talk, then = kept.held, self._redactor.clean, kept.talk, kept.then
        text, talk = clean(held.text), len(clean(held.text[:talk]))
        if self._purger.has(kept.said, kept.said_at, private=kept.private):
            text, talk, then = TAKEN_BACK, 0, None
        self._kept[kept.name] = replace(kept, held=replace(held, text=text), talk=talk, then=then)
        self._worker.note(kept.name, first=True)

    def has(self, kept: Unsent) -> bool:
        """Whether an answer still waits as it was."""
        return self._kept.get(kept.name) is kept

    def remove(self, name: str) -> None:
        """An answer was delivered, or given up. Never blocks."""
        if self._kept.pop(name, None) is not None:
            self._worker.note(name, first=True)

    def __iter__(self) -> Iterator[Unsent]:
        """All that wait, by the age of their questions."""
        return iter(sorted(self._kept.values(), key=lambda one: int(one.ids[-1])))

    async def load(self, ours: Callable[[str | None], bool]) -> list[Unsent]:
        """Take over what was left for the servers (ids) that are `ours`, and return it. Raises OSError."""
        found = [one for name, one in (await in_thread(self._on_disk)).items() if name not in self._kept]
        found = [one for one in found if ours(one.guild_id)]
        self._kept |= {one.name: one for one in found}
        return found

    # ------------------------------------------------------------------ personal data and the disk

    def audit(self) -> Iterator[Readable]:
        for name, one in self._on_disk().items():
            path, asked = self._cursors.documents.folder / f"{name}{JSON}", one.ids[-1]
            yield Readable(str(path), one.held.text, one.inbox, to=one.user_id, message=asked, at=one.said_at)

    def purge(self, purge: Purge, phase: Phase) -> Outcome:
        if phase == "ram":
            return self._purge_waiting(purge)
        # An erasing removes all cursors of the person.
        return self._purge_disk(purge) if phase == "disk" and not purge.erases else None

    def _purge_waiting(self, purge: Purge) -> Purged:
        for one in [one for one in self if purge.erases and one.user_id == purge.user_id != ""]:
            del self._kept[one.name]
            self._stop(one.name)
        gone = [one for one in self if one.covered_by(purge) and not purge.everything]
        for one in gone:
            self.put(replace(one, held=replace(one.held, text=TAKEN_BACK), talk=0, then=None))
            self._stop(one.name)
        return Purged(answers=len(gone))

    def _stop(self, name: str) -> None:
        if (sending := self.sending.get(name)) is not None:
            sending.cancel()

    async def _purge_disk(self, purge: Purge) -> Purged:
        gone = [one for one in (await in_thread(self._on_disk)).values() if one.covered_by(purge)]
        for one in gone:
            await self._save(one.name)
        return Purged(answers=len(gone))

    def _on_disk(self) -> dict[str, Unsent]:
        """The answers on disk, by the names of the cursors. Blocking. Raises OSError."""
        folder = self._cursors.documents
        files = [file for file in json_names(folder) if file.startswith(_PREFIX)]
        found = [Unsent.of_json(read_surely(folder, file)) for file in files]
        return {one.name: one for one in found if one is not None}

    async def _save(self, name: str) -> None:
        """Make the disk have an answer as it is in RAM, or no longer have it. Raises OSError."""

        def now(_: Mapping[str, object]) -> Mapping[str, object] | None:
            one = self._kept.get(name)
            may = one is not None and self._keeps and self._consent.may_keep(one.user_id, one.said_at)
            return one.as_json() if one is not None and may else None

        if not await self._cursors.update(name, now):
            if now({}) is not None:
                raise OSError("an answer that could not be delivered is not on disk")
            await self._cursors.remove([name])

"""A model that tidies by script, over a real memory."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.event import Commit
from discoclaw.core.item import Item, Source
from discoclaw.core.model import Purpose
from discoclaw.core.patch import Consolidation, Contradiction, Duplicate, Outdated
from discoclaw.core.view import View
from discoclaw.loops.consolidate import Consolidator
from discoclaw.loops.heartbeat import Heartbeat
from discoclaw.loops.nearest import Nearest
from discoclaw.memory.disk.cursors import Cursors
from discoclaw.memory.subjects.ledger import read
from discoclaw.memory.subjects.store import Memory
from tests.memory.kit import refusing
from tests.session.scene import Clock

ANN, BOB, CAT = "user-1", "user-2", "user-3"


class Tidier:
    """The port `Model`, as far as tidying asks it. Answers come from a queue; an empty one finds nothing.

    An answer is a value of the shape, an exception to raise, or a function from the prompt to one of these.
    With `gate` set, every call waits until somebody opens it.
    """

    def __init__(self, answers: Iterable[Any] = ()) -> None:
        self.answers = list(answers)
        self.always: Any = None
        self.gate: asyncio.Event | None = None
        self.prompts: list[str] = []
        self.systems: list[str] = []
        self.at_once = 0
        self.most_at_once = 0

    async def stream(self, request: Any) -> Any:
        raise AssertionError("tidying does not talk")
        yield

    async def structured(
        self, *, purpose: Purpose, system: str, prompt: str, shape: Any, max_tokens: int = 2048
    ) -> Any:
        self.prompts.append(prompt)
        self.systems.append(system)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self.at_once -= 1
        answer = self.always or (self.answers.pop(0) if self.answers else Consolidation())
        if callable(answer):
            answer = answer(prompt)
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, shape)
        return answer

    async def close(self) -> None:
        pass


@dataclass
class Home:
    """One running program over the files in `folder`; a second one over the same folder is a restart."""

    folder: Path
    model: Tidier = field(default_factory=Tidier)
    clock: Clock = field(default_factory=Clock)
    every_minutes: float = 30
    skip: Callable[[str], bool] = lambda user_id: False
    nearest: Nearest | None = None
    max_items: int = 200

    def __post_init__(self) -> None:
        self.cursors = Cursors(self.folder / "memory" / "cursors")
        self.memory = Memory(
            self.folder / "memory", clock=self.clock, cursors=self.cursors, max_items=self.max_items
        )
        self.consolidator = Consolidator(self.model, self.memory, clock=self.clock, nearest=self.nearest)
        self.heartbeat = Heartbeat(
            self.consolidator,
            self.memory,
            self.cursors,
            clock=self.clock,
            every_minutes=self.every_minutes,
            consent=refusing(self.skip),
        )

    def restarted(self) -> "Home":
        return replace(self)

    async def remember(
        self, text: str, *, subject: str = ANN, branch: str | None = None, by: str = "inferred", **given: Any
    ) -> Item:
        """Put an item into a memory; "inferred" unless said otherwise."""
        source = Source("discord", "7", "70") if by == "inferred" else Source()
        origin = Origin("stated" if by == "stated" else "inferred", source, said_at=self.clock())

        def wish(draft: Draft) -> Item:
            return draft.upsert(given.pop("kind", "preference"), text, origin, **given)[0]

        return await self.memory.change(subject, "a test", wish, branch=branch)

    async def fill(self, subject: str = ANN, branch: str | None = None) -> tuple[Item, Item]:
        """Two items that say the same."""
        named = f"{subject} {branch}" if branch else subject
        return (
            await self.remember(f"{named} likes tea.", subject=subject, branch=branch),
            await self.remember(f"{named} likes teas.", subject=subject, branch=branch),
        )

    async def view(self, subject: str = ANN, branch: str | None = None) -> View:
        return await self.memory.view(subject, branch)

    async def texts(self, subject: str = ANN, branch: str | None = None) -> list[str]:
        return [item.text for item in (await self.view(subject, branch)).active()]

    def commits(self, subject: str = ANN) -> tuple[Commit, ...]:
        """The commits on disk, all of them sound."""
        loaded = read(self.memory.ledger_folder / f"{subject}.jsonl")
        assert not loaded.damage and not loaded.torn
        return loaded.commits


def same(keep: Item, *drop: Item, text: str | None = None) -> Consolidation:
    entry = Duplicate(keep=keep.id, drop=[item.id for item in drop], text=text)
    return Consolidation(duplicates=[entry])


def against(older: Item, newer: Item) -> Consolidation:
    return Consolidation(contradictions=[Contradiction(older=older.id, newer=newer.id, reason="not both")])


def over(*items: Item) -> Consolidation:
    return Consolidation(outdated=[Outdated(id=item.id, reason="it is over") for item in items])

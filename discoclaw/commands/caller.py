"""Who gives a command: whose memory it is about, what they may see, and how they name what they mean.

A command that both Discord and the terminal have is written once, against this. In Discord a person asks
about their own memory, in people's words, and is asked back with buttons (`bot/commands/call`). In a terminal
an admin asks about anybody's, in git's words, and types again (`cli/caller`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, ClassVar

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.history import Branches, History
from discoclaw.core.item import Item, Sensitivity, Source
from discoclaw.core.privacy import may_show
from discoclaw.core.view import View
from discoclaw.memory.off import AnyMemory
from discoclaw.show.words import UTC_TIMES, Times


class Caller(ABC):
    """Somebody who gives a command, and where they do. `page` is that of the card they turn to."""

    terminal: ClassVar[bool] = False
    """Whether they read it in a terminal: in git's words, with everything that is private."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """Whose memory it is about."""

    @property
    @abstractmethod
    def user_id(self) -> str:
        """The Discord id of the one who gives it; "" for an admin."""

    @property
    @abstractmethod
    def in_private(self) -> bool:
        """Whether nobody else reads the answer."""

    @property
    @abstractmethod
    def persona_here(self) -> str | None:
        """The persona that it is about, if that is decided already; else the person's current one counts."""

    @property
    @abstractmethod
    def memory(self) -> AnyMemory:
        """The memory, for a command that needs it."""

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """The metadata of a change: how it came about."""

    @property
    def asked_at(self) -> int:
        """When (ms) it was given, if that is recorded; else 0."""
        return 0

    @property
    def on_card(self) -> bool:
        """Whether a press on a card gave it: there a memory needs no id, since it has buttons."""
        return False

    page: int = 1
    times: Times = UTC_TIMES
    to_utc: Callable[[int], int] | None = None
    """What makes ms since 1970 of a time that is typed without a zone; None where that is in UTC."""

    @abstractmethod
    def origin(self) -> Origin:
        """A command is a statement."""

    @abstractmethod
    def clean(self, text: str) -> tuple[str, str]:
        """A text without what looks like a secret key, and what to say about that; mostly ""."""

    def marked(self, text: str) -> Sensitivity:
        """How private a text is because of how it was given."""
        return "normal"

    def hides(self, about: str) -> bool:
        """Whether what a persona is about is shown in direct messages only, because of how it was said."""
        return False

    def where(self, source: Source) -> str:
        """Where something was said, as markup."""
        return ""

    @abstractmethod
    def called(self, item: Item) -> str:
        """How an answer names a memory."""

    @abstractmethod
    async def the_one(
        self, items: Collection[Item], wanted: str, verb: str, *, gone: bool = False, new: str = ""
    ) -> Item:
        """The memory that they mean. Raises Refused, perhaps with a question, if that is not certain.

        `gone`: one that was forgotten counts too. `new` is what the memory shall say then.
        """

    @abstractmethod
    async def those(self, items: Collection[Item], wanted: str, verb: str) -> list[Item]:
        """The memories that they mean, as `the_one`."""

    def troubles(self) -> list[str]:
        """Sentences about memory that doesn't work as it should."""
        return []

    # ------------------------------------------------------------------ the memory it is about

    async def history(self) -> History:
        """The whole history."""
        return await self.memory.history(self.subject)

    async def branches(self) -> Branches:
        """The personas."""
        return await self.memory.branches(self.subject)

    async def view(self, branch: str | None = None) -> View:
        """The memories of a persona; by default of the current one."""
        return await self.memory.view(self.subject, branch)

    async def items(self) -> Collection[Item]:
        """The memories of the persona that it is about, the forgotten ones too."""
        return (await self.view(self.persona_here)).items.values()

    def persona(self, branches: Branches, wanted: str | None = None) -> str:
        """The persona a command is about: the named one, the place's, or the current. Raises Refused."""
        if wanted:
            return branches.named(wanted).name
        here = self.persona_here
        if here is not None and here not in branches.all:
            raise Refused(f"the persona {here!r} of this channel has no history yet; it begins with a change")
        return here or branches.current

    def looks_at(self, history: History, wanted: str | None) -> str | None:
        """The persona whose changes are shown; None for those of all. Raises Refused."""
        return self.persona(history.branches, wanted) if history.records else None

    async def change(self, why: str, make: Callable[[Draft], str], **metadata: Any) -> str:
        """Change what is remembered, as one change that says why."""
        metadata = {**self.metadata, **metadata}
        return await self.memory.change(self.subject, why, make, branch=self.persona_here, **metadata)

    def may_show(self, item: Item) -> bool:
        """Whether an item may be named in the answer."""
        return self.in_private or may_show(item, in_dm=False)

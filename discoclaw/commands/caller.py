"""Who gives a command: whose memory it is about, what they may see, and how they name what they mean.

A command that both Discord and the terminal have is written once, against this. In Discord a person asks
about their own memory, in people's words, and is asked back with buttons (`bot/commands/call`). In a terminal
an admin asks about anybody's, in git's words, and types again (`cli/caller`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, ClassVar

from discoclaw.core.budgets import Spent
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.history import Branches, History
from discoclaw.core.item import Item, Sensitivity, Source
from discoclaw.core.privacy import may_show
from discoclaw.core.usage import By, Call, Lately
from discoclaw.core.view import View
from discoclaw.memory.subjects.inspect import Inspection
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.show.answer import Answer, File, Reply, Row, message
from discoclaw.show.words import UTC_TIMES, Times

DONE_ALREADY = "that is done already"
GONE = "I can't find that any more: the memory or its persona was deleted since"
OPTED_OUT = "you have opted out of memory, so I add nothing to it; `!memory optin` turns it on again"


@dataclass(frozen=True, slots=True)
class Used:
    """What was used, and what is left of `budgets`. `names` finds what an id is called, "" if unknown.

    Days are those of the `zone`. `notes` are sentences about what isn't written down; `damaged` lines of the
    log could not be read.
    """

    lately: Lately
    zone: tzinfo
    names: Mapping[By, Callable[[str], str]]
    budgets: Sequence[Spent] = ()
    notes: Sequence[str] = ()
    damaged: int = 0


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
    def typed(self) -> bool:
        """Whether it was given as a text, in a message."""
        return False

    @property
    def confirmed(self) -> bool:
        """Whether they were asked whether they mean it, and said yes."""
        return False

    @property
    def on_card(self) -> bool:
        """Whether a press on a card gave it: there a memory needs no id, since it has buttons."""
        return False

    @property
    @abstractmethod
    def now_ms(self) -> int:
        """The time (ms since 1970)."""

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

    def where(self, source: Source, words: str = "where you said it") -> str:
        """Where something was said, as markup; a link says `words`."""
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

    @property
    def standstill(self) -> list[str]:
        """Sentences about memory that gets nothing new."""
        return []

    def troubles(self) -> list[str]:
        """Sentences about all that doesn't work as it should."""
        return []

    # ------------------------------------------------------------------ what only Discord knows

    @property
    def name(self) -> str:
        """What they are called."""
        return self.subject

    @property
    def opted_out(self) -> bool:
        """Whether they want nothing remembered about them."""
        return False

    @property
    def owner(self) -> bool:
        """Whether the bot is theirs, so that they may see everybody's usage."""
        return True

    async def answered_apart(self, answer: Answer) -> Reply:
        """Give them an answer where others don't read it. Raises Refused."""
        return answer

    @property
    def memory_off(self) -> str:
        """Why nothing is remembered here at all, and the way out; "" if something is."""
        return ""

    def erasable(self, user: str | None) -> str:
        """The subject they may erase: their own, or the one of the user they name. Raises Refused."""
        return self.subject

    async def sent(self, text: str, file: File, held: str) -> Reply:
        """Give them a file that nobody else may have, with a text; `held` is what is in it."""
        return message(text, files=[file])

    async def summary(self) -> Sequence[Row]:
        """The summary of the conversation in which it was given."""
        return ()

    async def answer_explained(self) -> Reply:
        """What the last answer to them was based on."""
        return ""

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

    @abstractmethod
    async def checked(self) -> Sequence[tuple[Inspection, Sequence[str]]]:
        """The histories it is about, read from the disk anew, each with what has just been repaired in it."""

    @abstractmethod
    async def last_uses(self) -> Mapping[str, int]:
        """When (ms) memories were last used, by their ids."""

    @abstractmethod
    async def calls(self) -> Sequence[Call]:
        """The calls of models that were for the person. Raises MemoryFault."""

    @abstractmethod
    async def used(self, everybody: bool) -> Used:
        """What models were used for, for them or for all. Raises Refused if that is not theirs to know."""

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

    async def change(
        self, why: str, make: Callable[[Draft], str], *, aside: bool = False, **metadata: Any
    ) -> str:
        """Change what is remembered, as one change that says why. See `Memory.change`."""
        metadata = {**self.metadata, **metadata}
        here = self.persona_here
        return await self.memory.change(self.subject, why, make, branch=here, aside=aside, **metadata)

    def may_show(self, item: Item) -> bool:
        """Whether an item may be named in the answer."""
        return self.in_private or may_show(item, in_dm=False)

"""What commands and buttons work with, and the one place that knows which parts are switched off.

A command says what it needs (`spec.Command.needs`); that is checked once, when it is dispatched. So nothing
else in this package asks whether a part exists. Decides nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from discoclaw.bot.commands.spec import Need
from discoclaw.core.errors import Refused
from discoclaw.core.ports import Mirrored
from discoclaw.core.privacy import DmPrivacy
from discoclaw.memory.conversations.rolling import NOTHING, Rolling, RollingMemory
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects.store import Memory
from discoclaw.session.archiving import Archiving
from discoclaw.session.hatch import Hatchery
from discoclaw.session.tools import Tidy

OFF: Mapping[Need, str] = {
    "memory": "my memory is switched off here; whoever runs me can switch it on with "
    "DISCOCLAW_DURABLE_MEMORY_ENABLED and DISCOCLAW_STORE",
    "summaries": "summaries are switched off here; whoever runs me can switch them on with "
    "DISCOCLAW_SUMMARY_ENABLED",
    "tidying": "tidying is switched off here",
    "mirror": "nothing is backed up: no relays are set; whoever runs me can name some with NOSTR_RELAYS",
}
"""What somebody is told who asks for a part that is switched off."""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The parts. `memory`, `rolling`, `tidy`, `mirrored` and `last_used` are None when switched off.

    `cleared(session key, message id)` is called after a summary was reset. `tidy` consolidates a memory.
    """

    memory: Memory | None
    rolling: RollingMemory | None
    choices: Choices
    dm_privacy: DmPrivacy
    cleared: Callable[[str, int], None]
    hatchery: Hatchery
    archiving: Archiving
    tidy: Tidy | None = None
    mirrored: Mirrored | None = None
    last_used: LastUsed | None = None

    def require(self, *needs: Need) -> None:
        """Raise Refused, with the way out, unless every part that is needed is switched on."""
        parts = {
            "memory": self.memory,
            "summaries": self.rolling,
            "tidying": self.tidy,
            "mirror": self.mirrored,
        }
        for need in needs:
            if parts[need] is None:
                raise Refused(OFF[need])

    # What `require` has been asked for is there, so these are for code behind it.

    @property
    def store(self) -> Memory:
        """The memory; behind `require("memory")`."""
        return cast("Memory", self.memory)

    @property
    def summaries(self) -> RollingMemory:
        """The summaries of conversations; behind `require("summaries")`."""
        return cast("RollingMemory", self.rolling)

    @property
    def consolidate(self) -> Tidy:
        """Tidies a memory; behind `require("tidying")`."""
        return cast("Tidy", self.tidy)

    @property
    def mirror(self) -> Mirrored:
        """The encrypted mirror; behind `require("mirror")`."""
        return cast("Mirrored", self.mirrored)

    # What may be switched off without anybody being told.

    async def summary(self, session_key: str) -> Rolling:
        """The summary of a conversation; an empty one where summaries are switched off."""
        return await summary_of(self.rolling, session_key)

    async def accessed(self, subject: str) -> Mapping[str, int]:
        """When (ms) a subject's items were last used, as far as that is known."""
        return await self.last_used.load(subject) if self.last_used is not None else {}


async def summary_of(rolling: RollingMemory | None, session_key: str) -> Rolling:
    """The summary of a conversation; an empty one without summaries, or without a conversation."""
    return await rolling.get(session_key) if rolling is not None and session_key else NOTHING

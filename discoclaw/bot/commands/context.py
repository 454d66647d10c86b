"""What commands and buttons work with, and the one place that knows which parts are switched off.

A command says what it needs (`spec.Command.needs`); that is checked once, when it is dispatched. A part that
is switched off is there all the same and does nothing, so nothing else in this package asks. The lists of
memories that people were shown are here too, in RAM, so that "1 3" can name two of them.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from discoclaw.commands.spec import Need
from discoclaw.core.errors import Refused
from discoclaw.core.health import Seen
from discoclaw.core.ports import MirrorControl
from discoclaw.core.privacy import DmPrivacy
from discoclaw.loops.schedule import Loops
from discoclaw.memory.conversations.rolling import NoSummaries, RollingMemory
from discoclaw.memory.live import PlaceRules
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects.store import AnyMemory
from discoclaw.session.agent import Explained
from discoclaw.session.archiving import Archiving
from discoclaw.session.hatch import Hatchery
from discoclaw.session.live_settings import LiveSettings
from discoclaw.session.toolbox import Tidy
from discoclaw.usage.accounts import Accounts

OFF: Mapping[Need, str] = {
    "memory": "my memory is switched off here; whoever runs me can switch it on with "
    "DISCOCLAW_DURABLE_MEMORY_ENABLED and DISCOCLAW_STORE",
    "summaries": "summaries are switched off here; whoever runs me can switch them on with "
    "DISCOCLAW_SUMMARY_ENABLED",
    "tidying": "tidying is switched off here",
    "mirror": "nothing is backed up: no relays are set; whoever runs me can name some with NOSTR_RELAYS",
}
"""The answer to somebody who asks for a part that is switched off."""


MOST: Final = 1_000
"""The most lists that are kept."""
_NUMBERS = re.compile(r"\d{1,3}(?:(?:\s*,\s*|\s+)(?:and\s+)?\d{1,3})*")

Where = tuple[str, str]
"""A person and a conversation."""


class Listed:
    """The list that each person was shown last in each conversation; of very many the oldest are dropped."""

    def __init__(self) -> None:
        self._lists: OrderedDict[Where, list[str]] = OrderedDict()

    def keep(self, where: Where, stamps: Iterable[str]) -> None:
        """Note what a person is shown now, in its order."""
        self._lists.pop(where, None)
        self._lists[where] = list(stamps)
        if len(self._lists) > MOST:
            self._lists.popitem(last=False)

    def numbered(self, where: Where, typed: str) -> list[str] | None:
        """The stamps that the numbers in a text name; None unless they are of the list shown last."""
        stamps = self._lists.get(where, [])
        if not _NUMBERS.fullmatch(typed.strip()):
            return None
        numbers = dict.fromkeys(map(int, re.findall(r"\d+", typed)))
        return (
            [stamps[one - 1] for one in numbers] if all(0 < one <= len(stamps) for one in numbers) else None
        )


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The parts. `off` names those that are switched off.

    `loops` make the summaries. `consolidate` tidies a memory. `settings` are the ones that admins change.
    `accounts` say what models were used for, `models_seen` how their calls end.
    `listed` are the lists of memories that people were shown.
    """

    store: AnyMemory
    summaries: RollingMemory | NoSummaries
    choices: Choices
    last_used: LastUsed
    settings: LiveSettings
    loops: Loops
    hatchery: Hatchery
    archiving: Archiving
    explained: Explained
    consolidate: Tidy
    mirror: MirrorControl
    accounts: Accounts
    models_seen: Seen
    off: frozenset[Need] = frozenset()
    listed: Listed = field(default_factory=Listed)

    @property
    def dm_privacy(self) -> DmPrivacy:
        """The rule for what of a DM may be used elsewhere."""
        return self.places.dm_privacy()

    @property
    def places(self) -> PlaceRules:
        """The rules of each place."""
        return self.settings.places

    def require(self, *needs: Need) -> None:
        """Raise Refused, with the way out, unless every part that is needed is switched on."""
        for need in needs:
            if need in self.off:
                raise Refused(OFF[need])

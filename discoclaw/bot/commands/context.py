"""What commands and buttons work with, and the one place that knows which parts are switched off.

A command says what it needs (`spec.Command.needs`); that is checked once, when it is dispatched. A part that
is switched off is there all the same and does nothing, so nothing else in this package asks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from discoclaw.bot.commands.listed import Listed
from discoclaw.bot.commands.spec import Need
from discoclaw.core.errors import Refused
from discoclaw.core.ports import MirrorControl
from discoclaw.core.privacy import DmPrivacy
from discoclaw.core.seen import Seen
from discoclaw.loops.schedule import Loops
from discoclaw.memory.conversations.rolling import RollingMemory
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.place_rules import PlaceRules
from discoclaw.memory.subjects.store import Memory
from discoclaw.session.archiving import Archiving
from discoclaw.session.explained import Explained
from discoclaw.session.hatch import Hatchery
from discoclaw.session.live_settings import LiveSettings
from discoclaw.session.tools.consolidation import Tidy
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


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The parts. `off` names those that are switched off.

    `loops` make the summaries. `consolidate` tidies a memory. `settings` are the ones that admins change.
    `accounts` say what models were used for, `models_seen` how their calls end.
    `listed` are the lists of memories that people were shown.
    """

    store: Memory
    summaries: RollingMemory
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
        """What of a DM may be used elsewhere."""
        return self.places.dm_privacy()

    @property
    def places(self) -> PlaceRules:
        """What applies in each place."""
        return self.settings.places

    def require(self, *needs: Need) -> None:
        """Raise Refused, with the way out, unless every part that is needed is switched on."""
        for need in needs:
            if need in self.off:
                raise Refused(OFF[need])

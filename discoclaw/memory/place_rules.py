"""The rules of each place: live configuration, and where it says nothing, the settings' lists of places.

Each part gets only the question it needs to ask, and a change applies from the next message on.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from discoclaw.core.autosave import AutoSave
from discoclaw.core.message import Place
from discoclaw.core.policy import Personas
from discoclaw.core.privacy import DmPrivacy
from discoclaw.memory.live import LiveConfig


@dataclass(frozen=True, slots=True)
class PlaceRules:
    """The rules of places. `fixed` are the personas, `auto_save` the archived places in the settings."""

    live: LiveConfig
    fixed: Personas = field(default_factory=Personas)
    auto_save: AutoSave = field(default_factory=AutoSave)

    def of(self, place: Place) -> str | None:
        """The persona that everybody has in a place, or None."""
        return self.live.policy(place).persona or self.fixed.of(place)

    @property
    def names(self) -> Collection[str]:
        """All personas that some place prescribes."""
        set_live = {str(one.overrides.get("persona", "")) for one in self.live.overrides()}
        return {*self.fixed.names, *filter(None, set_live)}

    def covers(self, place: Place) -> bool:
        """Whether messages from a place are archived."""
        archive = self.live.policy(place).archive
        return self.auto_save.covers(place) if archive is None else archive

    def receipts(self, place: Place, user_id: str) -> bool:
        """Whether a person is shown in a place what was learned there."""
        return self.live.policy(place, user_id).receipts

    def asks_first(self, user_id: str, place: Place | None = None) -> bool:
        """Whether somebody who chose nothing is asked before anything inferred is remembered."""
        return self.live.policy(place, user_id).approve

    def dm_privacy(self) -> DmPrivacy:
        """How much of a DM may be used elsewhere."""
        return self.live.policy().dm_privacy

"""Who may change which settings: the bot's owners all of them, a server's admins those of its channels.

Discord hides the commands from others, but who sees them is a choice of the server. So it is checked here,
again at each press: somebody may have lost a right since the card was shown.
"""

from dataclasses import dataclass
from typing import Any

import discord

from discoclaw.bot import wire
from discoclaw.core.errors import Refused
from discoclaw.core.live import GLOBAL, Scope
from discoclaw.core.message import Place
from discoclaw.session.live_settings import By, LiveSettings

ONLY_OWNERS = "only my owners can change what applies everywhere; use `/settings` in a channel of your server"
NEEDS = "only my owners and people who can manage this server can change its settings"
UNKNOWN = "I can't find that channel any more"
ELSEWHERE = "you can only change channels of this server that you can see"


@dataclass(frozen=True, slots=True)
class Admin:
    """Somebody who looks at settings, or changes them, by a command or a press."""

    source: discord.Interaction[Any]
    settings: LiveSettings
    owners: frozenset[str]
    """User ids."""

    @property
    def user_id(self) -> str:
        return str(self.source.user.id)

    @property
    def by(self) -> By:
        return By(self.user_id, self.source.user.display_name)

    @property
    def owner(self) -> bool:
        """Whether this is one of the bot's owners."""
        return self.user_id in self.owners

    def check(self, scope: Scope) -> None:
        """Raise Refused unless they may see and change the settings of a scope."""
        if scope == GLOBAL:
            if not self.owner:
                raise Refused(ONLY_OWNERS)
            return
        channel = self._channel(scope)
        if self.owner:
            return
        member, may = self.source.user, self.source.permissions
        if not (may.manage_guild or may.administrator):
            raise Refused(NEEDS)
        here = isinstance(member, discord.Member) and channel.guild.id == self.source.guild_id
        if not here or not channel.permissions_for(member).view_channel:  # type: ignore[arg-type]
            raise Refused(ELSEWHERE)

    def place(self, scope: Scope) -> Place:
        """The channel of a scope. Raises Refused if it is gone."""
        return wire.place_of(self._channel(scope))  # type: ignore[arg-type]

    def _channel(self, scope: Scope) -> discord.abc.GuildChannel:
        found = self.source.client.get_channel(int(scope.id))
        if not isinstance(found, discord.abc.GuildChannel):
            raise Refused(UNKNOWN)
        return found


def scope_of(place: Place) -> Scope:
    """The scope of a place: a channel with its threads, or everywhere for a DM."""
    return GLOBAL if place.group_id is None else Scope("group", place.group_id)

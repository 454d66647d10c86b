"""The answer to a question that somebody asked with a command: only they see it."""

import logging
from collections.abc import Callable
from typing import Any, Self

import discord

from discoclaw.bot.deliver import DiscordReply, in_dm
from discoclaw.bot.refused import ANSWER, REST
from discoclaw.bot.sending import Followups
from discoclaw.core.errors import ChatError
from discoclaw.core.ports import Ending, Held

log = logging.getLogger(__name__)

IN_DM = "Discord no longer took {what} where you asked, so here it is:"


class AsideAnswer(DiscordReply):
    """A reply over an interaction. What Discord no longer takes there, its person gets in a DM.

    Discord takes it for 15 minutes. Nothing is answered again after a restart, so whatever the reason is, the
    DM is the only other way.
    """

    def __init__(
        self, interaction: discord.Interaction[Any], edit_every_s: float, shown: Callable[[str, str], None]
    ) -> None:
        super().__init__(Followups(interaction), None, edit_every_s=edit_every_s, shown=shown)
        self._person = interaction.user

    def started(self) -> Self:
        """The same reply. Discord shows that we are thinking since the command was acknowledged."""
        return self

    async def finish(self, ending: Ending = "other") -> str | None:
        """As `DiscordReply.finish`. What had to be sent in a DM counts as said."""
        try:
            return await super().finish(ending)
        except ChatError as error:
            log.info("an answer to a command goes on in a DM: %s", error)
            what = ANSWER if self._sender.first is None else REST
            there = await in_dm(self._person, f"{IN_DM.format(what=what)}\n\n{self.unsaid}")
            return str(self._sender.first.id) if self._sender.first is not None else there

    @property
    def held(self) -> Held:
        """What is missing, which its person is to get in a DM."""
        return Held(self.unsaid, f"dm-{self._person.id}", "")

    async def _notice(self, text: str, ending: Ending = "other") -> None:
        try:
            await super()._notice(text, ending)
        except ChatError as error:
            log.info("a person is told in a DM why a command has no answer: %s", error)
            await in_dm(self._person, text)

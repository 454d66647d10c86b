"""The answer to one message of a person, who is told when Discord refuses it."""

import logging
from collections.abc import Callable, Sequence
from typing import Self

import discord

from discoclaw.bot.deliver import DiscordReply
from discoclaw.bot.errors import discord_errors
from discoclaw.core.errors import ChatError, ChatForbidden

log = logging.getLogger(__name__)

AGAIN = "\n\n-# I was restarted in the middle of this answer, so I wrote it again."
NO_RIGHT = "I have an answer for you, but I'm not allowed to write in {place}. An admin can change that."


class Answer(DiscordReply):
    """A reply that, when we may not write where we were asked, says so in a DM: nobody is ignored.

    `half`: the messages of an answer that was interrupted. The first one becomes this answer.
    """

    def __init__(
        self,
        message: discord.Message,
        edit_every_s: float,
        shown: Callable[[str], None],
        half: Sequence[str] = (),
    ) -> None:
        onto = discord.PartialMessage(channel=message.channel, id=int(half[0])) if half else None
        super().__init__(message.channel, message, edit_every_s=edit_every_s, shown=shown, onto=onto)
        self._asked = message
        self._told = self._said = False
        self._again = AGAIN if half else ""

    def started(self) -> Self:
        """The same reply, with the typing indicator on."""
        self.start()
        return self

    async def push(self, text: str) -> None:
        await super().push(text)
        self._said = self._said or bool(text.strip())

    async def finish(self) -> str | None:
        if self._said and self._again:
            await super().push(self._again)
            self._again = ""
        try:
            return await super().finish()
        except ChatForbidden:
            await self._tell_privately()
            raise

    async def fail(self, text: str) -> None:
        try:
            await super().fail(text)
        except ChatForbidden:
            await self._tell_privately()
            raise

    async def _tell_privately(self) -> None:
        if self._asked.guild is None or self._told:
            return
        self._told = True
        place = getattr(self._asked.channel, "mention", "there")
        try:
            with discord_errors():
                await self._asked.author.send(NO_RIGHT.format(place=place))
        except ChatError as error:
            log.info("the person could not be told either: %s", error)

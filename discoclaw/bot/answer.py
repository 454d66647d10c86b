"""The answer to one message of a person, who is told when Discord refuses it."""

import logging
from collections.abc import Callable, Sequence
from typing import Self

import discord

from discoclaw.bot import wire
from discoclaw.bot.below.rows import Below
from discoclaw.bot.deliver import DiscordReply, in_dm
from discoclaw.bot.refused import ANSWER, REST, elsewhere
from discoclaw.bot.threads import OpenThreads
from discoclaw.core.errors import ChatError, ChatGone, ChatUnavailable
from discoclaw.core.message import Place
from discoclaw.core.ports import Ending, Held
from discoclaw.core.text import ends_blank

log = logging.getLogger(__name__)

NO_THREADS = "\n\n-# I'm set to answer in threads here, but Discord doesn't let me open one."
AGAIN = "\n\n-# I was restarted in the middle of this answer, so I wrote it again."


class Answer(DiscordReply):
    """A reply that reaches its person in a DM when Discord refuses it where they asked: nobody is ignored.

    `half`: the messages of an answer that was interrupted. They become this answer. `turn_id`: what it
    answers, which is the message unless a button asked for it. `anew`: that was another answer.
    """

    def __init__(
        self,
        message: discord.Message,
        threads: OpenThreads,
        edit_every_s: float,
        shown: Callable[[str, str], None],
        half: Sequence[str] = (),
        below: Below | None = None,
        turn_id: str = "",
        anew: bool = True,
    ) -> None:
        onto = [discord.PartialMessage(channel=message.channel, id=int(one)) for one in half]
        super().__init__(
            message.channel, message, edit_every_s=edit_every_s, shown=shown, onto=onto, below=below
        )
        self._turn_id = turn_id or str(message.id)
        # Messages of the answer that it replaces have these nonces, and maybe not all of them are known.
        self._sender.turn_id = "" if half and anew else self._turn_id
        self._asked = message
        self._shown_id = shown
        self._in_dm: list[DiscordReply] = []
        self._threads = threads
        self._half = half
        self._said = False
        self._last = AGAIN if half and anew else ""
        self._channel: discord.abc.Snowflake = message.channel

    def started(self) -> Self:
        """Show the typing indicator, and return this reply."""
        self.start()
        return self

    async def branch_off(self, name: str) -> Place | None:
        """Go on in a thread, as the port says. Where there can be none, one answer says so."""
        try:
            thread = await self._threads.open(self._asked, name)
        except ChatError as error:
            log.info("no thread for the answer to %s: %s", self._asked.id, error)
            passing = isinstance(error, ChatUnavailable | ChatGone)  # or the question was deleted
            if self._asked.channel.id not in self._threads.told and not passing:
                self._threads.told.add(self._asked.channel.id)
                self._last += NO_THREADS
            return None
        await self.go_to(thread, self._half)
        return wire.place_of(thread)

    def be_in(self, thread: discord.Thread, half: Sequence[str] = ()) -> None:
        super().be_in(thread, half)
        self._channel = thread

    @property
    def held(self) -> Held:
        """The answer so far, and what it is a reply to."""
        asked_in, asked_id = str(self._asked.channel.id), str(self._asked.id)
        held, channel_id = super().held, str(self._channel.id)
        return Held(held.text, channel_id, self._turn_id, asked_in, asked_id, held.shown)

    async def push(self, text: str) -> None:
        await super().push(text)
        self._said = self._said or not ends_blank(text)

    async def finish(self, ending: Ending = "other") -> str | None:
        """Show everything pushed. Returns its first message's id, also if only a part could be shown."""
        if self._said and self._last:
            await super().push(self._last)
            self._last = ""
        try:
            return await super().finish(ending)
        except ChatUnavailable:
            raise  # it is tried again later
        except ChatError as error:
            await self._elsewhere(self.unsaid, error)
            if self._sender.first is None or isinstance(error, ChatGone):
                raise
            log.warning("the rest of an answer could not be said where it was asked for: %s", error)
            return str(self._sender.first.id)

    async def unsend(self) -> None:
        """Remove all that was shown, also in a DM. A thread that was opened for it gets another name."""
        await super().unsend()
        for reply in self._in_dm:
            await reply.unsend()
        await self._threads.deleted([self._asked.id])

    async def _notice(self, text: str, ending: Ending = "other") -> None:
        try:
            await super()._notice(text, ending)
        except ChatUnavailable:
            raise
        except ChatError as error:
            await self._elsewhere(text, error)
            raise

    async def _elsewhere(self, text: str, error: ChatError) -> None:
        async def to_person(sentence: str) -> None:
            await in_dm(self._asked.author, f"{sentence}\n\n{text}", self._shown_id, self._in_dm)

        await elsewhere(
            error,
            what=ANSWER if self._sender.first is None else REST,
            place=getattr(self._asked.channel, "mention", "that channel"),
            in_dm=to_person if self._asked.guild is not None else None,
            there=super()._notice,
        )

"""`ask`: a question whose answer only the one who asks sees, wherever they are.

What is asked and answered isn't part of the channel's talk: it is an aside (`core.message.Place`). The answer
is a reply over the interaction, and goes on in a DM where Discord no longer takes it.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import discord

from discoclaw.bot import wire
from discoclaw.bot.commands.call import Call
from discoclaw.bot.deliver import DiscordReply, in_dm
from discoclaw.bot.sending import ANSWER, REST, Followups
from discoclaw.core.errors import ChatError, Refused
from discoclaw.core.message import Inbound, Said
from discoclaw.core.ports import Ending, Held
from discoclaw.core.text import scrub, shows_nothing
from discoclaw.show.answer import Answer, Reply

log = logging.getLogger(__name__)

NOT_HERE = "I don't answer here; whoever runs me has switched that off"
NO_QUESTION = "there is no question in that"

NO_ANSWERS: tuple[Answer, ...] = ()
"""The answer streams into the interaction by itself."""


async def ask(call: Call, text: str, file: discord.Attachment | None) -> Reply:
    return await put(call, text, file=file)


async def put(
    call: Call, text: str, *, quoted: Said | None = None, file: discord.Attachment | None = None
) -> Reply:
    """Ask a question, which may be about a message. Raises Refused where nothing is answered."""
    if shows_nothing(text):
        raise Refused(NO_QUESTION)
    assert isinstance(call.source, discord.Interaction)  # it is a slash command, or a form
    begin = partial(AsideAnswer, call.source, call.client.settings.edit_interval_s)
    if not await call.client.talk.ask(_question(call, text, quoted, file), begin):
        raise Refused(NOT_HERE)
    return NO_ANSWERS


def _question(call: Call, text: str, quoted: Said | None, file: discord.Attachment | None) -> Inbound:
    """The question as a message that nobody else sees."""
    client, number = call.client, call.source.id
    asked = wire.supposed(
        text,
        call.author,
        call.channel,
        message_id=number,
        sent_at=call.asked_at,
        owners=client.settings.owners,
        redactor=client.redactor,
    )
    place = replace(call.place, topic="", tags=()).aside()
    asked = replace(asked, place=place, session_key=place.session_key(call.user_id), quoted=quoted)
    if file is None:
        return asked
    note = client.redactor.clean(scrub(wire.file_note(file)))
    named = wire.file_of(file, number, call.user_id, call.channel.id, redactor=client.redactor)
    return replace(asked, attachments=(note,), files=(named,))


# ---------------------------------------------------------------------- the answer

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
        """This reply. Discord shows that we are thinking since the command was acknowledged."""
        return self

    async def finish(self, ending: Ending = "other") -> str | None:
        """Show everything pushed, in a DM if the command can't take it. Returns its first message's id."""
        try:
            return await super().finish(ending)
        except ChatError as error:
            log.info("an answer to a command goes on in a DM: %s", error)
            what = ANSWER if self._sender.first is None else REST
            there = await in_dm(self._person, f"{IN_DM.format(what=what)}\n\n{self.unsaid}")
            return str(self._sender.first.id) if self._sender.first is not None else there

    @property
    def held(self) -> Held:
        """The missing part, which its person is to get in a DM."""
        return Held(self.unsaid, f"dm-{self._person.id}", "")

    async def _notice(self, text: str, ending: Ending = "other") -> None:
        try:
            await super()._notice(text, ending)
        except ChatError as error:
            log.info("a person is told in a DM why a command has no answer: %s", error)
            await in_dm(self._person, text)

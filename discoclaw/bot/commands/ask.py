"""`ask`: a question whose answer only the one who asks sees, wherever they are.

What is asked and answered is no part of the channel's talk: it is an aside (`core.message.Place`).
"""

from dataclasses import replace
from functools import partial

import discord

from discoclaw.bot import wire
from discoclaw.bot.answers import Answer, Page
from discoclaw.bot.aside import AsideAnswer
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.spec import Command, Param
from discoclaw.bot.modals import LONGEST
from discoclaw.core.errors import Refused
from discoclaw.core.message import Inbound, Said
from discoclaw.core.text import scrub, shows_nothing

NOT_HERE = "I don't answer here; whoever runs me has switched that off"
NO_QUESTION = "there is no question in that"
STILL_ASKING = "I'm still taking your last question. Please try again in a moment."

NO_PAGES: tuple[Page, ...] = ()
"""The answer streams into the interaction by itself."""


async def ask(call: Call, text: str, file: discord.Attachment | None) -> Answer:
    return await put(call, text, file=file)


ASK = Command(
    "ask",
    ask,
    "Ask me something, wherever you are; only you see the answer",
    (
        Param("text", "What you would like to know", required=True, bounds=(1, LONGEST)),
        Param("file", "A file that it is about", "file"),
    ),
    needs=(),
    aside=STILL_ASKING,
    anywhere=True,
)


async def put(
    call: Call, text: str, *, quoted: Said | None = None, file: discord.Attachment | None = None
) -> Answer:
    """Ask a question, which may be about a message. Raises Refused where nothing is answered."""
    if shows_nothing(text):
        raise Refused(NO_QUESTION)
    assert isinstance(call.source, discord.Interaction)  # it is a slash command, or a form
    begin = partial(AsideAnswer, call.source, call.client.settings.edit_interval_s)
    if not await call.client.talk.ask(_question(call, text, quoted, file), begin):
        raise Refused(NOT_HERE)
    return NO_PAGES


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

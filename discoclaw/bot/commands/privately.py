"""Answers that nobody else may read, to commands that others see: they go to the person's DMs."""

from collections.abc import Sequence

from discoclaw.bot.answers import Page
from discoclaw.bot.commands.call import Call
from discoclaw.bot.pages import SILENT
from discoclaw.bot.texts.markup import NOTE
from discoclaw.bot.wire import discord_errors
from discoclaw.core.errors import ChatError, ChatForbidden, Refused

NOT_TAKEN = "Discord didn't take it just now; try again later"


async def in_dm(call: Call, pages: Sequence[Page]) -> None:
    """Send messages to the one who gave a command. Raises ChatForbidden if they take none, and Refused."""
    for page in pages:
        try:
            with discord_errors():
                await call.author.send(NOTE + page.text, files=list(page.files), allowed_mentions=SILENT)
        except ChatForbidden:
            raise
        except ChatError as error:
            raise Refused(NOT_TAKEN) from error

"""“Ask about this”: a form for a question, which is then asked about the message that was chosen."""

from discoclaw.bot.answers import Answer
from discoclaw.bot.commands.ask import put
from discoclaw.bot.commands.call import Call
from discoclaw.bot.errors import discord_errors
from discoclaw.bot.texts import menus as texts
from discoclaw.bot.voice import meant
from discoclaw.core.errors import ChatError, Refused
from discoclaw.core.message import Said


async def ask_about(call: Call, message: str, question: str) -> Answer:
    quoted = await _quoted(call, message)
    if not quoted.by_us and call.context.choices.opted_out(quoted.author_id):
        raise Refused(texts.NOT_READ)  # it would be left out, and the answer be about nothing
    return await put(call, question, quoted=quoted)


async def _quoted(call: Call, message_id: str) -> Said:
    """The message that was chosen; asked for again after a restart. Raises Refused."""
    kept = call.client.talk.chosen.take(call.user_id, message_id)
    if kept is not None:
        return kept
    try:
        with discord_errors():
            message = await call.channel.fetch_message(int(message_id))
        return await meant.said(call.client, message)
    except ChatError as error:
        raise Refused(texts.GONE) from error

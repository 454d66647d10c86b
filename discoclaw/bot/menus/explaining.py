"""“Why this answer?”: what one of my answers was based on, for the person who got it."""

from collections.abc import Iterator

import discord

from discoclaw.bot.answers import Answer
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.why import UNKNOWN_ANSWER, explained
from discoclaw.bot.texts import menus as texts
from discoclaw.bot.texts.markup import NOTE
from discoclaw.core.errors import Refused

OF_ANSWERS = ("stop:", "again:", "more:")
"""How the custom ids of the buttons begin that stand below answers."""


async def why(call: Call, message: discord.Message) -> Answer:
    if call.client.user is None or message.author.id != call.client.user.id:
        raise Refused(texts.NOT_AN_ANSWER)
    found = call.context.explained.answer(call.session_key, str(message.id), later_part=_may_go_on(message))
    if found is None:
        return UNKNOWN_ANSWER
    user_id, shown = found
    if user_id != call.user_id:
        raise Refused(texts.NOT_FOR_YOU)
    return await explained(call, shown, "that answer")


def _may_go_on(message: discord.Message) -> bool:
    """Whether a message may be a later part of an answer: no reply, no receipt, no question with buttons."""
    alone = message.reference is None and message.interaction_metadata is None
    return alone and not message.content.startswith(NOTE) and all(map(_is_of_answer, _controls(message)))


def _controls(message: discord.Message) -> Iterator[object]:
    for part in message.components:
        yield from getattr(part, "children", [part])


def _is_of_answer(control: object) -> bool:
    return str(getattr(control, "custom_id", "")).startswith(OF_ANSWERS)

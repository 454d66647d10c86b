"""The buttons below an answer: Stop while it is written, then Again and Go on.

Again asks the same question again, and Go on for the rest of the answer. The question is read from Discord,
as it is now, so this outlives a restart. `sending.Below` says which of them stand
below an answer.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import discord

from discoclaw.bot import wire
from discoclaw.bot.commands.context import sentence
from discoclaw.bot.commands.dispatch import Outcome
from discoclaw.bot.pressed import USER, Controls, Press, Pressed, whisper
from discoclaw.bot.sending import Below, above
from discoclaw.bot.voice import words_below
from discoclaw.bot.wire import channel_of, discord_errors
from discoclaw.commands.caller import DONE_ALREADY
from discoclaw.core.errors import ChatError, ChatForbidden, ChatGone, NotNow, Refused
from discoclaw.core.message import Inbound
from discoclaw.session.talk import NOT_HERE

log = logging.getLogger(__name__)

GO_ON: Final = "go on"
"""The message to the model when somebody wants the rest of an answer."""
QUESTION_GONE: Final = "I can't find your question any more: it was deleted"
MOST_PRESSED: Final = 1_000
NO_ANSWER = "Discord doesn't answer me right now. Please try again in a moment."
ASKED = r"(?P<asked>\d{1,20})"


CONTROLS = Controls()
"""The client takes presses of these."""


async def _show(press: Press, outcome: Outcome) -> None:
    """The answer shows what came of it. Say what was taken back with the old one, or why nothing was done."""
    if outcome:
        await whisper(press, str(outcome).lstrip())


@CONTROLS.on(rf"stop:{USER}:{ASKED}", needs=(), show=_show)
async def stop(at: Pressed) -> str:
    """End an answer that is being written. Raises Refused if it has ended and only its button is left."""
    press, turn_id = at.press, at.known["asked"]
    if press.client.talk.agent.stops.stop(turn_id, at.user_id) != "unknown":
        return ""  # what its turn shows last has other buttons
    try:
        with discord_errors():
            now = await press.original_response()
    except ChatError as error:
        return _unanswered(error)
    rows = (one for one in now.components if isinstance(one, discord.ActionRow))
    if any(one.custom_id == f"stop:{at.user_id}:{turn_id}" for row in rows for one in row.children):
        raise Refused(DONE_ALREADY)
    return ""


@CONTROLS.on(rf"again:{USER}:{ASKED}:(?P<above>[0-9a-z.]*)", needs=(), show=_show)
async def again(at: Pressed) -> str:
    """Have the same question answered once more, instead of this answer. Raises Refused."""
    return await _once(at, _again)


@CONTROLS.on(rf"more:{USER}:{ASKED}", needs=(), show=_show)
async def more(at: Pressed) -> str:
    """Have an answer continued below. Raises Refused."""
    return await _once(at, _more)


async def _once(at: Pressed, act: Callable[[Pressed], Awaitable[bool]]) -> str:
    """Do something once for each answer: a second press may come before its buttons are gone.

    Returns why it can't be done now, or "". Whatever wasn't done may be pressed again. Raises Refused.
    """
    key, pressed, done = at.message.id, at.commands.pressed, False
    if key in pressed:
        raise Refused(DONE_ALREADY)
    pressed[key] = None
    if len(pressed) > MOST_PRESSED:
        del pressed[next(iter(pressed))]
    try:
        done = await act(at)
    except NotNow as refusal:
        return sentence(refusal)
    except ChatError as error:
        return _unanswered(error)
    finally:
        if not done:
            pressed.pop(key, None)
    return ""


def _unanswered(error: ChatError) -> str:
    log.warning("a button below an answer did nothing: %s", error)
    return NO_ANSWER


async def _again(at: Pressed) -> bool:
    client, asked_id = at.press.client, at.known["asked"]
    answer = [*above(asked_id, at.known["above"]), at.message.id]
    channel, asked, heard = await _question(at)
    if wire.is_voice(asked):
        # Its words stand below it, so it is not listened to once more; who can't have them is told why.
        known = await words_below(asked, client.user)
        spoken = await client.voices.listen(asked, heard, known=known, show=not known)
        if spoken.told:
            return False
        heard = spoken.message
    ids, key = [str(one) for one in answer], wire.place_of(channel).session_key(heard.author.id)
    forget = partial(client.deleted_messages.deleted, ids, str(channel.id), key)
    make = partial(client.answer, asked, turn_id=str(at.press.id))
    if not await client.talk.again(heard, make, ids[0], forget):
        return False
    for message_id in answer:
        try:
            with discord_errors():
                await discord.PartialMessage(channel=channel, id=message_id).delete()
        except ChatError as error:
            log.info("a part of an answer that is given again stays: %s", error)
    return True


async def _more(at: Pressed) -> bool:
    client, asked_id = at.press.client, at.known["asked"]
    channel, asked, heard = await _question(at)
    place = wire.place_of(channel, client.redactor)
    wanted = replace(
        heard,
        id=str(at.press.id),
        place=place,
        session_key=place.session_key(heard.author.id),
        text=GO_ON,
        sent_at=at.time_ms,
        quoted=client.said(at.message),
        attachments=(),
        files=(),
        stands_for=(asked_id,),
    )
    below = Below(heard.author.id, asked_id, wanted.id)
    within = channel if channel.id != asked.channel.id else None
    make = partial(client.answer, asked, below=below, within=within, turn_id=wanted.id)
    if not await client.talk.go_on(wanted, make):
        return False
    try:
        with discord_errors():
            await at.press.edit_original_response(view=None)
    except ChatError as error:
        log.info("the buttons of an answer that goes on stay: %s", error)
    return True


async def _question(at: Pressed) -> tuple[Any, discord.Message, Inbound]:
    """The channel of a press, and the question as message and Inbound. Raises Refused and ChatError."""
    press, asked_id = at.press, int(at.known["asked"])
    try:
        with discord_errors():
            channel: Any = await channel_of(press.client, str(press.channel_id))
            # A thread that grew out of the question has its id; the question stands above it.
            of_question = channel
            if channel.id == asked_id:
                of_question = await channel_of(press.client, str(channel.parent_id))
            asked: discord.Message = await of_question.fetch_message(asked_id)
        if asked.author.id != press.user.id:
            raise Refused(NOT_HERE)  # only a forged button says so
        asked.author = press.user  # a message that was fetched lacks the name and the roles here
        heard: Inbound | None = await press.client.heard(asked, strict=True)
    except ChatGone as error:
        raise Refused(QUESTION_GONE) from error
    except ChatForbidden as error:
        raise Refused(NOT_HERE) from error
    if heard is None:
        raise Refused(NOT_HERE)
    return channel, asked, heard
